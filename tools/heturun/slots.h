/* The file of slots, which lists where ranks may run. A line has a host and its number of slots, 1
 * if not given; # begins a comment. Files for mpirun's --hostfile are read, too:
 *
 *     localhost slots=4
 *     node7
 *     node8 slots=4 max_slots=8
 *
 * A rewritten file replaces all slots; a lost slot that the new file lists is available again. */
#ifndef HETURUN_SLOTS_H
#define HETURUN_SLOTS_H

#include "support/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef struct Slot {
    const char *host;
    bool here;  // the host is this machine
    int number; // index among the machine's slots, from 0
    int part;   // simulated host of this machine (HETU_HOSTS); -1: not divided
    bool lost;  // gets no more ranks: one died on it, or its host cannot run the program
} Slot;

typedef struct Slots {
    const char *path;
    int parts; // number of simulated hosts on this machine, for tests; 1: not divided
    int count;
    Slot *at;
    struct stat seen, read; // status of the file at the last look, and when it was last read
} Slots;

/* Reads the file for the first time. Returns false after reporting errors. */
bool slots_open(Slots *slots, const char *path, int parts);

/* Reads the slots from a Slurm allocation's variables. Returns false after an error message. */
bool slots_of_slurm(Slots *slots);

/* Returns `count` slots on this host, which belong to no file; free slots.at. */
Slots slots_here(int count);

/* Reads the file again when it was rewritten; returns whether the slots changed. Reports an invalid
 * file and keeps the old slots. Ignores a file that is still being written, or empty, as at the
 * start of a write. A file with a comment alone lists no slots. */
bool slots_changed(Slots *slots);

/* Returns whether two slots are on one machine. This machine may have several names in the file. */
bool slots_same_machine(const Slot *a, const Slot *b);

/* Returns whether all slots are on this machine. */
bool slots_all_here(const Slots *slots);

/* Returns the number of slots that are not lost. */
int slots_left(const Slots *slots);

/* Returns the text of a file for slots_open; NULL after an error was reported. */
char *file_text(Arena *arena, Diag *diag, const char *path);

#endif
