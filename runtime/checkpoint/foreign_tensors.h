/* Reads tensors from one safetensors file, or from all such files of a folder. Stored tensors may
 * have other names, be transposed, or be F16 or BF16. */
#pragma once

#include "checkpoint/safetensors.h"

#include <stdbool.h>

typedef struct StoredFile {
    int descriptor;
    SafeFile file;
} StoredFile;

typedef struct Stored {
    int count;
    StoredFile *at;    // in the order of their names
    const char *names; // lines "NAME\tSTORED\t0", or 1: transposed; NULL: names are equal
} Stored;

/* A tensor in one of the files. */
typedef struct StoredTensor {
    const StoredFile *in;
    const SafeTensor *tensor;
    bool transposed;
} StoredTensor;

/* Opens the file, or all files *.safetensors of the folder. Returns NULL, or the reason, which is
 * kept until the next call. */
const char *stored_open(Stored *stored, const char *path, const char *names);

/* Finds a tensor: tries the lines of `names` that match, in order; false: no file has it. * stands
 * for a number: "h.*.w\tlayers.*.weight\t1" maps h.3.w to layers.3.weight, transposed. */
bool stored_find(const Stored *stored, const char *name, StoredTensor *found);

/* Returns why a stored tensor cannot be read as a parameter of this shape, such as "3, 4", or NULL
 * if it can. The text is valid until the next call. */
const char *stored_wrong(const StoredTensor *stored, const char *shape);

/* Reads elements [from, to) of the parameter, row-major, to `values`. Returns why not, or NULL. */
const char *stored_read(const StoredTensor *stored, int64_t from, int64_t to, float *values);

/* Verifies a rank's share of a manifest's checksums: rank r checks lines r, r + ranks, ... Returns
 * what is wrong, which is kept until the next call; NULL: nothing (verify_checksums.c). */
const char *verify_checksums(const StoredFile *stored, const char *manifest, int rank, int ranks);

/* Closes the files and frees their headers. */
void stored_close(Stored *stored);
