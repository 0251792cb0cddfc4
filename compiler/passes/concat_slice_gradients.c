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
#include "ir/join.h"
#include "passes/differentiate/differentiate.h"
#include "passes/pass_manager.h"

#include <stdlib.h>
#include <string.h>

typedef struct Tile {
    Module *module;
    Arena *arena;
    int *uses;   // by value id: number of its uses
    Op **sum_of; // by value id: the sum that is the value's only use; NULL: none
} Tile;

typedef Array(Op *) Pieces;

/* Returns whether the operator adds two tensors of its result's type. */
static bool is_sum(const Op *op) {
    bool sum = rule_is_sum(op->def->rule);
    for (int k = 0; sum && k < 2; k++)
        sum = op->operands[k] && type_equal(op->operands[k]->type, op->results[0]->type);
    return sum;
}

static void find_uses(Tile *tile) {
    Module *module = tile->module;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            if (module->ops.at[i]->operands[k]) tile->uses[module->ops.at[i]->operands[k]->id]++;
    for (int i = 0; i < module->outputs.count; i++) tile->uses[module->outputs.at[i].value->id]++;
    for (int i = 0; i < module->params.count; i++)
        if (module->params.at[i]->gradient) tile->uses[module->params.at[i]->gradient->id]++;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; is_sum(module->ops.at[i]) && k < 2; k++)
            if (tile->uses[module->ops.at[i]->operands[k]->id] == 1)
                tile->sum_of[module->ops.at[i]->operands[k]->id] = module->ops.at[i];
}

/* Appends the pieces that nested sums add. Returns false if a term is no piece or is used twice. */
static bool gather(const Tile *tile, const Op *sum, Pieces *pieces) {
    for (int k = 0; k < 2; k++) {
        const Value *value = sum->operands[k];
        if (!value->def || tile->sum_of[value->id] != sum) return false;
        if (value->def->def->rule->tiles.op) array_push(tile->arena, pieces, value->def);
        else if (!is_sum(value->def) || !gather(tile, value->def, pieces)) return false;
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
static bool fill(const Pieces *pieces, const Value *whole) {
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
static bool put_together(Tile *tile, const Pieces *pieces, const Op *sum, Joins *joins) {
    Module *module = tile->module;
    const OpDef *def = module_def_named(module, pieces->at[0]->def->rule->tiles.op);
    Attr *attrs = arena_array(tile->arena, Attr, def ? def->attr_count + 1 : 1);
    Value **operands = arena_array(tile->arena, Value *, pieces->count);
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
static void take_place(Arena *arena, const Joins *joins, const Op *sum) {
    Op *last = joins->at[joins->count - 1];
    for (int i = 0; i < joins->count; i++) op_take_place(arena, joins->at[i], sum);
    last->results[0] = sum->results[0];
    last->results[0]->def = last;
}

void pass_concat_slice_gradients(Module *module, const PassContext *context) {
    (void)context;
    Tile tile = {.module = module, .arena = arena_create()};
    tile.uses = arena_array(tile.arena, int, module->next_id);
    tile.sum_of = arena_array(tile.arena, Op *, module->next_id);
    find_uses(&tile);
    Joins ops = {0};
    // for each sum inside no other: collect and sort its pieces, replace it if they fill the tensor
    for (int i = 0; i < module->ops.count; i++) {
        Op *sum = module->ops.at[i];
        Pieces pieces = {0};
        Joins joins = {0};
        if (is_sum(sum) && !tile.sum_of[sum->results[0]->id] && gather(&tile, sum, &pieces)) {
            qsort(pieces.at, (size_t)pieces.count, sizeof *pieces.at, by_start);
            if (fill(&pieces, sum->results[0]) && put_together(&tile, &pieces, sum, &joins))
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
    arena_destroy(tile.arena);
}
