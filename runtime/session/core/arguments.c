#include "session/core/arguments.h"

#include "base/fail.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_given(ht_tensor (*model)(void), const ht_program_options *options) {
    if (!model) ht_fail("a program was asked for with NULL for the model function");
    if (options->dtype != HT_F32 && options->dtype != HT_BF16)
        ht_fail("a program computes in HT_F32 or HT_BF16, not in type %d", (int)options->dtype);
}

static void check_optimizer(const ht_optimizer *optimizer) {
    if (!optimizer->rule && (!optimizer->update || !optimizer->kernel))
        ht_fail(
            "ht_train was called with an optimizer without a rule, and without update or kernel");
}

/* Whether parameters are updated by another operator than those of an optimizer whose update is
 * one. */
static bool updates_otherwise(const ht_optimizer *optimizer, const ht_optimizer *other) {
    return !optimizer->rule && !other->rule &&
           (optimizer->update != other->update || optimizer->states != other->states);
}

/* Rules stand beside any optimizer; of operators a program has one, as hetucc says, too. */
static void check_operators(const ht_optimizer *optimizer, ht_group_list groups) {
    for (int g = 0; g < groups.count; g++) {
        const ht_optimizer *own = &groups.at[g].optimizer, *other = optimizer;
        for (int k = 0; k < g && other->rule; k++) other = &groups.at[k].optimizer;
        if (updates_otherwise(own, other))
            ht_fail("one program has one optimizer that is an operator: %s and %s are two; others "
                    "are rules",
                    other->name ? other->name : "one", own->name ? own->name : "another");
    }
}

static void check_groups(ht_group_list groups) {
    if (groups.count < 0 || groups.count >= HT_GROUPS || (groups.count && !groups.at))
        ht_fail("ht_train was called with %d groups; there are at most %d", groups.count,
                HT_GROUPS - 1);
    for (int g = 0; g < groups.count; g++) {
        if (!groups.at[g].names) ht_fail("ht_train was called with NULL for the names of a group");
        check_optimizer(&groups.at[g].optimizer);
    }
}

void check_optimizers(const ht_optimizer *optimizer, ht_group_list groups) {
    check_optimizer(optimizer);
    check_groups(groups);
    check_operators(optimizer, groups);
}

void take_numbers(float *hyper, const ht_optimizer *optimizer, ht_group_list groups) {
    memcpy(hyper, optimizer->hyper, sizeof optimizer->hyper);
    for (int g = 0; g < groups.count; g++)
        memcpy(hyper + (ptrdiff_t)(1 + g) * HT_HYPER, groups.at[g].optimizer.hyper,
               sizeof optimizer->hyper);
}

char *optimizer_names(const ht_optimizer *optimizer, ht_group_list groups) {
    char *text = NULL;
    size_t length;
    FILE *out = optimizer->name ? open_memstream(&text, &length) : NULL;
    bool named = out && fputs(optimizer->name, out) >= 0;
    for (int g = 0; g < groups.count && named; g++) {
        named = groups.at[g].optimizer.name != NULL;
        if (named) fprintf(out, "; %s %s", groups.at[g].names, groups.at[g].optimizer.name);
    }
    named = out && !fclose(out) && named;
    if (!named) free(text);
    return named ? text : NULL;
}
