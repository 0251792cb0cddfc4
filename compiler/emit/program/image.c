#include "emit/program/image.h"

#include "emit/program/plan.h"
#include "emit/words.h"
#include "ir/text/print.h"

#include <string.h>

/* ---- pieces ---- */

typedef struct Image {
    Emitter *emitter;
    Module *module;
    const char *name; // "gpt_gpt_loss_train"
    const RoleWriter *writers;
    Text *out;
    int device_count; // ranks: one more than the highest device, idle ones included
} Image;

static int device_index(const Roles *roles, int device)
{
    for (int i = 0; i < roles->device_count; i++)
        if (roles->devices[i] == device)
            return i;
    return -1;
}

static void emit_box(Text *out, const Box *box, int rank)
{
    text_string(out, "    ");
    for (int d = 0; d < rank; d++)
        text_print(out, "%lld, %lld,%s", (long long)box->dim[d].lo, (long long)box->dim[d].hi, d == rank - 1 ? "\n" : "  ");
    text_string(out, rank ? "" : "0,\n");
}

/* The initialisers that tell tables of pieces apart; `first` gets the row of box counts. */
static void text_pieces(const Image *image, const Value *value, int rank, Text *first, Text *boxes)
{
    int count = 0;
    for (int device = 0; device < image->device_count; device++) {
        text_print(first, "%d, ", count);
        if (device_index(image->module->roles, device) < 0)
            continue;
        const Region *region = value_region(image->module, value, device);
        for (int b = 0; b < region->box_count; b++)
            emit_box(boxes, &region->boxes[b], rank);
        count += region->box_count;
    }
    text_print(first, "%d", count);
}

/* The number of the table with these pieces, written when new. */
static int pieces_write(Image *image, const Value *value)
{
    Emitter *emitter = image->emitter;
    Arena *arena = emitter->arena;
    Shape view = layout_view(value->layout, type_shape(value->type));
    Text first = {.arena = arena}, boxes = {.arena = arena}, extents = {.arena = arena};
    text_pieces(image, value, view.rank, &first, &boxes);
    for (int d = 0; d < view.rank; d++)
        text_print(&extents, "%s%lld", d ? ", " : "", (long long)view.extent[d]);
    const char *key = arena_format(arena, "%s|%s|%s", text_bytes(&extents), text_bytes(&first), text_bytes(&boxes));
    intptr_t *slot = intern_slot(emitter->pieces, key, strlen(key));
    if (*slot)
        return (int)*slot - 1;
    *slot = ++emitter->pieces_count;
    Text layout = {.arena = arena};
    layout_print(&layout, value->layout);
    const char *number = c_number(arena, emitter->pieces_count - 1), *rank = c_number(arena, view.rank);
    text_fill(image->out,
              "/* ($extents) $layout */\n"
              "static const int64_t extent_$n[] = {$extents_or_1};\n"
              "static const int first_$n[] = {$first};\n"
              "static const int64_t box_$n[] = {\n"
              "$boxes};\n"
              "static const ht_pieces pieces_$n = {$rank, extent_$n, first_$n, box_$n};\n\n",
              "layout", text_bytes(&layout), "extents", text_bytes(&extents), "n", number, "extents_or_1",
              view.rank ? text_bytes(&extents) : "1", "first", text_bytes(&first), "boxes", boxes.length ? text_bytes(&boxes) : "    0,\n",
              "rank", rank, NULL);
    return emitter->pieces_count - 1;
}

/* The number of the table with a value's pieces; the tables of equal layouts and types are looked for once. */
static int pieces_of(Image *image, const Value *value)
{
    Emitter *emitter = image->emitter;
    Text *key = &emitter->key;
    key->length = 0;
    text_append(key, (const char *)&value->layout, sizeof value->layout);
    text_append(key, (const char *)&image->device_count, sizeof image->device_count);
    for (int d = 0; d < value->type.rank; d++)
        text_append(key, (const char *)&value->type.extent[d], sizeof *value->type.extent);
    intptr_t *slot = intern_slot(emitter->pieces_known, key->bytes, key->length);
    if (!*slot)
        *slot = pieces_write(image, value) + 1;
    return (int)*slot - 1;
}

/* ---- parameters, inputs, outputs ---- */

static void text_param(Image *image, Text *rows, const Parameter *param)
{
    static const char *const KINDS[] = {[INIT_ZEROS] = "0 /* zeros */",
                                        [INIT_CONSTANT] = "1 /* constant */",
                                        [INIT_NORMAL] = "2 /* normal */",
                                        [INIT_UNIFORM] = "3 /* uniform */"};
    text_print(rows, "    {\"%s\", \"%s\", &pieces_%d, %s, ", c_string(rows->arena, param->name), param->shape,
               pieces_of(image, param->value), KINDS[param->init]);
    print_number(rows, param->a);
    text_print(rows, ", %d, {", param->state_count);
    for (int s = 0; s < param->state_count; s++)
        text_print(rows, "%s&pieces_%d", s ? ", " : "", pieces_of(image, param->states[s]));
    text_string(rows, param->state_count ? "}},\n" : "NULL}},\n");
}

/* Appends `static const TYPE NAME_MODEL[] = {rows};`, or a table of one zero when there are none. */
static void emit_table(const Image *image, const char *type, const char *name, const Text *rows)
{
    text_fill(image->out,
              "static const $type $name[] = {\n"
              "$rows};\n\n",
              "type", type, "name", arena_format(image->emitter->arena, "%s_%s", name, image->name), "rows",
              rows->length ? text_bytes(rows) : "    {0},\n", NULL);
}

static void emit_params(Image *image)
{
    Text rows = {.arena = image->emitter->arena};
    for (int p = 0; p < image->module->params.count; p++)
        text_param(image, &rows, image->module->params.at[p]);
    emit_table(image, "ht_image_param", "params", &rows);
}

static const char *position_text(Arena *arena, Position at)
{
    if (!at.file)
        return "";
    return c_string(arena, arena_format(arena, "%s:%d", file_name(at.file), at.line));
}

static void emit_inputs(Image *image)
{
    Arena *arena = image->emitter->arena;
    Text rows = {.arena = arena};
    for (int i = 0; i < image->module->inputs.count; i++) {
        const Value *input = image->module->inputs.at[i];
        text_print(&rows, "    {\"%s\", %s, &pieces_%d, \"%s\"},\n", c_string(arena, input->name), c_dtype(input->type.dtype),
                   pieces_of(image, input), position_text(arena, input->at));
    }
    emit_table(image, "ht_image_input", "inputs", &rows);
}

/* A row for an output, and the table of its buffers by role. */
static void text_output(Image *image, Text *rows, int number, const char *name, const Value *value)
{
    Arena *arena = image->emitter->arena;
    if (layout_partial(value->layout) != STATE_DUP)
        BUG("output \"%s\" of %s is partial", name, image->module->name);
    int pieces = pieces_of(image, value);
    text_print(image->out, "static const int64_t output_%s_%d[] = {", image->name, number);
    for (int role = 0; role < image->module->roles->role_count; role++)
        text_print(image->out, "%s%lld", role ? ", " : "", (long long)value_buffer(&image->writers[role], value));
    text_string(image->out, "};\n");
    text_print(rows, "    {\"%s\", %s, &pieces_%d, output_%s_%d},\n", c_string(arena, name), c_dtype(value->type.dtype), pieces,
               image->name, number);
}

/* The outputs, the loss last; it goes by the name "". */
static void emit_outputs(Image *image)
{
    Text rows = {.arena = image->emitter->arena};
    const Module *module = image->module;
    for (int i = 0; i < module->outputs.count; i++)
        text_output(image, &rows, i, module->outputs.at[i].name, module->outputs.at[i].value);
    if (module->loss)
        text_output(image, &rows, module->outputs.count, "", module->loss);
    emit_table(image, "ht_image_output", "outputs", &rows);
}

/* ---- what the evaluation read ---- */

static void text_number(Text *out, const StaticRead *read, int64_t index)
{
    const uint8_t *bytes = read->bytes + index * read->size;
    uint64_t number = 0;
    memcpy(&number, bytes, (size_t)read->size);
    text_print(out, read->kind == NUMBER_FLOATING ? "%s0x%llxu" : "%s%lluu", index ? ", " : "", (unsigned long long)number);
}

/* A row for numbers that were read, and the table of them, as bits. */
static void text_read(Image *image, Text *rows, int number, const StaticRead *read)
{
    static const char *const KINDS[] = {
        [NUMBER_SIGNED] = "HT_SIGNED", [NUMBER_UNSIGNED] = "HT_UNSIGNED", [NUMBER_FLOATING] = "HT_FLOATING"};
    Arena *arena = image->emitter->arena;
    text_print(image->out, "static const uint%d_t read_%s_%d[] = {", 8 * read->size, image->name, number);
    for (int64_t i = 0; i < read->count; i++)
        text_number(image->out, read, i);
    text_string(image->out, "};\n");
    text_print(rows, "    {\"%s\", \"%s\", %lld, %lld, %s, %d, read_%s_%d},\n", c_string(arena, read->name), position_text(arena, read->at),
               (long long)read->first, (long long)read->count, KINDS[read->kind], read->size, image->name, number);
}

static void emit_reads(Image *image)
{
    Text rows = {.arena = image->emitter->arena};
    for (int i = 0; i < image->module->reads.count; i++)
        text_read(image, &rows, i, image->module->reads.at[i]);
    emit_table(image, "ht_image_read", "reads", &rows);
}

/* ---- conversions ---- */

static void emit_plans(Image *image)
{
    Arena *arena = image->emitter->arena;
    Text rows = {.arena = arena};
    for (int c = 0; c < image->module->conversions.count; c++) {
        const PlannedConversion *conversion = image->module->conversions.at[c];
        const char *name = arena_format(arena, "plan_%s_%d", image->name, c);
        const char *label = arena_format(arena, "%s: %s", op_place(arena, conversion->user, NULL), plan_name(conversion->plan));
        emit_plan(image->out, conversion->plan, name, label);
        text_print(&rows, "    &%s,\n", name);
    }
    const char *name = arena_format(arena, "%s_plan", image->name);
    text_fill(image->out,
              "extern const ht_reshard *const $name[];\n"
              "const ht_reshard *const $name[] = {\n$rows};\n\n",
              "name", name, "rows", rows.length ? text_bytes(&rows) : "    NULL,\n", NULL);
}

/* ---- roles ---- */

static int64_t microbatches(const Image *image) { return image->module->microbatches > 1 ? image->module->microbatches : 1; }

/* Appends the row that runs a phase for a micro-batch, where the role has the phase. */
static void text_row(Text *rows, const RoleText *text, Phase phase, int64_t microbatch)
{
    int part = 0;
    for (int p = 0; p < (int)phase; p++)
        part += text->has[p];
    if (text->has[phase])
        text_print(rows, "    {%d, %lld, -1}, // %s\n", part, (long long)microbatch, phase_name(phase));
}

/* The parts of a role, and the rows that run them: once in front, for each micro-batch, and once behind. */
static void emit_schedule(Image *image, int role, const RoleText *text)
{
    Arena *arena = image->emitter->arena;
    Text parts = {.arena = arena}, rows = {.arena = arena};
    for (int p = 0; p < PHASE_COUNT; p++)
        if (text->has[p])
            text_print(&parts, "    {\"%s\", %s_role%d_%s, 0, 0, NULL, NULL},\n", phase_name(p), image->name, role, phase_name(p));
    text_row(&rows, text, PHASE_BEFORE, 0);
    for (int64_t m = 0; m < microbatches(image); m++) {
        text_row(&rows, text, PHASE_FORWARD, m);
        text_row(&rows, text, PHASE_BACKWARD, m);
    }
    text_row(&rows, text, PHASE_UPDATE, 0);
    int64_t count =
        text->has[PHASE_BEFORE] + (text->has[PHASE_FORWARD] + text->has[PHASE_BACKWARD]) * microbatches(image) + text->has[PHASE_UPDATE];
    text_fill(image->out,
              "static const ht_part parts_$role[] = {\n$parts};\n"
              "static const ht_row rows_$role[] = { // part, micro-batch, slot\n$rows};\n"
              "static const ht_schedule schedule_$role = {$count, 0, rows_$role};\n\n",
              "role", arena_format(arena, "%s_role%d", image->name, role), "parts", parts.length ? text_bytes(&parts) : "    {0},\n",
              "rows", rows.length ? text_bytes(&rows) : "    {0},\n", "count", c_number(arena, count), NULL);
}

static void emit_roles(Image *image, const RoleText *texts)
{
    Text rows = {.arena = image->emitter->arena};
    for (int role = 0; role < image->module->roles->role_count; role++) {
        int part_count = 0;
        for (int p = 0; p < PHASE_COUNT; p++) {
            part_count += texts[role].has[p];
            if (texts[role].has[p])
                text_print(image->out, "ht_phase %s_role%d_%s;\n", image->name, role, phase_name(p));
        }
        emit_schedule(image, role, &texts[role]);
        text_print(&rows, "    {%lld, 0, %d, 0, parts_%s_role%d, NULL},\n", (long long)image->writers[role].role->arena_bytes, part_count,
                   image->name, role);
    }
    emit_table(image, "ht_image_role", "roles", &rows);
}

/* The one pipeline, and what each device does in it. */
static void emit_pipeline(Image *image)
{
    Arena *arena = image->emitter->arena;
    const Roles *roles = image->module->roles;
    Text devices = {.arena = arena}, pipeline_of = {.arena = arena}, schedules = {.arena = arena};
    for (int i = 0; i < roles->device_count; i++)
        text_print(&devices, "%s%d", i ? ", " : "", roles->devices[i]);
    for (int device = 0; device < image->device_count; device++) {
        int index = device_index(roles, device);
        text_print(&pipeline_of, "%s%d", device ? ", " : "", index < 0 ? -1 : 0);
        if (index < 0)
            text_string(&schedules, "    NULL,\n");
        else
            text_print(&schedules, "    &schedule_%s_role%d,\n", image->name, roles->role_of[index]);
    }
    text_fill(image->out,
              "static const ht_pipeline pipelines_$name[] = { // kind, micro-batches, rows, first row, devices\n"
              "    {0, $microbatches, 0, 0, $count, (const int[]){$devices}},\n"
              "};\n"
              "static const int pipeline_of_$name[] = {$pipeline_of};\n"
              "static const ht_schedule *const schedule_$name[] = {\n$schedules};\n\n",
              "name", image->name, "microbatches", c_number(arena, microbatches(image)), "count", c_number(arena, roles->device_count),
              "devices", text_bytes(&devices), "pipeline_of", text_bytes(&pipeline_of), "schedules", text_bytes(&schedules), NULL);
}

/* The rows of numbers that differ within roles, and which device reads which. */
static void emit_numbers(Image *image)
{
    Arena *arena = image->emitter->arena;
    const Roles *roles = image->module->roles;
    Text rows = {.arena = arena}, role_of = {.arena = arena};
    for (int device = 0; device < image->device_count; device++) {
        int index = device_index(roles, device);
        text_print(&role_of, "%s%d", device ? ", " : "", index < 0 ? -1 : roles->role_of[index]);
        const RoleWriter *writer = index < 0 ? NULL : &image->writers[roles->role_of[index]];
        if (!writer || !writer->numbers.width) {
            text_string(&rows, "    NULL,\n");
            continue;
        }
        int row = 0;
        while (writer->role->devices[row] != device)
            row++;
        text_print(image->out, "static const int64_t piece_%s_%d[] = {", image->name, device);
        for (int c = 0; c < writer->numbers.width; c++)
            text_print(image->out, "%s%lld", c ? ", " : "", (long long)writer->numbers.rows[row].at[c]);
        text_string(image->out, "};\n");
        text_print(&rows, "    piece_%s_%d,\n", image->name, device);
    }
    text_fill(image->out,
              "static const int64_t *const $pieces[] = {\n$rows};\n"
              "static const int $role_of[] = {$numbers};\n\n",
              "pieces", arena_format(arena, "piece_%s", image->name), "rows", text_bytes(&rows), "role_of",
              arena_format(arena, "role_of_%s", image->name), "numbers", text_bytes(&role_of), NULL);
}

static void emit_head(Image *image)
{
    Arena *arena = image->emitter->arena;
    const Module *module = image->module;
    const Strategy *strategy = module->strategy;
    text_fill(image->out,
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
              "    .piece = piece_$name,\n"
              "    .pipeline_count = 1,\n"
              "    .pipelines = pipelines_$name,\n"
              "    .pipeline_of = pipeline_of_$name,\n"
              "    .schedule = schedule_$name,\n"
              "    .plan_count = $plans,\n"
              "    .plan = $name_plan,\n"
              "};\n",
              "name", image->name, "fingerprint", fingerprint_name(image->emitter), "name_plan",
              arena_format(arena, "%s_plan", image->name), "plans", c_number(arena, module->conversions.count), "name_image",
              arena_format(arena, "%s_image", image->name), "model", c_string(arena, module->name), "source",
              c_string(arena, file_name(image->emitter->unit->file)), "strategy",
              strategy && strategy->name ? arena_format(arena, "\"%s\"", c_string(arena, strategy->name)) : "NULL", "trains",
              module->kind == MODULE_TRAIN ? "true" : "false", "clipped", module->clip ? "true" : "false", "dtype",
              c_dtype(module->precision), "devices", c_number(arena, image->device_count), "states", c_number(arena, module->state_count),
              "params", c_number(arena, module->params.count), "inputs", c_number(arena, module->inputs.count), "outputs",
              c_number(arena, module->outputs.count + (module->loss ? 1 : 0)), "roles", c_number(arena, module->roles->role_count), "reads",
              c_number(arena, module->reads.count), "loss", c_number(arena, module->loss ? module->outputs.count : -1), NULL);
}

void emit_image(Text *out, Emitter *emitter, Module *module, const char *name, RoleWriter *writers, const RoleText *roles)
{
    const Roles *special = module->roles;
    Image image = {.emitter = emitter, .module = module, .name = name, .writers = writers, .out = out};
    image.device_count = module->strategy ? strategy_device_count(module->strategy) : 1;
    if (image.device_count <= special->devices[special->device_count - 1])
        image.device_count = special->devices[special->device_count - 1] + 1;
    text_print(out, "\n/* ==== %s ==== */\n\n", module->name);
    emit_params(&image);
    emit_inputs(&image);
    emit_outputs(&image);
    emit_reads(&image);
    emit_plans(&image);
    emit_roles(&image, roles);
    emit_pipeline(&image);
    emit_numbers(&image);
    emit_head(&image);
}
