/* Cuts a region: makes its operators once for each chunk of rows.
 *
 *     for each chunk:    x1 = slice(x); logits1 = linear(x1, table)
 *                        loss1 = cross_entropy(logits1, t1); loss = loss + loss1
 *     after the last:    lse = concat(lse1, lse2, ...)    if operators outside read lse
 *
 * Operands with rows are sliced for each chunk. Results with rows that operators outside read are
 * concatenated after the last chunk. Sums over rows are accumulated chunk by chunk. The operators
 * of a chunk follow those of the chunk before. If a part of the region is in the backward section,
 * the whole region runs there, and also forward operators that depend on the region. */
#include "passes/chunk/chunk.h"

/* A slice that the current chunk has already: `piece` is the chunk's part of `of` along `dim`. */
typedef struct Piece {
    const Value *of;
    int dim;
    Value *piece;
} Piece;

typedef struct Cutter {
    Chunked *region;
    const SliceConcat *movers;
    Ops out;
    int count;           // number of chunks
    int number;          // number of the current chunk, from 0
    int before;          // number of chunks of regions that were cut earlier
    Value **own;         // by value id: its counterpart in the current chunk
    Value **sum;         // by value id: the accumulated sum over rows
    Value **members;     // at value id * count + chunk: the chunk's rows of a result
    Array(Piece) pieces; // slices of operands, for the current chunk
    const OpDef *add;    // adds two values
} Cutter;

/* ---- slice and concatenation operators ---- */

static bool is_argument(const Expr *expr, int *argument) {
    bool is = expr && expr->kind == EXPR_ATTR;
    *argument = is ? expr->index : -1;
    return is;
}

/* Writes to *argument the index of the attribute that gives the number of dimensions before
 * `factor`. Returns false if there is none, or if `factor` is not the tensor's second index. */
static bool front_argument(const Rule *rule, const Access *access, int factor, int *argument) {
    return access->dim_count > 1 && access->dims[0].count == 1 && access->dims[1].count == 1 &&
           access->dims[1].factors[0] == factor &&
           is_argument(rule->factors[access->dims[0].factors[0]].count, argument);
}

static bool is_piece(const OpDef *def, SliceConcat *movers) {
    const Rule *rule = def->rule;
    if (rule->kind != RULE_CALL || !rule->copy.shift || rule->operand_count != 1 ||
        rule->result_count != 1 || def->attr_count != 3)
        return false;
    int front;
    movers->piece = def;
    return front_argument(rule, &rule->operands[0], rule->copy.whole, &movers->piece_dim) &&
           front_argument(rule, &rule->results[0], rule->copy.part, &front) &&
           front == movers->piece_dim && is_argument(rule->copy.shift, &movers->piece_start) &&
           is_argument(rule->factors[rule->copy.part].size, &movers->piece_length);
}

static bool is_row(const OpDef *def, SliceConcat *movers) {
    const Rule *rule = def->rule;
    movers->row = def;
    return rule->kind == RULE_CALL && rule->copy.row >= 0 && rule->operand_count == 1 &&
           rule->result_count == 1 && def->attr_count == 1 && rule->operands[0].variadic &&
           front_argument(rule, &rule->results[0], rule->copy.row, &movers->row_dim);
}

bool slice_concat_find(const Module *module, SliceConcat *movers) {
    bool piece = false, row = false;
    for (int i = 0; i < module->source->slice_concat_ops.count && !piece; i++)
        piece = is_piece(module->source->slice_concat_ops.at[i], movers);
    for (int i = 0; i < module->library->defs.count && !piece; i++)
        piece = is_piece(module->library->defs.at[i], movers);
    for (int i = 0; i < module->source->slice_concat_ops.count && !row; i++)
        row = is_row(module->source->slice_concat_ops.at[i], movers);
    for (int i = 0; i < module->library->defs.count && !row; i++)
        row = is_row(module->library->defs.at[i], movers);
    return piece && row;
}

/* ---- chunks ---- */

static int64_t chunk_start(const Cutter *cutter, int number) {
    const Value *whole = cutter->region->product->results[0];
    return whole->type.extent[cutter->region->cut] * number / cutter->count;
}

static int64_t chunk_length(const Cutter *cutter) {
    return chunk_start(cutter, cutter->number + 1) - chunk_start(cutter, cutter->number);
}

/* Records which rows of `whole` a value has; copies micro-batch and dimension names of `whole`. */
static void note_chunk(const Cutter *cutter, Value *value, const Value *whole, int dim) {
    Chunk chunk = {dim, chunk_start(cutter, cutter->number), whole->type.extent[dim]};
    value->chunk = arena_copy(cutter->region->module->arena, &chunk, sizeof chunk);
    value->micro = whole->micro;
    value->dims = whole->dims;
}

/* Appends an operator that the pass inserts: `within` the current chunk, or outside of chunks. */
static Op *put(Cutter *cutter, Op *op, bool within) {
    op->section = cutter->region->section;
    op_change_source(cutter->region->module->arena, op)->chunk =
        within ? cutter->before + cutter->number + 1 : 0;
    array_push(cutter->region->module->arena, &cutter->out, op);
    return op;
}

static Value *take_piece(Cutter *cutter, Value *value, int dim, const Op *user) {
    const SliceConcat *movers = cutter->movers;
    for (int i = 0; i < cutter->pieces.count; i++)
        if (cutter->pieces.at[i].of == value && cutter->pieces.at[i].dim == dim)
            return cutter->pieces.at[i].piece;
    Attr attrs[3] = {0};
    attrs[movers->piece_dim].i = dim;
    attrs[movers->piece_start].i = chunk_start(cutter, cutter->number);
    attrs[movers->piece_length].i = chunk_length(cutter);
    Op *op = put(
        cutter,
        ir_op_like(cutter->region->module, &(OpCall){movers->piece, &value, 1, attrs}, user), true);
    note_chunk(cutter, op->results[0], value, dim);
    array_push(cutter->region->arena, &cutter->pieces, (Piece){value, dim, op->results[0]});
    return op->results[0];
}

static int dim_of(const BoundAccess *access, int factor) {
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].count == 1 && access->dims[d].factors[0] == factor) return d;
    return -1;
}

/* Returns the counterpart of an operand in the current chunk. */
static Value *operand_of_chunk(Cutter *cutter, const Op *op, int k) {
    const Chunked *region = cutter->region;
    Value *value = op->operands[k];
    if (!value || (value->kind == VALUE_RESULT && region->in[value->def->index]))
        return value ? cutter->own[value->id] : NULL;
    int dim = dim_of(&op->binding->operands[k], region->factor[op->index]);
    return dim < 0 ? value : take_piece(cutter, value, dim, op);
}

/* Returns a copy of the operator's binding with the number of rows of the current chunk. */
static const Binding *binding_of_chunk(const Cutter *cutter, const Op *op) {
    Arena *arena = cutter->region->module->arena;
    Binding *binding = arena_copy(arena, op->binding, sizeof *binding);
    BoundFactor *factors =
        arena_copy(arena, binding->factors, sizeof *factors * (size_t)binding->factor_count);
    factors[cutter->region->factor[op->index]].extent = chunk_length(cutter);
    binding->factors = factors;
    return binding;
}

static void shorten(const Cutter *cutter, Value *value, const Value *whole, int dim) {
    int64_t *extent = arena_copy(cutter->region->module->arena, whole->type.extent,
                                 sizeof *extent * (size_t)whole->type.rank);
    extent[dim] = chunk_length(cutter);
    value->type.extent = extent;
    note_chunk(cutter, value, whole, dim);
}

/* Adds a chunk's result to the accumulated sum over rows. */
static void add_up(Cutter *cutter, const Value *whole, Value *value, const Op *op) {
    Value **sum = &cutter->sum[whole->id];
    if (*sum) {
        Op *add = put(cutter,
                      ir_op_like(cutter->region->module,
                                 &(OpCall){cutter->add, (Value *[]){*sum, value}, 2, NULL}, op),
                      true);
        add->results[0]->micro = whole->micro;
        add->results[0]->dims = whole->dims;
        value = add->results[0];
    }
    *sum = value;
}

/* Appends the current chunk's copy of an operator; adds up results that are sums over rows. */
static void cut_op(Cutter *cutter, const Op *op) {
    const Chunked *region = cutter->region;
    Value **operands = arena_array(region->arena, Value *, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++) operands[k] = operand_of_chunk(cutter, op, k);
    Op *own = put(cutter, ir_clone(region->module, op, operands), true);
    own->binding = binding_of_chunk(cutter, op);
    for (int r = 0; r < op->result_count; r++) {
        const Value *whole = op->results[r];
        int dim = region->dim[whole->id] - 1;
        own->results[r]->name = NULL;
        cutter->own[whole->id] = own->results[r];
        if (dim >= 0) shorten(cutter, own->results[r], whole, dim);
        if (dim >= 0) cutter->members[whole->id * cutter->count + cutter->number] = own->results[r];
        else add_up(cutter, whole, own->results[r], op);
    }
}

static void cut_chunk(Cutter *cutter) {
    const Module *module = cutter->region->module;
    cutter->pieces.count = 0;
    for (int i = 0; i < module->ops.count; i++)
        if (cutter->region->in[i]) cut_op(cutter, module->ops.at[i]);
}

/* ---- results for operators outside ---- */

/* Makes `value` the first result of an operator. */
static void make(Op *op, Value *value) {
    op->results[0] = value;
    value->def = op;
    value->index = 0;
}

/* If operators outside read `value`, makes it the accumulated sum or the chunks' concatenation. */
static void give(Cutter *cutter, const Op *op, Value *value) {
    const Chunked *region = cutter->region;
    int dim = region->dim[value->id] - 1;
    if (!region->outside[value->id]) return;
    if (dim < 0) {
        make(cutter->sum[value->id]->def, value);
        return;
    }
    Attr attr = {.i = dim};
    make(put(cutter,
             ir_op_like(region->module,
                        &(OpCall){cutter->movers->row, &cutter->members[value->id * cutter->count],
                                  cutter->count, &attr},
                        op),
             false),
         value);
}

/* ---- order of the module's operators ---- */

static void put_old(Cutter *cutter, bool before) {
    const Chunked *region = cutter->region;
    Module *module = region->module;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        bool first = region->needed[i] || (op->section < region->section && !region->behind[i]) ||
                     i < region->product->index;
        if (region->in[i] || first != before) continue;
        if (!before && op->section < region->section) op->section = region->section;
        array_push(module->arena, &cutter->out, op);
    }
}

void chunked_cut(Chunked *region, const SliceConcat *movers, int count) {
    Module *module = region->module;
    Cutter cutter = {.region = region, .movers = movers, .count = count};
    int values = module->next_id;
    cutter.own = arena_array(region->arena, Value *, values);
    cutter.sum = arena_array(region->arena, Value *, values);
    cutter.members = arena_array(region->arena, Value *, values * count);
    cutter.add = module_def(
        module, rule_inserted(module->arena, "add_gradients", "y[i..] = a[i..] + b[i..]"));
    // number the chunks after the chunks of earlier regions
    for (int i = 0; i < module->ops.count; i++)
        cutter.before = module->ops.at[i]->source->chunk > cutter.before
                            ? module->ops.at[i]->source->chunk
                            : cutter.before;
    // order: operators before the region, the chunks, concatenations, all other operators
    put_old(&cutter, true);
    for (; cutter.number < count; cutter.number++) cut_chunk(&cutter);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; region->in[i] && r < module->ops.at[i]->result_count; r++)
            give(&cutter, module->ops.at[i], module->ops.at[i]->results[r]);
    put_old(&cutter, false);
    module->ops.at = cutter.out.at;
    module->ops.count = cutter.out.count;
    module->ops.capacity = cutter.out.capacity;
    ir_number(module);
}
