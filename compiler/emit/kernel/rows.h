/* Kernels from equations (rule/equations.h): what their loops are made of, whichever back end
 * spells them.
 *
 * The outer loops run over rows, or over everything where there are no rows; inside, one loop after
 * the other runs along the row. A value stands in the variable NAME_v while it is computed with, a
 * sum that is not complete in NAME_s.
 */
#ifndef EMIT_KERNEL_ROWS_H
#define EMIT_KERNEL_ROWS_H

#include "emit/kernel/loops.h"
#include "rule/equations.h"

typedef struct Rows {
    const LocalOp *local;
    int equation_count;
    EquationPlan plan;
    const Expr *const *expr; // by equation: without what is absent
    Nest outer, inner;
    bool calls; // some function is called
} Rows;

Rows rows_of(Arena *arena, const LocalOp *local);

/* Where text stands: inside loop `loop` along the row, or, without a nest `contracted`, in front of
 * it. */
typedef struct RowsPlace {
    Around around; // its nests are the loops around the text
    const Rows *rows;
    int loop;
} RowsPlace;

/* Inside a loop; operands and values are written by `access`, whose context is the place; `more` is
 * the back end's own. */
RowsPlace rows_place(const Rows *rows, int loop, AccessWriter *access, const void *more);

/* The value that an equation gives: its number, whether it is a result, its name in C, and the type
 * in which it is computed with. */
int rows_value(const Rows *rows, int equation);
bool rows_is_result(const Rows *rows, int equation);
const char *rows_name(const Rows *rows, int value);
const char *rows_type(const Rows *rows, int value);

/* Whether loop `loop` computes the equation's value, of every element; and whether it stores it
 * then. */
bool rows_computes(const Rows *rows, int equation, int loop);
bool rows_stores(const Rows *rows, int equation, int loop);

/* Whether loop `loop` adds up the equation's sum; and whether its value of the row is known in
 * front of that loop, and not before. */
bool rows_adds(const Rows *rows, int equation, int loop);
bool rows_follows(const Rows *rows, int equation, int loop);

/* Whether loop `loop` reads the value from storage: a result that an earlier loop made. */
bool rows_stored(const Rows *rows, int value, int loop);

/* Whether the value is rounded to its type before others see it. */
bool rows_rounds(const Rows *rows, int value);

/* Appends an operand or value where it is used, from storage or out of a variable. An AccessWriter;
 * the context is the place. */
void text_row_access(Text *out, const LocalOp *local, int operand, void *place);

/* Appends `const float NAME_v = VALUE;`, rounded where others use it as it is stored: an equation's
 * value, or `sum`, unless that is NULL, and the terms that are not along the row. */
void emit_row_value(Text *out, const RowsPlace *place, int equation, const char *sum, int depth);

/* Appends what a loop computes of one element: values, then `NAME_s += TERMS;`. Stores must follow:
 * a result may lie where an operand does.
 */
void emit_row_element(Text *out, const RowsPlace *place, int depth);

/* Appends `NAME[index] = NAME_v;`. */
void emit_row_store(Text *out, const RowsPlace *place, int equation, int depth);

#endif
