/* How a rank ends when something is wrong, and what it says it was doing. */
#ifndef CORE_FAIL_H
#define CORE_FAIL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Notes what this rank does from now on, "gpt.c:42 h3"; the text is kept by reference. NULL: nothing in particular. */
void fail_doing(const char *what);

/* What was noted last. */
const char *fail_doing_what(void);

/* Notes the step, for messages. */
void fail_step(long long step);

/* When mpirun ends this rank because another one died, say what it was doing; and no longer. */
void fail_watch(void);
void fail_unwatch(void);

/* What a device noted when it began to communicate: "all-reduce", "gpt.c:42". */
typedef struct FailNote {
    const char *what, *where;
} FailNote;

/* Ends the program with a message unless fail_deadline(0, NULL) is called within `seconds` (0: never). `note` is what the device does then,
 * or NULL. */
void fail_deadline(int seconds, const volatile FailNote *note);

#ifdef __cplusplus
}
#endif

#endif
