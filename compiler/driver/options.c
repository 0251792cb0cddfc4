/* The command line of hetucc: every option, its help, and which words go to the C compiler.
 * language.c has gcc's options that change what a model means. */
#include "driver/options.h"

#include "driver/output.h"

#include "emit/backend.h"
#include "support/diag.h"
#include "support/sarif.h"
#include "support/secure.h"
#include "support/tool.h"

#include <hetu/version.h>

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_INCLUDE = 0x100,
    KEY_STD,
    KEY_BACKEND,
    KEY_STRATEGY,
    KEY_CLUSTER,
    KEY_RESUME,
    KEY_EMIT,
    KEY_PRINT_AFTER,
    KEY_STOP_AFTER,
    KEY_SAVE_TEMPS,
    KEY_NO_FUSE,
    KEY_NO_VIEWS,
    KEY_NO_CHUNKS,
    KEY_NO_OVERLAP,
    KEY_BUCKET,
    KEY_CHUNK,
    KEY_REPORT,
    KEY_DIAGNOSTICS,
    KEY_IMPLICIT,
    KEY_NO_IMPLICIT,
    KEY_KNOWN,
    KEY_PLAN,
    KEY_INIT,
    KEY_STRATEGIES,
    KEY_HELP_ALL,
    KEY_USAGE,
    KEY_VERSION,
    KEY_MEMORY,
    KEY_CC,
    KEY_VALUE
};

const char *const remark_words[] = {[REMARK_COMM] = "comm",
                                    [REMARK_SWITCH] = "switch",
                                    [REMARK_MEMORY] = "memory",
                                    [REMARK_SHARDING] = "sharding",
                                    [REMARKS] = NULL};

/* Words of --emit. */
static const char *const emit_words[] = {[EMIT_EXE] = "exe",
                                         [EMIT_C] = "c",
                                         [EMIT_IR] = "ir",
                                         [EMIT_COST] = "cost",
                                         [EMIT_COST_JSON] = "cost-json",
                                         NULL};

static const struct argp_option option_table[] = {
    {0, 'o', "FILE", 0, "Write the result to FILE; with --emit=c, a folder", 1},
    {0, 'c', 0, 0, "Compile, but do not link", 1},
    {"init", KEY_INIT, "FOLDER", 0,
     "Write a first model, its data, a strategy and a CMakeLists.txt into FOLDER", 1},
    {0, 'D', "NAME[=VALUE]", 0, "Define a macro", 2},
    {0, 'U', "NAME", 0, "Undefine a macro", 2},
    {0, 'I', "DIR", 0, "Look for headers in DIR", 2},
    {"include", KEY_INCLUDE, "FILE", 0, "Include FILE first (written -include FILE)", 2},
    {"std", KEY_STD, "NAME", 0, "The C standard (written -std=NAME)", 2},
    {0, 'O', "LEVEL", OPTION_ARG_OPTIONAL,
     "How much the C compiler optimises the model's source; 2 if not given", 2},
    {0, 'g', "LEVEL", OPTION_ARG_OPTIONAL, "Debug information", 2},
    {"strategy", KEY_STRATEGY, "NAME|FILE|FILE:NAME", 0,
     "A strategy: one of the source by name, or a file's; the program begins with the first one, "
     "and may switch to the others",
     3},
    {"strategies", KEY_STRATEGIES, 0, 0,
     "List the model's named dimensions, inputs, parameters and layers, and the strategies of the "
     "source and of strategy files that are given; compile nothing",
     3},
    {"cluster", KEY_CLUSTER, "FILE", 0, "Plan and price for the cluster that FILE describes", 3},
    {"plan", KEY_PLAN, 0, 0,
     "Find a strategy for the cluster: write it to the file that -o names, and print why this one",
     3},
    {"memory", KEY_MEMORY, "BYTES", 0, "With --plan: no device may have more; 20G, 512M, ...", 3},
    {"backend", KEY_BACKEND, "NAME", 0, "What the program runs on; the first if not given", 3},
    {0, 'R', "comm|switch|memory|sharding", 0,
     "Report each conversion of a layout: line, reason, collective, bytes, and sums by layer "
     "(written -Rcomm); what each switch between two strategies moves (-Rswitch); what each device "
     "keeps (-Rmemory); the layout of each parameter and named value (-Rsharding)",
     4},
    {"Wimplicit-reshard", KEY_IMPLICIT, 0, 0,
     "Warn of conversions that nobody wrote (written -Wimplicit-reshard)", 4},
    {"Wno-implicit-reshard", KEY_NO_IMPLICIT, 0, OPTION_HIDDEN, 0, 4},
    {"diagnostics", KEY_DIAGNOSTICS, "text|sarif|FILE.sarif", 0,
     "How errors, warnings and remarks are said: as text; as one log of SARIF 2.1.0 on standard "
     "error; or as text, with the log in a file",
     4},
    {"emit", KEY_EMIT, "WHAT", 0,
     "What to make: a program, C files, the intermediate representation, or what each operator and "
     "conversion costs, as a table or as JSON",
     5},
    {"report", KEY_REPORT, "FILE.html|FILE.json", 0,
     "Also write what each device does when, keeps and receives, as a page or as JSON", 5},
    {"print-after", KEY_PRINT_AFTER, "PASS|all", 0,
     "Print the intermediate representation after a pass", 5},
    {"stop-after", KEY_STOP_AFTER, "PASS", 0, "Run no pass after this one, and write no program",
     5},
    {"resume", KEY_RESUME, "FILE", 0,
     "Go on from FILE, intermediate representation that --emit=ir --stop-after=PASS made of these "
     "sources",
     5},
    {"no-fuse", KEY_NO_FUSE, 0, 0, "Compute every operator by itself", 5},
    {"no-views", KEY_NO_VIEWS, 0, 0,
     "Copy slices, and what is put in a row, also where kernels could take them as they lie", 5},
    {"no-chunks", KEY_NO_CHUNKS, 0, 0, "Compute all rows of what is large, such as logits, at once",
     5},
    {"no-overlap", KEY_NO_OVERLAP, 0, 0,
     "On GPUs, sum gradients and gather parameters under zero when they are read: less memory, and "
     "slower",
     5},
    {"known", KEY_KNOWN, "N", 0,
     "Make no program but an object that ht_prepare loads: a program that runs has the first N "
     "strategies",
     5},
    {"bucket", KEY_BUCKET, "BYTES", 0,
     "Exchange sums of gradients together until they have so many bytes; 1: each by itself", 5},
    {"chunk", KEY_CHUNK, "BYTES", 0,
     "Compute what is larger, such as logits, by chunks of rows of so many bytes", 5},
    {"save-temps", KEY_SAVE_TEMPS, 0, 0, "Keep the emitted C files in the current folder", 5},
    {0, '#', 0, 0, "Print the commands that would run (written -###)", 5},
    {"help", 'h', 0, 0, "Print the options that a first program needs", 6},
    {"help-all", KEY_HELP_ALL, 0, 0, "Print all options", 6},
    {"usage", KEY_USAGE, 0, 0, "Print the spelling of all options", 6},
    {"version", KEY_VERSION, 0, 0, "Print the version", 6},
    {"Xcc", KEY_CC, "WORD", OPTION_HIDDEN, 0, 7},
    {"Xcc-value", KEY_VALUE, "WORD", OPTION_HIDDEN, 0, 7},
    {0}};

/* The C compiler's options whose value may be the next word. */
static const char with_value[] =
    "-MF -MT -MQ -isystem -iquote -idirafter -imacros -iprefix -isysroot -iwithprefix "
    "-iwithprefixbefore -Xlinker -Xassembler -Xpreprocessor -T -u -z -x -l -L -e -A -aux-info "
    "--param -B -dumpdir -dumpbase -wrapper";

/* Options with which hetucc only runs the C compiler. */
static const char handed_over[] = "-E -S -M -MM -fsyntax-only";

/* Returns whether a word is among words that blanks separate. */
static bool is_one_of(const char *word, const char *words) {
    size_t length = strlen(word);
    bool found = false;
    for (const char *at = words; length && !found && (at = strstr(at, word)); at += length)
        found = (at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ');
    return found && !strchr(word, ' ');
}

bool begins(const char *word, const char *with) { return !strncmp(word, with, strlen(with)); }

bool options_have(const Options *options, const char *word) {
    for (int i = 0; i < options->cc.items.count; i++)
        if (!strcmp(options->cc.items.at[i].text, word)) return true;
    return false;
}

void options_refuse(const Options *options, const char *why, const char *words) {
    const struct {
        bool given;
        const char *word;
    } all[] = {{options->output, "-o"},
               {options->compile_only, "-c"},
               {options->init, "--init"},
               {options->strategies.count, "--strategy"},
               {options->cluster, "--cluster"},
               {options->plan.find, "--plan"},
               {options->plan.memory, "--memory"},
               {options->plan.list, "--strategies"},
               {options->emit != EMIT_EXE, "--emit"},
               {options->report, "--report"},
               {options->known, "--known"},
               {options->resume, "--resume"},
               {options->print_after, "--print-after"},
               {options->stop_after, "--stop-after"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].given && is_one_of(all[i].word, words))
            tool_misused("%s: leave out %s", why, all[i].word);
}

/* ---- from the typed line to a line for argp ---- */

typedef Array(char *) Words;

typedef struct Line {
    Arena *arena;
    char **next; // the next word as typed; NULL follows the last
    Words words; // for argp
} Line;

static void put(Line *line, const char *format, const char *word) {
    array_push(line->arena, &line->words, arena_format(line->arena, format, word));
}
static void copy(Line *line) { put(line, "%s", *line->next++); }

/* Returns hetucc's long option with this name (the first `length` bytes); NULL: there is none. */
static const struct argp_option *long_option(const char *name, size_t length) {
    for (const struct argp_option *option = option_table; option->key; option++)
        if (option->name && strlen(option->name) == length && !strncmp(option->name, name, length))
            return option;
    return NULL;
}

_Noreturn static void mistake(const char *text, const char *word) { tool_misused(text, word); }

/* Refuses a word that resembles a long option; the C compiler would not suggest the right one. */
static void refuse_misspelled(Arena *arena, const char *word) {
    const char *closest = tool_closest_option(option_table, word);
    if (closest)
        mistake(arena_format(arena, "unknown option %%s; did you mean %s?", closest),
                arena_substring(arena, word, strcspn(word, "=")));
}

/* Refuses `word`, an option that needs a value, at the end of the line. */
static void check_next(const Line *line, const char *word) {
    if (!*line->next) mistake("the option %s needs a value", word);
}

static void hand_word(Line *line) {
    const char *word = *line->next++;
    put(line, "--Xcc=%s", word);
    if (is_one_of(word, with_value)) {
        check_next(line, word);
        put(line, "--Xcc-value=%s", *line->next++);
    }
}

static void read_long(Line *line) {
    const char *word = *line->next;
    size_t length = strcspn(word + 2, "=");
    const struct argp_option *option = long_option(word + 2, length);
    if (!option) {
        refuse_misspelled(line->arena, word);
        hand_word(line);
        return;
    }
    if (option->key == KEY_CC || option->key == KEY_VALUE)
        mistake("the option %s is hetucc's own; options for the C compiler are written as they are",
                word);
    if (!option->arg && word[2 + length])
        mistake("the option %s takes no value", arena_substring(line->arena, word, 2 + length));
    copy(line);
    if (!option->arg || word[2 + length]) return;
    check_next(line, word);
    copy(line);
}

/* Reads an option of hetucc that is one dash and a word, such as -std=c17; false for any other. */
static bool read_dashed_word(Line *line) {
    const char *word = *line->next;
    if (!strcmp(word, "-###")) put(line, "-#", "");
    else if (begins(word, "-std=") || !strcmp(word, "-Wimplicit-reshard") ||
             !strcmp(word, "-Wno-implicit-reshard") || !strcmp(word, "-save-temps"))
        put(line, "-%s", word);
    else if (begins(word, "-R")) put(line, "%s", word);
    else return false;
    line->next++;
    if (!strcmp(word, "-R")) {
        check_next(line, word);
        copy(line);
    }
    return true;
}

static void read_word(Line *line) {
    const char *word = *line->next;
    if (word[0] != '-' || !word[1]) {
        put(line, word[0] == '-' ? "--Xcc=%s" : "%s", *line->next++);
    } else if (word[1] == '-') {
        read_long(line);
    } else if (!strcmp(word, "-include")) {
        put(line, "--include", "");
        line->next++;
        check_next(line, word);
        copy(line);
    } else if (read_dashed_word(line)) {
        return;
    } else if (!strcmp(word, "-c") || !strcmp(word, "-h") || word[1] == 'g' || word[1] == 'O') {
        copy(line);
    } else if (strchr("oDUI", word[1])) {
        copy(line);
        if (word[2]) return;
        check_next(line, word);
        copy(line);
    } else {
        hand_word(line);
    }
}

/* ---- what argp parses ---- */

typedef struct Reader {
    Arena *arena;
    Options *options;
    bool in_c; // after -x c: every file, and standard input, is a C source
} Reader;

static void add(Reader *reader, ItemKind kind, const char *text, const char *value) {
    Item item = {kind, arena_string(reader->arena, text),
                 value ? arena_string(reader->arena, value) : NULL};
    array_push(reader->arena, &reader->options->cc.items, item);
}

static void add_joined(Reader *reader, const char *option, const char *value) {
    add(reader, ITEM_FLAG, arena_format(reader->arena, "%s%s", option, value ? value : ""), NULL);
}

/* Adds standard input to the items as a source (after -x c), or as a word for the C compiler, which
 * then does everything. Quoted includes of the source are relative to the current folder. */
static void add_input(Reader *reader) {
    Options *options = reader->options;
    options->cc.input_count++;
    options->cc.source_count += reader->in_c;
    options->cc.hand_over |= !reader->in_c;
    if (reader->in_c && options->cc.from_input >= 0)
        mistake("standard input, %s, stands here twice", "-");
    options->cc.from_input = reader->in_c ? options->cc.items.count : options->cc.from_input;
    add(reader, reader->in_c ? ITEM_SOURCE : ITEM_FLAG, "-", NULL);
    if (reader->in_c) add(reader, ITEM_FLAG, "-iquote", ".");
}

/* Sets the language of the following files, the value of -x. Removes the option for `c` and `none`.
 * For any other language, the C compiler does everything. */
static void set_language(Reader *reader, const char *language) {
    reader->in_c = !strcmp(language, "c");
    if (reader->in_c || !strcmp(language, "none")) reader->options->cc.items.count--;
    else reader->options->cc.hand_over = true;
}

static void set_value(Reader *reader, const char *value) {
    Item *item = &reader->options->cc.items.at[reader->options->cc.items.count - 1];
    item->value = arena_string(reader->arena, value);
    if (!strcmp(item->text, "-x")) set_language(reader, value);
}

static void add_cc_word(Reader *reader, const char *word) {
    if (!strcmp(word, "-")) {
        add_input(reader);
        return;
    }
    if (is_one_of(word, handed_over)) reader->options->cc.hand_over = true;
    bool input = begins(word, "-l") || begins(word, "-Wl,") || begins(word, "-L") ||
                 !strcmp(word, "-Xlinker") || !strcmp(word, "-T");
    reader->options->cc.input_count += begins(word, "-l");
    add(reader, begins(word, "-M") ? ITEM_DEPEND : input ? ITEM_INPUT : ITEM_FLAG, word, NULL);
}

static void add_file(Reader *reader, const char *name) {
    const Backend *language = backend_of_file(name);
    bool source = reader->in_c || (language && !language->built_by_make);
    reader->options->cc.source_count += source;
    reader->options->cc.input_count++;
    add(reader, source ? ITEM_SOURCE : language ? ITEM_DEVICE : ITEM_INPUT, name, NULL);
}

bool is_c_by_option(const char *source) {
    const Backend *language = backend_of_file(source);
    return !language || language->built_by_make;
}

/* Returns the index of `word` among `words`; if `word` is missing, lists them and exits with 2. */
static int choose(Arena *arena, const char *option, const char *word, const char *const *words) {
    const char *all = words[0];
    int count = 0;
    for (; words[count]; count++)
        if (!strcmp(word, words[count])) return count;
    for (int i = 1; i < count; i++)
        all = arena_format(arena, "%s%s%s", all, i + 1 < count ? ", " : " or ", words[i]);
    const char *closest = diag_closest(word, words, count);
    if (closest) all = arena_format(arena, "%s; did you mean %s?", all, closest);
    mistake(arena_format(arena, "%s cannot be \"%%s\", only %s", option, all), word);
}

static void set_output(Reader *reader, const char *file) {
    if (reader->options->output) mistake("-o is given twice, the second time as %s", file);
    reader->options->output = arena_string(reader->arena, file);
}

static void set_report(Reader *reader, const char *file) {
    const char *dot = strrchr(file, '.');
    if (!dot || (strcmp(dot, ".json") && strcmp(dot, ".html")))
        mistake("--report names a file that ends in .json or .html, not \"%s\"", file);
    if (reader->options->report) mistake("--report is given twice, the second time as %s", file);
    reader->options->report = arena_string(reader->arena, file);
}

/* Sets where diagnostics go, before argp parses the options and reports their mistakes. */
static void set_diagnostics(Reader *reader, const char *value) {
    const char *dot = strrchr(value, '.');
    bool file = dot && dot > value && !strcmp(dot, ".sarif");
    if (!file && strcmp(value, "text") && strcmp(value, "sarif"))
        mistake(
            "--diagnostics is text, sarif or the name of a file that ends in .sarif, not \"%s\"",
            value);
    if (sarif_is_open()) mistake("--diagnostics is given twice, the second time as %s", value);
    const char *wrong = file ? secure_output_wrong(value) : NULL;
    if (wrong) {
        complain("--diagnostics cannot write %s: %s", value, wrong);
        exit(1);
    }
    reader->options->sarif = file ? arena_string(reader->arena, value) : NULL;
    if (strcmp(value, "text")) sarif_open(tool_name(), HETU_VERSION, reader->options->sarif);
}

/* Applies --diagnostics and the options of colours on the line as typed. */
static void find_diagnostics(Reader *reader, char **words) {
    static const char option[] = "--diagnostics";
    for (char **word = words; *word; word++) tool_color_option(*word);
    for (; *words; words++)
        if (begins(*words, option) && (*words)[sizeof option - 1] == '=')
            set_diagnostics(reader, *words + sizeof option);
        else if (!strcmp(*words, option) && words[1]) set_diagnostics(reader, *++words);
}

static int read_known(const char *value) {
    char *end;
    long known = strtol(value, &end, 10);
    if (*end || end == value || known < 1 || known > 1 << 20)
        mistake("--known takes how many of the strategies are there already, 1 or more, not \"%s\"",
                value);
    return (int)known;
}

static int64_t read_bytes(const char *refusal, const char *bytes) {
    char *end;
    errno = 0;
    long long number = strtoll(bytes, &end, 10);
    if (errno || *end || end == bytes || number < 1) mistake(refusal, bytes);
    return number;
}

/* Reads a size in bytes: "20G", "1.5GiB", "512M", "1000000". K is 1024, M is 1024 K, and so on. */
static void set_memory(Reader *reader, const char *text) {
    static const char units[] = "KMGT";
    char *end;
    double number = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    for (const char *u = units; unit && u <= unit; u++) number *= 1024;
    const char *rest = unit ? end + 1 : end;
    bool spelled = !*rest || (unit && (!strcmp(rest, "B") || !strcmp(rest, "iB")));
    if (end == text || !strchr("0123456789.", *text) || !spelled || !(number >= 1) || number > 1e18)
        mistake("--memory is a size such as 20G, 512M or a number of bytes, not \"%s\"", text);
    reader->options->plan.memory = (int64_t)number;
}

static error_t read_language_option(Reader *reader, int key, const char *value) {
    Options *options = reader->options;
    switch (key) {
    case 'D': add_joined(reader, "-D", value); break;
    case 'U': add_joined(reader, "-U", value); break;
    case 'I': add_joined(reader, "-I", value); break;
    case 'O':
        add_joined(reader, "-O", value);
        options->cc.optimised = true;
        break;
    case 'g': add_joined(reader, "-g", value); break;
    case KEY_INCLUDE: add(reader, ITEM_FLAG, "-include", value); break;
    case KEY_STD: add_joined(reader, "-std=", value); break;
    case KEY_CC: add_cc_word(reader, value); break;
    case KEY_VALUE: set_value(reader, value); break;
    case ARGP_KEY_ARG: add_file(reader, value); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Refuses an empty value of hetucc's options but --strategy, such as a script's unset variable. */
static void check_value(int key, const char *value) {
    enum { CC_GROUP = 2, OWN_GROUPS = 6 };
    for (const struct argp_option *option = option_table; option->key && value && !*value; option++)
        if (option->key == key && key != KEY_STRATEGY && option->group != CC_GROUP &&
            option->group < OWN_GROUPS)
            mistake(option->name ? "the option --%s needs a value"
                                 : "the option -o needs a value%s",
                    option->name ? option->name : "");
}

static error_t read_option(int key, char *value, struct argp_state *state) {
    Reader *reader = state->input;
    Options *options = reader->options;
    check_value(key, value);
    switch (key) {
    case 'o': set_output(reader, value); break;
    case 'c': options->compile_only = true; break;
    case '#': options->dry_run = true; break;
    case 'R': options->remarks[choose(reader->arena, "-R", value, remark_words)] = true; break;
    case KEY_BACKEND:
        options->backend = backend_find(
            backend_names()[choose(reader->arena, "--backend", value, backend_names())]);
        break;
    case KEY_STRATEGY:
        array_push(reader->arena, &options->strategies, arena_string(reader->arena, value));
        break;
    case KEY_CLUSTER: options->cluster = arena_string(reader->arena, value); break;
    case KEY_RESUME: options->resume = arena_string(reader->arena, value); break;
    case KEY_REPORT: set_report(reader, value); break;
    case KEY_EMIT: options->emit = (Emit)choose(reader->arena, "--emit", value, emit_words); break;
    case KEY_DIAGNOSTICS: break; // find_diagnostics has read the option
    case KEY_NO_FUSE: options->passes.no_fuse = true; break;
    case KEY_NO_VIEWS: options->passes.no_views = true; break;
    case KEY_NO_CHUNKS: options->passes.no_chunks = true; break;
    case KEY_NO_OVERLAP: options->passes.no_overlap = true; break;
    case KEY_BUCKET:
        options->passes.bucket =
            read_bytes("--bucket is a number of bytes from 1 on, not \"%s\"", value);
        break;
    case KEY_CHUNK:
        options->passes.chunk =
            read_bytes("--chunk is a number of bytes from 1 on, not \"%s\"", value);
        break;
    case KEY_INIT: options->init = value; break;
    case KEY_PLAN: options->plan.find = true; break;
    case KEY_STRATEGIES: options->plan.list = true; break;
    case KEY_MEMORY: set_memory(reader, value); break;
    case KEY_PRINT_AFTER: options->print_after = arena_string(reader->arena, value); break;
    case KEY_STOP_AFTER: options->stop_after = arena_string(reader->arena, value); break;
    case KEY_KNOWN: options->known = read_known(value); break;
    case KEY_SAVE_TEMPS: options->save_temps = true; break;
    case KEY_IMPLICIT: options->passes.warn_implicit_reshard = true; break;
    case KEY_NO_IMPLICIT: options->passes.warn_implicit_reshard = false; break;
    default: return read_language_option(reader, key, value);
    }
    return 0;
}

/* ---- help ---- */

/* The options that a first program needs, as --help describes them, in one line each. */
static const struct {
    int key;
    const char *text;
} first_options[] = {{'o', "Write the program to FILE"},
                     {'c', "Compile, but do not link"},
                     {KEY_STRATEGY, "Lay the model over devices"},
                     {KEY_STRATEGIES, "List what the model has, and strategies"},
                     {KEY_CLUSTER, "Plan and price for this cluster"},
                     {KEY_PLAN, "Find a strategy for the cluster"},
                     {KEY_BACKEND, "What the program runs on; else the first"},
                     {'R', "Report conversions, or what devices keep"},
                     {KEY_REPORT, "Also write what each device does when"},
                     {KEY_EMIT, "What to make; else a program"},
                     {KEY_INIT, "Write a first model and its data there"},
                     {KEY_HELP_ALL, "Print all options"},
                     {KEY_VERSION, "Print the version"}};

/* Returns an option as it is written: "--cluster=FILE", "-o FILE", "-Rcomm|memory". */
static const char *option_written(Arena *arena, const struct argp_option *options, int key) {
    while (options->key != key) options++;
    const char *between = options->name ? "=" : key == 'R' ? "" : " ";
    const char *name = options->name ? arena_format(arena, "--%s", options->name)
                                     : arena_format(arena, "-%c", key);
    return options->arg ? arena_format(arena, "%s%s%s", name, between, options->arg) : name;
}

_Noreturn static void print_first_help(Arena *arena, const struct argp_option *options) {
    printf("Usage: %s [OPTION...] FILE...\n"
           "Compiles annotated C models (.c) for many devices, and everything else as the C\n"
           "compiler does, to which all other options go.\n\n",
           tool_name());
    for (size_t i = 0; i < sizeof first_options / sizeof *first_options; i++)
        printf("  %-30s  %s\n", option_written(arena, options, first_options[i].key),
               first_options[i].text);
    printf("\nThe manual: man hetucc, man hspmd\n");
    exit(fflush(stdout) ? 1 : 0);
}

static error_t read_help_option(int key, char *value, struct argp_state *state) {
    Reader *reader = state->input;
    switch (key) {
    case 'h': print_first_help(reader->arena, state->root_argp->options);
    case KEY_HELP_ALL: argp_state_help(state, stdout, ARGP_HELP_STD_HELP); return 0;
    case KEY_USAGE: argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK); return 0;
    case KEY_VERSION: tool_print_version();
    default: return read_option(key, value, state);
    }
}

/* Returns the words, which NULL ends, as one text: "exe|c|ir". */
static const char *joined(Arena *arena, const char *const *words) {
    const char *all = *words;
    while (*++words) all = arena_format(arena, "%s|%s", all, *words);
    return all;
}

/* Returns the option table, in which --emit and --backend list their words. */
static const struct argp_option *described_options(Arena *arena) {
    struct argp_option *options =
        arena_array(arena, struct argp_option, sizeof option_table / sizeof *option_table);
    memcpy(options, option_table, sizeof option_table);
    for (struct argp_option *option = options; option->key; option++)
        if (option->key == KEY_BACKEND || option->key == KEY_EMIT)
            option->arg = joined(arena, option->key == KEY_EMIT ? emit_words : backend_names());
    return options;
}

void options_read(Arena *arena, Options *options, int argc, char **argv) {
    const struct argp argp = {
        described_options(arena),
        read_help_option,
        "FILE...",
        "Compiles annotated C models (.c) for many devices, and everything else as the C compiler "
        "does (environment variable CC, or cc).\vAny other option and file goes to the C compiler. "
        "A program is started with: PROGRAM alone on this host, or mpirun -n DEVICES PROGRAM. The "
        "exit status is 0, 1 after an error in what was given, 2 after a mistake in the command "
        "line or an error of hetucc itself.",
        NULL,
        NULL,
        NULL};
    char **words = response_expand(arena, argc ? argv + 1 : argv);
    Line line = {.arena = arena, .next = words};
    Reader reader = {.arena = arena, .options = options};
    *options = (Options){.backend = backend_find(backend_names()[0]), .cc.from_input = -1};
    array_push(arena, &line.words, argc ? argv[0] : arena_string(arena, tool_name()));
    find_diagnostics(&reader, words);
    while (*line.next) read_word(&line);
    array_push(arena, &line.words, NULL);
    tool_parse(&argp, line.words.count - 1, line.words.at, ARGP_IN_ORDER | ARGP_NO_HELP, &reader);
}
