/* Parses the options of all tools by argp, answers --help and --version, and colours messages. */
#include "support/tool.h"

#include "support/diag.h"
#include "support/sarif.h"

#include <hetu/version.h>

#include <argp.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *name = "hetucc";

typedef enum ColorChoice { COLOR_AUTO, COLOR_NEVER, COLOR_ALWAYS } ColorChoice;
static ColorChoice chosen; // what the last option about colours chose
static bool given;         // an option about colours was given

void tool_begin(const char *tool, int argc, char **argv) {
    static char help[] = "--help";
    static char version[64];
    name = tool;
    snprintf(version, sizeof version, "%s " HETU_VERSION, tool);
    argp_program_version = version;
    if (argc > 0) argv[0] = (char *)tool;
    if (argc < 2) return;
    if (!strcmp(argv[1], "--version")) tool_print_version();
    if (!strcmp(argv[1], "-h")) argv[1] = help;
}

const char *tool_name(void) { return name; }

void tool_print_version(void) {
    printf("%s " HETU_VERSION "\n", name);
    exit(fflush(stdout) ? 1 : 0);
}

/* ---- the command line ---- */

enum { MOST_OPTIONS = 64, MOST_NAME = 64 };

static const char *const *own_options; // of tool_own_options; NULL: none

void tool_own_options(const char *const *names) { own_options = names; }

/* Options of every tool. */
static const struct argp_option common[] = {
    {.name = "help"}, {.name = "usage"}, {.name = "version"}, {0}};

/* Adds the options of a table, spelled with dashes, to `spelled`. Returns the new count. */
static int add_options(char (*spelled)[MOST_NAME], int count, const struct argp_option *table) {
    for (; (table->name || table->key) && count < MOST_OPTIONS; table++)
        if (table->name && !(table->flags & OPTION_HIDDEN))
            snprintf(spelled[count++], MOST_NAME, "--%s", table->name);
    return count;
}

const char *tool_closest_option(const struct argp_option *table, const char *word) {
    static char spelled[MOST_OPTIONS][MOST_NAME];
    static char typed[MOST_NAME];
    const char *names[2 * MOST_OPTIONS];
    int count = add_options(spelled, add_options(spelled, 0, common), table);
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
    for (int i = 0; i < count; i++) names[i] = spelled[i];
    for (const char *const *own = own_options; own && *own; own++) names[count++] = *own;
    return diag_closest(typed, names, count);
}

/* Reports a word that is not an option, suggests a similar option, and ends the process. */
_Noreturn static void refuse_option(const struct argp_option *table, const char *word) {
    const char *closest = !strncmp(word, "--", 2) ? tool_closest_option(table, word) : NULL;
    tool_misused("unknown option %.*s; %s%s%s", (int)strcspn(word, "="), word,
                 closest ? "did you mean " : "--help lists the options", closest ? closest : "",
                 closest ? "?" : "");
}

/* Refuses the first word that is not an option of the table, or that lacks its value. argp_parse
 * would find the same word by getopt_long, but print another message. */
static void check_options(const struct argp_option *table, int argc, char **argv, bool in_order) {
    static const struct argp_option nothing[] = {{0}};
    const struct argp_option *table_of = table ? table : nothing;
    enum { LONG = 0x10000 };
    struct option spelled[MOST_OPTIONS] = {{"help", no_argument, NULL, LONG},
                                           {"usage", no_argument, NULL, LONG},
                                           {"version", no_argument, NULL, LONG}};
    char letters[3 * MOST_OPTIONS + 8] = "", *letter = letters;
    int count = 3, key;
    letter += sprintf(letter, "%s:V", in_order ? "+" : "");
    for (table = table_of; (table->name || table->key) && count + 1 < MOST_OPTIONS; table++) {
        int value = !table->arg                          ? no_argument
                    : table->flags & OPTION_ARG_OPTIONAL ? optional_argument
                                                         : required_argument;
        if (table->name) spelled[count++] = (struct option){table->name, value, NULL, LONG};
        if (table->key > ' ' && table->key < 0x7f)
            letter += sprintf(letter, "%c%.*s", table->key, value == no_argument ? 0 : value, "::");
    }
    opterr = 0;
    while ((key = getopt_long(argc, argv, letters, spelled, NULL)) != -1) {
        const char *word = argv[optind - 1], short_word[] = {'-', (char)optopt, 0};
        bool is_long = optopt == 0 || optopt == LONG;
        if (key == ':') tool_misused("the option %s needs a value", is_long ? word : short_word);
        if (key == '?' && optopt == LONG)
            tool_misused("the option %.*s takes no value", (int)strcspn(word, "="), word);
        if (key == '?' && optopt != '?') refuse_option(table_of, is_long ? word : short_word);
    }
    optind = 0;
}

void tool_parse(const struct argp *parser, int argc, char **argv, unsigned flags, void *input) {
    int index;
    check_options(parser->options, argc, argv, flags & ARGP_IN_ORDER);
    argp_parse(parser, argc, argv, flags, &index, input);
}

void tool_read_words(const char *words, const char *what, int least, int most, int argc,
                     char **argv) {
    const struct argp parser = {.args_doc = words, .doc = what};
    tool_parse(&parser, argc, argv, 0, NULL);
    if (argc - 1 < least || argc - 1 > most)
        tool_misused("expected %s; --help says what they are", words);
}

const char *tool_value(const char *option, char **argv, int *at) {
    size_t length = strlen(option);
    if (strncmp(argv[*at], option, length)) return NULL;
    if (argv[*at][length] == '=') return argv[*at] + length + 1;
    if (argv[*at][length]) return NULL;
    if (!argv[*at + 1]) tool_misused("the option %s needs a value", option);
    return argv[++*at];
}

/* ---- colours ---- */

void tool_color_option(const char *word) {
    static const struct {
        const char *word;
        ColorChoice choice;
    } words[] = {
        {"-fdiagnostics-color", COLOR_ALWAYS},      {"-fdiagnostics-color=always", COLOR_ALWAYS},
        {"-fcolor-diagnostics", COLOR_ALWAYS},      {"-fno-diagnostics-color", COLOR_NEVER},
        {"-fdiagnostics-color=never", COLOR_NEVER}, {"-fno-color-diagnostics", COLOR_NEVER},
        {"-fdiagnostics-color=auto", COLOR_AUTO}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i].word)) {
            chosen = words[i].choice;
            given = true;
        }
}

/* Returns the choice of NO_COLOR or CLICOLOR_FORCE, of which NO_COLOR is stronger; else AUTO. */
static ColorChoice choice_of_environment(void) {
    const char *none = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    if (none && *none) return COLOR_NEVER;
    return force && *force && strcmp(force, "0") != 0 ? COLOR_ALWAYS : COLOR_AUTO;
}

const char *tool_color_for_cc(void) {
    ColorChoice choice = given ? COLOR_AUTO : choice_of_environment();
    return choice == COLOR_ALWAYS  ? "-fdiagnostics-color=always"
           : choice == COLOR_NEVER ? "-fdiagnostics-color=never"
                                   : NULL;
}

static bool has_colors(FILE *out) {
    const char *terminal = getenv("TERM");
    ColorChoice choice = given ? chosen : choice_of_environment();
    return choice == COLOR_ALWAYS || (choice == COLOR_AUTO && isatty(fileno(out)) && terminal &&
                                      strcmp(terminal, "dumb") != 0);
}

const char *tool_color(FILE *out, const char *what) {
    static const struct {
        const char *what, *sequence;
    } colors[] = {{"error", "\33[1;31m"},  {"warning", "\33[1;35m"}, {"note", "\33[1;36m"},
                  {"remark", "\33[1;34m"}, {"place", "\33[1m"},      {"caret", "\33[1;32m"}};
    for (size_t i = 0; i < sizeof colors / sizeof *colors && has_colors(out); i++)
        if (!strcmp(what, colors[i].what)) return colors[i].sequence;
    return "";
}

const char *tool_color_end(FILE *out) { return has_colors(out) ? "\33[0m" : ""; }

/* ---- messages ---- */

void tool_message(FILE *out, const char *kind, const char *format, ...) {
    va_list arguments;
    const char *end = tool_color_end(out);
    fprintf(out, "%s%s:%s %s%s:%s ", tool_color(out, "place"), name, end, tool_color(out, kind),
            kind, end);
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fputc('\n', out);
}

void tool_misused(const char *format, ...) {
    enum { MOST = 8192, MISUSED = 2 };
    char message[MOST];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sarif_add(SARIF_ERROR, NULL, message);
    if (!sarif_has_stderr()) tool_message(stderr, "error", "%s", message);
    exit(MISUSED);
}
