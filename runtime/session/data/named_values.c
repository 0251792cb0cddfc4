/* Finds a value by its name for ht_fetch, or suggests one. */
#include "session/data/named_values.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEAR = 5,          // most names in an error message
    MOST_LETTERS = 255 // letters of a name that are compared
};

void named_add(NamedValues *values, Named one) {
    Named *grown = realloc(values->at, sizeof *grown * (size_t)(values->count + 1));
    if (!grown) ht_fail("no memory for the names of %d values", values->count + 1);
    values->at = grown;
    values->at[values->count++] = one;
}

void named_free(NamedValues *values) {
    free(values->at);
    *values = (NamedValues){0};
}

void named_of_image(NamedValues *values, const ht_image *image) {
    for (int i = 0; i < image->output_count; i++)
        named_add(values, (Named){image->outputs[i].name, NAMED_OUTPUT, i});
    for (int i = 0; i < image->param_count; i++)
        named_add(values, (Named){image->params[i].name, NAMED_PARAM, i});
    for (int i = 0; i < image->input_count; i++)
        named_add(values, (Named){image->inputs[i].name, NAMED_INPUT, i});
}

/* Returns whether `full` ends with a dot and `name`. */
static bool ends_with(const char *full, const char *name) {
    size_t length = strlen(full), end = strlen(name);
    return end && length > end && full[length - end - 1] == '.' &&
           !strcmp(full + length - end, name);
}

static int minimum(int a, int b) { return a < b ? a : b; }

/* Converts an ASCII letter to lower case, in any locale. */
static char small(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

int letters_between(const char *a, const char *b) {
    int row[MOST_LETTERS + 1], width = (int)strnlen(b, MOST_LETTERS);
    for (int j = 0; j <= width; j++) row[j] = j;
    for (int i = 0; a[i] && i < MOST_LETTERS; i++) {
        int corner = row[0];
        row[0] = i + 1;
        for (int j = 0; j < width; j++) {
            int changed = corner + (small(a[i]) != small(b[j]));
            corner = row[j + 1];
            row[j + 1] = minimum(changed, minimum(row[j], corner) + 1);
        }
    }
    return row[width];
}

/* Returns the edit distance of `name` from a value's full name or, if less, 1 + the distance from
 * the part after the last dot. Returns at most 1 if the full name contains `name`. */
static int distance(const char *full, const char *name) {
    const char *dot = strrchr(full, '.');
    int least = letters_between(full, name);
    if (dot) least = minimum(least, letters_between(dot + 1, name) + 1);
    return *name && strstr(full, name) ? minimum(least, 1) : least;
}

typedef struct Candidate {
    const char *name;
    int distance, place;
} Candidate;

static int nearer(const void *a, const void *b) {
    const Candidate *x = a, *y = b;
    return x->distance != y->distance ? x->distance - y->distance : x->place - y->place;
}

/* Writes to `to` the NEAR most similar names, or all if there are fewer, each once: "a", "b". */
static void near_names(const NamedValues *values, const char *name, char *to, size_t room) {
    Candidate *all = memory_array(values->count + 1, sizeof *all);
    int count = 0;
    for (int i = 0; i < values->count; i++) {
        bool known = !*values->at[i].name || !strcmp(values->at[i].name, HT_GRADIENT_NORM);
        for (int k = 0; k < count && !known; k++) known = !strcmp(all[k].name, values->at[i].name);
        if (!known) {
            all[count] = (Candidate){values->at[i].name, distance(values->at[i].name, name), count};
            count++;
        }
    }
    qsort(all, (size_t)count, sizeof *all, nearer);
    *to = 0;
    for (int i = 0; i < count && i < NEAR; i++) {
        size_t length = strlen(to);
        snprintf(to + length, room - length, "%s\"%s\"", length ? ", " : "", all[i].name);
    }
    free(all);
}

static _Noreturn void no_such_value(const NamedValues *values, const char *name, const char *model,
                                    int several) {
    char names[2048];
    near_names(values, name, names, sizeof names);
    if (several)
        ht_fail("%s has %d values whose names end with \"%s\"; say which: %s%s", model, several,
                name, names, several > NEAR ? ", ..." : "");
    if (!*names)
        ht_fail("%s has no value \"%s\", and none that has a name; ht_output names one", model,
                name);
    ht_fail("%s has no value \"%s\"; near it are %s; ht_output names others", model, name, names);
}

Named named_find(const NamedValues *values, const char *name, const char *model) {
    const Named *found = NULL;
    int several = 0;
    for (int i = 0; i < values->count; i++)
        if (!strcmp(values->at[i].name, name)) return values->at[i];
    for (int i = 0; i < values->count; i++)
        if (ends_with(values->at[i].name, name)) {
            several += !found || strcmp(found->name, values->at[i].name);
            found = found ? found : &values->at[i];
        }
    if (several != 1) no_such_value(values, name, model, several);
    return *found;
}
