/* The emitter: from specialised modules to C. A backend is a row of spellings; the structure of
 * what is emitted is the same for all. */
#ifndef EMIT_EMIT_H
#define EMIT_EMIT_H

#include "emit/backend.h"
#include "ir/unit.h"

typedef struct EmittedFile {
    const char *name; // "gpt.role0.c", "gpt.kernels.c", "gpt.image.c", "gpt.main.c"; roles and
                      // kernels have the back end's suffix
    const char *text;
    const char *flags;  // extra flags for the C compiler, "-O1"
    const char *source; // the user's source that it includes; NULL: none
} EmittedFile;
typedef Array(EmittedFile) EmittedFiles;

/* How a unit is written. */
typedef struct EmitOptions {
    const char *base;    // names the files
    const char *prefix;  // begins the names of their symbols, so two units of one program need
                         // different ones
    const char *include; // how the generated main file spells the user's source in #include
    const char *text;    // of a source that waited for others: what stands there instead, its text
                         // behind the preprocessor; NULL: none
    const char *section; // the file that the object keeps for evaluation; NULL: none
    const Backend *backend;
    const char *maker;  // for the fingerprint: "hetucc 0.1.0 -O1"
    const char *source; // for the fingerprint: the text of the user's source
    int recipe_count;   // of a unit that calls ht_prepare: the words of ht_register_source
                        // (hetu/rt.h)
    const char *const *recipe;
} EmitOptions;

/* The files for a unit. Their fingerprint, which programs carry, is a line that tells what they are
 * made of, and a hash of all of it. */
void emit_unit(EmittedFiles *files, const Unit *unit, const EmitOptions *options);

/* The file for a source that gives no programs: what its object keeps, and where models of it wait
 * for other sources, a symbol that nothing defines, so that no other linker than hetucc takes the
 * object for all of it. */
void emit_part(EmittedFiles *files, const Unit *unit, const EmitOptions *options);

/* What stands behind #include for a file: its name is taken as it is, without escapes. One with a
 * quote is written <so>, and found with -idirafter. NULL for a name that C cannot write. */
const char *c_include(Arena *arena, const char *path);

#endif
