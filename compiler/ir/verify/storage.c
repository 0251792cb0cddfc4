/* The verifier of storage: checks that each operator finds its operands where pass memory put them.
 *
 *     %5 at [0, 64)        write 1
 *     %6 at [32, 96)       write 2 overlaps %5: [0, 64) no longer holds a value
 *     %7 = add(%5, %6)     malformed IR: the storage of %5 does not hold it when it is read
 *
 * The verifier simulates a step of each role, with two rounds of each loop over micro-batches. Each
 * write has a number. A storage holds the number of its last write, until another write overlaps
 * it. An operand is correct if its storage holds the number of the operand's own write. Operands of
 * a concatenation that are written into its result share one number. */
#include "ir/analysis/phases.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"
#include "ir/verify/verify.h"

#include <string.h>

/* An interval of the arena; its owner is the value whose storage it is, NULL for scratch space. */
typedef struct Stretch {
    int64_t lo, hi;
    const Value *owner;
} Stretch;

/* The simulated step of one role. */
typedef struct Play {
    Verifier *verifier;
    Module *module;
    const Role *role;
    int *written; // by value id: number of its last write; 0: none
    int *held;    // by id of a storage's owner: number of the write that it holds; 0: none
    int *begun; // by id of an owner: number that the operands of a concatenation share, while they
                // are written one by one; 0: none
    int writes; // number of writes so far
    Array(Stretch) stretches; // ascending, disjoint
    int turn;                 // iteration of the loop over micro-batches
} Play;

static bool in_arena(const Play *play, const Value *owner) {
    return play->role->offset[owner->id] >= 0;
}

/* ---- the arena ---- */

/* Returns the index of the first interval that ends after an offset (binary search). */
static int stretch_behind(const Play *play, int64_t place) {
    int low = 0, high = play->stretches.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (play->stretches.at[middle].hi <= place) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Adds an interval, and removes older ones that overlap it: their storages then hold no value. */
static void overwrite(Play *play, Stretch stretch) {
    int first = stretch_behind(play, stretch.lo), last = first;
    for (; last < play->stretches.count && play->stretches.at[last].lo < stretch.hi; last++)
        if (play->stretches.at[last].owner) play->held[play->stretches.at[last].owner->id] = 0;
    if (first == last) array_push(play->verifier->scratch, &play->stretches, stretch);
    memmove(play->stretches.at + first + 1, play->stretches.at + last,
            sizeof stretch * (size_t)(play->stretches.count - (first == last) - last));
    play->stretches.count -= first == last ? 0 : last - first - 1;
    play->stretches.at[first] = stretch;
}

/* Returns the offset of the micro-batch's slot; the simulation puts one slot after the arena. */
static int64_t slot_begin(const Play *play) {
    return (play->role->arena_bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

/* Returns the offset of a storage in the simulated arena and slot. */
static int64_t place_of(const Play *play, const Value *owner) {
    return play->role->offset[owner->id] +
           (play->role->kept && play->role->kept[owner->id] ? slot_begin(play) : 0);
}

/* Adds the interval of `bytes` at an offset, which must be aligned and in the arena or the slot. */
static void occupy(Play *play, const Op *op, const Value *owner, int64_t offset, int64_t bytes) {
    if (offset % ARENA_ALIGNMENT ||
        offset + bytes > play->role->arena_bytes + ARENA_ALIGNMENT + play->role->slot_bytes)
        verify_problem(play->verifier, op,
                       "%lld bytes at %lld are not aligned, or not in the arena of %lld bytes",
                       (long long)bytes, (long long)offset, (long long)play->role->arena_bytes);
    if (bytes) overwrite(play, (Stretch){offset, offset + bytes, owner});
}

/* ---- reading and writing ---- */

/* Checks that the storage of a value still holds this value. */
static void check_held(Play *play, const Op *op, const Value *value, const char *when) {
    if (value &&
        play->held[role_storage(play->module, play->role, value)->id] != play->written[value->id])
        verify_problem(play->verifier, op, "the storage of %%%d does not hold it %s", value->id,
                       when);
}

/* Simulates that an operator writes a value: its storage then holds the number of this write. */
static void write_value(Play *play, const Op *op, const Value *value) {
    const Value *owner = role_storage(play->module, play->role, value);
    int64_t bytes =
        owner->kind == VALUE_INPUT ? INT64_MAX : role_bytes(play->module, play->role, owner);
    if (role_bytes(play->module, play->role, value) > bytes)
        verify_problem(play->verifier, op, "%%%d does not fit into the storage of %%%d", value->id,
                       owner->id);
    if (value->subview && play->begun[owner->id] &&
        play->held[owner->id] == play->begun[owner->id]) {
        play->written[value->id] = play->held[owner->id];
        return;
    }
    if (in_arena(play, owner)) occupy(play, op, owner, place_of(play, owner), bytes);
    play->held[owner->id] = play->written[value->id] = ++play->writes;
    play->begun[owner->id] = value->subview ? play->writes : 0;
}

static void occupy_scratch(Play *play, const Op *op) {
    int64_t at = play->role->scratch ? play->role->scratch[op->index] : -1,
            most = role_scratch_bytes(play->module, play->role, op);
    if (most && at < 0)
        verify_problem(play->verifier, op,
                       "the conversion has no scratch space, and needs %lld bytes",
                       (long long)most);
    else if (most)
        occupy(play, op, NULL, at + (op_crosses_stages(play->module, op) ? slot_begin(play) : 0),
               most);
}

/* Returns whether an operator moves no bytes: its result is its operand under another name. */
static bool renames(const Play *play, const Op *op) {
    const Module *module = play->module;
    if (op->def == module->builtin->stage_union || op->def == module->builtin->local_part ||
        op_moves_nothing(op))
        return true;
    if (value_storage(op->results[0]) !=
        (op->operand_count ? value_storage(op->operands[0]) : NULL))
        return false;
    return op->def->rule->kind == RULE_VIEW ||
           (op->convert.plan && plan_nothing(op->convert.plan->plan) &&
            !op_crosses_stages(module, op));
}

/* Returns whether a result of an operator uses the storage of an operand (in place). */
static bool takes_place(const Op *op, const Value *operand) {
    for (int r = 0; r < op->result_count; r++)
        if (value_storage(op->results[r]) == value_storage(operand)) return true;
    return false;
}

/* Simulates an operator. Its scratch space must not overlap operands or results, and its results
 * must not overlap operands, except those that it overwrites in place. */
static void play_op(Play *play, const Op *op) {
    bool adds = op_gathers(play->module, op) && play->turn > 0;
    for (int k = 0; k < op->operand_count; k++)
        check_held(play, op, op->operands[k], "when it is read");
    if (adds) check_held(play, op, op->results[0], "when more is added");
    if (renames(play, op)) {
        const Value *owner = role_storage(play->module, play->role, op->results[0]);
        play->written[op->results[0]->id] = play->held[owner->id];
        play->begun[owner->id] = op->def->rule->copy.row >= 0 ? 0 : play->begun[owner->id];
        return;
    }
    occupy_scratch(play, op);
    for (int k = 0; k < op->operand_count; k++)
        check_held(play, op, op->operands[k], "beside the scratch space");
    for (int r = 0; r < op->result_count; r++) write_value(play, op, op->results[r]);
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k] && !takes_place(op, op->operands[k]))
            check_held(play, op, op->operands[k], "beside the results");
    occupy_scratch(play, op);
    for (int r = 0; r < op->result_count; r++)
        check_held(play, op, op->results[r], "after it is made");
}

/* ---- the step ---- */

/* Simulates writing parameters, states and inputs. */
static void begin(Play *play) {
    const Module *module = play->module;
    for (int i = 0; i < module->params.count; i++) {
        write_value(play, NULL, module->params.at[i]->value);
        for (int s = 0; s < module->params.at[i]->state_count; s++)
            write_value(play, NULL, module->params.at[i]->states[s]);
    }
    for (int i = 0; i < module->inputs.count; i++) write_value(play, NULL, module->inputs.at[i]);
}

static void play_turn(Play *play, LoopPosition turn) {
    for (int i = 0; i < play->module->ops.count; i++)
        if (play->module->ops.at[i]->loop == turn) play_op(play, play->module->ops.at[i]);
}

/* Simulates copying a new value to its parameter or state, unless both have the same storage. */
static void put_back(Play *play, const Value *old, const Value *new) {
    check_held(play, new ? new->def : NULL, new, "when it becomes a parameter");
    if (new && value_storage(new) != old) write_value(play, new->def, old);
}

/* Simulates copying new parameters and states. Checks that outputs and the loss are still held. */
static void finish(Play *play) {
    const Module *module = play->module;
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        put_back(play, param->value, param->updated);
        for (int s = 0; s < param->state_count; s++)
            put_back(play, param->states[s], param->states_updated[s]);
    }
    for (int i = 0; i < module->outputs.count; i++)
        check_held(play, NULL, module->outputs.at[i].value, "when it is fetched");
    check_held(play, NULL, module->loss, "when it is fetched");
}

static void play_step(Verifier *verifier, const Role *role) {
    Module *module = verifier->module;
    Play play = {.verifier = verifier, .module = module, .role = role};
    play.written = arena_array(verifier->scratch, int, module->next_id);
    play.held = arena_array(verifier->scratch, int, module->next_id);
    play.begun = arena_array(verifier->scratch, int, module->next_id);
    begin(&play);
    for (play.turn = 0; play.turn < 2; play.turn++) play_turn(&play, LOOP_COUNT);
    play_turn(&play, LOOP_BEFORE);
    for (play.turn = 0; play.turn < 2; play.turn++) play_turn(&play, LOOP_EACH);
    play_turn(&play, LOOP_AFTER);
    finish(&play);
}

/* ---- roles ---- */

static bool same_boxes(const Region *a, const Region *b) {
    bool same = a->box_count == b->box_count;
    for (int i = 0; same && i < a->box_count; i++)
        for (int d = 0; d < a->rank; d++)
            same = same && a->boxes[i].dim[d].hi - a->boxes[i].dim[d].lo ==
                               b->boxes[i].dim[d].hi - b->boxes[i].dim[d].lo;
    return same;
}

/* Returns whether no value of this layout and shape was checked before. */
static bool is_new(Verifier *verifier, Intern *seen, const Value *value) {
    Text key = {.arena = verifier->scratch};
    intptr_t layout[] = {(intptr_t)value->layout, value->def && value->def->stage != STAGE_ALL};
    text_append(&key, (const char *)layout, sizeof layout);
    text_append(&key, (const char *)value->type.extent,
                sizeof *value->type.extent * (size_t)value->type.rank);
    intptr_t *slot = intern_slot(seen, text_bytes(&key), key.length);
    return !(*slot)++;
}

/* Checks that the devices of each role hold pieces of a value that have the same shapes. */
static void check_alike(Verifier *verifier, Intern *seen, const Op *op, const Value *value) {
    const Roles *roles = verifier->module->devices->roles;
    if (!is_new(verifier, seen, value)) return;
    for (int r = 0; r < roles->role_count; r++)
        for (int i = 1; i < roles->at[r].device_count; i++)
            if (!same_boxes(value_region(verifier->module, value, roles->at[r].devices[0]),
                            value_region(verifier->module, value, roles->at[r].devices[i])))
                verify_problem(verifier, op, "the pieces of %%%d differ within a role", value->id);
}

static void check_roles(Verifier *verifier) {
    const Module *module = verifier->module;
    Intern *seen = intern_create(verifier->scratch);
    for (int i = 0; i < module->params.count; i++) {
        check_alike(verifier, seen, NULL, module->params.at[i]->value);
        for (int s = 0; s < module->params.at[i]->state_count; s++)
            check_alike(verifier, seen, NULL, module->params.at[i]->states[s]);
    }
    for (int i = 0; i < module->inputs.count; i++)
        if (module->inputs.at[i]->layout) check_alike(verifier, seen, NULL, module->inputs.at[i]);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            check_alike(verifier, seen, module->ops.at[i], module->ops.at[i]->results[r]);
}

/* Returns whether every value has a layout. Inputs that micro-batches cut may lack it. */
static bool is_laid_out(const Module *module) {
    bool all = true;
    for (int i = 0; i < module->params.count; i++) all = all && module->params.at[i]->value->layout;
    for (int i = 0; i < module->inputs.count; i++)
        all = all &&
              (module->inputs.at[i]->layout || module->inputs.at[i]->micro.kind != MICRO_WHOLE);
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            all = all && module->ops.at[i]->results[r]->layout;
    return all;
}

void verify_storage(Verifier *verifier) {
    const Roles *roles = verifier->module->devices->roles;
    if (!roles || !is_laid_out(verifier->module)) return;
    ir_number(verifier->module);
    check_roles(verifier);
    for (int r = 0; r < roles->role_count && !verifier->problems; r++)
        if (roles->at[r].offset) play_step(verifier, &roles->at[r]);
}
