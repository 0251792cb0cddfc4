/* Copies the forward operators that backward runs again (recompute.c chooses them). */
#include "ir/analysis/phases.h"
#include "passes/recompute/clone.h"

#include "passes/differentiate/differentiate.h"

/* State of one run over a module. */
typedef struct Remaker {
    Module *module;
    Arena *arena; // scratch
    const Anew *anew;
    bool *wanted; // by value id: backward operators of its own region need it
    bool *kept;   // by value id: an operator that must read the original needs it
    Value **copy; // at value id * visits + visit: the recomputed value
    int visits;
    Array(Op *) ops;
} Remaker;

bool op_in_step(const Module *module, const Op *op) {
    return op->section == SECTION_FORWARD && !op_gathers(module, op) &&
           op->loop == (module->templates->at.count ? LOOP_EACH : LOOP_BEFORE);
}

/* Marks each operand as wanted, if the region of `op` may recompute it, or as kept. */
static void need_operands(Remaker *remaker, const Op *op) {
    const Anew *anew = remaker->anew;
    for (int k = 0; k < op->operand_count; k++) {
        const Op *maker = op->operands[k] ? op->operands[k]->def : NULL;
        bool own = maker && op->section != SECTION_UPDATE &&
                   anew->region[maker->index] == anew->region[op->index];
        if (own && anew->may[maker->index]) remaker->wanted[op->operands[k]->id] = true;
        else if (maker) remaker->kept[op->operands[k]->id] = true;
    }
}

static bool is_made_anew(const Remaker *remaker, const Value *value) {
    return value && remaker->wanted[value->id] && !remaker->kept[value->id];
}

static bool runs_again(const Remaker *remaker, const Op *op) {
    for (int r = 0; r < op->result_count; r++)
        if (is_made_anew(remaker, op->results[r])) return true;
    return false;
}

/* Marks needed values, from the last operator to the first: readers are visited before makers. */
static void find_needs(Remaker *remaker) {
    const Module *module = remaker->module;
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        if (op->section != SECTION_FORWARD || runs_again(remaker, op)) need_operands(remaker, op);
    }
}

/* Copies an operator into the section and visit of a reader, with all properties of the results. */
static Op *repeated(Module *module, const Op *op, Value *const *operands, const Op *reader) {
    Op *copy = ir_clone(module, op, operands);
    copy->section = reader->section;
    copy->visit = reader->visit;
    op_change_source(module->arena, copy)->recomputes = op;
    for (int r = 0; r < op->result_count; r++) {
        Value *result = copy->results[r];
        int id = result->id;
        *result = *op->results[r];
        result->id = id;
        result->def = copy;
    }
    return copy;
}

static Value *needed_value(Remaker *remaker, Value *value, const Op *reader);

/* Returns the entry for a value's copy in the visit of `reader`. Each visit makes its own copy. */
static Value **copy_for(Remaker *remaker, const Value *value, const Op *reader) {
    return &remaker->copy[(ptrdiff_t)value->id * remaker->visits + reader->visit];
}

static void repeat(Remaker *remaker, const Op *op, const Op *reader) {
    Value **operands = arena_array(remaker->arena, Value *, op->operand_count + 1);
    for (int k = 0; k < op->operand_count; k++)
        operands[k] = needed_value(remaker, op->operands[k], reader);
    Op *copy = repeated(remaker->module, op, operands, reader);
    for (int r = 0; r < op->result_count; r++)
        *copy_for(remaker, op->results[r], reader) = copy->results[r];
    array_push(remaker->module->arena, &remaker->ops, copy);
}

/* Returns the value that `reader`, of a later section, reads in place of `value`. */
static Value *needed_value(Remaker *remaker, Value *value, const Op *reader) {
    if (!is_made_anew(remaker, value)) return value;
    if (!*copy_for(remaker, value, reader)) repeat(remaker, value->def, reader);
    return *copy_for(remaker, value, reader);
}

static void place_copies(Remaker *remaker) {
    Module *module = remaker->module;
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        for (int k = 0; op->section != SECTION_FORWARD && k < op->operand_count; k++)
            op->operands[k] = needed_value(remaker, op->operands[k], op);
        array_push(module->arena, &remaker->ops, op);
    }
    module->ops.at = remaker->ops.at;
    module->ops.count = remaker->ops.count;
    module->ops.capacity = remaker->ops.capacity;
}

/* Removes forward operators without readers, and clears `recomputes` of their copies. */
static void remove_first_runs(Module *module) {
    for (int i = 0; i < module->ops.count; i++) module->ops.at[i]->index = -1;
    remove_dead_ops(module);
    ir_number(module);
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        if (op->source->recomputes && op->source->recomputes->index < 0)
            op_change_source(module->arena, op)->recomputes = NULL;
    }
}

void make_anew(Module *module, const Anew *anew) {
    Remaker remaker = {.module = module, .arena = arena_create(), .anew = anew};
    remaker.wanted = arena_array(remaker.arena, bool, module->next_id);
    remaker.kept = arena_array(remaker.arena, bool, module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        remaker.visits = module->ops.at[i]->visit >= remaker.visits ? module->ops.at[i]->visit + 1
                                                                    : remaker.visits;
    remaker.copy =
        arena_array(remaker.arena, Value *, (size_t)module->next_id * (size_t)remaker.visits);
    // 1: mark the values to recompute; 2: put copies before their readers; 3: remove dead operators
    find_needs(&remaker);
    place_copies(&remaker);
    remove_first_runs(module);
    arena_destroy(remaker.arena);
}
