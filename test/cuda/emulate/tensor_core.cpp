/* Tensor cores and asynchronous copies; the registers are laid out as PTX documents them. */
#include "inside.h"

#include <cuda_bf16.h>
#include <deque>
#include <vector>

#include <tensor_core_emulated.h>

using namespace emulate;

namespace {

constexpr unsigned lanes = 32, copy_bytes = 16;
uint64_t bank_conflicts;

/* The lower (0) or upper (1) bf16 of a register. */
float half_of(uint32_t bits, unsigned half) { return __uint_as_float(half ? bits & 0xffff0000u : bits << 16); }

void check_aligned(const void *address, const char *what)
{
    if ((uintptr_t)address % copy_bytes)
        fail("%s at an address that is no multiple of %u: %p", what, copy_bytes, address);
}

void need_warp(unsigned mask)
{
    if (mask != ~0u)
        fail("a tensor core needs 32 threads; this warp has the lanes %#x", mask);
}

/* Eight lanes' rows of 16 bytes fill all banks once when no two lie in the same 16 bytes modulo 128. */
void count_conflicts(void *const argument[lanes])
{
    constexpr unsigned rows = 8, segments = 8;
    for (unsigned m = 0; m < lanes; m += rows)
        for (unsigned i = m; i < m + rows; i++)
            for (unsigned j = m; j < i; j++) {
                uintptr_t a = (uintptr_t)((ht_emulated_rows *)argument[i])->row / copy_bytes;
                uintptr_t b = (uintptr_t)((ht_emulated_rows *)argument[j])->row / copy_bytes;
                bank_conflicts += a != b && a % segments == b % segments;
            }
}

const uint16_t *row_of(void *const argument[lanes], unsigned matrix, unsigned row)
{
    const void *address = ((const ht_emulated_rows *)argument[matrix * 8 + row])->row;
    check_aligned(address, "tensor_load");
    return (const uint16_t *)address;
}

void load(void *const argument[lanes], unsigned mask, bool transposed)
{
    need_warp(mask);
    count_conflicts(argument);
    uint32_t loaded[lanes][4];
    for (unsigned lane = 0; lane < lanes; lane++)
        for (unsigned m = 0; m < 4; m++) {
            unsigned outer = lane / 4, inner = 2 * (lane % 4);
            uint16_t low = transposed ? row_of(argument, m, inner)[outer] : row_of(argument, m, outer)[inner];
            uint16_t high = transposed ? row_of(argument, m, inner + 1)[outer] : row_of(argument, m, outer)[inner + 1];
            loaded[lane][m] = (uint32_t)high << 16 | low;
        }
    for (unsigned lane = 0; lane < lanes; lane++)
        memcpy(((ht_emulated_rows *)argument[lane])->to, loaded[lane], sizeof loaded[lane]);
}

/* ---- copies: each thread's own, in groups ---- */

struct Copy {
    void *to;
    const void *from; // NULL: zeros
};

struct Copies {
    uint64_t block;
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
};

Copies &copies_of_thread()
{
    static std::vector<Copies> all;
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (all.size() <= thread)
        all.resize(thread + 1);
    if (all[thread].block != block_number())
        all[thread] = {block_number(), {}, {}};
    return all[thread];
}

void finish(const std::vector<Copy> &group)
{
    for (const Copy &copy : group)
        if (copy.from)
            memcpy(copy.to, copy.from, copy_bytes);
        else
            memset(copy.to, 0, copy_bytes);
}

} // namespace

extern "C" uint64_t ht_emulated_bank_conflicts(void) { return bank_conflicts; }

void ht_emulated_load(void *const argument[lanes], unsigned mask) { load(argument, mask, false); }
void ht_emulated_load_transposed(void *const argument[lanes], unsigned mask) { load(argument, mask, true); }

void ht_emulated_multiply(void *const argument[lanes], unsigned mask)
{
    need_warp(mask);
    constexpr unsigned m = 16, n = 8, depth = 16;
    float a[m][depth], b[n][depth];
    for (unsigned lane = 0; lane < lanes; lane++) {
        const ht_emulated_product &p = *(const ht_emulated_product *)argument[lane];
        for (unsigned r = 0; r < 4; r++)
            for (unsigned half = 0; half < 2; half++)
                a[lane / 4 + 8 * (r % 2)][2 * (lane % 4) + 8 * (r / 2) + half] = half_of(p.a[r], half);
        for (unsigned r = 0; r < 2; r++)
            for (unsigned half = 0; half < 2; half++)
                b[lane / 4][2 * (lane % 4) + 8 * r + half] = half_of(p.b[r], half);
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        float *c = ((const ht_emulated_product *)argument[lane])->c;
        for (unsigned i = 0; i < 4; i++) {
            const float *left = a[lane / 4 + 8 * (i / 2)], *right = b[2 * (lane % 4) + i % 2];
            float sum = 0;
            for (unsigned k = 0; k < depth; k++)
                sum += left[k] * right[k];
            c[i] += sum;
        }
    }
}

void ht_emulated_copy_begin(void *shared, const void *global, bool valid)
{
    check_aligned(shared, "copy_begin to shared memory");
    check_aligned(global, "copy_begin from global memory");
    if (valid && !ht_emulated_is_device(global, copy_bytes))
        fail("copy_begin reads 16 bytes that do not lie in an allocation");
    copies_of_thread().open.push_back({shared, valid ? global : nullptr});
}

void ht_emulated_copy_commit(void)
{
    Copies &mine = copies_of_thread();
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
}

void ht_emulated_copy_wait(unsigned pending)
{
    Copies &mine = copies_of_thread();
    for (; mine.groups.size() > pending; mine.groups.pop_front())
        finish(mine.groups.front());
}
