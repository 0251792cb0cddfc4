/* Inputs of planners: JSON, read strictly. An error is one line with the file, the key's path and
 * the reason: a missing or unknown key, or a value of the wrong type or out of range.
 *
 *     input.json: memory.per_layer[2]: -5 is not above 0
 *
 * Only the first error is kept. After this error every function still returns a legal value (the
 * least allowed, an empty list). Readers go on, and ask input_error once, before planning. */
#pragma once

#include "support/arena.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct Input Input;

/* A value of the input and the path of its key; json is NULL if the input lacks the value. */
typedef struct Field {
    Input *input;
    const json_t *json;
    const char *path; // "" is the whole input
} Field;

/* Reads a file ("-": standard input) and returns the whole input, which lives until input_close. */
Field input_open(Arena *arena, const char *file);
void input_close(Field any);

/* Returns JSON in memory as an input, which then owns the JSON; `name` is its name in messages. */
Field input_of(Arena *arena, json_t *json, const char *name);

/* Returns the first error's line without a newline; NULL when there is none. */
const char *input_error(Field any);

/* Reports an error at a field; the reason has printf's format. */
void field_refuse(Field field, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports keys of an object that are not in `keys` (which ends with NULL), and values that are not
 * objects. */
void field_keys(Field object, const char *const *keys);

/* Returns an object's member by key, and reports a missing one. Ask field_has for optional keys. */
Field field_get(Field object, const char *key);
bool field_has(Field object, const char *key);

/* Returns the length of a list. If the value is not a list, or has fewer than `least` entries,
 * reports an error and returns 0. */
int field_count(Field list, int least);
Field field_at(Field list, int index);

/* Return a number: one of at least `low`, one above 0, an integer in low .. high. Numbers above
 * 1e30, and positive ones below 1e-30, are errors. */
double field_number(Field field, double low);
double field_positive(Field field);
int field_integer(Field field, int low, int high);
const char *field_string(Field field);

/* Returns a list of at least `least` numbers, each above 0; sets *count. */
double *field_positives(Field list, int least, int *count);
/* Returns a list of at least `least` integers in low .. high; sets *count. */
int *field_integers(Field list, int least, int low, int high, int *count);

/* ---- tables by a number of devices: {"2": 119.5, "4": 104.1} ---- */

/* Reads the entries, each above 0, into by_devices[0..most]; 0 where the table has none. A key that
 * is not a number in 1..most is an error. */
void degrees_read(Field table, double *by_devices, int most);

/* Reports an error at the table if it has no entry for `devices` devices. */
void degrees_need(Field table, const double *by_devices, int devices);
