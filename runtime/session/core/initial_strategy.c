/* Decides under which strategy a run begins (HETU_STRATEGY), and which have enough ranks.
 * After a loss of ranks, tools/heturun/choose_elastic_strategy.c chooses HETU_STRATEGY. */
#include "session/core/initial_strategy.h"

#include "session/control/prepare_strategy.h"
#include "session/control/recompile_command.h"
#include "transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_ROOM = 2048 }; // bytes of a text with names of strategies

const char *initial_strategy_word(void) {
    const char *word = getenv("HETU_STRATEGY");
    return word && *word ? word : NULL;
}

/* Returns NAME of "FILE:NAME"; the whole word if it has no colon. */
static const char *name_in(const char *word) {
    const char *colon = strrchr(word, ':');
    return colon ? colon + 1 : word;
}

bool initial_strategy_possible(int image) {
    return image_devices(image_at(image)->image) <= world_size();
}

int initial_strategy_next(int index, int after) {
    int next = image_next(index, after);
    while (next >= 0 && !initial_strategy_possible(next)) next = image_next(index, next);
    return next;
}

void initial_strategy_follow(int chosen, int first) {
    const RegisteredImage *to = image_at(chosen), *from = image_at(first);
    for (int r = 0; r < to->image->read_count; r++)
        for (int f = 0; f < from->image->read_count; f++) {
            const ht_image_read *read = &to->image->reads[r];
            void *now = (void *)(uintptr_t)to->now[r];
            size_t bytes = (size_t)read->size * (size_t)read->count;
            bool starts = from->now[f] == to->now[r] &&
                          from->image->reads[f].count == read->count &&
                          !memcmp(now, from->image->reads[f].then, bytes);
            if (starts && memcmp(now, read->then, bytes)) memcpy(now, read->then, bytes);
        }
}

void initial_strategy_set_variables(void) {
    const char *word = initial_strategy_word(), *strategy;
    for (int i = 0; word && i < image_count(); i++)
        if ((strategy = image_at(i)->image->strategy) && !strcmp(strategy, name_in(word)))
            initial_strategy_follow(i, image_next(i, -1));
}

/* Ends the program because it cannot begin under the chosen strategy. */
static _Noreturn void refuse(ht_session *session, const char *word, const char *reason) {
    fflush(stdout);
    fprintf(stderr, "hetu: the program cannot begin under strategy \"%s\" (HETU_STRATEGY): %s\n",
            word, reason);
    ht_close(session);
    _exit(NO_STRATEGY);
}

/* Returns whether the image's strategy has the launcher's HETU_STRATEGY_DIGEST; true: not set. */
static bool is_current(int image) {
    const char *digest = getenv("HETU_STRATEGY_DIGEST");
    return !digest || strtoull(digest, NULL, 16) == image_at(image)->image->strategy_digest;
}

/* Returns why a program has no image under the chosen strategy, and which strategies it has. */
static const char *lacks_strategy(int first) {
    static const char remedy[] =
        "; give hetucc --strategy=FILE for each, or call ht_prepare in the model's source";
    static char text[NAMES_ROOM];
    size_t most = sizeof text - sizeof remedy, length;
    length = (size_t)snprintf(text, most, "it was not compiled with it");
    const char *before = "; it has";
    for (int i = image_next(first, -1); i >= 0; i = image_next(first, i)) {
        const char *name = image_at(i)->image->strategy;
        if (!name || length + strlen(before) + strlen(name) + 4 > most) continue;
        length += (size_t)snprintf(text + length, most - length, "%s \"%s\"", before, name);
        before = ",";
    }
    return strcat(text, remedy);
}

/* Returns the image of a program under the chosen strategy; compiles the strategy if the program
 * lacks it. Returns -1 with a reason on failure. */
static int find_chosen(ht_session *session, int first, const char *word, const char **reason) {
    const char *name = name_in(word);
    if (image_under(first, name) >= 0 && !is_current(image_under(first, name))) {
        *reason = "it was compiled with another one of this name; compile it with the strategy as "
                  "it is now";
        return -1;
    }
    if (image_under(first, name) < 0 && !recompile_possible()) {
        *reason = lacks_strategy(first);
        return -1;
    }
    if (image_under(first, name) < 0) {
        prepare_request(first, word);
        session_take_arrivals(session, true);
        name = prepare_strategy_name(word, reason);
    }
    return *reason ? -1 : image_under(first, name);
}

int initial_strategy_begin(ht_session *session, int first) {
    char devices[128];
    const char *word = initial_strategy_word(), *reason = NULL;
    int chosen = find_chosen(session, first, word, &reason);
    if (chosen < 0) refuse(session, word, reason ? reason : "it has another name");
    snprintf(devices, sizeof devices, "it is for %d devices, and %d ranks run the program",
             image_devices(image_at(chosen)->image), world_size());
    if (!initial_strategy_possible(chosen)) refuse(session, word, devices);
    if (!image_reads_agree(chosen))
        refuse(session, word, "variables that the model reads have other values under it");
    return chosen;
}
