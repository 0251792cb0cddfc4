/* Reads Hydraulis's input, and weighs sequences under each scheme. */
#include "planner/kinds/hydraulis/problem.h"

#include <stdlib.h>

enum { MOST_DEVICES = 1 << 16, MOST_TOKENS = 1 << 28 };

static Scheme scheme_read(Field field) {
    static const char *const keys[] = {"tp", "pp", "a", "b", "c", "tokens", NULL};
    Scheme scheme;
    field_keys(field, keys);
    scheme.tp = field_integer(field_get(field, "tp"), 1, MOST_DEVICES);
    scheme.pp = field_integer(field_get(field, "pp"), 1, MOST_DEVICES / scheme.tp);
    scheme.gpus = scheme.tp * scheme.pp;
    scheme.a = field_number(field_get(field, "a"), 0);
    scheme.b = field_positive(field_get(field, "b"));
    scheme.c = field_number(field_get(field, "c"), 0);
    scheme.tokens = field_integer(field_get(field, "tokens"), 1, MOST_TOKENS);
    return scheme;
}

Schemes schemes_read(Arena *arena, Field list) {
    Schemes schemes = {0, arena_array(arena, Scheme, field_count(list, 1))};
    for (int i = 0, count = field_count(list, 1); i < count; i++) {
        Scheme scheme = scheme_read(field_at(list, i));
        if (schemes_find(&schemes, scheme.tp, scheme.pp) >= 0)
            field_refuse(field_at(list, i), "there is a scheme with tp %d and pp %d before it",
                         scheme.tp, scheme.pp);
        schemes.at[schemes.count++] = scheme;
    }
    return schemes;
}

int schemes_find(const Schemes *schemes, int tp, int pp) {
    for (int i = 0; i < schemes->count; i++)
        if (schemes->at[i].tp == tp && schemes->at[i].pp == pp) return i;
    return -1;
}

/* A sequence's length and its number in the input. */
typedef struct Sequence {
    int length, number;
} Sequence;

static int by_length(const void *a, const void *b) {
    const Sequence *left = a, *right = b;
    return left->length != right->length ? right->length - left->length
                                         : left->number - right->number;
}

/* Sets the weights of all sequences under a scheme, and the mean weight of a token that fits. */
static void weigh_sequences(Arena *arena, const Scheme *scheme, int index, Batch *batch) {
    double weight = 0, tokens = 0;
    batch->weights[index] = arena_array(arena, double, batch->count);
    for (int i = 0; i < batch->count; i++) {
        batch->weights[index][i] = scheme_weight(scheme, batch->lengths[i]);
        if (batch->lengths[i] <= scheme->tokens) {
            weight += batch->weights[index][i];
            tokens += batch->lengths[i];
        }
    }
    batch->per_token[index] = tokens ? weight / tokens : scheme->b;
}

Batch batch_create(Arena *arena, const Schemes *schemes, const int *lengths, int count) {
    Batch batch = {.count = count,
                   .lengths = arena_array(arena, int, count),
                   .numbers = arena_array(arena, int, count)};
    Sequence *sorted = arena_array(arena, Sequence, count);
    for (int i = 0; i < count; i++) sorted[i] = (Sequence){lengths[i], i};
    qsort(sorted, (size_t)count, sizeof *sorted, by_length);
    for (int i = 0; i < count; i++) {
        batch.lengths[i] = sorted[i].length;
        batch.numbers[i] = sorted[i].number;
        batch.tokens += sorted[i].length;
    }
    batch.weights = arena_array(arena, double *, schemes->count);
    batch.per_token = arena_array(arena, double, schemes->count);
    for (int i = 0; i < schemes->count; i++) weigh_sequences(arena, &schemes->at[i], i, &batch);
    return batch;
}
