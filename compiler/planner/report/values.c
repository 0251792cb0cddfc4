/* Lists the named values of a program and prints their layouts. */
#include "planner/report/values.h"

#include "cost/cost.h"

#include <string.h>

const char *path_end(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

const char *place_text(Arena *arena, Position at) {
    return at.file ? arena_format(arena, "%s:%d", path_end(at.file), at.line) : "-";
}

static bool begins_with(const char *name, const char *scope) {
    size_t length = strlen(scope);
    return !strncmp(name, scope, length) && name[length] == '.';
}

/* Returns a value, or, for an unnamed result of conversions, the value that they convert. */
static const Value *converted(const Value *value) {
    while (!value->name && value->def && value->def->convert.plan) value = value->def->operands[0];
    return value;
}

const char *value_text(Arena *arena, const Value *value) {
    value = converted(value);
    const char *scope = value->def && value->def->source->scope ? value->def->source->scope : "";
    if (!*scope || (value->name && begins_with(value->name, scope))) return value_called(value);
    return arena_format(arena, value->name ? "%s.%s" : "%2$s in %1$s", scope, value_called(value));
}

const char *type_text(Arena *arena, Type type) {
    Text text = {.arena = arena};
    text_string(&text, dtype_name(type.dtype));
    text_string(&text, "[");
    for (int d = 0; d < type.rank; d++)
        text_print(&text, "%s%lld", d ? "," : "", (long long)type.extent[d]);
    text_string(&text, "]");
    return text_bytes(&text);
}

const char *layout_text(Arena *arena, const Layout *layout) {
    Text text = {.arena = arena};
    if (layout) layout_print(&text, layout);
    else text_string(&text, "by micro-batch");
    return text_bytes(&text);
}

static void add_value(Arena *arena, NamedValues *values, const char *kind, const char *name,
                      const Value *value) {
    array_push(arena, values, (NamedValue){kind, name, value});
}

/* Appends the named results of an operator that are not in the list yet. */
static void add_results(Arena *arena, NamedValues *values, Intern *known, const Op *op) {
    for (int r = 0; r < op->result_count; r++) {
        const Value *value = op->results[r];
        if (!value->name || !value->layout) continue;
        const char *name = value_text(arena, value);
        const char *key = arena_format(arena, "%s %s %s", name, layout_text(arena, value->layout),
                                       place_text(arena, value_place(value)));
        intptr_t *seen = intern_slot(known, key, strlen(key));
        if (!*seen) add_value(arena, values, op->convert.plan ? "converted" : "value", name, value);
        *seen = 1;
    }
}

NamedValues named_values(Arena *arena, const Module *module) {
    NamedValues values = {0};
    Intern *known = intern_create(arena);
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *param = module->params.at[i];
        add_value(arena, &values, param->state ? "state" : "parameter", param->name, param->value);
        if (param->state_count && param->states[0]->layout != param->value->layout)
            add_value(arena, &values, "optimizer", param->name, param->states[0]);
    }
    for (int i = 0; i < module->inputs.count; i++)
        add_value(arena, &values, "input", module->inputs.at[i]->name, module->inputs.at[i]);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->section == SECTION_FORWARD && op->def != module->builtin->local_part &&
            op->def != module->builtin->stage_union)
            add_results(arena, &values, known, op);
    }
    return values;
}
