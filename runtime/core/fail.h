/* How a rank ends when something is wrong, and what it says it was doing. */
#ifndef CORE_FAIL_H
#define CORE_FAIL_H

/* Notes what this rank does from now on, "gpt.c:42 h3"; the text is kept by reference. NULL: nothing in particular. */
void fail_doing(const char *what);

/* Notes the step, for messages. */
void fail_step(long long step);

/* When mpirun ends this rank because another one died, say what it was doing; and no longer. */
void fail_watch(void);
void fail_unwatch(void);

#endif
