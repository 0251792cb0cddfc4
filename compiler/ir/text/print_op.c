#include "ir/text/print.h"
#include "ir/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void print_quoted(Text *out, const char *string)
{
    text_string(out, "\"");
    for (; *string; string++)
        switch (*string) {
        case '"':
        case '\\': text_print(out, "\\%c", *string); break;
        case '\n': text_string(out, "\\n"); break;
        case '\t': text_string(out, "\\t"); break;
        case '\r': text_string(out, "\\r"); break;
        default: text_append(out, string, 1);
        }
    text_string(out, "\"");
}

void print_number(Text *out, double number)
{
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    text_string(out, digits);
}

/* Also an empty position, as 0:0. */
static void print_any_position(Printer *printer, Position at)
{
    text_string(printer->out, " @");
    if (!at.file && !at.line) {
        text_string(printer->out, "0:0");
        return;
    }
    if (!at.file || !printer->module->source || strcmp(at.file, printer->module->source)) {
        print_quoted(printer->out, at.file ? at.file : "");
        text_string(printer->out, ":");
    }
    text_print(printer->out, "%d:%d", at.line, at.column);
}

void print_position(Printer *printer, Position at)
{
    if (at.file || at.line)
        print_any_position(printer, at);
}

void print_type(Text *out, Type type)
{
    text_print(out, "%s[", dtype_name(type.dtype));
    for (int d = 0; d < type.rank; d++)
        text_print(out, d ? ", %lld" : "%lld", (long long)type.extent[d]);
    text_string(out, "]");
}

void print_ref(Text *out, const Value *value)
{
    if (value)
        text_print(out, "%%%d", value->id);
    else
        text_string(out, "-");
}

void print_dim_name(Text *out, DimName name)
{
    text_string(out, name.name ? name.name : "_");
    if (name.part)
        text_print(out, ":%d", name.part);
}

static void print_dims(Text *out, const Value *value)
{
    text_string(out, " dims(");
    for (int d = 0; d < value->type.rank; d++) {
        const Dim *dim = &value->dims[d];
        text_string(out, d ? ", " : "");
        text_string(out, dim->count > 1 ? "(" : "");
        for (int i = 0; i < dim->count; i++) {
            text_string(out, i ? " " : "");
            print_dim_name(out, dim->names[i]);
        }
        text_string(out, dim->count > 1 ? ")" : !dim->count ? "_" : "");
    }
    text_string(out, ")");
}

static bool position_equal(Position a, Position b)
{
    return a.line == b.line && a.column == b.column && (a.file == b.file || (a.file && b.file && !strcmp(a.file, b.file)));
}

void print_value(Printer *printer, const Value *value, bool named, Position known)
{
    Text *out = printer->out;
    print_type(out, value->type);
    if (named && value->name) {
        text_string(out, " ");
        print_quoted(out, value->name);
    }
    if (value->dims)
        print_dims(out, value);
    if (value->written) {
        text_string(out, " shard<");
        written_print(out, value->written);
        text_string(out, ">");
        print_any_position(printer, value->written->at);
    }
    if (value->layout) {
        text_string(out, " layout<");
        layout_print(out, value->layout);
        text_string(out, ">");
    }
    if (value->micro)
        text_print(out, value->micro == MICRO_SUM ? " micro sum" : " micro %d", value->micro);
    if (value->storage)
        text_print(out, " storage %%%d", value->storage->id);
    if (!position_equal(value->at, known))
        print_any_position(printer, value->at);
}

static void print_attr(Text *out, ParamKind kind, const Attr *attr)
{
    switch (kind) {
    case PARAM_FLOAT: print_number(out, attr->f); break;
    case PARAM_DTYPE: text_string(out, dtype_name((DType)attr->i)); break;
    case PARAM_SHAPE:
        text_string(out, "[");
        for (int i = 0; i < attr->count; i++)
            text_print(out, i ? ", %lld" : "%lld", (long long)attr->ints[i]);
        text_string(out, "]");
        break;
    default: text_print(out, "%lld", (long long)attr->i);
    }
}

static void print_attrs(Text *out, const Op *op)
{
    if (!op->def->attr_count)
        return;
    text_string(out, " {");
    for (int i = 0, next = 0; i < op->def->param_count; i++) {
        const OpParam *param = &op->def->params[i];
        if (param->kind == PARAM_TENSOR || param->kind == PARAM_TENSORS)
            continue;
        text_string(out, next ? ", " : "");
        print_attr(out, param->kind, &op->attrs[next++]);
    }
    text_string(out, "}");
}

static void print_marks(Printer *printer, const Op *op)
{
    Text *out = printer->out;
    int binding = print_binding(printer, op);
    if (binding >= 0)
        text_print(out, " binding %d", binding);
    if (op->conversion)
        text_print(out, " plan %d", op->conversion->number);
    if (op->gradient)
        text_print(out, " gradient %d", print_gradient_number(printer, op->gradient));
    if (op->tower) {
        text_string(out, " tower ");
        print_quoted(out, op->tower);
    }
    if (op->layer >= 0)
        text_print(out, " layer %d", op->layer);
    if (op->scope) {
        text_string(out, " scope ");
        print_quoted(out, op->scope);
    }
    text_string(out, op->turn == TURN_EACH ? " turn each" : op->turn == TURN_AFTER ? " turn after" : "");
    if (op->frames)
        text_print(out, " from %d", print_frame(printer, op->frames));
    if (op->reason) {
        text_string(out, " for ");
        print_quoted(out, op->reason);
    }
    if (op->also_count)
        text_print(out, " also %d", op->also_count);
    for (int i = 0; i < op->also_count; i++)
        print_any_position(printer, op->also[i]);
    print_position(printer, op->at);
}

void print_op(Printer *printer, const Op *op)
{
    Text *out = printer->out;
    text_string(out, "  ");
    for (int i = 0; i < op->result_count; i++) {
        text_string(out, i ? ", " : "");
        print_ref(out, op->results[i]);
    }
    text_print(out, " = %s(", op->def->name);
    for (int i = 0; i < op->operand_count; i++) {
        text_string(out, i ? ", " : "");
        print_ref(out, op->operands[i]);
    }
    text_string(out, ")");
    print_attrs(out, op);
    print_marks(printer, op);
    for (int i = 0; i < op->result_count; i++) {
        text_string(out, i ? ", " : " : ");
        print_value(printer, op->results[i], true, op->at);
    }
    text_string(out, "\n");
}
