#include "frontend/models.h"

#include "frontend/eval/eval.h"
#include "frontend/state/state.h"
#include "frontend/state/walk.h"

#include <string.h>

/* ---- operators with a body ---- */

typedef struct BodyCheck {
    CUnit *unit;
    const CFunction *function;
    const RuleKernel *kernel; // of plain C
} BodyCheck;

/* What a list gives the member number `index`, called `name`. */
static const CExpr *member_value(const CExpr *list, int index, const char *name)
{
    const CExpr *found = NULL;
    int next = 0;
    for (int i = 0; i < list->args.count; i++) {
        const CExpr *value = list->args.at[i];
        if (value->kind == C_DESIGNATED) {
            next = -1000;
            if (value->designators.count == 1 && value->designators.at[0].field && !strcmp(value->designators.at[0].field, name))
                found = value->a;
        } else if (next++ == index) {
            found = value;
        }
    }
    return found;
}

static void check_named(BodyCheck *check, const CExpr *list, const CExpr *value, const char *clause, const char *wanted)
{
    const CFunction *function = cexpr_function(value);
    bool none = !wanted || !strcmp(wanted, "none");
    if (none ? !function : function && !strcmp(function->name, wanted))
        return;
    diag_error(check->unit->diag, value ? value->at : list->at, "the body of %s uses %s as its %s, its rule %s", check->function->name, function ? function->name : "nothing",
               clause, none ? "none" : wanted);
    diag_note(check->unit->diag, check->function->op->def->at, "the rule is here");
}

static void check_application(const CExpr *expr, void *data)
{
    BodyCheck *check = data;
    if (expr->kind != C_INIT || strcmp(expr->type->name, "struct ht_application"))
        return;
    const Rule *rule = check->function->op->def->rule;
    if (rule->kind == RULE_CALL)
        check_named(check, expr, member_value(expr, 0, "kernel"), "kernel", check->kernel ? check->kernel->function : NULL);
    if (rule->kind == RULE_CALL || rule->grad)
        check_named(check, expr, member_value(expr, 1, "gradient"), "gradient", rule->grad);
}

/* The function that a rule names at `at`; NULL, after an error, where the translation unit declares none. */
static const CFunction *declared(CUnit *unit, const char *name, Position at, const char *prototype)
{
    Array(const char *) names = {0};
    const CFunction *function = cunit_lookup(unit, name).function;
    if (function)
        return function;
    for (int i = 0; i < unit->functions.count; i++)
        array_push(unit->arena, &names, unit->functions.at[i]->library || unit->functions.at[i]->system ? NULL : unit->functions.at[i]->name);
    const char *closest = diag_closest(name, names.at, names.count);
    diag_error(unit->diag, at, "no function \"%s\" is declared in this file", name);
    if (closest)
        diag_note(unit->diag, at, "did you mean \"%s\"?", closest);
    else
        diag_note(unit->diag, at, "declare it: %s", arena_format(unit->arena, prototype, name));
    return NULL;
}

/* The gradient that a rule names must be declared; a model that is trained needs its body, too. */
static void check_gradient(CUnit *unit, const Rule *rule)
{
    if (rule->grad && strcmp(rule->grad, "none"))
        declared(unit, rule->grad, rule->grad_at, "void %s(ht_grad *g);");
}

/* "'cpu' or 'cuda'" */
static const char *backend_words(Arena *arena, const char *const *backends)
{
    const char *words = arena_format(arena, "'%s'", *backends);
    while (*++backends)
        words = arena_format(arena, backends[1] ? "%s, '%s'" : "%s or '%s'", words, *backends);
    return words;
}

/* The back ends that a rule names kernels for must be there. */
static void check_backends(CUnit *unit, const Rule *rule, const char *const *backends)
{
    int count = 0;
    while (backends[count])
        count++;
    for (int k = 0; k < rule->kernel_count; k++) {
        const RuleKernel *kernel = &rule->kernels[k];
        bool known = !kernel->backend;
        for (int b = 0; b < count; b++)
            known = known || !strcmp(kernel->backend, backends[b]);
        if (known)
            continue;
        diag_error(unit->diag, kernel->backend_at, "expected %s before ':', not '%s'", backend_words(unit->arena, backends),
                   kernel->backend);
        if (diag_closest(kernel->backend, backends, count))
            diag_note(unit->diag, kernel->backend_at, "did you mean \"%s\"?", diag_closest(kernel->backend, backends, count));
    }
}

/* The kernel for plain C must be declared, be one, and be visible to the program that calls it. */
static void check_kernel(CUnit *unit, const CFunction *operator, const RuleKernel * named)
{
    const COperator *op = operator->op;
    if (op->def->rule->kind == RULE_CALL && !named)
        diag_error(unit->diag, op->pragma->first->at,
                   "a rule of this form needs the clause kernel(f): the C function that computes it");
    const CFunction *kernel = named ? declared(unit, named->function, named->at, "void %s(const ht_call *call);") : NULL;
    if (!kernel)
        return;
    const CType *param = kernel->params.count == 1 ? kernel->params.at[0]->type : NULL;
    if (kernel->result->kind != CT_VOID || !param || param->kind != CT_POINTER || strcmp(param->base->name, "struct ht_call"))
        diag_error(unit->diag, kernel->at, "a kernel is a function void %s(const ht_call *call)", kernel->name);
    else if (kernel->is_static)
        diag_error(unit->diag, kernel->at, "the kernel %s is static, but is called from another file; leave out \"static\"", kernel->name);
    else
        return;
    diag_note(unit->diag, operator->op->def->at, "the rule of %s names it", operator->name);
}

void models_check_operators(CUnit *unit, const char *const *backends)
{
    for (int i = 0; i < unit->operators.count; i++) {
        const OpDef *def = unit->operators.at[i]->def;
        BodyCheck check = {unit, unit->operators.at[i]->function, rule_kernel(def->rule, backends[0])};
        if (!check.function->library) {
            check_backends(unit, def->rule, backends);
            check_kernel(unit, check.function, check.kernel);
            check_gradient(unit, def->rule);
        }
        walk_statement(check.function->body, check_application, &check);
    }
}

/* ---- the calls ---- */

typedef struct ModelCall {
    const CExpr *expr;
    const CFunction *inside;
    ModuleKind kind;
} ModelCall;

typedef struct Finder {
    CUnit *unit;
    const CFunction *inside;
    Array(ModelCall) calls;
} Finder;

static void find_call(const CExpr *expr, void *data)
{
    Finder *finder = data;
    const CFunction *function = expr->kind == C_CALL ? cexpr_function(expr->a) : NULL;
    if (!function || function->body)
        return;
    bool train = !strcmp(function->name, "ht_train_with"), infer = !strcmp(function->name, "ht_infer_with");
    if (expr->args.count == (train ? 4 : 3) && (train || infer))
        array_push(finder->unit->arena, &finder->calls, (ModelCall){expr, finder->inside, train ? MODULE_TRAIN : MODULE_INFER});
}

static void find_calls(CUnit *unit, Finder *finder)
{
    finder->unit = unit;
    for (int i = 0; i < unit->functions.count; i++) {
        finder->inside = unit->functions.at[i];
        if (!finder->inside->library)
            walk_statement(finder->inside->body, find_call, finder);
    }
}

bool models_exist(CUnit *unit)
{
    Finder finder = {0};
    find_calls(unit, &finder);
    return finder.calls.count > 0;
}

/* ---- the arguments ---- */

typedef struct Optimizer {
    const OpDef *update;
    int states;
    bool clipped;
} Optimizer;

typedef struct Arguments {
    const ModelCall *call;
    const CFunction *function;
    Optimizer optimizer;
    DType precision;
} Arguments;

/* A member of a struct that the call gives; unknown where it is not known at compile time. `what` is the struct, for messages. */
static Val member(Eval *ev, const CExpr *expr, Val value, const char *what, const char *name)
{
    CField field;
    if (value.unknown || !ctype_field(value.type, name, &field))
        eval_error(ev, expr->at, "%s not known at compile time", what);
    Place place = {value.place.object, value.place.offset + field.offset};
    return place_load(ev, place, field.type, expr->at);
}

static Val optimizer_member(Eval *ev, const CExpr *expr, Val value, const char *name)
{
    Val found = member(ev, expr, value, "the optimizer is", name);
    if (found.unknown)
        eval_error(ev, expr->at, "the optimizer's \"%s\" is not known at compile time; only its numbers may be chosen at run time", name);
    return found;
}

/* Checks the update operator: (p, g, states..., ?norm) -> (p, states...). */
static void check_update(Eval *ev, const CExpr *expr, const Optimizer *optimizer)
{
    const Rule *rule = optimizer->update->rule;
    int least = 2 + optimizer->states;
    bool norm = rule->operand_count == least + 1 && rule->operands[least].optional;
    if (optimizer->states < 0 || optimizer->states > 4)
        eval_error(ev, expr->at, "an optimizer of %d states; 0 to 4 are possible", optimizer->states);
    if (rule->result_count != 1 + optimizer->states || (rule->operand_count != least && !norm)) {
        diag_error(ev->diag, expr->at, "the operator %s does not fit an optimizer of %d states: (p, g, states..., ?norm) -> (p, states...)", optimizer->update->name,
                   optimizer->states);
        diag_note(ev->diag, optimizer->update->at, "its rule is here");
        eval_fail(ev);
    }
    if (optimizer->clipped && !norm)
        eval_error(ev, expr->at, "the operator %s takes no gradient norm, so gradients cannot be clipped", optimizer->update->name);
}

static void read_optimizer(Eval *ev, const CExpr *expr, Optimizer *optimizer)
{
    Val value = eval(ev, expr);
    const CFunction *update = pointer_function(ev, optimizer_member(ev, expr, value, "update").i);
    if (!update || !update->op)
        eval_error(ev, expr->at, "the optimizer's update is no operator");
    optimizer->update = update->op->def;
    optimizer->states = (int)optimizer_member(ev, expr, value, "states").i;
    optimizer->clipped = optimizer_member(ev, expr, value, "clipped").i;
    check_update(ev, expr, optimizer);
}

/* Where the call's options say the type; where they begin when they do not. */
static Position precision_at(const CExpr *options)
{
    const CExpr *list = options->kind == C_LITERAL ? options->a : options, *value = list->kind == C_INIT ? member_value(list, 0, "dtype") : NULL;
    return value ? value->at : options->at;
}

/* The type to compute in, of the call's options. */
static DType read_precision(Eval *ev, const CExpr *expr)
{
    Position at = precision_at(expr);
    Val dtype = member(ev, expr, eval(ev, expr), "the options of a program are", "dtype");
    if (dtype.unknown)
        eval_error(ev, at, "the dtype of a program is not known at compile time; write HT_F32 or HT_BF16");
    if (dtype.i != DTYPE_F32 && dtype.i != DTYPE_BF16)
        eval_error(ev, at, "a program computes in HT_F32 or HT_BF16, not in %s", dtype.i < DTYPE_COUNT ? dtype_name((DType)dtype.i) : "this type");
    return (DType)dtype.i;
}

static void read_arguments(Eval *ev, void *data)
{
    Arguments *arguments = data;
    const ModelCall *call = arguments->call;
    EvalFrame frame = {.function = call->inside, .slot_count = call->inside->slot_count, .lenient = true};
    frame.slots = arena_array(ev->scratch, Object *, frame.slot_count + 1);
    ev->frame = &frame;
    ev->lenient = true;
    Val function = eval(ev, call->expr->args.at[1]);
    arguments->function = function.unknown ? NULL : pointer_function(ev, function.i);
    if (!arguments->function)
        eval_error(ev, call->expr->args.at[1]->at, "the model function is not known at compile time; name it in the call");
    if (!arguments->function->body)
        eval_bodiless(ev, call->expr->args.at[1]->at, arguments->function);
    if (call->kind == MODULE_TRAIN)
        read_optimizer(ev, call->expr->args.at[2], &arguments->optimizer);
    arguments->precision = read_precision(ev, call->expr->args.at[call->expr->args.count - 1]);
    ev->frame = NULL;
}

/* ---- modules ---- */

static void check_loss(Module *module, const Value *loss)
{
    bool floating = loss->type.dtype != DTYPE_I32 && loss->type.dtype != DTYPE_I64;
    if (loss->type.rank == 0 && floating)
        return;
    if (floating)
        diag_error(module->diag, module->at, "the loss that %s gives is no scalar: it has %d dimension%s", module->name, loss->type.rank, loss->type.rank == 1 ? "" : "s");
    else
        diag_error(module->diag, module->at, "the loss that %s gives is of type %s, not a floating-point one", module->name, dtype_name(loss->type.dtype));
    diag_note(module->diag, loss->at, "the value is made here; ht_mean makes a scalar of a tensor");
}

static void finish_module(Module *module, Value *value)
{
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

static void make_module(CUnit *cunit, Unit *unit, const FrontendOptions *options, const Arguments *arguments)
{
    const CFunction *function = arguments->function;
    Module *module = module_create(cunit->arena, cunit->diag, function->name);
    module->kind = arguments->call->kind;
    module->source = options->file;
    module->at = function->at;
    module->strategy = unit->chosen;
    module->precision = arguments->precision;
    if (arguments->optimizer.update)
        module->update = module_def(module, arguments->optimizer.update);
    module->state_count = arguments->optimizer.states;
    module->clip = arguments->optimizer.clipped;
    Eval *ev = eval_create(cunit, module);
    Value *value = eval_model(ev, function);
    if (value) {
        finish_module(module, value);
        state_note(ev, function);
        state_reads(ev);
    }
    eval_destroy(ev);
    ir_number(module);
    array_push(unit->arena, &unit->modules, module);
}

/* Whether the module of the same function has failed already, for another kind: its errors would be the same. */
static bool has_failed(const Unit *unit, const CFunction *function)
{
    for (int i = 0; i < unit->modules.count; i++) {
        const Module *module = unit->modules.at[i];
        if (!strcmp(module->name, function->name) && !module->loss && !(module->outputs.count && !*module->outputs.at[0].name))
            return true;
    }
    return false;
}

/* Whether a module is the program that a call asks for: programs of one model differ by type and by kind of optimizer. */
static bool is_program(const Module *module, const Arguments *arguments)
{
    const Optimizer *optimizer = &arguments->optimizer;
    if (module->kind != arguments->call->kind || strcmp(module->name, arguments->function->name) || module->precision != arguments->precision)
        return false;
    return module->kind == MODULE_INFER ||
           (!strcmp(module->update->name, optimizer->update->name) && module->state_count == optimizer->states && module->clip == optimizer->clipped);
}

static bool is_known(const Unit *unit, const Arguments *arguments)
{
    for (int i = 0; i < unit->modules.count; i++)
        if (is_program(unit->modules.at[i], arguments))
            return true;
    return false;
}

void models_read(CUnit *cunit, Unit *unit, const FrontendOptions *options)
{
    Finder finder = {0};
    changes_find(cunit);
    find_calls(cunit, &finder);
    for (int i = 0; i < finder.calls.count; i++) {
        Arguments arguments = {.call = &finder.calls.at[i]};
        Eval *ev = eval_create(cunit, NULL);
        bool good = eval_try(ev, read_arguments, &arguments);
        eval_destroy(ev);
        if (!good)
            continue;
        if (!is_known(unit, &arguments) && !has_failed(unit, arguments.function))
            make_module(cunit, unit, options, &arguments);
    }
    state_check(cunit);
}
