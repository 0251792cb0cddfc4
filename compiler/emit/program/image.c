/* Writes the image of a module (ht_image of <hetu/image.h>): tables of pieces, parameters, inputs,
 * outputs, conversions, roles and schedules.
 *
 *     static const ht_image_param params_gpt_gpt_loss_train[] = {{"h0.up.w", "(512, 128)", ...}};
 *     const ht_image gpt_gpt_loss_train_image = {.params = params_gpt_gpt_loss_train, ...};
 */
#include "emit/program/tables.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"

#include "emit/program/calls.h"
#include "emit/words.h"
#include "hetu/rt.h"
#include "ir/text/text.h"

#include <string.h>

typedef struct Image {
    Emitter *emitter;
    Module *module;
    const char *name; // "gpt_gpt_loss_train"
    const RoleWriter *writers;
    Text *out;
    int device_count;         // ranks: 1 + the highest device, idle devices included
    Intern *schedule_numbers; // 1 + number of a schedule, by content
    int schedule_count;
    Intern *piece_numbers; // 1 + index of a device's row of numbers, by content
    int piece_count;
} Image;

/* Returns the name of the array of a list of devices, and writes the array when it is new. */
static const char *list_write(Emitter *emitter, Text *out, const char *numbers) {
    intptr_t *slot = intern_slot(emitter->lists.known, numbers, strlen(numbers));
    if (!*slot) {
        *slot = ++emitter->lists.count;
        text_print(out, "static const int devices_%d[] = {%s};\n\n", emitter->lists.count, numbers);
    }
    return arena_format(emitter->arena, "devices_%d", (int)*slot);
}

/* ---- parameters, inputs, outputs ---- */

static int pieces_of(const Image *image, const Value *value) {
    return pieces_write(image->out, image->emitter, image->module, image->device_count, value);
}

static void text_param(Image *image, Text *rows, const Parameter *param) {
    static const char *const KINDS[] = {[INIT_ZEROS] = "0 /* zeros */",
                                        [INIT_CONSTANT] = "1 /* constant */",
                                        [INIT_NORMAL] = "2 /* normal */",
                                        [INIT_UNIFORM] = "3 /* uniform */"};
    text_print(rows, "    {\"%s\", \"%s\", &pieces_%d, %s, ", c_string(rows->arena, param->name),
               param->shape, pieces_of(image, param->value), KINDS[param->init]);
    print_number(rows, param->a);
    text_print(rows, ", %d, {", param->state_count);
    for (int s = 0; s < param->state_count; s++)
        text_print(rows, "%s&pieces_%d", s ? ", " : "", pieces_of(image, param->states[s]));
    text_print(rows, "%s}, %s},\n", param->state_count ? "" : "NULL",
               param->updated ? "true" : "false");
}

/* Appends `static const TYPE NAME_MODEL[] = {rows};`; if there are no rows, a table of one zero. */
static void emit_table(const Image *image, const char *type, const char *name, const Text *rows) {
    text_fill(image->out,
              "static const $type $name[] = {\n"
              "$rows};\n\n",
              "type", type, "name", arena_format(image->emitter->arena, "%s_%s", name, image->name),
              "rows", rows->length ? text_bytes(rows) : "    {0},\n", NULL);
}

static void emit_params(Image *image) {
    Text rows = {.arena = image->emitter->arena};
    for (int p = 0; p < image->module->params.count; p++)
        text_param(image, &rows, image->module->params.at[p]);
    emit_table(image, "ht_image_param", "params", &rows);
}

static const char *position_text(Arena *arena, Position at) {
    if (!at.file) return "";
    return c_string(arena, arena_format(arena, "%s:%d", file_name(at.file), at.line));
}

/* Returns the rows of an input that a pipeline template reads in a micro-batch; NULL: none. */
static const Value *part_of_body(const Module *module, const Value *input, int body) {
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->def == module->builtin->local_part && op->operands[0] == input &&
            op->stage != STAGE_ALL &&
            module->templates->stages.at[op->stage].template_index == body)
            return op->results[0];
    }
    return NULL;
}

/* Returns the padding lengths of an input with a padding value. Each pipeline with shorter lengths
 * gives its range of the batch's rows and the extents that it reads; *count is their number. */
static Text padded_rows(const Image *image, const Value *input, int *count) {
    const Module *module = image->module;
    Text rows = {.arena = image->emitter->arena};
    for (int r = 0; input->padding && r < module->templates->runs.count; r++) {
        const PipelineRun *run = &module->templates->runs.at[r];
        const Body *body = &module->templates->at.at[run->template_index];
        const Value *part =
            body->short_rows ? part_of_body(module, input, run->template_index) : NULL;
        if (!part) continue;
        text_print(&rows, "%s%lld, %lld", (*count)++ ? ", " : "", (long long)run->first_row,
                   (long long)(run->first_row + run->microbatches * body->rows));
        for (int d = 1; d < part->type.rank; d++)
            text_print(&rows, ", %lld", (long long)part->type.extent[d]);
    }
    return rows;
}

/* Writes the table of an input's padded rows. Returns the table's address in C; "NULL": no rows. */
static const char *emit_padding(const Image *image, const Value *input) {
    Arena *arena = image->emitter->arena;
    int count = 0;
    Text rows = padded_rows(image, input, &count), extents = {.arena = arena};
    if (!count) return "NULL";
    const char *name = arena_format(arena, "padding_%s_%d", image->name, input->index),
               *address = arena_format(arena, "&%s", name);
    for (int d = 0; d < input->type.rank; d++)
        text_print(&extents, "%s%lld", d ? ", " : "", (long long)input->type.extent[d]);
    text_print(image->out,
               "static const ht_padding %s = {%.17g, %d, %d, (const int64_t[]){%s}, (const "
               "int64_t[]){%s}};\n",
               name, *input->padding, input->type.rank, count, text_bytes(&extents),
               text_bytes(&rows));
    return address;
}

static void emit_inputs(Image *image) {
    Arena *arena = image->emitter->arena;
    Text rows = {.arena = arena};
    for (int i = 0; i < image->module->inputs.count; i++) {
        const Value *input = image->module->inputs.at[i];
        text_print(&rows, "    {\"%s\", %s, &pieces_%d, \"%s\"", c_string(arena, input->name),
                   c_dtype(input->type.dtype), pieces_of(image, input),
                   position_text(arena, input->at));
        const char *padding = emit_padding(image, input);
        text_print(&rows, ", %s},\n", padding);
    }
    emit_table(image, "ht_image_input", "inputs", &rows);
}

/* Adds a row for an output, and writes the table of its buffers by role. */
static void text_output(Image *image, Text *rows, int number, const char *name,
                        const Value *value) {
    Arena *arena = image->emitter->arena;
    if (layout_partial(value->layout) != STATE_DUP)
        BUG("output \"%s\" of %s is partial", name, image->module->name);
    int pieces = pieces_of(image, value);
    text_print(image->out, "static const int64_t output_%s_%d[] = {", image->name, number);
    for (int role = 0; role < image->module->devices->roles->role_count; role++) {
        const RoleWriter *writer = &image->writers[role];
        bool has = role_has(image->module, writer->role, value);
        text_print(image->out, "%s%lld", role ? ", " : "",
                   has ? (long long)value_buffer(writer, value) : 0);
    }
    text_string(image->out, "};\n");
    text_print(rows, "    {\"%s\", %s, &pieces_%d, output_%s_%d},\n", c_string(arena, name),
               c_dtype(value->type.dtype), pieces, image->name, number);
}

/* Appends the table of outputs; the loss is the last, and its name is "". */
static void emit_outputs(Image *image) {
    Text rows = {.arena = image->emitter->arena};
    const Module *module = image->module;
    for (int i = 0; i < module->outputs.count; i++)
        text_output(image, &rows, i, module->outputs.at[i].name, module->outputs.at[i].value);
    if (module->loss) text_output(image, &rows, module->outputs.count, "", module->loss);
    emit_table(image, "ht_image_output", "outputs", &rows);
}

/* ---- captured globals ---- */

static void text_number(Text *out, const CapturedGlobal *read, int64_t index) {
    const uint8_t *bytes = read->bytes + index * read->size;
    uint64_t number = 0;
    memcpy(&number, bytes, (size_t)read->size);
    text_print(out, read->kind == NUMBER_FLOATING ? "%s0x%llxu" : "%s%lluu", index ? ", " : "",
               (unsigned long long)number);
}

/* Writes a table of captured numbers, as their bits, and adds a row that names it to `rows`. */
static void text_read(Image *image, Text *rows, int number, const CapturedGlobal *read) {
    static const char *const KINDS[] = {[NUMBER_SIGNED] = "HT_SIGNED",
                                        [NUMBER_UNSIGNED] = "HT_UNSIGNED",
                                        [NUMBER_FLOATING] = "HT_FLOATING"};
    Arena *arena = image->emitter->arena;
    text_print(image->out, "static const uint%d_t read_%s_%d[] = {", 8 * read->size, image->name,
               number);
    for (int64_t i = 0; i < read->count; i++) text_number(image->out, read, i);
    text_string(image->out, "};\n");
    text_print(rows, "    {\"%s\", \"%s\", %lld, %lld, %s, %d, read_%s_%d},\n",
               c_string(arena, read->name), position_text(arena, read->at), (long long)read->first,
               (long long)read->count, KINDS[read->kind], read->size, image->name, number);
}

static void emit_reads(Image *image) {
    Text rows = {.arena = image->emitter->arena};
    for (int i = 0; i < image->module->source->captured_globals.count; i++)
        text_read(image, &rows, i, image->module->source->captured_globals.at[i]);
    emit_table(image, "ht_image_read", "reads", &rows);
}

/* ---- conversions ---- */

/* Returns, by device, its position in the first pipeline of a template; tables use this number. */
static const int *positions_of(const Image *image, int body) {
    const Module *module = image->module;
    int count = 0, *positions = arena_array(image->emitter->arena, int, image->device_count);
    const Pipeline *pipeline =
        &module->strategy->pipelines.at[template_first_run(module->templates, body)->pipeline];
    for (int s = 0; s < pipeline->stages.count; s++)
        for (int i = 0; i < pipeline->stages.at[s].devices.count; i++)
            positions[pipeline->stages.at[s].devices.at[i]] = count++;
    return positions;
}

const char *replica_groups_write(Emitter *emitter, Text *out, const ReplicaGroups *replica_groups,
                                 const int *positions) {
    Text list = {.arena = emitter->arena};
    for (int i = 0; i < replica_groups->count * replica_groups->size; i++) {
        int device = positions ? positions[replica_groups->devices[i]] : replica_groups->devices[i];
        text_item(&list, !i, device);
    }
    return list_write(emitter, out, text_bytes(&list));
}

static PlanNames conversion_names(Image *image, const PlannedConversion *conversion) {
    const ReplicaGroups *replica_groups = &conversion->groups;
    int stage = conversion->user->stage,
        body = stage == STAGE_ALL ? -1 : image->module->templates->stages.at[stage].template_index;
    return plan_names(image->emitter, image->out, replica_groups, body,
                      body < 0 ? NULL : positions_of(image, body));
}

static void emit_plans(Image *image) {
    Arena *arena = image->emitter->arena;
    Text rows = {.arena = arena};
    for (int c = 0; c < image->module->devices->conversions.count; c++) {
        const PlannedConversion *conversion = image->module->devices->conversions.at[c];
        const char *name = arena_format(arena, "plan_%s_%d", image->name, c);
        const char *label = arena_format(arena, "%s: %s", op_place(arena, conversion->user, NULL),
                                         plan_name(conversion->plan));
        PlanNames names = conversion_names(image, conversion);
        emit_plan(image->out, image->emitter, conversion->plan, (PlanLabel){name, label}, &names);
        text_print(&rows, "    &%s,\n", name);
    }
    const char *name = arena_format(arena, "%s_plan", image->name);
    text_fill(image->out,
              "extern const ht_reshard *const $name[];\n"
              "const ht_reshard *const $name[] = {\n$rows};\n\n",
              "name", name, "rows", rows.length ? text_bytes(&rows) : "    NULL,\n", NULL);
}

/* ---- roles ---- */

/* Returns the C text of `count` integers: "(const int[]){1, 2}"; of none: "NULL". */
static const char *int_list(Arena *arena, const int *at, int count) {
    Text list = {.arena = arena};
    for (int i = 0; i < count; i++) text_print(&list, "%s%d", i ? ", " : "(const int[]){", at[i]);
    text_string(&list, count ? "}" : "NULL");
    return text_bytes(&list);
}

static const char *buffer_list(Arena *arena, const int64_t *buffers, int count) {
    Text list = {.arena = arena};
    for (int i = 0; i < count; i++)
        text_print(&list, "%s%s", i ? ", " : "", c_buffer(arena, buffers[i]));
    return text_bytes(&list);
}

static const char *queue_of(const RoleTransfer *transfer) {
    return transfer->flies   ? "HT_QUEUE_GRADIENTS"
           : transfer->ahead ? "HT_QUEUE_AHEAD"
                             : "HT_QUEUE_STAGES";
}

static void emit_transfers(Image *image, int role, const RoleText *text) {
    Arena *arena = image->emitter->arena;
    Text rows = {.arena = arena};
    for (int i = 0; i < text->transfers.count; i++) {
        const RoleTransfer *transfer = &text->transfers.at[i];
        text_print(&rows,
                   "    {&plan_%s_%d, (const int64_t[]){%s}, (const int64_t[]){%s}, (const "
                   "int64_t[]){%s}, %s, %s, %d, %d, \"%s\"},\n",
                   image->name, transfer->op->convert.plan->number,
                   buffer_list(arena, transfer->from, transfer->tensor_count),
                   buffer_list(arena, transfer->to, transfer->tensor_count),
                   buffer_list(arena, transfer->turn, transfer->tensor_count),
                   c_buffer(arena, transfer->scratch), queue_of(transfer), transfer->makers.count,
                   transfer->number,
                   c_string(arena, op_place(arena, transfer->op, transfer->op->source->scope)));
    }
    if (rows.length)
        emit_table(image, "ht_transfer", arena_format(arena, "transfers_role%d", role), &rows);
}

/* Returns a table's name, and writes the table if no equal one exists; "NULL": it has no rows. */
static const char *emit_notes(Image *image, const char *type, const char *rows) {
    Emitter *emitter = image->emitter;
    if (!rows) return "NULL";
    const char *key = arena_format(emitter->arena, "%s\n%s", type, rows);
    intptr_t *number = intern_slot(emitter->notes.known, key, strlen(key));
    if (!*number) {
        *number = ++emitter->notes.count;
        text_print(&emitter->notes.tables,
                   "extern const %s %s_notes_%d[];\nconst %s %s_notes_%d[] = {\n", type,
                   emitter->prefix, emitter->notes.count, type, emitter->prefix,
                   emitter->notes.count);
        text_string(&emitter->notes.tables, rows);
        text_string(&emitter->notes.tables, "};\n\n");
        text_print(image->out, "extern const %s %s_notes_%d[];\n", type, emitter->prefix,
                   emitter->notes.count);
    }
    return arena_format(emitter->arena, "%s_notes_%d", emitter->prefix, (int)*number);
}

static void emit_parts(Image *image, int role, const RoleText *text) {
    Arena *arena = image->emitter->arena;
    Text rows = {.arena = arena};
    for (int p = 0; p < text->parts.count; p++) {
        const RolePart *part = &text->parts.at[p];
        const char *function =
            part->runs ? arena_format(arena, "%s_role%d_%s", image->name, role, part->name)
                       : "NULL";
        if (part->runs) text_print(image->out, "ht_phase %s;\n", function);
        const char *visit = part->visit ? arena_format(arena, " of visit %d", part->visit) : "";
        const Notes *notes = &part->notes;
        const char *call = emit_notes(image, "unsigned short", notes->call),
                   *calls = emit_notes(image, "ht_called", notes->calls);
        const char *made = emit_notes(image, "ht_made", notes->made),
                   *buffer = emit_notes(image, "int64_t", notes->buffer);
        const char *whose = emit_notes(image, "ht_whose", notes->whose);
        text_print(&rows, "    {\"%s%s\", %s, %d, %d, %s, %s, %d, %s, %s, %s, %s, %d, %s},\n",
                   phase_name(part->phase), visit, function, part->receive.count, part->send.count,
                   int_list(arena, part->receive.at, part->receive.count),
                   int_list(arena, part->send.at, part->send.count), notes->call_count, call, calls,
                   made, buffer, notes->whose_count, whose);
    }
    emit_table(image, "ht_part", arena_format(arena, "parts_role%d", role), &rows);
}

static void emit_roles(Image *image, const RoleText *texts) {
    Arena *arena = image->emitter->arena;
    Text rows = {.arena = arena};
    for (int role = 0; role < image->module->devices->roles->role_count; role++) {
        const Role *own = image->writers[role].role;
        emit_transfers(image, role, &texts[role]);
        emit_parts(image, role, &texts[role]);
        text_print(&rows, "    {%lld, %lld, %d, %d, parts_role%d_%s, ", (long long)own->arena_bytes,
                   (long long)own->slot_bytes, texts[role].parts.count, texts[role].transfers.count,
                   role, image->name);
        text_print(&rows, texts[role].transfers.count ? "transfers_role%d_%s},\n" : "NULL},\n",
                   role, image->name);
    }
    emit_table(image, "ht_image_role", "roles", &rows);
}

/* ---- schedules ---- */

/* The rows of one device's schedule while they are written. */
typedef struct ScheduleText {
    const RoleText *role;
    const PipelineRun *run; // the device's pipeline; NULL: the batch runs as a whole
    int stage, slot_count;  // stage of the device, and number of the stage's slots
    int count;              // rows so far
    Text rows;
} ScheduleText;

/* Appends a row that runs a part of the role, unless the role lacks the part. */
static void text_row(ScheduleText *text, Phase phase, int visit, int64_t microbatch, int slot) {
    int part = role_part(text->role, phase, visit);
    if (part < 0) return;
    text_print(&text->rows, "    {%d, %lld, %d}, // %s\n", part, (long long)microbatch, slot,
               text->role->parts.at[part].name);
    text->count++;
}

/* Appends all rows of a device: counting passes, the parts before micro-batches, the rows of the
 * stage in the schedule, the update. A module without micro-batches runs each part once. */
static void text_schedule(ScheduleText *text) {
    static const Phase phases[] = {[SCHEDULE_FORWARD] = PHASE_FORWARD,
                                   [SCHEDULE_BACKWARD] = PHASE_BACKWARD,
                                   [SCHEDULE_WGRAD] = PHASE_WGRAD};
    const Schedule *schedule = text->run ? text->run->schedule : NULL;
    for (int64_t m = 0; m < (text->run ? text->run->microbatches : 1); m++)
        for (int p = 0; p < text->role->parts.count; p++)
            if (text->role->parts.at[p].phase == PHASE_COUNTING)
                text_row(text, PHASE_COUNTING, text->role->parts.at[p].visit, m, -1);
    text_row(text, PHASE_BEFORE, 0, 0, -1);
    for (int i = 0; schedule && i < schedule->row_count[text->stage]; i++) {
        const ScheduleRow *row = &schedule->rows[text->stage][i];
        text_row(text, phases[row->phase], row->visit, row->microbatch,
                 text->slot_count > 0 ? row->slot : -1);
    }
    for (int p = 0; !schedule && p < 2; p++) text_row(text, phases[p], 0, 0, -1);
    text_row(text, PHASE_UPDATE, 0, 0, -1);
}

/* Returns the number of a device's schedule, and writes the schedule when it is new. */
static int schedule_write(Image *image, ScheduleText *text) {
    Emitter *emitter = image->emitter;
    text->rows.arena = emitter->arena;
    text_schedule(text);
    const char *rows = text->rows.length ? text_bytes(&text->rows) : "    {0},\n";
    const char *key =
        arena_format(emitter->arena, "%d %d\n%s", text->count, text->slot_count, rows);
    intptr_t *known = intern_slot(image->schedule_numbers, key, strlen(key));
    if (*known) return (int)*known - 1;
    *known = ++image->schedule_count;
    text_fill(image->out,
              "static const ht_row rows_$n[] = { // part, micro-batch, slot\n$rows};\n"
              "static const ht_schedule schedule_$n = {$count, $slots, rows_$n};\n\n",
              "n", arena_format(emitter->arena, "%s_%d", image->name, image->schedule_count - 1),
              "rows", rows, "count", c_number(emitter->arena, text->count), "slots",
              c_number(emitter->arena, text->slot_count), NULL);
    return image->schedule_count - 1;
}

/* Appends a row of the table of pipelines; `run` NULL: all devices run the batch as a whole. */
static void text_pipeline(const Image *image, Text *rows, const PipelineRun *run) {
    const Roles *roles = image->module->devices->roles;
    const Pipeline *pipeline = run ? &image->module->strategy->pipelines.at[run->pipeline] : NULL;
    int count = 0;
    Text devices = {.arena = image->emitter->arena};
    for (int s = 0; pipeline && s < pipeline->stages.count; s++)
        for (int i = 0; i < pipeline->stages.at[s].devices.count; i++)
            text_item(&devices, !count++, pipeline->stages.at[s].devices.at[i]);
    for (int i = 0; !pipeline && i < roles->device_count; i++)
        text_item(&devices, !count++, roles->devices[i]);
    text_print(rows, "    {%d, %lld, %lld, %lld, %d, (const int[]){%s}},\n",
               run ? run->template_index : 0, run ? (long long)run->microbatches : 1,
               run ? (long long)image->module->templates->at.at[run->template_index].rows : 0,
               run ? (long long)run->first_row : 0, count, text_bytes(&devices));
}

/* Appends the tables of pipelines, and the schedule of each device. */
static void emit_pipelines(Image *image, const RoleText *texts) {
    Arena *arena = image->emitter->arena;
    const Roles *roles = image->module->devices->roles;
    const PipelineTemplates *bodies = image->module->templates;
    Text pipelines = {.arena = arena}, pipeline_of = {.arena = arena},
         schedule_of_device = {.arena = arena}, schedules = {.arena = arena};
    for (int r = 0; r < bodies->runs.count; r++)
        text_pipeline(image, &pipelines, &bodies->runs.at[r]);
    if (!bodies->runs.count) text_pipeline(image, &pipelines, NULL);
    for (int device = 0; device < image->device_count; device++) {
        int index = roles_index(roles, device), stage = 0;
        const PipelineRun *run = device_run(image->module, device, &stage);
        text_item(&pipeline_of, !device, index < 0 ? -1 : run ? run - bodies->runs.at : 0);
        int role = index < 0 ? -1 : roles->role_of[index];
        ScheduleText text = {.run = run, .stage = stage};
        if (role >= 0) {
            text.role = &texts[role];
            text.slot_count = device_slots(image->module, &roles->at[role], device);
        }
        text_item(&schedule_of_device, !device, role < 0 ? -1 : schedule_write(image, &text));
    }
    for (int i = 0; i < image->schedule_count; i++)
        text_print(&schedules, "    &schedule_%s_%d,\n", image->name, i);
    text_fill(image->out,
              "static const ht_pipeline pipelines_$name[] = { // kind, micro-batches, rows, first "
              "row, devices\n"
              "$pipelines};\n"
              "static const int pipeline_of_$name[] = {$pipeline_of};\n"
              "static const int schedule_of_$name[] = {$schedule_of};\n"
              "static const ht_schedule *const schedule_$name[] = {\n$schedules};\n\n",
              "schedule_of", text_bytes(&schedule_of_device), "name", image->name, "pipelines",
              text_bytes(&pipelines), "pipeline_of", text_bytes(&pipeline_of), "schedules",
              text_bytes(&schedules), NULL);
}

/* Returns the index of a row of device numbers, and writes the row when new. */
static int piece_row(Image *image, Text *rows, const Row *row) {
    intptr_t *number =
        intern_slot(image->piece_numbers, row->at, sizeof *row->at * (size_t)row->count);
    if (*number) return (int)*number - 1;
    *number = ++image->piece_count;
    text_print(image->out, "static const int64_t piece_%s_%d[] = {", image->name,
               image->piece_count - 1);
    for (int c = 0; c < row->count; c++) text_item(image->out, !c, row->at[c]);
    text_string(image->out, "};\n");
    text_print(rows, "    piece_%s_%d,\n", image->name, image->piece_count - 1);
    return image->piece_count - 1;
}

/* Appends the rows of numbers that differ within roles, and the row of each device. */
static void emit_numbers(Image *image) {
    Arena *arena = image->emitter->arena;
    const Roles *roles = image->module->devices->roles;
    Text rows = {.arena = arena}, role_of = {.arena = arena}, piece_of = {.arena = arena};
    int *next = arena_array(arena, int, roles->role_count);
    for (int device = 0; device < image->device_count; device++) {
        int index = roles_index(roles, device), role = index < 0 ? -1 : roles->role_of[index];
        const NumberTable *numbers = role < 0 ? NULL : &image->writers[role].numbers;
        text_item(&role_of, !device, role);
        int row =
            numbers && numbers->width ? piece_row(image, &rows, &numbers->rows[next[role]]) : -1;
        text_item(&piece_of, !device, row);
        if (role >= 0) next[role]++;
    }
    text_fill(image->out,
              "static const int64_t *const piece_$name[] = {\n$rows};\n"
              "static const int piece_of_$name[] = {$piece_of};\n"
              "static const int role_of_$name[] = {$role_of};\n\n",
              "name", image->name, "rows", rows.length ? text_bytes(&rows) : "    NULL,\n",
              "piece_of", text_bytes(&piece_of), "role_of", text_bytes(&role_of), NULL);
}

/* Appends the names of the parameter groups that have an optimizer of their own. */
static void emit_groups(Image *image) {
    text_print(image->out, "static const char *const groups_%s[] = {\n    NULL,\n", image->name);
    for (int g = 1; g < image->module->optimizer->groups.count; g++)
        text_print(image->out, "    \"%s\",\n",
                   c_string(image->emitter->arena, image->module->optimizer->groups.at[g].names));
    text_string(image->out, "};\n\n");
}

static const char *text_or_null(Arena *arena, const char *text) {
    return text ? arena_format(arena, "\"%s\"", c_string(arena, text)) : "NULL";
}

/* Appends the names of the functions that compute the optimizers' updates. */
static void emit_rule_names(Image *image) {
    Arena *arena = image->emitter->arena;
    text_print(image->out, "static const char *const rule_names_%s[] = {\n", image->name);
    for (int g = 0; g < image->module->optimizer->groups.count; g++) {
        const ParamGroup *group = &image->module->optimizer->groups.at[g];
        text_print(image->out, "    %s, %s,\n", text_or_null(arena, group->function_name),
                   text_or_null(arena, group->after_name));
    }
    text_string(image->out, "    NULL,\n};\n\n");
}

static const char *text_digest(const Emitter *emitter, const Module *module) {
    return arena_format(emitter->arena, "0x%llx",
                        (unsigned long long)unit_links(emitter->unit, module)->digest);
}

static void emit_head(Image *image) {
    Arena *arena = image->emitter->arena;
    const Module *module = image->module;
    const Strategy *strategy = module->strategy;
    text_fill(
        image->out,
        "extern const ht_image $name_image;\n"
        "const ht_image $name_image = {\n"
        "    .version = HT_IMAGE_VERSION,\n"
        "    .fingerprint = $fingerprint,\n"
        "    .model = \"$model\",\n"
        "    .source = \"$source\",\n"
        "    .strategy = $strategy,\n"
        "    .trains = $trains,\n"
        "    .clipped = $clipped,\n"
        "    .dtype = $dtype,\n"
        "    .device_count = $devices,\n"
        "    .state_count = $states,\n"
        "    .averaged = $averaged,\n"
        "    .group_count = $groups,\n"
        "    .groups = groups_$name,\n"
        "    .rule_names = rule_names_$name,\n"
        "    .param_count = $params,\n"
        "    .input_count = $inputs,\n"
        "    .output_count = $outputs,\n"
        "    .role_count = $roles,\n"
        "    .read_count = $reads,\n"
        "    .params = params_$name,\n"
        "    .inputs = inputs_$name,\n"
        "    .outputs = outputs_$name,\n"
        "    .loss = $loss,\n"
        "    .roles = roles_$name,\n"
        "    .reads = reads_$name,\n"
        "    .role_of = role_of_$name,\n"
        "    .piece_of = piece_of_$name,\n"
        "    .piece = piece_$name,\n"
        "    .pipeline_count = $pipelines,\n"
        "    .pipelines = pipelines_$name,\n"
        "    .pipeline_of = pipeline_of_$name,\n"
        "    .schedule_of = schedule_of_$name,\n"
        "    .schedule = schedule_$name,\n"
        "    .plan_count = $plans,\n"
        "    .digest = $digest,\n"
        "    .strategy_digest = $strategy_digest,\n"
        "    .clustered = $clustered,\n"
        "    .plan = $name_plan,\n"
        "};\n",
        "name", image->name, "fingerprint", fingerprint_name(image->emitter), "name_plan",
        arena_format(arena, "%s_plan", image->name), "plans",
        c_number(arena, module->devices->conversions.count), "digest",
        text_digest(image->emitter, module), "strategy_digest",
        arena_format(arena, "%lluu",
                     (unsigned long long)(strategy ? strategy_digest(arena, strategy) : 0)),
        "clustered", module->devices->target.cluster ? "true" : "false", "name_image",
        arena_format(arena, "%s_image", image->name), "model", c_string(arena, module->name),
        "source", c_string(arena, file_name(image->emitter->unit->file)), "strategy",
        strategy && strategy->name ? arena_format(arena, "\"%s\"", c_string(arena, strategy->name))
                                   : "NULL",
        "trains", module->kind == MODULE_TRAIN ? "true" : "false", "clipped",
        module->optimizer->clip ? "true" : "false", "dtype", c_dtype(module->precision), "devices",
        c_number(arena, image->device_count), "pipelines",
        c_number(arena, module->templates->runs.count ? module->templates->runs.count : 1),
        "states", c_number(arena, module->optimizer->state_count), "averaged",
        module->optimizer->averaged ? "true" : "false", "groups",
        c_number(arena, module->optimizer->groups.count), "params",
        c_number(arena, module->params.count), "inputs", c_number(arena, module->inputs.count),
        "outputs", c_number(arena, module->outputs.count + (module->loss ? 1 : 0)), "roles",
        c_number(arena, module->devices->roles->role_count), "reads",
        c_number(arena, module->source->captured_globals.count), "loss",
        c_number(arena, module->loss ? module->outputs.count : -1), NULL);
}

void emit_known_image(Text *out, Emitter *emitter, const Module *module, const char *name) {
    Arena *arena = emitter->arena;
    text_fill(out,
              "static const ht_image $name_image = { // of the program\n"
              "    .version = HT_IMAGE_VERSION,\n"
              "    .fingerprint = $fingerprint,\n"
              "    .model = \"$model\",\n"
              "    .strategy = \"$strategy\",\n"
              "    .trains = $trains,\n"
              "    .digest = $digest,\n"
              "};\n\n",
              "name_image", arena_format(arena, "%s_image", name), "fingerprint",
              fingerprint_name(emitter), "model", c_string(arena, module->name), "strategy",
              c_string(arena, module->strategy->name), "trains",
              module->kind == MODULE_TRAIN ? "true" : "false", "digest",
              text_digest(emitter, module), NULL);
}

void emit_image(Text *out, const RoleWriter *writers, const RoleText *roles) {
    Emitter *emitter = writers->emitter;
    Module *module = writers->module;
    const Roles *special = module->devices->roles;
    Image image = {.emitter = emitter,
                   .module = module,
                   .name = writers->name,
                   .writers = writers,
                   .out = out};
    image.schedule_numbers = intern_create(emitter->arena);
    image.piece_numbers = intern_create(emitter->arena);
    image.device_count = unit_device_count(emitter->unit);
    if (image.device_count <= special->devices[special->device_count - 1])
        image.device_count = special->devices[special->device_count - 1] + 1;
    text_print(out, "\n/* ==== %s ==== */\n\n", module->name);
    emit_params(&image);
    emit_inputs(&image);
    emit_outputs(&image);
    emit_reads(&image);
    emit_plans(&image);
    emit_roles(&image, roles);
    emit_pipelines(&image, roles);
    emit_numbers(&image);
    emit_groups(&image);
    emit_rule_names(&image);
    emit_head(&image);
}
