/* Numbers that differ between the devices of a role, as arguments of its functions: whether the
 * device adds a term, and where its pieces begin.
 *
 *     role of devices 0-3, sum over a tensor cut along cp:    rows of NumberTable:
 *     bias added by device 0 only; offsets 0, 256, 512, 768   {1, 0} {0, 256} {0, 512} {0, 768}
 */
#include "emit/kernel/local.h"
#include "ir/programs/device_programs.h"
#include "ir/programs/regions.h"
#include "emit/emitter.h"

/* ---- which devices add a term ---- */

/* Appends a text to `key`. The texts of two devices are equal if both devices contribute the same
 * elements of a term to the same piece of the result. Returns whether the device is in the first
 * subgroup of each operand whose subgroups are copies. */
static bool contribution_key(Text *key, const LocalOp *local, uint64_t operands, int device) {
    Module *module = local->module;
    const Value *result = local->results[0].value;
    bool first = true;
    text_append(key,
                (const char *)(int[]){value_region(module, result, device)->replica,
                                      value_same_boxes(module, result, device)},
                2 * sizeof(int));
    for (int k = 0; k < local->operand_count; k++) {
        const Value *operand = local->operands[k].value;
        if (!(operands >> k & 1)) continue;
        const Region *region = value_region(module, operand, device);
        text_append(
            key, (const char *)(int[]){region->partial, value_same_boxes(module, operand, device)},
            2 * sizeof(int));
        first = first && !region->replica;
    }
    return first;
}

/* Returns by index in the roles whether a device adds a term to the partial result. Of devices with
 * equal contributions to the same piece, the device with the lowest partial id adds the term. Where
 * subgroups have copies, whose pieces may differ, the first subgroup's pieces are added. */
static const bool *devices_adding(Arena *arena, const LocalOp *local, uint64_t operands) {
    const Roles *roles = local->module->devices->roles;
    const Value *result = local->results[0].value;
    bool *adding = arena_array(arena, bool, roles->device_count);
    Arena *scratch = arena_create();
    Intern *known = intern_create(scratch);
    Text key = {.arena = scratch};
    int count;
    const int *holders = value_holders(scratch, local->module, result, &count);
    // by holder: the number of its contribution; -1: another device has the first copy
    int *of = arena_array(scratch, int, count);
    int *lowest = arena_array(scratch, int, count); // by contribution: the lowest partial id
    for (int i = 0, contributions = 0; i < count; i++) {
        int partial = value_region(local->module, result, holders[i])->partial;
        key.length = 0;
        of[i] = -1;
        if (!contribution_key(&key, local, operands, holders[i])) continue;
        intptr_t *number = intern_slot(known, key.bytes, key.length);
        if (!*number) lowest[(*number = ++contributions) - 1] = partial;
        of[i] = (int)*number - 1;
        lowest[of[i]] = partial < lowest[of[i]] ? partial : lowest[of[i]];
    }
    for (int i = 0; i < count; i++)
        adding[roles_index(roles, holders[i])] =
            of[i] >= 0 && value_region(local->module, result, holders[i])->partial == lowest[of[i]];
    arena_destroy(scratch);
    return adding;
}

/* Appends to a key everything on which a tensor's pieces depend. */
static void value_key(Text *key, const Value *value) {
    bool staged = value->def && value->def->stage != STAGE_ALL;
    text_append(key, (const char *)&value->layout, sizeof value->layout);
    text_append(key, (const char *)&staged, sizeof staged);
    text_append(key, (const char *)&value->type.rank, sizeof value->type.rank);
    text_append(key, (const char *)value->type.extent,
                sizeof *value->type.extent * (size_t)value->type.rank);
}

/* Returns whether some device of the role does not add a term. */
static bool some_leave_out(const RoleWriter *writer, const bool *adding) {
    for (int i = 0; i < writer->role->device_count; i++)
        if (!adding[roles_index(writer->module->devices->roles, writer->role->devices[i])])
            return true;
    return false;
}

static const AddedTerm *term_added(RoleWriter *writer, const LocalOp *local, const Term *term) {
    Emitter *emitter = writer->emitter;
    bool absent = false;
    uint64_t operands = expr_operands(local, term->expr, &absent);
    Text *key = &emitter->key;
    key->length = 0;
    text_append(key, (const char *)&local->module, sizeof local->module);
    value_key(key, local->results[0].value);
    for (int k = 0; k < local->operand_count; k++)
        if (operands >> k & 1) value_key(key, local->operands[k].value);
    AddedTerm **slot = intern_slot(writer->flags, key->bytes, key->length);
    if (!*slot) {
        AddedTerm *added = arena_new(emitter->arena, AddedTerm);
        const bool **by = intern_slot(emitter->adding, key->bytes, key->length);
        if (!*by) *by = devices_adding(emitter->arena, local, operands);
        added->by = *by;
        added->flagged = some_leave_out(writer, added->by);
        *slot = added;
    }
    return *slot;
}

void flag_terms(LocalOp *local, RoleWriter *writer) {
    if (layout_partial(local->results[0].value->layout) != STATE_SUM) return;
    for (int t = 0; t < local->term_count; t++)
        local->terms[t].flagged = term_added(writer, local, &local->terms[t])->flagged;
}

/* ---- offsets of pieces ---- */

static const Factor *rule_factor(const LocalOp *local, int bound) {
    return &local->rule->factors[local->op->binding->factors[bound].factor];
}

bool written_has_offset(const LocalOp *local, const Tensor *tensor, int written) {
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++)
        if (tensor->bound->dims[d].written == written && tensor->bound->dims[d].count &&
            rule_factor(local, tensor->bound->dims[d].factors[0])->offset)
            return true;
    return false;
}

bool written_is_zigzag(const Tensor *tensor, int written) {
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++)
        if (tensor->bound->dims[d].written == written &&
            layout_has_zigzag(tensor->value->layout, d))
            return true;
    return false;
}

int region_ranges(const Region *region, int dim, Range ranges[2]) {
    int count = 0;
    for (int b = 0; b < region->box_count; b++) {
        Range range = region->boxes[b].dim[dim];
        bool known = false;
        for (int i = 0; i < count && i < 2; i++) known |= ranges[i].lo == range.lo;
        if (!known && count < 2) ranges[count] = range;
        count += !known;
    }
    return count;
}

/* Writes to numbers[] a device's numbers for a dimension of a kernel's view: the start of its piece
 * and, if zigzag, the first range's length and the gap to the second. Returns how many: 1 or 3. */
static int written_places(const LocalOp *local, const Tensor *tensor, int written, int device,
                          int64_t *numbers) {
    const Region *region = value_region(local->module, tensor->value, device);
    int64_t offset = 0, first = 0, gap = 0;
    for (int d = 0; d < tensor->bound->rank; d++) {
        const Chunk *chunk =
            tensor->value->chunk && tensor->value->chunk->dim == d ? tensor->value->chunk : NULL;
        int64_t extent = chunk ? chunk->extent : tensor->value->type.extent[d];
        Range range[2] = {{0, 0}, {0, 0}};
        if (tensor->bound->dims[d].written != written) continue;
        int count = region_ranges(region, d, range);
        bool zigzag = layout_has_zigzag(tensor->value->layout, d);
        offset = offset * extent + range[0].lo + (chunk ? chunk->start : 0);
        first = zigzag ? range[0].hi - range[0].lo : first * extent;
        gap = zigzag ? (count > 1 ? range[1].lo - range[0].hi : 0) : gap * extent;
    }
    numbers[0] = offset;
    numbers[1] = first;
    numbers[2] = gap;
    return written_is_zigzag(tensor, written) ? 3 : 1;
}

static int tensor_places(const LocalOp *local, const Tensor *tensor, int device, int64_t *numbers) {
    int count = 0;
    for (int w = 0; tensor->value && w < tensor->bound->written_rank; w++)
        if (written_has_offset(local, tensor, w))
            count += written_places(local, tensor, w, device, numbers + count);
    return count;
}

/* ---- the table ---- */

/* The flagged terms of an operator. */
typedef struct FlaggedTerms {
    int count;
    const bool **by; // by term: the devices that add it, by index in the roles
} FlaggedTerms;

static FlaggedTerms flagged_terms(Arena *arena, RoleWriter *writer, const LocalOp *local) {
    FlaggedTerms terms = {.by = arena_array(arena, const bool *, local->term_count)};
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].flagged)
            terms.by[terms.count++] = term_added(writer, local, &local->terms[t])->by;
    return terms;
}

/* Writes to `numbers` the numbers that a call reads on a device. Returns how many it reads. */
static int local_numbers(const LocalOp *local, const Roles *roles, const FlaggedTerms *terms,
                         int device, int64_t *numbers) {
    int count = terms->count, index = count ? roles_index(roles, device) : 0;
    for (int t = 0; t < count; t++) numbers[t] = terms->by[t][index];
    if (local->rule->kind != RULE_CALL) return count;
    for (int k = 0; k < local->tensor_count; k++)
        count += tensor_places(local, &local->tensors[k], device, numbers + count);
    return count;
}

/* Returns the column with an operator's numbers, added when new; -1: the operator has none. */
static int write_column(RoleWriter *writer, const LocalOp *local) {
    Arena *scratch = arena_create();
    NumberTable *table = &writer->numbers;
    int64_t numbers[EMIT_MAX_TENSORS * IR_MAX_RANK * 3];
    Text all = {.arena = scratch};
    int count = 0;
    FlaggedTerms terms = flagged_terms(scratch, writer, local);
    for (int i = 0; i < table->device_count; i++) {
        count = local_numbers(local, writer->module->devices->roles, &terms,
                              writer->role->devices[i], numbers);
        text_append(&all, (const char *)numbers, sizeof *numbers * (size_t)count);
    }
    intptr_t *slot = intern_slot(table->known, all.bytes, all.length);
    if (count && !*slot) {
        *slot = table->width + 1;
        table->width += count;
        for (int64_t i = 0; i < (int64_t)table->device_count * count; i++)
            array_push(writer->emitter->arena, &table->rows[i / count],
                       ((const int64_t *)(const void *)all.bytes)[i]);
    }
    arena_destroy(scratch);
    return (int)*slot - 1;
}

/* Appends what an operator's numbers depend on: which terms are flagged, and its tensors. */
static void numbers_key(Text *key, const LocalOp *local) {
    text_append(key, (const char *)&local->op->def, sizeof local->op->def);
    text_append(key, (const char *)&local->op->binding, sizeof local->op->binding);
    for (int t = 0; t < local->term_count; t++)
        text_append(key, (const char *)&local->terms[t].flagged, sizeof local->terms[t].flagged);
    for (int k = 0; k < local->tensor_count; k++)
        if (local->tensors[k].value) {
            text_append(key, (const char *)&k, sizeof k);
            value_key(key, local->tensors[k].value);
            const Chunk *chunk = local->tensors[k].value->chunk;
            const int64_t place[] = {chunk ? chunk->dim : -1, chunk ? chunk->start : 0,
                                     chunk ? chunk->extent : 0};
            text_append(key, (const char *)place, sizeof place);
        }
}

int number_column(RoleWriter *writer, const LocalOp *local) {
    Arena *scratch = arena_create();
    Text key = {.arena = scratch};
    numbers_key(&key, local);
    intptr_t *slot = intern_slot(writer->numbers.made, key.bytes, key.length);
    if (!*slot) *slot = write_column(writer, local) + 2;
    arena_destroy(scratch);
    return (int)*slot - 2;
}
