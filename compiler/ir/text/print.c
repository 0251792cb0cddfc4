#include "ir/text/print.h"

#include "ir/roles.h"

#include <string.h>

/* ---- what stands before the operators ---- */

static void print_head(Printer *printer)
{
    const Module *module = printer->module;
    Text *out = printer->out;
    text_string(out, "module ");
    print_quoted(out, module->name);
    text_string(out, module->kind == MODULE_TRAIN ? " train" : " infer");
    if (module->source) {
        text_string(out, " source ");
        print_quoted(out, module->source);
    }
    if (module->precision != DTYPE_F32)
        text_print(out, " precision %s", dtype_name(module->precision));
    if (module->options.cluster_file) {
        text_string(out, " cluster ");
        print_quoted(out, module->options.cluster_file);
    }
    text_string(out, module->options.remark_comm ? " remark_comm" : "");
    text_string(out, module->options.warn_implicit_reshard ? " warn_implicit_reshard" : "");
    if (module->after)
        text_print(out, " after %s", module->after);
    text_print(out, " next %d", module->next_id);
    print_position(printer, module->at);
    text_string(out, "\n");
    if (module->strategy)
        strategy_print(out, module->strategy, "");
}

static const char *const param_kinds[] = {[PARAM_TENSOR] = "tensor", [PARAM_TENSORS] = "tensors", [PARAM_INT] = "int",
                                          [PARAM_FLOAT] = "float",   [PARAM_SHAPE] = "shape",     [PARAM_DTYPE] = "dtype"};

static void print_def(Printer *printer, const OpDef *def)
{
    Text *out = printer->out;
    text_print(out, "op %s(", def->name);
    for (int i = 0; i < def->param_count; i++)
        text_print(out, "%s%s %s", i ? ", " : "", param_kinds[def->params[i].kind], def->params[i].name);
    text_string(out, ")");
    print_position(printer, def->at);
    text_print(out, "\n    %s\n", def->rule->text);
}

static void print_defs(Printer *printer)
{
    const Module *module = printer->module;
    for (int i = 0; i < module->defs.count; i++)
        print_def(printer, module->defs.at[i]);
    if (module->update)
        text_print(printer->out, "update %s states %d%s\n", module->update->name, module->state_count, module->clip ? " clip" : "");
    if (module->reshard_def)
        text_print(printer->out, "reshard %s\n", module->reshard_def->name);
    if (module->microbatches != 1)
        text_print(printer->out, "microbatches %lld\n", (long long)module->microbatches);
    if (module->accumulate_def)
        text_print(printer->out, "accumulate %s\n", module->accumulate_def->name);
}

static void print_mesh(Printer *printer)
{
    const Mesh *mesh = printer->module->mesh;
    Text *out = printer->out;
    text_string(out, "mesh ");
    layout_print_devices(out, mesh->devices, mesh->device_count);
    for (int a = 0; a < mesh->axis_count; a++) {
        text_print(out, "%s%s:%d", a ? ", " : " axes ", mesh->axis[a].name, mesh->axis[a].count);
        layout_print_weights(out, mesh->axis[a].weights, mesh->axis[a].count);
    }
    text_string(out, "\n");
    for (int i = 0; i < mesh->rules.count; i++) {
        text_string(out, "split ");
        print_dim_name(out, mesh->rules.at[i].dim);
        text_print(out, " axis %d", mesh->rules.at[i].axis);
        print_position(printer, mesh->rules.at[i].at);
        text_string(out, "\n");
    }
}

static const char *const init_names[] = {
    [INIT_ZEROS] = "zeros", [INIT_CONSTANT] = "constant", [INIT_NORMAL] = "normal", [INIT_UNIFORM] = "uniform"};

static void print_param(Printer *printer, const Parameter *param)
{
    Text *out = printer->out;
    text_print(out, "param %%%d ", param->value->id);
    print_quoted(out, param->name);
    if (strcmp(param->shape, type_shape_text(printer->scratch, param->value->type))) {
        text_string(out, " shape ");
        print_quoted(out, param->shape);
    }
    text_print(out, " init %s", init_names[param->init]);
    if (param->init != INIT_ZEROS) {
        text_string(out, " ");
        print_number(out, param->a);
    }
    text_string(out, param->no_decay ? " no_decay" : "");
    text_string(out, param->frozen ? " frozen" : "");
    text_string(out, " : ");
    print_value(printer, param->value, false, (Position){0});
    text_string(out, "\n");
    for (int i = 0; i < param->state_count; i++) {
        text_print(out, "state %%%d ", param->states[i]->id);
        print_quoted(out, param->states[i]->name);
        text_print(out, " of %%%d : ", param->value->id);
        print_value(printer, param->states[i], false, (Position){0});
        text_string(out, "\n");
    }
}

static void print_input(Printer *printer, const Value *input)
{
    text_print(printer->out, "input %%%d ", input->id);
    print_quoted(printer->out, input->name);
    text_string(printer->out, " : ");
    print_value(printer, input, false, (Position){0});
    text_string(printer->out, "\n");
}

static void print_gradient(Printer *printer, const Function *function)
{
    Text *out = printer->out;
    for (int i = 0; i < function->ops.count; i++)
        print_references(printer, function->ops.at[i]);
    text_string(out, "gradient ");
    print_quoted(out, function->name);
    text_string(out, "\n");
    for (int i = 0; i < function->params.count; i++) {
        text_string(out, "  argument ");
        print_ref(out, function->params.at[i]);
        if (function->params.at[i]) {
            text_string(out, " : ");
            print_value(printer, function->params.at[i], true, (Position){0});
        }
        text_string(out, "\n");
    }
    for (int i = 0; i < function->ops.count; i++)
        print_op(printer, function->ops.at[i]);
    text_string(out, "  return");
    for (int i = 0; i < function->returns.count; i++) {
        text_string(out, i ? ", " : " ");
        print_ref(out, function->returns.at[i]);
    }
    text_string(out, "\n");
}

/* ---- operators, and what stands after them ---- */

static const char *const section_names[] = {[SECTION_FORWARD] = "forward", [SECTION_BACKWARD] = "backward", [SECTION_UPDATE] = "update"};

void print_conversion(Text *out, Type type, const Layout *from, const Layout *to)
{
    print_type(out, type);
    text_string(out, " from<");
    layout_print(out, from);
    text_string(out, "> to<");
    layout_print(out, to);
    text_string(out, ">");
}

static void print_ops(Printer *printer)
{
    const Module *module = printer->module;
    for (int i = 0; i < module->conversions.count; i++) {
        const PlannedConversion *conversion = module->conversions.at[i];
        text_print(printer->out, "plan %d ", i);
        print_conversion(printer->out, conversion->type, conversion->from, conversion->to);
        text_string(printer->out, "\n");
    }
    for (int i = 0; i < module->ops.count; i++)
        print_references(printer, module->ops.at[i]);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (i == 0 || module->ops.at[i - 1]->section != op->section)
            text_print(printer->out, "section %s\n", section_names[op->section]);
        print_op(printer, op);
    }
}

static void print_trained(Printer *printer, const Parameter *param)
{
    Text *out = printer->out;
    if (!param->gradient && !param->updated)
        return;
    text_print(out, "trained %%%d gradient ", param->value->id);
    print_ref(out, param->gradient);
    text_string(out, " updated ");
    print_ref(out, param->updated);
    for (int i = 0; i < param->state_count; i++) {
        text_string(out, ", ");
        print_ref(out, param->states_updated[i]);
    }
    text_string(out, "\n");
}

static void print_ends(Printer *printer)
{
    const Module *module = printer->module;
    for (int i = 0; i < module->outputs.count; i++) {
        text_string(printer->out, "output ");
        print_quoted(printer->out, module->outputs.at[i].name);
        text_print(printer->out, " %%%d\n", module->outputs.at[i].value->id);
    }
    if (module->loss)
        text_print(printer->out, "loss %%%d\n", module->loss->id);
    for (int i = 0; i < module->params.count; i++)
        print_trained(printer, module->params.at[i]);
}

/* ---- roles ---- */

static void print_role(Text *out, const Module *module, const Role *role)
{
    text_string(out, "role");
    for (int i = 0; i < role->device_count; i++)
        text_print(out, "%s%d", i ? "," : " ", role->devices[i]);
    text_print(out, " arena %lld\n", (long long)role->arena_bytes);
    text_string(out, role->offset ? "  offsets" : "");
    for (int i = 0; role->offset && i < module->next_id; i++)
        if (role->offset[i] >= 0)
            text_print(out, " %%%d:%lld", i, (long long)role->offset[i]);
    text_string(out, role->offset ? "\n" : "");
    text_string(out, role->scratch ? "  scratch" : "");
    for (int i = 0; role->scratch && i < module->ops.count; i++)
        if (role->scratch[i] >= 0)
            text_print(out, " %d:%lld", i, (long long)role->scratch[i]);
    text_string(out, role->scratch ? "\n" : "");
}

static void print_roles(Printer *printer)
{
    const Roles *roles = printer->module->roles;
    for (int i = 0; roles && i < roles->role_count; i++)
        print_role(printer->out, printer->module, &roles->at[i]);
}

void ir_print(Text *out, const Module *module)
{
    Printer printer = {.out = out, .scratch = arena_create(), .module = module};
    print_head(&printer);
    print_defs(&printer);
    if (module->mesh)
        print_mesh(&printer);
    for (int i = 0; i < module->params.count; i++)
        print_param(&printer, module->params.at[i]);
    for (int i = 0; i < module->inputs.count; i++)
        print_input(&printer, module->inputs.at[i]);
    for (int i = 0; i < module->gradients.count; i++)
        print_gradient(&printer, module->gradients.at[i]);
    print_ops(&printer);
    print_ends(&printer);
    print_roles(&printer);
    arena_destroy(printer.scratch);
}
