/* Evaluates the pragmas of a model function: dims, shard, reshard, layer and recompute. */
#include "frontend/eval/eval.h"

#include "ir/dim.h"
#include "ir/module.h"

#include <string.h>

static Value *operand(Eval *ev, const CExpr *expr, Place *place) {
    *place = eval_place(ev, expr);
    Value *value = tensor_load(ev, *place, expr->at);
    if (!value) eval_error(ev, expr->at, "this tensor is absent");
    return value;
}

static const char *shown(Eval *ev, const Dim *dim) {
    Text text = {.arena = ev->arena};
    for (int i = 0; i < dim->count; i++)
        text_print(&text, "%s%s", i ? " " : "", dim->names[i].name ? dim->names[i].name : "_");
    return text_bytes(&text);
}

static void name_dimension(Eval *ev, const Pragma *pragma, const Value *value, Dim *dims, int d) {
    const Dim *dim = &pragma->dims.at[d];
    if (dim->count && dims[d].count && strcmp(shown(ev, dim), shown(ev, &dims[d]))) {
        diag_error(ev->diag, pragma->name_at.at[d],
                   "dimension %d is called \"%s\" here, but \"%s\" before", d, shown(ev, dim),
                   shown(ev, &dims[d]));
        diag_note(ev->diag, value->dims_at, "it was named here");
        eval_fail(ev);
    }
    if (dim->count) dims[d] = *dim;
}

static void name_dimensions(Eval *ev, const Pragma *pragma, const CExpr *expr) {
    Place place;
    Value *value = operand(ev, expr, &place);
    if (pragma->dims.count > value->type.rank) {
        diag_error(ev->diag, pragma->name_at.at[value->type.rank],
                   "%d names for a tensor of %d dimension%s", pragma->dims.count, value->type.rank,
                   value->type.rank == 1 ? "" : "s");
        diag_note(ev->diag, value->at, "the tensor is made here");
        eval_fail(ev);
    }
    Dim *dims = arena_array(ev->arena, Dim, value->type.rank);
    for (int d = 0; d < value->type.rank && value->dims; d++) dims[d] = value->dims[d];
    for (int d = 0; d < pragma->dims.count; d++) name_dimension(ev, pragma, value, dims, d);
    value->dims = dims;
    value->dims_at = expr->at;
}

/* Returns whether two layouts have the same text. */
static bool same_layout(Eval *ev, const UserLayout *a, const UserLayout *b) {
    Text one = {.arena = ev->arena}, other = {.arena = ev->arena};
    user_layout_print(&one, a);
    user_layout_print(&other, b);
    return !strcmp(text_bytes(&one), text_bytes(&other));
}

static void shard(Eval *ev, const Pragma *pragma, const CExpr *expr) {
    Place place;
    Value *value = operand(ev, expr, &place);
    if (value->user_layout && !same_layout(ev, value->user_layout, pragma->layout)) {
        diag_error(ev->diag, pragma->layout->at, "this tensor has another layout already");
        diag_note(ev->diag, value->user_layout->at, "it was given here");
        eval_fail(ev);
    }
    value->user_layout = pragma->layout;
}

static void reshard(Eval *ev, const Pragma *pragma, const CExpr *expr) {
    Place place;
    Value *value = operand(ev, expr, &place);
    Op *op =
        ir_op(ev->module, &(OpCall){ev->module->builtin->reshard, &value, 1, NULL}, pragma->at);
    if (!op) eval_fail(ev);
    operator_emit(ev, op);
    op->results[0]->dims = value->dims;
    op->results[0]->user_layout = pragma->layout;
    value_name(op->results[0], expr);
    tensor_store(ev, place, op->results[0]);
}

void eval_pragma(Eval *ev, const Pragma *pragma) {
    if (!ev->module || ev->build.gradient)
        eval_error(ev, pragma->at, "the %s pragma belongs into a model function",
                   pragma->directive);
    for (int i = 0; i < pragma->operands.count; i++)
        if (pragma->kind == PRAGMA_DIMS) name_dimensions(ev, pragma, pragma->operands.at[i]);
        else if (pragma->kind == PRAGMA_SHARD) shard(ev, pragma, pragma->operands.at[i]);
        else reshard(ev, pragma, pragma->operands.at[i]);
}

static int layer_number(Eval *ev, const CExpr *expr) {
    Val number = eval(ev, expr);
    if (number.unknown || (int64_t)number.i < 0 || (int64_t)number.i > INT32_MAX)
        eval_error(ev, expr->at,
                   number.unknown ? "this layer is not known at compile time"
                                  : "layers are numbered from 0 on");
    return (int)number.i;
}

static void eval_layer(Eval *ev, const Pragma *pragma) {
    Layer *layer = arena_new(ev->arena, Layer);
    *layer = (Layer){pragma->tower, pragma->layer_name,
                     pragma->layer_name ? 0 : layer_number(ev, pragma->layer)};
    ev->build.layer = layer;
}

/* Sets the layer or recompute number of the next ops. An outer recompute number stays. */
void eval_mark(Eval *ev, const Pragma *pragma) {
    if (pragma->kind == PRAGMA_LAYER) eval_layer(ev, pragma);
    else if (!ev->build.recompute) ev->build.recompute = ++ev->build.recomputes;
}
