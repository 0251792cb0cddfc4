/* Copies of what ranks have learnt, in shared memory, which outlives them; a folder of its own on
 * every host.
 *
 * The bytes of all tensors (checkpoint/safetensors.h) are cut into ranges, one a rank. For each
 * range that a host keeps there are two files, in which copies take turns: while one is being
 * written the other is whole. A file has a head, then the header of the tensors, then the bytes of
 * the range. Its head says that it is whole last of all, so a process may be killed at any moment.
 */
#ifndef CHECKPOINT_COPIES_H
#define CHECKPOINT_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COPY_TURNS = 2 };

typedef struct CopyHead {
    char magic[8];
    uint64_t whole;  // the number, when all is there; else 0
    uint64_t key;    // of the folder of checkpoints that they go with
    uint64_t start;  // of the ranks that made it; later ones have greater numbers
    uint64_t number; // of the copy among those of the start, from 1 on
    int64_t step;
    int32_t range, ranges;
    int64_t at, bytes,
        all; // where the range begins behind the header, its bytes, and those of all ranges
    int64_t header_bytes;
    uint64_t sum; // of header and range
} CopyHead;

typedef struct CopyFile {
    CopyHead *head; // NULL: there is none
    size_t bytes;   // of the file
} CopyFile;

/* The header of the tensors in a file, and its range. */
char *copy_header(const CopyFile *file);
char *copy_range(const CopyFile *file);

/* Opens the file for a head's range and turn, with memory for all of it; makes the folder. Returns
 * 0, or an errno. */
int copy_open(const char *folder, const CopyHead *head, CopyFile *file);

/* Before a file is written, and when header and range are there. */
void copy_begin(CopyFile *file, const CopyHead *head);
void copy_end(CopyFile *file);

void copy_close(CopyFile *file);

/* The folder that stands for one that is named; free() it. It is another, beside it, where what has
 * the name is another user's: NAME+.XXXXXX, found by all processes of this user once one has made
 * it. */
char *copies_folder(const char *named);

/* All files of a folder that are whole and undamaged, of those whose place in the order of their
 * names is `turn` of `turns`; copy_close each and free the list. */
CopyFile *copies_read(const char *folder, int turn, int turns, int *count);

/* Removes the files of a folder but those of a start. With 0 it removes all, and the folder. */
void copies_remove(const char *folder, uint64_t but);

/* The number in FOLDER/copies, which says that copies go with the checkpoints there; `make`: where
 * there is none, it is made. 0: there is none. */
uint64_t copies_key(const char *folder, bool make);

#endif
