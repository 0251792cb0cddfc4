/* Writes a checkpoint while training goes on, all ranks together.
 *
 * 1. Each rank writes one range of the file FOLDER/step-N.part.
 * 2. Each rank writes FOLDER/step-N.part.RANK with the checksums of its range.
 * 3. When rank 0 has found the checksums of all ranks, it renames the file to step-N.safetensors.
 * 4. Rank 0 writes step-N.manifest, without which a checkpoint is not valid.
 *
 * Every file is on the disk (fsync) before it gets its name. The ranks share only the folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes that one checksum covers; no checksum covers two ranges. */
enum { CHUNK_BYTES = 1 << 22 };

/* The last line of a manifest, with the checksum of the lines before it. */
#define MANIFEST_END "end %08x\n"

typedef struct WritingPlan {
    char folder[3072];
    int64_t step;
    int rank, ranks;
    int keep;     // number of newest checkpoints to keep; 0: all
    char *header; // bytes before the tensors; malloc'ed, as is `range`
    size_t header_bytes;
    char *range;       // this rank's bytes of the tensors
    int64_t at, bytes; // offset of the range after the header, and its size
    int error;         // errno of a failure before the writing; 0: none
    int task;          // number of this checkpoint among those that the ranks have begun
    double patience;   // seconds that rank 0 waits for the other ranks' ranges; 0: no limit
    void (*report)(int task, int error); // tells rank 0 of this rank's failure
    /* On rank 0: returns the errno of the first failed rank after *rank, sets *rank; 0: none. */
    int (*reported)(int task, int *rank);
} WritingPlan;

typedef struct Writing Writing;

/* Starts a thread that writes the checkpoint, and takes ownership of the plan's memory. */
Writing *writing_begin(const WritingPlan *plan);

/* On rank 0, before any rank begins: creates the folder and the .part file, removes leftovers of
 * killed programs, and sets plan->error. A rank that fails removes the file for good. */
void writing_clear(WritingPlan *plan);

/* Returns whether the writing thread has finished; true for NULL. */
bool writing_done(const Writing *writing);

/* Frees the memory of a plan that is not carried out. */
void writing_drop(WritingPlan *plan);

/* Waits for the thread. Returns whether the checkpoint was written; true for NULL. The thread has
 * reported a failure on standard error, and removed the partial files. */
bool writing_end(Writing *writing);

/* Returns the plan that a thread is writing. */
const WritingPlan *writing_plan(const Writing *writing);

/* Computes the byte range [*begin, *end) of a rank: an even split in units of 4 bytes. */
void writing_range(int64_t bytes, int rank, int ranks, int64_t *begin, int64_t *end);

/* Returns the steps of all checkpoints in a folder, valid or not, newest first; free() the list. */
int64_t *writing_steps(const char *folder, int *count);

/* Writes the path of a checkpoint's file: suffix "part", "safetensors" or "manifest". */
void writing_path(char *path, size_t room, const char *folder, int64_t step, const char *suffix);
