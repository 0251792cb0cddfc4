/* The operators of a region, once for each chunk of rows.
 *
 * What the region is given along its rows is taken piece by piece; what it makes along them, and
 * others read, is put in a row behind the last chunk; sums over rows are added up chunk by chunk.
 * All operators of a chunk stand behind those of the chunk before it. Where backward is part of the
 * region, all of it runs there, and what forward makes of it does, too.
 */
#include "passes/chunk/chunk.h"

/* A piece that has been taken. */
typedef struct Piece {
    const Value *of;
    int dim;
    Value *piece;
} Piece;

typedef struct Cutter {
    Chunked *region;
    const SliceConcat *movers;
    Ops out;
    int count;           // chunks
    int number;          // of the one at work, from 0 on
    int before;          // chunks that the module had before
    Value **own;         // by value id: what stands for it in the chunk at work
    Value **sum;         // by value id: of what is added up, what has come together so far
    Value **members;     // by value id times count: of what is cut, its pieces
    Array(Piece) pieces; // of the chunk at work
    const OpDef *add;
} Cutter;

/* ---- the movers ---- */

static bool is_argument(const Expr *expr, int *argument) {
    bool is = expr && expr->kind == EXPR_ATTR;
    *argument = is ? expr->index : -1;
    return is;
}

/* The argument that says how many dimensions stand in front of a tensor's second index; false where
 * the rule does not say it so. */
static bool front_argument(const Rule *rule, const Access *access, int factor, int *argument) {
    return access->dim_count > 1 && access->dims[0].count == 1 && access->dims[1].count == 1 &&
           access->dims[1].factors[0] == factor &&
           is_argument(rule->factors[access->dims[0].factors[0]].count, argument);
}

static bool is_piece(const OpDef *def, SliceConcat *movers) {
    const Rule *rule = def->rule;
    if (rule->kind != RULE_CALL || !rule->shift || rule->operand_count != 1 ||
        rule->result_count != 1 || def->attr_count != 3)
        return false;
    int front;
    movers->piece = def;
    return front_argument(rule, &rule->operands[0], rule->shift_whole, &movers->piece_dim) &&
           front_argument(rule, &rule->results[0], rule->shift_part, &front) &&
           front == movers->piece_dim && is_argument(rule->shift, &movers->piece_start) &&
           is_argument(rule->factors[rule->shift_part].size, &movers->piece_length);
}

static bool is_row(const OpDef *def, SliceConcat *movers) {
    const Rule *rule = def->rule;
    movers->row = def;
    return rule->kind == RULE_CALL && rule->row >= 0 && rule->operand_count == 1 &&
           rule->result_count == 1 && def->attr_count == 1 && rule->operands[0].variadic &&
           front_argument(rule, &rule->results[0], rule->row, &movers->row_dim);
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

/* Says of a value which rows of a whole it has. */
static void note_chunk(const Cutter *cutter, Value *value, const Value *whole, int dim) {
    Chunk chunk = {dim, chunk_start(cutter, cutter->number), whole->type.extent[dim]};
    value->chunk = arena_copy(cutter->region->module->arena, &chunk, sizeof chunk);
    value->micro = whole->micro;
    value->dims = whole->dims;
}

/* Puts an operator that the pass makes for another into the chunk at work, or behind all chunks. */
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

/* What an operand is in the chunk at work. */
static Value *operand_of_chunk(Cutter *cutter, const Op *op, int k) {
    const Chunked *region = cutter->region;
    Value *value = op->operands[k];
    if (!value || (value->kind == VALUE_RESULT && region->in[value->def->index]))
        return value ? cutter->own[value->id] : NULL;
    int dim = dim_of(&op->binding->operands[k], region->factor[op->index]);
    return dim < 0 ? value : take_piece(cutter, value, dim, op);
}

/* The binding with as many rows as the chunk at work has. */
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

/* Adds what a chunk gives to what is there of a sum over rows. */
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

/* The operator in the chunk at work. */
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
        if (dim >= 0)
            cutter->members[whole->id * cutter->count + cutter->number] = own->results[r];
        else
            add_up(cutter, whole, own->results[r], op);
    }
}

static void cut_chunk(Cutter *cutter) {
    const Module *module = cutter->region->module;
    cutter->pieces.count = 0;
    for (int i = 0; i < module->ops.count; i++)
        if (cutter->region->in[i]) cut_op(cutter, module->ops.at[i]);
}

/* ---- what is whole again ---- */

/* The operator's result is the value that others read. */
static void make(Op *op, Value *value) {
    op->results[0] = value;
    value->def = op;
    value->index = 0;
}

/* Makes what a region's operator gives to others of what its chunks have made. */
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

/* ---- the new order ---- */

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
    for (int i = 0; i < module->ops.count; i++)
        cutter.before = module->ops.at[i]->source->chunk > cutter.before
                            ? module->ops.at[i]->source->chunk
                            : cutter.before;
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
