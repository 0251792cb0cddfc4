/* Decides which dimensions are equal, and into which factors each splits. names.c names factors. */
#include "passes/factor_dims/equal_dims.h"
#include "passes/microbatch/rows_per_microbatch.h"

#include <string.h>

typedef Array(int64_t) Cuts;

int classes_root(const Classes *classes, int node) {
    while (classes->parent[node] != node) {
        classes->parent[node] = classes->parent[classes->parent[node]];
        node = classes->parent[node];
    }
    return node;
}

/* Unites two classes. The smaller root stays the root, so the order of calls does not matter. */
static void unite(Classes *classes, int a, int b) {
    a = classes_root(classes, a);
    b = classes_root(classes, b);
    classes->parent[a > b ? a : b] = a < b ? a : b;
}

/* ---- nodes ---- */

/* Calls `visit` for every value of the module that is not an operator's result. */
static void each_leaf(const Module *module, Classes *classes,
                      void (*visit)(Classes *, const Value *)) {
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *parameter = module->params.at[i];
        visit(classes, parameter->value);
        for (int s = 0; s < parameter->state_count; s++) visit(classes, parameter->states[s]);
    }
    for (int i = 0; i < module->inputs.count; i++) visit(classes, module->inputs.at[i]);
}

static void number_value(Classes *classes, const Value *value) {
    classes->value_node[value->id] = classes->node_count;
    classes->node_count += value->type.rank;
}

/* Gives every dimension and every bound factor a node. */
static void number_nodes(Classes *classes, const Module *module) {
    classes->value_node = arena_array(classes->arena, int, module->next_id);
    classes->op_node = arena_array(classes->arena, int, module->ops.count);
    classes->op_equation = arena_array(classes->arena, int, module->ops.count);
    for (int i = 0; i < module->next_id; i++) classes->value_node[i] = -1;
    each_leaf(module, classes, number_value);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int r = 0; r < op->result_count; r++) number_value(classes, op->results[r]);
        classes->op_node[i] = classes->node_count;
        classes->node_count += op->binding->factor_count;
    }
}

static void extend_value(Classes *classes, const Value *value) {
    int node = classes->value_node[value->id];
    for (int d = 0; d < value->type.rank; d++) classes->extent[node + d] = value->type.extent[d];
}

static void fill_extents(Classes *classes, const Module *module) {
    classes->parent = arena_array(classes->arena, int, classes->node_count);
    classes->extent = arena_array(classes->arena, int64_t, classes->node_count);
    for (int i = 0; i < classes->node_count; i++) classes->parent[i] = i;
    each_leaf(module, classes, extend_value);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int r = 0; r < op->result_count; r++) extend_value(classes, op->results[r]);
        for (int f = 0; f < op->binding->factor_count; f++)
            classes->extent[classes->op_node[i] + f] = op->binding->factors[f].extent;
    }
}

/* ---- equations ---- */

static void add_equation(Classes *classes, Equation equation) {
    equation.left =
        arena_copy(classes->arena, equation.left, sizeof(int) * (size_t)equation.left_count);
    equation.right =
        arena_copy(classes->arena, equation.right, sizeof(int) * (size_t)equation.right_count);
    array_push(classes->arena, &classes->equations, equation);
}

/* Unites a dimension of one factor with that factor. Adds an equation for a merged dimension. */
static void relate_access(Classes *classes, const Op *op, const Value *value,
                          const BoundAccess *access) {
    if (!value) return;
    for (int d = 0; d < access->rank; d++) {
        int node = classes->value_node[value->id] + d, nodes[IR_MAX_RANK];
        const BoundDim *dim = &access->dims[d];
        for (int f = 0; f < dim->count; f++)
            nodes[f] = classes->op_node[op->index] + dim->factors[f];
        if (dim->count == 1) unite(classes, node, nodes[0]);
        else if (dim->count > 1)
            add_equation(classes, (Equation){op, 1, dim->count, &node, nodes, true, false});
    }
}

/* Relates the two sides of a reshape, from the last dimension on. The shortest runs of dimensions
 * with equal products are united (one to one) or make an equation. A run also takes the preceding
 * dimensions of extent 1 that only one side has. */
static void relate_view(Classes *classes, const Op *op) {
    const Value *x = op->operands[0], *y = op->results[0];
    int i = x->type.rank, j = y->type.rank, x_node = classes->value_node[x->id],
        y_node = classes->value_node[y->id];
    int left[IR_MAX_RANK], right[IR_MAX_RANK];
    while (i > 0 || j > 0) {
        int64_t p = 1, q = 1;
        int first = i, second = j;
        do {
            if (i > 0 && (p <= q || j == 0)) p *= x->type.extent[--i];
            else if (j > 0) q *= y->type.extent[--j];
        } while (p != q && (i > 0 || j > 0));
        while (i > 0 && x->type.extent[i - 1] == 1 && !(j > 0 && y->type.extent[j - 1] == 1)) i--;
        while (j > 0 && y->type.extent[j - 1] == 1 && !(i > 0 && x->type.extent[i - 1] == 1)) j--;
        for (int d = i; d < first; d++) left[d - i] = x_node + d;
        for (int d = j; d < second; d++) right[d - j] = y_node + d;
        if (first - i == 1 && second - j == 1) unite(classes, left[0], right[0]);
        else if (first > i && second > j)
            add_equation(classes, (Equation){op, first - i, second - j, left, right, false, false});
    }
}

static void relate(Classes *classes, const Module *module) {
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        classes->op_equation[i] = classes->equations.count;
        if (op->def->rule->kind == RULE_VIEW) {
            relate_view(classes, op);
            continue;
        }
        for (int k = 0; k < op->operand_count; k++)
            relate_access(classes, op, op->operands[k], &op->binding->operands[k]);
        for (int k = 0; k < op->result_count; k++)
            relate_access(classes, op, op->results[k], &op->binding->results[k]);
    }
}

/* ---- cuts ---- */

/* Adds a cut to a sorted list of distinct cuts. Returns whether the cut is new. */
static bool cuts_add(Arena *arena, Cuts *cuts, int64_t cut) {
    int at = 0;
    while (at < cuts->count && cuts->at[at] < cut) at++;
    if (at < cuts->count && cuts->at[at] == cut) return false;
    array_push(arena, cuts, cut);
    memmove(cuts->at + at + 1, cuts->at + at, sizeof(int64_t) * (size_t)(cuts->count - 1 - at));
    cuts->at[at] = cut;
    return true;
}

static int64_t product(const Classes *classes, const int *nodes, int count) {
    int64_t n = 1;
    for (int i = 0; i < count; i++) n *= classes->extent[nodes[i]];
    return n;
}

/* Adds to `all` the cuts on one side of an equation: between its nodes, and inside them. */
static void collect(Classes *classes, const Cuts *by_class, const int *nodes, int count,
                    int64_t total, Cuts *all) {
    for (int i = 0; i < count; i++) {
        int64_t suffix = product(classes, nodes + i + 1, count - i - 1);
        const Cuts *own = &by_class[classes_root(classes, nodes[i])];
        if (suffix > 1 && suffix < total) cuts_add(classes->arena, all, suffix);
        for (int c = 0; c < own->count; c++) cuts_add(classes->arena, all, own->at[c] * suffix);
    }
}

/* Adds to each node of one side the cuts that fall inside the node. Returns whether any is new. */
static bool distribute(Classes *classes, Cuts *by_class, const int *nodes, int count,
                       const Cuts *all) {
    bool changed = false;
    for (int i = 0; i < count; i++) {
        int64_t suffix = product(classes, nodes + i + 1, count - i - 1),
                end = suffix * classes->extent[nodes[i]];
        for (int c = 0; c < all->count; c++)
            if (all->at[c] > suffix && all->at[c] < end)
                changed |= cuts_add(classes->arena, &by_class[classes_root(classes, nodes[i])],
                                    all->at[c] / suffix);
    }
    return changed;
}

/* Returns whether each cut divides the next, and the last one divides the whole. */
static bool nests(const Cuts *cuts, int64_t total) {
    for (int i = 0; i < cuts->count; i++)
        if ((i + 1 < cuts->count ? cuts->at[i + 1] : total) % cuts->at[i]) return false;
    return true;
}

/* Exchanges cuts between an equation's sides, or makes the equation opaque. True: a cut is new. */
static bool exchange(Classes *classes, Cuts *by_class, Equation *equation) {
    int64_t total = product(classes, equation->left, equation->left_count);
    Cuts all = {0};
    collect(classes, by_class, equation->left, equation->left_count, total, &all);
    collect(classes, by_class, equation->right, equation->right_count, total, &all);
    if (total == 0 || !nests(&all, total)) {
        equation->opaque = true;
        return false;
    }
    bool changed = distribute(classes, by_class, equation->left, equation->left_count, &all);
    return distribute(classes, by_class, equation->right, equation->right_count, &all) || changed;
}

/* Returns the node of the batch dimension; -1: no input has one. */
static int batch_node(const Classes *classes, const Module *module) {
    const Value *input = microbatch_input(module);
    return input ? classes->value_node[input->id] : -1;
}

/* Returns the cuts of each class: propagates them along equations until nothing changes. */
static Cuts *find_cuts(Classes *classes) {
    Cuts *by_class = arena_array(classes->arena, Cuts, classes->node_count);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < classes->equations.count; i++)
            if (!classes->equations.at[i].opaque)
                changed |= exchange(classes, by_class, &classes->equations.at[i]);
    }
    return by_class;
}

/* ---- atoms ---- */

static int atom_root(const Classes *classes, int atom) {
    while (classes->atom_parent[atom] != atom)
        atom = classes->atom_parent[atom] = classes->atom_parent[classes->atom_parent[atom]];
    return atom;
}

static void number_atoms(Classes *classes, const Cuts *by_class) {
    classes->first_atom = arena_array(classes->arena, int, classes->node_count);
    classes->atom_count = arena_array(classes->arena, int, classes->node_count);
    for (int i = 0; i < classes->node_count; i++) {
        if (classes->parent[i] != i) continue;
        classes->first_atom[i] = classes->atom_total;
        classes->atom_count[i] = classes->extent[i] == 1 ? 0 : by_class[i].count + 1;
        classes->atom_total += classes->atom_count[i];
    }
    classes->atom_parent = arena_array(classes->arena, int, classes->atom_total);
    classes->atom_extent = arena_array(classes->arena, int64_t, classes->atom_total);
    for (int i = 0; i < classes->node_count; i++) {
        int64_t rest = classes->extent[i];
        for (int j = 0; classes->parent[i] == i && j < classes->atom_count[i]; j++) {
            int64_t cut = j < by_class[i].count ? by_class[i].at[by_class[i].count - 1 - j] : 1;
            classes->atom_extent[classes->first_atom[i] + j] = rest / cut;
            classes->atom_parent[classes->first_atom[i] + j] = classes->first_atom[i] + j;
            rest = cut;
        }
    }
}

/* Writes to atoms[] the atoms of several nodes in order. Returns how many there are. */
static int flatten(const Classes *classes, const int *nodes, int count, int *atoms) {
    int total = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < classes_atoms(classes, nodes[i]); j++)
            atoms[total++] = classes_atom(classes, nodes[i], j);
    return total;
}

static void unite_atoms(Classes *classes) {
    enum { MOST = IR_MAX_RANK * 8 };
    for (int i = 0; i < classes->equations.count; i++) {
        const Equation *equation = &classes->equations.at[i];
        int left[MOST], right[MOST];
        if (equation->opaque) continue;
        int count = flatten(classes, equation->left, equation->left_count, left);
        if (flatten(classes, equation->right, equation->right_count, right) != count)
            BUG("the two sides of a reshape have different factors");
        for (int j = 0; j < count; j++) {
            int a = atom_root(classes, left[j]), b = atom_root(classes, right[j]);
            classes->atom_parent[a > b ? a : b] = a < b ? a : b;
        }
    }
}

int classes_atom(const Classes *classes, int node, int j) {
    return atom_root(classes, classes->first_atom[classes_root(classes, node)] + j);
}

int classes_atoms(const Classes *classes, int node) {
    return classes->atom_count[classes_root(classes, node)];
}

Classes *classes_create(Arena *arena, const Module *module) {
    Classes *classes = arena_new(arena, Classes);
    classes->arena = arena;
    // 1: nodes and their classes, united by rules
    number_nodes(classes, module);
    fill_extents(classes, module);
    relate(classes, module);
    // 2: atoms of classes, from the cuts that equations give
    number_atoms(classes, find_cuts(classes));
    unite_atoms(classes);
    // 3: the atom that micro-batches cut
    int batch = batch_node(classes, module);
    classes->batch_rows = batch >= 0 ? classes->extent[batch] : 0;
    classes->micro_atom = batch >= 0 && microbatch_cuts(module) && classes_atoms(classes, batch)
                              ? classes_atom(classes, batch, 0)
                              : -1;
    return classes;
}
