/* Notes on the calls of a role's phases, for observation at run time (ht_called): source line,
 * scope, layer, operator, the value that a call makes, and its cost by the operator's rule. Only
 * HETU_TRACE, HETU_PROFILE and HETU_NAN read these tables.
 *
 *     {"gpt.c:98", "linear", "h3.up", 1.2e9, 3.1e6, true, false, false, ...}
 */
#include "emit/program/calls.h"

#include "cost/cost.h"
#include "emit/words.h"
#include "ir/analysis/subviews.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"
#include "hetu/rt.h"
#include "ir/programs/conversions.h"

#include <math.h>
#include <string.h>

typedef struct NoteWriter {
    const RoleWriter *writer;
    Text call, calls, made, buffer, whose;
    Intern *known; // 1 + number of a call in `calls`, by content
    int known_count;
    const char *last; // scope and layer in the last row of `whose`; NULL: no row yet
    Notes notes;
    int made_count;
} NoteWriter;

/* Returns the name of a layer: "3", "vision 3", "head"; "": none. */
static const char *layer_text(Arena *arena, const Layer *layer) {
    if (!layer) return "";
    const char *tower = layer->tower ? arena_format(arena, "%s ", layer->tower) : "";
    return layer->name ? arena_format(arena, "%s%s", tower, layer->name)
                       : arena_format(arena, "%s%d", tower, layer->number);
}

/* Adds a row for a value that a call makes or reads, if it is floating point and of this role. */
static void note_made(NoteWriter *notes, const Call *call, const Value *value, Text *shapes,
                      int *count) {
    const RoleWriter *writer = notes->writer;
    Module *module = writer->module;
    int device = writer->role->devices[0];
    if (!dtype_is_float(value->type.dtype) || !role_has(module, writer->role, value)) return;
    bool collects = call->op->def == module->builtin->collect && value == call->op->results[0],
         turns = value_turns(module, call->op, value);
    int64_t bytes =
        value_local_bytes(module, turns && collects ? call->op->operands[0] : value, device);
    if (!bytes) return;
    text_print(shapes, "    {%lld, %lld, %s},\n", (long long)(turns ? bytes : 0),
               (long long)(bytes / dtype_size(value->type.dtype)), c_dtype(value->type.dtype));
    text_print(&notes->buffer, "%s%s", notes->buffer.length ? ", " : "",
               c_buffer(notes->buffer.arena, value_buffer(writer, value)));
    ++*count;
}

/* Returns the value that is checked for a result. For members of a concatenation that the operator
 * makes alone, returns the concatenation for the first, NULL for all others. Returns NULL if
 * several operators make the members, because the concatenation is then incomplete. */
static const Value *looked_at(const Op *op, int result) {
    const Subview *within = op->results[result]->subview;
    const Op *row = within ? within->whole->def : NULL;
    for (int k = 0; row && k < row->operand_count; k++) {
        const Value *made = value_made_within(row->operands[k], row->results[0]);
        if (!made || made->def != op || (k == 0 && made != op->results[result])) return NULL;
    }
    return row ? row->results[0] : op->results[result];
}

/* Returns the value that is checked for an operand: the whole that it is a subview of. */
static const Value *whole_of(const Value *value) {
    while (value->subview) value = value->subview->whole;
    return value;
}

/* Returns the work of a call: an operator's by its rule, or the bytes of a copy or conversion. */
static Work call_work(const RoleWriter *writer, const Call *call) {
    const Op *op = call->op;
    int device = writer->role->devices[0];
    double bytes = call->makes ? (double)value_local_bytes(writer->module, call->makes, device) : 0;
    if (call->makes && op->def == writer->module->builtin->accumulate)
        return (Work){.operations = bytes / dtype_size(call->makes->type.dtype),
                      .bytes = 3 * bytes};
    if (call->makes || op->convert.plan) return (Work){.bytes = 2 * bytes};
    return op_device_work(writer->module, op, device);
}

/* Returns whether a call may have infinite results although its operands in the notes are finite.
 * True for copies, conversions, infinite arguments, and rules that allow infinities. */
static bool is_endless(const Call *call) {
    const Op *op = call->op;
    bool endless = call->makes || op->convert.plan || rule_has_infinity(op->def->rule);
    for (int a = 0; a < op->def->attr_count; a++) endless |= isinf(op->attrs[a].f) != 0;
    return endless;
}

static const char *call_word(const Call *call) {
    if (call->op->convert.plan) return plan_name(call->op->convert.plan->plan);
    return call->copies ? "copy" : call->op->def->name;
}

static const char *call_value(const Call *call) {
    const char *name = call->makes ? call->makes->name : NULL;
    for (int k = 0; k < call->op->result_count && !name; k++) name = call->op->results[k]->name;
    return name ? name : "";
}

/* Adds a row if scope or layer differ from those of the previous call. */
static void note_whose(NoteWriter *notes, const Op *op) {
    Arena *arena = notes->whose.arena;
    const char *scope = c_string(arena, op->source->scope ? op->source->scope : ""),
               *layer = c_string(arena, layer_text(arena, op->source->layer));
    const char *own = arena_format(arena, "\"%s\", \"%s\"", scope, layer);
    if (notes->last && !strcmp(notes->last, own)) return;
    notes->last = own;
    text_print(&notes->whose, "    {%d, %s},\n", notes->notes.call_count, own);
    notes->notes.whose_count++;
}

/* Returns the number of a row of `calls`; writes a new row and the shapes of its tensors. */
static int known_call(NoteWriter *notes, const char *row, const Text *shapes, int made, int read) {
    const char *key =
        arena_format(notes->calls.arena, "%s %d %d %s", row, made, read, text_bytes(shapes));
    intptr_t *number = intern_slot(notes->known, key, strlen(key));
    if (!*number) {
        text_print(&notes->calls, "    {%s, %d, %d, %d},\n", row, notes->made_count, made, read);
        text_string(&notes->made, text_bytes(shapes));
        notes->made_count += made + read;
        *number = ++notes->known_count;
    }
    return (int)*number - 1;
}

static void note_call(NoteWriter *notes, const Call *call) {
    const RoleWriter *writer = notes->writer;
    Arena *arena = notes->calls.arena;
    const Op *op = call->op;
    Text shapes = {.arena = arena};
    int made = 0, read = 0;
    if (call->makes) note_made(notes, call, call->makes, &shapes, &made);
    for (int k = 0; k < op->result_count && !call->makes; k++)
        if (looked_at(op, k)) note_made(notes, call, looked_at(op, k), &shapes, &made);
    for (int k = 0; k < op->operand_count && !call->makes && !op->convert.plan; k++)
        if (op->operands[k] &&
            writer->slot_of[role_storage(writer->module, writer->role, op->operands[k])->id] < 0)
            note_made(notes, call, whole_of(op->operands[k]), &shapes, &read);
    Work work = call_work(writer, call);
    const char *row =
        arena_format(arena, "\"%s\", \"%s\", \"%s\", %.17g, %.17g, %s, %s, %s",
                     c_string(arena, op_place(arena, op, NULL)), c_string(arena, call_word(call)),
                     c_string(arena, call_value(call)), work.operations, work.bytes,
                     work.product ? "true" : "false", op->convert.plan ? "true" : "false",
                     is_endless(call) ? "true" : "false");
    note_whose(notes, op);
    text_item(&notes->call, !notes->notes.call_count, known_call(notes, row, &shapes, made, read));
    notes->notes.call_count++;
}

static const char *text_or_null(const Text *text) { return text->length ? text_bytes(text) : NULL; }

Notes notes_of(const RoleWriter *writer, const Calls *calls) {
    Arena *arena = writer->emitter->arena;
    NoteWriter notes = {.writer = writer,
                        .call = {.arena = arena},
                        .calls = {.arena = arena},
                        .made = {.arena = arena},
                        .buffer = {.arena = arena},
                        .whose = {.arena = arena},
                        .known = intern_create(arena)};
    for (int i = 0; i < calls->count; i++)
        if (!calls->at[i]->aside) note_call(&notes, calls->at[i]);
    notes.notes.call = text_or_null(&notes.call);
    notes.notes.calls = text_or_null(&notes.calls);
    notes.notes.made = text_or_null(&notes.made);
    notes.notes.buffer = text_or_null(&notes.buffer);
    notes.notes.whose = text_or_null(&notes.whose);
    return notes.notes;
}
