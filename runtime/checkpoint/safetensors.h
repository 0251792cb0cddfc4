/* Safetensors files (https://github.com/huggingface/safetensors#format):
 *
 *     8 bytes      length of the header, little-endian
 *     header       JSON: {"__metadata__":{...},"w":{"dtype":"F32","shape":[3, 4],"data_offsets":
 *                  [0,48]},...}, padded with spaces
 *     tensors      row-major, one after another without gaps
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A tensor of a file. */
typedef struct SafeTensor {
    const char *name, *dtype; // dtype: "F32"
    const char *shape;        // "3, 4"; "": a scalar
    int64_t begin, end;       // byte offsets from the first tensor's begin
} SafeTensor;

/* An entry of the file's metadata. */
typedef struct SafeNote {
    const char *key, *value;
} SafeNote;

typedef struct SafeFile {
    int count, note_count;
    SafeTensor *at;
    SafeNote *notes;
    int64_t data, bytes; // offset of the tensors in the file; bytes of all tensors
} SafeFile;

/* Returns the bytes before the tensors: length and JSON header; the caller frees them. `file->at`
 * must be sorted by offset. *bytes receives their number, a multiple of 8. */
char *safetensors_header(const SafeFile *file, size_t *bytes);

/* Reads the header of an open file into *file. Returns NULL, or why the file is invalid: truncated,
 * or with tensors that overlap or leave gaps. The text is valid until the next call. */
const char *safetensors_read(int descriptor, SafeFile *file);

/* Return the tensor of a name, or the value of a metadata key; NULL if there is none. */
const SafeTensor *safetensors_find(const SafeFile *file, const char *name);
const char *safetensors_note(const SafeFile *file, const char *key);

/* Frees what safetensors_read has made. */
void safetensors_free(SafeFile *file);
