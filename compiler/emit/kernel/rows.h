/* Kernels from equations (rule/equations.h): the parts of their loops that all backends share.
 *
 *     for each row i0:
 *         double total_s = 0;
 *         for each k0: total_s += x[i0 * 256 + k0];               loop 0 along the row
 *         const float mean_v = total_s / 256;
 *         for each k0: y[i0 * 256 + k0] = x[...] - mean_v;        loop 1
 *
 * Outer loops run over rows, or over all elements if there are no rows. Inside, several loops run
 * along the row one after another. A value is in the variable NAME_v, an incomplete sum in NAME_s.
 */
#pragma once

#include "emit/kernel/loops.h"
#include "rule/equations.h"

typedef struct Rows {
    const LocalOp *local;
    int equation_count;
    EquationPlan plan;
    const Expr *const *expr; // by equation: its expression without absent operands
    Nest outer, inner;
    bool calls; // some expression calls a function
} Rows;

Rows rows_of(Arena *arena, const LocalOp *local);

/* A place in a kernel's text: in loop `loop` along the row, or before it (`contracted` NULL). */
typedef struct RowsPlace {
    Around around; // the loops that enclose the place
    const Rows *rows;
    int loop;
} RowsPlace;

/* Returns a place inside a loop. `access` writes operands and values and gets the place as its
 * context; `more` is data of the backend. */
RowsPlace rows_place(const Rows *rows, int loop, AccessWriter *access, const void *more);

/* Return the number of the value that an equation computes, and whether it is a result. Return the
 * C name and the C type of a value's variable. */
int rows_value(const Rows *rows, int equation);
bool rows_is_result(const Rows *rows, int equation);
const char *rows_name(const Rows *rows, int value);
const char *rows_type(const Rows *rows, int value);

/* Return whether `loop` computes every element of the equation, and whether it stores the value. */
bool rows_computes(const Rows *rows, int equation, int loop);
bool rows_stores(const Rows *rows, int equation, int loop);

/* Return whether loop `loop` adds up the equation's sum, and whether the equation's row value is
 * complete right before that loop. */
bool rows_adds(const Rows *rows, int equation, int loop);
bool rows_follows(const Rows *rows, int equation, int loop);

/* Returns whether loop `loop` loads the value from memory: an earlier loop stored it. */
bool rows_stored(const Rows *rows, int value, int loop);

/* Appends an operand or value, from memory or from its variable. Implements AccessWriter; `place`
 * is a RowsPlace. */
void text_row_access(Text *out, const LocalOp *local, int operand, void *place);

/* Appends `const float NAME_v = VALUE;`, rounded if other equations read the stored value. VALUE is
 * the equation's value or, given `sum`, `sum` plus the terms without elements along the row. */
void emit_row_value(Text *out, const RowsPlace *place, int equation, const char *sum, int depth);

/* Appends the statements of a loop for one element: values, then `NAME_s += TERMS;`. Stores must
 * follow these statements, because a result may share the storage of an operand. */
void emit_row_element(Text *out, const RowsPlace *place, int depth);

/* Appends `NAME[index] = NAME_v;`. */
void emit_row_store(Text *out, const RowsPlace *place, int equation, int depth);
