/* Common functions of the CPU kernels. HT_CLONES of <hetu/vector_math.h> compiles them for AVX2 and
 * AVX-512. */
#include "cpu/cpu.h"

#include "base/memory.h"

#include <stdlib.h>

float *cpu_f32(const ht_view *view, const char *operator) {
    if (view->data && view->dtype != HT_F32)
        ht_fail("%s computes in f32 only; cast the operand first", operator);
    return view->data;
}

void cpu_need_integers(const ht_view *view, const char *operator) {
    if (view->data && view->dtype != HT_I32 && view->dtype != HT_I64)
        ht_fail("%s takes integers of type i32 or i64", operator);
}

int64_t cpu_index(const ht_view *view, int64_t i) {
    return view->dtype == HT_I32 ? ((const int32_t *)view->data)[i]
                                 : ((const int64_t *)view->data)[i];
}

int64_t cpu_count(const ht_view *view) { return ht_view_count(view, 0, view->rank); }

void *cpu_alloc(size_t bytes) {
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, (size_t)memory_aligned((int64_t)bytes + 1));
    if (!memory)
        ht_fail("no memory for %.3g GB of a kernel's scratch space; more devices and more "
                "micro-batches need less",
                (double)bytes / 1e9);
    return memory;
}
