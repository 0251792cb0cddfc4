/* Chooses how an operator is computed (kernel_body): by a C kernel, ht_product, or generated loops.
 * Operators with equal keys share a function. passes/fuse fuses operators before. */
#include "emit/kernel/kernel.h"

#include "emit/emitter.h"
#include "emit/words.h"
#include "support/array.h"

#include <stdio.h>
#include <string.h>

static void key_number(Text *key, int64_t number) {
    text_append(key, (const char *)&number, sizeof number);
}

static void key_text(Text *key, const char *text) { text_append(key, text, strlen(text) + 1); }

static void key_tensor(Text *key, const LocalOp *local, const Tensor *tensor) {
    key_number(key, tensor->value ? (int)tensor->value->type.dtype : -1);
    if (!tensor->value) return;
    key_number(key, tensor->bound->access);
    key_number(key, tensor->value->micro.kind);
    key_number(key, tensor->value->micro.dim);
    key_number(key, value_turns(local->module, local->op, tensor->value));
    key_number(key, tensor->bound->rank);
    key_number(key, tensor->bound->written_rank);
    key_number(key, tensor->pitch);
    for (int d = 0; d < tensor->bound->rank; d++) {
        key_number(key, tensor->extent[d]);
        key_number(key, tensor->value->type.extent[d]);
        key_number(key, tensor->bound->dims[d].count ? tensor->bound->dims[d].factors[0] : -1);
        key_number(key, tensor->bound->dims[d].written);
        key_number(key, layout_has_zigzag(tensor->value->layout, d));
        key_number(key, tensor->value->chunk && tensor->value->chunk->dim == d
                            ? tensor->value->chunk->extent
                            : -1);
    }
}

static void key_attr(Text *key, const Attr *attr) {
    key_number(key, attr->i);
    text_append(key, (const char *)&attr->f, sizeof attr->f);
    key_number(key, attr->count);
    for (int d = 0; d < attr->count; d++) key_number(key, attr->ints[d]);
}

/* Writes a key of everything that the text of a function depends on. */
static void kernel_key(Text *key, const LocalOp *local) {
    const OpDef *def = local->op->def;
    key->length = 0;
    key_text(key, def->name);
    key_text(key, def->rule->text);
    key_number(key, local->op->section == SECTION_UPDATE);
    for (int a = 0; a < def->attr_count; a++) key_attr(key, &local->op->attrs[a]);
    for (int f = 0; f < local->factor_count; f++) {
        key_number(key, local->op->binding->factors[f].factor);
        key_number(key, local->op->binding->factors[f].extent);
    }
    key_number(key, local->operand_count);
    for (int t = 0; t < local->tensor_count; t++) key_tensor(key, local, &local->tensors[t]);
    for (int t = 0; t < local->term_count; t++) key_number(key, local->terms[t].flagged);
    key_number(key, local->sum ? 1 + local->summed : 0);
}

/* ---- the text ---- */

static bool has_offsets(const LocalOp *local) {
    for (int t = 0; t < local->tensor_count; t++)
        for (int w = 0; local->tensors[t].value && w < local->tensors[t].bound->written_rank; w++)
            if (written_has_offset(local, &local->tensors[t], w)) return true;
    return false;
}

static bool reads_numbers(const LocalOp *local) {
    for (int t = 0; t < local->term_count; t++)
        if (local->terms[t].flagged) return true;
    return local->rule->kind == RULE_CALL && !local_empty(local) && has_offsets(local);
}

/* Appends the parameters: "float *y, const float *x", or "void *y, void *x" with views. */
static void text_parameters(Text *out, const LocalOp *local, bool views) {
    for (int t = 0; t < local->tensor_count; t++) {
        const Tensor *tensor = &local->tensors[t];
        const char *type = !tensor->value ? NULL
                           : views        ? "void"
                                          : c_type(tensor->value->type.dtype);
        if (type)
            text_print(out, "%s%s%s *%s", t ? ", " : "",
                       views || t < local->result_count ? "" : "const ", type, tensor->name);
    }
    if (local->sum)
        text_print(out, ", %s *%s", c_type(local->sums.value->type.dtype), local->sums.name);
}

static const char *kernel_prototype(Arena *arena, const Kernel *kernel, const LocalOp *local,
                                    bool views) {
    Text out = {.arena = arena};
    text_print(&out, "void %s(%s", kernel->name, kernel->ranked ? "ht_worker *r, " : "");
    text_parameters(&out, local, views);
    text_print(&out, "%s%s)", kernel->numbered ? ", const int64_t *at" : "",
               kernel->ranked ? ", const char *where" : "");
    return text_bytes(&out);
}

/* Appends a rule's text inside a comment, with each equation on its own line. */
static void text_rule(Text *out, const Rule *rule) {
    static const char BODY[] = " body(", NEXT[] = "; ", END[] = "*/";
    for (const char *c = rule->text; *c; c++) {
        if (rule->equations.count && !strncmp(c, BODY, strlen(BODY))) text_string(out, "\n *    ");
        if (!strncmp(c, NEXT, strlen(NEXT))) {
            text_string(out, ";\n *          ");
            c++;
            continue;
        }
        text_append(out, c, 1);
        text_string(out, strncmp(c, END, strlen(END)) ? "" : " ");
    }
}

static void text_tensors(Text *out, const Tensor *tensors, int count) {
    bool any = false;
    for (int k = 0; k < count; k++)
        if (tensors[k].value) {
            text_print(out, "%s%s ", any ? ", " : " ", tensors[k].name);
            text_shape(out, tensors[k].bound->rank, tensors[k].extent);
            any = true;
        }
}

/* Appends the comment with the rule and the local shapes. */
static void text_banner(Text *out, const LocalOp *local) {
    text_string(out, "\n/* ");
    text_rule(out, local->rule);
    text_string(out, "\n *");
    text_tensors(out, local->operands, local->operand_count);
    text_string(out, " ->");
    text_tensors(out, local->results, local->result_count);
    text_string(out, " */\n");
}

/* Appends (void) statements for parameters that the body does not use. */
static void text_unused(Text *out, const LocalOp *local, const Kernel *kernel, const char *body) {
    for (int k = 0; k < local->operand_count; k++)
        if (local->operands[k].value && !has_word(body, local->operands[k].name))
            text_print(out, "    (void)%s;\n", local->operands[k].name);
    if (kernel->numbered && !has_word(body, "at")) text_string(out, "    (void)at;\n");
}

static void check_kernel(RoleWriter *writer, const LocalOp *local, const char *kernel) {
    const Backend *backend = writer->emitter->backend;
    if (!kernel) {
        diag_error(writer->module->diag, local->op->at,
                   "\"%s\" has no kernel for the back end \"%s\"", local->op->def->name,
                   backend->name);
        diag_note(writer->module->diag, local->op->def->at, "its rule needs the clause %s",
                  backend_kernel_clause(writer->emitter->arena, backend));
    }
}

static void declare_kernel(Emitter *emitter, const char *kernel) {
    char line[256];
    snprintf(line, sizeof line, "ht_kernel %s;\n", kernel);
    if (!strstr(text_bytes(&emitter->kernels.externs), line))
        text_string(&emitter->kernels.externs, line);
}

/* Returns whether the operator converts f32 to bf16 without reordering elements. */
static bool narrows(const LocalOp *local) {
    const Tensor *to = &local->results[0], *from = &local->operands[0];
    return rule_is_copy(local->rule) && to->value->type.dtype == DTYPE_BF16 &&
           from->value->type.dtype == DTYPE_F32;
}

/* Appends the function's statements to `out`, and its helper functions to `before`. */
static void kernel_body(Text *before, Text *out, RoleWriter *writer, const LocalOp *local,
                        const Kernel *kernel) {
    Product product;
    if (local->rule->kind == RULE_CALL && local_empty(local)) {
        emit_identity(out, local);
    } else if (local->rule->kind == RULE_CALL) {
        const char *name = backend_kernel(writer->emitter->backend, local->rule);
        check_kernel(writer, local, name);
        if (name) declare_kernel(writer->emitter, name);
        emit_call(out, local, name ? name : "", local->op->section == SECTION_UPDATE);
    } else if (narrows(local)) {
        text_print(out, "    ht_narrow(%s, %s, %lld);\n", local->results[0].name,
                   local->operands[0].name, (long long)tensor_elements(&local->results[0]));
    } else if (product_of(local, &product)) {
        emit_product(out, local, &product);
    } else if (local->rule->kind == RULE_EQUATIONS) {
        writer->emitter->backend->rows(before, out, local, kernel);
    } else {
        writer->emitter->backend->loops(before, out, local, kernel);
    }
}

/* Returns an operator's name without the library's prefix. */
static const char *short_name(const char *name) {
    return strncmp(name, "ht_", 3) ? name : name + 3;
}

static Kernel kernel_write(RoleWriter *writer, const LocalOp *local) {
    Emitter *emitter = writer->emitter;
    bool views = local->rule->kind == RULE_CALL;
    Kernel kernel = {
        .name = arena_format(emitter->arena, "%s_%s_%d", emitter->prefix,
                             c_identifier(emitter->arena, short_name(local->op->def->name)),
                             emitter->kernels.count++),
        .ranked = views && !local_empty(local),
        .numbered = reads_numbers(local),
    };
    kernel.opening = arena_format(emitter->arena, "%s(%s", kernel.name, kernel.ranked ? "r, " : "");
    kernel.prototype = kernel_prototype(emitter->arena, &kernel, local, views);
    Text banner = {.arena = emitter->arena}, before = banner, body = banner, unused = banner;
    kernel_body(&before, &body, writer, local, &kernel);
    text_banner(&banner, local);
    text_unused(&unused, local, &kernel, text_bytes(&body));
    text_string(&unused, text_bytes(&body));
    const char *clones =
        strstr(text_bytes(&body), "#pragma omp simd") ? emitter->backend->clones : NULL;
    array_push(emitter->arena, &emitter->kernels.texts,
               (KernelText){kernel.name, kernel.prototype, text_bytes(&banner), text_bytes(&before),
                            clones ? clones : "", text_bytes(&unused)});
    return kernel;
}

const Kernel *kernel_for(RoleWriter *writer, const LocalOp *local) {
    Emitter *emitter = writer->emitter;
    Text *key = &emitter->key;
    kernel_key(key, local);
    Kernel **slot = intern_slot(emitter->kernels.known, key->bytes, key->length);
    if (*slot) return *slot;
    Kernel *kernel = *slot = arena_new(emitter->arena, Kernel);
    *kernel = kernel_write(writer, local);
    return kernel;
}
