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

/* The bytes in front of the tensors, which are in the order of their places; free() them. Their
 * number goes to *bytes, and is a multiple of 8. */
char *safetensors_header(const SafeFile *file, size_t *bytes);

/* Reads the header of an open file. Returns NULL, or why it is no such file, kept until the next
 * call: torn ones are none, nor are those whose tensors overlap or leave holes. */
const char *safetensors_read(int descriptor, SafeFile *file);

/* The tensor, or the note, of a name; NULL: there is none. */
const SafeTensor *safetensors_find(const SafeFile *file, const char *name);
const char *safetensors_note(const SafeFile *file, const char *key);

/* Frees what safetensors_read has made. */
void safetensors_free(SafeFile *file);

#endif
