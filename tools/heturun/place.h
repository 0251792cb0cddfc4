/* Where a heturun keeps what other users must not reach: a folder of its own in shared memory,
 * /dev/shm/heturun-UID-HASH.XXXXXX.
 *
 * HASH is of the slots' path; nobody can foresee the end of the name, and nobody else may enter the
 * folder. A lock in it says that its heturun runs, and goes with it, however it ends. So another
 * one of this user on the same slots sees it, and no other user can pretend to be one, or be in its
 * way.
 */
#ifndef HETURUN_PLACE_H
#define HETURUN_PLACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Place {
    char folder[256];
    int lock;
} Place;

/* Makes the folder; false after a message where another heturun runs on these slots, or there is no
 * room. */
bool place_open(Place *place, const char *slots, uint64_t hash);

void place_close(Place *place);

/* Where the ranks meet when all are on this machine: a file in the folder. Returns a path to
 * free(). */
char *place_inside(const Place *place);

/* Where the ranks meet when some are on other machines: a private folder beside the slots, of a
 * name that nobody can foresee. What dead ones have left there goes. Returns a path to free(), NULL
 * after a message. */
char *place_beside(const char *slots);

/* Removes the private folders, with what is in them, whose paths begin so. */
void place_remove(const char *head);

#endif
