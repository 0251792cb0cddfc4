/* Names, literals and comments of emitted C. */
#pragma once

#include "ir/module.h"
#include "support/text.h"

/* Return `text` as a C identifier ("net-2" as net_2), as the inside of a C string, and as the
 * inside of a comment; and a number in decimal. */
const char *c_identifier(Arena *arena, const char *text);
const char *c_string(Arena *arena, const char *text);
const char *c_comment(Arena *arena, const char *text);
const char *c_number(Arena *arena, int64_t number);

/* Returns a name for a tensor in emitted C that differs from names that generated functions use:
 * `name` or, if `number` is not negative, NAME_NUMBER. */
const char *tensor_name(Arena *arena, const Rule *rule, const char *name, int number);

/* Returns a buffer (<hetu/rt.h>) as an element of a table: "640", "HT_KEPT + 64". */
const char *c_buffer(Arena *arena, int64_t buffer);

/* Returns whether `text` contains `name` as a whole word. */
bool has_word(const char *text, const char *name);

/* Return the C type of an element ("uint16_t" for bf16), and its ht_dtype ("HT_BF16"). */
const char *c_type(DType dtype);
const char *c_dtype(DType dtype);

/* Appends a shape: "(16, 128, 256)". */
void text_shape(Text *out, int rank, const int64_t *extent);

/* Returns the part of a path after its last slash. */
const char *file_name(const char *path);

/* Returns where an operator is in the source, and its scope (NULL: none): "gpt.c:42 h3". */
const char *op_place(Arena *arena, const Op *op, const char *scope);
