/* Writes the tables of tensors' pieces on devices (ht_pieces of <hetu/image.h>).
 *
 *     x (8, 4), {0:dp} over devices 0-3: device d has piece d, which is box d: rows 2d and 2d + 1
 *     devices {0, 4, 0, 1}: 4 devices from 0 on; they have pieces 0, 1, 2, 3: from 0 on, step 1
 *     boxes 0, 0, 2, 2, 0, 4, 0: from box 0 on; rows [0, 2), step 2; columns [0, 4), step 0
 *
 * Neighbouring devices, and neighbouring boxes, often differ by constant steps; a row of a table is
 * such a run. So a table grows with the ways in which a tensor is cut, not with devices. */
#include "emit/program/tables.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"

#include "emit/words.h"
#include "ir/text/text.h"

#include <string.h>

enum { LONGEST_LAYOUT = 200 }; // characters of a layout in a comment

/* The module for which tables are written. */
typedef struct Tables {
    Emitter *emitter;
    Module *module;
    Text *out;
    int device_count; // ranks: 1 + the highest device, idle devices included
} Tables;

typedef Array(int64_t) Numbers;

/* The elements of a tensor that a device has. */
typedef struct Piece {
    int count;
    Numbers bounds; // by box: lo and hi of each dimension
    // by box: the element at which the box begins in memory, and the extents of its storage
    Numbers placing;
} Piece;

static int64_t box_volume(const Box *box, int rank) {
    int64_t volume = 1;
    for (int d = 0; d < rank; d++) volume *= box->dim[d].hi - box->dim[d].lo;
    return volume;
}

/* The position of a micro-batch's region in a tensor with the rows of all micro-batches. */
typedef struct Displacement {
    int dim;        // the batch's dimension; -1: none
    int64_t rows;   // rows that precede the region in that dimension
    int64_t before; // elements that precede the region in memory
} Displacement;

/* Appends a region's boxes to a piece, moved by at.rows along at.dim and at.before in memory. */
static void add_region(Arena *arena, Piece *piece, const Region *region, Displacement at) {
    int64_t before = at.before;
    for (int b = 0; b < region->box_count; b++) {
        const Box *box = &region->boxes[b];
        array_push(arena, &piece->placing, before);
        before += region->placing ? 0 : box_volume(box, region->rank);
        if (region->placing) piece->placing.at[piece->placing.count - 1] += region->placing[b].at;
        for (int d = 0; d < region->rank; d++) {
            array_push(arena, &piece->bounds, box->dim[d].lo + (d == at.dim ? at.rows : 0));
            array_push(arena, &piece->bounds, box->dim[d].hi + (d == at.dim ? at.rows : 0));
            array_push(arena, &piece->placing,
                       region->placing ? region->placing[b].extent[d]
                                       : box->dim[d].hi - box->dim[d].lo);
        }
    }
    piece->count += region->box_count;
}

/* Appends a line with the placing of a box: its begin in memory, then rank extents of storage. */
static void emit_placing(Text *out, const int64_t *placing, int rank) {
    text_print(out, "    %lld, ", (long long)placing[0]);
    for (int d = 0; d < rank; d++) text_print(out, " %lld,", (long long)placing[1 + d]);
    text_string(out, "\n");
}

/* A tensor whose pieces are written. If `turns` is empty, the layout gives the pieces. Otherwise
 * the tensor has the rows of all micro-batches, and the values in `turns` give their regions. */
typedef struct Stored {
    const Value *value;
    Array(const Value *) turns;
} Stored;

/* Returns the value among `turns` of which the device has a piece; NULL: there is none. */
static const Value *stored_turn(const Tables *tables, const Stored *stored, int device) {
    for (int i = 0; i < stored->turns.count; i++)
        if (value_region(tables->module, stored->turns.at[i], device)->member)
            return stored->turns.at[i];
    return NULL;
}

/* The rows of a table of pieces. */
typedef struct PiecesText {
    int *piece;       // by device: number of its piece; -1: no elements
    Array(int) first; // by piece: its first box; then the number of all boxes
    Numbers boxes;    // by box: lo and hi of each dimension
    Text placing;     // a line for each box
    Intern *known;    // 1 + number of a piece, by its content
    bool placed;      // `placing` gives the storage of boxes; else they are one after another
} PiecesText;

static bool layout_is_zigzag(const Layout *layout, int rank) {
    bool zigzag = false;
    for (int d = 0; d < rank; d++) zigzag |= layout_has_zigzag(layout, d);
    return zigzag;
}

static bool stored_is_folded(const Stored *stored, int rank) {
    bool zigzag = !stored->turns.count && layout_is_zigzag(stored->value->layout, rank);
    for (int i = 0; i < stored->turns.count; i++)
        zigzag |= layout_is_zigzag(stored->turns.at[i]->layout, rank);
    return zigzag;
}

/* Appends the boxes of a device's micro-batches, one after another. */
static void add_turns(Arena *arena, Piece *piece, const Tables *tables, const Stored *stored,
                      int device) {
    int stage = 0;
    const Value *turn = stored_turn(tables, stored, device);
    const PipelineRun *run = device_run(tables->module, device, &stage);
    const Region *region = turn ? value_region(tables->module, turn, device) : NULL;
    for (int64_t m = 0; region && m < run->microbatches; m++) {
        int64_t row =
            (run->first_row + m * tables->module->templates->at.at[run->template_index].rows) /
            tables->module->templates->row_unit;
        add_region(arena, piece, region, (Displacement){turn->micro.dim, row, m * region->volume});
    }
}

/* Returns a device's piece; empty: the device has no elements. */
static Piece device_piece(Arena *arena, const Tables *tables, const Stored *stored, int device) {
    Piece piece = {0};
    const Region *region =
        stored->turns.count ? NULL : value_region(tables->module, stored->value, device);
    if ((region && !region->box_count) || roles_index(tables->module->devices->roles, device) < 0)
        return piece;
    if (region) add_region(arena, &piece, region, (Displacement){-1, 0, 0});
    else add_turns(arena, &piece, tables, stored, device);
    return piece;
}

/* Returns the number of a piece; adds its boxes when it is new. */
static int add_piece(PiecesText *text, Arena *scratch, const Piece *piece, int rank) {
    Text key = {.arena = scratch};
    text_append(&key, (const char *)&piece->count, sizeof piece->count);
    text_append(&key, (const char *)piece->bounds.at,
                sizeof *piece->bounds.at * (size_t)piece->bounds.count);
    if (text->placed)
        text_append(&key, (const char *)piece->placing.at,
                    sizeof *piece->placing.at * (size_t)piece->placing.count);
    intptr_t *number = intern_slot(text->known, key.bytes, key.length);
    if (*number) return (int)*number - 1;
    *number = text->first.count;
    for (int i = 0; i < piece->bounds.count; i++)
        array_push(scratch, &text->boxes, piece->bounds.at[i]);
    for (int b = 0; text->placed && b < piece->count; b++)
        emit_placing(&text->placing, piece->placing.at + (ptrdiff_t)b * (1 + rank), rank);
    int behind = text->first.at[text->first.count - 1] + piece->count;
    array_push(scratch, &text->first, behind);
    return (int)*number - 1;
}

static PiecesText find_pieces(Arena *scratch, const Tables *tables, const Stored *stored,
                              int rank) {
    PiecesText text = {.placed = stored_is_folded(stored, rank), .known = intern_create(scratch)};
    text.piece = arena_array(scratch, int, tables->device_count);
    text.placing.arena = scratch;
    array_push(scratch, &text.first, 0);
    for (int device = 0; device < tables->device_count; device++) {
        Piece piece = device_piece(scratch, tables, stored, device);
        text.piece[device] = piece.count ? add_piece(&text, scratch, &piece, rank) : -1;
    }
    return text;
}

/* ---- runs ---- */

/* Returns rows `{device, count, piece, step}` for runs of devices; sets *runs to their number. */
static Text device_runs(Arena *arena, const int *piece, int count, int *runs) {
    Text rows = {.arena = arena};
    *runs = 0;
    for (int device = 0, end; device < count; device = end) {
        int step =
            device + 1 < count && piece[device + 1] >= 0 ? piece[device + 1] - piece[device] : 0;
        for (end = device + 1; end < count && piece[device] >= 0 && piece[end] >= 0 &&
                               piece[end] == piece[end - 1] + step;)
            end++;
        if (piece[device] >= 0)
            text_print(&rows, "%s{%d, %d, %d, %d}", (*runs)++ ? ", " : "", device, end - device,
                       piece[device], end - device > 1 ? step : 0);
    }
    return rows;
}

/* Returns whether box `b` continues the run that begins with box `a`. True if the step from box b -
 * 1 to `b` equals that from `a` to a + 1. */
static bool goes_on(const int64_t *boxes, int rank, int a, int b) {
    const int64_t *first = boxes + (ptrdiff_t)a * 2 * rank, *last = boxes + (ptrdiff_t)b * 2 * rank;
    bool on = true;
    for (int i = 0; i < 2 * rank; i++)
        on = on && last[i] - last[i - 2 * rank] == first[2 * rank + i] - first[i];
    return on;
}

/* Returns whether box `a` and the next have equal extents. A box: lo and hi of each dimension. */
static bool same_extents(const int64_t *boxes, int rank, int a) {
    const int64_t *first = boxes + (ptrdiff_t)a * 2 * rank, *second = first + (ptrdiff_t)2 * rank;
    bool same = true;
    for (int d = 0; d < rank; d++)
        same = same && first[2 * d + 1] - first[2 * d] == second[2 * d + 1] - second[2 * d];
    return same;
}

/* Returns rows `box, lo, hi, step, ...` for runs of boxes; sets *runs to their number. */
static Text box_runs(Arena *arena, const int64_t *boxes, int count, int rank, int *runs) {
    Text rows = {.arena = arena};
    *runs = 0;
    for (int b = 0, end; b < count; b = end, ++*runs) {
        bool several = b + 1 < count && same_extents(boxes, rank, b);
        for (end = b + 1; several && end < count && goes_on(boxes, rank, b, end);) end++;
        text_print(&rows, "    %d,", b);
        for (int d = 0; d < rank; d++) {
            const int64_t *bounds = boxes + ((ptrdiff_t)b * rank + d) * 2;
            text_print(&rows, "  %lld, %lld, %lld,", (long long)bounds[0], (long long)bounds[1],
                       several ? (long long)(bounds[2 * rank] - bounds[0]) : 0);
        }
        text_string(&rows, "\n");
    }
    return rows;
}

/* Returns the numbers of the pieces' first boxes; empty if each piece is one box. */
static Text first_boxes(Arena *arena, const PiecesText *text) {
    Text numbers = {.arena = arena};
    if (text->first.at[text->first.count - 1] == text->first.count - 1) return numbers;
    for (int p = 0; p < text->first.count; p++)
        text_print(&numbers, p ? ", %d" : "%d", text->first.at[p]);
    return numbers;
}

/* ---- tables ---- */

/* Returns the name of a list of runs of devices, and writes the list when it is new. */
static const char *runs_write(Emitter *emitter, Text *out, const char *runs) {
    intptr_t *slot = intern_slot(emitter->lists.known, runs, strlen(runs));
    if (!*slot) {
        *slot = ++emitter->lists.count;
        text_print(out, "static const ht_run runs_%d[] = {%s};\n\n", emitter->lists.count, runs);
    }
    return arena_format(emitter->arena, "runs_%d", (int)*slot);
}

/* Returns the text of a layout for a comment; shortens a long one. */
static const char *layout_comment(Arena *arena, const Stored *stored, const Layout *laid) {
    Text layout = {.arena = arena};
    text_string(&layout, stored->turns.count ? "of each micro-batch " : "");
    layout_print(&layout, laid);
    return layout.length > LONGEST_LAYOUT
               ? arena_format(arena, "%.*s ...", LONGEST_LAYOUT, text_bytes(&layout))
               : text_bytes(&layout);
}

/* Returns the number of the table with these pieces, and writes the table when it is new. */
static int write_stored(const Tables *tables, const Stored *stored) {
    Emitter *emitter = tables->emitter;
    Arena *arena = arena_create();
    const Layout *laid = stored->turns.count ? stored->turns.at[0]->layout : stored->value->layout;
    Shape view = layout_view(laid, type_shape(stored->value->type));
    Text extents = {.arena = arena}, placing = {.arena = arena};
    PiecesText text = find_pieces(arena, tables, stored, view.rank);
    int device_run_count, box_run_count;
    Text devices = device_runs(arena, text.piece, tables->device_count, &device_run_count),
         first = first_boxes(arena, &text);
    Text boxes = box_runs(arena, text.boxes.at, text.first.at[text.first.count - 1], view.rank,
                          &box_run_count);
    for (int d = 0; d < view.rank; d++)
        text_print(&extents, "%s%lld", d ? ", " : "", (long long)view.extent[d]);
    const char *key =
        arena_format(arena, "%s|%s|%s|%s|%s", text_bytes(&extents), text_bytes(&devices),
                     text_bytes(&first), text_bytes(&boxes), text_bytes(&text.placing));
    intptr_t *slot = intern_slot(emitter->pieces.known, key, strlen(key));
    int number = *slot ? (int)*slot - 1 : emitter->pieces.count;
    if (!*slot) {
        *slot = ++emitter->pieces.count;
        const char *n = c_number(arena, number);
        if (text.placed)
            text_print(&placing, "\nstatic const int64_t placing_%s[] = {\n%s};", n,
                       text_bytes(&text.placing));
        if (first.length)
            text_print(&placing, "\nstatic const int first_%s[] = {%s};", n, text_bytes(&first));
        const char *list = runs_write(emitter, tables->out,
                                      devices.length ? text_bytes(&devices) : "{0, 0, 0, 0}");
        text_fill(tables->out,
                  "/* ($extents) $layout */\n"
                  "static const int64_t extent_$n[] = {$extents_or_1};\n"
                  "static const int64_t box_$n[] = { // box, then lo, hi, step of each dimension\n"
                  "$boxes};$placing\n"
                  "static const ht_pieces pieces_$n = {$rank, $device_runs, $box_runs, extent_$n, "
                  "$runs, $first, box_$n, $placed};\n\n",
                  "runs", list, "layout", layout_comment(arena, stored, laid), "extents",
                  text_bytes(&extents), "n", n, "extents_or_1",
                  view.rank ? text_bytes(&extents) : "1", "boxes",
                  boxes.length ? text_bytes(&boxes) : "    0,\n", "placing", text_bytes(&placing),
                  "placed", text.placed ? arena_format(arena, "placing_%s", n) : "NULL", "rank",
                  c_number(arena, view.rank), "first",
                  first.length ? arena_format(arena, "first_%s", n) : "NULL", "device_runs",
                  c_number(arena, device_run_count), "box_runs", c_number(arena, box_run_count),
                  NULL);
    }
    arena_destroy(arena);
    return number;
}

/* Finds the values of which a tensor with the rows of all micro-batches consists: parts of an
 * input, or values that an output collects. */
static Stored stored_of(const Tables *tables, const Value *value) {
    const Module *module = tables->module;
    Arena *arena = tables->emitter->arena;
    Stored stored = {.value = value};
    const Op *def = value->def;
    for (int i = 0;
         value->kind == VALUE_INPUT && value->micro.kind != MICRO_WHOLE && i < module->ops.count;
         i++)
        if (module->ops.at[i]->def == module->builtin->local_part &&
            module->ops.at[i]->operands[0] == value)
            array_push(arena, &stored.turns, module->ops.at[i]->results[0]);
    if (def && def->def == module->builtin->collect)
        array_push(arena, &stored.turns, def->operands[0]);
    for (int k = 0; def && def->def == module->builtin->stage_union && k < def->operand_count; k++)
        if (def->operands[k]->def->def == module->builtin->collect)
            array_push(arena, &stored.turns, def->operands[k]->def->operands[0]);
    return stored;
}

int pieces_write(Text *out, Emitter *emitter, Module *module, int device_count,
                 const Value *value) {
    Tables tables = {emitter, module, out, device_count};
    Stored stored = stored_of(&tables, value);
    if (stored.turns.count || !value->layout) return write_stored(&tables, &stored);
    Text *key = &emitter->key;
    key->length = 0;
    text_append(key, (const char *)&value->layout, sizeof value->layout);
    text_append(key, (const char *)&device_count, sizeof device_count);
    for (int d = 0; d < value->type.rank; d++)
        text_append(key, (const char *)&value->type.extent[d], sizeof *value->type.extent);
    intptr_t *slot = intern_slot(emitter->pieces.by_layout, key->bytes, key->length);
    if (!*slot) *slot = write_stored(&tables, &stored) + 1;
    return (int)*slot - 1;
}
