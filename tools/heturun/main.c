/* heturun: starts the ranks of a hetucc program, on this host or on the available slots. On slots,
 * heturun restarts the ranks when ranks die or the slots change (elastic training).
 *
 *     heturun -n RANKS PROGRAM ARGUMENTS...
 *     heturun --elastic STRATEGIES --slots FILE -- PROGRAM ARGUMENTS...
 *
 * With -n, rank 0 has the standard input; all ranks share the standard output. When a rank ends
 * with an error, heturun ends all ranks and exits with the status of that rank.
 *
 * With --elastic, heturun starts the ranks under the first strategy that fits the slots. A rank
 * dies by a signal or a device fault; its slot is lost until FILE is rewritten. heturun then ends
 * all ranks and restarts them on the slots left. It does so, too, when a new FILE changes the slots
 * in use. The program resumes from its last checkpoint (ht_resume). heturun forwards SIGTERM,
 * SIGUSR1 and SIGUSR2 to all ranks, which save and end (ht_told_to_end), after SIGTERM within
 * --grace seconds. When such a signal ends one rank, all ranks end. heturun exits with 0 when all
 * ranks do, or with the status of a rank that ends with an error of its own. When no strategy fits,
 * heturun waits for a new FILE for HETU_TIMEOUT seconds.
 */
#include "place.h"
#include "ranks.h"
#include "fitting_strategies.h"
#include "support/hash.h"
#include "support/tool.h"

#include <argp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    KEY_ELASTIC = 0x100,
    KEY_SLOTS,
    KEY_CLUSTER,
    KEY_SHELL,
    KEY_HOLD,
    KEY_GRACE,
    DEFAULT_GRACE = 30, // seconds
    MOST_GRACE = 1000000,
    MOST_RANKS = 1 << 16,
    CANNOT_START = 127
};

typedef struct Options {
    const char *strategies, *slots, *cluster, *shell;
    bool hold;
    int grace, ranks; // seconds of --grace; number of -n, or 0: -n is not given
    char **words;
} Options;

static const char SSH[] =
    "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=2";

static const struct argp_option option_table[] = {
    {"ranks", 'n', "RANKS", 0, "Start so many ranks on this host, once", 0},
    {"elastic", KEY_ELASTIC, "STRATEGIES", 0,
     "A file of strategies, or a folder of files *.strategy, which count in the order of their "
     "names",
     0},
    {"shell", KEY_SHELL, "COMMAND", 0,
     "What starts a command on another machine, instead of ssh: COMMAND HOST WORDS", 0},
    {"hold", KEY_HOLD, 0, OPTION_HIDDEN,
     "On another machine: run the program while the standard input is open", 0},
    {"slots", KEY_SLOTS, "FILE", 0, "Where ranks may run: lines HOST slots=N", 0},
    {"cluster", KEY_CLUSTER, "FILE", 0,
     "The cluster that strategies name devices of by their classes", 0},
    {"grace", KEY_GRACE, "SECONDS", 0,
     "How long ranks may go on behind SIGTERM before they are killed; 30 without it", 0},
    {0},
};

static int read_grace(const char *text) {
    char *end;
    long seconds = strtol(text, &end, 10);
    if (end == text || *end || seconds < 0 || seconds > MOST_GRACE)
        tool_misused("--grace=%s is no number of seconds from 0 to %d", text, MOST_GRACE);
    return (int)seconds;
}

static int read_ranks(const char *text) {
    char *end;
    long ranks = strtol(text, &end, 10);
    if (end == text || *end || ranks < 1 || ranks > MOST_RANKS)
        tool_misused("-n %s is no number of ranks from 1 to %d", text, MOST_RANKS);
    return (int)ranks;
}

/* Ends heturun after a message when options contradict each other or are missing. */
static void check_options(const Options *options) {
    bool elastic = options->strategies || options->slots || options->cluster;
    if (!options->words) tool_misused("there is no program; give it behind the options");
    else if (options->ranks && elastic)
        tool_misused("-n starts ranks once; --elastic, --slots and --cluster are for runs "
                     "that are restarted");
    else if (!options->ranks && !elastic && !options->hold)
        tool_misused("say how many ranks: -n RANKS; or --elastic and --slots");
    else if (!options->ranks && !options->hold && (!options->strategies || !options->slots))
        tool_misused("--elastic and --slots are needed");
}

static error_t read_option(int key, char *value, struct argp_state *state) {
    Options *options = state->input;
    switch (key) {
    case KEY_ELASTIC: options->strategies = value; return 0;
    case KEY_SLOTS: options->slots = value; return 0;
    case KEY_CLUSTER: options->cluster = value; return 0;
    case KEY_SHELL: options->shell = value; return 0;
    case KEY_GRACE: options->grace = read_grace(value); return 0;
    case 'n': options->ranks = read_ranks(value); return 0;
    case KEY_HOLD: options->hold = true; return 0;
    case ARGP_KEY_ARG:
        options->words = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END: check_options(options); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- files and shared memory ---- */

/* Returns a hash of the slots file's path, equal for every heturun on the same file. */
static uint64_t hash_slots(const Options *options) {
    char *whole = realpath(options->slots, NULL);
    uint64_t hash = hash_text(HASH_START, whole ? whole : options->slots);
    free(whole);
    return hash;
}

/* Returns a hash that only this process has: several heturun -n may run at the same time. */
static uint64_t hash_process(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t number = (uint64_t)time.tv_nsec << 32 | (uint64_t)getpid();
    return hash_bytes(HASH_START, &number, sizeof number);
}

/* Returns the job. The job's folder of in-memory checkpoints depends only on the user and `hash`,
 * so that a later heturun on these slots finds it. */
static Job make_job(const Options *options, uint64_t hash) {
    char *copies = NULL;
    if (asprintf(&copies, "/dev/shm/hetu-copies-%d-%016" PRIx64, (int)geteuid(), hash) < 0) abort();
    return (Job){.words = options->words, .copies = copies, .shell = options->shell};
}

/* ---- ranks on this host, once ---- */

/* Reports the first rank that ended and returns its status; returns `status` if it succeeded. */
static int report_failure(const Ranks *ranks, int status) {
    const Rank *first = ranks->first;
    bool signaled = first->status > 128;
    if (!first->status) return status;
    tool_message(stderr, "error", "rank %d ended with %s %d%s", (int)(first - ranks->at),
                 signaled ? "signal" : "status", signaled ? first->status - 128 : first->status,
                 ranks->count > 1 ? "; the others are ended" : "");
    return first->status;
}

/* Starts the ranks and watches them until all have ended or one has failed. Returns the status. */
static int run_once(Job *job, const Place *place, int count, int grace) {
    Slots slots = slots_here(count);
    char *meeting = place_inside(place);
    job->meeting = meeting;
    job->once = true;
    Ranks ranks = ranks_start(job, &slots, count, NULL);
    bool all = false;
    int status = 0, told = 0;
    while (!all && !status) {
        told = ranks_signal();
        if (told == SIGTERM || told == SIGUSR1 || told == SIGUSR2) ranks_tell(&ranks, told);
        if (told && told != SIGUSR1 && told != SIGUSR2) break;
        ranks_look(&ranks);
        status = ranks_status(&ranks, &all);
    }
    if (told == SIGTERM) status = ranks_await_ends(&ranks, told, grace);
    else if (told == SIGINT || told == SIGHUP) status = 128 + told;
    else if (status) status = report_failure(&ranks, status);
    ranks_end(&ranks);
    free(ranks.at);
    free(slots.at);
    free(meeting);
    place_remove(job->copies);
    return status;
}

/* Returns HETU_HOSTS: the number of hosts that this machine simulates, for tests. */
static int host_parts(void) {
    const char *text = getenv("HETU_HOSTS");
    char *end;
    long parts = text && *text ? strtol(text, &end, 10) : 1;
    if (text && *text && (*end || parts < 1 || parts > 1024)) {
        tool_misused("HETU_HOSTS=%s is no number of hosts", text);
    }
    return (int)parts;
}

int main(int argc, char **argv) {
    static const struct argp parser = {
        .options = option_table,
        .parser = read_option,
        .args_doc = "PROGRAM ARGUMENTS...",
        .doc =
            "Starts the ranks of a program on this host (-n), or runs it on the slots there are, "
            "and again when ranks die or the slots change (--elastic)."};
    Options options = {.shell = SSH, .grace = DEFAULT_GRACE};
    Slots slots;
    ChoiceList list = {0};
    Place place = {.lock = -1};
    tool_begin("heturun", argc, argv);
    tool_parse(&parser, argc, argv, ARGP_IN_ORDER, &options);
    if (options.hold) return remote_hold(options.words);
    Arena *arena = arena_create();
    if (options.ranks && !program_check(arena, *options.words)) return CANNOT_START;
    sigset_t set = ranks_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    uint64_t hash = options.ranks ? hash_process() : hash_slots(&options);
    bool good =
        (options.ranks || (strategies_read(arena, options.strategies, options.cluster, &list) &&
                           slots_open(&slots, options.slots, host_parts()))) &&
        (options.ranks ? compiled_check_variable(arena, *options.words)
                       : compiled_check_list(arena, *options.words, &list)) &&
        place_open(&place, options.slots, hash);
    Job job = make_job(&options, hash);
    int status = 1;
    if (good && options.ranks) status = run_once(&job, &place, options.ranks, options.grace);
    else if (good) status = elastic_run(&job, &place, &slots, &list, options.grace);
    place_close(&place);
    arena_destroy(arena);
    return status;
}
