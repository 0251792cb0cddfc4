#include "emit/program/notes.h"

#include "cost/cost.h"
#include "emit/words.h"
#include "hetu/rt.h"
#include "ir/within.h"

#include <math.h>
#include <string.h>

typedef struct NoteWriter {
    const RoleWriter *writer;
    Text rows, made;
    Notes notes;
    int made_count;
} NoteWriter;

/* "3", "vision 3", "head"; "" for none. */
static const char *layer_text(Arena *arena, const Layer *layer)
{
    if (!layer)
        return "";
    const char *tower = layer->tower ? arena_format(arena, "%s ", layer->tower) : "";
    return layer->name ? arena_format(arena, "%s%s", tower, layer->name) : arena_format(arena, "%s%d", tower, layer->number);
}

/* A row for a value that a call makes or reads, where this role has any of it and it may be no number. */
static void note_made(NoteWriter *notes, const Call *call, const Value *value)
{
    const RoleWriter *writer = notes->writer;
    Module *module = writer->module;
    int device = writer->role->devices[0];
    if (!dtype_is_float(value->type.dtype) || !role_has(module, writer->role, value))
        return;
    bool collects = call->op->def == module->collect_def && value == call->op->results[0], turns = value_turns(module, call->op, value);
    int64_t bytes = value_local_bytes(module, turns && collects ? call->op->operands[0] : value, device);
    if (!bytes)
        return;
    text_print(&notes->made, "    {%s, %lld, %lld, %s},\n", c_buffer(notes->made.arena, value_buffer(writer, value)),
               (long long)(turns ? bytes : 0), (long long)(bytes / dtype_size(value->type.dtype)), c_dtype(value->type.dtype));
    notes->made_count++;
}

/* What is looked at of a result: a row whose members one operator makes, with the first of them; NULL for members of others, between which
 * there is what nobody has made yet. */
static const Value *looked_at(const Op *op, int result)
{
    const Within *within = op->results[result]->within;
    const Op *row = within ? within->whole->def : NULL;
    for (int k = 0; row && k < row->operand_count; k++) {
        const Value *made = value_made_within(row->operands[k], row->results[0]);
        if (!made || made->def != op || (k == 0 && made != op->results[result]))
            return NULL;
    }
    return row ? row->results[0] : op->results[result];
}

/* What is looked at of an operand: what it is a part of, which lies in a row. */
static const Value *whole_of(const Value *value)
{
    while (value->within)
        value = value->within->whole;
    return value;
}

/* What a call does: of an operator what its rule says; of a copy, or a sum of micro-batches, what moves. */
static Work call_work(const RoleWriter *writer, const Call *call)
{
    double extent[IR_MAX_FACTORS];
    const Op *op = call->op;
    int device = writer->role->devices[0];
    double bytes = call->makes ? (double)value_local_bytes(writer->module, call->makes, device) : 0;
    if (call->makes && op->def == writer->module->accumulate_def)
        return (Work){.operations = bytes / dtype_size(call->makes->type.dtype), .bytes = 3 * bytes};
    if (call->makes || op->conversion)
        return (Work){.bytes = 2 * bytes};
    op_local_extents(writer->module, op, device, extent);
    return op_work(op, extent);
}

/* Whether a call may give on infinities that nobody sees it read: copies, conversions, and operators of which a number is infinite: an
 * argument, or one that the rule has written out. */
static bool is_endless(const Call *call)
{
    const Op *op = call->op;
    bool endless = call->makes || op->conversion || strstr(op->def->rule->text, "INFINITY");
    for (int a = 0; a < op->def->attr_count; a++)
        endless |= isinf(op->attrs[a].f) != 0;
    return endless;
}

static const char *call_word(const Call *call)
{
    if (call->op->conversion)
        return plan_name(call->op->conversion->plan);
    return call->copies ? "copy" : call->op->def->name;
}

static const char *call_value(const Call *call)
{
    const char *name = call->makes ? call->makes->name : NULL;
    for (int k = 0; k < call->op->result_count && !name; k++)
        name = call->op->results[k]->name;
    return name ? name : "";
}

static void note_call(NoteWriter *notes, const Call *call)
{
    const RoleWriter *writer = notes->writer;
    Arena *arena = notes->rows.arena;
    const Op *op = call->op;
    int first = notes->made_count;
    if (call->makes)
        note_made(notes, call, call->makes);
    for (int k = 0; k < op->result_count && !call->makes; k++)
        if (looked_at(op, k))
            note_made(notes, call, looked_at(op, k));
    int made = notes->made_count - first;
    for (int k = 0; k < op->operand_count && !call->makes && !op->conversion; k++)
        if (op->operands[k])
            note_made(notes, call, whole_of(op->operands[k]));
    Work work = call_work(writer, call);
    const char *plan = op->conversion ? arena_format(arena, "&plan_%s_%d", writer->name, op->conversion->number) : "NULL";
    text_print(&notes->rows, "    {\"%s\", \"%s\", \"%s\", ", c_string(arena, op_place(arena, op, NULL)),
               c_string(arena, op->scope ? op->scope : ""), c_string(arena, layer_text(arena, op->layer)));
    text_print(&notes->rows, "\"%s\", \"%s\", %s, %.17g, %.17g, %s, %d, %d, %d, %s},\n", c_string(arena, call_word(call)),
               c_string(arena, call_value(call)), plan, work.operations, work.bytes, work.product ? "true" : "false", first, made,
               notes->made_count - first - made, is_endless(call) ? "true" : "false");
    notes->notes.call_count++;
}

Notes notes_of(const RoleWriter *writer, const Calls *calls)
{
    Arena *arena = writer->emitter->arena;
    NoteWriter notes = {.writer = writer, .rows = {.arena = arena}, .made = {.arena = arena}};
    for (int i = 0; i < calls->count; i++)
        if (!calls->at[i]->aside)
            note_call(&notes, calls->at[i]);
    notes.notes.calls = notes.rows.length ? text_bytes(&notes.rows) : NULL;
    notes.notes.made = notes.made.length ? text_bytes(&notes.made) : NULL;
    return notes.notes;
}
