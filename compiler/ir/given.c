#include "ir/given.h"

const OpDef *given_def(Module *module, Given given)
{
    static const struct {
        const char *name, *rule;
    } texts[] = {[GIVEN_GRADIENT] = {"gradient", "g[i..] = p[i..]"},
                 [GIVEN_NORM] = {"gradient_norm", "n[] = p[i..] * p[i..]"},
                 [GIVEN_UPDATED] = {"updated", "q[i..] = p[i..]"}};
    return module_def(module, rule_inserted(module->arena, texts[given].name, texts[given].rule));
}
