/* The private folder of a heturun: /dev/shm/heturun-UID-HASH.XXXXXX, or in TMPDIR or /tmp where
 * shared memory is full.
 *
 * HASH is a hash of the slots file's path; the suffix is random, and only the user may enter the
 * folder. heturun holds a lock in the folder, which the kernel releases when heturun ends. A second
 * heturun of the user on the same slots finds the lock and refuses to run. Other users can neither
 * fake a lock nor block the name.
 */
#ifndef HETURUN_PLACE_H
#define HETURUN_PLACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Place {
    char folder[256];
    int lock;
} Place;

/* Makes the folder. Returns false after a message when another heturun runs on these slots, or no
 * folder can be made. */
bool place_open(Place *place, const char *slots, uint64_t hash);

void place_close(Place *place);

/* Returns the meeting file of ranks that are all on this machine: a path in the folder, or in a new
 * one where its file system has become full; free() it. NULL after a message. */
char *place_inside(const Place *place);

/* Makes a private folder with a random name beside the slots file, where ranks on several machines
 * meet. Removes such folders of dead heturun. Returns a path to free(), or NULL after a message. */
char *place_beside(const char *slots);

/* Removes the private folders whose paths begin with `head`, with their files. */
void place_remove(const char *head);

#endif
