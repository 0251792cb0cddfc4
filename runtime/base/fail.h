/* Ends a rank after an error, with a message that says what the rank was doing. */
#pragma once

#include <hetu/kernel.h>

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Callbacks of the transport layer (transport/world.c), which knows the ranks and ends them. */
typedef struct FailRanks {
    int (*rank)(void), (*size)(void);
    void (*leave)(bool told);  // prepares the early end of this rank (world_leave)
    void (*abort)(int status); // ends all ranks with this exit status
} FailRanks;

/* Exit statuses of a rank, from which heturun learns the cause (tools/heturun/ranks.h). */
typedef enum FailStatus {
    FAIL_PROGRAM = 1,  // error in the program or in another rank
    FAIL_DEVICE = 122, // fault of this rank's device or host: the run can continue without the rank
    FAIL_EXCHANGE = 123 // fault of a connection, or another rank is lost: the run can continue
} FailStatus;

/* Sets the callbacks; from then on this process is one of several ranks. */
void fail_connect(const FailRanks *ranks);

/* Sets the current operation for messages, "gpt.c:42 h3"; NULL: none. Keeps the pointer. */
void fail_doing(const char *what);

/* Returns the current operation, as set by fail_doing. */
const char *fail_doing_what(void);

/* Sets a step's part for messages, "backward, micro-batch 3"; NULL: none. Keeps the pointer. */
void fail_part(const char *part);

/* Writes the current part and operation: " (backward, micro-batch 3) at gpt.c:42 h2"; "" if neither
 * is set. Safe in a signal handler. */
void fail_describe(char *text, size_t size);

/* Sets the current step for messages. */
void fail_step(long long step);

/* Prints which signal ends this rank, what it was doing, and `more`. Safe in a signal handler. */
void fail_ended_by(const char *signal_name, const char *more);

/* The collective that a device runs, "all-reduce", and its source location, "gpt.c:42". */
typedef struct FailNote {
    const char *what, *where;
} FailNote;

/* Sets the memory to which the device writes its note; NULL: none. */
void fail_noted(const volatile FailNote *note);

/* Ends the program as ht_fail does, with exit status `status`. */
HT_NORETURN void fail_as(FailStatus status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends this rank at once with a message: `why`, and what it was doing. Any thread may call it. */
HT_NORETURN void fail_end(const char *why);

#ifdef __cplusplus
}
#endif
