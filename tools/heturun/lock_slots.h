/* The private folder of a heturun: /dev/shm/heturun-UID-HASH.XXXXXX, or a folder of this name in
 * TMPDIR or /tmp when shared memory is full.
 *
 * HASH is a hash of the slots file's path; the suffix is random, and only the user may enter the
 * folder. heturun holds a lock in the folder, which the kernel releases when heturun ends. A second
 * heturun of the user on the same slots finds the lock and refuses to run. Other users can neither
 * fake a lock nor block the name.
 */
#ifndef HETURUN_LOCK_SLOTS_H
#define HETURUN_LOCK_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Place {
    char folder[256];
    int lock; // file descriptor of the locked file; -1: none
} Place;

/* Makes the folder and locks it. Returns false after a message when another heturun runs on these
 * slots, or no folder can be made. `slots`: the slots file; NULL with -n. */
bool place_open(Place *place, const char *slots, uint64_t hash);

void place_close(Place *place);

/* Returns the path of the file through which the ranks of a launch meet; free() it; NULL after a
 * message. Ranks that are all `here` meet in the private folder, or in a new one when its file
 * system has become full. Ranks on several machines meet in a private folder in the current folder,
 * which all of them see; folders of earlier launches on the same slots are removed. */
char *place_meeting(const Place *place, bool here);

/* Removes the meeting file, and its folder unless that is place->folder. Changes the text. */
void place_leave(const Place *place, char *meeting);

/* Removes the private folders whose paths begin with `head`, with their files. */
void place_remove(const char *head);

#endif
