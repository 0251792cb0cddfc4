/* Compiles and simulates a strategy in a child process: its seconds, and whether it fits. */
#include "planner/search/evaluate.h"

#include "planner/search/devices.h"
#include "planner/search/search_model.h"
#include "cost/cost.h"
#include "frontend/frontend.h"
#include "planner/simulate/simulate.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- compiling under a strategy ---- */

Unit *evaluation_compile(const EvaluationContext *context, const char *text, bool rough) {
    Unit *unit = frontend_under(context->frontend, text);
    PassOptions passes = {.compile = context->compile, .out = stdout, .no_fuse = context->no_fuse};
    passes.compile.estimate_only = rough;
    for (int m = 0; unit && m < unit->modules.count; m++) {
        unit->modules.at[m]->devices->target = context->target;
        unit->modules.at[m]->devices->target.cluster = context->devices->unbound;
    }
    return unit && passes_run(unit, &passes) ? unit : NULL;
}

/* ---- child processes ---- */

typedef struct Running {
    pid_t process; // 0: no process runs
    int from;      // read end of the process's pipe
    int number;    // number of the evaluation
} Running;

static void write_all(int to, const char *bytes, size_t length) {
    while (length) {
        ssize_t done = write(to, bytes, length);
        if (done < 0 && errno != EINTR) _exit(2);
        bytes += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
}

/* Compiles one strategy in this child process, writes the result to the pipe and exits. */
_Noreturn static void work(const EvaluationContext *context, const Evaluation *trial, int to) {
    Text out = {.arena = context->arena};
    if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout)) _exit(2);
    EvaluationContext own = *context;
    own.compile.estimate_only = trial->rough;
    Unit *unit = evaluation_compile(&own, trial->text, trial->rough);
    if (unit) trial->work(&own, unit, &out);
    write_all(to, text_bytes(&out), out.length);
    _exit(0);
}

static Running start(const EvaluationContext *context, const Evaluation *trial, int number) {
    int ends[2];
    fflush(stdout);
    fflush(stderr);
    if (pipe(ends)) BUG("no pipe for a trial: %s", strerror(errno));
    pid_t process = fork();
    if (process < 0) BUG("no process for a trial: %s", strerror(errno));
    if (!process) {
        close(ends[0]);
        work(context, trial, ends[1]);
    }
    close(ends[1]);
    return (Running){process, ends[0], number};
}

/* Appends a process's output to `out`; empties `out` if it failed. Returns whether it has ended. */
static bool take(Running *running, Text *out) {
    char bytes[1 << 14];
    int status = 0;
    ssize_t length = read(running->from, bytes, sizeof bytes);
    if (length > 0) text_append(out, bytes, (size_t)length);
    if (length > 0 || (length < 0 && errno == EINTR)) return false;
    close(running->from);
    while (waitpid(running->process, &status, 0) < 0 && errno == EINTR);
    if (status) out->length = 0;
    running->process = 0;
    return true;
}

static int processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > 16 ? 16 : (int)count;
}

Text *evaluations_run(Arena *arena, const EvaluationContext *context, const Evaluation *trials,
                      int count) {
    Text *out = arena_array(arena, Text, count + 1);
    Running running[16] = {{0}};
    struct pollfd wait[16];
    int begun = 0, done = 0, most = processors();
    for (int i = 0; i < count; i++) out[i].arena = arena;
    while (done < count) {
        for (int r = 0; r < most; r++) {
            if (!running[r].process && begun < count) {
                running[r] = start(context, &trials[begun], begun);
                begun++;
            }
            wait[r] = (struct pollfd){running[r].process ? running[r].from : -1, POLLIN, 0};
        }
        if (poll(wait, (nfds_t)most, -1) < 0) continue;
        for (int r = 0; r < most; r++)
            if (running[r].process && wait[r].revents)
                done += take(&running[r], &out[running[r].number]);
    }
    return out;
}

/* ---- verdicts ---- */

static int64_t state_bytes(const RoleMemory *memory) {
    return memory->bytes[MEMORY_PARAMETERS] + memory->bytes[MEMORY_STATES] +
           memory->bytes[MEMORY_GRADIENTS];
}

/* Returns how many bytes a device lacks to hold `bytes`, negative when it has some left; for a
 * device without bound, a negative number that grows with the bytes. */
static int64_t lack_of(const EvaluationContext *context, int device, int64_t bytes) {
    int64_t most = devices_memory(context->devices, device);
    return bytes - (most ? most : INT64_MAX / 2);
}

/* The state while a verdict is computed. */
typedef struct Judging {
    const EvaluationContext *context;
    Verdict *verdict;
} Judging;

/* Records the highest peak, and the device that lacks most bytes (without limits: the fullest). */
static void note_memory(void *context, int device, const RoleMemory *memory) {
    const Judging *judging = context;
    Verdict *verdict = judging->verdict;
    int64_t lack = lack_of(judging->context, device, memory->peak);
    verdict->most = memory->peak > verdict->most ? memory->peak : verdict->most;
    if (verdict->worst >= 0 && lack <= verdict->lack) return;
    verdict->worst = device;
    verdict->peak = memory->peak;
    verdict->lack = lack;
    verdict->states = state_bytes(memory);
}

/* Sets `programs` and, unless bytes are rough, the memory of one session with all programs. */
static void find_together(const EvaluationContext *context, const Unit *unit, Verdict *verdict) {
    const Strategy *strategy = unit->modules.at[0]->strategy;
    verdict->programs = session_programs(unit, strategy);
    if (verdict->programs < 2 || context->compile.estimate_only) return;
    const int64_t *bytes = session_bytes(unit->arena, unit, strategy);
    verdict->fullest = 0;
    for (int d = 1; d < unit_device_count(unit); d++)
        if (lack_of(context, d, bytes[d]) >
            lack_of(context, verdict->fullest, bytes[verdict->fullest]))
            verdict->fullest = d;
    verdict->together = bytes[verdict->fullest];
}

static void find_times(const SimulatedSteps *steps, Verdict *verdict) {
    double whole = steps->seconds[0] > 0 ? steps->seconds[0] : 1;
    verdict->seconds = steps->seconds[0];
    verdict->busiest = -1;
    for (int a = 0; a < steps->fold.actor_count; a++) {
        const ActorTime *time = &steps->times[a];
        verdict->others_exposed = fmax(verdict->others_exposed, time->exposed / whole);
        verdict->others_idle = fmax(verdict->others_idle, time->idle / whole);
        if (verdict->busiest >= 0 && time->computing / whole <= verdict->computing) continue;
        verdict->busiest = steps->fold.actors[a].devices[0];
        verdict->computing = time->computing / whole;
        verdict->exposed = time->exposed / whole;
        verdict->idle = time->idle / whole;
    }
}

Module *evaluation_module(const EvaluationContext *context, const Unit *unit) {
    for (int m = 0; m < unit->modules.count; m++)
        if (unit->modules.at[m]->kind == context->model->module->kind &&
            !strcmp(unit->modules.at[m]->name, context->model->module->name))
            return unit->modules.at[m];
    return unit->modules.at[0];
}

static void judge(const EvaluationContext *context, const Unit *unit, Text *out) {
    Verdict verdict = {.good = true, .seconds = NAN, .worst = -1};
    SimulateOptions options = {.steps = 1};
    const SimulatedSteps *steps =
        steps_simulate(unit->arena, evaluation_module(context, unit), &options);
    if (steps->error) strncpy(verdict.unknown, steps->error, sizeof verdict.unknown - 1);
    else find_times(steps, &verdict);
    for (int m = 0; m < unit->modules.count; m++)
        devices_memory_each(unit->modules.at[m], note_memory, &(Judging){context, &verdict});
    find_together(context, unit, &verdict);
    text_append(out, (const char *)&verdict, sizeof verdict);
}

const Verdict *verdicts_find(Arena *arena, const EvaluationContext *context,
                             const char *const *texts, int count, bool rough) {
    Verdict *verdicts = arena_array(arena, Verdict, count + 1);
    Evaluation *trials = arena_array(arena, Evaluation, count + 1);
    for (int i = 0; i < count; i++) trials[i] = (Evaluation){texts[i], judge, rough};
    const Text *answers = evaluations_run(arena, context, trials, count);
    for (int i = 0; i < count; i++)
        if (answers[i].length == sizeof *verdicts)
            memcpy(&verdicts[i], answers[i].bytes, sizeof *verdicts);
    return verdicts;
}
