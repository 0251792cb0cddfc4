/* Keeps sources and options in objects (as LTO keeps IR), and reads them back when hetucc links.
 * waiting.c compiles the models that waited. */
#include "driver/object_sections.h"

#include "ir/unit.h"

#include <hetu/version.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef Array(const Portion *) Portions;

/* ---- the section's format: fields, each its length in decimal, a newline, and its bytes ---- */

static const char magic[] = "hetucc part 2, " HETU_VERSION;

static void put(Text *out, const char *text) { text_print(out, "%zu\n%s\n", strlen(text), text); }

static void put_list(Text *out, int count, const char *const *words) {
    put(out, arena_format(out->arena, "%d", count));
    for (int i = 0; i < count; i++) put(out, words[i]);
}

/* The fields that are not read yet; `good` turns false at the first field that is missing. */
typedef struct Fields {
    Arena *arena;
    const char *at, *end;
    bool good;
} Fields;

static const char *take(Fields *fields) {
    size_t length = 0;
    const char *at = fields->at;
    for (; at < fields->end && *at >= '0' && *at <= '9' && length < (size_t)1 << 32; at++)
        length = 10 * length + (size_t)(*at - '0');
    fields->good = fields->good && at > fields->at && at < fields->end && *at == '\n' &&
                   length + 1 < (size_t)(fields->end - at);
    if (!fields->good) return "";
    fields->at = at + 1 + length + 1;
    return arena_substring(fields->arena, at + 1, length);
}

static int take_count(Fields *fields) {
    int count = atoi(take(fields));
    fields->good = fields->good && count >= 0;
    return fields->good ? count : 0;
}

static const char *const *take_list(Fields *fields, int *count) {
    Array(const char *) words = {0};
    *count = take_count(fields);
    for (int i = 0; i < *count && fields->good; i++)
        array_push(fields->arena, &words, take(fields));
    return words.at;
}

/* ---- writing a section ---- */

/* Returns the source's text after the preprocessor; NULL when the C compiler failed. */
static const char *preprocess(Driver *driver, const char *source) {
    const char *path = temporary(&driver->tools, "source.i");
    Command command = compile_command(driver);
    command_add(&command, "-w", "-E", "-o", path, NULL);
    add_source_word(&command, source);
    return command_run(&driver->tools, &command) ? NULL
           : driver->tools.dry_run               ? ""
                                                 : file_text(driver->arena, path);
}

/* Writes the options as words for hetucc, with absolute file names. */
static void put_options(Text *out, Driver *driver) {
    Arena *arena = driver->arena;
    const Options *options = driver->options;
    Command words = {.arena = arena};
    add_options(driver, &words);
    for (int s = 0; s < options->strategies.count; s++) {
        const char *word = options->strategies.at[s];
        word = frontend_strategy_file(arena, word) ? absolute_name(arena, word) : word;
        command_add(&words, arena_format(arena, "--strategy=%s", word), NULL);
    }
    for (int r = 0; r < REMARKS; r++)
        if (options->remarks[r])
            command_add(&words, arena_format(arena, "-R%s", remark_words[r]), NULL);
    put_list(out, words.words.count, words.words.at);
}

const char *section_keep(Driver *driver, const Unit *unit, const char *source) {
    Arena *arena = driver->arena;
    Text out = {.arena = arena};
    FrontendOptions options = frontend_options(driver, source, NULL);
    const char *preprocessed = unit->absent.count ? preprocess(driver, source) : "";
    const char *name = name_with(arena, source, ".hetu"),
               *path = driver->options->save_temps ? name : temporary(&driver->tools, name);
    if (!preprocessed) return NULL;
    put(&out, magic);
    put(&out, absolute_name(arena, ""));
    put(&out, source);
    put(&out, unit->absent.count ? "waits" : "");
    put(&out, unit->prepares ? "prepares" : "");
    put_options(&out, driver);
    put_list(&out, options.part.arg_count, options.part.args);
    put_list(&out, unit->defined.count, unit->defined.at);
    put(&out, arena_format(arena, "%d", unit->files.count));
    for (int i = 0; i < unit->files.count; i++) {
        put(&out, unit->files.at[i].path);
        put(&out, unit->files.at[i].text);
    }
    put(&out, preprocessed);
    return driver->options->dry_run || output_text(&driver->tools, path, text_bytes(&out)) ? path
                                                                                           : NULL;
}

/* ---- reading sections ---- */

/* Sets the clang arguments of a part: its own options, and the folder of its compilation. */
static void give_arguments(Fields *fields, Portion *part, const char *folder) {
    int count;
    const char *const *args = take_list(fields, &count);
    Array(const char *) all = {0};
    for (int i = 0; i < count; i++) array_push(fields->arena, &all, args[i]);
    array_push(fields->arena, &all, arena_format(fields->arena, "-working-directory=%s", folder));
    part->front.arg_count = all.count;
    part->front.args = all.at;
}

static Portion *take_part(Fields *fields) {
    Portion *part = arena_new(fields->arena, Portion);
    const char *folder = take(fields);
    part->front.file = take(fields);
    part->waits = *take(fields);
    part->prepares = *take(fields);
    int words;
    const char *const *word = take_list(fields, &words);
    for (int i = 0; i < words; i++) array_push(fields->arena, &part->words, word[i]);
    give_arguments(fields, part, folder);
    part->front.defined = take_list(fields, &part->front.defined_count);
    Array(UnitFile) texts = {0};
    for (int i = take_count(fields); i > 0 && fields->good; i--) {
        const char *path = take(fields);
        array_push(fields->arena, &texts, (UnitFile){path, take(fields)});
    }
    part->front.texts = texts.at;
    part->front.text_count = texts.count;
    part->preprocessed = take(fields);
    return part;
}

/* Appends the parts that a section keeps to `parts`; false after a message. */
static bool add_section(Arena *arena, const char *path, const ObjectSection *section,
                        Portions *parts) {
    Fields fields = {arena, section->bytes, section->bytes + section->size, true};
    int first = parts->count;
    while (fields.at < fields.end) {
        const char *made = take(&fields);
        bool own = fields.good && !strcmp(made, magic);
        Portion *part = own ? take_part(&fields) : NULL;
        if (!own || !fields.good) {
            complain("%s%s%s keeps model code of another version of hetucc, or of none: compile it "
                     "again",
                     path, section->member ? ", member " : "",
                     section->member ? section->member : "");
            return false;
        }
        part->object = path;
        part->member = section->member;
        array_push(arena, parts, part);
    }
    for (int i = first; i < parts->count; i++)
        ((Portion *)parts->at[i])->alone = parts->count == first + 1;
    return true;
}

/* Returns the archive that -lNAME finds in the folders of -L; NULL: none, or a shared library. */
static const char *find_library(Driver *driver, const char *name) {
    const Options *options = driver->options;
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        const char *folder =
            begins(item->text, "-L") ? (item->text[2] ? item->text + 2 : item->value) : NULL;
        if (!folder) continue;
        const char *file = *name == ':' ? arena_format(driver->arena, "%s/%s", folder, name + 1)
                                        : arena_format(driver->arena, "%s/lib%s.so", folder, name);
        if (*name != ':' && !access(file, R_OK)) return NULL;
        file = *name == ':' ? file : arena_format(driver->arena, "%s/lib%s.a", folder, name);
        if (!access(file, R_OK)) return file;
    }
    return NULL;
}

/* Appends the parts in objects of the command line, then those in archives: a linker takes archive
 * members only for symbols that are still undefined. Returns false after a message. */
static bool add_objects(Driver *driver, Portions *parts) {
    const Options *options = driver->options;
    bool good = true;
    Portions archived = {0};
    for (int i = 0; i < options->cc.items.count && good; i++) {
        const Item *item = &options->cc.items.at[i];
        bool library = item->kind == ITEM_INPUT && begins(item->text, "-l");
        const char *path = library ? find_library(driver, item->text[2] ? item->text + 2
                                                          : item->value ? item->value
                                                                        : "")
                                   : item->text;
        ObjectSections sections = {0};
        if (item->kind == ITEM_INPUT && path && *path != '-')
            object_sections(driver->arena, path, &sections);
        for (int s = 0; s < sections.count && good; s++)
            good = add_section(driver->arena, path, &sections.at[s],
                               sections.at[s].member ? &archived : parts);
    }
    for (int i = 0; i < archived.count; i++) array_push(driver->arena, parts, archived.at[i]);
    return good;
}

static const PortionList *listed(Arena *arena, const Portions *parts) {
    PortionList *list = arena_new(arena, PortionList);
    *list = (PortionList){parts->count, parts->at};
    return list;
}

/* Returns the parts in objects and archives, which are searched once; NULL after a message. */
static const PortionList *objects_parts(Driver *driver) {
    Portions parts = {0};
    if (!driver->objects && add_objects(driver, &parts))
        driver->objects = listed(driver->arena, &parts);
    return driver->objects;
}

/* Appends the part of a source, with the functions that it defines; false after errors. */
static bool add_source(Driver *driver, const char *source, Portions *parts) {
    Portion *part = arena_new(driver->arena, Portion);
    FrontendOptions options = frontend_options(driver, source, NULL);
    *part = (Portion){.front = options.part};
    array_push(driver->arena, parts, part);
    return frontend_scan(driver->arena, driver->diag, &options, &part->front);
}

const PortionList *driver_sections(Driver *driver) {
    const Options *options = driver->options;
    Portions parts = {0};
    bool good = true;
    if (driver->parts) return driver->parts;
    for (int i = 0; i < options->cc.items.count && good; i++)
        if (options->cc.items.at[i].kind == ITEM_SOURCE &&
            source_is_ours(driver, options->cc.items.at[i].text))
            good = add_source(driver, options->cc.items.at[i].text, &parts);
    const PortionList *objects = good ? objects_parts(driver) : NULL;
    for (int i = 0; objects && i < objects->count; i++)
        array_push(driver->arena, &parts, objects->at[i]);
    return driver->parts = objects ? listed(driver->arena, &parts) : NULL;
}

const PortionList *driver_waiting(Driver *driver) {
    Portions waiting = {0};
    const PortionList *objects = objects_parts(driver);
    for (int i = 0; objects && i < objects->count; i++)
        if (objects->at[i]->waits) array_push(driver->arena, &waiting, objects->at[i]);
    return objects ? listed(driver->arena, &waiting) : NULL;
}

bool sections_prepare(Driver *driver) {
    const PortionList *objects = objects_parts(driver);
    bool prepares = false;
    for (int i = 0; objects && i < objects->count; i++) prepares |= objects->at[i]->prepares;
    return prepares;
}

/* ---- the frontend's other sources ---- */

bool sections_give(Driver *driver, FrontendOptions *options) {
    const PortionList *parts = driver_sections(driver);
    Array(FrontendPart) others = {0};
    for (int i = 0; parts && i < parts->count; i++) {
        const Portion *part = parts->at[i];
        bool own = driver->part ? part == driver->part
                                : !part->object && !strcmp(part->front.file, options->part.file);
        if (!own) array_push(driver->arena, &others, part->front);
    }
    options->parts = others.at;
    options->part_count = others.count;
    return parts;
}
