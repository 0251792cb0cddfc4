/* Roles in the IR's text: `role DEVICES arena BYTES`, its `offsets` and `scratch`, and `plans`. */
#include "ir/text/parse.h"
#include "ir/roles.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICE = 1 << 24 };

static const int64_t MOST_BYTES = (int64_t)1 << 60;

static Roles *roles_of(IrParser *parser)
{
    if (!parser->module->roles)
        parser->module->roles = arena_new(parser->arena, Roles);
    return parser->module->roles;
}

static int compare_ints(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

/* All devices in order, and the role of each. */
static void list_devices(IrParser *parser, Roles *roles)
{
    Array(int) devices = {0};
    for (int i = 0; i < roles->role_count; i++)
        for (int k = 0; k < roles->at[i].device_count; k++)
            array_push(parser->arena, &devices, roles->at[i].devices[k]);
    qsort(devices.at, (size_t)devices.count, sizeof *devices.at, compare_ints);
    int *role_of = arena_array(parser->arena, int, devices.count + 1);
    for (int i = 0; i < roles->role_count; i++)
        for (int k = 0; k < roles->at[i].device_count; k++) {
            const int *found = bsearch(&roles->at[i].devices[k], devices.at, (size_t)devices.count, sizeof *devices.at, compare_ints);
            role_of[found - devices.at] = i;
        }
    roles->device_count = devices.count;
    roles->devices = devices.at;
    roles->role_of = role_of;
}

static bool parse_role(IrParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Roles *roles = roles_of(parser);
    Array(int) devices = {0};
    Role role = {0};
    do {
        int64_t device;
        if (!parse_int(parser, &device))
            return false;
        if (device < 0 || device > MOST_DEVICE)
            return parse_fail(parser, "the number of a device, before this");
        array_push(parser->arena, &devices, (int)device);
    } while (tokens_take(tokens, ","));
    if (!tokens_expect(tokens, "arena", "after the devices") || !parse_int(parser, &role.arena_bytes))
        return false;
    role.device_count = devices.count;
    role.devices = devices.at;
    Role *grown = arena_array(parser->arena, Role, roles->role_count + 1);
    if (roles->role_count)
        memcpy(grown, roles->at, sizeof role * (size_t)roles->role_count);
    grown[roles->role_count++] = role;
    roles->at = grown;
    list_devices(parser, roles);
    return true;
}

/* A list of KEY:NUMBER up to the end of the line, as an array of `count` entries up to `most`, -1 where there is none. */
static bool parse_pairs(IrParser *parser, int count, const char *mark, int64_t most, int64_t **pairs)
{
    Tokens *tokens = &parser->tokens;
    int64_t *list = *pairs = arena_array(parser->arena, int64_t, count + 1);
    for (int i = 0; i < count; i++)
        list[i] = -1;
    while (!tokens_end(tokens)) {
        int64_t key, number;
        if ((*mark && !tokens_expect(tokens, mark, "before the number")) || !parse_int(parser, &key) ||
            !tokens_expect(tokens, ":", "after the number") || !parse_int(parser, &number))
            return false;
        if (key < 0 || key >= count)
            return parse_fail(parser, "the number of something that is there, before this");
        if (number < -1 || number > most)
            return parse_fail(parser, "a number in its range, before this");
        list[key] = number;
    }
    return true;
}

static Role *last_role(IrParser *parser)
{
    Roles *roles = roles_of(parser);
    if (!roles->role_count)
        parse_fail(parser, "a line `role` before this");
    return roles->role_count ? &roles->at[roles->role_count - 1] : NULL;
}

/* The plan of a conversion, computed again from its layouts. */
static const Plan *plan_of(IrParser *parser, const Op *op)
{
    const Value *from = op->operands[0], *to = op->results[0];
    if (!from || !from->layout || !to->layout)
        return NULL;
    Conversion conversion = op_conversion(parser->arena, op);
    return reshard_plan(parser->arena, parser->module->options.cluster, &conversion);
}

static bool parse_plans(IrParser *parser)
{
    Roles *roles = roles_of(parser);
    int count = parser->module->ops.count;
    int64_t *pairs;
    if (!parse_pairs(parser, count, "", count, &pairs))
        return false;
    roles->plan_of = arena_array(parser->arena, int, count + 1);
    for (int i = 0; i < count; i++) {
        if ((parser->module->ops.at[i]->def == parser->module->reshard_def) != (pairs[i] >= 0))
            return parse_fail(parser, "a plan for each conversion, and for these alone, before this");
        roles->plan_of[i] = (int)pairs[i];
        if (pairs[i] >= roles->plan_count)
            roles->plan_count = (int)pairs[i] + 1;
    }
    roles->plans = arena_array(parser->arena, const Plan *, roles->plan_count + 1);
    for (int i = 0; i < count; i++)
        if (pairs[i] >= 0 && !roles->plans[pairs[i]])
            roles->plans[pairs[i]] = plan_of(parser, parser->module->ops.at[i]);
    return true;
}

bool parse_role_line(IrParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Role *role;
    if (tokens_take(tokens, "role"))
        return parse_role(parser);
    if (tokens_take(tokens, "plans"))
        return parse_plans(parser);
    if (tokens_take(tokens, "offsets"))
        return (role = last_role(parser)) && parse_pairs(parser, parser->next_id, "%", MOST_BYTES, &role->offset);
    tokens_next(tokens);
    return (role = last_role(parser)) && parse_pairs(parser, parser->module->ops.count, "", MOST_BYTES, &role->scratch);
}
