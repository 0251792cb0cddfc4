/* Tensors in a file of safetensors, or in all those of a folder, which may be under other names
 * there, transposed, and of other types. */
#ifndef CHECKPOINT_STORED_H
#define CHECKPOINT_STORED_H

#include "checkpoint/safetensors.h"

#include <stdbool.h>

typedef struct StoredFile {
    int descriptor;
    SafeFile file;
} StoredFile;

typedef struct Stored {
    int count;
    StoredFile *at;    // in the order of their names
    const char *names; // lines "NAME\tSTORED\t0", or 1: transposed; NULL: names are as they are
} Stored;

/* A tensor where it is stored. */
typedef struct StoredTensor {
    const StoredFile *in;
    const SafeTensor *tensor;
    bool transposed;
} StoredTensor;

/* Opens the file, or all files *.safetensors of the folder. Returns NULL, or the reason, which is
 * kept until the next call. */
const char *stored_open(Stored *stored, const char *path, const char *names);

/* The first of the names of a tensor that is there; * in a name stands for a number, the same on
 * both sides. */
bool stored_find(const Stored *stored, const char *name, StoredTensor *found);

/* What is wrong with a tensor that is to have this shape, "3, 4", once it is transposed; NULL:
 * nothing. The text is kept until the next call. */
const char *stored_wrong(const StoredTensor *stored, const char *shape);

/* Elements [from, to), in the order of the tensor that is not transposed, as f32. Returns NULL, or
 * the reason. */
const char *stored_read(const StoredTensor *stored, int64_t from, int64_t to, float *values);

/* Closes what is open. */
void stored_close(Stored *stored);

#endif
