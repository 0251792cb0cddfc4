/* Pass concat_slice_gradients: turns a sum of gradients of slices into one concatenation.
 *
 * The gradient of a slice is 0 outside the slice's rows: a zero-padded piece. A model that takes a
 * tensor apart into slices gets the sum of such gradients:
 *
 *     before    dq = pad(a, rows 0-3 of 8); dk = pad(b, rows 4-7 of 8); dx = add(dq, dk)
 *     after     dx = concat(a, b)
 *
 * Requires: pass differentiate.
 *
 * Leaves: a concatenation for each sum of such pieces (results of rules with clause `tiles`) that
 * fill the tensor and have no other use. */
#include "passes/differentiate/differentiate.h"
#include "passes/pass_manager.h"
#include "passes/sums.h"

#include <stdlib.h>
#include <string.h>

/* Writes the makers of a sum's terms to `pieces`. Returns false if a term is no piece, or has
 * another use. */
static bool gather(const Sums *sums, const Op *sum, Ops *pieces) {
    Values terms = {0};
    sum_terms(sums, sum, &terms);
    for (int i = 0; i < terms.count; i++) {
        Op *piece = terms.at[i]->def;
        if (!piece || !sums->sum_of[terms.at[i]->id] || !piece->def->rule->tiles.op) return false;
        array_push(sums->arena, pieces, piece);
    }
    return true;
}

static int64_t argument(const Op *piece, int attr) { return piece->attrs[attr].i; }

static int64_t start_of(const Op *piece) { return argument(piece, piece->def->rule->tiles.start); }

static int by_start(const void *a, const void *b) {
    int64_t first = start_of(*(Op *const *)a), second = start_of(*(Op *const *)b);
    return (first > second) - (first < second);
}

/* Returns whether pieces, sorted by start, are of one operator and fill a dimension of `whole`. */
static bool fill(const Ops *pieces, const Value *whole) {
    const Op *first = pieces->at[0];
    int dim_attr = first->def->rule->tiles.dim;
    int64_t end = 0, dim = argument(first, dim_attr);
    for (int i = 0; i < pieces->count; i++) {
        const Op *piece = pieces->at[i];
        if (piece->def != first->def || argument(piece, dim_attr) != dim || start_of(piece) != end)
            return false;
        end += piece->operands[0]->type.extent[dim];
    }
    return end == whole->type.extent[dim];
}

static bool is_attr(const OpDef *def, int param) {
    return def->params[param].kind != PARAM_TENSOR && def->params[param].kind != PARAM_TENSORS;
}

/* Returns the argument called `name` of a call; NULL: it has none. */
static const Attr *named_attr(const Op *op, const char *name) {
    for (int p = 0, attr = 0; p < op->def->param_count; p++) {
        if (!is_attr(op->def, p)) continue;
        if (!strcmp(op->def->params[p].name, name)) return &op->attrs[attr];
        attr++;
    }
    return NULL;
}

/* Makes the operators that concatenate the pieces; the last one gives the sum. Returns false if no
 * such operator is declared, the pieces lack one of its arguments, or its result has another type
 * than the sum. */
static bool put_together(Sums *sums, const Ops *pieces, const Op *sum, Ops *joins) {
    Module *module = sums->module;
    const OpDef *def = module_def_named(module, pieces->at[0]->def->rule->tiles.op);
    Attr *attrs = arena_array(sums->arena, Attr, def ? def->attr_count + 1 : 1);
    Value **operands = arena_array(sums->arena, Value *, pieces->count);
    for (int p = 0, a = 0; def && p < def->param_count; p++) {
        const Attr *attr = is_attr(def, p) ? named_attr(pieces->at[0], def->params[p].name) : NULL;
        if (is_attr(def, p) && !attr) return false;
        if (attr) attrs[a++] = *attr;
    }
    for (int i = 0; i < pieces->count; i++) operands[i] = pieces->at[i]->operands[0];
    return def && ir_join(module, &(OpCall){def, operands, pieces->count, attrs}, sum->at, joins) &&
           type_equal(joins->at[joins->count - 1]->results[0]->type, sum->results[0]->type);
}

/* Gives the new operators the sum's source position and section, and the last one its result. */
static void take_place(Arena *arena, const Ops *joins, const Op *sum) {
    Op *last = joins->at[joins->count - 1];
    for (int i = 0; i < joins->count; i++) op_take_place(arena, joins->at[i], sum);
    last->results[0] = sum->results[0];
    last->results[0]->def = last;
}

void pass_concat_slice_gradients(Module *module, const PassContext *context) {
    (void)context;
    Sums sums = sums_of(arena_create(), module);
    Ops ops = {0};
    // for each outermost sum: collect and sort its pieces, replace it if they fill the tensor
    for (int i = 0; i < module->ops.count; i++) {
        Op *sum = module->ops.at[i];
        Ops pieces = {0};
        Ops joins = {0};
        if (is_outer_sum(&sums, sum) && gather(&sums, sum, &pieces)) {
            qsort(pieces.at, (size_t)pieces.count, sizeof *pieces.at, by_start);
            if (fill(&pieces, sum->results[0]) && put_together(&sums, &pieces, sum, &joins))
                take_place(module->arena, &joins, sum);
            else joins.count = 0;
        }
        if (!joins.count) array_push(module->arena, &joins, sum);
        for (int k = 0; k < joins.count; k++) array_push(module->arena, &ops, joins.at[k]);
    }
    module->ops.count = 0;
    for (int i = 0; i < ops.count; i++) array_push(module->arena, &module->ops, ops.at[i]);
    remove_dead_ops(module);
    ir_number(module);
    arena_destroy(sums.arena);
}
