/* Makes a module for each model and strategy. Finds which optimizer updates each parameter (its
 * group), and in which precision the model computes; passes/precision.c then applies bf16. */
#include "frontend/models.h"

#include "frontend/eval/eval.h"
#include "frontend/state/state.h"
#include "frontend/strategies.h"
#include "ir/unit.h"

#include <fnmatch.h>
#include <string.h>

/* ---- arguments of ht_train and ht_infer ---- */

enum { MOST_GROUPS = 8 }; // HT_GROUPS of hetu.h

typedef struct Optimizer {
    const char *names;                        // pattern of parameters; NULL: all others
    const OpDef *update;                      // NULL: `rule` updates parameters
    const CFunction *rule, *after, *function; // NULL: not given; `function`: the update operator
    const char *rule_name, *after_name;       // names in programs; NULL: programs use the addresses
    int states;
    bool clipped;
} Optimizer;

typedef struct Arguments {
    const ModelCall *call;
    const CFunction *function;
    Array(Optimizer) optimizers; // first the one whose `names` is NULL
    DType precision;
    bool averaged;
} Arguments;

/* Returns a member of a struct argument; the member may be unknown. An unknown struct is an error,
 * whose message begins with `what`, such as "the optimizer is". */
static Val member(Eval *ev, const CExpr *expr, Val value, const char *what, const char *name) {
    CField field;
    if (value.unknown || !ctype_field(value.type, name, &field))
        eval_error(ev, expr->at, "%s not known at compile time", what);
    Place place = {value.place.object, value.place.offset + field.offset};
    return place_load(ev, place, field.type, expr->at);
}

static Val optimizer_member(Eval *ev, const CExpr *expr, Val value, const char *name) {
    Val found = member(ev, expr, value, "the optimizer is", name);
    if (found.unknown)
        eval_error(ev, expr->at,
                   "the optimizer's \"%s\" is not known at compile time; only its numbers may be "
                   "chosen at run time",
                   name);
    return found;
}

/* Checks the signature of an update operator: (p, g, states..., ?norm) -> (p, states...). */
static void check_update(Eval *ev, const CExpr *expr, const Optimizer *optimizer) {
    const Rule *rule = optimizer->update->rule;
    int least = 2 + optimizer->states;
    bool norm = rule->operand_count == least + 1 && rule->operands[least].optional;
    if (optimizer->states < 0 || optimizer->states > 4)
        eval_error(ev, expr->at, "an optimizer of %d states; 0 to 4 are possible",
                   optimizer->states);
    if (rule->result_count != 1 + optimizer->states || (rule->operand_count != least && !norm)) {
        diag_error(ev->diag, expr->at,
                   "the operator %s does not fit an optimizer of %d states: (p, g, states..., "
                   "?norm) -> (p, states...)",
                   optimizer->update->name, optimizer->states);
        diag_note(ev->diag, optimizer->update->at, "its rule is here");
        eval_fail(ev);
    }
    if (optimizer->clipped && !norm)
        eval_error(ev, expr->at,
                   "the operator %s takes no gradient norm, so gradients cannot be clipped",
                   optimizer->update->name);
}

/* Returns the function that the optimizer's member `name` points to; NULL for a null pointer. */
static const CFunction *function_member(Eval *ev, const CExpr *expr, Val value, const char *name) {
    uint64_t pointer = optimizer_member(ev, expr, value, name).i;
    return pointer ? pointer_function(ev, pointer) : NULL;
}

/* Returns the name that the optimizer gives to one of its rules; NULL when it gives no name. */
static const char *rule_name(Eval *ev, const CExpr *expr, Val value, const CFunction *rule,
                             const char *name) {
    uint64_t pointer = rule ? optimizer_member(ev, expr, value, name).i : 0;
    return pointer ? arena_string(ev->arena, pointer_string(ev, pointer, expr->at)) : NULL;
}

/* Refuses a nameless rule that is static in another file: this file cannot take its address. */
static void check_rule(Eval *ev, const CExpr *expr, const CFunction *rule, const char *name,
                       const char *member) {
    if (!rule || name || rule->library || !rule->part || !rule->is_static) return;
    diag_error(ev->diag, expr->at,
               "the optimizer has a rule, %s, that is static in another file than this one, and "
               "has no name",
               rule->name);
    diag_note(ev->diag, rule->at,
              "it is defined here; leave out `static`, and declare it in a header, or name it in "
              "the optimizer: .%s = \"%s\"",
              member, rule->name);
    eval_fail(ev);
}

static Optimizer read_optimizer(Eval *ev, const CExpr *expr, Val value) {
    Optimizer optimizer = {0};
    optimizer.function = function_member(ev, expr, value, "update");
    optimizer.rule = function_member(ev, expr, value, "rule");
    optimizer.after = function_member(ev, expr, value, "after");
    optimizer.rule_name = rule_name(ev, expr, value, optimizer.rule, "rule_name");
    optimizer.after_name = rule_name(ev, expr, value, optimizer.after, "after_name");
    check_rule(ev, expr, optimizer.rule, optimizer.rule_name, "rule_name");
    check_rule(ev, expr, optimizer.after, optimizer.after_name, "after_name");
    optimizer.states = (int)optimizer_member(ev, expr, value, "states").i;
    optimizer.clipped = optimizer_member(ev, expr, value, "clipped").i;
    if (optimizer.rule && optimizer.function)
        eval_error(ev, expr->at, "an optimizer has an operator that updates, or a rule, not both");
    if (optimizer.rule) return optimizer;
    if (!optimizer.function || !optimizer.function->op)
        eval_error(ev, expr->at, "the optimizer's update is no operator");
    optimizer.update = optimizer.function->op->def;
    check_update(ev, expr, &optimizer);
    return optimizer;
}

/* Counts an operator's integer parameters. One that updates a group needs `decay` and `first`. */
static int integer_count(const OpDef *def) {
    int count = 0;
    for (int i = 0; i < def->param_count; i++) count += def->params[i].kind == PARAM_INT;
    return count;
}

/* Checks that all groups updated by an operator have the same operator, which takes `first`. */
static void check_group(Eval *ev, const CExpr *expr, const Arguments *arguments,
                        const Optimizer *optimizer) {
    const Optimizer *other = NULL;
    for (int g = 0; g < arguments->optimizers.count && !other; g++)
        if (arguments->optimizers.at[g].update) other = &arguments->optimizers.at[g];
    if (other && optimizer->update &&
        (other->update != optimizer->update || other->states != optimizer->states))
        eval_error(ev, expr->at,
                   "one program has one optimizer that is an operator: %s and %s are two; others "
                   "are rules",
                   other->update->name, optimizer->update->name);
    if (optimizer->update && integer_count(optimizer->update) < 2)
        eval_error(ev, expr->at,
                   "the operator %s is of no group: it does not take the first of its numbers "
                   "behind `decay`",
                   optimizer->update->name);
}

static void read_groups(Eval *ev, const CExpr *expr, Val options, Arguments *arguments) {
    Val groups = member(ev, expr, options, "the groups are", "groups");
    int64_t count = (int64_t)member(ev, expr, groups, "the groups are", "count").i;
    Val at = member(ev, expr, groups, "the groups are", "at");
    if (count < 0 || count >= MOST_GROUPS)
        eval_error(ev, expr->at, "%lld groups; a program has at most %d", (long long)count,
                   MOST_GROUPS - 1);
    for (int64_t g = 0; g < count; g++) {
        const CType *type = at.type->base;
        Place place = pointer_place(ev, at.i, (g + 1) * type->size, expr->at);
        Val group = {.type = type, .place = {place.object, place.offset + g * type->size}};
        Optimizer optimizer =
            read_optimizer(ev, expr, member(ev, expr, group, "the groups are", "optimizer"));
        optimizer.names = arena_string(
            ev->arena,
            pointer_string(ev, member(ev, expr, group, "the groups are", "names").i, expr->at));
        check_group(ev, expr, arguments, &optimizer);
        array_push(ev->arena, &arguments->optimizers, optimizer);
    }
}

/* Returns the position of `dtype` in a call's options or, if they lack it, of the options. */
static Position precision_at(const CExpr *options) {
    const CExpr *list = options->kind == C_LITERAL ? options->a : options,
                *value = list->kind == C_INIT ? cexpr_member(list, 0, "dtype") : NULL;
    return value ? value->at : options->at;
}

/* Returns the type in which the model computes, from the call's options. */
static DType read_precision(Eval *ev, const CExpr *expr, Val options) {
    Position at = precision_at(expr);
    Val dtype = member(ev, expr, options, "the options of a program are", "dtype");
    if (dtype.unknown)
        eval_error(ev, at,
                   "the dtype of a program is not known at compile time; write HT_F32 or HT_BF16");
    if (dtype.i != DTYPE_F32 && dtype.i != DTYPE_BF16)
        eval_error(ev, at, "a program computes in HT_F32 or HT_BF16, not in %s",
                   dtype.i < DTYPE_COUNT ? dtype_name((DType)dtype.i) : "this type");
    return (DType)dtype.i;
}

static void read_arguments(Eval *ev, void *data) {
    Arguments *arguments = data;
    const ModelCall *call = arguments->call;
    EvalFrame frame = {
        .function = call->inside, .slot_count = call->inside->slot_count, .lenient = true};
    frame.slots = arena_array(ev->scratch, Object *, frame.slot_count + 1);
    ev->frame = &frame;
    ev->lenient = true;
    Val function = eval(ev, call->expr->args.at[1]);
    arguments->function = function.unknown ? NULL : pointer_function(ev, function.i);
    if (!arguments->function)
        eval_error(ev, call->expr->args.at[1]->at,
                   "the model function is not known at compile time; name it in the call");
    if (!arguments->function->body)
        eval_bodiless(ev, call->expr->args.at[1]->at, arguments->function);
    const CExpr *expr = call->expr->args.at[call->expr->args.count - 1];
    if (call->train) {
        const CExpr *optimizer = call->expr->args.at[2];
        array_push(ev->arena, &arguments->optimizers,
                   read_optimizer(ev, optimizer, eval(ev, optimizer)));
    }
    Val options = eval(ev, expr);
    if (call->train) read_groups(ev, expr, options, arguments);
    arguments->precision = read_precision(ev, expr, options);
    arguments->averaged =
        !call->train && member(ev, expr, options, "the options of a program are", "averaged").i;
    ev->frame = NULL;
}

/* ---- modules ---- */

static void check_loss(Module *module, const Value *loss) {
    bool floating = loss->type.dtype != DTYPE_I32 && loss->type.dtype != DTYPE_I64;
    if (loss->type.rank == 0 && floating) return;
    if (floating)
        diag_error(module->diag, module->source->at,
                   "the loss that %s gives is no scalar: it has %d dimension%s", module->name,
                   loss->type.rank, loss->type.rank == 1 ? "" : "s");
    else
        diag_error(module->diag, module->source->at,
                   "the loss that %s gives is of type %s, not a floating-point one", module->name,
                   dtype_name(loss->type.dtype));
    diag_note(module->diag, loss->at, "the value is made here; ht_mean makes a scalar of a tensor");
}

static void finish_module(Module *module, Value *value) {
    if (module->kind == MODULE_TRAIN) {
        module->loss = value;
        check_loss(module, value);
        return;
    }
    int count = module->outputs.count;
    array_push(module->arena, &module->outputs, (Output){0});
    memmove(module->outputs.at + 1, module->outputs.at, sizeof *module->outputs.at * (size_t)count);
    module->outputs.at[0] = (Output){.name = "", .value = value};
}

/* ---- optimizers ---- */

static void take_optimizers(Module *module, const Arguments *arguments) {
    for (int g = 0; g < arguments->optimizers.count; g++) {
        const Optimizer *optimizer = &arguments->optimizers.at[g];
        const CFunction *function = optimizer->rule ? optimizer->rule : optimizer->function;
        array_push(module->arena, &module->optimizer->groups,
                   (ParamGroup){optimizer->names, arena_string(module->arena, function->name),
                                optimizer->after
                                    ? arena_string(module->arena, optimizer->after->name)
                                    : NULL,
                                optimizer->rule_name, optimizer->after_name});
        module->optimizer->clip |= optimizer->clipped;
        if (!optimizer->update) continue;
        module->optimizer->op = module_def(module, optimizer->update);
        module->optimizer->state_count = optimizer->states;
    }
}

/* Returns the group of a parameter: the first whose pattern matches its name, else group 0. */
static int find_group(const Module *module, const Parameter *param) {
    for (int g = 1; g < module->optimizer->groups.count; g++)
        if (!fnmatch(module->optimizer->groups.at[g].names, param->name, 0)) return g;
    return 0;
}

/* Reports each group, except the first, to which no trained parameter belongs. */
static void check_groups(const Module *module, const CExpr *options, const bool *used) {
    for (int g = 1; g < module->optimizer->groups.count; g++)
        if (!used[g])
            diag_error(module->diag, options->at,
                       "no parameter of %s that is trained belongs to the group \"%s\"",
                       module->name, module->optimizer->groups.at[g].names);
}

/* Assigns parameters to groups and evaluates their optimizers' rules. Returns false on error. */
static bool evaluate_rules(Eval *ev, const Arguments *arguments) {
    Module *module = ev->module;
    bool used[MOST_GROUPS] = {false};
    for (int i = 0, count = module->params.count; module->kind == MODULE_TRAIN && i < count; i++) {
        Parameter *param = module->params.at[i];
        if (param->frozen) continue;
        param->group = find_group(module, param);
        used[param->group] = true;
        const Optimizer *optimizer = &arguments->optimizers.at[param->group];
        if ((optimizer->rule || optimizer->after) &&
            !eval_update(ev, param, optimizer->rule, optimizer->after))
            return false;
    }
    check_groups(module, arguments->call->expr->args.at[arguments->call->expr->args.count - 1],
                 used);
    return true;
}

/* Gives the module the operators with clause `shift` or `row`, to slice and concatenate tensors. */
static void give_movers(const CUnit *cunit, Module *module) {
    for (int i = 0; i < cunit->operators.count; i++) {
        const OpDef *def = cunit->operators.at[i]->def;
        if (def->rule->kind == RULE_CALL && (def->rule->copy.shift || def->rule->copy.row >= 0))
            array_push(module->arena, &module->source->slice_concat_ops, def);
    }
}

typedef struct Again {
    const FrontendOptions *options;
    const Arguments *arguments;
} Again;

static Module *evaluate(CUnit *cunit, const FrontendOptions *options, const Strategy *strategy,
                        const Arguments *arguments, bool notes);

static Module *evaluate_again(CUnit *cunit, const Module *module, void *data) {
    const Again *again = data;
    return evaluate(cunit, again->options, module->strategy, again->arguments, false);
}

/* Returns a model evaluated with the current shape variables, incomplete after an error. With
 * `notes`, records which variables of the program the evaluation reads and changes. */
static Module *evaluate(CUnit *cunit, const FrontendOptions *options, const Strategy *strategy,
                        const Arguments *arguments, bool notes) {
    const CFunction *function = arguments->function;
    Module *module = module_create(cunit->arena, cunit->diag, function->name);
    module->kind = arguments->call->train ? MODULE_TRAIN : MODULE_INFER;
    module->source->file = options->part.file;
    module->source->at = function->at;
    module->strategy = strategy;
    module->precision = arguments->precision;
    module->optimizer->averaged = arguments->averaged;
    take_optimizers(module, arguments);
    Eval *ev = eval_create(cunit, module);
    Value *value = eval_model(ev, function);
    if (value && !evaluate_rules(ev, arguments)) value = NULL;
    for (int i = 0; i < ev->build.updates.count; i++)
        array_push(module->arena, &module->ops, ev->build.updates.at[i]);
    if (value) {
        finish_module(module, value);
        give_movers(cunit, module);
        padding_give(cunit, module);
    }
    if (value && notes) {
        state_note(ev, function);
        state_reads(ev);
    }
    eval_destroy(ev);
    ir_number(module);
    return module;
}

static void make_module(CUnit *cunit, Unit *unit, const FrontendOptions *options,
                        const Strategy *strategy, const Arguments *arguments) {
    Module *module = evaluate(cunit, options, strategy, arguments, true);
    unit_add(unit, module);
    if (module->loss && strategy && strategy_has_lengths(strategy) && !diag_errors(cunit->diag)) {
        lengths_evaluate(cunit, module, unit_links(unit, module),
                         &(Evaluator){evaluate_again, &(Again){options, arguments}});
        strategies_give_shapes(cunit, strategy);
    }
}

/* Returns whether a module of the function failed already: the errors would be the same. */
static bool has_failed(const Unit *unit, const CFunction *function) {
    for (int i = 0; i < unit->modules.count; i++) {
        const Module *module = unit->modules.at[i];
        if (!strcmp(module->name, function->name) && !module->loss &&
            !(module->outputs.count && !*module->outputs.at[0].name))
            return true;
    }
    return false;
}

/* Returns whether some model could not be evaluated. */
static bool any_failed(const Unit *unit) {
    bool failed = false;
    for (int i = 0; i < unit->modules.count; i++) {
        const Module *module = unit->modules.at[i];
        failed |= !module->loss && !(module->outputs.count && !*module->outputs.at[0].name);
    }
    return failed;
}

static bool same_optimizer(const Module *module, int g, const Optimizer *optimizer) {
    const ParamGroup *group = &module->optimizer->groups.at[g];
    const CFunction *function = optimizer->rule ? optimizer->rule : optimizer->function;
    return text_same(group->names, optimizer->names) &&
           text_same(group->function, function->name) &&
           text_same(group->after, optimizer->after ? optimizer->after->name : NULL) &&
           text_same(group->function_name, optimizer->rule_name) &&
           text_same(group->after_name, optimizer->after_name);
}

/* Returns whether a module fits a call: in strategy, model, kind, precision and optimizers. */
static bool is_program(const Module *module, const Strategy *strategy, const Arguments *arguments) {
    if (module->strategy != strategy ||
        module->kind != (arguments->call->train ? MODULE_TRAIN : MODULE_INFER) ||
        strcmp(module->name, arguments->function->name) ||
        module->precision != arguments->precision ||
        module->optimizer->averaged != arguments->averaged ||
        module->optimizer->groups.count != arguments->optimizers.count)
        return false;
    bool same = true, clipped = false;
    for (int g = 0; g < module->optimizer->groups.count; g++) {
        const Optimizer *optimizer = &arguments->optimizers.at[g];
        same = same && same_optimizer(module, g, optimizer) &&
               (!optimizer->update || optimizer->states == module->optimizer->state_count);
        clipped |= optimizer->clipped;
    }
    return same && module->optimizer->clip == clipped;
}

static bool is_known(const Unit *unit, const Strategy *strategy, const Arguments *arguments) {
    for (int i = 0; i < unit->modules.count; i++)
        if (is_program(unit->modules.at[i], strategy, arguments)) return true;
    return false;
}

typedef Array(Arguments) Programs; // the programs that calls need

static void add_program(CUnit *cunit, const ModelCall *call, Programs *programs) {
    Arguments arguments = {.call = call};
    Eval *ev = eval_create(cunit, NULL);
    if (eval_try(ev, read_arguments, &arguments)) array_push(cunit->arena, programs, arguments);
    eval_destroy(ev);
}

/* Makes the programs' modules under a strategy, except known ones and those of failed models. */
static void make_modules(CUnit *cunit, Unit *unit, const FrontendOptions *options,
                         const Strategy *strategy, const Programs *programs) {
    strategies_give_shapes(cunit, strategy);
    for (int i = 0; i < programs->count; i++)
        if (!is_known(unit, strategy, &programs->at[i]) &&
            !has_failed(unit, programs->at[i].function))
            make_module(cunit, unit, options, strategy, &programs->at[i]);
}

/* ---- the same model under several strategies ---- */

/* Returns whether a module has the parameters of the same model under another strategy, so that a
 * switch keeps the trained values. Reports the first that differs. */
static bool parameters_agree(const Module *module, const Module *other) {
    const char *here = module->strategy->name, *there = other->strategy->name;
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *own = module->params.at[i], *its = module_param(other, own->name);
        if (its && !strcmp(own->shape, its->shape) && own->init == its->init && own->a == its->a)
            continue;
        if (!its)
            diag_error(
                module->diag, own->value->at,
                "%s has the parameter \"%s\" under strategy \"%s\", and not under strategy \"%s\"",
                module->name, own->name, here, there);
        else if (strcmp(own->shape, its->shape))
            diag_error(module->diag, own->value->at,
                       "the parameter \"%s\" has the shape %s under strategy \"%s\", and %s under "
                       "strategy \"%s\"; give it a size that depends on no shape variable",
                       own->name, own->shape, here, its->shape, there);
        else
            diag_error(module->diag, own->value->at,
                       "the parameter \"%s\" is initialised otherwise under strategy \"%s\" than "
                       "under strategy \"%s\"",
                       own->name, here, there);
        return false;
    }
    return true;
}

/* Reports parameters of a model that differ between a strategy and the first strategy. */
static void check_parameters(const Unit *unit) {
    for (int i = 0; i < unit->modules.count; i++)
        for (int first = 0; first < i; first++) {
            const Module *before = unit->modules.at[first], *module = unit->modules.at[i];
            bool pair = before->strategy == unit->strategies.at[0] &&
                        module->strategy != before->strategy && module_same_program(before, module);
            if (pair && parameters_agree(module, before)) parameters_agree(before, module);
        }
}

/* Returns whether a model is trained on several devices, so that HETU_BALANCE=1 can balance it. */
static bool trains_on_several(const Unit *unit) {
    for (int m = 0; m < unit->modules.count; m++) {
        const Module *module = unit->modules.at[m];
        if (module->kind == MODULE_TRAIN && module->strategy &&
            strategy_device_count(module->strategy) > 1)
            return true;
    }
    return false;
}

void models_read(CUnit *cunit, Unit *unit, const FrontendOptions *options) {
    Programs programs = {0};
    changes_find(cunit);
    ModelCalls calls = models_find(cunit);
    unit->asks = calls.prepares;
    for (int i = 0; i < calls.list.count; i++) add_program(cunit, &calls.list.at[i], &programs);
    for (int s = 0; s < unit->strategies.count; s++)
        make_modules(cunit, unit, options, unit->strategies.at[s], &programs);
    if (!unit->strategies.count) make_modules(cunit, unit, options, NULL, &programs);
    unit->prepares = unit->asks || trains_on_several(unit);
    state_check(cunit);
    if (!diag_errors(cunit->diag) || !any_failed(unit))
        padding_check(cunit, unit->modules.at, unit->modules.count);
    if (unit->strategies.count > 1 && !diag_errors(cunit->diag)) check_parameters(unit);
    for (int m = 0; m < unit->modules.count; m++)
        unit->modules.at[m]->optimizer->norm =
            calls.norm && unit->modules.at[m]->kind == MODULE_TRAIN;
}
