/* Stand-ins for the functions that a model calls. On the CPU, the one-device library has these
 * functions; a program for CUDA runs compiled models only.
 *
 * A program for CUDA is linked with the source of its models, which refers to these functions. Only
 * models that hetucc did not compile call them. No type is needed, since no call returns. */
#include <hetu/kernel.h>

#define UNCOMPILED(name)                                                                           \
    void name(void);                                                                               \
    void name(void) {                                                                              \
        ht_fail("%s is called by a model that hetucc did not compile; on CUDA only compiled "      \
                "models run",                                                                      \
                #name);                                                                            \
    }

UNCOMPILED(ht_apply)
UNCOMPILED(ht_assign)
UNCOMPILED(ht_dims_of)
UNCOMPILED(ht_dtype_of)
UNCOMPILED(ht_extent)
UNCOMPILED(ht_input)
UNCOMPILED(ht_output)
UNCOMPILED(ht_parameter)
UNCOMPILED(ht_present)
UNCOMPILED(ht_rank)
UNCOMPILED(ht_scope_enter)
UNCOMPILED(ht_scope_leave)
UNCOMPILED(ht_state)
UNCOMPILED(ht_stream)
#include "operators/names.h"
