/* Files of tensors as the Hugging Face hub stores them
 * (https://github.com/huggingface/safetensors#format): eight bytes with the length of a header, the
 * header, JSON, and then the tensors, row-major, one behind another without gaps.
 */
#ifndef CHECKPOINT_SAFETENSORS_H
#define CHECKPOINT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

typedef struct SafeTensor {
    const char *name, *dtype; // "F32"
    const char *shape;        // "3, 4"; "" of a number
    int64_t begin, end;       // bytes, from the first tensor's begin on
} SafeTensor;

typedef struct SafeNote {
    const char *key, *value;
} SafeNote;

typedef struct SafeFile {
    int count, note_count;
    SafeTensor *at;
    SafeNote *notes;
    int64_t data, bytes; // where the tensors begin in the file, and how much they take
} SafeFile;

/* Returns the bytes before the tensors: length and JSON header; the caller frees them. `file->at`
 * must be sorted by offset. *bytes receives their number, a multiple of 8. */
char *safetensors_header(const SafeFile *file, size_t *bytes);

/* Reads the header of an open file. Returns NULL, or why the file is invalid: truncated, or with
 * tensors that overlap or leave gaps. The text is valid until the next call. */
const char *safetensors_read(int descriptor, SafeFile *file);

/* Return the tensor of a name, or the value of a metadata key; NULL if there is none. */
const SafeTensor *safetensors_find(const SafeFile *file, const char *name);
const char *safetensors_note(const SafeFile *file, const char *key);

/* Frees what safetensors_read has made. */
void safetensors_free(SafeFile *file);

#endif
