/* Names factors after the named dimensions of the source, such as heads inside a qkv matrix. */
#include "passes/factor_dims/factor_dims.h"

/* Names of atoms that have been found so far. */
typedef struct Naming {
    const Module *module;
    const Classes *classes;
    Arena *arena;
    DimName *name;    // by atom
    Position *at;     // by atom: source position that gives the name
    int *equation[2]; // by class: 1 + the index of the first equation that splits the class, made
                      // by a reshape ([0]) or by a merged dimension ([1]); 0: none
} Naming;

static const char *shown(const Naming *naming, DimName name) {
    return name.part ? arena_format(naming->arena, "%s:%d", name.name, name.part) : name.name;
}

static void name_atom(Naming *naming, int atom, DimName name, Position at) {
    DimName old = naming->name[atom];
    if (!name.name) return;
    if (old.name && !dim_equal(old, name)) {
        diag_error(
            naming->module->diag, at,
            "the dimension named \"%s\" here is \"%s\" elsewhere: operators tie the two together",
            shown(naming, name), shown(naming, old));
        diag_note(naming->module->diag, naming->at[atom],
                  "\"%s\" was named here; give both one name, or leave one unnamed with _",
                  shown(naming, old));
        return;
    }
    naming->name[atom] = name;
    naming->at[atom] = at;
}

/* Returns whether atom j of a class equals an earlier one, as in a reshape of (n, n) to n * n. */
static bool is_repeated(const Naming *naming, int node, int j) {
    for (int i = 0; i < j; i++)
        if (classes_atom(naming->classes, node, i) == classes_atom(naming->classes, node, j))
            return true;
    return false;
}

/* Names the atoms of a class: parts 0, 1, ... of a name. */
static void name_run(Naming *naming, int node, const char *name, Position at) {
    for (int j = 0, k = 0; j < classes_atoms(naming->classes, node); j++) {
        int atom = classes_atom(naming->classes, node, j);
        if (!is_repeated(naming, node, j)) name_atom(naming, atom, (DimName){name, k++}, at);
    }
}

/* Returns the nodes into which a merged dimension (`compound`) or a reshape splits the class of
 * `node`, and writes their number to *count; NULL: the class is not split. */
static const int *parts_of(const Naming *naming, int node, bool compound, int *count) {
    int root = classes_root(naming->classes, node), index = naming->equation[compound][root];
    if (!index) return NULL;
    const Equation *equation = &naming->classes->equations.at[index - 1];
    bool left =
        equation->left_count == 1 && classes_root(naming->classes, equation->left[0]) == root;
    *count = left ? equation->right_count : equation->left_count;
    return left ? equation->right : equation->left;
}

/* Finds for every class the first equation of each kind that has one side of this class alone. */
static void index_equations(Naming *naming) {
    const Classes *classes = naming->classes;
    for (int kind = 0; kind < 2; kind++)
        naming->equation[kind] = arena_array(naming->arena, int, classes->node_count);
    for (int i = 0; i < classes->equations.count; i++) {
        const Equation *equation = &classes->equations.at[i];
        int *first = naming->equation[equation->compound];
        if (equation->opaque) continue;
        if (equation->left_count == 1 && !first[classes_root(classes, equation->left[0])])
            first[classes_root(classes, equation->left[0])] = i + 1;
        if (equation->right_count == 1 && !first[classes_root(classes, equation->right[0])])
            first[classes_root(classes, equation->right[0])] = i + 1;
    }
}

static bool any_named(const Naming *naming, int node) {
    for (int j = 0; j < classes_atoms(naming->classes, node); j++)
        if (naming->name[classes_atom(naming->classes, node, j)].name) return true;
    return false;
}

/* Names a dimension: round 0 if it is one atom or merged in a rule, round 1 other nameless ones. */
static void name_class(Naming *naming, int node, const char *name, Position at, int round) {
    int count;
    bool direct = classes_atoms(naming->classes, node) <= 1 || parts_of(naming, node, true, &count);
    if (round == 0 ? direct : !direct && !any_named(naming, node)) name_run(naming, node, name, at);
}

/* Returns the source position of the names of a value's dimensions. */
static Position named_at(const Value *value) {
    return value->dims_at.file ? value->dims_at : value->at;
}

static void report_factors(const Naming *naming, const Value *value, int d, bool split) {
    Text names = {.arena = naming->arena};
    for (int i = 0; i < value->dims[d].count; i++)
        text_print(&names, "%s%s", i ? " " : "",
                   value->dims[d].names[i].name ? value->dims[d].names[i].name : "_");
    diag_error(naming->module->diag, named_at(value),
               "\"(%s)\" names %d factors of a dimension of %ld that the model %s",
               text_bytes(&names), value->dims[d].count, (long)value->type.extent[d],
               split ? "splits differently" : "never splits by a reshape");
}

/* Returns whether the atoms of a class are named elsewhere by a subsequence of a dimension's names.
 * All other names then belong to factors of extent 1, such as groups of one head. */
static bool names_some(const Naming *naming, int node, const Dim *dim) {
    int i = 0;
    for (int j = 0; j < classes_atoms(naming->classes, node); j++, i++) {
        DimName given = naming->name[classes_atom(naming->classes, node, j)];
        while (i < dim->count &&
               !(given.name ? dim->names[i].name && dim_equal(given, dim->names[i])
                            : !dim->names[i].name))
            i++;
    }
    return i <= dim->count;
}

static void name_dim(Naming *naming, const Value *value, int d, int round) {
    int node = naming->classes->value_node[value->id] + d, parts = 0, count = value->dims[d].count;
    const DimName *names = value->dims[d].names;
    if (count == 1) {
        name_class(naming, node, names[0].name, named_at(value), round);
        return;
    }
    const int *part = parts_of(naming, node, false, &parts);
    if (part && parts == count)
        for (int i = 0; i < count; i++)
            name_class(naming, part[i], names[i].name, named_at(value), round);
    else if (classes_atoms(naming->classes, node) == count)
        for (int i = 0; round == 0 && i < count; i++)
            name_atom(naming, classes_atom(naming->classes, node, i), names[i], named_at(value));
    else if (round == 1 && !names_some(naming, node, &value->dims[d]))
        report_factors(naming, value, d, part);
}

static void name_value(Naming *naming, const Value *value, int round) {
    for (int d = 0; value->dims && d < value->type.rank; d++)
        if (value->dims[d].count) name_dim(naming, value, d, round);
}

const DimName *atom_names(Arena *arena, const Module *module, const Classes *classes) {
    Naming naming = {.module = module, .classes = classes, .arena = classes->arena};
    naming.name = arena_array(arena, DimName, classes->atom_total);
    naming.at = arena_array(arena, Position, classes->atom_total);
    index_equations(&naming);
    // round 0 has precedence: see name_class
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < module->params.count; i++)
            name_value(&naming, module->params.at[i]->value, round);
        for (int i = 0; i < module->inputs.count; i++)
            name_value(&naming, module->inputs.at[i], round);
        for (int i = 0; i < module->ops.count; i++)
            for (int r = 0; r < module->ops.at[i]->result_count &&
                            module->ops.at[i]->section == SECTION_FORWARD;
                 r++)
                name_value(&naming, module->ops.at[i]->results[r], round);
    }
    return naming.name;
}
