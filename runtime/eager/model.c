/* The functions of hetu.h that a model calls: parameters, inputs, outputs, scopes and shapes. */
#include "eager/tape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ctype.h>

static ht_node *present(const char *function, ht_tensor x) { return eager_operand(function, x); }

int64_t ht_extent(ht_tensor x, int d) {
    ht_node *node = present("ht_extent", x);
    int at = d < 0 ? d + node->dims.rank : d;
    if (at < 0 || at >= node->dims.rank)
        ht_fail("ht_extent: a tensor of shape %s has no dimension %d", eager_shape_text(node->dims),
                d);
    return node->dims.extent[at];
}

int ht_rank(ht_tensor x) { return present("ht_rank", x)->dims.rank; }

ht_dims ht_dims_of(ht_tensor x) { return present("ht_dims_of", x)->dims; }

ht_dtype ht_dtype_of(ht_tensor x) { return present("ht_dtype_of", x)->dtype; }

bool ht_present(ht_tensor x) { return x.node != NULL; }

eager_program *eager_check_model(const char *function) {
    if (!eager_run.program) ht_fail("%s may be called only inside a model function", function);
    return eager_run.program;
}

/* Returns `name`. Ends the program if the name is empty or has a blank, quote, backslash or
 * unprintable character. The message calls the owner of the name `what`: "a parameter". */
static const char *check_name(const char *what, const char *name) {
    if (!name || !*name) ht_fail("the name of %s is empty", what);
    for (const char *at = name; *at; at++)
        if (!isgraph((unsigned char)*at) || *at == '"' || *at == '\\')
            ht_fail("the name of %s, \"%s\", has a character other than letters, digits and marks",
                    what, name);
    return name;
}

ht_tensor ht_parameter(ht_dims shape, ht_init init, ht_param_options options) {
    eager_program *program = eager_check_model("ht_param");
    char name[1024];
    if (eager_program_averaged(program) && !options.frozen) {
        snprintf(name, sizeof name, "%s.average", check_name("a parameter", options.name));
        return ht_state(shape, ht_zeros(), name);
    }
    snprintf(name, sizeof name, "%s%s", eager_run.scope, check_name("a parameter", options.name));
    eager_check_shape(shape);
    eager_trace_name("the parameter ", name, HT_F32, shape);
    eager_trace_argument(
        &(ht_attr){.i = init.kind << 2 | options.no_decay << 1 | options.frozen, .f = init.a});
    eager_param *param = eager_store_make(eager_run.store, name, shape, init);
    return eager_tensor(
        eager_program_param(program, param, options.no_decay, options.frozen, false));
}

ht_tensor ht_state(ht_dims shape, ht_init init, const char *name) {
    eager_program *program = eager_check_model("ht_state");
    char full[1024];
    snprintf(full, sizeof full, "%s%s", eager_run.scope, check_name("a state", name));
    eager_check_shape(shape);
    eager_trace_name("the state ", full, HT_F32, shape);
    eager_trace_argument(&(ht_attr){.i = init.kind, .f = init.a});
    return eager_tensor(eager_program_param(
        program, eager_store_make(eager_run.store, full, shape, init), false, true, true));
}

void ht_assign(ht_tensor state, ht_tensor value) {
    eager_program *program = eager_check_model("ht_assign");
    eager_program_assign(program, present("ht_assign", state), present("ht_assign", value));
}

ht_tensor ht_input(const char *name, ht_dtype dtype, ht_dims shape) {
    eager_program *program = eager_check_model("ht_input");
    eager_check_shape(shape);
    if ((unsigned)dtype > HT_I64) ht_fail("%d is no ht_dtype", (int)dtype);
    return eager_tensor(eager_program_input(program, check_name("an input", name), dtype, shape));
}

ht_tensor ht_output(ht_tensor x, const char *name) {
    eager_program *program = eager_check_model("ht_output");
    char full[1024];
    snprintf(full, sizeof full, "%s%s", eager_run.scope, check_name("an output", name));
    eager_program_output(program, full, present("ht_output", x));
    return x;
}

ht_scope_mark ht_scope_enter(const char *format, ...) {
    ht_scope_mark mark = {eager_run.scope_length};
    size_t room = sizeof eager_run.scope - eager_run.scope_length;
    eager_check_model("ht_scope");
    if (!format) ht_fail("the name of a scope is empty");
    va_list args;
    va_start(args, format);
    int length = vsnprintf(eager_run.scope + eager_run.scope_length, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length + 2 > room)
        ht_fail("ht_scope: the scopes' names are longer than %zu characters",
                sizeof eager_run.scope);
    check_name("a scope", eager_run.scope + eager_run.scope_length);
    eager_run.scope_length += (size_t)length + 1;
    strcpy(eager_run.scope + eager_run.scope_length - 1, ".");
    return mark;
}

void ht_scope_leave(ht_scope_mark *mark) {
    eager_run.scope_length = mark->length;
    eager_run.scope[mark->length] = 0;
}

int64_t ht_stream(void) { return eager_run.next_stream++; }

static const EagerLibrary library = {
    eager_store_create,  eager_store_param,   eager_store_find,     eager_program_create,
    eager_program_shape, eager_program_step,  eager_program_tokens, eager_program_grad_norm,
    eager_program_named, eager_program_bytes, eager_program_fetch,  eager_program_forget,
    eager_store_state,   eager_store_resume,  eager_program_resume};

__attribute__((constructor)) static void register_library(void) { session_use_eager(&library); }
