/* The operations and bytes of a call, and their seconds on a class of devices (roofline). */
#include "cost/cost.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/conversions.h"
#include "ir/programs/regions.h"
#include "rule/equations.h"
#include "rule/expr.h"

#include <math.h>

enum { MOST_TERMS = 256 };

/* A call on a piece of its tensors, with the sizes of its rule's factors. */
typedef struct Piece {
    const Op *op;
    const Rule *rule;
    const double *bound; // by bound factor: extent of the piece
    double *size;        // by factor of the rule: the product of the extents of its bound factors
    Arena *arena;
} Piece;

static Piece piece_of(Arena *arena, const Op *op, const double *extent) {
    Piece piece = {op, op->def->rule, extent,
                   arena_array(arena, double, op->def->rule->factor_count + 1), arena};
    for (int f = 0; f < piece.rule->factor_count; f++) piece.size[f] = 1;
    for (int f = 0; f < op->binding->factor_count; f++)
        if (op->binding->factors[f].factor >= 0)
            piece.size[op->binding->factors[f].factor] *= extent[f];
    return piece;
}

/* ---- expressions ---- */

/* Evaluates a clause of a rule over integer arguments and sizes. */
static double clause_value(const Piece *piece, const Expr *expr) {
    if (expr->kind == EXPR_NUMBER) return expr->number;
    if (expr->kind == EXPR_ATTR) return (double)piece->op->attrs[expr->index].i;
    if (expr->kind == EXPR_SIZE) return piece->size[expr->index];
    double a = clause_value(piece, expr->arg[0]);
    if (expr->kind == EXPR_SELECT) return clause_value(piece, expr->arg[a != 0 ? 1 : 2]);
    if (expr->kind == EXPR_NEG) return -a;
    if (expr->kind == EXPR_CALL) BUG("a clause calls a function");
    return expr_apply(expr->kind, a, clause_value(piece, expr->arg[1]));
}

/* Returns the operations that compute a value. A term has its operations, and one addition if it is
 * summed, at each point of the value's and term's indices; each later term adds one an element. */
static double value_operations(const Piece *piece, const Access *value, const Expr *expr) {
    ExprTerm terms[MOST_TERMS];
    int count = expr_terms(expr, terms, MOST_TERMS);
    double elements = 1, total = 0;
    for (int f = 0; f < piece->rule->factor_count; f++)
        elements *= access_has(value, f) ? piece->size[f] : 1;
    for (int t = 0; t < count && t < MOST_TERMS; t++) {
        bool marked[IR_MAX_FACTORS] = {false};
        double volume = elements;
        equations_mark(piece->rule, terms[t].expr, marked);
        for (int f = 0; f < piece->rule->factor_count; f++)
            volume *= marked[f] && !access_has(value, f) ? piece->size[f] : 1;
        bool summed = false;
        for (int f = 0; f < piece->rule->factor_count; f++)
            summed |= marked[f] && !access_has(value, f);
        total += volume * (expr_operations(terms[t].expr) + summed) + (t ? elements : 0);
    }
    return total;
}

/* Returns, by operand of the rule, whether the call passes this operand. */
static const bool *presence(const Piece *piece) {
    bool *present = arena_array(piece->arena, bool, piece->rule->operand_count + 1);
    for (int k = 0; k < piece->op->operand_count; k++)
        present[piece->op->binding->operands[k].access] |= piece->op->operands[k] != NULL;
    return present;
}

/* ---- bytes ---- */

static double access_elements(const Piece *piece, const BoundAccess *access) {
    double elements = 1;
    for (int d = 0; d < access->rank; d++)
        for (int i = 0; i < access->dims[d].count; i++)
            elements *= piece->bound[access->dims[d].factors[i]];
    return elements;
}

static bool is_repeated(const Op *op, int k) {
    for (int earlier = 0; earlier < k; earlier++)
        if (op->operands[earlier] == op->operands[k]) return true;
    return false;
}

/* Returns the elements touched; adds their bytes to *bytes. An operand passed twice counts once. */
static double touched_elements(const Piece *piece, double *bytes) {
    const Op *op = piece->op;
    double total = 0;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && !is_repeated(op, k)) {
            const Expr *reads = piece->rule->operands[op->binding->operands[k].access].reads;
            double own = access_elements(piece, &op->binding->operands[k]),
                   read = reads ? clause_value(piece, reads) : own;
            own = read < own ? read : own;
            total += own;
            *bytes += own * dtype_size(op->operands[k]->type.dtype);
        }
    for (int k = 0; k < op->result_count; k++) {
        double own = access_elements(piece, &op->binding->results[k]);
        total += own;
        *bytes += own * dtype_size(op->results[k]->type.dtype);
    }
    return total;
}

/* ---- work ---- */

static double rule_operations(const Piece *piece, double elements) {
    const Rule *rule = piece->rule;
    double total = 0;
    if (rule->call.operations) return clause_value(piece, rule->call.operations);
    if (rule->kind == RULE_BODY)
        return value_operations(piece, &rule->results[0],
                                equations_present(piece->arena, rule, rule->body, presence(piece)));
    for (int e = 0; e < rule->equations.count; e++)
        total += value_operations(
            piece, equations_value(rule, rule->equations.at[e].value),
            equations_present(piece->arena, rule, rule->equations.at[e].expr, presence(piece)));
    return rule->equations.count ? total : elements;
}

static ht_dtype working_dtype(const Op *op) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && dtype_is_float(op->operands[k]->type.dtype))
            return dtype_runtime(op->operands[k]->type.dtype);
    return dtype_runtime(op->results[0]->type.dtype);
}

Work op_work(const Op *op, const double *extent) {
    const Rule *rule = op->def->rule;
    Work work = {.product =
                     rule->form == RULE_PRODUCT || (rule->kind == RULE_EQUATIONS && rule->epilogue),
                 .dtype = working_dtype(op)};
    if (rule->kind == RULE_VIEW || op_moves_nothing(op)) return work;
    Arena *scratch = arena_create();
    Piece piece = piece_of(scratch, op, extent);
    double elements = touched_elements(&piece, &work.bytes);
    work.operations = rule_operations(&piece, elements);
    arena_destroy(scratch);
    return work;
}

static bool has_local(Module *module, const Op *op, const Value *value, int device,
                      int64_t *local) {
    return value && value->layout && op_local(module, op, value, device, local);
}

static void note_extents(const BoundAccess *access, const int64_t *local, double *extent) {
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].count == 1) extent[access->dims[d].factors[0]] = (double)local[d];
}

Work op_device_work(Module *module, const Op *op, int device) {
    double extent[IR_MAX_FACTORS];
    int64_t local[IR_MAX_RANK];
    for (int f = 0; f < op->binding->factor_count; f++)
        extent[f] = (double)op->binding->factors[f].extent;
    for (int k = 0; k < op->operand_count; k++)
        if (has_local(module, op, op->operands[k], device, local))
            note_extents(&op->binding->operands[k], local, extent);
    for (int k = 0; k < op->result_count; k++)
        if (has_local(module, op, op->results[k], device, local))
            note_extents(&op->binding->results[k], local, extent);
    return op_work(op, extent);
}

/* ---- seconds ---- */

static double products_rate(const DeviceClass *class, const Work *work) {
    const Curve *own = &class->products[work->dtype];
    return curve_at(own->count ? own : &class->products[HT_F32], work->operations);
}

double work_seconds(const DeviceClass *class, const Work *work) {
    if (!class) return NAN;
    double rate = work->product ? products_rate(class, work) : class->arithmetic;
    if (work->product ? rate == 0 : rate == 0 && !class->memory_bandwidth.count) return NAN;
    if (work->bytes == 0) return 0;
    double computing = rate > 0 ? work->operations / rate : 0;
    double moving = class->memory_bandwidth.count
                        ? work->bytes / curve_at(&class->memory_bandwidth, work->bytes)
                        : 0;
    return class->start + fmax(computing, moving);
}

double slowest_seconds(const Cluster *cluster, const int *devices, int count, const Work *work) {
    double slowest = 0;
    const DeviceClass *last = NULL;
    for (int i = 0; i < count && !isnan(slowest); i++) {
        const DeviceClass *class = cluster_class(cluster, devices[i]);
        double seconds = i && class == last ? 0 : work_seconds(class, work);
        slowest = isnan(seconds) || seconds > slowest ? seconds : slowest;
        last = class;
    }
    return slowest;
}
