/* Text buffers and templates: how the compiler writes.
 *
 * A template shows the output as it will look, with $name where a value stands; the emitters use
 * templates instead of chains of prints.
 *
 *     text_fill(&out, "static void $name(float *y) // ($shape)\n", "name", name, "shape", shape,
 *         NULL);
 *
 * `$$` is a dollar sign. A name that is not given is a bug.
 */
#ifndef SUPPORT_TEXT_H
#define SUPPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

/* A growing string in an arena; always terminated by a null byte. Begin with {.arena = arena}. */
typedef struct Text {
    Arena *arena;
    char *bytes;
    size_t length, capacity;
} Text;

void text_append(Text *text, const char *bytes, size_t length);
void text_string(Text *text, const char *string);
void text_print(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a number of a list: behind a comma, unless it is the first. Lists are as long as there
 * are devices, and text_print takes its time. */
void text_item(Text *text, bool first, int64_t number);

/* Appends `template` with each $name replaced; the arguments are name, value, name, value, ...,
 * NULL. */
void text_fill(Text *text, const char *template, ...) __attribute__((sentinel));

/* The bytes so far; never NULL. */
const char *text_bytes(const Text *text);

#endif
