/* The command hetucc: decides what the options ask for, and runs the steps of compile.h.
 *     gpt.c, layers.o  ─▶ make_waiting: objects for models that waited
 *                      ─▶ compile_source: an object for each source
 *                      ─▶ whole_command: the C compiler links them with libhetu */
#include "driver/compile.h"
#include "driver/folder.h"
#include "driver/object_sections.h"
#include "ir/text/text.h"

#include "cost/cost.h"
#include "passes/pass_manager.h"
#include "planner/report/report.h"
#include "support/reading.h"
#include "support/tool.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- commands of the C compiler ---- */

/* Adds libhetu and its run path; the linker uses libhetu only in programs that need it. */
static void add_libraries(Driver *driver, Command *command) {
    if (options_have(driver->options, "-r") || options_have(driver->options, "-nostdlib")) return;
    const char *folder = arena_format(driver->arena, "%s/lib", driver->tools.prefix);
    command_add(command, arena_format(driver->arena, "-L%s", folder), "-Xlinker", "-rpath",
                "-Xlinker", folder, "-Wl,--push-state,--as-needed", "-lhetu", "-fopenmp", "-lm",
                "-Wl,--pop-state", NULL);
}

/* Returns the object that replaces an input whose models waited; NULL: the input stays. */
static const char *made_of(const Item *item, const PortionList *waiting, const char *const *made) {
    for (int i = 0; i < waiting->count; i++)
        if (item->kind == ITEM_INPUT && !waiting->at[i]->member &&
            !strcmp(item->text, waiting->at[i]->object))
            return made[i];
    return NULL;
}

static const PortionList none_waits;

/* Returns the C compiler's command for the whole command line. `objects` has the object of each
 * source, or NULL for the source itself; `made` has the object of each part that waited. Objects of
 * archive members come first, so that the linker does not search the archive for these members. */
static Command whole_command(Driver *driver, const char *const *objects, const PortionList *waiting,
                             const char *const *made) {
    const Options *options = driver->options;
    Command command = command_cc(&driver->tools);
    for (int i = 0; i < waiting->count; i++)
        if (waiting->at[i]->member) command_add(&command, made[i], NULL);
    for (int i = 0, source = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        const char *object =
            item->kind == ITEM_SOURCE ? objects[source++] : made_of(item, waiting, made);
        if (item->kind == ITEM_SOURCE && !object) add_source_word(&command, item->text);
        else command_add(&command, object ? object : item->text, NULL);
        if (item->value) command_add(&command, item->value, NULL);
    }
    if (options->compile_only) command_add(&command, "-c", NULL);
    add_headers(driver, &command);
    return command;
}

/* Replaces this process by the C compiler, with the whole command line. */
_Noreturn static void hand_over(Driver *driver) {
    const Options *options = driver->options;
    Command command =
        whole_command(driver, arena_array(driver->arena, const char *, options->cc.source_count),
                      &none_waits, NULL);
    if (options->output) command_add(&command, "-o", options->output, NULL);
    if (!options->cc.hand_over && !options->compile_only && options->cc.input_count)
        add_libraries(driver, &command);
    if (driver->prepares) command_add(&command, "-rdynamic", NULL);
    command_become(&driver->tools, &command);
}

/* ---- checks of the command line ---- */

static void check_pass_name(Arena *arena, const char *option, const char *name, bool all) {
    Array(const char *) names = {0};
    array_push(arena, &names, "frontend");
    for (const char *const *pass = pass_names(); *pass; pass++) array_push(arena, &names, *pass);
    if (all) array_push(arena, &names, "all");
    for (int i = 0; i < names.count; i++)
        if (!name || !strcmp(name, names.at[i])) return;
    const char *list = names.at[0], *closest = diag_closest(name, names.at, names.count);
    for (int i = 1; i < names.count; i++) list = arena_format(arena, "%s, %s", list, names.at[i]);
    tool_misused("%s names no pass: \"%s\"%s%s%s; the passes are %s", option, name,
                 closest ? "; did you mean \"" : "", closest ? closest : "", closest ? "\"?" : "",
                 list);
}

/* Returns why an input can be neither compiled nor linked; NULL: it can. Inputs are read several
 * times, so a pipe is refused; /dev/null is an empty input. */
static const char *input_wrong(Arena *arena, const char *path) {
    struct stat found;
    if (stat(path, &found)) return strerror(errno);
    const char *kind = reading_is_null(&found) ? NULL : reading_kind(found.st_mode);
    return kind && S_ISFIFO(found.st_mode)
               ? arena_format(arena,
                              "%s; the C compiler reads it once more (- with -x c is standard "
                              "input)",
                              kind)
               : kind;
}

/* Checks that every input can be read, except -include files that -I may find; false if not. */
static bool check_inputs(Arena *arena, const Options *options) {
    bool good = true;
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        bool flag = item->kind == ITEM_FLAG || item->kind == ITEM_DEPEND || item->text[0] == '-',
             header = item->value &&
                      (!strcmp(item->text, "-include") || !strcmp(item->text, "-imacros"));
        const char *path = header ? item->value : item->text,
                   *wrong = (flag && !header) || (header && access(path, F_OK))
                                ? NULL
                                : input_wrong(arena, path);
        if (wrong) complain("cannot read %s: %s", path, wrong);
        good &= !wrong;
    }
    return good;
}

/* Refuses what the backend cannot do: single objects when it makes whole folders, and sources in
 * another backend's language; and strategy files without --strategy. */
static void check_backend(const Driver *driver) {
    const Options *options = driver->options;
    if (driver->options->backend->built_by_make && options->compile_only)
        tool_misused("--backend=%s makes a program of all sources in one go, and no objects: leave "
                     "out -c, or take --emit=c",
                     driver->options->backend->name);
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        const char *dot = item->kind == ITEM_INPUT ? strrchr(item->text, '.') : NULL;
        if (dot && !strcmp(dot, ".strategy"))
            tool_misused("%s is a strategy file, and no input: --strategy=%s", item->text,
                         item->text);
        const Backend *needed =
            item->kind == ITEM_DEVICE ? backend_of_file(item->text) : driver->options->backend;
        if (needed != driver->options->backend)
            tool_misused("%s is %s; it needs --backend=%s", item->text, needed->language,
                         needed->name);
    }
}

/* Refuses a dependency file (-MF FILE or -MFFILE) that is also an input. */
static void check_dependencies(const Options *options) {
    for (int i = 0; i < options->cc.items.count; i++) {
        const Item *item = &options->cc.items.at[i];
        if (item->kind == ITEM_DEPEND && !strncmp(item->text, "-MF", 3))
            check_output(options, item->value ? item->value : item->text + 3);
    }
}

/* Returns the sources in the order of the command line. */
static const char **sources_of(const Driver *driver) {
    const Options *options = driver->options;
    const char **sources = arena_array(driver->arena, const char *, options->cc.source_count + 1);
    for (int i = 0, count = 0; i < options->cc.items.count; i++)
        if (options->cc.items.at[i].kind == ITEM_SOURCE)
            sources[count++] = options->cc.items.at[i].text;
    return sources;
}

/* ---- --emit=ir, --emit=c and --emit=cost, and --stop-after ---- */

static bool write_text(Driver *driver, Text *text) {
    if (driver->options->output && strcmp(driver->options->output, "-")) {
        check_output(driver->options, driver->options->output);
        return output_text(&driver->tools, driver->options->output, text_bytes(text));
    }
    if (fputs(text_bytes(text), stdout) >= 0 && !fflush(stdout)) return true;
    complain("cannot write to standard output: %s", strerror(errno));
    return false;
}

typedef Array(Unit *) Units;

/* Reads every source that may have models; appends units that have some. False after errors. */
static bool read_units(Driver *driver, Units *units) {
    const char **sources = sources_of(driver);
    bool good = true;
    for (int i = 0; i < driver->options->cc.source_count; i++) {
        Unit *unit = !driver->options->backend->built_by_make || driver->tools.dry_run ||
                             source_is_ours(driver, sources[i])
                         ? unit_read(driver, sources[i])
                         : NULL;
        good &= unit || !diag_errors(driver->diag);
        if (unit && unit->modules.count) array_push(driver->arena, units, unit);
    }
    return good;
}

static bool translate_ir(Driver *driver, const Units *units) {
    Text text = {.arena = driver->arena};
    for (int i = 0; i < units->count; i++)
        for (int m = 0; m < units->at[i]->modules.count; m++)
            ir_print(&text, units->at[i]->modules.at[m]);
    return write_text(driver, &text);
}

/* Writes costs as JSON for --emit=cost-json or an output *.json, else as a table; false: failed. */
static bool translate_cost(Driver *driver, const Units *units) {
    const char *output = driver->options->output, *dot = output ? strrchr(output, '.') : NULL;
    Text text = {.arena = driver->arena};
    Array(CostReport) reports = {0};
    for (int i = 0; i < units->count; i++)
        for (int m = 0; m < units->at[i]->modules.count; m++)
            array_push(driver->arena, &reports,
                       cost_report(driver->arena, units->at[i]->modules.at[m]));
    bool json = driver->options->emit == EMIT_COST_JSON || (dot && !strcmp(dot, ".json"));
    (json ? cost_json : cost_table)(&text, reports.at, reports.count);
    return write_text(driver, &text);
}

static bool translate_c(Driver *driver, const Units *units) {
    EmittedFiles files = {0};
    for (int i = 0; i < units->count; i++)
        unit_emit(driver, &files, units->at[i], units->at[i]->file);
    const char *path = driver->options->output ? driver->options->output : ".";
    return !diag_errors(driver->diag) && folder_write(folder_of_emitted(driver, &files), path);
}

/* Returns the number of ranks that the units need. */
static int ranks_of(const Units *units) {
    int ranks = 1;
    for (int i = 0; i < units->count; i++) {
        int mine = unit_device_count(units->at[i]);
        ranks = mine > ranks ? mine : ranks;
    }
    return ranks;
}

/* Makes the folder that builds `program`; NULL after errors. */
static Folder *folder_of_units(Driver *driver, const Units *units, const char *program) {
    EmittedFiles files = {0};
    UserFiles *user = user_files_find(driver);
    for (int i = 0; user && i < units->count; i++)
        unit_emit(driver, &files, units->at[i], user_file_name(user, units->at[i]->file));
    return user && !diag_errors(driver->diag)
               ? folder_create(driver, user, &files, program, ranks_of(units))
               : NULL;
}

static bool translate_folder(Driver *driver, const Units *units) {
    const char *path = driver->options->output;
    if (!units->count) {
        complain("none of the sources trains or runs a model");
        return false;
    }
    Folder *folder =
        folder_of_units(driver, units, name_with(driver->arena, units->at[0]->file, ""));
    return folder && folder_write(folder, path);
}

/* Checks for --emit and --stop-after that there are sources and no waiting models; false if not. */
static bool check_sources(Driver *driver) {
    const Options *options = driver->options;
    if (options->backend->built_by_make && options->emit == EMIT_C && !options->output)
        tool_misused("--emit=c with --backend=%s makes a folder, which -o must name",
                     options->backend->name);
    const PortionList *waiting = driver_waiting(driver);
    if (waiting && waiting->count)
        complain("%s has models, and what --emit and --stop-after write is made of sources: give "
                 "it %s instead",
                 waiting->at[0]->object, waiting->at[0]->front.file);
    else if (waiting && !options->cc.source_count)
        tool_misused("--emit and --stop-after need sources, and there are none");
    return waiting && !waiting->count;
}

/* Reads every source, and writes the output of --emit if all are good. Returns the exit status. */
static int translate(Driver *driver) {
    Units units = {0};
    if (!check_sources(driver)) return 1;
    bool good = read_units(driver, &units);
    if (good && driver->options->emit == EMIT_IR) good = translate_ir(driver, &units);
    else if (good && driver->options->emit >= EMIT_COST && !driver->options->stop_after)
        good = translate_cost(driver, &units);
    else if (good && driver->options->emit == EMIT_C && !driver->options->stop_after)
        good = driver->options->output ? translate_folder(driver, &units)
                                       : translate_c(driver, &units);
    return good ? 0 : 1;
}

/* ---- --report ---- */

/* Refuses --report when the C compiler does all the work. False: refused. */
static bool check_no_report(const Options *options) {
    if (options->report)
        complain("--report=%s has nothing to show: hetucc compiles none of what is given",
                 options->report);
    return !options->report;
}

static void check_report(const Options *options) {
    if (options->stop_after)
        tool_misused("--report shows what has come through all passes: leave out --stop-after");
    if (options->output && !strcmp(options->output, options->report))
        tool_misused("-o and --report name one file, %s", options->report);
    check_output(options, options->report);
}

/* Writes the report of all modules to `written`, then renames that file to the path of --report. */
static bool write_report(Driver *driver, const char *written) {
    const char *path = driver->options->report;
    Text text = {.arena = driver->arena};
    (strcmp(strrchr(path, '.'), ".json") ? report_page : report_json)(&text, driver->modules.at,
                                                                      driver->modules.count);
    return output_fill(&driver->tools, written, path, text_bytes(&text), text.length) &&
           output_finish(&driver->tools, written, path, 0666);
}

/* ---- programs and objects ---- */

/* Compiles a source to `object`, or sets *plain if the C compiler alone can. Returns the status. */
static int compile_source(Driver *driver, const char *source, const char *object, bool *plain) {
    *plain = !source_is_ours(driver, source);
    Unit *unit = *plain ? NULL : unit_read(driver, source);
    if (!*plain && !unit) return 1;
    *plain =
        !unit || (!unit->modules.count && !driver->options->compile_only && !unit->bodiless.count);
    return *plain ? 0 : (unit->modules.count ? unit_compile : part_compile)(driver, unit, object);
}

/* Compiles each source to an object (-c). Returns the exit status. */
static int compile_each(Driver *driver, const char *const *sources) {
    const Options *options = driver->options;
    int worst = 0;
    for (int i = 0; i < options->cc.source_count; i++) {
        const char *object =
            options->output ? options->output : name_with(driver->arena, sources[i], ".o");
        check_output(options, object);
        const char *written = output_begin(&driver->tools, object);
        bool plain;
        const char *made = written ? output_private(&driver->tools, written) : NULL;
        int status = written ? compile_source(driver, sources[i], made, &plain) : 1;
        if (!status && plain) status = plain_compile(driver, sources[i], made);
        if (!status && !output_take(&driver->tools, made, written, object)) status = 1;
        if (!status) status = write_dependencies(driver, sources[i], object);
        if (!status && !output_finish(&driver->tools, written, object, 0666)) status = 1;
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* Writes the program as a folder and runs make in it. Returns the exit status. */
static int make_folder_program(Driver *driver, const char *const *sources) {
    const Options *options = driver->options;
    const char *program = options->output ? options->output : "a.out";
    check_output(options, program);
    const char *written = output_begin(&driver->tools, program);
    Units units = {0};
    bool good = read_units(driver, &units) && written;
    for (int i = 0; good && i < options->cc.source_count; i++)
        good = !write_dependencies(driver, sources[i], program);
    Folder *folder =
        good ? folder_of_units(driver, &units, name_with(driver->arena, program, "")) : NULL;
    int status = folder ? folder_build(folder, written, program) : 1;
    return status ? status : output_finish(&driver->tools, written, program, 0777) ? 0 : 1;
}

/* Compiles each part that waited to a temporary object, made[i]. Returns the exit status. */
static int make_waiting(Driver *driver, const PortionList *waiting, const char **made) {
    int worst = 0;
    for (int i = 0; i < waiting->count; i++) {
        made[i] = temporary(&driver->tools, arena_format(driver->arena, "waited%d.o", i));
        int status = section_make(driver, waiting->at[i], made[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* Compiles and links a program. Returns the exit status. */
static int make_program(Driver *driver, const char *const *sources, const PortionList *waiting) {
    const Options *options = driver->options;
    const char *program = options->output ? options->output : "a.out";
    check_output(options, program);
    const char *written = output_begin(&driver->tools, program);
    const char **objects = arena_array(driver->arena, const char *, options->cc.source_count);
    int worst = written ? 0 : 1;
    // Compile the sources, then the parts that waited, then link.
    for (int i = 0; i < options->cc.source_count && written; i++) {
        bool plain;
        const char *object =
            temporary(&driver->tools, arena_format(driver->arena, "source%d.o", i));
        int status = compile_source(driver, sources[i], object, &plain);
        if (!status && !plain) status = write_dependencies(driver, sources[i], program);
        objects[i] = plain ? NULL : object;
        worst = status > worst ? status : worst;
    }
    const char **made = arena_array(driver->arena, const char *, waiting->count + 1);
    if (!worst) worst = make_waiting(driver, waiting, made);
    if (worst) return worst;
    Command command = whole_command(driver, objects, waiting, made);
    const char *linked = output_private(&driver->tools, written);
    command_add(&command, "-o", linked, NULL);
    add_libraries(driver, &command);
    if (driver->prepares && !options_have(options, "-r")) command_add(&command, "-rdynamic", NULL);
    unsigned mode = options_have(options, "-r") ? 0666 : 0777;
    return command_run(&driver->tools, &command) ||
                   !output_take(&driver->tools, linked, written, program) ||
                   !output_finish(&driver->tools, written, program, mode)
               ? 1
               : 0;
}

/* ---- --known ---- */

static void check_known(const Options *options) {
    if (!options->cc.input_count || options->backend->built_by_make || options->compile_only ||
        options->emit != EMIT_EXE || !options->output)
        tool_misused("--known makes the object of one source for a program on CPUs: it takes -o, "
                     "and neither -c nor --emit");
    check_output(options, options->output);
}

/* Compiles `source`, or if NULL the first waiting part, to `object`. Returns the exit status. */
static int make_first(Driver *driver, const char *source, const char *object) {
    const PortionList *waiting = source ? &none_waits : driver_waiting(driver);
    Unit *unit = source ? unit_read(driver, source) : NULL;
    if (source || !waiting) return unit ? unit_compile(driver, unit, object) : 1;
    if (!waiting->count) complain("--known: there is no model whose strategies could be made");
    return waiting->count ? section_make(driver, waiting->at[0], object) : 1;
}

/* Makes the shared object of strategies that a running program loads. Returns the exit status. */
static int make_arriving(Driver *driver, const char *source) {
    const char *output = driver->options->output, *object = temporary(&driver->tools, "arriving.o");
    check_known(driver->options);
    const char *written = output_begin(&driver->tools, output);
    int status = written ? make_first(driver, source, object) : 1;
    if (status) return status;
    Command command = command_cc(&driver->tools);
    const char *linked = output_private(&driver->tools, written);
    command_add(&command, "-shared", "-Wl,-Bsymbolic", "-fopenmp", object, "-lm", "-o", linked,
                NULL);
    return command_run(&driver->tools, &command) ||
                   !output_take(&driver->tools, linked, written, output) ||
                   !output_finish(&driver->tools, written, output, 0777)
               ? 1
               : 0;
}

/* Returns whether the backend can use waiting models; if not (it makes folders), reports one. */
static bool check_waiting(const Driver *driver, const PortionList *waiting) {
    const Backend *backend = driver->options->backend;
    if (backend->built_by_make && waiting->count)
        complain("%s has models, and --backend=%s makes programs of sources: give it %s instead",
                 waiting->at[0]->object, backend->name, waiting->at[0]->front.file);
    return !backend->built_by_make || !waiting->count;
}

static int build(Driver *driver) {
    const char **sources = sources_of(driver);
    bool ours = false;
    if (driver->options->known) return make_arriving(driver, sources[0]);
    for (int i = 0; i < driver->options->cc.source_count; i++)
        ours |= source_is_ours(driver, sources[i]);
    const PortionList *waiting =
        driver->options->compile_only ? &none_waits : driver_waiting(driver);
    if (!waiting || !check_waiting(driver, waiting)) return 1;
    ours |= waiting->count > 0;
    driver->prepares = !driver->options->compile_only && sections_prepare(driver);
    if (!ours && !check_no_report(driver->options)) return 1;
    if (!ours && driver->options->cc.from_input < 0) hand_over(driver);
    if (driver->options->backend->built_by_make) return make_folder_program(driver, sources);
    return driver->options->compile_only ? compile_each(driver, sources)
                                         : make_program(driver, sources, waiting);
}

/* Makes the output that the options ask for. Returns the exit status. */
static int make(Driver *driver) {
    return driver->options->emit != EMIT_EXE || driver->options->stop_after ? translate(driver)
                                                                            : build(driver);
}

static int make_with_report(Driver *driver) {
    const char *path = driver->options->report;
    check_report(driver->options);
    const char *written = output_begin(&driver->tools, path);
    int status = written ? make(driver) : 1;
    return status ? status : write_report(driver, written) ? 0 : 1;
}

/* Copies standard input to a temporary file, which replaces its item; with -c, the output is
 * stdin.o unless -o names another. Returns false after a message. */
static bool read_input(Driver *driver, Options *options) {
    enum { MOST = 1 << 26 };
    Item *item = &options->cc.items.at[options->cc.from_input];
    Text text = {.arena = driver->arena};
    char bytes[4096];
    for (size_t length; text.length <= MOST && (length = fread(bytes, 1, sizeof bytes, stdin));)
        text_append(&text, bytes, length);
    if (ferror(stdin) || text.length > MOST) {
        complain("cannot read standard input: %s",
                 ferror(stdin) ? strerror(errno) : "it has more than 64 MiB");
        return false;
    }
    item->text = temporary(&driver->tools, "stdin.c");
    diag_call(driver->diag, item->text, "<stdin>");
    options->output = options->output || !options->compile_only ? options->output : "stdin.o";
    return output_text(&driver->tools, item->text, text_bytes(&text));
}

/* Reopens standard input from read_input's file, for the C compiler; false after a message. */
static bool return_input(const Options *options) {
    Item *item = &options->cc.items.at[options->cc.from_input];
    if (!freopen(item->text, "rb", stdin)) {
        complain("standard input cannot be read again");
        return false;
    }
    item->text = "-";
    return true;
}

/* Returns whether -S or -fsyntax-only is given: hetucc then checks models, but compiles nothing. */
static bool checks(const Options *options) {
    return options_have(options, "-S") || options_have(options, "-fsyntax-only");
}

/* With -S or -fsyntax-only, checks the models; -S then refuses them. Returns false after errors. */
static bool check_handed_over(Driver *driver) {
    Units units = {0};
    bool assembly = options_have(driver->options, "-S");
    if (!checks(driver->options)) return true;
    if (!read_units(driver, &units)) return false;
    if (assembly && units.count)
        complain("%s has a model, which becomes programs of several kinds of devices, and no file "
                 "in assembly: --emit=c writes them",
                 units.at[0]->file);
    return (!assembly || !units.count) &&
           (driver->options->cc.from_input < 0 || return_input(driver->options));
}

/* Returns whether the C compiler takes the options for code, and -std. It reports, in its words,
 * the options that it refuses; clang would say nothing of them. */
static bool check_code_options(Driver *driver) {
    int count = 0;
    Text given = {.arena = driver->arena};
    Command command = command_cc(&driver->tools);
    for (int i = 0; i < driver->options->cc.items.count; i++) {
        const Item *item = &driver->options->cc.items.at[i];
        if (!item_is_code(item) && strncmp(item->text, "-std=", 5)) continue;
        command_add_item(&command, item);
        text_print(&given, "%s%s", count++ ? " " : "", item->text);
    }
    command_add(&command, "-w", "-fsyntax-only", "-x", "c", "/dev/null", NULL);
    if (!count || driver->tools.dry_run || !command_run(&driver->tools, &command)) return true;
    diag_error(driver->diag, (Position){0}, "the C compiler refuses %s%s",
               count > 1 ? "an option of " : "", text_bytes(&given));
    return false;
}

static int run(Driver *driver) {
    const Options *options = driver->options;
    check_pass_name(driver->arena, "--print-after", options->print_after, true);
    check_pass_name(driver->arena, "--stop-after", options->stop_after, false);
    if (options->init && options->cc.items.count)
        tool_misused("--init takes no other files; it writes a first program");
    if (options->init) {
        options_refuse(options, "--init writes a first program",
                       "-o -c --strategy --cluster --plan --memory --strategies --emit --report "
                       "--known --resume --print-after --stop-after");
        return init_folder(&driver->tools, options->init);
    }
    if (!options->cc.items.count)
        tool_misused("there are no input files (--init FOLDER writes a first program)");
    if (options->cc.hand_over || !options->cc.input_count) {
        options_refuse(options,
                       options->cc.hand_over ? "the C compiler does all of this"
                                             : "there is no input file",
                       "--plan --memory --strategies --emit --report --known");
        if (options->cc.hand_over && !check_handed_over(driver)) return 1;
        hand_over(driver);
    }
    check_backend(driver);
    if (options->compile_only && options->output && options->cc.source_count > 1)
        tool_misused("-o with -c takes one source, not %d", options->cc.source_count);
    if (!check_inputs(driver->arena, options)) return 1;
    check_dependencies(options);
    if (!check_code_options(driver)) return 1;
    if (options->plan.list) return list_make(driver);
    if (options->plan.find || options->plan.memory) return plan_make(driver);
    return options->report ? make_with_report(driver) : make(driver);
}

int main(int argc, char **argv) {
    Arena *arena = arena_create();
    Options options;
    if (argc > 0) argv[0] = (char *)tool_name();
    options_read(arena, &options, argc, argv);
    Driver driver = {.arena = arena, .diag = diag_create(arena, stderr), .options = &options};
    diag_log(driver.diag);
    if (options.known) {
        diag_soften(driver.diag);
        complain_softly();
    }
    toolchain_open(&driver.tools, arena, options.dry_run);
    if (options.cc.from_input >= 0 && (!options.cc.hand_over || checks(&options)) &&
        !read_input(&driver, &options))
        return 1;
    int status = run(&driver);
    diag_finish(driver.diag);
    outputs_close();
    arena_destroy(arena);
    return status;
}
