/* Reports the operators of a plain C model to the trace, the profile and the NaN check
 * (session/observe/hooks.h): names, scopes and source locations. */
#include "eager/operator.h"

#include "base/memory.h"
#include "base/call_sites.h"
#include "session/observe/hooks.h"
#include "cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *text) {
    return strcpy(memory_array((int64_t)strlen(text) + 1, 1), text);
}

/* Name and scope of one operator call. Never freed, since trace events point to it. */
typedef struct Note {
    ht_called called; // first member: its address is that of the Note
    ht_whose whose;
} Note;

static const ht_whose *whose_of(const ht_called *called) { return &((const Note *)called)->whose; }

static ht_called *new_note(const char *name, const char *value) {
    Note *note = memory_array(1, sizeof *note);
    char *scope = copy_of(eager_run.scope);
    scope[eager_run.scope_length ? eager_run.scope_length - 1 : 0] = 0;
    *note = (Note){{.at = "", .name = name, .value = value}, {.scope = scope, .layer = ""}};
    return &note->called;
}

/* Returns the note of the evaluation's next call; the first evaluation creates it. A forward call
 * gets its own source location, a gradient's call the location of its forward operator. */
static ht_called *next_note(const char *name) {
    Trace *trace = eager_run.trace;
    if (trace->call < trace->call_count) return trace->calls[trace->call++];
    if (trace->call_count % 256 == 0) {
        trace->calls =
            realloc(trace->calls, sizeof *trace->calls * (size_t)(trace->call_count + 256));
        if (!trace->calls) ht_fail("no memory for a model of %d operators", trace->call_count);
    }
    ht_called *note = trace->calls[trace->call_count++] = new_note(copy_of(name), "");
    trace->call = trace->call_count;
    if (eager_run.backward && eager_run.looked) ((Note *)note)->whose = *whose_of(eager_run.looked);
    if (!eager_run.backward) call_sites_note(note, !strcmp(name, "ht_apply"));
    else if (eager_run.looked) call_sites_like(note, eager_run.looked);
    return note;
}

static int take_tensors(HookTensor *tensors, int count, ht_node *const *nodes) {
    int taken = 0;
    for (int i = 0; i < count; i++)
        if (nodes[i] && nodes[i]->data && !nodes[i]->zero && !eager_is_integer(nodes[i]))
            tensors[taken++] = (HookTensor){nodes[i]->data, nodes[i]->count, nodes[i]->dtype};
    return taken;
}

/* Returns whether an earlier operand of the call is the same tensor, which is read once. */
static bool is_repeated(const Entry *entry, int operand) {
    for (int i = 0; i < operand; i++)
        if (entry->operand[i] == entry->operand[operand]) return true;
    return false;
}

/* Returns the bytes that a call reads and writes: 0 for a view; of an operand with a `reads` clause
 * only the elements that are looked up. */
static double bytes_of(const Entry *entry) {
    const Operator *op = entry->op;
    double bytes = 0;
    if (op && op->kind == OPERATOR_VIEW) return 0;
    for (int i = 0; i < entry->operand_count; i++) {
        const ht_node *node = entry->operand[i];
        if (!node || node->zero || is_repeated(entry, i)) continue;
        bool own = op && entry->operand_count == op->operand_count && op->operands[i].reads;
        double count = (double)node->count,
               read = own ? (double)op->operands[i].reads(entry->attr, entry->size) : count;
        bytes += fmin(count, read) * (double)ht_dtype_bytes(node->dtype);
    }
    for (int i = 0; i < entry->result_count; i++)
        bytes += entry->result[i]->zero ? 0
                                        : (double)entry->result[i]->count *
                                              (double)ht_dtype_bytes(entry->result[i]->dtype);
    return bytes;
}

/* Returns whether the NaN check must allow infinite results: by an argument, or by the rule. */
static bool is_endless(const Entry *entry) {
    bool endless = entry->op && entry->op->values.endless;
    for (int a = 0; a < entry->attr_count; a++) endless |= isinf(entry->attr[a].f) != 0;
    return endless;
}

/* Returns the present operands as a bit mask in the rule's order; all bits if the call's operands
 * do not match the rule's one by one (variadic). */
static uint32_t present_operands(const Entry *entry) {
    uint32_t present = 0;
    if (entry->operand_count != entry->op->operand_count) return UINT32_MAX;
    for (int k = 0; k < entry->operand_count; k++)
        present |= (uint32_t)(entry->operand[k] != NULL) << k;
    return present;
}

/* Returns a call's operations: 0 for a view, the rule's number, else one for each element. */
static double operations_of(const Entry *entry) {
    double elements = 0;
    if (entry->op && entry->op->kind == OPERATOR_VIEW) return 0;
    if (entry->op && entry->op->operations)
        return entry->op->operations(entry->attr, entry->size, present_operands(entry));
    for (int i = 0; i < entry->operand_count; i++)
        elements += entry->operand[i] ? (double)entry->operand[i]->count : 0;
    for (int i = 0; i < entry->result_count; i++) elements += (double)entry->result[i]->count;
    return elements;
}

void eager_look(const char *name, const Entry *entry) {
    if (!hooks_wanted() || (eager_run.dry && eager_run.backward)) return;
    ht_called *note = next_note(name);
    if (!eager_run.backward) eager_run.looked = note;
    if (eager_run.dry) return;
    HookTensor made[EAGER_RESULTS],
        *read = eager_alloc(sizeof *read * (size_t)(entry->operand_count + 1));
    note->bytes = bytes_of(entry);
    note->operations = operations_of(entry);
    note->endless = is_endless(entry);
    int made_count = take_tensors(made, entry->result_count, entry->result);
    int read_count = take_tensors(read, entry->operand_count, entry->operand);
    hooks_operator(
        &(HookCall){note, whose_of(note), eager_run.backward, made_count, read_count, made, read});
}

void eager_look_backward(const Entry *entry) {
    if (!hooks_wanted() || entry->gradient) return;
    char name[128];
    snprintf(name, sizeof name, "gradient of %s", entry->op->name);
    ht_called *note = next_note(name);
    note->endless = is_endless(entry);
    HookTensor made, *read = eager_alloc(sizeof *read *
                                         (size_t)(entry->operand_count + entry->result_count + 1));
    int read_count = take_tensors(read, entry->operand_count, entry->operand);
    for (int r = 0; r < entry->result_count; r++)
        read_count += take_tensors(read + read_count, 1, &entry->result[r]->gradient);
    for (int k = 0; k < entry->operand_count; k++)
        if (entry->operand[k] && entry->operand[k]->needs_gradient &&
            take_tensors(&made, 1, &entry->operand[k]->gradient))
            hooks_operator(&(HookCall){note, whose_of(note), true, 1, read_count, &made, read});
}

void eager_look_update(const ht_called **note, const char *name, const eager_param *param) {
    if (!hooks_wanted()) return;
    if (!*note) *note = new_note(name, copy_of(param->name));
    hooks_operator(&(HookCall){*note, whose_of(*note), true, 1, 0,
                               &(HookTensor){param->data, param->count, HT_F32}, NULL});
}
