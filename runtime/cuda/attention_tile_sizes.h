/* Tile sizes of the runtime's attention on a GPU. C++ only.
 *
 * Each list has an entry for heads of up to 64, of 128 and of 256 numbers (attention_width). An
 * entry names the engine that a block of threads runs with. It may name a second engine, for GPUs
 * on which the first one needs more shared memory than a block may have.
 *
 *     PlainEngine<D, COLUMNS>                   tiles of 32 rows x COLUMNS (32)
 *     TensorEngine<D, PARTS, COLUMNS, ACROSS>   tiles of 64 PARTS / ACROSS rows x COLUMNS
 *
 * Backward has two kernels. The last engine of an entry has rows of queries and columns of keys;
 * the others have rows of keys and columns of queries. */
#pragma once

#include "cuda/attention_engine.h"

#define FORWARD_TILES_F32(launch)                                                                  \
    launch<PlainEngine<64>>, launch<PlainEngine<128>>,                                             \
        launch<PlainEngine<256>, PlainEngine<256, 16>>

#define FORWARD_TILES_BF16(launch)                                                                 \
    launch<TensorEngine<64, 2, 64>>, launch<TensorEngine<128, 2, 32>>,                             \
        launch<TensorEngine<256, 1, 32>>

#define BACKWARD_TILES_F32(launch)                                                                 \
    launch<PlainEngine<64>, PlainEngine<64>>, launch<PlainEngine<128>, PlainEngine<128>>,          \
        launch<PlainEngine<256>, PlainEngine<256, 16>, PlainEngine<256>>

#define BACKWARD_TILES_BF16(launch)                                                                \
    launch<TensorEngine<64, 2, 32>, TensorEngine<64, 2, 64>>,                                      \
        launch<TensorEngine<128, 2, 64, 2>, TensorEngine<128, 1, 32>, TensorEngine<128, 2, 64>>,   \
        launch<TensorEngine<256, 1, 32>, TensorEngine<256, 1, 16>, TensorEngine<256, 1, 64>>
