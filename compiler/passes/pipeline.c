#include "passes/pipeline.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"

#include "ir/roles.h"

#include <string.h>

/* How far a module has come. */
typedef enum Form {
    FORM_MODEL,       // what the frontend makes, and what changes operators only
    FORM_REFINED,     // dimensions are factors
    FORM_PLACED,      // what is given has layouts
    FORM_DEDUCED,     // everything has
    FORM_SPECIALIZED, // roles and plans are there
    FORM_STORED       // and storage
} Form;

typedef struct Pass {
    const char *name;
    void (*run)(Module *);
    Form from, to; // the forms that it takes
} Pass;

/* The passes in order. */
static const Pass passes[] = {
    {"precision", pass_precision, FORM_MODEL, FORM_REFINED},         // element types
    {"differentiate", pass_differentiate, FORM_MODEL, FORM_REFINED}, // the backward and update sections
    {"tile", pass_tile, FORM_MODEL, FORM_REFINED},                   // sums of pieces
    {"refine", pass_refine, FORM_MODEL, FORM_REFINED},               // dimensions become factors
    {"microbatch", pass_microbatch, FORM_REFINED, FORM_REFINED},     // the loop over micro-batches
    {"place", pass_place, FORM_REFINED, FORM_REFINED},               // layouts of what is given
    {"deduce", pass_deduce, FORM_PLACED, FORM_PLACED},               // layouts of the rest, and conversions
    {"fuse", pass_fuse, FORM_DEDUCED, FORM_DEDUCED},                 // elementwise operators together
    {"specialize", pass_specialize, FORM_DEDUCED, FORM_DEDUCED},     // roles and plans
    {"memory", pass_memory, FORM_SPECIALIZED, FORM_SPECIALIZED},     // storage
};

enum { PASS_COUNT = sizeof passes / sizeof *passes };

/* Prints a module under a heading, where the options ask for it. */
static void dump(const Module *module, const PassOptions *options, const char *pass)
{
    if (!options->print_after || (strcmp(options->print_after, pass) && strcmp(options->print_after, "all")))
        return;
    Text text = {.arena = module->arena};
    ir_print(&text, module);
    fprintf(options->out, "// %s after %s\n%s", module->name, pass, text_bytes(&text));
}

static bool run(Module *module, const Pass *pass, const PassOptions *options)
{
    pass->run(module);
    if (diag_errors(module->diag))
        return false;
    if (options->verify && !ir_verify(module))
        BUG("pass %s left %s malformed", pass->name, module->name);
    dump(module, options, pass->name);
    return true;
}

bool passes_run(Unit *unit, const PassOptions *options)
{
    for (int p = 0; p < PASS_COUNT; p++) {
        bool left_out = passes[p].run == pass_fuse && options->no_fuse;
        for (int i = 0; i < unit->modules.count && !left_out; i++)
            run(unit->modules.at[i], &passes[p], options);
        if (diag_errors(unit->diag))
            return false;
        if (options->stop_after && !strcmp(options->stop_after, passes[p].name))
            break;
    }
    return true;
}

/* ---- one pass alone ---- */

/* How many values of a kind a module has, and how many of these have a layout. */
typedef struct Count {
    int all, placed;
} Count;

static void count_value(Count *count, const Value *value)
{
    count->all++;
    count->placed += value->layout != NULL;
}

static Count count_given(const Module *module)
{
    Count count = {0};
    for (int i = 0; i < module->inputs.count; i++)
        count_value(&count, module->inputs.at[i]);
    for (int i = 0; i < module->params.count; i++) {
        count_value(&count, module->params.at[i]->value);
        for (int s = 0; s < module->params.at[i]->state_count; s++)
            count_value(&count, module->params.at[i]->states[s]);
    }
    return count;
}

static Count count_results(const Module *module)
{
    Count count = {0};
    for (int i = 0; i < module->ops.count; i++)
        for (int r = 0; r < module->ops.at[i]->result_count; r++)
            count_value(&count, module->ops.at[i]->results[r]);
    return count;
}

/* Whether no dimension of a call merges factors. */
static bool is_refined(const Op *op)
{
    for (int k = 0; k < op->operand_count + op->result_count; k++) {
        const BoundAccess *access = k < op->operand_count ? &op->binding->operands[k] : &op->binding->results[k - op->operand_count];
        for (int d = 0; d < access->rank; d++)
            if (access->dims[d].count > 1)
                return false;
    }
    return true;
}

/* The form that a module has come to with all of it, and the one that some of it has. */
static void find_form(const Module *module, Form *whole, Form *some)
{
    Count given = count_given(module), results = count_results(module);
    bool refined = true;
    for (int i = 0; i < module->ops.count; i++)
        refined = refined && is_refined(module->ops.at[i]);
    *some = module->roles ? FORM_SPECIALIZED : results.placed ? FORM_DEDUCED : given.placed ? FORM_PLACED : FORM_MODEL;
    *whole = !refined ? FORM_MODEL : given.placed < given.all ? FORM_REFINED : results.placed < results.all ? FORM_PLACED : FORM_DEDUCED;
    if (module->roles && *whole == FORM_DEDUCED)
        *whole = FORM_SPECIALIZED;
    for (int i = 0; module->roles && i < module->roles->role_count; i++)
        if (module->roles->at[i].offset)
            *some = FORM_STORED;
}

/* Whether a pass may run over a module as it is. */
static bool check_form(const Module *module, const Pass *pass, Position at)
{
    static const char *const lacks[] = {NULL,
                                        "dimensions that are single factors: run refine first",
                                        "layouts of what is given: run place first",
                                        "a layout of every value: run deduce first",
                                        "roles: run specialize first",
                                        NULL};
    static const char *const has[] = {NULL, NULL, "layouts of what is given", "layouts", "roles", "storage"};
    Form whole, some;
    find_form(module, &whole, &some);
    if (whole < pass->from)
        diag_error(module->diag, at, "the pass %s needs %s", pass->name, lacks[whole + 1]);
    else if (some > pass->to)
        diag_error(module->diag, at, "the pass %s comes too late: this module has %s", pass->name, has[some]);
    return whole >= pass->from && some <= pass->to;
}

bool pass_run_one(Module *module, const char *name, Position at)
{
    for (int p = 0; p < PASS_COUNT; p++)
        if (!strcmp(passes[p].name, name)) {
            if (check_form(module, &passes[p], at))
                passes[p].run(module);
            return true;
        }
    return false;
}

const char *const *pass_names(void)
{
    static const char *names[PASS_COUNT + 1];
    for (int p = 0; p < PASS_COUNT; p++)
        names[p] = passes[p].name;
    return names;
}
