/* Runs the passes, with --print-after, --stop-after and the verifier. pass_manager.h has their
 * order. No pass merges equal operators (differentiate/dead_code.c). */
#include "passes/pass_manager.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "support/hash.h"
#include "ir/programs/device_programs.h"

#include <string.h>

/* How far a module has been compiled. Each form has everything that the forms before it have. */
typedef enum Form {
    FORM_MODEL,       // as the frontend makes it; passes have only changed its operators
    FORM_FACTORED,    // every dimension is one factor
    FORM_SEEDED,      // meshes; layouts of parameters, inputs and states
    FORM_LAID_OUT,    // layouts of all values
    FORM_SPECIALIZED, // roles (device programs) and conversion plans
    FORM_SCHEDULED,   // pipeline schedules
    FORM_STORED       // memory offsets of all values
} Form;

typedef struct Pass {
    const char *name;
    void (*run)(Module *, const PassContext *);
    Form from, to, leaves; // takes forms from `from` to `to`, and leaves form `leaves`
} Pass;

#define PASS_ROW(name, from, to, leaves)                                                           \
    {#name, pass_##name, FORM_##from, FORM_##to, FORM_##leaves},
static const Pass passes[] = {PASSES(PASS_ROW)};

#define PASS_NUMBER(name, from, to, leaves) NUMBER_##name,
enum { PASSES(PASS_NUMBER) PASS_COUNT };

/* Prints a module under a heading if the options ask for it. */
static void dump(const Module *module, const PassOptions *options, const char *pass) {
    if (!options->print_after ||
        (strcmp(options->print_after, pass) && strcmp(options->print_after, "all")))
        return;
    Text text = {.arena = module->arena};
    ir_print(&text, module);
    fprintf(options->out, "// %s after %s\n%s", module->name, pass, text_bytes(&text));
}

/* Writes the index of the module's last pass to *last; -1: none. False: no pass has the name. */
static bool last_pass(const Module *module, int *last) {
    *last = -1;
    for (int p = 0; p < PASS_COUNT && module->last_pass; p++)
        if (!strcmp(passes[p].name, module->last_pass)) *last = p;
    return *last >= 0 || !module->last_pass;
}

/* Runs one pass. Records it as the module's last pass unless a later pass is recorded. */
static void run_pass(Module *module, const Pass *pass, const PassContext *context) {
    int last;
    pass->run(module, context);
    last_pass(module, &last);
    if (pass - passes > last) module->last_pass = pass->name;
}

/* Returns the hash of a module's text without its target; never 0. */
static uint64_t digest_of(const Module *module) {
    Text text = {.arena = module->arena};
    Module plain = *module;
    ModuleDevices devices = *module->devices;
    devices.target = (Target){0};
    plain.devices = &devices;
    ir_print(&text, &plain);
    uint64_t hash = hash_bytes(HASH_START, text.bytes, text.length);
    return hash ? hash : 1;
}

/* The modules that passes run over, and the options. */
typedef struct PassRunner {
    Unit *unit;
    const PassOptions *options;
} PassRunner;

/* Runs a pass over a module unless the module has been through it. Returns false after errors. */
static bool run(const PassRunner *runner, Module *module, const ModuleLinks *links,
                const Pass *pass) {
    int last;
    last_pass(module, &last);
    if (pass - passes <= last) return true;
    run_pass(module, pass, &(PassContext){&runner->options->compile, links});
    if (diag_errors(module->diag)) return false;
    if (runner->options->verify && !ir_verify(module))
        BUG("pass %s left %s malformed", pass->name, module->name);
    return true;
}

/* Runs a pass that comes before pass stage over the model's variants for pipelines with padding
 * lengths. Pass stage merges the variants into the module. Returns false after errors. */
static bool run_variants(const PassRunner *runner, const Module *module, const ModuleLinks *links,
                         const Pass *pass) {
    bool good = true;
    if (!links->variants || pass - passes >= NUMBER_stage) return true;
    for (int i = 0; good && i < module->strategy->pipelines.count; i++)
        if (links->variants[i].module)
            good = run(runner, links->variants[i].module, &(ModuleLinks){0}, pass);
    return good;
}

/* Runs a pass, unless it ran before or the module needs layouts only. First runs it over the module
 * of the statement `optimizer`. Then dumps and digests as the options ask. False: errors. */
static bool run_linked(const PassRunner *runner, Module *module, const Pass *pass) {
    ModuleLinks *links = unit_links(runner->unit, module);
    int last;
    last_pass(module, &last);
    if (pass - passes <= last || (links->layouts_only && pass->from > FORM_FACTORED)) return true;
    if (links->optimizer_program && !run_linked(runner, links->optimizer_program, pass))
        return false;
    if (!run(runner, module, links, pass) || !run_variants(runner, module, links, pass))
        return false;
    dump(module, runner->options, pass->name);
    if (runner->options->digest && pass->run == pass_seed_layouts)
        links->digest = digest_of(module);
    return true;
}

bool passes_run(Unit *unit, const PassOptions *options) {
    PassRunner runner = {unit, options};
    unit_find_optimizer_programs(unit);
    for (int p = 0; p < PASS_COUNT; p++) {
        bool left_out = passes[p].run == pass_fuse && options->no_fuse;
        for (int i = 0; i < unit->modules.count && !left_out; i++)
            run_linked(&runner, unit->modules.at[i], &passes[p]);
        if (diag_errors(unit->diag)) return false;
        if (options->stop_after && !strcmp(options->stop_after, passes[p].name)) break;
    }
    return true;
}

/* ---- modules from text ---- */

static bool inputs_laid_out(const Module *module) {
    for (int i = 0; i < module->inputs.count; i++)
        if (!module->inputs.at[i]->layout && module->inputs.at[i]->micro.kind == MICRO_WHOLE)
            return false;
    for (int i = 0; i < module->params.count; i++) {
        const Parameter *parameter = module->params.at[i];
        for (int s = 0; s < parameter->state_count; s++)
            if (!parameter->states[s]->layout) return false;
        if (!parameter->value->layout) return false;
    }
    return module->devices->mesh;
}

static bool results_laid_out(const Module *module) {
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            if (!module->ops.at[i]->results[r]->layout) return false;
    return true;
}

/* Returns whether every dimension of an operator's tensors is at most one factor. */
static bool op_factored(const Op *op) {
    for (int k = 0; k < op->operand_count + op->result_count; k++) {
        const BoundAccess *access = k < op->operand_count
                                        ? &op->binding->operands[k]
                                        : &op->binding->results[k - op->operand_count];
        for (int d = 0; d < access->rank; d++)
            if (access->dims[d].count > 1) return false;
    }
    return true;
}

static bool ops_factored(const Module *module) {
    for (int i = 0; i < module->ops.count; i++)
        if (!op_factored(module->ops.at[i])) return false;
    return true;
}

static bool roles_found(const Module *module) {
    bool found = module->devices->roles != NULL;
    for (int i = 0; i < module->ops.count; i++)
        found = found && (module->ops.at[i]->def != module->builtin->reshard ||
                          module->ops.at[i]->convert.plan);
    return found;
}

static bool runs_scheduled(const Module *module) {
    for (int r = 0; r < module->templates->runs.count; r++)
        if (!module->templates->runs.at[r].schedule) return false;
    return true;
}

static bool roles_have_storage(const Module *module) {
    for (int i = 0; i < module->devices->roles->role_count; i++)
        if (!module->devices->roles->at[i].offset) return false;
    return true;
}

/* The part that each form adds to the form before it, and the pass that adds the part. */
static const struct FormPart {
    const char *what, *pass;       // both for messages
    bool (*there)(const Module *); // returns whether a module has the part
} parts[] = {[FORM_FACTORED] = {"dimensions that are single factors", "factor_dims", ops_factored},
             [FORM_SEEDED] = {"layouts of what is given", "seed_layouts", inputs_laid_out},
             [FORM_LAID_OUT] = {"a layout of every value", "propagate_layouts", results_laid_out},
             [FORM_SPECIALIZED] = {"roles and plans", "specialize", roles_found},
             [FORM_SCHEDULED] = {"schedules of its pipelines", "schedule", runs_scheduled},
             [FORM_STORED] = {"storage", "memory", roles_have_storage}};

/* Writes a module's form to *form. Reports an error and returns false if the form lacks a part. */
static bool find_form(const Module *module, Position at, Form *form) {
    int last;
    if (!last_pass(module, &last)) {
        diag_error(module->diag, at,
                   "there is no pass \"%s\" that this module could have come through",
                   module->last_pass);
        return false;
    }
    *form = last < 0 ? FORM_MODEL : passes[last].leaves;
    for (Form part = FORM_FACTORED; part <= *form; part++)
        if (!parts[part].there(module)) {
            diag_error(module->diag, at, "this module is not as the pass %s leaves it: it lacks %s",
                       parts[part].pass, parts[part].what);
            return false;
        }
    return true;
}

bool passes_check(const Module *module, Position at) {
    Form form;
    return find_form(module, at, &form);
}

/* Reports an error and returns false where a pass cannot run over the module in its form. */
static bool check_form(const Module *module, const Pass *pass, Position at) {
    Form form;
    if (!find_form(module, at, &form)) return false;
    if (form < pass->from)
        diag_error(module->diag, at, "the pass %s needs %s: run %s first", pass->name,
                   parts[form + 1].what, parts[form + 1].pass);
    else if (form > pass->to)
        diag_error(module->diag, at, "the pass %s comes too late: this module has %s", pass->name,
                   parts[form].what);
    return form >= pass->from && form <= pass->to;
}

bool pass_run_one(Module *module, const char *name, Position at) {
    PassContext context = {&(CompileOptions){0}, &(ModuleLinks){0}};
    for (int p = 0; p < PASS_COUNT; p++)
        if (!strcmp(passes[p].name, name)) {
            if (check_form(module, &passes[p], at)) run_pass(module, &passes[p], &context);
            return true;
        }
    return false;
}

const char *const *pass_names(void) {
    static const char *names[PASS_COUNT + 1];
    for (int p = 0; p < PASS_COUNT; p++) names[p] = passes[p].name;
    return names;
}
