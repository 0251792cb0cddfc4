/* The frontend: from annotated C to modules. Its parts, in the order of frontend.c:
 *
 *     source.h      finds the lines `#pragma hspmd` of a file
 *     clang/        makes a C tree (ctree.h) of a translation unit; no other part uses libclang
 *     pragma/       parses pragmas: macros, operands, layouts, operators (`op`)
 *     linkage.c     reads other sources for the functions that models call
 *     strategies.h  chooses the program's strategies
 *     models.h      finds the models: the functions given to ht_train and ht_infer
 *     eval/         runs a model function on the tree; each operator call becomes an op
 *     state/        checks which variables of the program models read and change
 *
 *     ht_tensor mlp(...) { return ht_matmul(x, w); }   ─▶   %3 = matmul(%1, %2) */
#pragma once

#include "support/diag.h"

typedef struct Unit Unit; // ir/unit.h
typedef struct UnitFile UnitFile;

/* A source of the program, with the options for it. */
typedef struct FrontendPart {
    const char *file;
    int arg_count;
    const char *const *args; // for clang: -I -D -U -include -std, and the include folder of hetu.h
    int text_count;
    // Contents of files when the source was compiled. A file not in this list is read from disk.
    const UnitFile *texts;
    int defined_count;
    const char *const *defined; // functions and variables that other sources may use
} FrontendPart;

typedef struct FrontendOptions {
    FrontendPart part; // the file of the models
    int part_count;
    // The program's other sources, which may define functions of the models.
    const FrontendPart *parts;
    bool waits; // a model that lacks definitions (Unit.absent) waits until hetucc links
    int strategy_count;
    const char *const *strategies; // words of --strategy: NAME, FILE or FILE:NAME
    const char *cluster_file;      // --cluster; NULL: not given
    const struct Cluster *cluster; // content of cluster_file; NULL: none, or an error
    // Backends that rules may name, ended by NULL; the first runs plain C.
    const char *const *backends;
} FrontendOptions;

/* Returns the file in --strategy=WORD: WORD or its part before the last colon; NULL: no file. */
const char *frontend_strategy_file(Arena *arena, const char *word);

/* Reads options->part. Sets part->defined to what the source defines; false after errors. */
bool frontend_scan(Arena *arena, Diag *diag, const FrontendOptions *options, FrontendPart *part);

/* Reads a source with its models. Returns the unit, whose modules have forward and update sections
 * and the gradients of operators; NULL after errors. */
Unit *frontend_read(Arena *arena, Diag *diag, const FrontendOptions *options);

/* ---- one file under several strategies, one after the other ---- */

typedef struct Frontend Frontend;

/* Reads a file but evaluates no model; NULL on errors. All arguments must outlive the result. */
Frontend *frontend_open(Arena *arena, Diag *diag, const FrontendOptions *options);

/* Returns whether the file calls ht_train or ht_infer. */
bool frontend_has_models(const Frontend *frontend);

/* Returns the unit under the strategy in `text`, not those of the options; NULL after errors. */
Unit *frontend_under(Frontend *frontend, const char *text);

/* Returns the unit under no strategy (--strategies); its `strategies` are all those of the source
 * and of the files that the options name, with device classes unresolved. NULL after errors. */
Unit *frontend_survey(Frontend *frontend);

void frontend_close(Frontend *frontend);
