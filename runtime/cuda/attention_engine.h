/* Engines: operations of a block of threads on tiles of rows in shared memory. E is PlainEngine for
 * f32 or TensorEngine for bf16; ROWS, COLUMNS and D are members of E.
 *
 *     typename E::Scores s;                          this thread's part of ROWS x COLUMNS scores
 *     E::score(s, a, b);                             s = a bᵀ for tiles a[ROWS][D], b[COLUMNS][D]
 *     typename E::template Sums<W> o;                this thread's part of ROWS x W sums
 *     E::add(o, s, b, first, scratch);               o += s b[COLUMNS][first ..], s rounded to the
 *                                                    tiles' type
 *     E::keep(to, pitch, s);                         stores s, rounded to the tiles' type, in any
 *                                                    memory, as matrices of 8 x 8 (kept_matrix)
 *     E::add_kept(o, kept, b, scratch);              o += keptᵀ b[COLUMNS] for a tile of kept
 *                                                    scores, kept[COLUMNS][ROWS]
 *
 * Scores and Sums index a thread's own elements: element (r, c) is in row E::row(r) and column
 * E::column(c) or Sums::column(c) of the block's matrix. All columns of a row are in threads of one
 * warp; E::row_max and E::row_sum reduce over the columns. If E::pairs, columns c and c + 1 are
 * neighbours for even c.
 *
 * If E::passes, the columns of a row are in several warps. Then E::add_passed replaces E::add.
 * E::add_passed reads scores that E::keep has stored in shared memory, at `passed`:
 *
 *     E::keep(passed, E::COLUMNS / kept_side, s);
 *     __syncthreads();
 *     E::add_passed(o, passed, b, first);            o += s b[COLUMNS][first ..]
 */
#pragma once

#include "cuda/attention_plain_engine.h"
#include "cuda/attention_tensor_engine.h"
