/* Inputs of planners: JSON read strictly. What is missing, of the wrong kind, out of range or
 * unknown is an error of one line,
 *
 *     input.json: memory.per_layer[2]: -5 is not above 0
 *
 * with the file, the key's path and the reason. The first error counts; after it every function
 * still returns a legal value (the least allowed, an empty list), so that a reader reads on and
 * asks input_error once, before it plans.
 */
#ifndef PLANNER_KINDS_INPUT_H
#define PLANNER_KINDS_INPUT_H

#include "support/arena.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct Input Input;

/* A value of the input and the path of its key; json is NULL where there is none. */
typedef struct Field {
    Input *input;
    const json_t *json;
    const char *path; // "" is the whole input
} Field;

/* Reads a file, "-" is the standard input; the whole input. The JSON lives until input_close. */
Field input_open(Arena *arena, const char *file);
void input_close(Field any);

/* An input that is there already; `name` is what messages call it. It takes the JSON. */
Field input_of(Arena *arena, json_t *json, const char *name);

/* The first error's line, without a newline; NULL when there is none. */
const char *input_error(Field any);

/* Reports an error at a field: printf's reason. */
void field_refuse(Field field, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Refuses every key of an object that is not in `keys` (ends with NULL), and what is no object. */
void field_keys(Field object, const char *const *keys);

/* What an object has under a key, an error when it has nothing; without `field_has` before, all
 * keys are required. */
Field field_get(Field object, const char *key);
bool field_has(Field object, const char *key);

/* The length of a list; what is no list, or has fewer than `least` entries, is an error and gives
 * 0. */
int field_count(Field list, int least);
Field field_at(Field list, int index);

/* Numbers: at least `low`, or above 0, neither larger than 1e30 nor, above 0, smaller than 1e-30.
 * Integers: low .. high. */
double field_number(Field field, double low);
double field_positive(Field field);
int field_integer(Field field, int low, int high);
const char *field_string(Field field);

/* A list of at least `least` numbers, each above 0; the count into *count. */
double *field_positives(Field list, int least, int *count);
/* A list of at least `least` integers in low .. high; the count into *count. */
int *field_integers(Field list, int least, int low, int high, int *count);

#endif
