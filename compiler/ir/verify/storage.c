/* The verifier, storage: what pass memory must leave.
 *
 * A step is played through for every role, with two micro-batches where there are several. Each
 * write of a value has a number; a storage holds the number of what was written there last, and
 * forgets it when something else is written over any byte of it. An operator must find in the
 * storage of an operand the number that the operand was written with. Members of a row that are
 * made in it have one number.
 */
#include "ir/analysis/phases.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"
#include "ir/verify/verify.h"

#include <string.h>

/* A stretch of the arena, and the value that owns what was written there; NULL for a conversion's
 * scratch space. */
typedef struct Stretch {
    int64_t lo, hi;
    const Value *owner;
} Stretch;

typedef struct Play {
    Verifier *verifier;
    Module *module;
    const Role *role;
    int *written; // by value id: the number of its last write; 0: none
    int *held;    // by id of an owner of storage: the number of the write that it holds; 0: none
    int *begun;   // by id of an owner: the number of the write that the members of a row have which
                  // is not complete; 0: none
    int writes;
    Array(Stretch) stretches; // ascending, apart
    int turn;
} Play;

static bool in_arena(const Play *play, const Value *owner) {
    return play->role->offset[owner->id] >= 0;
}

/* ---- what the arena holds ---- */

/* The first stretch that ends behind a place. */
static int stretch_behind(const Play *play, int64_t place) {
    int low = 0, high = play->stretches.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (play->stretches.at[middle].hi <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Forgets all that lies in the stretch, and puts it there. */
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

/* Where a slot would stand: behind the arena. */
static int64_t slot_begin(const Play *play) {
    return (play->role->arena_bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

/* Where a value is. */
static int64_t place_of(const Play *play, const Value *owner) {
    return play->role->offset[owner->id] +
           (play->role->kept && play->role->kept[owner->id] ? slot_begin(play) : 0);
}

/* Puts bytes at an offset of the arena and the slot behind it, which must be in it and aligned. */
static void occupy(Play *play, const Op *op, const Value *owner, int64_t offset, int64_t bytes) {
    if (offset % ARENA_ALIGNMENT ||
        offset + bytes > play->role->arena_bytes + ARENA_ALIGNMENT + play->role->slot_bytes)
        verify_problem(play->verifier, op,
                       "%lld bytes at %lld are not aligned, or not in the arena of %lld bytes",
                       (long long)bytes, (long long)offset, (long long)play->role->arena_bytes);
    if (bytes) overwrite(play, (Stretch){offset, offset + bytes, owner});
}

/* ---- reading and writing ---- */

static void check_held(Play *play, const Op *op, const Value *value, const char *when) {
    if (value &&
        play->held[role_storage(play->module, play->role, value)->id] != play->written[value->id])
        verify_problem(play->verifier, op, "the storage of %%%d does not hold it %s", value->id,
                       when);
}

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

/* Whether the operator leaves its operand where it is, under another name. */
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

/* Whether a result has the storage of this operand. */
static bool takes_place(const Op *op, const Value *operand) {
    for (int r = 0; r < op->result_count; r++)
        if (value_storage(op->results[r]) == value_storage(operand)) return true;
    return false;
}

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

/* A new value goes where the old one was, unless it is there. */
static void put_back(Play *play, const Value *old, const Value *new) {
    check_held(play, new ? new->def : NULL, new, "when it becomes a parameter");
    if (new && value_storage(new) != old) write_value(play, new->def, old);
}

/* Parameters have their new values; outputs and the loss are read after that. */
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

/* Whether a value of this layout and type was not there before. */
static bool is_new(Verifier *verifier, Intern *seen, const Value *value) {
    Text key = {.arena = verifier->scratch};
    intptr_t layout[] = {(intptr_t)value->layout, value->def && value->def->stage != STAGE_ALL};
    text_append(&key, (const char *)layout, sizeof layout);
    text_append(&key, (const char *)value->type.extent,
                sizeof *value->type.extent * (size_t)value->type.rank);
    intptr_t *slot = intern_slot(seen, text_bytes(&key), key.length);
    return !(*slot)++;
}

/* Devices of one role hold pieces of the same shapes. */
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

/* Whether every value says which devices hold what of it. */
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
