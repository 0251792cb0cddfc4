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
 * all ranks and restarts them on the slots left, also when a new FILE changes the slots in use. The
 * program resumes from its last checkpoint (ht_resume). heturun forwards SIGTERM, SIGUSR1 and
 * SIGUSR2 to all ranks, which save and end (ht_told_to_end), after SIGTERM within --grace seconds.
 * When such a signal ends one rank, all ranks end. heturun exits with 0 when all ranks do, or with
 * the status of a rank that ends with an error of its own. When no strategy fits, heturun waits for
 * a new FILE for HETU_TIMEOUT seconds.
 */
#define _GNU_SOURCE
#include "place.h"
#include "ranks.h"
#include "fitting_strategies.h"
#include "support/hash.h"
#include "support/tool.h"

#include <argp.h>
#include <errno.h>
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
    LOOK = 50,
    SETTLE = 300,
    REMOTE_SETTLE = 20000,
    DEFAULT_TIMEOUT = 600,
    DEFAULT_GRACE = 30,
    AGAIN = 1, // seconds in which a second SIGTERM is ignored, since launchers send one twice
    MOST_GRACE = 1000000,
    MOST_RANKS = 1 << 16
}; // LOOK and both SETTLE are milliseconds; TIMEOUT, GRACE and AGAIN are seconds

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

static int read_grace(const char *text, struct argp_state *state) {
    char *end;
    long seconds = strtol(text, &end, 10);
    if (end == text || *end || seconds < 0 || seconds > MOST_GRACE)
        argp_error(state, "--grace=%s is no number of seconds from 0 to %d", text, MOST_GRACE);
    return (int)seconds;
}

static int read_ranks(const char *text, struct argp_state *state) {
    char *end;
    long ranks = strtol(text, &end, 10);
    if (end == text || *end || ranks < 1 || ranks > MOST_RANKS)
        argp_error(state, "-n %s is no number of ranks from 1 to %d", text, MOST_RANKS);
    return (int)ranks;
}

/* Ends heturun after a message when options contradict each other or are missing. */
static void check_options(const Options *options, struct argp_state *state) {
    bool elastic = options->strategies || options->slots || options->cluster;
    if (!options->words)
        argp_error(state, "there is no program; give it behind the options");
    else if (options->ranks && elastic)
        argp_error(state, "-n starts ranks once; --elastic, --slots and --cluster are for runs "
                          "that are restarted");
    else if (!options->ranks && !elastic && !options->hold)
        argp_error(state, "say how many ranks: -n RANKS; or --elastic and --slots");
    else if (!options->ranks && !options->hold && (!options->strategies || !options->slots))
        argp_error(state, "--elastic and --slots are needed");
}

static error_t read_option(int key, char *value, struct argp_state *state) {
    Options *options = state->input;
    switch (key) {
    case KEY_ELASTIC: options->strategies = value; return 0;
    case KEY_SLOTS: options->slots = value; return 0;
    case KEY_CLUSTER: options->cluster = value; return 0;
    case KEY_SHELL: options->shell = value; return 0;
    case KEY_GRACE: options->grace = read_grace(value, state); return 0;
    case 'n': options->ranks = read_ranks(value, state); return 0;
    case KEY_HOLD: options->hold = true; return 0;
    case ARGP_KEY_ARG:
        options->words = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END: check_options(options, state); return 0;
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

/* Returns a number of this process alone: several heturun -n may run at the same time. */
static uint64_t hash_process(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t number = (uint64_t)time.tv_nsec << 32 | (uint64_t)getpid();
    return hash_bytes(HASH_START, &number, sizeof number);
}

/* Returns the job. Its folder of in-memory checkpoints depends only on the user and `hash`, so that
 * a later heturun on these slots finds it. */
static Job make_job(const Options *options, uint64_t hash) {
    char *copies = NULL;
    if (asprintf(&copies, "/dev/shm/hetu-copies-%d-%016" PRIx64, (int)geteuid(), hash) < 0) abort();
    return (Job){.words = options->words, .copies = copies, .shell = options->shell};
}

static bool all_slots_here(const Slots *slots) {
    bool here = true;
    for (int i = 0; i < slots->count; i++) here = here && slots->at[i].here;
    return here;
}

/* Returns the path of the file through which ranks meet: in this heturun's private folder, or for
 * ranks on several machines beside the slots file, which all machines see; NULL after a message. */
static char *choose_meeting(const Place *place, const Slots *slots) {
    char *whole = realpath(slots->path, NULL);
    char *path =
        all_slots_here(slots) ? place_inside(place) : place_beside(whole ? whole : slots->path);
    free(whole);
    return path;
}

/* Removes the in-memory checkpoints on the other machines, once for each machine. */
static void remove_remote(const Job *job, const Slots *slots) {
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s*", job->copies);
    for (int i = 0; i < slots->count; i++)
        if (!slots->at[i].here && !slots->at[i].number)
            remote_remove(job->shell, slots->at[i].host, pattern);
}

/* ---- watching ---- */

static sigset_t heeded(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    return set;
}

/* Waits for a signal of heeded(), at most `milliseconds`. Returns the signal, or 0 for SIGCHLD and
 * when no signal comes. */
static int await_signal(int milliseconds) {
    sigset_t set = heeded();
    int signal_number =
        sigtimedwait(&set, NULL, &(struct timespec){.tv_nsec = milliseconds * 1000000L});
    return signal_number > 0 && signal_number != SIGCHLD ? signal_number : 0;
}

typedef struct Outcome {
    bool again, refused; // restart the ranks; the program was not compiled with the strategy
    int status;          // exit status of heturun, when `again` is false
} Outcome;

/* Returns the status of the lowest rank that ended with an error; 0: no rank did. Sets *all to
 * whether all ranks have ended. */
static int worst_status(const Ranks *ranks, bool *all) {
    int worst = 0;
    *all = true;
    for (int rank = ranks->count - 1; rank >= 0; rank--) {
        *all = *all && ranks->at[rank].ended;
        worst = ranks->at[rank].ended && ranks->at[rank].status ? ranks->at[rank].status : worst;
    }
    return worst;
}

/* Marks the slots of dead ranks as lost and reports them; returns their number. */
static int lose_slots(const Ranks *ranks, int number) {
    int lost = 0;
    for (int rank = 0; rank < ranks->count; rank++) {
        Slot *slot = ranks->at[rank].slot;
        if (!ranks->at[rank].died) continue;
        slot->lost = true;
        lost++;
        char how[32] = "was not reached";
        if (ranks->at[rank].status == DEVICE_FAULT)
            snprintf(how, sizeof how, "has a fault of its device");
        else if (ranks->at[rank].status != UNREACHED)
            snprintf(how, sizeof how, "died of signal %d", ranks->at[rank].status - 128);
        fprintf(stderr, "heturun: rank %d of start %d %s; slot %d of %s is out\n", rank, number,
                how, slot->number, slot->host);
    }
    return lost;
}

/* Returns whether the first rank that ended reported a communication failure, whose cause is not
 * known. The rank's slot is lost when this is the second failure in DEFAULT_TIMEOUT seconds. */
static bool failed_to_exchange(const Ranks *ranks, int number) {
    static time_t last;
    const Rank *first = ranks->first;
    if (!first || first->status != EXCHANGE_FAULT) return false;
    first->slot->lost = last && time(NULL) - last < DEFAULT_TIMEOUT;
    last = time(NULL);
    fprintf(stderr, "heturun: rank %d of start %d could not exchange with others",
            (int)(first - ranks->at), number);
    if (first->slot->lost)
        fprintf(stderr, ", again; slot %d of %s is out", first->slot->number, first->slot->host);
    fputc('\n', stderr);
    return true;
}

/* Returns whether all ranks are on this machine. */
static bool all_here(const Ranks *ranks) {
    bool here = true;
    for (int rank = 0; rank < ranks->count; rank++) here = here && ranks->at[rank].slot->here;
    return here;
}

/* Returns the SIGTERM, SIGUSR1 or SIGUSR2 that ended a rank before it could save; 0: none did. Such
 * a signal to one rank is meant for the whole program. */
static int told_to_end(const Ranks *ranks, int number) {
    for (int rank = 0; rank < ranks->count; rank++) {
        int told = ranks->at[rank].died ? ranks->at[rank].status - 128 : 0;
        if (told != SIGTERM && told != SIGUSR1 && told != SIGUSR2) continue;
        fprintf(stderr,
                "heturun: rank %d of start %d was told to end by signal %d; all ranks end\n", rank,
                number, told);
        return told;
    }
    return 0;
}

/* Ends all ranks and decides on a restart, after a rank ended with an error. Waits for a moment
 * first, to notice a dead rank that caused the error. */
static Outcome decide_restart(Ranks *ranks, int number, int status) {
    struct timespec pause = {.tv_nsec = LOOK * 1000000L};
    int lost = 0;
    int settle = all_here(ranks) ? SETTLE : REMOTE_SETTLE;
    for (int waited = 0; waited < settle && !lost && ranks->at[0].status != NO_STRATEGY;
         waited += LOOK) {
        for (int rank = 0; rank < ranks->count; rank++) lost += ranks->at[rank].died;
        nanosleep(&pause, NULL);
        ranks_look(ranks);
    }
    ranks_end(ranks);
    int told = told_to_end(ranks, number);
    if (told) return (Outcome){.status = 128 + told};
    bool refused = ranks->at[0].status == NO_STRATEGY && !ranks->at[0].died;
    bool again = refused || lose_slots(ranks, number) > 0 || failed_to_exchange(ranks, number);
    return (Outcome){.again = again, .refused = refused, .status = status};
}

/* Returns whether the changed slots file moves ranks to other slots, or selects another
 * strategy. */
static bool runs_elsewhere(const Ranks *ranks, const Slots *slots, const ChoiceList *list,
                           const Choice *choice) {
    int count, rank = 0;
    if (strategies_fit(list, slots_left(slots), &count) != choice || count != ranks->count)
        return true;
    for (int i = 0; i < slots->count && rank < count; i++)
        if (!slots->at[i].lost) {
            const Slot *was = ranks->at[rank++].slot, *is = &slots->at[i];
            if (strcmp(was->host, is->host) || was->number != is->number || was->part != is->part)
                return true;
        }
    return false;
}

/* Points the running ranks at the slots of the file that was read again; no rank moves. */
static void rebind(Ranks *ranks, const Slots *slots) {
    for (int i = 0, rank = 0; i < slots->count && rank < ranks->count; i++)
        if (!slots->at[i].lost) ranks->at[rank++].slot = &slots->at[i];
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits up to `grace` seconds until all ranks have ended after a signal, then kills running ranks.
 * SIGINT, SIGHUP or a second SIGTERM ends the wait early. */
static Outcome await_ends(Ranks *ranks, int signal_number, int grace) {
    double since = now();
    bool all = false, cut = false;
    int status = 0;
    while (!all && !cut && now() < since + grace) {
        int more = await_signal(LOOK);
        cut = more == SIGINT || more == SIGHUP || (more == SIGTERM && now() > since + AGAIN);
        ranks_look(ranks);
        status = worst_status(ranks, &all);
    }
    if (!all)
        fprintf(stderr, "heturun: the ranks did not end by themselves%s\n",
                cut ? "" : " in time (--grace)");
    ranks_end(ranks);
    return (Outcome){.status = all ? status : 128 + signal_number};
}

/* One start of the ranks. */
typedef struct Start {
    const Choice *choice; // the strategy that they run under
    int number;           // from 1 on
    int grace;            // seconds that ranks have to end after a signal
} Start;

/* Watches the ranks until they need a restart or heturun must end. */
static Outcome watch(Ranks *ranks, Slots *slots, const ChoiceList *list, const Start *start) {
    for (int passed = 0;;) {
        int signal_sent = await_signal(LOOK);
        bool all,
            passes = signal_sent == SIGTERM || signal_sent == SIGUSR1 || signal_sent == SIGUSR2;
        if (passes) ranks_tell(ranks, passed = signal_sent);
        ranks_look(ranks);
        int status = worst_status(ranks, &all);
        if (signal_sent == SIGTERM || (passed && status == 128 + passed))
            return await_ends(ranks, passed, start->grace);
        if (passes) continue;
        if (signal_sent || (all && !status)) {
            ranks_end(ranks);
            return (Outcome){.status = signal_sent ? 128 + signal_sent : 0};
        }
        if (status) return decide_restart(ranks, start->number, status);
        if (!slots_changed(slots)) continue;
        if (runs_elsewhere(ranks, slots, list, start->choice)) {
            fprintf(stderr, "heturun: the slots have changed\n");
            ranks_end(ranks);
            return (Outcome){.again = true};
        }
        rebind(ranks, slots);
    }
}

static int patience(void) {
    const char *text = getenv("HETU_TIMEOUT");
    return text ? atoi(text) : DEFAULT_TIMEOUT;
}

/* Waits until a strategy fits the slots. Returns 0, or else the exit status of heturun. */
static int await_slots(Slots *slots, const ChoiceList *list) {
    int ranks, least = list->at[0].devices;
    for (int i = 0; i < list->count; i++)
        least = list->at[i].devices < least ? list->at[i].devices : least;
    if (strategies_fit(list, slots_left(slots), &ranks)) return 0;
    fprintf(stderr,
            "heturun: no strategy fits %d slots, the smallest is for %d devices; waiting for more "
            "in %s\n",
            slots_left(slots), least, slots->path);
    time_t until = time(NULL) + patience();
    for (;;) {
        int signal_sent = await_signal(LOOK);
        if (signal_sent) return 128 + signal_sent;
        if (slots_changed(slots) && strategies_fit(list, slots_left(slots), &ranks)) return 0;
        if (patience() && time(NULL) > until) {
            fprintf(stderr, "heturun: there were none for %d s (HETU_TIMEOUT)\n", patience());
            return 1;
        }
    }
}

/* Drops a strategy that the program was not compiled with; returns whether any strategy is left. */
static bool leave_out(ChoiceList *list, const Choice *choice) {
    fprintf(stderr, "heturun: strategy \"%s\" is left out%s\n", choice->name,
            list->count > 1 ? "" : "; there is no other");
    strategies_drop(list, choice);
    return list->count > 0;
}

/* Removes the meeting file of a start, and its folder unless it is that of `place`. */
static void leave_meeting(char *meeting, const Place *place) {
    unlink(meeting);
    *strrchr(meeting, '/') = 0;
    if (strcmp(meeting, place->folder) != 0) place_remove(meeting);
}

/* Starts and restarts the ranks until the program ends; returns the exit status. */
static int run(Job *job, const Place *place, Slots *slots, ChoiceList *list, int grace) {
    Outcome outcome = {.again = true};
    for (int number = 1; outcome.again; number++) {
        int count, status = await_slots(slots, list);
        if (status) {
            outcome.status = status;
            break;
        }
        const Choice *choice = strategies_fit(list, slots_left(slots), &count);
        fprintf(stderr, "heturun: start %d: %d rank%s under strategy \"%s\"\n", number, count,
                count == 1 ? "" : "s", choice->name);
        char *meeting = choose_meeting(place, slots);
        if (!meeting) {
            outcome.status = 1;
            break;
        }
        unlink(meeting);
        job->meeting = meeting;
        Ranks ranks = ranks_start(job, slots, count, choice);
        outcome = watch(&ranks, slots, list, &(Start){choice, number, grace});
        if (outcome.refused && !leave_out(list, choice)) outcome = (Outcome){.status = 1};
        free(ranks.at);
        leave_meeting(meeting, place);
        free(meeting);
    }
    place_remove(job->copies);
    if (outcome.status) remove_remote(job, slots);
    return outcome.status;
}

/* ---- ranks on this host, once ---- */

/* Reports the first rank that ended and returns its status; returns `status` if it succeeded. */
static int report_failure(const Ranks *ranks, int status) {
    const Rank *first = ranks->first;
    bool signaled = first->status > 128;
    if (!first->status) return status;
    fprintf(stderr, "heturun: rank %d ended with %s %d%s\n", (int)(first - ranks->at),
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
        told = await_signal(LOOK);
        if (told == SIGTERM || told == SIGUSR1 || told == SIGUSR2) ranks_tell(&ranks, told);
        if (told && told != SIGUSR1 && told != SIGUSR2) break;
        ranks_look(&ranks);
        status = worst_status(&ranks, &all);
    }
    if (told == SIGTERM)
        status = await_ends(&ranks, told, grace).status;
    else if (told == SIGINT || told == SIGHUP)
        status = 128 + told;
    else if (status)
        status = report_failure(&ranks, status);
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
        fprintf(stderr, "heturun: HETU_HOSTS=%s is no number of hosts\n", text);
        exit(1);
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
    argp_err_exit_status = 1;
    tool_begin("heturun", argc, argv);
    tool_check_options(option_table, argc, argv);
    argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &options);
    if (options.hold) return remote_hold(options.words);
    Arena *arena = arena_create();
    sigset_t set = heeded();
    sigprocmask(SIG_BLOCK, &set, NULL);
    uint64_t hash = options.ranks ? hash_process() : hash_slots(&options);
    bool good =
        (options.ranks || (strategies_read(arena, options.strategies, options.cluster, &list) &&
                           slots_open(&slots, options.slots, host_parts()))) &&
        place_open(&place, options.slots, hash);
    Job job = make_job(&options, hash);
    int status = 1;
    if (good && options.ranks)
        status = run_once(&job, &place, options.ranks, options.grace);
    else if (good)
        status = run(&job, &place, &slots, &list, options.grace);
    place_close(&place);
    arena_destroy(arena);
    return status;
}
