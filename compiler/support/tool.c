#include "support/tool.h"

#include "support/diag.h"

#include <hetu/version.h>

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *name = "hetucc";

typedef enum ColorChoice { COLOR_AUTO, COLOR_NEVER, COLOR_ALWAYS } ColorChoice;
static ColorChoice chosen; // choice of an option
static bool given;         // an option was given

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

/* ---- misspelled options ---- */

enum { MOST_OPTIONS = 64, MOST_NAME = 64 };

/* Options of every tool. */
static const struct argp_option common[] = {
    {.name = "help"}, {.name = "usage"}, {.name = "version"}, {0}};

/* Adds the options of a table, spelled with dashes, to `spelled`. Returns the new number. */
static int add_options(char (*spelled)[MOST_NAME], int count, const struct argp_option *table) {
    for (; (table->name || table->key) && count < MOST_OPTIONS; table++)
        if (table->name && !(table->flags & OPTION_HIDDEN))
            snprintf(spelled[count++], MOST_NAME, "--%s", table->name);
    return count;
}

const char *tool_closest_option(const struct argp_option *table, const char *word) {
    static char spelled[MOST_OPTIONS][MOST_NAME];
    static char typed[MOST_NAME];
    const char *names[MOST_OPTIONS];
    int count = add_options(spelled, add_options(spelled, 0, common), table);
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
    for (int i = 0; i < count; i++) names[i] = spelled[i];
    return diag_closest(typed, names, count);
}

/* Returns whether a word is the beginning of a long option of the table. */
static bool has_option(const struct argp_option *table, const char *word) {
    size_t length = strcspn(word, "=");
    for (; table->name || table->key; table++)
        if (table->name && !strncmp(table->name, word, length)) return true;
    return false;
}

void tool_check_options(const struct argp_option *table, int argc, char **argv) {
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        bool known = strncmp(argv[i], "--", 2) != 0 || has_option(table, argv[i] + 2) ||
                     has_option(common, argv[i] + 2);
        const char *closest = known ? NULL : tool_closest_option(table, argv[i]);
        if (!closest) continue;
        tool_message(stderr, "error", "unknown option %.*s; did you mean %s?",
                     (int)strcspn(argv[i], "="), argv[i], closest);
        exit(1);
    }
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

/* Returns what the environment says: NO_COLOR is stronger than CLICOLOR_FORCE. */
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
