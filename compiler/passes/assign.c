#include "passes/assign.h"

#include <string.h>

static const double BYTES_A_FLOP = 0.02; // what repeating one operation costs, in bytes received

/* ---- factors ---- */

/* The dimension of an access that bound factor f is; -1 when it has none. */
static int factor_dim(const BoundAccess *access, int f)
{
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].count == 1 && access->dims[d].factors[0] == f)
            return d;
    return -1;
}

/* The name of a bound factor: that of any dimension that it is. */
static const char *factor_name(const Op *op, int f)
{
    const char *name = NULL;
    for (int k = 0; !name && k < op->result_count; k++) {
        int d = factor_dim(&op->binding->results[k], f);
        name = d >= 0 && op->results[k]->dims ? op->results[k]->dims[d] : NULL;
    }
    for (int k = 0; !name && k < op->operand_count; k++) {
        int d = op->operands[k] ? factor_dim(&op->binding->operands[k], f) : -1;
        name = d >= 0 && op->operands[k]->dims ? op->operands[k]->dims[d] : NULL;
    }
    return name;
}

static bool all_results_have(const Op *op, int f)
{
    for (int k = 0; k < op->result_count; k++)
        if (factor_dim(&op->binding->results[k], f) < 0)
            return false;
    return true;
}

/* Whether a tensor has a dimension that no factor may cut, because a merged dimension does not nest with the rest of the model. */
static bool has_opaque(const Op *op)
{
    for (int k = 0; k < op->operand_count; k++)
        for (int d = 0; op->operands[k] && d < op->binding->operands[k].rank; d++)
            if (!op->binding->operands[k].dims[d].count)
                return true;
    for (int k = 0; k < op->result_count; k++)
        for (int d = 0; d < op->binding->results[k].rank; d++)
            if (!op->binding->results[k].dims[d].count)
                return true;
    return false;
}

/* Whether factor `factor` of the rule is merged with others in some dimension. */
static bool is_merged(const Rule *rule, int factor)
{
    for (int k = 0; k < rule->operand_count + rule->result_count; k++) {
        const Access *access = k < rule->operand_count ? &rule->operands[k] : &rule->results[k - rule->operand_count];
        for (int d = 0; d < access->dim_count; d++)
            for (int i = 0; access->dims[d].count > 1 && i < access->dims[d].count; i++)
                if (access->dims[d].factors[i] == factor)
                    return true;
    }
    return false;
}

/* Whether bound factor f goes on inside a dimension that its kernel sees as one: a piece of it would not be a range of that dimension. */
static bool is_inner(const Value *value, const BoundAccess *access, int f)
{
    int d = value ? factor_dim(access, f) : -1;
    return d > 0 && access->dims[d - 1].written == access->dims[d].written && value->micro != d;
}

/* Whether a cut of bound factor f leaves a kernel that is told where its piece starts with a range. */
static bool keeps_range(const Op *op, int f)
{
    if (!op->def->rule->factors[op->binding->factors[f].factor].offset)
        return true;
    for (int k = 0; k < op->operand_count; k++)
        if (is_inner(op->operands[k], &op->binding->operands[k], f))
            return false;
    for (int k = 0; k < op->result_count; k++)
        if (is_inner(op->results[k], &op->binding->results[k], f))
            return false;
    return true;
}

/* Whether the rule lets bound factor f be cut. */
static bool may_cut(const Op *op, int f)
{
    const Rule *rule = op->def->rule;
    int factor = op->binding->factors[f].factor;
    if (rule->kind == RULE_VIEW || factor < 0)
        return all_results_have(op, f) && factor_dim(&op->binding->operands[0], f) >= 0;
    if (rule->factors[factor].replicate || (is_merged(rule, factor) && has_opaque(op)) || !keeps_range(op, f))
        return false;
    return all_results_have(op, f) || rule->factors[factor].reduction != REDUCE_NONE;
}

/* ---- prices ---- */

double convert_price(const Mesh *mesh, const Value *value, const Spread *from, const Spread *to)
{
    double bytes = (double)type_elements(value->type) * dtype_size(value->type.dtype), price = 0;
    for (int a = 0; a < mesh->axis_count; a++)
        if (from->at[a] >= 0 || (from->at[a] == SPREAD_DUP && to->at[a] >= 0))
            bytes /= mesh->axis[a].count;
    for (int a = 0; a < mesh->axis_count; a++) {
        double n = mesh->axis[a].count;
        bool partial = from->at[a] < SPREAD_DUP;
        if (partial && to->at[a] >= 0) {
            price += (n - 1) / n * bytes;
            bytes /= n;
        } else if (partial && to->at[a] == SPREAD_DUP)
            price += 2 * (n - 1) / n * bytes;
    }
    for (int a = 0; a < mesh->axis_count; a++)
        if (from->at[a] >= 0 && to->at[a] >= 0 && (from->at[a] != to->at[a] || from->major[a] != to->major[a]))
            price += (mesh->axis[a].count - 1.0) / mesh->axis[a].count * bytes;
    for (int a = 0; a < mesh->axis_count; a++)
        if (from->at[a] >= 0 && to->at[a] < 0) {
            price += (mesh->axis[a].count - 1) * bytes;
            bytes *= mesh->axis[a].count;
        }
    return price;
}

const Version *cheapest_version(const Mesh *mesh, const Version *versions, const Spread *to, double *price)
{
    const Version *best = NULL;
    for (const Version *version = versions; version; version = version->next) {
        double own = (double)type_elements(version->value->type) * dtype_size(version->value->type.dtype);
        if (version->known)
            own = spread_equal(mesh, &version->spread, to) ? -1 : convert_price(mesh, version->value, &version->spread, to);
        if (!best || own < *price) {
            best = version;
            *price = own;
        }
    }
    if (best && *price < 0)
        *price = 0;
    return best;
}

/* ---- what an assignment means ---- */

static void cut_access(const Mesh *mesh, const Assignment *assignment, const BoundAccess *access, Spread *spread)
{
    for (int i = 0; i < assignment->order_count; i++) {
        int a = assignment->order[i], d = factor_dim(access, assignment->factor[a]);
        if (d >= 0)
            spread_cut(mesh, spread, a, d);
    }
}

/* What operand k is over the axis, for passing partial sums: a sum, a scalar that one holder could keep, or neither. */
typedef enum Part { PART_NO, PART_SCALAR, PART_SUM } Part;

static Part part_of(const Op *op, Version *const *versions, int k, int axis)
{
    if (!versions[k]->known)
        return PART_NO;
    if (versions[k]->spread.at[axis] == SPREAD_SUM)
        return PART_SUM;
    return op->operands[k]->type.rank == 0 && versions[k]->spread.at[axis] == SPREAD_DUP ? PART_SCALAR : PART_NO;
}

/* The linear group whose operands are partial sums over the axis, or scalars beside at least one that is; 0 when there is none. */
static int partial_group(const Op *op, Version *const *versions, int axis)
{
    int group[64] = {0};
    if (op->def->rule->kind == RULE_VIEW)
        group[0] = 1;
    else if (op->def->rule->operand_count <= 64)
        rule_linear(op->def->rule, group);
    for (int g = 1; g <= 64; g++) {
        int members = 0, sums = 0, scalars = 0;
        for (int k = 0; k < op->operand_count; k++)
            if (op->operands[k] && group[op->binding->operands[k].access] == g) {
                Part part = part_of(op, versions, k, axis);
                members++;
                sums += part == PART_SUM;
                scalars += part == PART_SCALAR;
            }
        if (sums && members == sums + scalars)
            return g;
    }
    return 0;
}

static bool in_group(const Op *op, int k, int wanted)
{
    int group[64] = {0};
    if (op->def->rule->kind == RULE_VIEW)
        return wanted == 1;
    rule_linear(op->def->rule, group);
    return group[op->binding->operands[k].access] == wanted;
}

Spread assignment_operand(const Mesh *mesh, const Op *op, const Assignment *assignment, int k)
{
    Spread spread = spread_whole();
    cut_access(mesh, assignment, &op->binding->operands[k], &spread);
    for (int a = 0; a < mesh->axis_count; a++)
        if (assignment->factor[a] <= ASSIGN_PASS && in_group(op, k, ASSIGN_PASS + 1 - assignment->factor[a]))
            spread.at[a] = SPREAD_SUM;
    return spread;
}

Spread assignment_result(const Mesh *mesh, const Op *op, const Assignment *assignment, int k)
{
    Spread spread = spread_whole();
    const BoundAccess *access = &op->binding->results[k];
    cut_access(mesh, assignment, access, &spread);
    for (int a = 0; a < mesh->axis_count; a++) {
        int f = assignment->factor[a];
        if (f <= ASSIGN_PASS)
            spread.at[a] = SPREAD_SUM;
        else if (f >= 0 && factor_dim(access, f) < 0)
            spread.at[a] = op->def->rule->factors[op->binding->factors[f].factor].reduction == REDUCE_MAX ? SPREAD_MAX : SPREAD_SUM;
    }
    return spread;
}

static void put(Assignment *assignment, int axis, int factor)
{
    assignment->factor[axis] = factor;
    if (factor >= 0)
        assignment->order[assignment->order_count++] = axis;
}

static void take_back(Assignment *assignment, int axis)
{
    if (assignment->factor[axis] >= 0)
        assignment->order_count--;
    assignment->factor[axis] = ASSIGN_NONE;
}

/* Operations of the whole call over the axes that cut it. */
static double work(const Mesh *mesh, const Op *op, const Assignment *assignment)
{
    double flops = 1;
    for (int f = 0; f < op->binding->factor_count; f++)
        flops *= (double)op->binding->factors[f].extent;
    for (int i = 0; i < assignment->order_count; i++)
        flops /= mesh->axis[assignment->order[i]].count;
    return flops;
}

/* The price of an assignment: conversions of the operands, reductions of the results still to come (a scatter alone for gradients whose
 * states are cut), arithmetic. */
static double price_of(const Mesh *mesh, const Op *op, Version *const *versions, const Assignment *assignment)
{
    double total = work(mesh, op, assignment) * BYTES_A_FLOP;
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k]) {
            Spread need = assignment_operand(mesh, op, assignment, k);
            double price = 0;
            cheapest_version(mesh, versions[k], &need, &price);
            total += price;
        }
    for (int k = 0; k < op->result_count; k++) {
        Spread made = assignment_result(mesh, op, assignment, k), reduced = made;
        for (int a = 0; a < mesh->axis_count; a++)
            if (reduced.at[a] < SPREAD_DUP)
                reduced.at[a] = SPREAD_DUP;
        double price = convert_price(mesh, op->results[k], &made, &reduced);
        total += mesh->zero && mesh->gradient && mesh->gradient[op->results[k]->id] ? price / 2 : price;
    }
    return total;
}

/* ---- the choice ---- */

/* Axes that split rules give a factor of this operator. */
static void assign_named(Mesh *mesh, const Op *op, Assignment *assignment)
{
    for (int i = 0; i < mesh->rules.count; i++) {
        MeshRule *rule = &mesh->rules.at[i];
        if (assignment->factor[rule->axis] >= 0)
            continue;
        for (int f = 0; f < op->binding->factor_count; f++) {
            const char *name = factor_name(op, f);
            if (!name || strcmp(name, rule->dim))
                continue;
            if (may_cut(op, f)) {
                put(assignment, rule->axis, f);
                rule->used = true;
                break;
            }
            rule->refused = op;
        }
    }
}

/* Whether an operand exists cut by this axis along bound factor f. */
static bool already_cut(const Op *op, Version *const *versions, int axis, int f)
{
    for (int k = 0; k < op->operand_count; k++)
        for (const Version *version = versions[k]; op->operands[k] && version; version = version->next)
            if (version->known && version->spread.at[axis] >= 0 && factor_dim(&op->binding->operands[k], f) == version->spread.at[axis])
                return true;
    return false;
}

static void assign_by_price(const Mesh *mesh, const Op *op, Version *const *versions, Assignment *assignment, int axis)
{
    double least = price_of(mesh, op, versions, assignment);
    int best = ASSIGN_NONE, group = partial_group(op, versions, axis);
    for (int f = group ? -1 : 0; f < op->binding->factor_count; f++) {
        if (f >= 0 && (!may_cut(op, f) || !already_cut(op, versions, axis, f)))
            continue;
        int candidate = f >= 0 ? f : ASSIGN_PASS + 1 - group;
        put(assignment, axis, candidate);
        double price = price_of(mesh, op, versions, assignment);
        take_back(assignment, axis);
        if (price < least ||
            (price == least && candidate <= ASSIGN_PASS && (op->results[0]->type.rank == 0 || op->results[0]->micro == MICRO_SUM))) {
            least = price;
            best = candidate;
        }
    }
    put(assignment, axis, best);
}

Assignment assign_axes(Mesh *mesh, const Op *op, Version *const *versions)
{
    Assignment assignment = {.order_count = 0};
    for (int a = 0; a < MESH_MOST; a++)
        assignment.factor[a] = ASSIGN_NONE;
    assign_named(mesh, op, &assignment);
    for (int a = 0; a < mesh->axis_count; a++)
        if (assignment.factor[a] == ASSIGN_NONE && mesh->axis[a].count > 1)
            assign_by_price(mesh, op, versions, &assignment, a);
    return assignment;
}
