/* Binding: checks the tensors of a call against the rule of its operator, and finds element types,
 * ranks and extents. hetucc binds the calls of models (compiler/ir/bind), the one-device library
 * those of running programs (runtime/eager/bind.c); both report the same mistakes.
 *
 *     y[b.., o] = x[b.., i] * w[o, i]        x: f32[8, 16, 64], w: f32[32, 64]
 *
 *     bind_types      x and w have one element type, and so has y
 *     bind_counts     x has 3 dimensions, so `b..` stands for 2; the bound factors are b, b, i, o
 *     bind_extents    b is 8 and 16, i is 64 (x and w agree), o is 32
 */
#pragma once

#include "binding/element.h"

#include <hetu/kernel.h>

#include <stdbool.h>
#include <stdint.h>

/* A result of the call or an operand; each tensor of a variadic operand has its own BindTensor. */
typedef struct BindTensor {
    const char *name;
    Element element;
    int operand, member; // index of the rule's operand; index within a variadic operand
    int dim_count;
    const RuleDim *dims;
    bool given; // the operand is present; the members below describe it
    ht_dtype dtype;
    int rank;
    const int64_t *extent;
} BindTensor;

/* A factor of the rule. An ellipsis has a bound factor for each dimension that it stands for; a
 * factor with `each` has bound factors of its own for each tensor of the variadic operand. */
typedef struct BindFactor {
    const char *name;
    bool ellipsis, counted, sized, each; // `counted`, `sized`: has a count or a clause `size`
    bool used;                           // a given operand or a result has the factor
    int count, base; // number of dimensions (-1: unknown); index of the first bound factor
} BindFactor;

/* The tensor and the dimension that gave a bound factor its extent; -1: none. */
typedef struct BindSource {
    int tensor, dim;
} BindSource;

typedef struct BindCall BindCall;

/* Callbacks of the compiler or the runtime, each of which has rules and errors of its own form. */
typedef struct BindHost {
    bool (*count)(const BindCall *call, int factor, int64_t *value); // *value: N of `a..{N}`
    bool (*size)(const BindCall *call, int factor, int64_t *value);  // false: not known yet
    const char *(*violated)(const BindCall *call);                   // a broken `requires`, or NULL
    const char *(*access_text)(const BindCall *call, int tensor);    // "x[b.., i]"
    ht_dtype (*argument)(const BindCall *call, int index); // the type that an argument gives

    /* Reports an error about the `count` tensors. May end the program. */
    void (*refuse)(const BindCall *call, const int *tensors, int count, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
} BindHost;

struct BindCall {
    const BindHost *host;
    const void *context; // context of the host
    const char *name;    // name of the operator
    int tensor_count, result_count, factor_count;
    int members; // number of tensors of the variadic operand
    BindTensor *tensors, *results;
    BindFactor *factors;
    unsigned types; // bits 1 << ht_dtype: allowed where the rule gives an operand no type; 0: any
    bool alike;     // operands to which the rule gives no type must have equal types
    bool integral;  // integer operands may give an integer result
    // Extents, by factor of the rule. An ellipsis has the product of its dimensions' extents, a
    // factor with `each` the sum over the tensors; -1: unknown or unused.
    int64_t *size;
    int bound_count;
    int64_t *extent;    // by bound factor; -1: unknown
    BindSource *source; // by bound factor
    bool failed;
};

/* Return the name of an element type, "f32", and the type that accumulates sums of a type: f32 for
 * bf16, i64 for i32, else the type itself. */
const char *dtype_word(ht_dtype dtype);
ht_dtype dtype_sum(ht_dtype dtype);

/* Return whether there was no error. bind_counts numbers the bound factors; the caller then sets
 * `extent` and `source` to arrays of bound_count entries. bind_extents also checks `requires`. */
bool bind_types(BindCall *call);
bool bind_counts(BindCall *call);
bool bind_extents(BindCall *call);

/* Returns the element type that the rule gives a tensor. */
ht_dtype bind_element(const BindCall *call, Element element);

/* Returns the rank of a tensor, not counting ellipses of unknown counts. Writes the factor of the
 * only such ellipsis to *unknown; -1: there is none, -2: there are several. */
int bind_rank(const BindCall *call, const BindTensor *tensor, int *unknown);

/* Returns the bound factor of the k-th dimension that `factor` stands for; with `each`, in tensor
 * `member` of the variadic operand. bind_factor returns the rule's factor of a bound factor. */
int bind_bound(const BindCall *call, int factor, int member, int k);
int bind_factor(const BindCall *call, int bound);

/* Writes `asked` to `extent`, a -1 replaced so that the product is `elements`; false on failure. */
bool bind_shape(const int64_t *asked, int rank, int64_t elements, int64_t *extent);
