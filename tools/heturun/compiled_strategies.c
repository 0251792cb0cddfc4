/* Finds the program, and reads which strategies it was compiled with, before any rank starts: the
 * strings in its section `.hetu.strategies` (emit/program/unit.c). */
#include "choose_elastic_strategy.h"

#include "support/diag.h"
#include "support/reading.h"
#include "support/text.h"
#include "support/tool.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 16 }; // hexadecimal digits of a digest

/* Returns the path of a program that execvp would run; NULL: there is none. */
static const char *find_program(Arena *arena, const char *word) {
    if (strchr(word, '/')) return word;
    const char *path = getenv("PATH");
    for (path = path ? path : ""; *path; path += *path == ':') {
        size_t length = strcspn(path, ":");
        const char *file =
            arena_format(arena, "%.*s%s%s", (int)length, path, length ? "/" : "", word);
        if (!access(file, X_OK)) return file;
        path += length;
    }
    return NULL;
}

char *program_path(const char *program) {
    Arena *arena = arena_create();
    const char *path = find_program(arena, program);
    char *copy = path ? strdup(path) : NULL;
    arena_destroy(arena);
    return copy;
}

bool program_check(Arena *arena, const char *program) {
    struct stat about;
    const char *path = find_program(arena, program);
    if (path && !access(path, X_OK) && !stat(path, &about) && S_ISREG(about.st_mode)) return true;
    bool here = !path && !access(program, X_OK);
    tool_message(stderr, "error", "%s cannot be started: %s%s%s%s", program,
                 !path                                           ? "it is not along PATH"
                 : !access(path, X_OK) && S_ISDIR(about.st_mode) ? "it is a folder"
                                                                 : strerror(errno),
                 here ? "; did you mean ./" : "", here ? program : "", here ? "?" : "");
    return false;
}

/* Returns whether a text has `count` bytes from an offset on. */
static bool has(const InputText *text, uint64_t offset, uint64_t count) {
    return offset <= text->length && count <= text->length - offset;
}

/* Returns the header of the section with this name; NULL: there is none, or the file is no 64-bit
 * little-endian program. */
static const Elf64_Shdr *find_section(const InputText *text, const char *name) {
    static const unsigned char own[] = {ELFMAG0, ELFMAG1,    ELFMAG2,
                                        ELFMAG3, ELFCLASS64, ELFDATA2LSB};
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)text->bytes;
    if (!has(text, 0, sizeof *header) || memcmp(text->bytes, own, sizeof own) != 0 ||
        header->e_shoff % sizeof(uint64_t) || header->e_shstrndx >= header->e_shnum ||
        !has(text, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)))
        return NULL;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(text->bytes + header->e_shoff),
                     *names = &sections[header->e_shstrndx];
    for (int i = 0; i < header->e_shnum; i++)
        if (has(text, names->sh_offset, sections[i].sh_name + strlen(name) + 1) &&
            !strcmp(text->bytes + names->sh_offset + sections[i].sh_name, name))
            return has(text, sections[i].sh_offset, sections[i].sh_size) ? &sections[i] : NULL;
    return NULL;
}

/* Adds the strategies that a program was compiled with to `list`. Returns false if not known: the
 * file is no program of hetucc, or the program compiles further strategies while it runs. */
static bool read_compiled(Arena *arena, const char *program, ChoiceList *list) {
    enum { MOST = 1 << 30 };
    const char *path = find_program(arena, program);
    InputText text = path ? reading_text(arena, READ_FILES, path, MOST) : (InputText){0};
    const Elf64_Shdr *section = text.bytes ? find_section(&text, ".hetu.strategies") : NULL;
    if (!section) return false;
    const char *at = text.bytes + section->sh_offset, *end = at + section->sh_size;
    for (; at < end; at += strnlen(at, (size_t)(end - at)) + 1) {
        const char *word = arena_substring(arena, at, strnlen(at, (size_t)(end - at)));
        char *name;
        uint64_t digest = strtoull(word, &name, 16);
        if (!strcmp(word, "prepares")) return false;
        if (name - word == DIGITS && *name == ' ')
            array_push(arena, list, (Choice){.name = name + 1, .digest = digest});
    }
    return true;
}

/* Returns why a program with strategies `compiled` cannot begin under `choice`; NULL: it can. Does
 * not compare the strategies' texts if `choice` has no digest. */
static const char *reason_against(Arena *arena, const ChoiceList *compiled, const Choice *choice) {
    const char **names = arena_array(arena, const char *, compiled->count + 1);
    Text has_them = {.arena = arena};
    bool other = false;
    for (int i = 0; i < compiled->count; i++) {
        bool same = !strcmp(compiled->at[i].name, choice->name);
        if (same && (!choice->digest || compiled->at[i].digest == choice->digest)) return NULL;
        other |= same;
        names[i] = compiled->at[i].name;
        text_print(&has_them, "%s\"%s\"", i ? ", " : "", names[i]);
    }
    if (other)
        return "it was compiled with another one of this name; compile it with the strategy as it "
               "is now";
    const char *closest = diag_closest(choice->name, names, compiled->count);
    return arena_format(arena,
                        "it was not compiled with it%s%s%s; it has %s; give hetucc "
                        "--strategy=FILE for each, or call ht_prepare in the model's source",
                        closest ? "; did you mean \"" : "", closest ? closest : "",
                        closest ? "\"?" : "", compiled->count ? text_bytes(&has_them) : "none");
}

bool compiled_check_list(Arena *arena, const char *program, ChoiceList *list) {
    ChoiceList compiled = {0};
    if (!read_compiled(arena, program, &compiled)) return true;
    for (int i = list->count - 1; i >= 0; i--) {
        const char *wrong = reason_against(arena, &compiled, &list->at[i]);
        if (!wrong) continue;
        fprintf(stderr, "heturun: strategy \"%s\" is left out: %s\n", list->at[i].name, wrong);
        strategies_drop(list, &list->at[i]);
    }
    if (!list->count)
        tool_message(stderr, "error", "%s has none of the strategies of --elastic", program);
    return list->count > 0;
}

bool compiled_check_variable(Arena *arena, const char *program) {
    const char *word = getenv("HETU_STRATEGY"), *colon = word ? strrchr(word, ':') : NULL;
    ChoiceList compiled = {0};
    if (!word || !*word || !read_compiled(arena, program, &compiled)) return true;
    const char *wrong =
        reason_against(arena, &compiled, &(Choice){.name = colon ? colon + 1 : word});
    if (wrong)
        tool_message(stderr, "error", "%s cannot begin under strategy \"%s\" (HETU_STRATEGY): %s",
                     program, word, wrong);
    return !wrong;
}
