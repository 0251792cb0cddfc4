/* ht_progress: one line that says how far a training is. On a terminal it is written over itself,
 * elsewhere there are about twenty of them. */
#ifndef SESSION_OBSERVE_PROGRESS_H
#define SESSION_OBSERVE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* What has been printed so far. */
typedef struct Progress {
    int64_t lines, first;  // the step behind which it was printed first
    double begun, printed; // seconds
} Progress;

/* What there is to say. */
typedef struct ProgressStep {
    int64_t done, steps;
    int64_t tokens; // of a step; 0: not known
    float loss, rate;
} ProgressStep;

/* Prints the line on standard error when it is due: behind the first and the last step, and often
 * enough in between. */
void progress_print(Progress *progress, const ProgressStep *step);

#endif
