/* hetu-plan: plans how models are laid over devices, and certifies how good a plan can be.
 *
 *     hetu-plan [--certify] [--limit=SECONDS] [--effort=TIMES] [--seed=N] KIND INPUT.json
 *     (INPUT - is standard input)
 *
 * Prints one JSON object: the plan, or with --certify a lower bound of every plan's objective, with
 * its proof. An error in the input is one line with file, key and reason. The exit status is 1
 * after such an error, and 2 after a mistake in the command line. */
#include "planner/kinds/kinds.h"
#include "support/tool.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Options {
    bool certify;
    double limit, effort; // limit in seconds; effort as a multiple of the usual work
    uint64_t seed;
    const char *kind, *file;
} Options;

enum { KEY_CERTIFY = 0x100, KEY_LIMIT, KEY_EFFORT, KEY_SEED };

static const struct argp_option option_table[] = {
    {"certify", KEY_CERTIFY, 0, 0,
     "Print a lower bound of every plan's objective and its proof, not a plan", 0},
    {"limit", KEY_LIMIT, "SECONDS", 0, "Plan within so many seconds", 0},
    {"effort", KEY_EFFORT, "TIMES", 0, "Search so many times as long as usual", 0},
    {"seed", KEY_SEED, "N", 0, "Search from other starts: a number from 0 on", 0},
    {0},
};

/* Reads a number above 0; any other text ends the process with a message. */
static double read_number(const char *option, const char *text) {
    char *end;
    double number = strtod(text, &end);
    if (!(number > 0) || *end) tool_misused("--%s=%s: not a number above 0", option, text);
    return number;
}

static uint64_t read_seed(const char *text) {
    char *end;
    errno = 0;
    unsigned long long seed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        tool_misused("--seed=%s: not an integer from 0 on", text);
    return seed;
}

static error_t read_option(int key, char *value, struct argp_state *state) {
    Options *options = state->input;
    if (key == KEY_CERTIFY) options->certify = true;
    else if (key == KEY_LIMIT) options->limit = read_number("limit", value);
    else if (key == KEY_EFFORT) options->effort = read_number("effort", value);
    else if (key == KEY_SEED) options->seed = read_seed(value);
    else if (key == ARGP_KEY_ARG && state->arg_num == 0) options->kind = value;
    else if (key == ARGP_KEY_ARG && state->arg_num == 1) options->file = value;
    else if (key == ARGP_KEY_ARG || (key == ARGP_KEY_END && state->arg_num < 2))
        tool_misused("expected a kind of plan and a file, KIND INPUT.json; --help lists the kinds");
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

/* Returns the list of kinds as the last text of --help (argp frees it), other texts unchanged. */
static char *list_kinds(int key, const char *text, void *input) {
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC) return (char *)text;
    char *list = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);
    fprintf(out, "Kinds:\n");
    for (const PlanKind *kind = plan_kinds; kind->name; kind++)
        fprintf(out, "  %-16s %s\n", kind->name, kind->what);
    fclose(out);
    return list;
}

/* Plans or certifies, and prints the result. Returns the exit status. */
static int run(const Options *options, const PlanKind *kind) {
    Budget budget = budget_begin(options->limit);
    budget.effort = options->effort;
    budget.seed = options->seed;
    Arena *arena = arena_create();
    Field input = input_open(arena, options->file);
    json_t *answer = input_error(input)
                         ? NULL
                         : (options->certify ? kind->certify : kind->plan)(arena, input, &budget);
    if (answer) json_dumpf(answer, stdout, JSON_COMPACT);
    else tool_message(stderr, "error", "%s", input_error(input));
    if (answer) putchar('\n');
    json_decref(answer);
    input_close(input);
    arena_destroy(arena);
    if (!fflush(stdout)) return !answer;
    tool_message(stderr, "error", "cannot write to standard output: %s", strerror(errno));
    return 1;
}

int main(int argc, char **argv) {
    static const struct argp argp = {option_table,
                                     read_option,
                                     "KIND INPUT.json",
                                     "Plans how a model is laid over devices.\v",
                                     NULL,
                                     list_kinds,
                                     NULL};
    Options options = {.limit = INFINITY, .effort = 1};
    tool_begin("hetu-plan", argc, argv);
    tool_parse(&argp, argc, argv, 0, &options);
    const PlanKind *kind = plan_kind(options.kind);
    if (kind) return run(&options, kind);
    tool_misused("there is no kind %s; --help lists them", options.kind);
}
