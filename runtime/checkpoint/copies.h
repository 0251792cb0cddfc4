/* In-memory checkpoints: copies of parameters and states in shared memory, in one folder per host.
 * The copies survive the death of the processes.
 *
 * The bytes of all tensors (checkpoint/safetensors.h) are cut into ranges, one per rank. Each range
 * has two files, written in turn: while one is written, the other is valid. A file holds a head,
 * the header of the tensors, and the bytes of the range. The head is marked valid last, so a
 * process may be killed at any moment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COPY_TURNS = 2 };

typedef struct CopyHead {
    char magic[8];
    uint64_t whole;  // the copy's number if the file is valid; else 0
    uint64_t key;    // key of the folder of checkpoints
    uint64_t start;  // launch of the ranks that wrote the file; later launches have larger numbers
    uint64_t number; // number of the copy within the launch, from 1
    int64_t step;
    int32_t range, ranges; // index of the range; number of ranges, one for each rank
    /* Offset of the range after the header; bytes of the range; bytes of all ranges. */
    int64_t at, bytes, all;
    int64_t header_bytes;
    uint64_t sum; // checksum of head, header and range
} CopyHead;

typedef struct CopyFile {
    CopyHead *head; // NULL: no file
    size_t bytes;   // bytes of the file
} CopyFile;

/* Return the addresses of a file's tensor header and of its range. */
char *copy_header(const CopyFile *file);
char *copy_range(const CopyFile *file);

/* Opens and maps the file for head->range and head->number % COPY_TURNS, and reserves its bytes.
 * Creates the folder if it is missing. Returns 0, or an errno. */
int copy_open(const char *folder, const CopyHead *head, CopyFile *file);

/* copy_begin marks a file invalid and writes its head. copy_end, once header and range are written,
 * adds the checksum and marks the file valid. */
void copy_begin(CopyFile *file, const CopyHead *head);
void copy_end(CopyFile *file);

void copy_close(CopyFile *file);

/* Returns the folder to use for `named`; the caller frees it. If `named` exists and is not private
 * to this user, returns the folder NAME+.XXXXXX beside `named`, after creating it if needed. */
char *copies_folder(const char *named);

/* Returns the valid files of a folder, after checking their checksums. Reads only files whose index
 * in name order satisfies index % turns == turn, so that processes can divide the work. The caller
 * calls copy_close on each and frees the list. */
CopyFile *copies_read(const char *folder, int turn, int turns, int *count);

/* Removes the files of all launches except `but`; with `but` 0, removes the folder, too. */
void copies_remove(const char *folder, uint64_t but);

/* Returns the random key in FOLDER/copies, which ties in-memory copies to the checkpoints of that
 * folder; 0: none. `make`: creates a missing key, and sets errno if that fails. */
uint64_t copies_key(const char *folder, bool make);
