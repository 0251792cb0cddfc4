/* Roles and conversion plans in IR text (ir/programs):
 *
 *     plan 0 f32[16, 1024] from<[0-3]{1:4}> to<[0-3]{dup:4}>
 *     role 0,1,2,3 arena 65536
 *     offsets %12:0 %13:4096
 *     scratch 5:16384
 */
#include "ir/text/parse.h"
#include "ir/programs/conversions.h"
#include "ir/programs/device_programs.h"
#include "support/array.h"
#include "syntax/lex.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICE = 1 << 24 };

static const int64_t MOST_BYTES = (int64_t)1 << 60;

static Roles *roles_of(IrParser *parser) {
    if (!parser->module->devices->roles)
        parser->module->devices->roles = arena_new(parser->arena, Roles);
    return parser->module->devices->roles;
}

/* Sets roles->devices to the devices of all roles, ascending, and role_of to the role of each. */
static void list_devices(IrParser *parser, Roles *roles) {
    Array(int) devices = {0};
    for (int i = 0; i < roles->role_count; i++)
        for (int k = 0; k < roles->at[i].device_count; k++)
            array_push(parser->arena, &devices, roles->at[i].devices[k]);
    qsort(devices.at, (size_t)devices.count, sizeof *devices.at, compare_ints);
    int *role_of = arena_array(parser->arena, int, devices.count + 1);
    for (int i = 0; i < roles->role_count; i++)
        for (int k = 0; k < roles->at[i].device_count; k++) {
            const int *found = bsearch(&roles->at[i].devices[k], devices.at, (size_t)devices.count,
                                       sizeof *devices.at, compare_ints);
            role_of[found - devices.at] = i;
        }
    roles->device_count = devices.count;
    roles->devices = devices.at;
    roles->role_of = role_of;
}

bool parse_role(IrParser *parser) {
    Tokens *tokens = &parser->tokens;
    Roles *roles = roles_of(parser);
    Array(int) devices = {0};
    Role role = {0};
    do {
        int64_t device;
        if (!parse_int(parser, &device)) return false;
        if (device < 0 || device > MOST_DEVICE)
            return parse_fail(parser, "the number of a device, before this");
        array_push(parser->arena, &devices, (int)device);
    } while (tokens_take(tokens, ","));
    if (!tokens_expect(tokens, "arena", "after the devices") ||
        !parse_int(parser, &role.arena_bytes) ||
        (tokens_take(tokens, "slot") && !parse_int(parser, &role.slot_bytes)))
        return false;
    role.kept = arena_array(parser->arena, bool, parser->next_id + 1);
    role.device_count = devices.count;
    role.devices = devices.at;
    Role *grown = arena_array(parser->arena, Role, roles->role_count + 1);
    if (roles->role_count) memcpy(grown, roles->at, sizeof role * (size_t)roles->role_count);
    grown[roles->role_count++] = role;
    roles->at = grown;
    list_devices(parser, roles);
    return true;
}

/* Reads pairs KEY:BYTES up to the end of the line, into an array *pairs of `count` entries by key,
 * -1 for absent keys. Unless `kept` is NULL, sets kept[key] if the word `kept` follows the pair. */
static bool parse_pairs(IrParser *parser, int count, const char *mark, int64_t **pairs,
                        bool *kept) {
    Tokens *tokens = &parser->tokens;
    int64_t *list = *pairs = arena_array(parser->arena, int64_t, count + 1);
    for (int i = 0; i < count; i++) list[i] = -1;
    while (!tokens_end(tokens)) {
        int64_t key, number;
        if ((*mark && !tokens_expect(tokens, mark, "before the number")) ||
            !parse_int(parser, &key) || !tokens_expect(tokens, ":", "after the number") ||
            !parse_int(parser, &number))
            return false;
        if (key < 0 || key >= count)
            return parse_fail(parser, "the number of something that is there, before this");
        if (number < -1 || number > MOST_BYTES)
            return parse_fail(parser, "a number in its range, before this");
        list[key] = number;
        if (kept && tokens_take(tokens, "kept")) kept[key] = true;
    }
    return true;
}

static Role *last_role(IrParser *parser) {
    Roles *roles = roles_of(parser);
    if (!roles->role_count) parse_fail(parser, "a line `role` before this");
    return roles->role_count ? &roles->at[roles->role_count - 1] : NULL;
}

bool parse_offsets(IrParser *parser) {
    Role *role = last_role(parser);
    return role && parse_pairs(parser, parser->next_id, "%", &role->offset, role->kept);
}

bool parse_scratch(IrParser *parser) {
    Role *role = last_role(parser);
    return role && parse_pairs(parser, parser->module->ops.count, "", &role->scratch, NULL);
}

/* Reads from<LAYOUT> to<LAYOUT>; a conversion between different kinds of reduction is an error. */
static bool parse_ends(IrParser *parser, Type type, const Layout **from, const Layout **to) {
    Tokens *tokens = &parser->tokens;
    if (!tokens_expect(tokens, "from", "after the type") || !(*from = parse_layout(parser, type)) ||
        !tokens_expect(tokens, "to", "after the layout") || !(*to = parse_layout(parser, type)))
        return false;
    StateKind before = layout_partial(*from), after = layout_partial(*to);
    if (before == STATE_DUP || after == STATE_DUP || before == after) return true;
    diag_error(parser->diag, parser->layout_at,
               "contributions to a reduction of one kind do not become those to another");
    return false;
}

bool parse_plan(IrParser *parser) {
    int64_t number, tensor = 0;
    ConvertedTensor converted;
    Position at = parser->tokens.token->at;
    if (!parse_int(parser, &number) ||
        (tokens_take(&parser->tokens, "tensor") && !parse_int(parser, &tensor)) ||
        !parse_type(parser, &converted.type) ||
        !parse_ends(parser, converted.type, &converted.from, &converted.to))
        return false;
    int count = parser->module->devices->conversions.count;
    if (number != count - (tensor > 0) ||
        (tensor && parser->module->devices->conversions.at[number]->tensors.count != tensor))
        return parse_fail(parser, "plans numbered in order");
    PlannedConversion *conversion =
        tensor ? parser->module->devices->conversions.at[number] : conversion_add(parser->module);
    conversion->at = tensor ? conversion->at : at;
    array_push(parser->arena, &conversion->tensors, converted);
    return true;
}
