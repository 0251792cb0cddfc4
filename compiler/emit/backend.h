/* Backends: the table in backend.c has a row for each backend, with everything that the compiler
 * knows of the backend. Emitted programs have the same structure for all backends. */
#pragma once

#include "rule/rule.h"

struct LocalOp;
struct Kernel;

/* Appends the statements of a kernel's body to `out`, and its helper functions to `before`. */
typedef void LoopsWriter(Text *before, Text *out, const struct LocalOp *local,
                         const struct Kernel *kernel);

/* How make builds a program in a folder of its own, which holds the sources of the runtime, too. */
typedef struct BackendFolder {
    const char *runtime;  // folders of the runtime that go with a program: "base transport"
    const char *makefile; // file that runtime/program.mk includes
    const char *compiler; // name of the device compiler: "nvcc"; NULL: only the C compiler
    const char *compiler_variable, *compiler_home; // environment variable that names another
                                                   // compiler; folder searched after PATH
    const char *read_as; // language (-x) as which the C compiler preprocesses device sources
} BackendFolder;

typedef struct Backend {
    const char *name;              // name in --backend, and in the clause `kernel` of rules
    const char *suffix, *language; // suffix and language of emitted files: "cu", "CUDA C"
    const char *role_opening, *kernel_opening; // first lines of role files, and of kernel files
    const char *closing;                       // last lines of both files
    const char *role_flags;                    // C compiler flags for files of roles
    const char *kernel_flags;                  // C compiler flags for the file of kernels
    const char *image_flags;                   // C compiler flags for the file of tables
    const char *clones;                        // attribute of kernels with vector loops; NULL: none
    bool overlaps;      // ZeRO prefetches parameters while kernels run, in extra memory
    bool shares_bodies; // kernels that differ in numbers alone share a body (kernel/shared.c)
    const char *const (*functions)[2]; // {name in math.h, name in kernels}; {NULL} ends the list
    const char *const (*half_functions)[2]; // `functions` where all results are bf16; NULL: none
    const char *words;           // reserved words, which tensors avoid: "class const_cast"
    const char *const *kernels;  // functions that `kernel(f)` without a backend may name; NULL: any
    const BackendFolder *folder; // what --emit=c -o FOLDER writes beside the emitted files
    bool built_by_make;          // programs are built in such a folder, not linked with libhetu
    LoopsWriter *loops, *rows;   // writers of kernels from a rule's body, and from its equations
} Backend;

/* Returns the names of all backends, the default first; NULL ends the list. */
const char *const *backend_names(void);

/* Returns the backend of that name; NULL when this version has none. */
const Backend *backend_find(const char *name);

/* Returns the backend whose sources have the suffix of `file`; NULL when there is none. */
const Backend *backend_of_file(const char *file);

/* Returns the name by which kernels call a function of math.h. `half`: all results are bf16. */
const char *backend_function(const Backend *backend, const char *name, bool half);

/* Returns the C function that computes a RULE_CALL; NULL when the backend has none. */
const char *backend_kernel(const Backend *backend, const Rule *rule);

/* Returns the clause by which a rule names a C function for the backend: "kernel(f)". */
const char *backend_kernel_clause(Arena *arena, const Backend *backend);

/* Returns whether some backend reserves a name. A tensor has one name under all backends. */
bool backend_word(const char *name);

LoopsWriter loops_cpu, loops_cuda, rows_cpu, rows_cuda;
