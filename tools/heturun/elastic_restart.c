/* Elastic runs: restarts the ranks when ranks or hosts are lost, or the slots change.
 *
 *     start 1: 4 ranks under strategy "dp4"      rank 3 dies: its slot is lost
 *     start 2: 3 ranks under strategy "dp3"      the program resumes from its last checkpoint
 *
 * choose_elastic_strategy.c chooses the strategy of a start.
 */
#include "ranks.h"

#include "support/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SETTLE = 300,         // milliseconds in which a dead rank on this machine is noticed
    REMOTE_SETTLE = 20000 // milliseconds in which a dead rank on another machine is noticed
};

/* Removes the in-memory checkpoints on the other machines, once for each machine. */
static void remove_remote(const Job *job, const Slots *slots) {
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s*", job->copies);
    for (int i = 0; i < slots->count; i++)
        if (!slots->at[i].here && !slots->at[i].number)
            remote_remove(job->shell, slots->at[i].host, pattern);
}

typedef struct Outcome {
    bool again, refused; // restart the ranks; the program was not compiled with the strategy
    int status;          // exit status of heturun, when `again` is false
} Outcome;

/* Marks all slots of a host that cannot run the program as lost, with a message. Returns how many
 * were not lost before. */
static int lose_host(Slots *slots, const char *host) {
    int lost = 0;
    for (int i = 0; i < slots->count; i++) {
        bool out = !slots->at[i].lost && !strcmp(slots->at[i].host, host);
        slots->at[i].lost |= out;
        lost += out;
    }
    if (lost)
        fprintf(stderr,
                "heturun: %s cannot run the program; its %d slot%s out (heturun --check says what "
                "it lacks)\n",
                host, lost, lost == 1 ? " is" : "s are");
    return lost;
}

/* Marks the slots of dead ranks as lost and reports them; returns their number. */
static int lose_slots(const Ranks *ranks, Slots *slots, int number) {
    int lost = 0;
    for (int rank = 0; rank < ranks->count; rank++) {
        Slot *slot = ranks->at[rank].slot;
        if (!ranks->at[rank].died) continue;
        if (ranks->at[rank].status == CANNOT_START) {
            lost += lose_host(slots, slot->host);
            continue;
        }
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
 * known. Marks its slot as lost when this is the second such failure in DEFAULT_TIMEOUT seconds. */
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
static Outcome decide_restart(Ranks *ranks, Slots *slots, int number, int status) {
    struct timespec pause = {.tv_nsec = RANKS_LOOK * 1000000L};
    int lost = 0;
    int settle = all_here(ranks) ? SETTLE : REMOTE_SETTLE;
    for (int waited = 0; waited < settle && !lost && ranks->at[0].status != NO_STRATEGY;
         waited += RANKS_LOOK) {
        for (int rank = 0; rank < ranks->count; rank++) lost += ranks->at[rank].died;
        nanosleep(&pause, NULL);
        ranks_look(ranks);
    }
    ranks_end(ranks);
    int told = told_to_end(ranks, number);
    if (told) return (Outcome){.status = 128 + told};
    bool refused = ranks->at[0].status == NO_STRATEGY && !ranks->at[0].died;
    bool again =
        refused || lose_slots(ranks, slots, number) > 0 || failed_to_exchange(ranks, number);
    return (Outcome){.again = again, .refused = refused, .status = status};
}

/* Returns whether the changed slots file moves ranks to other slots or selects another strategy. */
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

/* Sets the slots of the running ranks to those of the file that was read again. No rank moves. */
static void rebind(Ranks *ranks, const Slots *slots) {
    for (int i = 0, rank = 0; i < slots->count && rank < ranks->count; i++)
        if (!slots->at[i].lost) ranks->at[rank++].slot = &slots->at[i];
}

/* A launch of the ranks. */
typedef struct Start {
    const Choice *choice; // the strategy under which the ranks run
    int number;           // number of the launch, from 1 on
    int grace;            // seconds that ranks have to end after a signal
} Start;

/* Watches the ranks until they need a restart or heturun must end. */
static Outcome watch(Ranks *ranks, Slots *slots, const ChoiceList *list, const Start *start) {
    for (int passed = 0;;) {
        int signal_sent = ranks_signal();
        bool all,
            passes = signal_sent == SIGTERM || signal_sent == SIGUSR1 || signal_sent == SIGUSR2;
        if (passes) ranks_tell(ranks, passed = signal_sent);
        ranks_look(ranks);
        int status = ranks_status(ranks, &all);
        if (signal_sent == SIGTERM || (passed && status == 128 + passed))
            return (Outcome){.status = ranks_await_ends(ranks, passed, start->grace)};
        if (passes) continue;
        if (signal_sent || (all && !status)) {
            ranks_end(ranks);
            return (Outcome){.status = signal_sent ? 128 + signal_sent : 0};
        }
        if (status) return decide_restart(ranks, slots, start->number, status);
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
        int signal_sent = ranks_signal();
        if (signal_sent) return 128 + signal_sent;
        if (slots_changed(slots) && strategies_fit(list, slots_left(slots), &ranks)) return 0;
        if (patience() && time(NULL) > until) {
            tool_message(stderr, "error", "there were none for %d s (HETU_TIMEOUT)", patience());
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

int elastic_run(Job *job, const Place *place, Slots *slots, ChoiceList *list, int grace) {
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
        char *meeting = place_meeting(place, slots_all_here(slots));
        if (!meeting) {
            outcome.status = 1;
            break;
        }
        unlink(meeting); // the file of the last start
        job->meeting = meeting;
        Ranks ranks = ranks_start(job, slots, count, choice);
        outcome = watch(&ranks, slots, list, &(Start){choice, number, grace});
        if (outcome.refused && !leave_out(list, choice)) outcome = (Outcome){.status = 1};
        free(ranks.at);
        place_leave(place, meeting);
        free(meeting);
    }
    place_remove(job->copies);
    if (outcome.status) remove_remote(job, slots);
    return outcome.status;
}
