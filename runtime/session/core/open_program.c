/* ht_train and ht_infer: check their arguments and open a program. */
#include "session/core/session.h"

#include "session/core/initial_strategy.h"
#include "base/memory.h"
#include "transport/world.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if there is no model, or the dtype is not supported. */
static void check_given(ht_tensor (*model)(void), const ht_program_options *options) {
    if (!model) ht_fail("a program was asked for with NULL for the model function");
    if (options->dtype != HT_F32 && options->dtype != HT_BF16)
        ht_fail("a program computes in HT_F32 or HT_BF16, not in type %d", (int)options->dtype);
}

static void check_optimizer(const ht_optimizer *optimizer) {
    if (!optimizer->rule && (!optimizer->update || !optimizer->kernel))
        ht_fail(
            "ht_train was called with an optimizer without a rule, and without update or kernel");
}

/* Returns whether two optimizers update parameters by different operators. */
static bool updates_otherwise(const ht_optimizer *optimizer, const ht_optimizer *other) {
    return !optimizer->rule && !other->rule &&
           (optimizer->update != other->update || optimizer->states != other->states);
}

/* Ends the program if two optimizers are different operators. An optimizer with a rule may be
 * combined with any other, as in hetucc. */
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

/* Ends the program if an optimizer has neither a rule nor an operator, or two optimizers are
 * different operators. Also ends it if there are too many groups, or a group has no names. */
static void check_optimizers(const ht_optimizer *optimizer, ht_group_list groups) {
    check_optimizer(optimizer);
    check_groups(groups);
    check_operators(optimizer, groups);
}

/* Writes to `hyper` HT_HYPER numbers for the optimizer, then HT_HYPER numbers for each group. */
static void take_numbers(float *hyper, const ht_optimizer *optimizer, ht_group_list groups) {
    memcpy(hyper, optimizer->hyper, sizeof optimizer->hyper);
    for (int g = 0; g < groups.count; g++)
        memcpy(hyper + (ptrdiff_t)(1 + g) * HT_HYPER, groups.at[g].optimizer.hyper,
               sizeof optimizer->hyper);
}

/* Returns the names of the optimizer and of the groups' optimizers, "adamw; *.norm lion"; free()
 * them. NULL: an optimizer has no name. */
static char *optimizer_names(const ht_optimizer *optimizer, ht_group_list groups) {
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

static ht_program *new_program(ht_session *open, bool trains) {
    ht_program *program = memory_array(1, sizeof *program);
    *program = (ht_program){.session = open, .trains = trains, .number = -1};
    open->handles = realloc(open->handles, sizeof program * (size_t)(open->handle_count + 1));
    if (!open->handles) ht_fail("no memory for another program");
    return open->handles[open->handle_count++] = program;
}

/* Opens a model without an image in the one-device library, which must be linked. */
static ht_program *open_eager(ht_session *open, ht_tensor (*model)(void),
                              const ht_optimizer *optimizer, const ht_program_options *options) {
    if (open->program_count || world_size() > 1 || !session_eager())
        ht_fail("%s got a model function that hetucc did not compile; function and call must stand "
                "in one source file",
                optimizer ? "ht_train" : "ht_infer");
    if (!open->eager) open->eager = session_eager()->store_create(open->seed);
    ht_program *program = new_program(open, optimizer);
    program->eager = session_eager()->program_create(open->eager, model, optimizer, options);
    return program;
}

/* Returns the image with which a program begins:
 *
 * 1. for the first program, the image under HETU_STRATEGY, if that is set
 * 2. the image under the newest program's strategy, if the variables have that strategy's values
 * 3. the first image that was compiled with the variables' present values
 * 4. the first image */
static int begin_with(ht_session *open, int first) {
    if (initial_strategy_word() && !open->program_count) return initial_strategy_begin(open, first);
    const char *strategy =
        open->program_count ? open->programs[open->program_count - 1]->image->strategy : NULL;
    int same = strategy ? image_under(first, strategy) : -1,
        fits = initial_strategy_next(first, -1);
    while (fits >= 0 && !image_reads_agree(fits)) fits = initial_strategy_next(first, fits);
    return same >= 0 && image_reads_agree(same) ? same : fits >= 0 ? fits : first;
}

static ht_program *open_image(ht_session *open, int index) {
    if (open->eager)
        ht_fail("the model %s was compiled by hetucc, but an earlier one of this session was not",
                image_at(index)->image->model);
    if (!initial_strategy_possible(index))
        ht_fail("the model %s was compiled for %d devices, and %d ranks run the program",
                image_at(index)->image->model, image_devices(image_at(index)->image), world_size());
    image_check_reads(index, false);
    ht_program *program = new_program(open, image_at(index)->image->trains);
    program->number = open->program_count;
    Command command = {.kind = COMMAND_OPEN, .open = {.image = index, .seed = open->seed}};
    session_issue(open, &command, &(Payload){0});
    return program;
}

ht_program *ht_train_with(ht_session *open, ht_tensor (*model)(void), ht_optimizer optimizer,
                          ht_program_options options) {
    session_check_open(open);
    check_given(model, &options);
    check_optimizers(&optimizer, options.groups);
    int index = image_find(model, &optimizer, &options);
    ht_program *program = index < 0 ? open_eager(open, model, &optimizer, &options)
                                    : open_image(open, begin_with(open, index));
    take_numbers(program->hyper, &optimizer, options.groups);
    program->optimizers = optimizer_names(&optimizer, options.groups);
    return program;
}

ht_program *ht_infer_with(ht_session *open, ht_tensor (*model)(void), ht_program_options options) {
    session_check_open(open);
    check_given(model, &options);
    int index = image_find(model, NULL, &options);
    return index < 0 ? open_eager(open, model, NULL, &options)
                     : open_image(open, begin_with(open, index));
}
