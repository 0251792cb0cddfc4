/* Finds rank, size and local rank in the variables of heturun, torchrun, mpirun and srun. Without
 * them, session/core/start_ranks.c decides whether the program starts ranks by itself. */
#include "transport/meet/rendezvous.h"

#include "base/files.h"

#include <hetu/kernel.h>

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUN_NAMES = 3 };

/* Environment variables of a launcher, used if `rank`, `size` and (unless NULL) `needs` are set. */
typedef struct Launcher {
    const char *rank, *size, *needs, *local;
    const char *run[RUN_NAMES]; // variables that identify the launch
    const char *nodes;          // number of machines
    const char *local_size;     // number of ranks on this machine
} Launcher;

static const Launcher launchers[] = {
    {.rank = "HETU_RANK",
     .size = "HETU_SIZE",
     .local = "HETU_LOCAL_RANK",
     .local_size = "HETU_LOCAL_SIZE"},
    {.rank = "HETU_RANK", .size = "WORLD_SIZE", .local = "HETU_LOCAL_RANK"},
    {.rank = "RANK",
     .size = "WORLD_SIZE",
     .local = "LOCAL_RANK",
     .run = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
     .local_size = "LOCAL_WORLD_SIZE"},
    {.rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local = "OMPI_COMM_WORLD_LOCAL_RANK",
     .run = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {.rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",
     .local = "SLURM_LOCALID",
     .run = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     .nodes = "SLURM_STEP_NUM_NODES"},
    {.rank = "SLURM_PROCID",
     .size = "SLURM_NTASKS",
     .needs = "SLURM_STEP_ID", // a batch script outside a step has the other variables, too
     .local = "SLURM_LOCALID",
     .run = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     .nodes = "SLURM_NNODES"},
};

static const char *value_of(const char *name) {
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

/* Returns the number in an environment variable; `missing` if it is not set. */
static int number_of(const char *name, int missing) {
    const char *text = value_of(name);
    if (!text) return missing;
    char *end;
    long number = strtol(text, &end, 10);
    if (*end || number < 0 || number > 1 << 20) ht_fail("%s=%s is no number of a rank", name, text);
    return (int)number;
}

static const Launcher *find_launcher(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const Launcher *launcher = &launchers[i];
        if (value_of(launcher->rank) && value_of(launcher->size) &&
            (!launcher->needs || value_of(launcher->needs)))
            return launcher;
    }
    return NULL;
}

bool launch_present(void) {
    return find_launcher() || value_of("HETU_RENDEZVOUS") || value_of("HETU_RANK") ||
           value_of("PMI_RANK") || value_of("PMIX_RANK");
}

/* Writes the name of this launch, made of the launcher's variables; "" if there are none. */
static void name_run(const Launcher *launcher, char *name, size_t size) {
    *name = 0;
    for (int i = 0; i < RUN_NAMES; i++) {
        size_t length = strlen(name);
        if (value_of(launcher->run[i]))
            snprintf(name + length, size - length, "-%s", value_of(launcher->run[i]));
    }
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
}

/* Sets launch->path to HETU_RENDEZVOUS, or to a file in HETU_RENDEZVOUS if that is a folder. */
static void find_path(Launch *launch) {
    const char *chosen = value_of("HETU_RENDEZVOUS");
    if (!chosen) return;
    int length = snprintf(launch->path, sizeof launch->path,
                          folder_is_trusted(chosen) ? "%s/hetu%s" : "%s", chosen, launch->run);
    if (length >= (int)sizeof launch->path) ht_fail("the path of HETU_RENDEZVOUS is too long");
}

bool launch_find(Launch *launch) {
    const Launcher *launcher = find_launcher();
    *launch = (Launch){.size = 1};
    if (!launcher && value_of("HETU_RENDEZVOUS"))
        ht_fail("HETU_RENDEZVOUS is set, but not which rank this is; set HETU_RANK and HETU_SIZE, "
                "or start it by torchrun or srun");
    if (!launcher) return false;
    launch->rank = number_of(launcher->rank, 0);
    launch->size = number_of(launcher->size, 1);
    launch->local = number_of(launcher->local, -1);
    int near = number_of(launcher->local_size, 0), nodes = number_of(launcher->nodes, 0);
    launch->one_node = launcher->local_size ? near == launch->size : nodes == 1;
    launch->spread = (near > 0 && near < launch->size) || nodes > 1;
    if (launch->rank >= launch->size)
        ht_fail("%s=%d, but there are %d ranks (%s), counted from 0", launcher->rank, launch->rank,
                launch->size, launcher->size);
    name_run(launcher, launch->run, sizeof launch->run);
    find_path(launch);
    return launch->size > 1;
}

/* Returns a variable's value in an environment; NULL: it is not set. */
static const char *value_in(const char *environment, size_t length, const char *name) {
    size_t head = strlen(name);
    for (const char *at = environment, *end = environment + length; at < end; at += strlen(at) + 1)
        if (!strncmp(at, name, head) && at[head] == '=' && at[head + 1]) return at + head + 1;
    return NULL;
}

/* Returns whether a variable has the same value, or none, in an environment and in this process.
 * Returns true if `name` is NULL. */
static bool shares_value(const char *environment, size_t length, const char *name) {
    const char *here = value_of(name), *there = name ? value_in(environment, length, name) : NULL;
    return here && there ? !strcmp(here, there) : here == there;
}

bool launch_shares(const char *environment, size_t length, int *rank) {
    const Launcher *launcher = find_launcher();
    const char *theirs = launcher ? value_in(environment, length, launcher->rank) : NULL;
    bool shares = theirs && shares_value(environment, length, launcher->size) &&
                  shares_value(environment, length, "HETU_RENDEZVOUS");
    for (int i = 0; shares && i < RUN_NAMES; i++)
        shares = shares_value(environment, length, launcher->run[i]);
    *rank = shares ? atoi(theirs) : -1;
    return shares;
}

/* ---- mpirun beyond a broken link ---- */

/* Returns whether a process name is of Open MPI's mpirun or its daemon. */
static bool is_mpirun(const char *name) {
    static const char *const names[] = {"mpirun", "mpiexec", "orterun",
                                        "orted",  "prterun", "prted"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

/* Writes the name of a process to `name`; "": there is no such process. */
static void name_process(int process, char *name, int size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", process);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(name, size, file)) *name = 0;
    name[strcspn(name, "\n")] = 0;
    if (file) fclose(file);
}

void launch_guard(void) {
    static const char script[] =
        "i=80; while [ $i -gt 0 ]; do sleep 0.1; kill -0 $1 || exit; i=$((i - 1)); done\n"
        "[ \"$(cat /proc/$1/comm)\" = $2 ] || exit\n"
        "read -r children </proc/$1/task/$1/children\n"
        "kill -KILL $1 $children\n"; // children: ssh to the other hosts, ranks that hang
    char name[32], process[16];
    char *words[] = {"sh", "-c", (char *)script, "sh", process, name, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t own;
    name_process((int)getppid(), name, sizeof name);
    if (!is_mpirun(name)) return;
    snprintf(process, sizeof process, "%d", (int)getppid());
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&own);
    posix_spawnattr_setflags(&own, POSIX_SPAWN_SETSID); // mpirun kills the sessions of its ranks
    for (int file = 0; file <= STDERR_FILENO; file++)
        posix_spawn_file_actions_addopen(&files, file, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnp(&(pid_t){0}, "sh", &files, &own, words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&own);
}
