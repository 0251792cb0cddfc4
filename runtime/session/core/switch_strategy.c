/* ht_switch, ht_prepare and ht_fit: the strategies of a program, on rank 0.
 * compiler/migration/migration.c lists what moves at a switch; program.c moves it. */
#include "session/core/session.h"

#include "session/control/prepare_strategy.h"
#include "session/control/control.h"
#include "session/core/initial_strategy.h"
#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Makes all ranks load the strategies that hetucc has compiled so far. */
static void take_ready(ht_session *open) {
    size_t size;
    for (void *object; (object = prepare_next_compiled(&size));) {
        Command command = {.kind = COMMAND_ARRIVE, .arrive.bytes = (int64_t)size};
        session_issue(open, &command, &(Payload){.from = object});
        free(object);
    }
}

void session_take_arrivals(ht_session *open, bool wait) {
    enum { LOOK = 10000000 }; // nanoseconds between two looks for compiled strategies
    take_ready(open);
    while (wait && prepare_any_pending() && !ending_signal(open)) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK}, NULL);
        take_ready(open);
    }
}

void ht_prepare(ht_program *program, const char *strategy) {
    session_check_program(program, "ht_prepare");
    session_check_open(program->session);
    if (!strategy || !*strategy) ht_fail("ht_prepare was called without a strategy");
    if (!program->eager) prepare_request(session_image_program(program)->number, strategy);
}

/* Returns the names of a program's strategies, as in "a", "b"; valid until the next call. */
static const char *strategy_names(int image) {
    static char names[1024];
    *names = 0;
    for (int i = image_next(image, -1); i >= 0; i = image_next(image, i)) {
        size_t length = strlen(names);
        const char *name = image_at(i)->image->strategy;
        snprintf(names + length, sizeof names - length, "%s\"%s\"", length ? ", " : "",
                 name ? name : "");
    }
    return names;
}

/* Returns the program's image under `strategy`; if that is NULL, the first image compiled with the
 * variables' present values. Ends the program if there is none, or these values differ. */
static int find_strategy(int image, const char *strategy) {
    int found = strategy ? image_under(image, strategy) : initial_strategy_next(image, -1);
    while (!strategy && found >= 0 && !image_reads_agree(found))
        found = initial_strategy_next(image, found);
    if (found < 0 && strategy)
        ht_fail("the model %s has no strategy \"%s\"; it was compiled with %s",
                image_at(image)->image->model, strategy, strategy_names(image));
    if (found < 0)
        ht_fail("no strategy of the model %s (%s) was compiled with the variables as they are set",
                image_at(image)->image->model, strategy_names(image));
    image_check_reads(found, true);
    return found;
}

/* Returns whether the program has the image that ht_switch asks for. */
static bool is_there(int image, const char *strategy) {
    int found = strategy ? image_under(image, strategy) : image_next(image, -1);
    while (!strategy && found >= 0 && !image_reads_agree(found)) found = image_next(image, found);
    return found >= 0;
}

/* Prints why the program stays under its strategy. */
static void no_switch(int own, const char *strategy, const char *reason) {
    fprintf(stderr,
            "hetu: rank 0: ht_switch cannot go to strategy \"%s\": %s; training goes on under "
            "strategy \"%s\"\n",
            strategy, reason, image_at(own)->image->strategy ? image_at(own)->image->strategy : "");
}

/* Returns false, after a message, if the image that ht_switch asks for needs more ranks. */
static bool ranks_suffice(int own, const char *strategy) {
    char reason[128];
    int found = strategy ? image_under(own, strategy) : image_next(own, -1), possible = -1;
    while (!strategy && found >= 0 && !image_reads_agree(found)) found = image_next(own, found);
    for (int i = found; !strategy && i >= 0 && possible < 0; i = image_next(own, i))
        possible = image_reads_agree(i) && initial_strategy_possible(i) ? i : -1;
    if (found < 0 || possible >= 0 || initial_strategy_possible(found)) return true;
    const ht_image *image = image_at(found)->image;
    snprintf(reason, sizeof reason, "it is for %d devices, and %d ranks run the program",
             image_devices(image), world_size());
    no_switch(own, image->strategy, reason);
    return false;
}

/* Replaces *strategy, a strategy's name or the text given to ht_prepare, by the strategy's name. If
 * the strategy is not there yet, waits until all strategies are compiled, or a signal asks the
 * program to end. Returns false after a message if the program cannot switch to it. */
static bool await_strategy(ht_program *program, const char **strategy) {
    const char *asked = *strategy, *reason = NULL;
    int own = session_image_program(program)->number;
    session_take_arrivals(program->session, false);
    if (!is_there(own, asked)) session_take_arrivals(program->session, true);
    if (asked && !is_there(own, asked)) *strategy = prepare_strategy_name(asked, &reason);
    if (!is_there(own, asked) && prepare_any_pending()) {
        ending_check(program);
        reason = "hetucc still compiles it, and the program is told to end";
    }
    if (reason) no_switch(own, asked, reason);
    return !reason && ranks_suffice(own, *strategy);
}

bool ht_switch(ht_program *program, const char *strategy) {
    session_check_program(program, "ht_switch");
    session_check_open(program->session);
    if (program->eager) {
        session_eager()->program_forget(program->eager);
        return true;
    }
    if (!await_strategy(program, &strategy)) return false;
    int own = session_image_program(program)->number, found = find_strategy(own, strategy);
    Command command = {.kind = COMMAND_SWITCH,
                       .switching = {.program = program->number, .image = found}};
    if (found != own) session_issue(program->session, &command, &(Payload){0});
    return true;
}

int64_t ht_fit(ht_program *program, const void *variable, int64_t least) {
    session_check_program(program, "ht_fit");
    session_check_open(program->session);
    if (program->eager) return least;
    session_take_arrivals(program->session, false);
    int image = session_image_program(program)->number;
    int64_t value, most = 0, fit = INT64_MAX;
    bool known = false;
    for (int i = initial_strategy_next(image, -1); i >= 0; i = initial_strategy_next(image, i)) {
        if (!image_read_integer(i, variable, &value)) continue;
        most = !known || value > most ? value : most;
        fit = value >= least && value < fit ? value : fit;
        known = true;
    }
    if (!known)
        ht_fail("ht_fit was given a variable that the model %s does not read",
                image_at(image)->image->model);
    if (most < least)
        ht_fail("ht_fit looks for a value from %lld on, and the strategies of the model %s have "
                "%lld at most",
                (long long)least, image_at(image)->image->model, (long long)most);
    return fit;
}
