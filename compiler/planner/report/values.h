/* A program's named values and their layouts: parameters, states, inputs, named forward values. */
#pragma once

#include "ir/module.h"

typedef struct NamedValue {
    const char *kind; // "parameter", "optimizer" (states whose layout differs), "state",
                      // "input", "value", "converted"
    const char *name; // such as "h3.w"
    const Value *value;
} NamedValue;
typedef Array(NamedValue) NamedValues;

/* Returns the named values in the program's order, each combination of name, line and layout once.
 * The module must have come through pass propagate_layouts. */
NamedValues named_values(Arena *arena, const Module *module);

/* Returns a value's name in reports: "h3.y", "h3.w", "ht_linear in h3". */
const char *value_text(Arena *arena, const Value *value);

/* Return texts for reports: a type; a layout, or "by micro-batch" for NULL; a line, "gpt.c:42". */
const char *type_text(Arena *arena, Type type);
const char *layout_text(Arena *arena, const Layout *layout);
const char *place_text(Arena *arena, Position at);

/* Returns the part of a path after its last slash; "" for NULL. */
const char *path_end(const char *path);
