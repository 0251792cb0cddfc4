/* Words of emitted C. */
#ifndef EMIT_WORDS_H
#define EMIT_WORDS_H

#include "ir/module.h"
#include "support/text.h"

/* `text` as a C identifier, as the inside of a C string, and as the inside of a comment; a
 * number. */
const char *c_identifier(Arena *arena, const char *text);
const char *c_string(Arena *arena, const char *text);
const char *c_comment(Arena *arena, const char *text);
const char *c_number(Arena *arena, int64_t number);

/* A buffer of <hetu/rt.h> as a number of a table. */
const char *c_buffer(Arena *arena, int64_t buffer);

/* Whether `name` stands in `text` as a whole word. */
bool has_word(const char *text, const char *name);

/* "float", "uint16_t", ...; "HT_F32", ... */
const char *c_type(DType dtype);
const char *c_dtype(DType dtype);

/* "(16, 128, 256)". */
void text_shape(Text *out, int rank, const int64_t *extent);

/* The last part of a path. */
const char *file_name(const char *path);

/* "gpt.c:42 h3"; the scope is left out when NULL. */
const char *op_place(Arena *arena, const Op *op, const char *scope);

#endif
