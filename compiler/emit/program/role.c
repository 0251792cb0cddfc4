/* Sorts a role's operators into phases (ir/analysis/phases.c); places the starts and waits of async
 * collectives, prefetches (ir/analysis/prefetch.c) and messages. */
#include "emit/program/role.h"

#include "emit/kernel/kernel.h"
#include "emit/program/calls.h"
#include "emit/words.h"
#include "hetu/rt.h"
#include "ir/analysis/side_reduction.h"
#include "ir/analysis/async_collectives.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/conversions.h"
#include "ir/programs/regions.h"

#include <string.h>

RoleWriter role_writer(Emitter *emitter, Module *module, const char *name, int role) {
    RoleWriter writer = {.emitter = emitter,
                         .module = module,
                         .name = name,
                         .role_index = role,
                         .role = &module->devices->roles->at[role]};
    writer.slot_of = slots_of(emitter->arena, module);
    writer.updated_of = updated_slots_of(emitter->arena, module, writer.slot_of);
    writer.flags = intern_create(emitter->arena);
    writer.numbers.known = intern_create(emitter->arena);
    writer.numbers.made = intern_create(emitter->arena);
    writer.numbers.device_count = writer.role->device_count;
    writer.numbers.rows = arena_array(emitter->arena, Row, writer.role->device_count);
    return writer;
}

/* ---- results of ring steps, and the operators that join them (clause `merge`) ---- */

/* A device with no keys in a ring step runs nothing in that step, so its o0 or o1 does not exist:
 *
 *     o0 = attention(q, k0, v0); o1 = attention(q, k1, v1); o = merge(o0, o1)
 */
typedef enum JoinedHalf { JOINED_BOTH, JOINED_FIRST, JOINED_SECOND } JoinedHalf;

/* Returns the bound factor whose pieces the operator `name` joins (clause `merge`); -1: none. */
static int merged_factor(const Op *op, const char *name) {
    for (int f = 0; op->def->rule->kind != RULE_VIEW && f < op->binding->factor_count; f++) {
        const char *merge = op->def->rule->factors[op->binding->factors[f].factor].merge;
        if (merge && !strcmp(merge, name)) return f;
    }
    return -1;
}

/* Returns whether an operator joins a ring step's results with the results of earlier steps. */
static bool joins(const Op *op) {
    return op->run_in_place &&
           merged_factor(op->operands[op->result_count]->def, op->def->name) >= 0;
}

/* Returns whether a device holds elements of all operands that have a factor, in a ring step. */
static bool has_piece(Module *module, const Op *op, int factor, int device) {
    for (int k = 0; k < op->operand_count; k++)
        for (int d = 0; op->operands[k] && d < op->binding->operands[k].rank; d++)
            if (op->binding->operands[k].dims[d].factors[0] == factor &&
                !value_region(module, op->operands[k], device)->box_count)
                return false;
    return true;
}

/* Returns whether the results of an operator exist on a device. The operator is a ring step, or the
 * operator `name`, which joins the results of several ring steps. */
static bool has_results(Module *module, const Op *op, const char *name, int device) {
    if (joins(op))
        return has_results(module, op->operands[0]->def, name, device) ||
               has_results(module, op->operands[op->result_count]->def, name, device);
    int factor = merged_factor(op, name);
    return factor < 0 || has_piece(module, op, factor, device);
}

/* Returns which of the two results that an operator joins exist on a device. JOINED_BOTH also
 * stands for operators that join nothing, and for devices that have neither result. */
static JoinedHalf op_joined(Module *module, const Op *op, int device) {
    if (!joins(op)) return JOINED_BOTH;
    bool first = has_results(module, op->operands[0]->def, op->def->name, device);
    bool second = has_results(module, op->operands[op->result_count]->def, op->def->name, device);
    return first == second ? JOINED_BOTH : first ? JOINED_FIRST : JOINED_SECOND;
}

/* ---- calls ---- */

static void add_conversion(Calls *calls, RoleWriter *writer, const Op *op) {
    if (!role_has(writer->module, writer->role, op->operands[0]) &&
        !role_has(writer->module, writer->role, op->results[0]))
        return;
    if (value_storage(op->results[0]) == value_storage(op->operands[0]) &&
        plan_nothing(op->convert.plan->plan))
        return;
    Call *call = call_new(calls, "ht_convert(r, ", op);
    call_add(calls, call,
             (Argument){.kind = ARGUMENT_TEXT,
                        .text = arena_format(calls->arena, "%s_plan[%d]", writer->name,
                                             op->convert.plan->number)});
    call_tensor(calls, call, writer, op->operands[0]);
    call_tensor(calls, call, writer, op->results[0]);
    int64_t scratch = writer->role->scratch ? writer->role->scratch[op->index] : -1;
    if (scratch >= 0) call_add(calls, call, (Argument){.kind = ARGUMENT_BUFFER, .number = scratch});
    else call_add(calls, call, (Argument){.kind = ARGUMENT_TEXT, .text = "NULL"});
    call->places = true;
    call->comment = op->results[0]->name ? op->results[0]->name : "";
}

/* Appends the call that adds a gradient to its sum over micro-batches. */
static void add_accumulation(Calls *calls, RoleWriter *writer, const Op *op) {
    const Value *result = op->results[0];
    int64_t bytes = role_value_bytes(writer, result);
    if (!bytes) return;
    Call *call = call_new(calls, "ht_accumulate(r, ", op);
    call_tensor(calls, call, writer, result);
    call_tensor(calls, call, writer, op->operands[0]);
    call_add(calls, call,
             (Argument){.kind = ARGUMENT_NUMBER, .number = bytes / dtype_size(result->type.dtype)});
    call_add(calls, call, (Argument){.kind = ARGUMENT_TEXT, .text = c_dtype(result->type.dtype)});
    call->makes = result;
    call_describe(calls, call);
}

/* Returns whether the next operator, a product, computes the result of this operator as well. */
static bool is_made_beside(Calls *calls, RoleWriter *writer, const Op *op) {
    const Op *product = op_side_reduction(writer->module, op);
    if (!product || !local_op(calls->local, writer, product)) return false;
    local_take_sum(calls->local, writer);
    return calls->local->sum == op;
}

static void add_kernel(Calls *calls, RoleWriter *writer, const Op *op) {
    LocalOp *local = calls->local;
    if (is_made_beside(calls, writer, op) || !local_op(local, writer, op) || local_nothing(local))
        return;
    local_take_sum(local, writer);
    const Kernel *kernel = kernel_for(writer, local);
    calls_use(calls, kernel);
    Call *call = call_new(calls, kernel->opening, op);
    for (int k = 0; k < op->result_count; k++) call_tensor(calls, call, writer, op->results[k]);
    for (int k = 0; k < op->operand_count; k++) call_tensor(calls, call, writer, op->operands[k]);
    if (local->sum) call_tensor(calls, call, writer, local->sum->results[0]);
    if (kernel->numbered)
        call_add(calls, call,
                 (Argument){.kind = ARGUMENT_NUMBERS, .number = number_column(writer, local)});
    call->places = kernel->ranked;
    call_describe(calls, call);
}

/* Appends calls that copy half of a joiner's operands to its results; the other half is absent. */
static void add_half(Calls *calls, RoleWriter *writer, const Op *op, JoinedHalf half) {
    for (int k = 0; k < op->result_count; k++)
        call_copy(calls, writer, op, op->results[k],
                  op->operands[half == JOINED_FIRST ? k : op->result_count + k]);
}

static void add_op(Calls *calls, RoleWriter *writer, const Op *op) {
    JoinedHalf half = op_joined(writer->module, op, writer->role->devices[0]);
    if (op->convert.plan) add_conversion(calls, writer, op);
    else if (op->def->rule->kind == RULE_VIEW)
        call_copy(calls, writer, op, op->results[0], op->operands[0]);
    else if (op->def == writer->module->builtin->local_part ||
             op->def == writer->module->builtin->stage_union || op_moves_nothing(op))
        return;
    else if (op->def == writer->module->builtin->collect)
        call_copy(calls, writer, op, op->results[0], op->operands[0]);
    else if (op->def == writer->module->builtin->accumulate) add_accumulation(calls, writer, op);
    else if (half != JOINED_BOTH) add_half(calls, writer, op, half);
    else add_kernel(calls, writer, op);
}

/* Appends copies of new values that are not computed in place to their parameters and states. */
static void emit_updates(Calls *calls, const RoleWriter *writer) {
    for (int p = 0; p < writer->module->params.count; p++) {
        const Parameter *param = writer->module->params.at[p];
        if (param->updated && param->updated->def)
            call_copy(calls, writer, param->updated->def, param->value, param->updated);
        for (int s = 0; s < param->state_count; s++)
            if (param->states_updated[s] && param->states_updated[s]->def)
                call_copy(calls, writer, param->states_updated[s]->def, param->states[s],
                          param->states_updated[s]);
    }
}

/* ---- the file ---- */

static void emit_header(Text *out, const RoleWriter *writer) {
    Text devices = {.arena = out->arena};
    for (int i = 0; i < writer->role->device_count; i++)
        text_print(&devices, "%s%d", i ? ", " : "", writer->role->devices[i]);
    text_print(out, "\n/* ---- %s, role %d: device%s %s ---- */\n\n", writer->module->name,
               writer->role_index, writer->role->device_count > 1 ? "s" : "", text_bytes(&devices));
}

/* ---- parts ---- */

int role_part(const RoleText *text, Phase phase, int visit) {
    for (int p = 0; p < text->parts.count; p++)
        if (text->parts.at[p].phase == phase && text->parts.at[p].visit == visit) return p;
    return -1;
}

typedef Array(int) Numbers;

/* A role while its operators are sorted into parts. */
typedef struct RoleParts {
    RoleWriter *writer;
    RoleText text;
    UsedKernels used;
    Array(Calls) calls;
    Numbers *made_by; // by op index: the asynchronous transfers that send its results
    Numbers *ahead;   // by op index: the prefetches that begin before the op
    int *ahead_of;    // by op index: 1 + index of its transfer if the op is prefetched; else 0
} RoleParts;

/* Returns the index of the part of an operator. Appends the part when it is new. */
static int part_of(RoleParts *parts, const Op *op) {
    Arena *arena = parts->writer->emitter->arena;
    Phase phase = op_phase(parts->writer->module, op);
    int visit = loop_repeats(op->loop) ? op->visit : 0,
        part = role_part(&parts->text, phase, visit);
    if (part >= 0) return part;
    const char *name =
        visit ? arena_format(arena, "visit%d_%s", visit, phase_name(phase)) : phase_name(phase);
    array_push(arena, &parts->text.parts, (RolePart){.phase = phase, .visit = visit, .name = name});
    array_push(arena, &parts->calls, calls_create(arena, &parts->used));
    return parts->text.parts.count - 1;
}

/* Makes the transfer of the conversion whose first operator is `op`; no part has it yet. */
static RoleTransfer transfer_of(const RoleWriter *writer, const Op *op) {
    Arena *arena = writer->emitter->arena;
    const Module *module = writer->module;
    int count = op->convert.plan->tensors.count;
    RoleTransfer transfer = {.op = op,
                             .tensor_count = count,
                             .from = arena_array(arena, int64_t, count),
                             .to = arena_array(arena, int64_t, count),
                             .turn = arena_array(arena, int64_t, count)};
    for (int i = op->index, found = 0; found < count; i++) {
        const Op *own = module->ops.at[i];
        if (i != op->index && (count == 1 || own->convert.plan != op->convert.plan)) continue;
        found++;
        bool sends = role_has(writer->module, writer->role, own->operands[0]);
        bool receives = role_has(writer->module, writer->role, own->results[0]);
        if (sends) transfer.from[own->convert.tensor] = value_buffer(writer, own->operands[0]);
        if (sends && value_turns(module, own, own->operands[0]))
            transfer.turn[own->convert.tensor] = role_value_bytes(writer, own->operands[0]);
        if (receives) transfer.to[own->convert.tensor] = value_buffer(writer, own->results[0]);
        transfer.sends |= sends;
        transfer.receives |= receives;
    }
    return transfer;
}

/* Adds a message between stages if the role sends or receives it. */
static void add_transfer(RoleParts *parts, const Op *op) {
    RoleWriter *writer = parts->writer;
    Arena *arena = writer->emitter->arena;
    if (op->convert.tensor) return;
    int number = parts->text.transfers.count;
    RoleTransfer transfer = transfer_of(writer, op);
    if (!transfer.sends && !transfer.receives) return;
    int64_t scratch = writer->role->scratch[op->index];
    transfer.scratch = scratch >= 0 ? ht_buffer_of_kept(scratch) : 0;
    array_push(arena, &parts->text.transfers, transfer);
    if (transfer.sends) {
        int part = part_of(parts, op->operands[0]->def);
        array_push(arena, &parts->text.parts.at[part].send, number);
    }
    if (transfer.receives) {
        int part = part_of(parts, op);
        array_push(arena, &parts->text.parts.at[part].receive, number);
    }
}

/* Adds an asynchronous collective if the role takes part in it. */
static void add_async_collective(RoleParts *parts, const AsyncCollective *collective, int number) {
    RoleWriter *writer = parts->writer;
    Arena *arena = writer->emitter->arena;
    RoleTransfer transfer = transfer_of(writer, collective->op);
    if (!transfer.sends && !transfer.receives) return;
    transfer.flies = true;
    transfer.number = number;
    for (int t = 0; t < collective->count; t++) {
        const Op *maker = role_maker(writer->module, writer->role, collective->ops[t]->operands[0]);
        if (maker) array_push(arena, &transfer.makers, maker);
    }
    transfer.scratch = writer->role->scratch[collective->op->index] >= 0
                           ? writer->role->scratch[collective->op->index]
                           : 0;
    int place = parts->text.transfers.count;
    for (int m = 0; m < transfer.makers.count; m++)
        array_push(arena, &parts->made_by[transfer.makers.at[m]->index], place);
    array_push(arena, &parts->text.transfers, transfer);
}

/* Adds all asynchronous collectives, in the order in which every device begins them. */
static void add_async_collectives(RoleParts *parts) {
    Arena *arena = parts->writer->emitter->arena;
    AsyncCollectives collectives = module_async_collectives(arena, parts->writer->module);
    parts->made_by = arena_array(arena, Numbers, parts->writer->module->ops.count);
    for (int i = 0; i < collectives.count; i++) add_async_collective(parts, &collectives.at[i], i);
}

/* Appends calls that tell the asynchronous collectives that the results of `maker` are ready. */
static void release_async_collectives(RoleParts *parts, const Op *maker) {
    const Numbers *made = &parts->made_by[maker->index];
    for (int m = 0; m < made->count; m++) {
        Calls *calls = &parts->calls.at[part_of(parts, maker)];
        Call *call = call_new(calls, "ht_ready(r, ", maker);
        call_add(calls, call, (Argument){.kind = ARGUMENT_NUMBER, .number = made->at[m]});
        call->aside = true;
        call->comment = plan_name(parts->text.transfers.at[made->at[m]].op->convert.plan->plan);
    }
}

/* Releases the collectives that read an operator's results: after its call, or after the product
 * that computes the results in its place. */
static void release_made(RoleParts *parts, const Op *op) {
    const Module *module = parts->writer->module;
    const Op *before = op->index ? module->ops.at[op->index - 1] : NULL;
    if (before && op_side_reduction(module, before) == op) release_async_collectives(parts, before);
    if (!op_side_reduction(module, op)) release_async_collectives(parts, op);
}

/* Makes the update wait for the asynchronous collective whose first operator is `op`. */
static void await_async_collectives(RoleParts *parts, const Op *op) {
    Arena *arena = parts->writer->emitter->arena;
    for (int t = 0; t < parts->text.transfers.count; t++)
        if (parts->text.transfers.at[t].op == op) {
            int part = part_of(parts, op);
            array_push(arena, &parts->text.parts.at[part].receive, t);
        }
}

/* Returns whether the role prefetches a conversion; its result must not share storage. */
static bool is_ahead(const RoleWriter *writer, const Op *op) {
    if (op_prefetch_point(writer->module, op) == op) return false;
    const Value *from = value_storage(op->operands[0]), *to = op->results[0];
    return !to->storage && !to->subview && !writer->role->kept[to->id] &&
           !writer->role->kept[from->id] && !value_turns(writer->module, op, op->operands[0]);
}

/* Adds the prefetched gathers of the role. */
static void add_aheads(RoleParts *parts) {
    RoleWriter *writer = parts->writer;
    Arena *arena = writer->emitter->arena;
    parts->ahead = arena_array(arena, Numbers, writer->module->ops.count);
    parts->ahead_of = arena_array(arena, int, writer->module->ops.count);
    for (int i = 0; i < writer->module->ops.count; i++) {
        const Op *op = writer->module->ops.at[i];
        if (!is_ahead(writer, op)) continue;
        RoleTransfer transfer = transfer_of(writer, op);
        if (!transfer.sends && !transfer.receives) continue;
        transfer.ahead = true;
        transfer.scratch = writer->role->scratch[i] >= 0 ? writer->role->scratch[i] : 0;
        array_push(arena, &parts->ahead[op_prefetch_point(writer->module, op)->index],
                   parts->text.transfers.count);
        array_push(arena, &parts->text.transfers, transfer);
        parts->ahead_of[i] = parts->text.transfers.count;
    }
}

/* Appends a call that begins or ends a prefetched gather. */
static Call *call_ahead(RoleParts *parts, const char *opening, int number) {
    const Op *op = parts->text.transfers.at[number].op;
    int part = part_of(parts, op);
    Calls *calls = &parts->calls.at[part];
    Call *call = call_new(calls, opening, op);
    call_add(calls, call, (Argument){.kind = ARGUMENT_NUMBER, .number = number});
    call->comment = plan_name(op->convert.plan->plan);
    return call;
}

/* Appends the calls that begin the prefetched gathers before an operator. */
static void begin_aheads(RoleParts *parts, const Op *op) {
    const Numbers *begin = &parts->ahead[op->index];
    for (int b = 0; b < begin->count; b++)
        call_ahead(parts, "ht_begin_ahead(r, ", begin->at[b])->aside = true;
}

static void add_ops(RoleParts *parts) {
    const Module *module = parts->writer->module;
    add_async_collectives(parts);
    add_aheads(parts);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        begin_aheads(parts, op);
        if (op_crosses_stages(module, op)) add_transfer(parts, op);
        else if (parts->ahead_of[i]) call_ahead(parts, "ht_end_ahead(r, ", parts->ahead_of[i] - 1);
        else if (op_is_async(module, op) && !plan_nothing(op->convert.plan->plan))
            await_async_collectives(parts, op);
        else if (role_runs(parts->writer->module, parts->writer->role, op)) {
            int part = part_of(parts, op);
            add_op(&parts->calls.at[part], parts->writer, op);
        }
        release_made(parts, op);
    }
    if (module->ops.count) {
        int last = part_of(parts, module->ops.at[module->ops.count - 1]);
        emit_updates(&parts->calls.at[last], parts->writer);
    }
}

RoleText emit_role(Text *out, RoleWriter *writer) {
    Arena *arena = writer->emitter->arena;
    RoleParts parts = {.writer = writer};
    add_ops(&parts);
    emit_header(out, writer);
    calls_externs(out, writer, &parts.used);
    for (int p = 0; p < parts.text.parts.count; p++) {
        RolePart *part = &parts.text.parts.at[p];
        part->runs = parts.calls.at[p].count > 0;
        if (part->runs)
            calls_emit(
                out, &parts.calls.at[p],
                arena_format(arena, "%s_role%d_%s", writer->name, writer->role_index, part->name),
                part->name);
        part->notes = notes_of(writer, &parts.calls.at[p]);
    }
    return parts.text;
}
