/* The emitter: from specialised modules to C.
 *
 *     gpt.c under a strategy of two stages  ->  gpt.main.c, gpt.image.c, gpt.kernels.c,
 *                                               gpt.role0.c, gpt.role1.c
 */
#pragma once

#include "emit/backend.h"
#include "support/array.h"

typedef struct Unit Unit; // ir/unit.h

typedef struct EmittedFile {
    const char *name;   // "gpt.role0.c"; roles and kernels have the backend's suffix
    const char *text;   // content of the file
    const char *flags;  // additional flags of the C compiler: "-O1"
    const char *source; // the user's source that the file includes; NULL: none
} EmittedFile;
typedef Array(EmittedFile) EmittedFiles;

/* How a unit is emitted. */
typedef struct EmitOptions {
    const char *base;    // beginning of the files' names
    const char *prefix;  // beginning of emitted symbols; differs between the units of a program
    const char *include; // the user's source, as the main file spells it in #include
    const char *text;    // preprocessed text in place of that #include, for a source that waited
                         // for others; NULL: none
    const char *section; // file whose content the object keeps for evaluation at link; NULL: none
    const Backend *backend;
    const char *maker;         // for the fingerprint: "hetucc 0.1.0 -O1"
    const char *source;        // for the fingerprint: text of the user's source
    int recipe_count;          // number of words; 0: no strategies arrive
    const char *const *recipe; // words for ht_register_source (<hetu/image.h>)
} EmitOptions;

/* Appends the files of a unit, which carry its fingerprint: a line that names source and options,
 * with a hash over these and all text. Reports a name of a source that C cannot include. */
void emit_unit(EmittedFiles *files, const Unit *unit, const EmitOptions *options);

/* Appends the file for a source that has no programs: the content that its object keeps. Where its
 * models wait for other sources, the file refers to an undefined symbol, so that a linker other
 * than hetucc refuses the object. */
void emit_part(EmittedFiles *files, const Unit *unit, const EmitOptions *options);

/* Returns the operand of #include for a file; the operand has no escapes. A name with a quote gets
 * angle brackets (found with -idirafter). NULL: C cannot spell the name. */
const char *c_include(Arena *arena, const char *path);
