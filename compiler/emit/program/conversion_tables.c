/* Writes a conversion plan as the C tables that <hetu/reshard.h> describes.
 *
 *     static const ht_block blocks_0[] = {{HT_FROM, 0, 1, 0, 512}};
 *     static const ht_reshard_step steps_1[] = {{.verb = HT_EXCHANGE, ... .send = blocks_0}};
 *     static const ht_reshard plan_gpt_3 = {.name = "...", .device = members_2, ...};
 */
#include "emit/program/tables.h"

#include "emit/words.h"
#include "support/intern.h"

#include <stdlib.h>

static const char *const place_names[] = {
    [HT_FROM] = "HT_FROM", [HT_TO] = "HT_TO", [HT_SCRATCH] = "HT_SCRATCH"};
static const char *const reduction_names[] = {
    [HT_NO_REDUCTION] = "HT_NO_REDUCTION", [HT_SUM] = "HT_SUM", [HT_MAX] = "HT_MAX"};
static const char *const verb_names[] = {
    [HT_COPY] = "HT_COPY",
    [HT_COMBINE] = "HT_COMBINE",
    [HT_FILL] = "HT_FILL",
    [HT_ALL_REDUCE] = "HT_ALL_REDUCE",
    [HT_REDUCE_SCATTER] = "HT_REDUCE_SCATTER",
    [HT_ALL_GATHER] = "HT_ALL_GATHER",
    [HT_ALL_TO_ALL] = "HT_ALL_TO_ALL",
    [HT_BROADCAST] = "HT_BROADCAST",
    [HT_REDUCE] = "HT_REDUCE",
    [HT_EXCHANGE] = "HT_EXCHANGE",
};

/* A plan while it is written. */
typedef struct PlanWriter {
    Emitter *emitter;
    Arena *arena;
    Text *out;
    Intern *known; // names of arrays of blocks and of steps, by their addresses
} PlanWriter;

/* The tables of a plan, and the names under which they are written. */
typedef struct PlanTables {
    const ht_reshard *lowered;
    const char *groups, *devices, *tensors;
} PlanTables;

/* Lists of more than SHORT_BLOCKS blocks become arrays of their own, which devices may share. */
enum { SHORT_BLOCKS = 2 };

/* Returns rows `{extent, from, to}` (ht_stride), one for each dimension of a move. */
static const char *dimension_rows(Arena *arena, const ht_move *move) {
    Text rows = {.arena = arena};
    for (int d = 0; d < move->rank; d++)
        text_print(&rows, "%s{%lld, %lld, %lld}", d ? ", " : "", (long long)move->dim[d].extent,
                   (long long)move->dim[d].from, (long long)move->dim[d].to);
    return text_bytes(&rows);
}

static const char *move_row(Arena *arena, const ht_move *move) {
    Text row = {.arena = arena};
    text_fill(
        &row, "{$from, $to, $tensor, $from_offset, $to_offset, $rank, $dims}", "from",
        place_names[move->from], "to", place_names[move->to], "tensor",
        c_number(arena, move->tensor), "from_offset", c_number(arena, move->from_offset),
        "to_offset", c_number(arena, move->to_offset), "rank", c_number(arena, move->rank), "dims",
        move->rank ? arena_format(arena, "(const ht_stride[]){%s}", dimension_rows(arena, move))
                   : "0",
        NULL);
    return text_bytes(&row);
}

/* Returns the name of the array `WORD_N` with these rows, and writes the array when it is new.
 * Devices and plans with equal rows share the array. */
static const char *write_array(PlanWriter *writer, const char *type, const char *word,
                               const Text *rows) {
    Emitter *emitter = writer->emitter;
    Text *key = &emitter->key;
    key->length = 0;
    text_string(key, word);
    text_append(key, rows->bytes, rows->length);
    const char **name = intern_slot(emitter->arrays.known, key->bytes, key->length);
    if (!*name) {
        *name = arena_format(emitter->arena, "%s_%d", word, emitter->arrays.count++);
        text_fill(writer->out, "static const $type $name[] = {$rows};\n", "type", type, "name",
                  *name, "rows", text_bytes(rows), NULL);
    }
    return *name;
}

/* Returns rows `{place, tensor, peer, offset, count}`. */
static Text block_text(Arena *arena, const ht_block *blocks, int count) {
    Text rows = {.arena = arena};
    for (int i = 0; i < count; i++)
        text_print(&rows, "%s{%s, %d, %d, %lld, %lld}", i ? ", " : "", place_names[blocks[i].place],
                   blocks[i].tensor, blocks[i].peer, (long long)blocks[i].offset,
                   (long long)blocks[i].count);
    return rows;
}

/* Returns the name or text of an array of blocks; "0": there are none. */
static const char *block_rows(PlanWriter *writer, const ht_block *blocks, int count) {
    if (!count) return "0";
    const char **known =
        count > SHORT_BLOCKS ? intern_slot(writer->known, &blocks, sizeof blocks) : NULL;
    if (known && *known) return *known;
    Arena *scratch = arena_create();
    Text rows = block_text(scratch, blocks, count);
    const char *written =
        known ? write_array(writer, "ht_block", "blocks", &rows)
              : arena_format(writer->arena, "(const ht_block[]){%s}", text_bytes(&rows));
    if (known) *known = written;
    arena_destroy(scratch);
    return written;
}

static const char *move_rows(Arena *arena, const ht_reshard_step *step) {
    Text rows = {.arena = arena};
    for (int i = 0; i < step->move_count; i++)
        text_print(&rows, "%s%s", i ? ",\n                 " : "", move_row(arena, &step->move[i]));
    return text_bytes(&rows);
}

static void emit_step(PlanWriter *writer, Text *out, const ht_reshard_step *step) {
    Arena *arena = writer->arena;
    if (step->move_count)
        text_fill(out,
                  "    {.verb = $verb, .move_count = $count, .move = (const ht_move[]){\n"
                  "                 $moves}},\n",
                  "verb", verb_names[step->verb], "count", c_number(arena, step->move_count),
                  "moves", move_rows(arena, step), NULL);
    else
        text_fill(out,
                  "    {.verb = $verb, .dtype = $dtype, .reduction = $reduction, .group = $group, "
                  ".send_count = $sends, .receive_count = "
                  "$receives,\n"
                  "     .send = $send,\n"
                  "     .receive = $receive},\n",
                  "verb", verb_names[step->verb], "dtype", c_dtype((DType)step->dtype), "reduction",
                  reduction_names[step->reduction], "group", c_number(arena, step->group), "sends",
                  c_number(arena, step->send_count), "receives",
                  c_number(arena, step->receive_count), "send",
                  block_rows(writer, step->send, step->send_count), "receive",
                  block_rows(writer, step->receive, step->receive_count), NULL);
}

/* Returns the name of the array of a device's steps; "0": it has none. */
static const char *emit_steps(PlanWriter *writer, const ht_reshard_device *device) {
    if (!device->step_count) return "0";
    const char **known = intern_slot(writer->known, &device->step, sizeof device->step);
    if (*known) return *known;
    Arena *arena = writer->arena;
    writer->arena = arena_create();
    Text steps = {.arena = writer->arena};
    text_string(&steps, "\n");
    for (int s = 0; s < device->step_count; s++) emit_step(writer, &steps, &device->step[s]);
    const char *name = write_array(writer, "ht_reshard_step", "steps", &steps);
    *(const char **)intern_slot(writer->known, &device->step, sizeof device->step) = name;
    arena_destroy(writer->arena);
    writer->arena = arena;
    return name;
}

static const char *emit_groups(PlanWriter *writer, const ht_reshard *plan) {
    Text rows = {.arena = writer->arena};
    for (int g = 0; g < plan->group_count; g++) {
        text_print(&rows, "%s    {%d, (const int[]){", g ? "" : "\n", plan->group[g].count);
        for (int i = 0; i < plan->group[g].count; i++)
            text_item(&rows, !i, plan->group[g].device[i]);
        text_string(&rows, "}},\n");
    }
    return plan->group_count ? write_array(writer, "ht_group", "groups", &rows) : "0";
}

static const char *emit_devices(PlanWriter *writer, const ht_reshard *plan) {
    Text rows = {.arena = writer->arena};
    text_string(&rows, " // device, steps, bytes of scratch\n");
    for (int i = 0; i < plan->device_count; i++) {
        const ht_reshard_device *device = &plan->device[i];
        text_print(&rows, "    {%d, %d, %lld, %s},\n", device->device, device->step_count,
                   (long long)device->scratch, emit_steps(writer, device));
    }
    return write_array(writer, "ht_reshard_device", "members", &rows);
}

static const char *emit_tensors(PlanWriter *writer, const ht_reshard *plan) {
    Text rows = {.arena = writer->arena};
    text_string(&rows, " // type, reduction, whether in place\n");
    for (int i = 0; i < plan->tensor_count; i++)
        text_print(&rows, "    {%s, %s, %d},\n", c_dtype((DType)plan->tensor[i].dtype),
                   reduction_names[plan->tensor[i].reduction], plan->tensor[i].in_place);
    return write_array(writer, "ht_reshard_tensor", "tensors", &rows);
}

/* ---- positions in replica groups instead of device numbers ---- */

PlanNames plan_names(Emitter *emitter, Text *out, const ReplicaGroups *replica_groups, int kind,
                     const int *positions) {
    int least = replica_groups->size ? replica_groups->name[0] : 0, most = least;
    for (int i = 0; i < replica_groups->size; i++) {
        least = replica_groups->name[i] < least ? replica_groups->name[i] : least;
        most = replica_groups->name[i] > most ? replica_groups->name[i] : most;
    }
    int span = most - least + 1, *place = arena_array(emitter->arena, int, span);
    for (int i = 0; i < replica_groups->size; i++) place[replica_groups->name[i] - least] = i;
    return (PlanNames){.kind = kind,
                       .least = least,
                       .span = span,
                       .place = place,
                       .replica_group_count = replica_groups->count,
                       .size = replica_groups->size,
                       .replica_groups =
                           replica_groups_write(emitter, out, replica_groups, positions)};
}

static int name_of(const PlanNames *names, int device) {
    return names->place[device - names->least];
}

static const ht_block *named_blocks(Arena *arena, const PlanNames *names, const ht_block *blocks,
                                    int count) {
    ht_block *copy = arena_copy(arena, blocks, sizeof *copy * (size_t)count);
    for (int i = 0; i < count; i++) copy[i].peer = name_of(names, copy[i].peer);
    return copy;
}

static bool has_peers(const ht_reshard_device *device) {
    bool peers = false;
    for (int s = 0; s < device->step_count; s++) peers |= device->step[s].verb == HT_EXCHANGE;
    return peers;
}

static ht_reshard_device named_device(Arena *arena, const PlanNames *names,
                                      ht_reshard_device device) {
    device.device = name_of(names, device.device);
    if (!has_peers(&device)) return device;
    ht_reshard_step *steps =
        arena_copy(arena, device.step, sizeof *steps * (size_t)device.step_count);
    for (int s = 0; s < device.step_count; s++)
        if (steps[s].verb == HT_EXCHANGE) {
            steps[s].send = named_blocks(arena, names, steps[s].send, steps[s].send_count);
            steps[s].receive = named_blocks(arena, names, steps[s].receive, steps[s].receive_count);
        }
    device.step = steps;
    return device;
}

static ht_group named_group(Arena *arena, const PlanNames *names, ht_group group) {
    int *devices = arena_array(arena, int, group.count);
    for (int i = 0; i < group.count; i++) devices[i] = name_of(names, group.device[i]);
    return (ht_group){group.count, devices};
}

static int compare_devices(const void *a, const void *b) {
    const ht_reshard_device *x = a, *y = b;
    return (x->device > y->device) - (x->device < y->device);
}

/* Returns a plan's tables with positions in replica groups in the place of device numbers. */
static const ht_reshard *with_names(Arena *arena, const ht_reshard *lowered,
                                    const PlanNames *names) {
    ht_reshard *named = arena_copy(arena, lowered, sizeof *lowered);
    ht_reshard_device *devices = arena_array(arena, ht_reshard_device, lowered->device_count);
    ht_group *groups = arena_array(arena, ht_group, lowered->group_count);
    for (int i = 0; i < lowered->device_count; i++)
        devices[i] = named_device(arena, names, lowered->device[i]);
    for (int g = 0; g < lowered->group_count; g++)
        groups[g] = named_group(arena, names, lowered->group[g]);
    qsort(devices, (size_t)lowered->device_count, sizeof *devices, compare_devices);
    named->device = devices;
    named->group = groups;
    return named;
}

/* Returns a plan's tables; writes them unless they were written with these positions before. */
static const PlanTables *emit_tables(Text *out, Emitter *emitter, const Plan *plan,
                                     const PlanNames *names) {
    Arena *arena = emitter->arena;
    Text key = {.arena = arena};
    text_append(&key, (const char *)&plan, sizeof plan);
    text_append(&key, (const char *)&names->least, sizeof names->least);
    text_append(&key, (const char *)names->place, sizeof *names->place * (size_t)names->span);
    const PlanTables **known = intern_slot(emitter->plans, key.bytes, key.length);
    if (*known) return *known;
    PlanWriter writer = {
        .emitter = emitter, .arena = arena, .out = out, .known = intern_create(arena)};
    PlanTables *tables = arena_new(arena, PlanTables);
    *known = tables;
    tables->lowered = with_names(arena, plan_lowered(arena, plan, NULL), names);
    tables->groups = emit_groups(&writer, tables->lowered);
    tables->devices = emit_devices(&writer, tables->lowered);
    tables->tensors = emit_tensors(&writer, tables->lowered);
    return tables;
}

void emit_plan(Text *out, Emitter *emitter, const Plan *plan, PlanLabel label,
               const PlanNames *names) {
    Arena *arena = out->arena;
    const PlanTables *tables = emit_tables(out, emitter, plan, names);
    text_fill(out,
              "static const ht_reshard $name = {\n"
              "    .name = \"$label\", .kind = $kind, .tensor_count = $tensor_count, .group_count "
              "= $group_count, .device_count = "
              "$device_count,\n"
              "    .tensor = $tensors, .group = $groups, .device = $devices,\n"
              "    .replica_group_count = $replica_group_count, .replica_group_size = $size, "
              ".replica_group = $replica_groups,\n"
              "};\n\n",
              "name", label.name, "label", c_string(arena, label.text), "kind",
              c_number(arena, names->kind), "tensor_count",
              c_number(arena, tables->lowered->tensor_count), "group_count",
              c_number(arena, tables->lowered->group_count), "device_count",
              c_number(arena, tables->lowered->device_count), "tensors", tables->tensors, "groups",
              tables->groups, "devices", tables->devices, "replica_group_count",
              c_number(arena, names->replica_group_count), "size", c_number(arena, names->size),
              "replica_groups", names->replica_groups, NULL);
}
