/* Text buffers and templates, with which the compiler writes its output.
 *
 * A template shows the output, with $name in place of each value:
 *
 *     text_fill(&out, "static void $name(float *y) // ($shape)\n", "name", name, "shape", shape,
 *         NULL);
 *
 * `$$` is a dollar sign. A name without value is a bug. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

/* A growing string in an arena, ended by a null byte. Initialize it with {.arena = arena}. */
typedef struct Text {
    Arena *arena;
    char *bytes;
    size_t length, capacity;
} Text;

void text_append(Text *text, const char *bytes, size_t length);
void text_string(Text *text, const char *string);
void text_print(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a number of a list, after a comma unless it is the first. Faster than text_print. */
void text_item(Text *text, bool first, int64_t number);

/* Appends a word of a command that a user may copy into a shell, in quotes where it needs them. */
void text_shell(Text *text, const char *word);

/* Appends `template` with each $name replaced; arguments: name, value, name, value, ..., NULL. */
void text_fill(Text *text, const char *template, ...) __attribute__((sentinel));

/* Returns the text; never NULL. */
const char *text_bytes(const Text *text);

/* Returns whether both strings are NULL, or equal. */
bool text_same(const char *a, const char *b);

/* Returns the index of a string in a list, which may have NULLs; -1: the list lacks it. */
int text_find(const char *const *list, int count, const char *string);
