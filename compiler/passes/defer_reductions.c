/* Pass defer_reductions: adds values of the same layout before they are converted, so that a sum
 * needs one conversion for each layout.
 *
 *     before    n = reshard(a{sum:tp}) + reshard(b{sum:tp}) + c{dup:tp}      two all-reduces
 *     after     n = reshard(a + b) + c                                       one all-reduce
 *
 * The norm of all gradients is such a sum: in the order of the parameters, gradients cut along one
 * axis stand between gradients cut along another.
 *
 * Requires: pass propagate_layouts, which converts the operands of each addition separately.
 *
 * Leaves: sums with fewer conversions, whose terms are in another order. Other sums do not change.
 */
#include "ir/analysis/async_collectives.h"
#include "ir/analysis/phases.h"
#include "passes/pass_manager.h"

typedef Array(Value *) Terms;

/* The terms of a sum that have the same layout. */
typedef struct Alike {
    const Layout *layout;
    Terms terms;
} Alike;
typedef Array(Alike) Groups;

/* A sum with fewer conversions, before it is built. */
typedef struct Better {
    Groups groups;      // the group with the sum's own layout comes last
    const char *reason; // the purpose of its conversions, for remarks
} Better;

typedef struct Sums {
    Module *module;
    Arena *arena;
    int *readers; // by value id: number of its uses, as operand or as output of the module
    bool *inside; // by op index: belongs to a larger sum, which is replaced
    Ops out;
    Op *root; // the last addition of the current sum
    Terms terms;
    Ops old;         // additions and conversions of the current sum
    int conversions; // number of conversions in `old`
} Sums;

/* ---- the terms ---- */

static void count_reader(Sums *sums, const Value *value) {
    if (value) sums->readers[value->id]++;
}

static void count_readers(Sums *sums) {
    const Module *module = sums->module;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++)
            count_reader(sums, module->ops.at[i]->operands[k]);
    count_reader(sums, module->loss);
    for (int i = 0; i < module->outputs.count; i++) count_reader(sums, module->outputs.at[i].value);
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        count_reader(sums, param->gradient);
        count_reader(sums, param->updated);
        for (int s = 0; s < param->state_count; s++) count_reader(sums, param->states_updated[s]);
    }
}

/* Returns whether an operator adds two values of the layout and micro-batch of its result. */
static bool is_sum(Module *module, const Op *op) {
    if (!op_adds_alike(op) || op->run_in_place) return false;
    for (int k = 0; k < 2; k++)
        if (!micro_equal(op->operands[k]->micro, op->results[0]->micro) ||
            !module_layouts_equal(module, op->operands[k]->layout, op->results[0]->layout,
                                  op->results[0]->type))
            return false;
    return true;
}

/* Returns whether an operator is a conversion, not async and within a stage, that propagate_layouts
 * inserted in the sum's phase. A conversion from or to a pending maximum does not count. */
static bool is_conversion(const Sums *sums, const Op *op) {
    return op->def == sums->module->builtin->reshard && op->source->reason &&
           !op_crosses_stages(sums->module, op) && !op_is_async(sums->module, op) &&
           same_phase(sums->module, op, sums->root) &&
           micro_equal(op->operands[0]->micro, op->results[0]->micro) &&
           layout_partial(op->operands[0]->layout) != STATE_MAX &&
           layout_partial(op->results[0]->layout) != STATE_MAX;
}

/* Lists the terms of a value, and (in `old`) the additions and conversions between them. */
static void gather(Sums *sums, Value *value) {
    Op *op = value->def;
    bool alone = op && sums->readers[value->id] == 1 && !op->source->recomputes &&
                 op->loop == sums->root->loop;
    bool sum = alone && is_sum(sums->module, op) && same_phase(sums->module, op, sums->root);
    bool conversion = alone && !sum && is_conversion(sums, op);
    if (!sum && !conversion) {
        array_push(sums->arena, &sums->terms, value);
        return;
    }
    sums->conversions += conversion;
    sums->inside[op->index] = true;
    array_push(sums->arena, &sums->old, op);
    for (int k = 0; k < op->operand_count; k++) gather(sums, op->operands[k]);
}

/* Groups the terms by layout. The group that needs no conversion comes last. */
static Groups group_terms(const Sums *sums) {
    Module *module = sums->module;
    const Value *root = sums->root->results[0];
    Groups groups = {0};
    Alike whole = {.layout = root->layout};
    for (int t = 0; t < sums->terms.count; t++) {
        Value *term = sums->terms.at[t];
        Alike *own =
            module_layouts_equal(module, term->layout, root->layout, root->type) ? &whole : NULL;
        for (int g = 0; g < groups.count && !own; g++)
            own = module_layouts_equal(module, term->layout, groups.at[g].layout, root->type)
                      ? &groups.at[g]
                      : NULL;
        if (!own) {
            array_push(sums->arena, &groups, ((Alike){.layout = term->layout}));
            own = &groups.at[groups.count - 1];
        }
        array_push(sums->arena, &own->terms, term);
    }
    if (whole.terms.count) array_push(sums->arena, &groups, whole);
    return groups;
}

/* ---- rebuilding a sum ---- */

/* Appends to `out` an operator with the source position of the sum's last addition. */
static Op *insert(Sums *sums, const OpDef *def, Value *const *operands, int count,
                  const Layout *layout) {
    const Value *root = sums->root->results[0];
    Op *op = ir_op_like(sums->module, &(OpCall){def, operands, count, NULL}, sums->root);
    op->results[0]->type = root->type;
    op->results[0]->micro = root->micro;
    op->results[0]->layout = layout;
    array_push(sums->module->arena, &sums->out, op);
    return op;
}

/* Returns the sum of two values of one layout; if `a` is NULL, returns `b`. */
static Value *add(Sums *sums, Value *a, Value *b, const Layout *layout) {
    Value *operands[] = {a, b};
    return a ? insert(sums, sums->root->def, operands, 2, layout)->results[0] : b;
}

/* Returns `sum` plus the terms of a group with the same layout. `sum` NULL: only the terms. */
static Value *add_group(Sums *sums, Value *sum, const Alike *group) {
    for (int t = 0; t < group->terms.count; t++)
        sum = add(sums, sum, group->terms.at[t], group->layout);
    return sum;
}

static const char *first_reason(const Sums *sums) {
    for (int i = 0; i < sums->old.count; i++)
        if (sums->old.at[i]->source->reason) return sums->old.at[i]->source->reason;
    return NULL;
}

static bool is_whole(const Sums *sums, const Alike *group) {
    const Value *root = sums->root->results[0];
    return module_layouts_equal(sums->module, group->layout, root->layout, root->type);
}

/* Builds the sum in the place of its last addition: adds up each group, converts its sum, and adds
 * the converted sums. The last new operator takes over the result of the old sum. */
static void add_anew(Sums *sums, const Better *better) {
    Value *root = sums->root->results[0], *sum = NULL;
    for (int g = 0; g < better->groups.count; g++) {
        const Alike *group = &better->groups.at[g];
        if (is_whole(sums, group)) {
            sum = add_group(sums, sum, group);
            continue;
        }
        Value *own = add_group(sums, NULL, group);
        Op *op = insert(sums, sums->module->builtin->reshard, &own, 1, root->layout);
        op_change_source(sums->module->arena, op)->reason = better->reason;
        sum = add(sums, sum, op->results[0], root->layout);
    }
    Op *last = sums->out.at[sums->out.count - 1];
    last->results[0] = root;
    root->def = last;
    root->index = 0;
}

/* Finds the terms, operators and conversions of the sum whose last addition is `root`. */
static void find_terms(Sums *sums, Op *root) {
    sums->root = root;
    sums->terms = (Terms){0};
    sums->old = (Ops){0};
    sums->conversions = 0;
    for (int k = 0; k < 2; k++) gather(sums, root->operands[k]);
}

/* Returns the sum that ends in `root` with fewer conversions; NULL: no conversion can be saved. */
static Better *find_better(Sums *sums, Op *root) {
    find_terms(sums, root);
    Better better = {group_terms(sums), first_reason(sums)};
    int needed = better.groups.count - is_whole(sums, &better.groups.at[better.groups.count - 1]);
    if (needed < sums->conversions) return arena_copy(sums->arena, &better, sizeof better);
    for (int o = 0; o < sums->old.count; o++) sums->inside[sums->old.at[o]->index] = false;
    return NULL;
}

void pass_defer_reductions(Module *module, const PassContext *context) {
    (void)context;
    Sums sums = {.module = module, .arena = arena_create()};
    ir_number(module);
    sums.readers = arena_array(sums.arena, int, module->next_id);
    sums.inside = arena_array(sums.arena, bool, module->ops.count + 1);
    Better **better = arena_array(sums.arena, Better *, module->ops.count + 1);
    count_readers(&sums);
    // 1: find sums that can save conversions; the last addition of a sum is visited first
    for (int i = module->ops.count - 1; i >= 0; i--)
        if (!sums.inside[i] && !module->ops.at[i]->source->recomputes &&
            is_sum(module, module->ops.at[i]))
            better[i] = find_better(&sums, module->ops.at[i]);
    // 2: rebuild the list of operators with the new sums
    for (int i = 0; i < module->ops.count; i++) {
        sums.root = module->ops.at[i];
        if (better[i]) add_anew(&sums, better[i]);
        else if (!sums.inside[i]) array_push(module->arena, &sums.out, sums.root);
    }
    module->ops.at = sums.out.at;
    module->ops.count = sums.out.count;
    module->ops.capacity = sums.out.capacity;
    ir_number(module);
    arena_destroy(sums.arena);
}
