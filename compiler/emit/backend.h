/* Backends: how the kernels of emitted C are spelled and compiled. What is emitted has the same structure for all of them. */
#ifndef EMIT_BACKEND_H
#define EMIT_BACKEND_H

#include "ir/rule.h"

typedef struct Backend {
    const char *name;                  // of --backend
    const char *role_flags;            // for the files with call lists
    const char *kernel_flags;          // for the file with generated kernels
    const char *image_flags;           // for tables
    const char *const (*functions)[2]; // of math.h, and how kernels call them; {NULL} at the end
} Backend;

/* The backend of that name; NULL when this version has none. */
const Backend *backend_find(const char *name);

/* The C function that computes a RULE_CALL; NULL when the rule names none for this backend. */
const char *backend_kernel(const Backend *backend, const Rule *rule);

/* How a kernel calls a function of math.h. */
const char *backend_function(const Backend *backend, const char *name);

#endif
