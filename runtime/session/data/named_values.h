/* What ht_fetch finds: the values of a program that have names. */
#ifndef SESSION_DATA_NAMED_VALUES_H
#define SESSION_DATA_NAMED_VALUES_H

#include <hetu/rt.h>

typedef enum NamedKind { NAMED_OUTPUT, NAMED_PARAM, NAMED_INPUT } NamedKind;

typedef struct Named {
    const char *name; // full, scopes included
    NamedKind kind;
    int index; // among those of its kind
} Named;

/* The values of a program, in the order in which they are looked through. */
typedef struct NamedValues {
    Named *at;
    int count;
} NamedValues;

void named_add(NamedValues *values, Named one);
void named_free(NamedValues *values);

/* Adds the values of a program that hetucc compiled. */
void named_of_image(NamedValues *values, const ht_image *image);

/* The first value of the name; where there is none, the only one whose name ends with it behind a
 * dot. Without either the program ends with one line, which has those whose names are near; `model`
 * is how that line begins: "the model gpt". */
Named named_find(const NamedValues *values, const char *name, const char *model);

#endif
