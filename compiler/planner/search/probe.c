/* Reads a layer's seconds and bytes from a small compiled strategy. */
#include "planner/search/probe.h"

#include "planner/search/evaluate.h"
#include "planner/search/search_model.h"
#include "cost/cost.h"
#include "ir/analysis/liveness.h"
#include "ir/analysis/phases.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"

#include <math.h>
#include <string.h>

/* The state while one device's costs are read from a compiled module. */
typedef struct Reading {
    Arena *arena;
    Module *module;
    const RoleCost *role;
    int device;
    int *slot_of; // by operator of the module: its slot
    Probe *probe;
} Reading;

/* ---- seconds ---- */

static void read_seconds(Reading *reading) {
    for (int i = 0; i < reading->role->row_count; i++) {
        const CostRow *row = &reading->role->rows[i];
        SlotCost *slot = &reading->probe->slots[reading->slot_of[row->op->index]];
        bool loops = phase_loops(op_phase(reading->module, row->op));
        reading->probe->seconds += row->seconds;
        *(loops ? &slot->seconds : &slot->once) +=
            loops && row->runs > 1 ? row->seconds / (double)row->runs : row->seconds;
    }
}

/* ---- parameters and states ---- */

/* Returns, by value id, the slot of the first operator that reads the value; -1: none. */
static int *first_readers(const Reading *reading) {
    const Module *module = reading->module;
    int *first = arena_array(reading->arena, int, module->next_id);
    memset(first, -1, sizeof *first * (size_t)module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0; k < module->ops.at[i]->operand_count; k++) {
            const Value *value = module->ops.at[i]->operands[k];
            if (value && first[value->id] < 0) first[value->id] = reading->slot_of[i];
        }
    return first;
}

static void read_given(Reading *reading) {
    Module *module = reading->module;
    const int *first = first_readers(reading);
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        int at = first[param->value->id];
        SlotCost *slot = &reading->probe->slots[at < 0 ? 0 : at];
        double bytes = (double)value_local_bytes(module, param->value, reading->device);
        *(param->state ? &slot->states : &slot->parameters) += bytes;
        slot->widest = fmax(slot->widest, param->state ? 0 : bytes);
        slot->gradients += param->gradient ? bytes : 0;
        slot->trained += param->gradient ? 1 : 0;
        for (int s = 0; s < param->state_count; s++)
            slot->states += (double)value_local_bytes(module, param->states[s], reading->device);
    }
}

/* ---- activations and temporaries ---- */

/* Marks, by value id, the forward values that backward reads in the same micro-batch. */
static void mark_kept(const Reading *reading, bool *kept) {
    const Module *module = reading->module;
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0;
             module->ops.at[i]->section == SECTION_BACKWARD && k < module->ops.at[i]->operand_count;
             k++) {
            const Value *value = module->ops.at[i]->operands[k],
                        *owner = value ? value_storage(value) : NULL;
            if (owner && owner->def && owner->def->section == SECTION_FORWARD &&
                owner->def->loop == module->ops.at[i]->loop)
                kept[owner->id] = true;
        }
}

static void mark_gradients(const Reading *reading, bool *gradient) {
    const Module *module = reading->module;
    for (int i = 0; i < module->params.count; i++)
        if (module->params.at[i]->gradient)
            gradient[value_storage(module->params.at[i]->gradient)->id] = true;
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        bool sum = op->def == module->builtin->accumulate;
        for (int r = 0; r < op->result_count && sum; r++)
            gradient[value_storage(op->results[r])->id] = true;
    }
}

/* Adds the bytes of kept values to the slot that computes them. Sets each slot's work to the most
 * bytes of other values and scratch during one of its operators. */
static void read_arena(Reading *reading) {
    Module *module = reading->module;
    bool *kept = arena_array(reading->arena, bool, module->next_id),
         *gradient = arena_array(reading->arena, bool, module->next_id);
    double *live = arena_array(reading->arena, double, module->ops.count + 2);
    const int *last = last_uses(reading->arena, module);
    mark_kept(reading, kept);
    mark_gradients(reading, gradient);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int r = 0; r < op->result_count; r++) {
            const Value *value = op->results[r];
            if (value_storage(value) != value || !role_has(module, reading->role->role, value) ||
                gradient[value->id])
                continue;
            double bytes = (double)value_local_bytes(module, value, reading->device);
            if (kept[value->id]) {
                reading->probe->slots[reading->slot_of[i]].kept += bytes;
                continue;
            }
            live[i] += bytes;
            live[(last[value->id] < i ? i : last[value->id]) + 1] -= bytes;
        }
        double scratch =
            op->convert.plan ? (double)role_scratch_bytes(module, reading->role->role, op) : 0;
        live[i] += scratch;
        live[i + 1] -= scratch;
    }
    for (int i = 0; i < module->ops.count; i++) {
        SlotCost *slot = &reading->probe->slots[reading->slot_of[i]];
        slot->work = fmax(slot->work, live[i]);
        live[i + 1] += live[i];
    }
}

/* Adds to each slot the bytes of forward values of this or earlier slots that later slots read. */
static void read_crossing(Reading *reading) {
    Module *module = reading->module;
    int *latest = arena_array(reading->arena, int, module->next_id);
    for (int i = 0; i < module->ops.count; i++)
        for (int k = 0;
             module->ops.at[i]->section == SECTION_FORWARD && k < module->ops.at[i]->operand_count;
             k++) {
            const Value *value = module->ops.at[i]->operands[k];
            if (!value || value->kind != VALUE_RESULT || value->micro.kind == MICRO_WHOLE ||
                !value->def)
                continue;
            int from = reading->slot_of[value->def->index], to = reading->slot_of[i];
            to = to > latest[value->id] ? to : latest[value->id];
            for (int slot = latest[value->id] > from ? latest[value->id] : from; slot < to; slot++)
                reading->probe->slots[slot].crossing +=
                    (double)value_local_bytes(module, value, reading->device);
            latest[value->id] = to;
        }
}

/* ---- reading a probe ---- */

static const RoleCost *slowest_role(const CostReport *report) {
    const RoleCost *slowest = &report->roles[0];
    for (int r = 1; r < report->role_count; r++)
        if (report->roles[r].seconds > slowest->seconds) slowest = &report->roles[r];
    return slowest;
}

static void read_role(const EvaluationContext *context, Arena *arena, const CostReport *report,
                      Probe *probe) {
    Module *module = report->module;
    const RoleCost *role = slowest_role(report);
    Reading reading = {
        arena, module, role, role->role->devices[0], arena_array(arena, int, module->ops.count + 1),
        probe};
    ir_number(module);
    for (int i = 0; i < module->ops.count; i++)
        reading.slot_of[i] = model_slot(context->model, module->ops.at[i]);
    read_seconds(&reading);
    read_given(&reading);
    read_arena(&reading);
    read_crossing(&reading);
    probe->inputs = (double)role->memory.bytes[MEMORY_INPUTS];
    for (int r = 0; r < report->role_count; r++)
        probe->peak = fmax(probe->peak, (double)report->roles[r].memory.peak);
}

static void probe_unit(const EvaluationContext *context, const Unit *unit, Text *out) {
    CostReport report = cost_report(unit->arena, evaluation_module(context, unit));
    size_t count = (size_t)context->model->layer_count + 2;
    Probe probe = {.slots = arena_array(unit->arena, SlotCost, count)};
    read_role(context, unit->arena, &report, &probe);
    text_append(out, (const char *)&probe, sizeof probe);
    text_append(out, (const char *)probe.slots, sizeof *probe.slots * count);
}

void probes_run(Arena *arena, const EvaluationContext *context, const char *const *texts, int count,
                Probe *probes) {
    size_t slots = (size_t)context->model->layer_count + 2;
    Evaluation *trials = arena_array(arena, Evaluation, count + 1);
    for (int i = 0; i < count; i++) trials[i] = (Evaluation){texts[i], probe_unit, true};
    const Text *answers = evaluations_run(arena, context, trials, count);
    for (int i = 0; i < count; i++) {
        probes[i] = (Probe){.good = false};
        if (answers[i].length != sizeof *probes + sizeof(SlotCost) * slots) continue;
        memcpy(&probes[i], answers[i].bytes, sizeof *probes);
        probes[i].slots =
            arena_copy(arena, answers[i].bytes + sizeof *probes, sizeof(SlotCost) * slots);
        probes[i].good = !isnan(probes[i].seconds);
    }
}
