/* Counts SIGTERM, SIGUSR1 and SIGUSR2. session/control/save_on_signal.c acts on them. */
#include "base/signals.h"

#include "base/fail.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum {
    SIGNALS = 3,
    AGAIN = 1,   // seconds in which a repeated SIGTERM does not end the rank; launchers send two
    LATE = 4,    // ticks until rank 0 raises a signal that only other ranks received
    MOST = 0xff, // largest count in a heartbeat
    HEEDED = 1 << SIGNALS,
    OPEN = 1 << (SIGNALS + 1)
};

/* A signal that the runtime has taken over. */
typedef struct Taken {
    int number;
    const char *name;
    struct sigaction given; // the previous action; rank 0 calls it if it is main's handler
    atomic_bool handled;    // main has a handler
    atomic_bool inside;     // main's handler is running
    atomic_int count;       // times that this rank received the signal
    atomic_long first;      // seconds at which this rank first received the signal
    atomic_int elsewhere;   // on rank 0: the largest count of another rank
    int waited;             // on rank 0: ticks for which another rank's count has exceeded rank 0's
    int raised;             // on rank 0: the largest count for which rank 0 raised the signal
} Taken;

static Taken taken[SIGNALS] = {{.number = SIGTERM, .name = "SIGTERM"},
                               {.number = SIGUSR1, .name = "SIGUSR1"},
                               {.number = SIGUSR2, .name = "SIGUSR2"}};
static bool is_open, calls_main;
static atomic_bool heeded;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long)time.tv_sec;
}

static void call_main(Taken *own, siginfo_t *info, void *context) {
    if (atomic_exchange(&own->inside, true)) // main's handler calls the handler that it replaced
        return;
    if (own->given.sa_flags & SA_SIGINFO) own->given.sa_sigaction(own->number, info, context);
    else own->given.sa_handler(own->number);
    atomic_store(&own->inside, false);
}

static void end_now(const Taken *own) {
    static const char unsaved[] =
        "; nothing is saved: main has called neither ht_save nor ht_told_to_end so far";
    fail_ended_by(own->name, calls_main && !atomic_load(&heeded) ? unsaved : "");
    signal(own->number, SIG_DFL);
    raise(own->number);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    int error = errno;
    Taken *own = taken;
    while (own->number != number) own++;
    if (atomic_load(&own->inside)) return;
    bool second =
        atomic_load(&own->count) && number == SIGTERM && now() > atomic_load(&own->first) + AGAIN;
    if (!atomic_fetch_add(&own->count, 1)) atomic_store(&own->first, now());
    if (calls_main && atomic_load(&own->handled)) call_main(own, info, context);
    else if (!atomic_load(&own->handled) && (second || !atomic_load(&heeded))) end_now(own);
    errno = error;
}

static bool is_ours(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

static bool is_handled(const struct sigaction *action) {
    return !is_ours(action) && (action->sa_flags & SA_SIGINFO ||
                                (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN));
}

/* Installs the runtime's handler for a signal whose action is `had`. */
static void take(Taken *own, const struct sigaction *had) {
    struct sigaction action = {.sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    own->given = *had;
    if (is_handled(had)) action = *had;
    action.sa_sigaction = on_signal;
    action.sa_flags |= SA_SIGINFO;
    atomic_store(&own->handled, is_handled(had));
    sigaction(own->number, &action, NULL);
}

void told_open(bool main_here) {
    calls_main = main_here;
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction had;
        sigaction(taken[i].number, NULL, &had);
        if (had.sa_flags & SA_SIGINFO || had.sa_handler != SIG_IGN) take(&taken[i], &had);
    }
    is_open = true;
}

void told_close(void) {
    for (int i = 0; is_open && i < SIGNALS; i++) {
        struct sigaction has;
        if (!sigaction(taken[i].number, NULL, &has) && is_ours(&has))
            sigaction(taken[i].number, &taken[i].given, NULL);
    }
    is_open = false;
}

void told_look(void) {
    for (int i = 0; is_open && i < SIGNALS; i++) {
        struct sigaction has;
        sigaction(taken[i].number, NULL, &has);
        if (is_handled(&has)) take(&taken[i], &has);
    }
}

void signals_heed(void) { atomic_store(&heeded, true); }

bool told_heeded(void) { return atomic_load(&heeded); }

static bool has_come(const Taken *own) {
    return atomic_load(&own->count) || atomic_load(&own->elsewhere);
}

int told_signal(void) {
    for (int i = 0; i < SIGNALS; i++)
        if (has_come(&taken[i]) && (taken[i].number == SIGTERM || !atomic_load(&taken[i].handled)))
            return taken[i].number;
    return 0;
}

int told_unhandled(void) {
    for (int i = 0; i < SIGNALS; i++)
        if (has_come(&taken[i]) && !atomic_load(&taken[i].handled)) return taken[i].number;
    return 0;
}

const char *told_name(int number) {
    for (int i = 0; i < SIGNALS; i++)
        if (taken[i].number == number) return taken[i].name;
    return "a signal";
}

/* Returns whether main handles a signal, including handlers that told_look has not found yet. */
static bool main_handles(const Taken *own) {
    struct sigaction has;
    return atomic_load(&own->handled) || (!sigaction(own->number, NULL, &has) && is_handled(&has));
}

uint32_t told_heartbeat(void) {
    uint32_t heartbeat = 0;
    for (int i = 0; is_open && i < SIGNALS; i++) {
        int count = atomic_load(&taken[i].count);
        heartbeat |= calls_main ? (uint32_t)main_handles(&taken[i]) << i
                                : (uint32_t)(count < MOST ? count : MOST) << 8 * i;
    }
    return heartbeat | (calls_main && is_open ? OPEN : 0) |
           (calls_main && atomic_load(&heeded) ? HEEDED : 0);
}

void told_hear(uint32_t heartbeat) {
    for (int i = 0; i < SIGNALS; i++) {
        int theirs = (int)(heartbeat >> 8 * i & MOST);
        if (!calls_main && heartbeat & OPEN) atomic_store(&taken[i].handled, heartbeat >> i & 1);
        else if (calls_main && theirs > atomic_load(&taken[i].elsewhere))
            atomic_store(&taken[i].elsewhere, theirs);
    }
    if (!calls_main && heartbeat & HEEDED) signals_heed();
}

void told_tick(void) {
    for (int i = 0; is_open && i < SIGNALS; i++) {
        Taken *own = &taken[i];
        int elsewhere = atomic_load(&own->elsewhere);
        bool missed = atomic_load(&own->handled) && elsewhere > atomic_load(&own->count) &&
                      elsewhere > own->raised;
        own->waited = missed ? own->waited + 1 : 0;
        if (own->waited < LATE) continue;
        own->waited = 0;
        own->raised = elsewhere;
        kill(getpid(), own->number);
    }
}
