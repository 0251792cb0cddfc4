/* Refuses inputs that do not share the batch which micro-batches cut. microbatch_input of
 * passes/microbatch/rows_per_microbatch.c finds the batch. */
#include "passes/factor_dims/factor_dims.h"
#include "passes/microbatch/rows_per_microbatch.h"

/* One check of a module for inputs with batches of their own. */
typedef struct Batches {
    const Module *module;
    const Classes *classes;
    Arena *arena;
    bool *beside;  // by atom: a parameter has it, or an operator that also has the cut batch
    bool *trained; // by value id: depends on a parameter
} Batches;

/* Calls `visit` for each atom of a value. */
static void each_atom(Batches *batches, const Value *value,
                      void (*visit)(Batches *, int atom, void *data), void *data) {
    for (int d = 0; value && d < value->type.rank; d++) {
        int node = batches->classes->value_node[value->id] + d;
        for (int j = 0; j < classes_atoms(batches->classes, node); j++)
            visit(batches, classes_atom(batches->classes, node, j), data);
    }
}

static void mark_beside(Batches *batches, int atom, void *data) {
    (void)data;
    batches->beside[atom] = true;
}

static void find_cut(Batches *batches, int atom, void *data) {
    *(bool *)data |= atom == batches->classes->micro_atom;
}

/* Calls `visit` for each atom of an operator's operands and results. */
static void each_op_atom(Batches *batches, const Op *op,
                         void (*visit)(Batches *, int atom, void *data), void *data) {
    for (int k = 0; k < op->operand_count; k++) each_atom(batches, op->operands[k], visit, data);
    for (int r = 0; r < op->result_count; r++) each_atom(batches, op->results[r], visit, data);
}

/* Marks the atoms of parameters, and the atoms that an operator has together with the cut batch. */
static void find_beside(Batches *batches) {
    const Module *module = batches->module;
    for (int i = 0; i < module->params.count; i++)
        each_atom(batches, module->params.at[i]->value, mark_beside, NULL);
    for (int i = 0; i < module->ops.count; i++) {
        bool cut = false;
        each_op_atom(batches, module->ops.at[i], find_cut, &cut);
        if (cut) each_op_atom(batches, module->ops.at[i], mark_beside, NULL);
    }
}

/* Marks the values that depend on a parameter. */
static void find_trained(Batches *batches) {
    const Module *module = batches->module;
    for (int i = 0; i < module->params.count; i++)
        batches->trained[module->params.at[i]->value->id] = true;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bool trained = false;
        for (int k = 0; k < op->operand_count; k++)
            trained |= op->operands[k] && batches->trained[op->operands[k]->id];
        for (int r = 0; r < op->result_count; r++) batches->trained[op->results[r]->id] = trained;
    }
}

typedef struct Search {
    int atom;
    bool found;
} Search;

static void find_atom(Batches *batches, int atom, void *data) {
    Search *search = data;
    (void)batches;
    search->found |= atom == search->atom;
}

/* Returns the first forward value that has the atom and depends on a parameter; NULL: none. */
static const Value *first_trained(Batches *batches, int atom) {
    const Module *module = batches->module;
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++) {
            const Value *value = module->ops.at[i]->results[r];
            Search search = {atom, false};
            each_atom(batches, value, find_atom, &search);
            if (search.found && module->ops.at[i]->section == SECTION_FORWARD &&
                batches->trained[value->id])
                return value;
        }
    return NULL;
}

static void check_input(Batches *batches, const Value *input) {
    const Module *module = batches->module;
    const Value *first = microbatch_input(module);
    int node = batches->classes->value_node[input->id];
    bool cut = false;
    each_atom(batches, input, find_cut, &cut);
    if (cut || !input->type.rank || !classes_atoms(batches->classes, node)) return;
    int atom = classes_atom(batches->classes, node, 0);
    const Value *computed = batches->beside[atom] ? NULL : first_trained(batches, atom);
    if (!computed) return;
    diag_error(module->diag, input->at,
               "the input \"%s\" has a batch of its own, but micro-batches cut that of \"%s\" "
               "alone: every device would compute all rows here",
               input->name, first->name);
    diag_note(module->diag, first->at, "the batch that micro-batches cut is that of this input");
    diag_note(module->diag, module->strategy->pipelines.at[0].at,
              "use one pipeline with microbatches(1), or give the task of \"%s\" a program of its "
              "own (ht_train)",
              input->name);
}

void batches_check(const Module *module, const Classes *classes) {
    if (classes->micro_atom < 0) return;
    Batches batches = {.module = module, .classes = classes, .arena = arena_create()};
    batches.beside = arena_array(batches.arena, bool, classes->atom_total);
    batches.trained = arena_array(batches.arena, bool, module->next_id);
    find_beside(&batches);
    find_trained(&batches);
    for (int i = 0; i < module->inputs.count; i++) check_input(&batches, module->inputs.at[i]);
    arena_destroy(batches.arena);
}
