/* The file of slots: where ranks may run. A line is a host, and how many slots it has; # begins a
 * comment:
 *
 *     localhost slots=4
 *     node7
 *
 * What the file lists when it is written anew counts from then on; a slot that was lost is back
 * then, if it is listed.
 */
#ifndef HETURUN_SLOTS_H
#define HETURUN_SLOTS_H

#include "support/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef struct Slot {
    const char *host;
    bool here;  // the host is this machine
    int number; // among the host's slots, from 0 on
    int part;   // of this machine, where it is divided (HETU_HOSTS); else -1
    bool lost;  // a rank has died there
} Slot;

typedef struct Slots {
    const char *path;
    int parts; // into which this machine is divided, for tests; 1: into none
    int count;
    Slot *at;
    struct stat seen, read; // the file as it was last looked at, and as it was read
} Slots;

/* Reads the file for the first time. Returns whether that could be done; errors are reported. */
bool slots_open(Slots *slots, const char *path, int parts);

/* Whether the file was written since it was read; then it is read again. What is no file of slots
 * is reported and changes nothing. A file that is still being written is let alone, and so is an
 * empty one: a writer begins with that; a comment alone says that there are none. */
bool slots_changed(Slots *slots);

/* Slots that are not lost. */
int slots_left(const Slots *slots);

/* Returns the text of a file, of which diagnostics show lines; NULL after it has reported an
 * error. */
char *file_text(Arena *arena, Diag *diag, const char *path);

#endif
