/* How a rank ends when something is wrong, and what it says it was doing. */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What failing knows of the ranks, and how they end; transport gives it (transport/world.c). */
typedef struct FailRanks {
    int (*rank)(void), (*size)(void);
    void (*leave)(bool told); // before this rank ends, at a signal or together with others: removes
                              // what a start has left behind
    void (*abort)(int status); // ends all ranks with this exit status, where they end together
} FailRanks;

/* Why a rank ends: its exit status, by which heturun knows (tools/heturun/ranks.h). */
typedef enum FailStatus {
    FAIL_PROGRAM = 1,  // an error of the program, or of another rank
    FAIL_DEVICE = 122, // its device or its machine is at fault: the program can go on without it
    FAIL_EXCHANGE =
        123 // what connects devices is at fault, or another rank has gone: the program can go on
} FailStatus;

/* From now on this process is one of several ranks. */
void fail_connect(const FailRanks *ranks);

/* Notes what this rank does from now on, "gpt.c:42 h3"; the text is kept by reference. NULL:
 * nothing in particular. */
void fail_doing(const char *what);

/* What was noted last. */
const char *fail_doing_what(void);

/* Notes of which part of a step that is, "backward, micro-batch 3"; kept by reference. NULL: of
 * none. */
void fail_part(const char *part);

/* All that this rank does, as messages have it: " (backward, micro-batch 3) at gpt.c:42 h2"; ""
 * where nothing was noted. Safe in a signal handler. */
void fail_describe(char *text, size_t size);

/* Notes the step, for messages. */
void fail_step(long long step);

/* Says which signal ends this rank, and what it was doing; `more` stands behind it. Safe in a
 * signal handler. */
void fail_ended_by(const char *signal_name, const char *more);

/* What a device noted when it began to communicate: "all-reduce", "gpt.c:42". */
typedef struct FailNote {
    const char *what, *where;
} FailNote;

/* Where the device notes it; NULL: nowhere. */
void fail_noted(const volatile FailNote *note);

/* As ht_fail, with another exit status. */
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
void fail_as(FailStatus status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* From any thread: ends this rank at once with a message that says `why`, and what the rank
 * does. */
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
void fail_end(const char *why);

#ifdef __cplusplus
}
#endif

#endif
