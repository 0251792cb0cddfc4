/* Writes command lines for the C compiler, and the names of files in them. */
#include "driver/object_sections.h"

#include "emit/backend.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names of files ---- */

const char *name_with(Arena *arena, const char *source, const char *suffix) {
    const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source,
               *dot = strrchr(name, '.');
    return arena_format(arena, "%.*s%s",
                        (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name)), name,
                        suffix);
}

const char *name_plain(Arena *arena, const char *name) {
    char *word = arena_string(arena, name);
    for (char *c = word; *c; c++)
        if ((unsigned char)*c < 0x80 && !isalnum((unsigned char)*c) && !strchr("_@+,./-", *c))
            *c = '_';
    return word;
}

/* ---- options for the C compiler ---- */

void add_headers(Driver *driver, Command *command) {
    command_add(command, HSPMD_DEFINE, "-Wno-unknown-pragmas", "-isystem",
                arena_format(driver->arena, "%s/include", driver->tools.prefix), NULL);
}

void add_source_word(Command *command, const char *source) {
    if (is_c_by_option(source)) command_add(command, "-x", "c", source, "-x", "none", NULL);
    else command_add(command, source, NULL);
}

void command_add_item(Command *command, const Item *item) {
    command_add(command, item->text, NULL);
    if (item->value) command_add(command, item->value, NULL);
}

Command compile_command(Driver *driver) {
    Command command = command_cc(&driver->tools);
    for (int i = 0; i < driver->options->cc.items.count; i++)
        if (driver->options->cc.items.at[i].kind == ITEM_FLAG)
            command_add_item(&command, &driver->options->cc.items.at[i]);
    add_headers(driver, &command);
    return command;
}

/* Returns whether an option changes generated code, not the meaning of the source. */
bool item_is_code(const Item *item) {
    const char *text = item->text;
    return item->kind == ITEM_FLAG &&
           (begins(text, "-g") || begins(text, "-f") || begins(text, "-m") ||
            !strcmp(text, "-pthread") || !strcmp(text, "-pipe"));
}

bool item_is_for_kernels(const Item *item) {
    static const char *const arithmetic[] = {"-ffast-math",        "-funsafe-math-optimizations",
                                             "-fassociative-math", "-freciprocal-math",
                                             "-ffinite-math-only", "-fno-signed-zeros",
                                             "-ffp-contract="};
    for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
        if (begins(item->text, arithmetic[i])) return false;
    return item_is_code(item);
}

/* Returns whether an option is for the frontend, too: include paths and files, macros, -std. */
bool item_is_source(const Item *item) {
    static const char *const options[] = {
        "-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-std="};
    for (size_t i = 0; item->kind == ITEM_FLAG && i < sizeof options / sizeof *options; i++)
        if (begins(item->text, options[i])) return true;
    return false;
}

/* ---- sources, and options for the frontend ---- */

const char *file_text(Arena *arena, const char *path) {
    Text text = {.arena = arena};
    file_read(path, &text);
    for (size_t i = 0; i < text.length; i++) text.bytes[i] = text.bytes[i] ? text.bytes[i] : ' ';
    return text_bytes(&text);
}

/* Returns whether the C compiler lists hetu.h among the headers that a source includes. */
static bool includes_hetu(Driver *driver, const char *source) {
    const char *list = temporary(&driver->tools, "includes.d");
    Command command = compile_command(driver);
    Toolchain tools = driver->tools;
    command_add(&command, "-w", "-M", "-MG", "-MF", list, NULL);
    add_source_word(&command, source);
    if (tools.dry_run || command_run(&tools, &command)) return false;
    return strstr(file_text(driver->arena, list), "hetu/hetu.h");
}

bool source_is_ours(Driver *driver, const char *source) {
    const char *text = file_text(driver->arena, source);
    if (strstr(text, "hetu/hetu.h") || strstr(text, "hspmd")) return true;
    return strstr(text, "include") && includes_hetu(driver, source);
}

FrontendOptions frontend_options(Driver *driver, const char *source,
                                 const struct Cluster *cluster) {
    const Options *options = driver->options;
    Array(const char *) words = {0};
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        bool source_option = item_is_source(item);
        const char *meaning = source_option || item->kind != ITEM_FLAG
                                  ? NULL
                                  : language_option(driver->diag, item->text);
        if (meaning) array_push(driver->arena, &words, meaning);
        if (!source_option) continue;
        array_push(driver->arena, &words, item->text);
        if (item->value) array_push(driver->arena, &words, item->value);
    }
    if (is_c_by_option(source)) array_push(driver->arena, &words, "-xc");
    array_push(driver->arena, &words, HSPMD_DEFINE);
    array_push(driver->arena, &words,
               arena_format(driver->arena, "-I%s/include", driver->tools.prefix));
    FrontendPart part = {.file = source, .arg_count = words.count, .args = words.at};
    return (FrontendOptions){.part = driver->part ? driver->part->front : part,
                             .strategy_count = options->strategies.count,
                             .strategies = options->strategies.at,
                             .cluster_file = options->cluster,
                             .cluster = cluster,
                             .backends = backend_names()};
}

/* ---- options that compile a unit again ---- */

const char *absolute_name(Arena *arena, const char *path) {
    char *folder = *path == '/' ? NULL : getcwd(NULL, 0);
    const char *whole = folder ? arena_format(arena, *path ? "%s/%s" : "%s%s", folder, path) : path;
    free(folder);
    return whole;
}

/* Adds an option for each folder of an environment variable, which may be unset at run time. */
static void add_folders(Command *recipe, const char *variable, const char *option) {
    const char *folders = getenv(variable);
    for (size_t length; folders && *folders; folders += length + (folders[length] == ':')) {
        length = strcspn(folders, ":");
        command_add(recipe, option, length ? arena_substring(recipe->arena, folders, length) : ".",
                    NULL);
    }
}

void add_options(Driver *driver, Command *recipe) {
    const Options *options = driver->options;
    for (int i = 0; i < options->cc.items.count; i++)
        if (options->cc.items.at[i].kind == ITEM_FLAG &&
            strncmp(options->cc.items.at[i].text, "-fdiagnostics-", 14) != 0)
            command_add_item(recipe, &options->cc.items.at[i]);
    add_folders(recipe, "CPATH", "-I");
    add_folders(recipe, "C_INCLUDE_PATH", "-isystem");
    if (options->cluster)
        command_add(recipe,
                    arena_format(driver->arena, "--cluster=%s",
                                 absolute_name(driver->arena, options->cluster)),
                    NULL);
    if (options->passes.no_fuse) command_add(recipe, "--no-fuse", NULL);
    if (options->passes.no_views) command_add(recipe, "--no-views", NULL);
    if (options->passes.no_chunks) command_add(recipe, "--no-chunks", NULL);
    if (options->passes.chunk)
        command_add(recipe,
                    arena_format(driver->arena, "--chunk=%lld", (long long)options->passes.chunk),
                    NULL);
    if (options->passes.no_overlap) command_add(recipe, "--no-overlap", NULL);
    if (options->passes.bucket)
        command_add(recipe,
                    arena_format(driver->arena, "--bucket=%lld", (long long)options->passes.bucket),
                    NULL);
    if (options->passes.warn_implicit_reshard) command_add(recipe, "-Wimplicit-reshard", NULL);
}

/* ---- dependency files ---- */

/* Returns the last value of an option such as -MF (-MF FILE or -MFFILE); NULL: it is not given. */
static const char *depend_value(const Options *options, const char *option) {
    const char *value = NULL;
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        if (item->kind == ITEM_DEPEND && begins(item->text, option))
            value = item->value ? item->value : item->text + strlen(option);
    }
    return value;
}

/* Returns a file's name as make reads it, with blanks, # and $ escaped as the C compiler does. */
static const char *make_name(Arena *arena, const char *name) {
    Text text = {.arena = arena};
    for (const char *at = name; *at; at++) {
        for (const char *back = at; (*at == ' ' || *at == '\t') && back > name && back[-1] == '\\';
             back--)
            text_string(&text, "\\");
        text_string(&text, *at == ' ' || *at == '\t' || *at == '#' ? "\\" : *at == '$' ? "$" : "");
        text_append(&text, at, 1);
    }
    return text_bytes(&text);
}

/* Appends the rule "TARGET: READ" to `file` if `read` is a plain file; false when writing fails. */
static bool append_dependency(Arena *arena, const char *read, const char *file,
                              const char *target) {
    struct stat found;
    if (!read || stat(read, &found) || !S_ISREG(found.st_mode)) return true;
    FILE *stream = fopen(file, "a");
    return stream && fprintf(stream, "%s: %s\n", target, make_name(arena, read)) > 0 &&
           !fclose(stream);
}

/* Appends rules for the files of --strategy, --cluster and --resume to `file`; false on failure. */
static bool append_dependencies(Arena *arena, const Options *options, const char *file,
                                const char *target) {
    bool good = true;
    for (int i = 0; i < options->strategies.count; i++)
        good = good &&
               append_dependency(arena, frontend_strategy_file(arena, options->strategies.at[i]),
                                 file, target);
    return good && append_dependency(arena, options->cluster, file, target) &&
           append_dependency(arena, options->resume, file, target);
}

int write_dependencies(Driver *driver, const char *source, const char *object) {
    const Options *options = driver->options;
    bool all = options_have(options, "-MD");
    if (!all && !options_have(options, "-MMD")) return 0;
    const char *file = depend_value(options, "-MF"), *slash = strrchr(object, '/');
    if (!file)
        file = arena_format(driver->arena, "%.*s%s", (int)(slash ? slash + 1 - object : 0), object,
                            name_with(driver->arena, object, ".d"));
    const char *plain = depend_value(options, "-MT"), *quoted = depend_value(options, "-MQ");
    Command command = compile_command(driver);
    command_add(&command, "-w", all ? "-M" : "-MM", plain ? "-MT" : "-MQ",
                plain    ? plain
                : quoted ? quoted
                         : object,
                NULL);
    if (options_have(options, "-MP")) command_add(&command, "-MP", NULL);
    const char *made = temporary(&driver->tools, "depends.d");
    command_add(&command, "-MF", made, NULL);
    add_source_word(&command, source);
    if (command_run(&driver->tools, &command)) return 1;
    const char *target = plain ? plain : make_name(driver->arena, quoted ? quoted : object);
    Text text = {.arena = driver->arena};
    if (options->dry_run) return 0;
    bool good = append_dependencies(driver->arena, options, made, target) && file_read(made, &text);
    return good && output_text(&driver->tools, file, text_bytes(&text)) ? 0 : 1;
}
