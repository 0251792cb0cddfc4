/* Layouts as the source writes them, in `shard` and `reshard`: numbered by the dimensions of the source, which refinement has split since.
 */
#include "passes/place/place.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Module *module;
    const Mesh *mesh;
    const Value *value;
    const int8_t *origin; // by dimension: the one that it was in the source
    Type source;          // the type in the source
    Sharding sharding;
    uint64_t used; // axes of the mesh that the layout names
} Reader;

/* The first of the dimensions that dimension `number` of the source became, the loop over micro-batches left aside; AXIS_DUP when it has
 * extent 1 and is gone. */
static int first_dim(const Reader *reader, int number)
{
    for (int d = 0; d < reader->value->type.rank; d++)
        if (reader->origin[d] == number && d + 1 != reader->value->micro)
            return d;
    return AXIS_DUP;
}

/* Finds what a state does with its axes: a dimension, or AXIS_*. False after an error. */
static bool state_target(const Reader *reader, const WrittenState *state, int *target)
{
    static const int targets[] = {[STATE_DUP] = AXIS_DUP, [STATE_SUM] = AXIS_SUM, [STATE_MAX] = AXIS_MAX};
    const Value *value = reader->value;
    char *end;
    if (state->kind != STATE_SPLIT) {
        *target = targets[state->kind];
        return true;
    }
    for (int d = 0; value->dims && d < value->type.rank; d++)
        if (value->dims[d] && !strcmp(value->dims[d], state->dim)) {
            *target = d;
            return true;
        }
    long number = strtol(state->dim, &end, 10);
    if (!*end && number < reader->source.rank) {
        *target = first_dim(reader, (int)number);
        return true;
    }
    Diag *diag = reader->module->diag;
    diag_error(diag, state->at, "\"%s\" is no dimension of this tensor: write a dimension's name or number, dup, sum or max", state->dim);
    const char *close = value->dims ? diag_closest(state->dim, value->dims, value->type.rank) : NULL;
    if (close)
        diag_note(diag, state->at, "did you mean \"%s\"?", close);
    return false;
}

/* The parts of a mesh axis, as bits; 0 when the mesh has none of this name. */
static uint64_t axis_parts(const Mesh *mesh, const char *name)
{
    uint64_t parts = 0;
    for (int a = 0; a < mesh->axis_count; a++)
        if (!strcmp(mesh->axis[a].name, name))
            parts |= UINT64_C(1) << a;
    return parts;
}

/* Puts all parts of a mesh axis to one use. */
static void use_axis(Reader *reader, uint64_t parts, int target)
{
    reader->used |= parts;
    for (int a = 0; a < reader->mesh->axis_count; a++)
        if (parts >> a & 1) {
            if (target >= 0)
                sharding_cut(reader->mesh, &reader->sharding, a, target);
            else
                reader->sharding.at[a] = (int8_t)target;
        }
}

/* Whether the value is to be partial in the other way already. */
static bool mixes_reductions(const Reader *reader, int target)
{
    int other = target == AXIS_SUM ? AXIS_MAX : AXIS_SUM;
    for (int a = 0; a < reader->mesh->axis_count; a++)
        if (reader->used >> a & 1 && reader->sharding.at[a] == other)
            return target == AXIS_SUM || target == AXIS_MAX;
    return false;
}

/* Whether the strategy knows an axis of this name at all: one that the stage's mesh lacks has size 1. */
static bool known_axis(const Module *module, const char *name)
{
    for (int i = 0; module->strategy && i < module->strategy->splits.count; i++)
        for (int k = 0; k < module->strategy->splits.at[i].axis_count; k++)
            if (!strcmp(module->strategy->splits.at[i].axes[k], name))
                return true;
    return !module->strategy;
}

/* One axis of a state. */
static bool read_axis(Reader *reader, const WrittenAxis *axis, int target)
{
    Diag *diag = reader->module->diag;
    uint64_t parts = axis_parts(reader->mesh, axis->name);
    bool known = parts || known_axis(reader->module, axis->name), twice = parts & reader->used;
    if (twice)
        diag_error(diag, axis->at, "the axis \"%s\" stands in this layout a second time", axis->name);
    else if (!known)
        diag_error(diag, axis->at, "the strategy has no mesh axis \"%s\"", axis->name);
    use_axis(reader, parts, target);
    return known && !twice;
}

static bool read_state(Reader *reader, const WrittenState *state)
{
    int target;
    if (!state_target(reader, state, &target))
        return false;
    if (mixes_reductions(reader, target)) {
        diag_error(reader->module->diag, state->at, "a layout has one kind of reduction, either 'sum' or 'max'");
        return false;
    }
    for (int i = 0; i < state->axis_count; i++)
        if (!read_axis(reader, &state->axes[i], target))
            return false;
    return true;
}

/* A layout over mesh axes. */
static const Layout *read_axes(Reader *reader, Intern *shared)
{
    const WrittenLayout *written = reader->value->written;
    for (int i = 0; i < written->state_count; i++)
        if (!read_state(reader, &written->states[i]))
            return NULL;
    return sharding_layout(reader->mesh, &reader->sharding, shared);
}

/* Whether all devices of the layout are the strategy's. */
static bool on_devices(Module *module, const Mesh *mesh, const Value *value, const Layout *layout)
{
    int count;
    const int *devices = layout_devices(module->arena, layout, &count);
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (int k = 0; k < mesh->device_count; k++)
            found |= mesh->devices[k] == devices[i];
        if (!found) {
            diag_error(module->diag, value->written->at, "this layout names device %d, which the strategy does not use", devices[i]);
            return false;
        }
    }
    return true;
}

/* ---- layouts in device numbers ---- */

/* By dimension of the written layout (its view, or the source's shape): the dimension that it is now, AXIS_DUP when it is gone, -100 when
 * it is none. A batch is cut within each micro-batch; `each` are the extents of one. */
static void match_dims(const Reader *reader, Shape written, int *now, int64_t *each)
{
    int d = 0, rank = reader->value->type.rank;
    const int64_t *extent = reader->value->type.extent;
    for (int k = 0; k < written.rank; k++) {
        int64_t product = 1;
        int first = d;
        each[k] = written.extent[k];
        for (; product < written.extent[k] && d < rank; d++)
            product *= extent[d];
        bool fits = product == written.extent[k] || !written.extent[k];
        if (first < d && first + 1 == reader->value->micro)
            each[k] /= extent[first++];
        now[k] = !fits ? -100 : first < d ? first : AXIS_DUP;
    }
}

/* Pieces in which a group cuts dimension `dim` of the written layout. */
static int64_t group_pieces(const Group *group, int dim)
{
    int64_t pieces = 1;
    for (int s = 0; s < group->state_count; s++)
        if (group->states[s].kind == STATE_SPLIT && group->states[s].dim == dim)
            pieces *= group->states[s].weights ? -1 : group->states[s].count;
    return pieces;
}

/* Whether cutting the first factor of a dimension is the same as cutting the dimension: it has one factor, or that factor divides evenly.
 */
static bool cuts_first(const Reader *reader, const Layout *layout, Shape written, int dim, int now)
{
    int64_t first = now >= 0 ? reader->value->type.extent[now] : 1;
    for (int g = 0; g < layout->group_count; g++) {
        int64_t pieces = group_pieces(&layout->groups[g], dim);
        if (pieces != 1 && first != written.extent[dim] && (pieces < 0 || first % pieces))
            return false;
    }
    return first == written.extent[dim] || layout->top != TOP_SPLIT || layout->top_dim != dim;
}

/* The number that dimension `dim` of the written layout has now: AXIS_DUP when it is gone, -100 after an error. */
static int renumbered(const Reader *reader, const Layout *layout, Shape written, const int *now, int dim)
{
    if (now[dim] == -100 || !cuts_first(reader, layout, written, dim, now[dim])) {
        Text factors = {.arena = reader->module->arena};
        for (int d = 0; d < reader->value->type.rank; d++)
            text_print(&factors, "%s%ld",
                       d == 0                                       ? ""
                       : reader->origin[d] == reader->origin[d - 1] ? "*"
                                                                    : ", ",
                       (long)reader->value->type.extent[d]);
        diag_error(reader->module->diag, reader->value->written->at,
                   "dimension %d of this layout is not one that can be cut like this: the model splits it into factors", dim);
        diag_note(reader->module->diag, reader->value->at, "write the layout for the view (%s)", text_bytes(&factors));
        return -100;
    }
    return now[dim];
}

/* A state of the dimension that is now `dim`; one that is gone has one element, which all hold. False after an error. */
static bool renumber_state(State *state, int dim)
{
    if (dim == AXIS_DUP)
        *state = (State){.kind = STATE_DUP, .count = state->count};
    else
        state->dim = dim;
    return dim != -100;
}

/* The layout with its dimensions numbered as they are now, and no view; NULL after an error. */
static const Layout *renumber(const Reader *reader, const Layout *layout)
{
    int now[LAYOUT_MAX_RANK];
    int64_t each[LAYOUT_MAX_RANK];
    Arena *arena = reader->module->arena;
    Shape written = layout_view(layout, type_shape(reader->source));
    match_dims(reader, written, now, each);
    written.extent = each;
    Layout *result = arena_copy(arena, layout, sizeof *layout);
    Group *groups = arena_copy(arena, layout->groups, sizeof *groups * (size_t)layout->group_count);
    bool good = true;
    for (int g = 0; g < layout->group_count; g++) {
        State *states = arena_copy(arena, groups[g].states, sizeof *states * (size_t)groups[g].state_count);
        for (int s = 0; good && s < groups[g].state_count; s++)
            if (states[s].kind == STATE_SPLIT && states[s].count > 1)
                good = renumber_state(&states[s], renumbered(reader, layout, written, now, states[s].dim));
        groups[g].states = states;
    }
    if (good && layout->top == TOP_SPLIT) {
        result->top_dim = renumbered(reader, layout, written, now, layout->top_dim);
        if (result->top_dim == AXIS_DUP)
            *result = (Layout){.top = TOP_DUP, .group_count = layout->group_count};
        good = result->top_dim != -100;
    }
    result->groups = groups;
    result->view_rank = 0;
    return good ? result : NULL;
}

static const Layout *read_devices(const Reader *reader)
{
    const Value *value = reader->value;
    Diag *diag = reader->module->diag;
    const Layout *layout = value->written->layout;
    if (!layout_check(diag, value->written->at, layout, type_shape(reader->source)) ||
        !on_devices(reader->module, reader->mesh, value, layout))
        return NULL;
    return renumber(reader, layout);
}

const Layout *place_written(Module *module, const Mesh *mesh, const Value *value, Type source, const int8_t *origin)
{
    Reader reader = {.module = module,
                     .mesh = mesh,
                     .value = value,
                     .origin = origin,
                     .source = source,
                     .sharding = sharding_whole()};
    if (!value->written->layout)
        return read_axes(&reader, module_shared(module));
    return module->strategy ? read_devices(&reader) : sharding_layout(mesh, &reader.sharding, module_shared(module));
}
