/* The frontend: from annotated C to modules. frontend.c is the order of it all:
 *
 *     clang/         the only files that know libclang: a translation unit becomes a plain C tree
 *                    (ctree.h)
 *     source.h       the lines `#pragma hspmd` of a file
 *     pragma/        a pragma from its tokens: macros, operands, layouts
 *     linkage.h      what models call that other files of the program define
 *     operators.h    functions under `#pragma hspmd op`
 *     strategies.h   which strategy a program has; micro-batches, stages and meshes are its
 *                    statements (strategy/strategy.h)
 *     models.h       the model functions that ht_train and ht_infer are called with
 *     eval/          runs a model function on the tree; its operators are the module
 *     state/         what models read and change beside their own variables
 */
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "support/diag.h"

typedef struct Unit Unit; // ir/unit.h
typedef struct UnitFile UnitFile;

/* A source of the program, with what the C compiler is told of it. */
typedef struct FrontendPart {
    const char *file;
    int arg_count;
    const char *const *args; // for clang: -I -D -U -include -std and the include folder of hetu.h
    int text_count;
    const UnitFile *texts; // files as they were when it was compiled; others are read as they are
    int defined_count;
    const char *const *defined; // the functions and variables that other files may use
} FrontendPart;

typedef struct FrontendOptions {
    FrontendPart part; // the file whose models are wanted
    int part_count;
    const FrontendPart *parts; // the program's others, from which its models take what they lack
    bool waits; // models that lack something wait until these are there (Unit.absent)
    int strategy_count;
    const char *const *strategies; // of --strategy: NAME, FILE or FILE:NAME
    const char *cluster_file;      // of --cluster; NULL: none given
    const struct Cluster *cluster; // that it describes, which names classes of devices; NULL: none,
                                   // or an error was reported
    const char *const *backends;   // that rules may name a kernel for, the first the one that runs
                                   // plain C; NULL at the end
} FrontendOptions;

/* The file that --strategy=WORD means, WORD as a whole or up to its last colon; NULL where it is
 * none. */
const char *frontend_strategy_file(Arena *arena, const char *word);

/* Gives a source the functions and variables that others may use; false after errors. */
bool frontend_scan(Arena *arena, Diag *diag, const FrontendOptions *options, FrontendPart *part);

/* The unit, or NULL after errors were reported. The modules hold the forward section and the
 * gradients of its operators. */
Unit *frontend_read(Arena *arena, Diag *diag, const FrontendOptions *options);

/* ---- one file under strategies that come one after the other ---- */

typedef struct Frontend Frontend;

/* Reads a file, but for its models; NULL after errors. `arena`, `diag` and `options` must outlive
 * it. */
Frontend *frontend_open(Arena *arena, Diag *diag, const FrontendOptions *options);

/* Whether the file has calls of ht_train or ht_infer. */
bool frontend_has_models(const Frontend *frontend);

/* What frontend_read gives, under the one strategy that `text` holds instead of those of the
 * options. */
Unit *frontend_under(Frontend *frontend, const char *text);

void frontend_close(Frontend *frontend);

#endif
