/* --resume: compiles models from an edited intermediate representation.
 *
 *     hetucc --emit=ir --stop-after=seed_layouts gpt.c -o gpt.ir
 *     (edit a layout in gpt.ir)
 *     hetucc --resume=gpt.ir gpt.c -o gpt
 *
 * hetucc reads the sources; the file's modules replace those of equal model and strategy. */
#include "driver/compile.h"

#include "ir/text/text.h"
#include "passes/pass_manager.h"
#include "strategy/strategy.h"
#include "support/reading.h"

#include <string.h>
#include <unistd.h>

static bool same_value(const Value *a, const Value *b) {
    return text_same(a->name, b->name) && type_elements(a->type) == type_elements(b->type);
}

/* Returns whether two strategies have the same text; NULL is the strategy of one device. */
static bool same_strategy(Arena *arena, const Strategy *a, const Strategy *b) {
    Text texts[2] = {{.arena = arena}, {.arena = arena}};
    if (a && b) {
        strategy_print(&texts[0], a, "");
        strategy_print(&texts[1], b, "");
    }
    return a == b || (a && b && !strcmp(text_bytes(&texts[0]), text_bytes(&texts[1])));
}

/* Returns what differs between two modules; NULL: their models and strategies are equal. */
static const char *find_difference(Arena *arena, const Module *own, const Module *read) {
    if (own->kind != read->kind || own->optimizer->state_count != read->optimizer->state_count ||
        own->optimizer->clip != read->optimizer->clip || own->precision != read->precision)
        return "ht_train or ht_infer";
    if (!same_strategy(arena, own->strategy, read->strategy)) return "strategy";
    bool params = own->params.count == read->params.count,
         inputs = own->inputs.count == read->inputs.count;
    for (int i = 0; params && i < own->params.count; i++)
        params = same_value(own->params.at[i]->value, read->params.at[i]->value);
    for (int i = 0; inputs && i < own->inputs.count; i++)
        inputs = same_value(own->inputs.at[i], read->inputs.at[i]);
    return !params ? "list of parameters" : !inputs ? "list of inputs" : NULL;
}

/* Returns whether a file is a source of the command line. */
static bool is_source(const Options *options, const char *file) {
    for (int i = 0; i < options->cc.items.count; i++)
        if (options->cc.items.at[i].kind == ITEM_SOURCE &&
            text_same(options->cc.items.at[i].text, file))
            return true;
    return false;
}

/* Returns the unit's module that a module of the file replaces. It has the same model and, if
 * possible, the same kind and strategy. NULL: the unit lacks the model. */
static Module **find_own(Arena *arena, Unit *unit, const Module *read) {
    Module **own = NULL;
    for (int i = 0; i < unit->modules.count; i++) {
        Module **module = &unit->modules.at[i];
        bool alike = !strcmp((*module)->name, read->name);
        if (alike && (!own || (*module)->kind == read->kind) &&
            (!own || same_strategy(arena, (*module)->strategy, read->strategy)))
            own = module;
    }
    return own;
}

static void resume_module(Driver *driver, Unit *unit, const ReadModule *read) {
    Module *module = read->module, **own = find_own(driver->arena, unit, module);
    const char *difference = own ? find_difference(driver->arena, *own, module) : NULL;
    if (!own)
        diag_error(driver->diag, read->at, "%s has no model \"%s\"", unit->file, module->name);
    else if (difference)
        diag_error(driver->diag, read->at, "the model \"%s\" of %s has another %s than this module",
                   module->name, unit->file, difference);
    else if (passes_check(module, read->at)) {
        module->devices->target = (*own)->devices->target;
        unit_links(unit, *own)->variants = NULL;
        module->source->captured_globals = (*own)->source->captured_globals;
        module->optimizer->groups.at = (*own)->optimizer->groups.at;
        module->optimizer->groups.count = module->optimizer->groups.capacity =
            (*own)->optimizer->groups.count;
        module->optimizer->averaged = (*own)->optimizer->averaged;
        *own = module;
    }
}

bool unit_resume(Driver *driver, Unit *unit) {
    const char *file = driver->options->resume;
    ReadModules modules = {0};
    InputText text = reading_text(driver->arena, READ_PIPES, file, 1 << 28);
    if (!text.bytes) {
        diag_error(driver->diag, (Position){0}, "cannot read %s: %s", file, text.why);
        return false;
    }
    if (!ir_parse(driver->arena, driver->diag, file, text.bytes, &modules)) return false;
    for (int i = 0; i < modules.count; i++) {
        const ReadModule *read = &modules.at[i];
        if (text_same(read->module->source->file, unit->file)) resume_module(driver, unit, read);
        else if (!is_source(driver->options, read->module->source->file))
            diag_error(
                driver->diag, read->at, "%s, which this module is of, is not among the sources",
                read->module->source->file ? read->module->source->file : "a file without name");
    }
    return !diag_errors(driver->diag);
}
