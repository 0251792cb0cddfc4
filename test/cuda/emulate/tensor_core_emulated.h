/* tensor_core_emulated.h: the functions of runtime/cuda/tensor_core.h with PTX's documented registers, for emulation. Copies happen when
 * they are waited for and not before, so that a missing wait shows; conflicts between banks of shared memory are counted. */
#ifndef HETU_EMULATE_TENSOR_CORE_H
#define HETU_EMULATE_TENSOR_CORE_H

#include <cuda_runtime.h>

struct ht_emulated_product {
    float *c;
    uint32_t a[4], b[2];
};

struct ht_emulated_rows {
    uint32_t *to;
    const void *row;
};

ht_emulated_operation ht_emulated_multiply, ht_emulated_load, ht_emulated_load_transposed;
void ht_emulated_copy_begin(void *shared, const void *global, bool valid);
void ht_emulated_copy_commit(void);
void ht_emulated_copy_wait(unsigned pending);

/* How many times eight lanes of a tensor_load met in one bank since the program began; a perfect swizzle keeps it at 0. */
extern "C" uint64_t ht_emulated_bank_conflicts(void);

static inline void tensor_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                   ht_emulated_place where = ht_emulated_place::current())
{
    ht_emulated_product mine = {c, {a[0], a[1], a[2], a[3]}, {b0, b1}};
    ht_emulated_together(ht_emulated_multiply, "tensor_multiply", ~0u, &mine, where);
}

static inline void tensor_load(uint32_t (&to)[4], const void *row, ht_emulated_place where = ht_emulated_place::current())
{
    ht_emulated_rows mine = {to, row};
    ht_emulated_together(ht_emulated_load, "tensor_load", ~0u, &mine, where);
}

static inline void tensor_load_transposed(uint32_t (&to)[4], const void *row, ht_emulated_place where = ht_emulated_place::current())
{
    ht_emulated_rows mine = {to, row};
    ht_emulated_together(ht_emulated_load_transposed, "tensor_load_transposed", ~0u, &mine, where);
}

static inline void copy_begin(void *shared, const void *global, bool valid) { ht_emulated_copy_begin(shared, global, valid); }
static inline void copy_commit(void) { ht_emulated_copy_commit(); }
static inline int at_this_place(int x) { return x; }
static inline float fast_exp2(float x) { return exp2f(x); }
template <int pending> static inline void copy_wait(void) { ht_emulated_copy_wait(pending); }

#endif
