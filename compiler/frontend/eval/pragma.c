/* Pragmas where the evaluation comes across them. */
#include "frontend/eval/eval.h"

#include <string.h>

static Value *operand(Eval *ev, const CExpr *expr, Place *place)
{
    *place = eval_place(ev, expr);
    Value *value = tensor_load(ev, *place, expr->at);
    if (!value)
        eval_error(ev, expr->at, "this tensor is absent");
    return value;
}

/* ---- dims ---- */

static void name_dimension(Eval *ev, const Pragma *pragma, const Value *value, const char **dims, int d)
{
    const char *name = pragma->names.at[d];
    if (name && dims[d] && strcmp(name, dims[d])) {
        diag_error(ev->diag, pragma->name_at.at[d], "dimension %d is called \"%s\" here, but \"%s\" before", d, name, dims[d]);
        diag_note(ev->diag, value->dims_at, "it was named here");
        eval_fail(ev);
    }
    if (name)
        dims[d] = name;
}

static void name_dimensions(Eval *ev, const Pragma *pragma, const CExpr *expr)
{
    Place place;
    Value *value = operand(ev, expr, &place);
    if (pragma->names.count > value->type.rank) {
        diag_error(ev->diag, pragma->name_at.at[value->type.rank], "%d names for a tensor of %d dimension%s", pragma->names.count, value->type.rank,
                   value->type.rank == 1 ? "" : "s");
        diag_note(ev->diag, value->at, "the tensor is made here");
        eval_fail(ev);
    }
    const char **dims = arena_array(ev->arena, const char *, value->type.rank + 1);
    for (int d = 0; d < value->type.rank && value->dims; d++)
        dims[d] = value->dims[d];
    for (int d = 0; d < pragma->names.count; d++)
        name_dimension(ev, pragma, value, dims, d);
    value->dims = dims;
    value->dims_at = expr->at;
}

/* ---- shard and reshard ---- */

static void shard(Eval *ev, const Pragma *pragma, const CExpr *expr)
{
    Place place;
    Value *value = operand(ev, expr, &place);
    if (value->written && strcmp(value->written->text, pragma->layout->text)) {
        diag_error(ev->diag, pragma->layout->at, "this tensor has another layout already");
        diag_note(ev->diag, value->written->at, "it was given here");
        eval_fail(ev);
    }
    value->written = pragma->layout;
}

static void reshard(Eval *ev, const Pragma *pragma, const CExpr *expr)
{
    Place place;
    Value *value = operand(ev, expr, &place);
    Op *op = ir_op(ev->module, ev->module->reshard_def, &value, 1, NULL, pragma->at);
    if (!op)
        eval_fail(ev);
    operator_emit(ev, op);
    op->results[0]->dims = value->dims;
    op->results[0]->written = pragma->layout;
    value_name(op->results[0], expr);
    tensor_store(ev, place, op->results[0]);
}

void eval_pragma(Eval *ev, const Pragma *pragma)
{
    if (!ev->module || ev->gradient)
        eval_error(ev, pragma->at, "the %s pragma belongs into a model function", pragma->directive);
    for (int i = 0; i < pragma->operands.count; i++) {
        if (pragma->kind == PRAGMA_DIMS)
            name_dimensions(ev, pragma, pragma->operands.at[i]);
        else if (pragma->kind == PRAGMA_SHARD)
            shard(ev, pragma, pragma->operands.at[i]);
        else
            reshard(ev, pragma, pragma->operands.at[i]);
    }
}

/* ---- layer ---- */

void eval_mark(Eval *ev, const Pragma *pragma)
{
    Val layer = eval(ev, pragma->layer);
    if (layer.unknown || (int64_t)layer.i < 0 || (int64_t)layer.i > INT32_MAX)
        eval_error(ev, pragma->layer->at, layer.unknown ? "this layer is not known at compile time" : "layers are numbered from 0 on");
    ev->tower = pragma->tower;
    ev->layer = (int)layer.i;
}
