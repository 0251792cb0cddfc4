#include "passes/pipeline.h"

#include <string.h>

typedef struct Pass {
    const char *name;
    void (*run)(Module *);
} Pass;

/* The passes in order. */
static const Pass passes[] = {
    {"precision", pass_precision},         // element types
    {"differentiate", pass_differentiate}, // the backward and update sections
    {"tile", pass_tile},                   // sums of pieces
    {"refine", pass_refine},               // dimensions become factors
    {"microbatch", pass_microbatch},       // the loop over micro-batches
    {"place", pass_place},                 // layouts of what is given
    {"deduce", pass_deduce},               // layouts of the rest, and conversions
    {"fuse", pass_fuse},                   // elementwise operators together
    {"specialize", pass_specialize},       // roles and plans
    {"memory", pass_memory},               // storage
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

bool pass_run_one(Module *module, const char *name)
{
    for (int p = 0; p < PASS_COUNT; p++)
        if (!strcmp(passes[p].name, name)) {
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
