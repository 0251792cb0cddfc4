/* Back ends: all that is known of one stands in its row of the table, backend.c. What is emitted
 * has the same structure for all of them. */
#ifndef EMIT_BACKEND_H
#define EMIT_BACKEND_H

#include "rule/rule.h"

struct LocalOp;
struct Kernel;

/* Writes the statements of a function that runs a body to `out`, and the functions that it needs in
 * front of it to `before`. */
typedef void LoopsWriter(Text *before, Text *out, const struct LocalOp *local,
                         const struct Kernel *kernel);

/* How a program that has its runtime with it as source is built: make does it, in a folder that
 * stands alone. */
typedef struct BackendFolder {
    // the folders of the runtime whose sources go with a program: "base transport"
    const char *runtime;
    const char *makefile; // what the folder's Makefile includes
    // its name, the environment variable that names another, where else it may be
    const char *compiler, *compiler_variable, *compiler_home;
    const char *read_as; // the language, of those that the C compiler knows, as which its
                         // preprocessor reads sources
} BackendFolder;

typedef struct Backend {
    const char *name;              // of --backend, and of the clause kernel in rules
    const char *suffix, *language; // of the files with call lists and with generated kernels
    const char *role_opening, *kernel_opening; // what these files begin with
    const char *closing;                       // and end with
    const char *role_flags;                    // for the C compiler, for the files with call lists
    const char *kernel_flags;                  // for the file with generated kernels
    const char *image_flags;                   // for tables
    const char *clones; // in front of functions with loops in vectors; NULL: nothing
    bool overlaps;      // what zero moves runs beside computing, although that needs more memory
    bool shares_bodies; // of kernels that differ in numbers: kernel/shared.h
    const char *const (*functions)[2]; // of math.h, and how kernels call them; {NULL} at the end
    const char *const (*half_functions)[2]; // those that are called otherwise where all results are
                                            // bf16; NULL: none
    // names that mean something in its language or in its functions: "class const_cast"
    const char *words;
    const char *const *kernels; // the functions of its runtime that compute a RULE_CALL; NULL: it
                                // can call any function of the program
    // NULL: the C compiler builds programs, and the runtime is a library
    const BackendFolder *folder;
    LoopsWriter *loops, *rows; // of a rule's expression, and of its equations
} Backend;

/* The names of all, the first the one that is taken where none is named; NULL at the end. */
const char *const *backend_names(void);

/* The back end of that name; NULL when this version has none. */
const Backend *backend_find(const char *name);

/* The back end in whose language a file is, by its suffix; NULL when it is in none. */
const Backend *backend_of_file(const char *file);

/* How a kernel calls a function of math.h; `half`: all its results are rounded to bf16. */
const char *backend_function(const Backend *backend, const char *name, bool half);

/* The C function that computes a RULE_CALL; NULL when the back end has none, and how a rule may
 * name one: "kernel(f)". */
const char *backend_kernel(const Backend *backend, const Rule *rule);
const char *backend_kernel_clause(Arena *arena, const Backend *backend);

/* Whether some back end needs a name for itself: tensors have the same names in all of them. */
bool backend_word(const char *name);

LoopsWriter loops_cpu, loops_cuda, rows_cpu, rows_cuda;

#endif
