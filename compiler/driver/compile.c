/* Runs the steps of a compilation, and the C compiler on each emitted file (flags: emit/backend.c).
 * passes/pass_manager.h has the order of the passes. */
#include "driver/compile.h"

#include "driver/object_sections.h"

#include "cluster/cluster.h"
#include "ir/text/text.h"
#include "migration/migration.h"
#include "planner/report/report.h"
#include "support/tool.h"

#include <hetu/version.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- from a source to a unit ---- */

static void print_modules(const Unit *unit) {
    Text text = {.arena = unit->arena};
    for (int i = 0; i < unit->modules.count; i++) ir_print(&text, unit->modules.at[i]);
    fputs(text_bytes(&text), stdout);
}

static bool same(const char *option, const char *word) { return option && !strcmp(option, word); }

/* Checks that all printed text was written; false after an error. */
static bool check_printed(const Driver *driver) {
    if (!fflush(stdout) && !ferror(stdout)) return true;
    diag_error(driver->diag, (Position){0}, "cannot write to standard output: %s", strerror(errno));
    return false;
}

CompileOptions compile_options(const Options *options) {
    return (CompileOptions){.remark_comm = options->remarks[REMARK_COMM],
                            .warn_implicit_reshard = options->passes.warn_implicit_reshard,
                            .bucket = options->passes.bucket,
                            .no_views = options->passes.no_views,
                            .no_chunks = options->passes.no_chunks,
                            .chunk = options->passes.chunk};
}

/* Runs the passes that the options ask for. Returns false after errors. */
static bool run_passes(const Driver *driver, Unit *unit) {
    const Options *options = driver->options;
    bool printed = same(options->print_after, "frontend");
    if (printed || same(options->print_after, "all")) print_modules(unit);
    PassOptions passes = {.compile = compile_options(options),
                          .print_after = printed ? NULL : options->print_after,
                          .stop_after = options->stop_after,
                          .out = stdout,
                          .verify = true,
                          .no_fuse = options->passes.no_fuse,
                          .digest = unit->prepares};
    bool good = same(options->stop_after, "frontend") || passes_run(unit, &passes);
    return (!options->print_after || check_printed(driver)) && good;
}

Target compile_target(const Options *options, const Cluster *cluster) {
    return (Target){.cluster_file = options->cluster,
                    .cluster = cluster,
                    .overlap = options->backend->overlaps && !options->passes.no_overlap};
}

static void set_target(const Options *options, const Unit *unit, const Cluster *cluster) {
    for (int i = 0; i < unit->modules.count; i++)
        unit->modules.at[i]->devices->target = compile_target(options, cluster);
}

/* Marks modules whose strategies the running program has (--known). Returns false on errors. */
static bool set_known(const Options *options, Unit *unit) {
    unit->known = options->known;
    for (int i = 0; i < unit->modules.count; i++)
        for (int s = 0; s < options->known && s < unit->strategies.count; s++)
            unit->links.at[i].layouts_only |=
                unit->modules.at[i]->strategy == unit->strategies.at[s];
    if (options->known && options->known >= unit->strategies.count)
        diag_error(unit->diag, (Position){0}, "--known=%d leaves none of the %d strategies to make",
                   options->known, unit->strategies.count);
    return !options->known || options->known < unit->strategies.count;
}

/* Sets unit->migrations, between the unit's strategies; reports them if a -R option asks for it. */
static void plan_migrations(const Options *options, Unit *unit) {
    unit->migrations = migrations_plan(unit->arena, unit);
    if (options->remarks[REMARK_SWITCH]) migrations_report(unit->migrations, unit);
}

/* Prints the tables that -R asks for; the modules have gone through all passes. */
static void print_tables(const Options *options, const Unit *unit) {
    static void (*const tables[REMARKS])(Text *out,
                                         Module *module) = {[REMARK_MEMORY] = table_memory,
                                                            [REMARK_SHARDING] = table_sharding,
                                                            [REMARK_COMM] = table_comm};
    Text text = {.arena = unit->arena};
    for (int m = 0; m < unit->modules.count; m++)
        for (int r = 0; r < REMARKS && !unit->links.at[m].layouts_only; r++)
            if (options->remarks[r] && tables[r]) tables[r](&text, unit->modules.at[m]);
    for (int m = 0; options->remarks[REMARK_MEMORY] && m < unit->modules.count; m++)
        if (!unit->links.at[m].layouts_only &&
            (!m || unit->modules.at[m]->strategy != unit->modules.at[m - 1]->strategy))
            table_session(&text, unit, unit->modules.at[m]->strategy);
    if (*text_bytes(&text)) diag_text(unit->diag, text_bytes(&text));
}

/* Returns whether hetucc links nothing, so that models may wait for functions of other files. */
static bool may_wait(const Driver *driver) {
    return driver->options->compile_only || driver->options->cc.hand_over;
}

/* Runs the frontend on a source, and other sources that its models need. Returns NULL on errors. */
static Unit *read_linked(Driver *driver, const char *source, const Cluster *cluster) {
    FrontendOptions options = frontend_options(driver, source, cluster);
    options.waits = true;
    Unit *unit = frontend_read(driver->arena, driver->diag, &options);
    if (!unit || !unit->absent.count || may_wait(driver)) return unit;
    options.waits = false;
    return sections_give(driver, &options) ? frontend_read(driver->arena, driver->diag, &options)
                                           : NULL;
}

/* Returns whether these options make a program that HETU_BALANCE=1 can balance, though it does not
 * call ht_balance: for CPUs, and from its sources. */
static bool makes_balanced(const Options *options) {
    return !options->backend->built_by_make && options->emit == EMIT_EXE && !options->resume;
}

Unit *unit_read(Driver *driver, const char *source) {
    const Options *options = driver->options;
    const Cluster *cluster = options->cluster
                                 ? (options->strict ? cluster_read_strict : cluster_read)(
                                       driver->arena, driver->diag, options->cluster)
                                 : NULL;
    Unit *unit = read_linked(driver, source, cluster);
    if (unit && !makes_balanced(options)) unit->prepares = unit->asks;
    if (unit) set_target(options, unit, cluster);
    bool good =
        unit && !diag_errors(driver->diag) && (!options->resume || unit_resume(driver, unit));
    good = good && set_known(options, unit) && run_passes(driver, unit);
    if (good && !options->stop_after) plan_migrations(options, unit);
    if (good && !options->stop_after) print_tables(options, unit);
    for (int i = 0; good && i < unit->modules.count; i++)
        if (!unit->links.at[i].layouts_only)
            array_push(driver->arena, &driver->modules, unit->modules.at[i]);
    if (good) driver->prepares |= unit->prepares;
    return good ? unit : NULL;
}

/* ---- outputs that would replace inputs ---- */

static bool is_same_file(const struct stat *file, const char *path) {
    struct stat other;
    return !stat(path, &other) && file->st_dev == other.st_dev && file->st_ino == other.st_ino;
}

void check_output(const Options *options, const char *path) {
    struct stat file;
    bool read = false;
    if (stat(path, &file) || !S_ISREG(file.st_mode)) return;
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
    if (read) tool_misused("the output %s is an input", path);
}

/* ---- compiling ---- */

/* Returns the 32-bit FNV-1a hash of a word. */
static unsigned hash_word(const char *word) {
    unsigned hash = 2166136261u;
    for (; *word; word++) hash = (hash ^ (unsigned char)*word) * 16777619u;
    return hash;
}

/* Returns the prefix of a unit's symbols: the source's name. A part adds a hash of its object's
 * path. An unusual or ambiguous name (a/model.c, b/model.c) adds a hash of the source's path. */
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

/* Returns "hetucc 0.1.0 -O1 -DWIDTH=64": version and options that change a program, no folders. */
static const char *maker_text(const Driver *driver) {
    Text text = {.arena = driver->arena};
    text_string(&text, "hetucc " HETU_VERSION);
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const Item *item = &driver->options->cc.items.at[i];
        if (begins(item->text, "-fdiagnostics-")) continue;
        if (item_is_code(item) || (item->kind == ITEM_FLAG && strchr("DUO", item->text[1])))
            text_print(&text, " %s%s%s", item->text, item->value ? " " : "",
                       item->value ? item->value : "");
    }
    return text_bytes(&text);
}

/* ---- the command that ht_prepare runs ---- */

/* Adds the program's files to *recipe: the models' source or object, then others if needed. */
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

/* Returns whether a path is useless once hetucc has ended: a pipe, or a descriptor of hetucc. */
static bool is_passing(const char *path) {
    struct stat found;
    return begins(path, "/dev/fd/") || begins(path, "/dev/stdin") ||
           begins(path, "/proc/self/fd/") || (!stat(path, &found) && S_ISFIFO(found.st_mode));
}

/* Returns an option whose file is gone when the program runs; NULL: there is no such option. */
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

/* Returns why hetucc cannot make further strategies while the program runs; NULL: it can. */
static const char *reason_against_recipe(Arena *arena, const Options *options, const Unit *unit) {
    const char *passing = option_of_passing(arena, options);
    if (options->backend->built_by_make)
        return "a program for GPUs has no strategies made while it runs; give hetucc "
               "--strategy=FILE for each";
    if (options->cc.from_input >= 0 &&
        !strcmp(unit->file, options->cc.items.at[options->cc.from_input].text))
        return "the program was compiled from standard input, which is gone; give hetucc a file";
    if (options->resume)
        return "the program was compiled with --resume, and another strategy cannot be made of "
               "that text; compile it from its sources alone";
    if (passing)
        return arena_format(arena,
                            "the program was compiled with %s, a pipe or standard input, which is "
                            "gone; give hetucc a file",
                            passing);
    return NULL;
}

/* Returns the words for ht_register_source (<hetu/image.h>): a folder, $CC, and the command by
 * which the running program compiles further strategies; or one word, the reason why it cannot. */
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

/* Returns the texts of all the user's files of a unit, one after another. */
static const char *unit_text(const Unit *unit) {
    Text text = {.arena = unit->arena};
    for (int i = 0; i < unit->files.count; i++) text_string(&text, unit->files.at[i].text);
    return text_bytes(&text);
}

static void emit_with(Driver *driver, EmittedFiles *files, const Unit *unit, const char *include,
                      const char *section) {
    const char *name = name_with(driver->arena, unit->file, "");
    EmitOptions options = {
        .base = driver->options->backend->built_by_make ? name_plain(driver->arena, name) : name,
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

/* Returns whether an emitted file includes the user's source. */
static bool is_main_file(const EmittedFile *file) { return file->source; }

/* Adds the words of a text such as "-O1 -fno-math-errno" to a command. */
static void add_words(Command *command, const char *words) {
    for (words = words ? words : ""; *(words += strspn(words, " "));) {
        size_t length = strcspn(words, " ");
        command_add(command, arena_substring(command->arena, words, length), NULL);
        words += length;
    }
}

/* Returns the command for the file that includes the user's source. A part that waited is
 * preprocessed already: it gets no preprocessor options. */
static Command main_command(Driver *driver) {
    Command command = command_cc(&driver->tools);
    if (!driver->part) return compile_command(driver);
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const Item *item = &driver->options->cc.items.at[i];
        if (item->kind == ITEM_FLAG && (!item_is_source(item) || begins(item->text, "-std=")))
            command_add_item(&command, item);
    }
    command_add(&command, "-Wno-unknown-pragmas", NULL);
    return command;
}

/* Adds options that find an emitted file's headers and hide the temporary folder's name from -g. */
static void add_places(Driver *driver, const EmittedFile *file, Command *command) {
    if (!driver->options->save_temps)
        command_add(command,
                    arena_format(driver->arena, "-ffile-prefix-map=%s/=", driver->tools.folder),
                    NULL);
    command_add(command, "-iquote", ".", NULL);
    if (is_main_file(file) && strchr(file->source, '"'))
        command_add(command, "-idirafter", ".", NULL);
}

bool is_unoptimised(const Options *options) {
    bool unoptimised = false;
    for (int i = 0; i < options->cc.items.count; i++)
        if (options->cc.items.at[i].kind == ITEM_FLAG && begins(options->cc.items.at[i].text, "-O"))
            unoptimised = !strcmp(options->cc.items.at[i].text, "-O0");
    return unoptimised;
}

/* Returns the command for an emitted file. The file that includes the user's source gets all user's
 * options; any other file gets only the options about generated code. */
static Command emitted_command(Driver *driver, const EmittedFile *file, const char *path,
                               const char *object) {
    const Options *options = driver->options;
    Command command = is_main_file(file) ? main_command(driver) : command_cc(&driver->tools);
    command.quiet = !is_main_file(file);
    for (int i = 0; i < options->cc.items.count && !is_main_file(file); i++)
        if (item_is_for_kernels(&options->cc.items.at[i]))
            command_add_item(&command, &options->cc.items.at[i]);
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

/* Writes an emitted file to the working folder (--save-temps) or to the temporary folder; with -###
 * writes no temporary file. Returns the path; NULL after a message. */
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

/* Links the objects into one relocatable object. Returns the exit status. */
static int merge(Driver *driver, const char *const *parts, int count, const char *object) {
    Command command = command_cc(&driver->tools);
    for (int i = 0; i < driver->options->cc.items.count; i++)
        if (begins(driver->options->cc.items.at[i].text, "-m"))
            command_add_item(&command, &driver->options->cc.items.at[i]);
    command_add(&command, "-r", "-nostdlib", "-o", object, NULL);
    for (int i = 0; i < count; i++) command_add(&command, parts[i], NULL);
    return command_run(&driver->tools, &command) ? 1 : 0;
}

/* Returns 0; 1: the source, a full disk or a signal made a command fail; 2: a bug, reported. */
static int exit_status_of(const Toolchain *tools, const EmittedFiles *files, const int *status) {
    int worst = 0;
    for (int i = 0; i < files->count; i++)
        if (status[i] && (is_main_file(&files->at[i]) || temporary_full(tools))) return 1;
    for (int i = 0; i < files->count; i++) {
        if (status[i] && !is_main_file(&files->at[i]) && status[i] < 128 && !worst) {
            complain("internal error: the C compiler refuses the emitted file %s",
                     files->at[i].name);
            worst = 2;
        }
    }
    for (int i = 0; i < files->count; i++) worst = status[i] && !worst ? 1 : worst;
    return worst;
}

/* Appends a unit's emitted files; with -c, they keep what linking needs. False on errors. */
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
    int result = exit_status_of(&driver->tools, &compiled, status);
    return result ? result : merge(driver, parts, count, object);
}

int plain_compile(Driver *driver, const char *source, const char *object) {
    Command command = compile_command(driver);
    command_add(&command, "-c", "-o", object, NULL);
    add_source_word(&command, source);
    return command_run(&driver->tools, &command) ? 1 : 0;
}
