/* Backends: how the files of emitted C are opened, spelled and compiled. What is emitted has the same structure for all of them. */
#ifndef EMIT_BACKEND_H
#define EMIT_BACKEND_H

#include "rule/rule.h"

struct LocalOp;
struct Kernel;

/* Writes the statements of a function that runs a body to `out`, and the functions that it needs in front of it to `before`. */
typedef void LoopsWriter(Text *before, Text *out, const struct LocalOp *local, const struct Kernel *kernel);

typedef struct Backend {
    const char *name;                          // of --backend
    const char *suffix;                        // of the files with call lists and with generated kernels
    const char *role_opening, *kernel_opening; // what these files begin with
    const char *closing;                       // and end with
    const char *role_flags;                    // for the C compiler, for the files with call lists
    const char *kernel_flags;                  // for the file with generated kernels
    const char *image_flags;                   // for tables
    const char *const (*functions)[2];         // of math.h, and how kernels call them; {NULL} at the end
    const char *(*kernel)(const Rule *rule);   // the C function that computes a RULE_CALL; NULL when there is none
    const char *kernel_clause;                 // with which a rule names it, for messages
    const char *runtime;                       // the folders of the runtime whose sources go with a program, "base transport"; NULL: it is a library
    LoopsWriter *loops, *rows;                 // of a rule's expression, and of its equations
} Backend;

/* The backend of that name; NULL when this version has none. */
const Backend *backend_find(const char *name);

/* How a kernel calls a function of math.h. */
const char *backend_function(const Backend *backend, const char *name);

LoopsWriter loops_cpu, loops_cuda, rows_cpu, rows_cuda;

#endif
