/* Meshes in IR text (ir/mesh.h):
 *
 *     mesh 0-3 axes dp:2, tp:2 by 3:1
 *     split batch axis 0
 *     split seq axis 1 zigzag
 */
#include "ir/text/parse.h"

enum { MOST_DEVICE = 1 << 24, MOST_DEVICES = 1 << 20 };

static bool parse_between(IrParser *parser, int64_t least, int64_t most, const char *what,
                          int64_t *number) {
    return parse_int(parser, number) &&
           ((*number >= least && *number <= most) || parse_fail(parser, what));
}

/* Reads device numbers and closed ranges of them: 0-3, 8. */
static bool parse_devices(IrParser *parser, Mesh *mesh) {
    Array(int) devices = {0};
    do {
        int64_t first, last;
        if (!parse_between(parser, 0, MOST_DEVICE, "the number of a device, before this", &first))
            return false;
        last = first;
        if (tokens_take(&parser->tokens, "-") &&
            !parse_between(parser, first, MOST_DEVICE, "the last device of a range, before this",
                           &last))
            return false;
        if (last - first >= MOST_DEVICES - devices.count)
            return parse_fail(parser, "fewer devices, before this");
        for (; first <= last; first++) array_push(parser->arena, &devices, (int)first);
    } while (tokens_take(&parser->tokens, ","));
    mesh->device_count = devices.count;
    mesh->devices = devices.at;
    return true;
}

/* Reads NAME:COUNT or NAME:COUNT by WEIGHT:WEIGHT:... */
static bool parse_axis(IrParser *parser, Axis *axis) {
    Array(int64_t) weights = {0};
    int64_t count;
    if (!parse_name(parser, &axis->name) ||
        !tokens_expect(&parser->tokens, ":", "after the axis") ||
        !parse_between(parser, 1, MOST_DEVICES, "a count of devices, before this", &count))
        return false;
    for (bool more = tokens_take(&parser->tokens, "by"); more;
         more = tokens_take(&parser->tokens, ":")) {
        int64_t weight;
        if (!parse_between(parser, 0, LAYOUT_MOST_WEIGHT, "a weight, before this", &weight))
            return false;
        array_push(parser->arena, &weights, weight);
    }
    axis->count = (int)count;
    axis->weights = weights.at;
    return !weights.count || weights.count == axis->count ||
           parse_fail(parser, "a weight for each part of the axis, before this");
}

bool parse_mesh(IrParser *parser) {
    Mesh *mesh = arena_new(parser->arena, Mesh);
    int64_t devices = 1;
    if (parser->module->params.count || parser->module->inputs.count)
        return parse_fail(parser, "the mesh above the values");
    if (!parse_devices(parser, mesh)) return false;
    for (bool more = tokens_take(&parser->tokens, "axes"); more;
         more = tokens_take(&parser->tokens, ",")) {
        if (mesh->axis_count == MESH_MOST) return parse_fail(parser, "fewer axes");
        if (!parse_axis(parser, &mesh->axis[mesh->axis_count])) return false;
        devices *= mesh->axis[mesh->axis_count++].count;
        if (devices > mesh->device_count)
            return parse_fail(parser, "axes that multiply to the devices, before this");
    }
    parser->mesh = mesh;
    if (parser->in_stage)
        parser->module->templates->stages.at[parser->module->templates->stages.count - 1].mesh =
            mesh;
    else parser->module->devices->mesh = mesh;
    return devices == mesh->device_count ||
           parse_fail(parser, "axes that multiply to the devices, before this");
}

bool parse_split(IrParser *parser) {
    MeshRule rule = {0};
    int64_t axis;
    if (!parser->mesh) return parse_fail(parser, "a line `mesh` before this");
    if (!parse_dim_name(parser, &rule.dim) ||
        !tokens_expect(&parser->tokens, "axis", "after the dimension") ||
        !parse_between(parser, 0, parser->mesh->axis_count - 1,
                       "the number of an axis of the mesh, before this", &axis))
        return false;
    rule.axis = (int)axis;
    rule.zigzag = tokens_take(&parser->tokens, "zigzag");
    if (!parse_position(parser, &rule.at)) return false;
    array_push(parser->arena, &parser->mesh->rules, rule);
    return true;
}
