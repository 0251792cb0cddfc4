/* Writes the reference of operators: the declarations of headers, as Markdown.
 *
 *     hetu-operators --reference compiler/rule/grammar.h include/hetu/ops.h > operators.md
 *
 * Each operator is a list entry: its prototype, the comment above it, its rule, and the default
 * values of arguments. A macro such as `ht_sum(x, ...)` replaces the function behind it,
 * `ht_sum_over`, and inherits its comment and rule. For a header without operators, such as
 * grammar.h with the grammar of rules, the opening comment is copied. */
#include "operators.h"

#include "support/reading.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 96, MOST_ENTRIES = 1024 };

typedef struct Entry {
    char name[NAME_SIZE];
    const char *prototype, *comment, *rule, *defaults; // NULL: none
    bool shown;                                        // false: only the function behind a macro
} Entry;

typedef struct Reference {
    Arena *arena;
    Entry *entries;
    int count;
    const char *comment, *rule; // read, but not yet attached to a declaration
} Reference;

/* Returns whether a name is that of a function behind a macro, of a gradient, or of an optimizer's
 * operator, by its suffix. */
static bool is_hidden(const char *name) {
    static const char *const suffixes[] = {"_at",       "_over",  "_with",   "_stats", "_backward",
                                           "_gradient", "_merge", "_update", "_rule"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t length = strlen(name), end = strlen(suffixes[i]);
        if (length > end && !strcmp(name + length - end, suffixes[i])) return true;
    }
    return false;
}

static Entry *find_entry(const Reference *reference, const char *name) {
    for (int i = 0; i < reference->count; i++)
        if (!strcmp(reference->entries[i].name, name)) return &reference->entries[i];
    return NULL;
}

/* ---- reading a header ---- */

/* Reads a line, joined with the lines that a backslash continues; NULL at the end. */
static const char *read_line(FILE *header, Arena *arena) {
    Text text = {.arena = arena};
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    bool any = false, joined = true;
    while (joined && (length = getline(&line, &room, header)) > 0) {
        any = true;
        length -= line[length - 1] == '\n';
        joined = length > 0 && line[length - 1] == '\\';
        text_append(&text, line, (size_t)length - joined);
    }
    free(line);
    return any ? text_bytes(&text) : NULL;
}

/* Returns a copy of the words between two places, with one space between words. */
static const char *copy_words(Arena *arena, const char *from, const char *end) {
    Text text = {.arena = arena};
    for (const char *at = from; at < end;) {
        size_t blank = strspn(at, " \t\n"), word = strcspn(at + blank, " \t\n");
        at += blank;
        if (at >= end || !word) break;
        if (at + word > end) word = (size_t)(end - at);
        if (text.length) text_append(&text, " ", 1);
        text_append(&text, at, word);
        at += word;
    }
    return text_bytes(&text);
}

/* Returns whether a line matches a pattern; sets *end to the end of the match. */
static bool matches(const char *pattern, const char *line, const char **end) {
    regex_t compiled;
    regmatch_t found;
    if (regcomp(&compiled, pattern, REG_EXTENDED)) abort();
    bool good = !regexec(&compiled, line, 1, &found, 0);
    regfree(&compiled);
    if (good) *end = line + found.rm_eo;
    return good;
}

/* Adds a declaration with the comment and the rule above it. */
static void add_entry(Reference *reference, const char *prototype, const char *defaults) {
    char name[NAME_SIZE];
    const char *open = strchr(prototype, '('), *begin = open;
    while (begin > prototype && begin[-1] != ' ') begin--;
    snprintf(name, sizeof name, "%.*s", (int)(open - begin), begin);
    Entry *entry = find_entry(reference, name);
    if (!entry) {
        if (reference->count == MOST_ENTRIES) abort();
        entry = &reference->entries[reference->count++];
        *entry = (Entry){.shown = !is_hidden(name)};
        memcpy(entry->name, name, sizeof name);
    }
    entry->prototype = prototype;
    entry->defaults = defaults;
    if (reference->comment) entry->comment = reference->comment;
    if (reference->rule) entry->rule = reference->rule;
    reference->comment = reference->rule = NULL;
}

/* Reads a comment that begins with `line` to its end; returns its words. */
static const char *read_comment(FILE *header, Arena *arena, const char *line) {
    Text text = {.arena = arena};
    for (const char *at = line; at; at = read_line(header, arena)) {
        const char *end = strstr(at, "*/");
        at += strspn(at, " /*");
        if (end && end < at) break;
        if (text.length) text_append(&text, " ", 1);
        text_append(&text, at, end ? (size_t)(end - at) : strlen(at));
        if (end) break;
    }
    const char *whole = text_bytes(&text);
    return copy_words(arena, whole, whole + strlen(whole));
}

/* Returns the default arguments of a macro, the text between the options' brace and the caller's
 * arguments; NULL: the macro has none. */
static const char *defaults_of(Arena *arena, const char *macro) {
    const char *open = strstr(macro, "_options){"), *end = strstr(macro, " __VA_OPT__");
    if (!open || !end || end < open) return NULL;
    open += strlen("_options){");
    return end > open ? copy_words(arena, open, end) : NULL;
}

/* Reads a line outside of comments. */
static void take_line(Reference *reference, const char *line) {
    static const char *const RULE = "#pragma hspmd op ";
    Arena *arena = reference->arena;
    const char *end;
    if (!strncmp(line, RULE, strlen(RULE))) {
        reference->rule = copy_words(arena, line + strlen(RULE), line + strlen(line));
    } else if (matches("^(static inline )?(ht_tensor|int|ht_sorted|ht_optimizer|double) "
                       "ht_[a-z0-9_]+[(][^)]*[)]",
                       line, &end)) {
        bool is_inline = !strncmp(line, "static inline ", 14);
        add_entry(reference, copy_words(arena, line + (is_inline ? 14 : 0), end), NULL);
    } else if (matches("^#define ht_[a-z0-9_]+[(][^)]*[)]", line, &end)) {
        add_entry(reference, copy_words(arena, line + strlen("#define "), end),
                  defaults_of(arena, line));
    } else if (*line && !strchr(" }#", *line) && strncmp(line, "typedef", 7)) {
        reference->comment = NULL;
    }
}

static void read_header(Reference *reference, FILE *header) {
    for (const char *line; (line = read_line(header, reference->arena));) {
        if (strncmp(line, "/*", 2)) {
            take_line(reference, line);
            continue;
        }
        const char *comment = read_comment(header, reference->arena, line);
        reference->comment = strncmp(line, "/* ----", 7) ? comment : NULL;
    }
}

/* ---- writing Markdown ---- */

/* Writes prose as Markdown; escapes Markdown's special characters outside of `code`. */
static void write_prose(const char *text) {
    bool code = false, paired = true;
    for (const char *c = text; *c; c++) paired ^= *c == '`';
    for (const char *c = text; *c; c++) {
        code ^= *c == '`' && paired;
        if (!code && (strchr("\\*_[]<>|~^$", *c) || (*c == '`' && !paired))) putchar('\\');
        putchar(*c);
    }
}

/* Returns the rule or the comment of an entry or of the function behind it; NULL: there is none. */
static const char *inherited(const Reference *reference, const Entry *entry, bool rule) {
    static const char *const suffixes[] = {"", "_at", "_over", "_with"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[NAME_SIZE + 8];
        snprintf(name, sizeof name, "%s%s", entry->name, suffixes[i]);
        const Entry *found = find_entry(reference, name);
        const char *text = !found ? NULL : rule ? found->rule : found->comment;
        if (text) return text;
    }
    return NULL;
}

static void write_entry(const Reference *reference, const Entry *entry) {
    const char *comment = inherited(reference, entry, false);
    const char *rule = inherited(reference, entry, true);
    printf("`%s`\n:   ", entry->prototype);
    if (comment) write_prose(comment);
    if (rule) printf("%sRule: `%s`.", comment ? " " : "", rule);
    if (entry->defaults) printf("%sDefaults: `%s`.", comment || rule ? " " : "", entry->defaults);
    if (!comment && !rule && !entry->defaults) printf("As PyTorch's.");
    printf("\n\n");
}

/* Writes the opening comment of a header unchanged. */
static void write_comment(FILE *header, Arena *arena) {
    bool inside = false, ended = false;
    rewind(header);
    printf("## The grammar of rules\n\n```\n");
    for (const char *line; !ended && (line = read_line(header, arena));) {
        if (!strncmp(line, "/* clang-format", 15)) continue;
        inside |= !strncmp(line, "/*", 2);
        ended = inside && strstr(line, "*/");
        size_t lead = strspn(line, " /*");
        if (inside && !ended) puts(line + (lead > 3 ? 3 : lead));
    }
    printf("```\n\n");
}

const char *reference_write(Arena *arena, const char *path) {
    Reference reference = {.arena = arena};
    const char *why;
    int file = reading_open(path, &why);
    FILE *header = file < 0 ? NULL : fdopen(file, "r");
    if (!header) return why ? why : "there is no memory";
    reference.entries = arena_alloc(arena, MOST_ENTRIES * sizeof *reference.entries);
    read_header(&reference, header);
    const char *name = strstr(path, "hetu/");
    if (name && reference.count) printf("## `<%s>`\n\n", name);
    else write_comment(header, arena);
    for (int i = 0; i < reference.count; i++)
        if (reference.entries[i].shown) write_entry(&reference, &reference.entries[i]);
    fclose(header);
    return NULL;
}
