/* The named values of a program, which ht_fetch finds. */
#pragma once

#include <hetu/rt.h>

typedef enum NamedKind { NAMED_OUTPUT, NAMED_PARAM, NAMED_INPUT } NamedKind;

typedef struct Named {
    const char *name; // full name, scopes included
    NamedKind kind;
    int index; // index among the values of its kind
} Named;

/* The named values of a program, in search order. */
typedef struct NamedValues {
    Named *at;
    int count;
} NamedValues;

void named_add(NamedValues *values, Named one);
void named_free(NamedValues *values);

/* Adds the named values of a compiled program. */
void named_of_image(NamedValues *values, const ht_image *image);

/* Returns the Levenshtein distance of two names, ignoring case. */
int letters_between(const char *a, const char *b);

/* Returns the first value with this name; else the only value whose name ends with a dot and this
 * name: "h0.y" for "y". If there is none, or several, ends the program with a message that lists
 * similar names and begins with `model`: "the model gpt". */
Named named_find(const NamedValues *values, const char *name, const char *model);
