/* What a model function calls: on the CPU the one-device library computes with it; here models run
 * compiled or not at all.
 *
 * A program for CUDA is linked with the source of its models, which hetucc has compiled, so none of
 * these functions is reached but by a model that was not. They are known by name alone: the
 * headers' types would say nothing more.
 */
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
