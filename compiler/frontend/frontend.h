/* The frontend: from annotated C to modules.
 *
 * clang*.c, the only files that know libclang, turn the translation unit into a plain C tree (ctree.h) with its pragmas in place (pragma.c, pexpr.c); rules and
 * strategies are read by the floor below (ir/); models.c finds the model functions, and eval*.c runs them on the tree. unit.c is the order of it all.
 */
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "ir/unit.h"

typedef struct FrontendOptions {
    const char *file;
    int arg_count;
    const char *const *args;   // for clang: -I -D -U -include -std and the include folder of hetu.h
    const char *strategy;      // of --strategy: NAME, FILE or FILE:NAME; NULL: none given
    const char *const *backends; // that rules may name a kernel for, the first the one that runs plain C; NULL at the end
} FrontendOptions;

/* The file that --strategy=WORD means, WORD as a whole or up to its last colon; NULL where it is none. */
const char *frontend_strategy_file(Arena *arena, const char *word);

/* The unit, or NULL after errors were reported. The modules hold the forward section and the gradients of its operators. */
Unit *frontend_read(Arena *arena, Diag *diag, const FrontendOptions *options);

#endif
