/* libhetu-start: chooses how threads and ranks wait, OpenBLAS's kernels and how Open MPI uses TCP,
 * before these libraries read the environment.
 *
 * libhetu links this library after OpenMP, so that the loader runs this library's constructor
 * first. Spinning threads are faster where each thread has its own core, and slower where threads
 * share a core. A rank of two threads on the two hyperthreads of a core runs at half its speed.
 * A program that contains this file (an emitted folder's) starts itself again with the choice, for
 * the libraries' constructors run before the program's.
 * Variables that the user has set stay as they are. HETU_VERBOSE=1 prints the choice.
 * tools/manual/command-line.md lists all variables of a program. */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PROCESSORS = 4096, LINE = 4096 };

/* Properties of this host, and the number of ranks started on it. */
typedef struct Host {
    int processors, cores; // processors: hyperthreads, of which a core may have several
    bool is_virtual;       // in a virtual machine, which hides the processors that share a core
    int ranks, threads;    // ranks of the program on this host; threads of each rank
} Host;

static int number_of(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

static bool is_set(const char *name) {
    const char *text = getenv(name);
    return text && *text;
}

static bool has_set; // whether this process has changed its environment

/* Sets a variable unless the environment has it. */
static void set_default(const char *name, const char *value) {
    if (is_set(name)) return;
    setenv(name, value, 1);
    has_set = true;
}

/* Reads the first line of a file, at most LINE - 1 bytes; sets `line` to "" on failure. */
static void read_line(const char *path, char *line) {
    FILE *file = fopen(path, "re");
    *line = 0;
    if (file && !fgets(line, LINE, file)) *line = 0;
    if (file) fclose(file);
}

/* Counts processors that are the first of their core, or whose core is unknown; at least 1. */
static int count_cores(int processors) {
    int cores = 0;
    for (int processor = 0; processor < processors && processor < MOST_PROCESSORS; processor++) {
        char path[128], line[LINE];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 processor);
        read_line(path, line);
        cores += !*line || atoi(line) == processor;
    }
    return cores < 1 ? 1 : cores;
}

/* Returns whether this is a virtual machine, which may present hyperthreads as cores. */
static bool is_virtual(void) {
    char line[LINE];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
    if (file) fclose(file);
    return found;
}

/* Returns the number of ranks that the launcher started on this host; 1 if it is not known. */
static int count_ranks(void) {
    static const char *const names[] = {"HETU_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_NTASKS_PER_NODE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (number_of(names[i]) > 0) return number_of(names[i]);
    return 1;
}

static Host look_around(void) {
    cpu_set_t own;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    Host host = {.processors = online < 1 ? 1 : (int)online, .ranks = count_ranks()};
    host.cores = count_cores(host.processors);
    host.is_virtual = is_virtual();
    host.threads = host.processors / host.ranks;
    if (!sched_getaffinity(0, sizeof own, &own) && CPU_COUNT(&own) < host.threads)
        host.threads = CPU_COUNT(&own);
    if (number_of("OMP_NUM_THREADS") > 0) host.threads = number_of("OMP_NUM_THREADS");
    if (host.threads < 1) host.threads = 1;
    return host;
}

/* Returns whether waiting threads must leave their core to other threads. */
static bool shares_cores(const Host *host) {
    return host->threads > 1 && (host->is_virtual || host->ranks * host->threads > host->cores);
}

/* Sets OPENBLAS_CORETYPE by an Intel processor's instruction sets: an OpenBLAS older than the
 * processor takes kernels without AVX, which are far slower. Returns the choice for a message. */
static const char *choose_kernels(void) {
    if (is_set("OPENBLAS_CORETYPE")) return "as the environment says";
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_is("intel") || !__builtin_cpu_supports("avx2") ||
        !__builtin_cpu_supports("fma"))
        return "of its own choice";
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    set_default("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell");
    return wide ? "SkylakeX (OPENBLAS_CORETYPE)" : "Haswell (OPENBLAS_CORETYPE)";
#else
    return "of its own choice";
#endif
}

static void choose_defaults(void) {
    Host host = look_around();
    bool chosen = is_set("OMP_WAIT_POLICY") || is_set("GOMP_SPINCOUNT") || is_set("KMP_BLOCKTIME");
    bool sleep = shares_cores(&host), yield = host.ranks > host.processors;
    if (!chosen && sleep) set_default("OMP_WAIT_POLICY", "passive");
    if (yield) set_default("OMPI_MCA_mpi_yield_when_idle", "1");
    // Open MPI's puts over TCP halve the bandwidth of messages in both directions at once.
    set_default("OMPI_MCA_btl_tcp_flags", "send");
    const char *kernels = choose_kernels();
    if (is_set("HETU_VERBOSE") && strcmp(getenv("HETU_VERBOSE"), "0") != 0 &&
        !number_of("OMPI_COMM_WORLD_RANK") && !number_of("HETU_RANK"))
        fprintf(stderr,
                "hetu: %d rank%s on %d processor%s of %d core%s%s, %d thread%s a rank; "
                "threads that wait %s%s; OpenBLAS takes kernels %s\n",
                host.ranks, host.ranks > 1 ? "s" : "", host.processors,
                host.processors > 1 ? "s" : "", host.cores, host.cores > 1 ? "s" : "",
                host.is_virtual ? " (virtual)" : "", host.threads, host.threads > 1 ? "s" : "",
                chosen  ? "do as the environment says"
                : sleep ? "sleep (OMP_WAIT_POLICY=passive)"
                        : "spin",
                yield ? ", ranks that wait yield" : "", kernels);
}

#ifdef HETU_IN_PROGRAM
/* Chooses, and starts the program again with the choice; returns in the program started again. */
__attribute__((constructor)) static void start(int argc, char **argv) {
    (void)argc;
    bool again = is_set("HETU_STARTED");
    unsetenv("HETU_STARTED");
    if (!again) choose_defaults();
    if (again || !has_set) return;
    setenv("HETU_STARTED", "1", 1);
    execv("/proc/self/exe", argv);
    unsetenv("HETU_STARTED");
}
#else
__attribute__((constructor)) static void start(void) { choose_defaults(); }
#endif
