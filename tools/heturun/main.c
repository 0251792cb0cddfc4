/* heturun: starts the ranks of a hetucc program, on this host, on several, or on the available
 * slots. On slots, it restarts the ranks when ranks die or the slots change (elastic training).
 *
 *     heturun -n RANKS PROGRAM ARGUMENTS...
 *     heturun --hosts FILE PROGRAM ARGUMENTS...
 *     heturun --elastic STRATEGIES --slots FILE -- PROGRAM ARGUMENTS...
 *     heturun --check --hosts FILE PROGRAM
 *
 * With -n, rank 0 has the standard input; all ranks share the standard output. When a rank ends
 * with an error, heturun ends all ranks and exits with the status of that rank. With --hosts, ranks
 * run on the slots of FILE, by ssh or srun, once. --check says what the hosts lack.
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
#include "check_hosts.h"
#include "lock_slots.h"
#include "ranks.h"
#include "choose_elastic_strategy.h"
#include "support/hash.h"
#include "support/tool.h"

#include <argp.h>
#include <fcntl.h>
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
    KEY_HOSTS,
    KEY_CHECK,
    KEY_HOLD,
    KEY_PROBE,
    KEY_GRACE,
    DEFAULT_GRACE = 30, // seconds
    MOST_GRACE = 1000000,
    MOST_RANKS = 1 << 16
};

typedef struct Options {
    const char *strategies, *slots, *cluster, *shell;
    const char *hosts; // file of --hosts; NULL: not given
    bool hold, probe, check;
    int grace, ranks; // seconds of --grace; number of -n, or 0: -n is not given
    char **words;
} Options;

static const char SSH[] =
    "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=2";

static const char SRUN[] = "srun --quiet --overlap --unbuffered --mpi=none --cpu-bind=none "
                           "--nodes=1 --ntasks=1";
static const char SLURM[] = "slurm"; // --hosts=slurm: the hosts of the allocation

static const struct argp_option option_table[] = {
    {"ranks", 'n', "RANKS", 0, "Start so many ranks on this host, or on the first slots of --hosts",
     0},
    {"hosts", KEY_HOSTS, "FILE", 0,
     "Start a rank on each slot of FILE, which has lines HOST slots=N; slurm: on the hosts of the "
     "allocation",
     0},
    {"check", KEY_CHECK, 0, 0, "Start nothing, and say what the hosts of --hosts lack", 0},
    {"export", 'x', "NAME[=VALUE]", 0,
     "Give ranks on other hosts this variable, too; may be repeated", 0},
    {"elastic", KEY_ELASTIC, "STRATEGIES", 0,
     "A file of strategies, or a folder of files *.strategy, which count in the order of their "
     "names",
     0},
    {"shell", KEY_SHELL, "COMMAND", 0,
     "What starts a command on another machine, instead of ssh: COMMAND HOST WORDS", 0},
    {"hold", KEY_HOLD, 0, OPTION_HIDDEN,
     "On another machine: run the program while the standard input is open", 0},
    {"probe", KEY_PROBE, 0, OPTION_HIDDEN, "On another machine: answer --check", 0},
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

/* Ends heturun after a message when --hosts and --check contradict other options. */
static void check_hosts(const Options *options) {
    if (options->hosts && options->slots)
        tool_misused("--hosts and --slots both say where ranks run; give --slots with --elastic, "
                     "else --hosts");
    else if (options->hosts && options->strategies && !strcmp(options->hosts, SLURM))
        tool_misused("--elastic watches a file of hosts; write one: scontrol show hostnames "
                     ">hosts, and --hosts hosts");
    else if (options->check && !options->hosts)
        tool_misused("--check looks at the hosts of --hosts FILE");
    else if (options->check && options->strategies)
        tool_misused("--check starts no ranks; leave --elastic out");
    else if (options->cluster && !options->strategies)
        tool_misused("--cluster is for the strategies of --elastic; a program has the cluster of "
                     "hetucc --cluster");
}

/* Ends heturun after a message when options contradict each other or are missing. */
static void check_options(const Options *options) {
    bool elastic = options->strategies || options->slots || options->cluster;
    if (options->hold || options->probe) return;
    if (options->hosts || options->check) check_hosts(options);
    if (!options->words && !options->check)
        tool_misused("there is no program; give it behind the options");
    else if (options->ranks && elastic)
        tool_misused("-n starts ranks once; --elastic, --slots and --cluster are for runs "
                     "that are restarted");
    else if (!options->ranks && !elastic && !options->hosts)
        tool_misused("say how many ranks: -n RANKS; or --hosts; or --elastic and --slots");
    else if (elastic && (!options->strategies || !(options->slots || options->hosts)))
        tool_misused("--elastic and --slots are needed");
}

static error_t read_option(int key, char *value, struct argp_state *state) {
    Options *options = state->input;
    const char *why;
    switch (key) {
    case KEY_ELASTIC: options->strategies = value; return 0;
    case KEY_SLOTS: options->slots = value; return 0;
    case KEY_CLUSTER: options->cluster = value; return 0;
    case KEY_SHELL: options->shell = value; return 0;
    case KEY_GRACE: options->grace = read_grace(value); return 0;
    case 'n': options->ranks = read_ranks(value); return 0;
    case KEY_HOSTS: options->hosts = value; return 0;
    case KEY_CHECK: options->check = true; return 0;
    case KEY_HOLD: options->hold = true; return 0;
    case KEY_PROBE: options->probe = true; return 0;
    case 'x':
        if ((why = remote_export(value)))
            tool_misused("-x %.*s: %s", (int)strcspn(value, "="), value, why);
        return 0;
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

/* ---- ranks that are started once ---- */

/* The ranks' meeting: none has come, rank 0 has written its address, or all have met. */
typedef enum Meeting { NONE_CAME, RANK_0_CAME, MET } Meeting;

/* Reports a rank on another host that is not reached or could not be started there. */
static void report_unstarted(const Job *job, const Rank *failed, int rank, Meeting meeting) {
    char *shell = remote_shell_name(job->shell);
    if (failed->status == UNREACHED && meeting == MET)
        tool_message(
            stderr, "error",
            "the connection to %s ended, where rank %d runs (%s ended with %d); the others "
            "are ended",
            failed->slot->host, rank, shell, UNREACHED);
    else if (failed->status == UNREACHED)
        tool_message(stderr, "error",
                     "rank %d was not reached on %s (%s ended with %d); the others are ended. "
                     "heturun --check --hosts FILE says what hosts lack",
                     rank, failed->slot->host, shell, UNREACHED);
    else
        tool_message(stderr, "error",
                     "rank %d cannot be started on %s; the others are ended. heturun --check "
                     "--hosts FILE says what hosts lack",
                     rank, failed->slot->host);
    free(shell);
}

/* Reports the first rank that failed and returns its status; returns `status` if none did. */
static int report_failure(const Job *job, const Ranks *ranks, Meeting meeting, int status) {
    const Rank *failed = ranks_failed(ranks);
    if (!failed) return status;
    int number = (int)(failed - ranks->at);
    bool here = failed->slot->here, signaled = failed->status > 128;
    if (failed->process < 0) return failed->status; // fail_start has said it
    if (!here && (failed->status == UNREACHED || failed->status == CANNOT_START)) {
        report_unstarted(job, failed, number, meeting);
        return failed->status;
    }
    tool_message(stderr, "error", "rank %d%s%s ended with %s %d%s", number, here ? "" : " on ",
                 here ? "" : failed->slot->host, signaled ? "signal" : "status",
                 signaled ? failed->status - 128 : failed->status,
                 ranks->count > 1 ? "; the others are ended" : "");
    return failed->status;
}

/* Updates *meeting by the meeting file, which is there from rank 0's arrival until the ranks have
 * met; then removes the file's folder. */
static void look_at_meeting(const Place *place, char *file, Meeting *meeting) {
    if (*meeting == MET) return;
    bool there = !access(file, F_OK);
    char *slash = strrchr(file, '/');
    if (*meeting == RANK_0_CAME && !there) {
        place_leave(place, file);
        *slash = '/';
        *meeting = MET;
    } else if (there) *meeting = RANK_0_CAME;
}

/* Starts and watches the ranks until all end, one fails or a signal comes. Returns the status. */
static int run_once(Job *job, const Place *place, const Slots *slots, int count, int grace) {
    bool all = false, far = !slots_all_here(slots);
    char *file = place_meeting(place, !far);
    Meeting meeting = far ? NONE_CAME : MET;
    if (!file) return 1;
    job->meeting = file;
    job->once = true;
    Ranks ranks = ranks_start(job, slots, count, NULL);
    int status = 0, told = 0;
    while (!all && !status) {
        told = ranks_signal();
        if (told == SIGTERM || told == SIGUSR1 || told == SIGUSR2) ranks_tell(&ranks, told);
        if (told && told != SIGUSR1 && told != SIGUSR2) break;
        ranks_look(&ranks);
        status = ranks_status(&ranks, &all);
        look_at_meeting(place, file, &meeting);
    }
    if (told == SIGTERM) status = ranks_await_ends(&ranks, told, grace);
    else if (told == SIGINT || told == SIGHUP) status = 128 + told;
    else if (status) status = report_failure(job, &ranks, meeting, status);
    ranks_end(&ranks);
    place_leave(place, file);
    free(ranks.at);
    free(file);
    if (*job->copies) place_remove(job->copies);
    return status;
}

/* Sets *slots to the slots of ranks that are started once: on this host, or of --hosts. Returns the
 * number of ranks; 0 after an error message. */
static int find_slots(const Options *options, Slots *slots, int parts) {
    int ranks = options->ranks;
    if (!options->hosts) *slots = slots_here(ranks);
    else if (!strcmp(options->hosts, SLURM) ? !slots_of_slurm(slots)
                                            : !slots_open(slots, options->hosts, parts))
        return 0;
    if (ranks <= slots->count && slots->count) return ranks ? ranks : slots->count;
    if (!slots->count) tool_message(stderr, "error", "%s lists no slots", slots->path);
    else
        tool_message(stderr, "error", "-n %d asks for more ranks than the %d slot%s of %s", ranks,
                     slots->count, slots->count == 1 ? "" : "s", slots->path);
    return 0;
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

/* Carries out --hosts without --elastic, with or without --check. Returns the exit status. */
static int run_on_hosts(const Options *options) {
    Slots slots;
    Place place = {.lock = -1};
    int count = find_slots(options, &slots, host_parts()), status = 1;
    if (!count) return 1;
    if (options->check) return check_print(&slots, options->shell, options->words);
    Arena *arena = arena_create();
    sigset_t set = ranks_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    // The program of a login node may be another one, or none.
    bool good = !slots.at[0].here || program_check(arena, *options->words);
    uint64_t hash = hash_process();
    Job job = make_job(options, hash);
    job.copies = ""; // copies in memory are for ranks that are started again
    if (!good) status = CANNOT_START;
    else if (compiled_check_variable(arena, *options->words) &&
             place_open(&place, options->hosts, hash))
        status = run_once(&job, &place, &slots, count, options->grace);
    place_close(&place);
    arena_destroy(arena);
    return status;
}

/* Opens /dev/null for closed standard files, so that no pipe gets their numbers. */
static void open_standard_files(void) {
    int file;
    do file = open("/dev/null", O_RDWR);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0) close(file);
}

int main(int argc, char **argv) {
    static const struct argp parser = {
        .options = option_table,
        .parser = read_option,
        .args_doc = "PROGRAM ARGUMENTS...",
        .doc = "Starts the ranks of a program on this host (-n) or on several (--hosts), or runs "
               "it on "
               "the slots there are, and again when ranks die or the slots change (--elastic)."};
    Options options = {.grace = DEFAULT_GRACE};
    Slots slots;
    ChoiceList list = {0};
    Place place = {.lock = -1};
    open_standard_files();
    tool_begin("heturun", argc, argv);
    tool_parse(&parser, argc, argv, ARGP_IN_ORDER, &options);
    if (options.hold) return remote_hold(options.words);
    if (options.probe) return probe_answer(options.words);
    if (!options.shell) options.shell = options.hosts && !strcmp(options.hosts, SLURM) ? SRUN : SSH;
    bool once = !options.strategies;
    if (once && options.hosts) return run_on_hosts(&options);
    Arena *arena = arena_create();
    if (once && !program_check(arena, *options.words)) return CANNOT_START;
    if (!options.slots) options.slots = options.hosts;
    sigset_t set = ranks_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    uint64_t hash = once ? hash_process() : hash_slots(&options);
    bool good = (once ? find_slots(&options, &slots, 1) > 0
                      : strategies_read(arena, options.strategies, options.cluster, &list) &&
                            slots_open(&slots, options.slots, host_parts())) &&
                (once ? compiled_check_variable(arena, *options.words)
                      : compiled_check_list(arena, *options.words, &list)) &&
                place_open(&place, options.slots, hash);
    Job job = make_job(&options, hash);
    int status = 1;
    if (good && once) status = run_once(&job, &place, &slots, options.ranks, options.grace);
    else if (good) status = elastic_run(&job, &place, &slots, &list, options.grace);
    place_close(&place);
    arena_destroy(arena);
    return status;
}
