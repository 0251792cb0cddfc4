#include "driver/compile.h"

#include "driver/object_sections.h"

#include "frontend/frontend.h"
#include "cluster/cluster.h"
#include "ir/text/text.h"
#include "migration/migration.h"
#include "passes/pipeline.h"
#include "planner/report/report.h"

#include <hetu/version.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    if (is_c_by_option(source))
        command_add(command, "-x", "c", source, "-x", "none", NULL);
    else
        command_add(command, source, NULL);
}

static void add_item(Command *command, const Item *item) {
    command_add(command, item->text, NULL);
    if (item->value) command_add(command, item->value, NULL);
}

Command compile_command(Driver *driver) {
    Command command = command_cc(&driver->tools);
    for (int i = 0; i < driver->options->cc.items.count; i++)
        if (driver->options->cc.items.at[i].kind == ITEM_FLAG)
            add_item(&command, &driver->options->cc.items.at[i]);
    add_headers(driver, &command);
    return command;
}

/* Whether an option changes what code is like rather than what the source says: emitted files are
 * compiled with these. */
static bool is_code_option(const Item *item) {
    const char *text = item->text;
    return item->kind == ITEM_FLAG &&
           (begins(text, "-g") || begins(text, "-f") || begins(text, "-m") ||
            !strcmp(text, "-pthread") || !strcmp(text, "-pipe"));
}

/* Whether the frontend needs to know an option, too. */
static bool is_source_option(const Item *item) {
    static const char *const options[] = {
        "-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-std="};
    for (size_t i = 0; item->kind == ITEM_FLAG && i < sizeof options / sizeof *options; i++)
        if (begins(item->text, options[i])) return true;
    return false;
}

/* Adds the words of "-O1 -fno-math-errno". */
static void add_words(Command *command, const char *words) {
    for (words = words ? words : ""; *(words += strspn(words, " "));) {
        size_t length = strcspn(words, " ");
        command_add(command, arena_substring(command->arena, words, length), NULL);
        words += length;
    }
}

/* ---- reading ---- */

const char *file_text(Arena *arena, const char *path) {
    Text text = {.arena = arena};
    file_read(path, &text);
    for (size_t i = 0; i < text.length; i++) text.bytes[i] = text.bytes[i] ? text.bytes[i] : ' ';
    return text_bytes(&text);
}

/* Whether one of the headers that a source includes is hetu.h, as the C compiler says. */
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

static void print_modules(const Unit *unit) {
    Text text = {.arena = unit->arena};
    for (int i = 0; i < unit->modules.count; i++) ir_print(&text, unit->modules.at[i]);
    fputs(text_bytes(&text), stdout);
}

static bool same(const char *option, const char *word) { return option && !strcmp(option, word); }

/* Whether all that was printed has arrived; false after an error. */
static bool check_printed(const Driver *driver) {
    if (!fflush(stdout) && !ferror(stdout)) return true;
    diag_error(driver->diag, (Position){0}, "cannot write to standard output: %s", strerror(errno));
    return false;
}

/* Runs the passes as the options say. False after errors. */
static bool run_passes(const Driver *driver, Unit *unit) {
    const Options *options = driver->options;
    bool printed = same(options->print_after, "frontend");
    if (printed || same(options->print_after, "all")) print_modules(unit);
    PassOptions passes = {.print_after = printed ? NULL : options->print_after,
                          .stop_after = options->stop_after,
                          .out = stdout,
                          .verify = true,
                          .no_fuse = options->passes.no_fuse,
                          .digest = unit->prepares};
    bool good = same(options->stop_after, "frontend") || passes_run(unit, &passes);
    return (!options->print_after || check_printed(driver)) && good;
}

CompileOptions compile_options(const Options *options, const Cluster *cluster) {
    return (CompileOptions){.cluster_file = options->cluster,
                            .cluster = cluster,
                            .remark_comm = options->remarks[REMARK_COMM],
                            .warn_implicit_reshard = options->passes.warn_implicit_reshard,
                            .bucket = options->passes.bucket,
                            .no_views = options->passes.no_views,
                            .no_chunks = options->passes.no_chunks,
                            .chunk = options->passes.chunk,
                            .overlap = options->backend->overlaps && !options->passes.no_overlap};
}

/* Gives the modules of a unit what the command line says. */
static void set_options(const Options *options, const Unit *unit, const Cluster *cluster) {
    for (int i = 0; i < unit->modules.count; i++)
        unit->modules.at[i]->context.options = compile_options(options, cluster);
}

/* Marks what a program that runs has already. False after an error. */
static bool set_known(const Options *options, Unit *unit) {
    unit->known = options->known;
    for (int i = 0; i < unit->modules.count; i++)
        for (int s = 0; s < options->known && s < unit->strategies.count; s++)
            unit->modules.at[i]->progress.layouts_only |=
                unit->modules.at[i]->strategy == unit->strategies.at[s];
    if (options->known && options->known >= unit->strategies.count)
        diag_error(unit->diag, (Position){0}, "--known=%d leaves none of the %d strategies to make",
                   options->known, unit->strategies.count);
    return !options->known || options->known < unit->strategies.count;
}

/* Plans how the programs go from one strategy to another. */
static void plan_migrations(const Options *options, Unit *unit) {
    unit->migrations = migrations_plan(unit->arena, unit);
    if (options->remarks[REMARK_SWITCH]) migrations_report(unit->migrations, unit);
}

/* Prints the tables that -R asks for, of modules that have come through all passes. */
static void print_tables(const Options *options, const Unit *unit) {
    static void (*const tables[REMARKS])(Text *out,
                                         Module *module) = {[REMARK_MEMORY] = table_memory,
                                                            [REMARK_SHARDING] = table_sharding,
                                                            [REMARK_COMM] = table_comm};
    Text text = {.arena = unit->arena};
    for (int m = 0; m < unit->modules.count; m++)
        for (int r = 0; r < REMARKS && !unit->modules.at[m]->progress.layouts_only; r++)
            if (options->remarks[r] && tables[r]) tables[r](&text, unit->modules.at[m]);
    for (int m = 0; options->remarks[REMARK_MEMORY] && m < unit->modules.count; m++)
        if (!unit->modules.at[m]->progress.layouts_only &&
            (!m || unit->modules.at[m]->strategy != unit->modules.at[m - 1]->strategy))
            table_session(&text, unit, unit->modules.at[m]->strategy);
    if (*text_bytes(&text)) diag_text(unit->diag, text_bytes(&text));
}

FrontendOptions frontend_options(Driver *driver, const char *source, const Cluster *cluster) {
    const Options *options = driver->options;
    Array(const char *) words = {0};
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        bool source_option = is_source_option(item);
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

/* Whether models may wait for what other files define: nothing is linked. */
static bool may_wait(const Driver *driver) {
    return driver->options->compile_only || driver->options->cc.hand_over;
}

/* Runs the frontend on a source, with others of the program where its models need them. NULL after
 * errors. */
static Unit *read_linked(Driver *driver, const char *source, const Cluster *cluster) {
    FrontendOptions options = frontend_options(driver, source, cluster);
    options.waits = true;
    Unit *unit = frontend_read(driver->arena, driver->diag, &options);
    if (!unit || !unit->absent.count || may_wait(driver)) return unit;
    options.waits = false;
    return sections_give(driver, &options) ? frontend_read(driver->arena, driver->diag, &options)
                                           : NULL;
}

Unit *unit_read(Driver *driver, const char *source) {
    const Options *options = driver->options;
    const Cluster *cluster = options->cluster
                                 ? (options->strict ? cluster_read_strict : cluster_read)(
                                       driver->arena, driver->diag, options->cluster)
                                 : NULL;
    Unit *unit = read_linked(driver, source, cluster);
    if (unit) set_options(options, unit, cluster);
    bool good =
        unit && !diag_errors(driver->diag) && (!options->resume || unit_resume(driver, unit));
    good = good && set_known(options, unit) && run_passes(driver, unit);
    if (good && !options->stop_after) plan_migrations(options, unit);
    if (good && !options->stop_after) print_tables(options, unit);
    for (int i = 0; good && i < unit->modules.count; i++)
        if (!unit->modules.at[i]->progress.layouts_only)
            array_push(driver->arena, &driver->modules, unit->modules.at[i]);
    if (good) driver->prepares |= unit->prepares;
    return good ? unit : NULL;
}

/* ---- writing ---- */

static bool is_same_file(const struct stat *file, const char *path) {
    struct stat other;
    return !stat(path, &other) && file->st_dev == other.st_dev && file->st_ino == other.st_ino;
}

bool check_output(const Options *options, const char *path) {
    struct stat file;
    bool read = false;
    if (stat(path, &file) || !S_ISREG(file.st_mode)) return true;
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        read |= (item->kind != ITEM_FLAG && item->kind != ITEM_DEPEND) &&
                is_same_file(&file, item->text);
    }
    Arena *scratch = arena_create();
    for (int i = 0; i < options->strategies.count; i++) {
        const char *strategy = frontend_strategy_file(scratch, options->strategies.at[i]);
        read |= strategy && is_same_file(&file, strategy);
    }
    arena_destroy(scratch);
    read |= options->cluster && is_same_file(&file, options->cluster);
    read |= options->resume && is_same_file(&file, options->resume);
    if (read) complain("the output %s is an input", path);
    return !read;
}

/* ---- compiling ---- */

/* The 32-bit FNV-1a hash of a word. */
static unsigned hash_word(const char *word) {
    unsigned hash = 2166136261u;
    for (; *word; word++) hash = (hash ^ (unsigned char)*word) * 16777619u;
    return hash;
}

/* What symbols begin with: the source's name, and where it is spelled otherwise in C, or in a
 * program, where a/model.c and b/model.c may meet, the hash of its path as the user spells it. */
static const char *symbol_prefix(const Driver *driver, const char *source) {
    const char *name = name_with(driver->arena, source, "");
    if (driver->part)
        return name_with(driver->arena, source,
                         arena_format(driver->arena, "_%08x", hash_word(driver->part->object)));
    bool alone = (driver->options->emit != EMIT_EXE || !strchr(source, '/')) &&
                 !strcmp(name, name_plain(driver->arena, name));
    return name_with(driver->arena, source,
                     alone ? "" : arena_format(driver->arena, "_%08x", hash_word(source)));
}

/* hetucc and the options that change what a program is, but for the names of folders: "hetucc 0.1.0
 * -O1 -DWIDTH=64". */
static const char *maker_text(const Driver *driver) {
    Text text = {.arena = driver->arena};
    text_string(&text, "hetucc " HETU_VERSION);
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const Item *item = &driver->options->cc.items.at[i];
        if (is_code_option(item) || (item->kind == ITEM_FLAG && strchr("DUO", item->text[1])))
            text_print(&text, " %s%s%s", item->text, item->value ? " " : "",
                       item->value ? item->value : "");
    }
    return text_bytes(&text);
}

/* ---- what ht_prepare runs ---- */

const char *absolute_name(Arena *arena, const char *path) {
    char *folder = *path == '/' ? NULL : getcwd(NULL, 0);
    const char *whole = folder ? arena_format(arena, *path ? "%s/%s" : "%s%s", folder, path) : path;
    free(folder);
    return whole;
}

/* Adds the folders of an environment variable as options: programs run without what was set when
 * they were compiled. */
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
        if (options->cc.items.at[i].kind == ITEM_FLAG) add_item(recipe, &options->cc.items.at[i]);
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

/* Adds the files of the program: first the one with the unit's models, then, where these need them,
 * those that have parts of it. */
static void recipe_files(Driver *driver, const Unit *unit, Command *recipe) {
    const char *first =
                   driver->part ? absolute_name(driver->arena, driver->part->object) : unit->file,
               *last = first;
    driver->part ? command_add(recipe, first, NULL) : add_source_word(recipe, first);
    for (int i = 0; unit->linked && i < driver->parts->count; i++) {
        const Portion *part = driver->parts->at[i];
        const char *file =
            part->object ? absolute_name(driver->arena, part->object) : part->front.file;
        if (!strcmp(file, first) || !strcmp(file, last)) continue;
        last = file;
        part->object ? command_add(recipe, file, NULL) : add_source_word(recipe, file);
    }
}

/* Whether a name means something else, or nothing, once hetucc has ended: that of a pipe, or of
 * what hetucc was given open. */
static bool is_passing(const char *path) {
    struct stat found;
    return begins(path, "/dev/fd/") || begins(path, "/dev/stdin") ||
           begins(path, "/proc/self/fd/") || (!stat(path, &found) && S_ISFIFO(found.st_mode));
}

/* Returns the option that names a file which is gone when the program runs; NULL: none does. */
static const char *option_of_passing(Arena *arena, const Options *options) {
    for (int i = 0; i < options->strategies.count; i++) {
        const char *file = frontend_strategy_file(arena, options->strategies.at[i]);
        if (file && is_passing(file))
            return arena_format(arena, "--strategy=%s", options->strategies.at[i]);
    }
    return options->cluster && is_passing(options->cluster)
               ? arena_format(arena, "--cluster=%s", options->cluster)
               : NULL;
}

/* Returns why hetucc could not make further strategies of a unit while its program runs; NULL: it
 * can. */
static const char *reason_against_recipe(Arena *arena, const Options *options, const Unit *unit) {
    const char *passing = option_of_passing(arena, options);
    if (options->backend->folder)
        return "a program for GPUs has no strategies made while it runs; give hetucc "
               "--strategy=FILE for each";
    if (options->cc.from_input >= 0 &&
        !strcmp(unit->file, options->cc.items.at[options->cc.from_input].text))
        return "the program was compiled from standard input, which is gone; give hetucc a file";
    if (options->resume)
        return "the program was compiled with --resume, and another strategy cannot be made of "
               "that text; compile it from its sources "
               "alone";
    if (passing)
        return arena_format(arena,
                            "the program was compiled with %s, a pipe or standard input, which is "
                            "gone; give hetucc a file",
                            passing);
    return NULL;
}

/* The command by which a program has further strategies made of its source, or why it cannot
 * (<hetu/rt.h>, ht_register_source). */
static const Command *recompile_command_of(Driver *driver, const Unit *unit) {
    Arena *arena = driver->arena;
    const Options *options = driver->options;
    Command *recipe = arena_new(arena, Command);
    const char *reason = reason_against_recipe(arena, options, unit);
    recipe->arena = arena;
    if (reason) {
        command_add(recipe, reason, NULL);
        return recipe;
    }
    char *folder = getcwd(NULL, 0);
    command_add(recipe, folder ? arena_string(arena, folder) : "", getenv("CC") ? getenv("CC") : "",
                absolute_name(arena, arena_format(arena, "%s/bin/hetucc", driver->tools.prefix)),
                NULL);
    free(folder);
    add_options(driver, recipe);
    recipe_files(driver, unit, recipe);
    for (int s = 0; s < unit->strategies.count; s++)
        command_add(recipe,
                    arena_format(arena, "--strategy=%s",
                                 options->strategies.count ? options->strategies.at[s]
                                                           : unit->strategies.at[s]->name),
                    NULL);
    return recipe;
}

/* All that the user's files of a unit say. */
static const char *unit_text(const Unit *unit) {
    Text text = {.arena = unit->arena};
    for (int i = 0; i < unit->files.count; i++) text_string(&text, unit->files.at[i].text);
    return text_bytes(&text);
}

static void emit_with(Driver *driver, EmittedFiles *files, const Unit *unit, const char *include,
                      const char *section) {
    const char *name = name_with(driver->arena, unit->file, "");
    EmitOptions options = {
        .base = driver->options->backend->folder ? name_plain(driver->arena, name) : name,
        .prefix = symbol_prefix(driver, unit->file),
        .include = include,
        .backend = driver->options->backend,
        .maker = maker_text(driver),
        .text = driver->part ? driver->part->preprocessed : NULL,
        .section = section,
        .source = unit_text(unit)};
    if (unit->prepares && !unit->known) {
        const Command *recipe = recompile_command_of(driver, unit);
        options.recipe_count = recipe->words.count;
        options.recipe = recipe->words.at;
    }
    (unit->modules.count ? emit_unit : emit_part)(files, unit, &options);
}

void unit_emit(Driver *driver, EmittedFiles *files, const Unit *unit, const char *include) {
    emit_with(driver, files, unit, include, NULL);
}

/* Whether a file is the one that includes the user's source. */
static bool is_main_file(const EmittedFile *file) { return file->source; }

/* The command for the file that has the user's source: of a part that waited this is behind the
 * preprocessor, which needs no options more.
 */
static Command main_command(Driver *driver) {
    Command command = command_cc(&driver->tools);
    if (!driver->part) return compile_command(driver);
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const Item *item = &driver->options->cc.items.at[i];
        if (item->kind == ITEM_FLAG && (!is_source_option(item) || begins(item->text, "-std=")))
            add_item(&command, item);
    }
    command_add(&command, "-Wno-unknown-pragmas", NULL);
    return command;
}

/* Adds where the files are that an emitted one includes, and that its own folder is nobody's
 * business. */
static void add_places(Driver *driver, const EmittedFile *file, Command *command) {
    if (!driver->options->save_temps)
        command_add(command,
                    arena_format(driver->arena, "-ffile-prefix-map=%s/=", driver->tools.folder),
                    NULL);
    command_add(command, "-iquote", ".", NULL);
    if (is_main_file(file) && strchr(file->source, '"'))
        command_add(command, "-idirafter", ".", NULL);
}

/* Whether the last -O says that nothing is optimised: then emitted files are not, either, and soon
 * compiled. */
static bool is_unoptimised(const Options *options) {
    bool unoptimised = false;
    for (int i = 0; i < options->cc.items.count; i++)
        if (options->cc.items.at[i].kind == ITEM_FLAG && begins(options->cc.items.at[i].text, "-O"))
            unoptimised = !strcmp(options->cc.items.at[i].text, "-O0");
    return unoptimised;
}

/* The command for an emitted file: the user's options where it includes the user's source, and only
 * those about code elsewhere. */
static Command emitted_command(Driver *driver, const EmittedFile *file, const char *path,
                               const char *object) {
    const Options *options = driver->options;
    Command command = is_main_file(file) ? main_command(driver) : command_cc(&driver->tools);
    command.quiet = !is_main_file(file);
    for (int i = 0; i < options->cc.items.count && !is_main_file(file); i++)
        if (is_code_option(&options->cc.items.at[i])) add_item(&command, &options->cc.items.at[i]);
    if (!is_main_file(file)) {
        command_add(&command, "-std=gnu17", NULL);
        add_headers(driver, &command);
    } else if (!options->cc.optimised) {
        command_add(&command, "-O2", NULL);
    }
    add_words(&command, file->flags);
    if (!is_main_file(file) && is_unoptimised(options)) command_add(&command, "-O0", NULL);
    command_add(&command, "-fno-lto", NULL);
    if (options->known) command_add(&command, "-fPIC", "-fvisibility=hidden", NULL);
    add_places(driver, file, &command);
    command_add(&command, "-c", path, "-o", object, NULL);
    return command;
}

/* Writes an emitted file where the C compiler finds it: the current folder with --save-temps, else
 * the temporary one. NULL after a message.
 */
static const char *write_emitted(Driver *driver, const EmittedFile *file) {
    if (driver->options->save_temps)
        return output_text(&driver->tools, file->name, file->text) ? file->name : NULL;
    const char *path = temporary(&driver->tools, file->name);
    FILE *stream = driver->options->dry_run ? NULL : fopen(path, "w");
    bool good = driver->options->dry_run || (stream && fputs(file->text, stream) >= 0);
    if (stream && fclose(stream)) good = false;
    if (!good)
        complain("cannot write the temporary file %s: %s; TMPDIR names another folder", path,
                 strerror(errno));
    return good ? path : NULL;
}

/* Joins the objects to one. */
static int merge(Driver *driver, const char *const *parts, int count, const char *object) {
    Command command = command_cc(&driver->tools);
    for (int i = 0; i < driver->options->cc.items.count; i++)
        if (begins(driver->options->cc.items.at[i].text, "-m"))
            add_item(&command, &driver->options->cc.items.at[i]);
    command_add(&command, "-r", "-nostdlib", "-o", object, NULL);
    for (int i = 0; i < count; i++) command_add(&command, parts[i], NULL);
    return command_run(&driver->tools, &command) ? 1 : 0;
}

/* The exit status after the C compiler's for the emitted files: a failure of the user's source, or
 * for want of room, is the user's, any other a bug of ours. */
static int judge(const Toolchain *tools, const EmittedFiles *files, const int *status) {
    int worst = 0;
    for (int i = 0; i < files->count; i++) {
        if (status[i] && temporary_full(tools)) return 1;
        if (status[i] && !is_main_file(&files->at[i]) && status[i] < 128 && !worst) {
            complain("internal error: the C compiler refuses the emitted file %s",
                     files->at[i].name);
            worst = 2;
        }
    }
    for (int i = 0; i < files->count; i++)
        worst = status[i] && (is_main_file(&files->at[i]) || !worst) ? 1 : worst;
    return worst;
}

/* The emitted files of a unit, whose object keeps what other files of the program need unless it is
 * linked at once. False after errors. */
static bool emit_object(Driver *driver, EmittedFiles *files, const Unit *unit) {
    const char *section =
        driver->options->compile_only ? section_keep(driver, unit, unit->file) : NULL;
    if (driver->options->compile_only && !section) return false;
    emit_with(driver, files, unit, unit->file, section);
    return !diag_errors(driver->diag);
}

int part_compile(Driver *driver, const Unit *unit, const char *object) {
    EmittedFiles files = {0};
    const char *path =
        emit_object(driver, &files, unit) ? write_emitted(driver, &files.at[0]) : NULL;
    if (!path) return 1;
    Command command = compile_command(driver);
    add_places(driver, &files.at[0], &command);
    command_add(&command, "-fno-lto", "-c", path, "-o", object, NULL);
    return command_run(&driver->tools, &command) ? 1 : 0;
}

int unit_compile(Driver *driver, const Unit *unit, const char *object) {
    EmittedFiles files = {0};
    if (!emit_object(driver, &files, unit)) return 1;
    Arena *arena = driver->arena;
    Command *commands = arena_array(arena, Command, files.count);
    const char **parts = arena_array(arena, const char *, files.count);
    int *status = arena_array(arena, int, files.count), count = 0;
    EmittedFiles compiled = {0};
    for (int i = 0; i < files.count; i++) {
        const char *path = write_emitted(driver, &files.at[i]);
        if (!path) return 1;
        parts[count] = temporary(&driver->tools, name_with(arena, path, ".o"));
        commands[count] = emitted_command(driver, &files.at[i], path, parts[count]);
        array_push(arena, &compiled, files.at[i]);
        count++;
    }
    command_run_all(&driver->tools, commands, count, status);
    int result = judge(&driver->tools, &compiled, status);
    return result ? result : merge(driver, parts, count, object);
}

int plain_compile(Driver *driver, const char *source, const char *object) {
    Command command = compile_command(driver);
    command_add(&command, "-c", "-o", object, NULL);
    add_source_word(&command, source);
    return command_run(&driver->tools, &command) ? 1 : 0;
}

/* ---- dependency files ---- */

/* The value of -MF FILE or -MFFILE among the options; NULL when the option is not there. */
static const char *depend_value(const Options *options, const char *option) {
    const char *value = NULL;
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        if (item->kind == ITEM_DEPEND && begins(item->text, option))
            value = item->value ? item->value : item->text + strlen(option);
    }
    return value;
}

/* A file's name as make reads it: blanks, # and $ marked as the C compiler does it. */
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

/* Adds a file that is read, if it is one, to a dependency file: who edits it wants a new
 * program. */
static bool append_dependency(Arena *arena, const char *read, const char *file,
                              const char *target) {
    struct stat found;
    if (!read || stat(read, &found) || !S_ISREG(found.st_mode)) return true;
    FILE *stream = fopen(file, "a");
    return stream && fprintf(stream, "%s: %s\n", target, make_name(arena, read)) > 0 &&
           !fclose(stream);
}

/* Adds the files of the strategies, the cluster and the intermediate representation. */
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
