#include "passes/refine/names.h"

#include <string.h>

typedef struct Naming {
    const Module *module;
    const Classes *classes;
    Arena *arena;
    const char **name; // by atom
    Position *at;      // where the name was given
    Array(const char *) known;
    int *equation[2]; // by class: 1 + the index of its first equation, of reshapes and of merged dimensions
} Naming;

enum { WORDS = IR_MAX_RANK };

/* The one copy of a name. */
static const char *known_name(Naming *naming, const char *name)
{
    for (int i = 0; i < naming->known.count; i++)
        if (!strcmp(naming->known.at[i], name))
            return naming->known.at[i];
    const char *copy = arena_string(naming->module->arena, name);
    array_push(naming->arena, &naming->known, copy);
    return copy;
}

static void name_atom(Naming *naming, int atom, const char *name, Position at)
{
    if (!strcmp(name, "_"))
        return;
    name = known_name(naming, name);
    const char *old = naming->name[atom];
    if (old && old != name) {
        diag_error(naming->module->diag, at, "the dimension named \"%s\" here is \"%s\" elsewhere: operators tie the two together", name,
                   old);
        diag_note(naming->module->diag, naming->at[atom], "\"%s\" was named here; give both one name, or leave one unnamed with _", old);
        return;
    }
    naming->name[atom] = name;
    naming->at[atom] = at;
}

/* Whether atom j of a class is one of those before it: the two dimensions that a reshape merged are one and the same. */
static bool is_repeated(const Naming *naming, int node, int j)
{
    for (int i = 0; i < j; i++)
        if (classes_atom(naming->classes, node, i) == classes_atom(naming->classes, node, j))
            return true;
    return false;
}

/* Names all atoms of a class N, N.1, N.2, ...; the loop over micro-batches has no name. */
static void name_run(Naming *naming, int node, const char *name, Position at)
{
    for (int j = 0, k = 0; j < classes_atoms(naming->classes, node); j++) {
        int atom = classes_atom(naming->classes, node, j);
        if (atom == naming->classes->micro_atom || is_repeated(naming, node, j))
            continue;
        name_atom(naming, atom, k && strcmp(name, "_") ? arena_format(naming->arena, "%s.%d", name, k) : name, at);
        k++;
    }
}

/* The side of an equation that says what the class of `node` is a product of: of a rule's merged dimension, or of a reshape; NULL when
 * there is none. */
static const int *parts_of(const Naming *naming, int node, bool compound, int *count)
{
    int root = classes_root(naming->classes, node), index = naming->equation[compound][root];
    if (!index)
        return NULL;
    const Equation *equation = &naming->classes->equations.at[index - 1];
    bool left = equation->left_count == 1 && classes_root(naming->classes, equation->left[0]) == root;
    *count = left ? equation->right_count : equation->left_count;
    return left ? equation->right : equation->left;
}

/* Remembers for every class the first equation of each kind that has it alone on one side. */
static void index_equations(Naming *naming)
{
    const Classes *classes = naming->classes;
    for (int kind = 0; kind < 2; kind++)
        naming->equation[kind] = arena_array(naming->arena, int, classes->node_count);
    for (int i = 0; i < classes->equations.count; i++) {
        const Equation *equation = &classes->equations.at[i];
        int *first = naming->equation[equation->compound];
        if (equation->opaque)
            continue;
        if (equation->left_count == 1 && !first[classes_root(classes, equation->left[0])])
            first[classes_root(classes, equation->left[0])] = i + 1;
        if (equation->right_count == 1 && !first[classes_root(classes, equation->right[0])])
            first[classes_root(classes, equation->right[0])] = i + 1;
    }
}

static bool any_named(const Naming *naming, int node)
{
    for (int j = 0; j < classes_atoms(naming->classes, node); j++)
        if (naming->name[classes_atom(naming->classes, node, j)])
            return true;
    return false;
}

/* Atoms of a class, without that of the micro-batches. */
static int named_atoms(const Naming *naming, int node)
{
    int count = 0;
    for (int j = 0; j < classes_atoms(naming->classes, node); j++)
        count += classes_atom(naming->classes, node, j) != naming->classes->micro_atom;
    return count;
}

/* One name on one dimension. The first round names single atoms and merged dimensions of rules, the second what is left. */
static void name_class(Naming *naming, int node, const char *name, Position at, int round)
{
    int count;
    bool direct = named_atoms(naming, node) <= 1 || parts_of(naming, node, true, &count);
    if (round == 0 ? direct : !direct && !any_named(naming, node))
        name_run(naming, node, name, at);
}

/* Splits "three heads _" into words; returns how many. */
static int split_words(Arena *arena, const char *text, const char **words)
{
    int count = 0;
    char *copy = arena_string(arena, text), *rest;
    for (char *word = strtok_r(copy, " ()", &rest); word && count < WORDS; word = strtok_r(NULL, " ()", &rest))
        words[count++] = word;
    return count;
}

/* Where the names of a value were given. */
static Position named_at(const Value *value) { return value->dims_at.file ? value->dims_at : value->at; }

static void name_dim(Naming *naming, const Value *value, int d, int round)
{
    const char *words[WORDS];
    int node = naming->classes->value_node[value->id] + d, parts = 0;
    int count = split_words(naming->arena, value->dims[d], words);
    if (count == 1) {
        name_class(naming, node, words[0], named_at(value), round);
        return;
    }
    const int *part = parts_of(naming, node, false, &parts);
    if (part && parts == count)
        for (int i = 0; i < count; i++)
            name_class(naming, part[i], words[i], named_at(value), round);
    else if (classes_atoms(naming->classes, node) == count)
        for (int i = 0; round == 0 && i < count; i++)
            name_atom(naming, classes_atom(naming->classes, node, i), words[i], named_at(value));
    else if (round == 0)
        diag_error(naming->module->diag, named_at(value), "\"(%s)\" names %d factors of a dimension of %ld that the model %s",
                   value->dims[d], count, (long)value->type.extent[d], part ? "splits differently" : "never splits by a reshape");
}

static void name_value(Naming *naming, const Value *value, int round)
{
    for (int d = 0; value->dims && d < value->type.rank; d++)
        if (value->dims[d])
            name_dim(naming, value, d, round);
}

const char *const *atom_names(Arena *arena, const Module *module, const Classes *classes)
{
    Naming naming = {.module = module, .classes = classes, .arena = arena};
    naming.name = arena_array(arena, const char *, classes->atom_total);
    naming.at = arena_array(arena, Position, classes->atom_total);
    index_equations(&naming);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < module->params.count; i++)
            name_value(&naming, module->params.at[i]->value, round);
        for (int i = 0; i < module->inputs.count; i++)
            name_value(&naming, module->inputs.at[i], round);
        for (int i = 0; i < module->ops.count; i++)
            for (int r = 0; r < module->ops.at[i]->result_count && module->ops.at[i]->section == SECTION_FORWARD; r++)
                name_value(&naming, module->ops.at[i]->results[r], round);
    }
    return naming.name;
}
