#include "ir/optimizer_placeholders.h"

const OpDef *placeholder_def(Module *module, OptimizerPlaceholder given) {
    static const struct {
        const char *name, *rule;
    } texts[] = {[PLACEHOLDER_GRADIENT] = {"gradient", "g[i..] = p[i..]"},
                 [PLACEHOLDER_NORM] = {"gradient_norm", "n[] = p[i..] * p[i..]"},
                 [PLACEHOLDER_UPDATED] = {"updated", "q[i..] = p[i..]"}};
    return module_def(module, rule_inserted(module->arena, texts[given].name, texts[given].rule));
}
