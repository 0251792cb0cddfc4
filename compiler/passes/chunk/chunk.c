/* Pass chunk: computes large results, such as logits, for some rows at a time.
 *
 *     before    logits = linear(x, table)                  [16384, 50257]: 3 GB
 *               loss = cross_entropy(logits, target)
 *     after     for rows 0-4095, 4096-8191, ... (four chunks):
 *               a slice of x, the product, the loss, and in backward the gradients
 *
 * Only one chunk of the logits exists at a time.
 *
 * Requires: pass factor_dims.
 *
 * Leaves: chunks (chunked_cut) of each product whose result takes more than CHUNK_BYTES on a
 * device, or more than --chunk, together with all operators that read that result.
 * - Rows are along a dimension that neither devices nor micro-batches cut. There are at most
 *   MOST_CHUNKS; each has at least LEAST_ROWS rows on a device, unless --chunk is given.
 * - Nothing changes if other operators need the whole result, or with stages or padding lengths.
 * - Sums over rows are accumulated chunk by chunk; all other results are the same as before. */
#include "passes/chunk/chunk.h"

#include "passes/pass_manager.h"

#include <string.h>

/* Sets parts[d] to the number of parts into which the first stage cuts dimension d of a value. A
 * mesh axis cuts by the first split rule that names the axis and a dimension of the value. */
static void find_parts(const Module *module, const Value *value, int64_t *parts) {
    for (int d = 0; d < value->type.rank; d++) parts[d] = 1;
    const Strategy *strategy = module->strategy;
    const Stage *stage = strategy ? &strategy->pipelines.at[0].stages.at[0] : NULL;
    for (int a = 0; stage && a < stage->mesh.count; a++) {
        const MeshAxis *axis = &stage->mesh.at[a];
        int cut = -1;
        for (int r = 0; r < strategy->splits.count && cut < 0; r++)
            for (int x = 0; x < strategy->splits.at[r].axis_count && cut < 0; x++)
                for (int d = 0; !strcmp(strategy->splits.at[r].axes[x], axis->name) &&
                                d < value->type.rank && cut < 0;
                     d++)
                    if (dim_equal(dim_name(value->dims, d),
                                  (DimName){strategy->splits.at[r].dim, 0}))
                        cut = d;
        if (cut >= 0) parts[cut] *= axis->count;
    }
}

/* Returns a lower bound of the bytes of a value on a device, for one micro-batch. */
static int64_t device_bytes(const Module *module, const Value *value, const int64_t *parts) {
    int64_t bytes =
        type_elements(value->type) * dtype_size(value->type.dtype) / module_microbatches(module);
    for (int d = 0; d < value->type.rank; d++) bytes /= parts[d];
    return bytes;
}

static bool has_dim(const Op *product, int operand, int d) {
    const BoundAccess *access = &product->binding->operands[operand];
    const BoundDim *dim = &product->binding->results[0].dims[d];
    bool has = false;
    for (int e = 0; dim->count && e < access->rank; e++)
        has = has || (access->dims[e].count && access->dims[e].factors[0] == dim->factors[0]);
    return has;
}

/* Returns the rows of a product's result on a device, for one micro-batch: the product of the
 * extents of all dimensions that come from the same operand as dimension `cut`. */
static int64_t device_rows(const Module *module, const Op *product, int cut, const int64_t *parts) {
    const Value *value = product->results[0];
    int64_t rows = 1;
    int k = 0;
    while (k < product->operand_count - 1 && !has_dim(product, k, cut)) k++;
    for (int d = 0; d < value->type.rank; d++)
        rows *= has_dim(product, k, d) ? value->type.extent[d] / parts[d] : 1;
    return rows / module_microbatches(module);
}

/* State of one run of pass chunk. */
typedef struct Chunking {
    Arena *arena;
    Module *module;
    SliceConcat movers;
    int64_t given; // bytes of --chunk; 0: not given
} Chunking;

/* Returns the number of chunks of a product's result along dimension `cut`; 0 or 1: no cut. */
static int chunk_count(const Chunking *chunking, const Op *product, int cut, const int64_t *parts) {
    const Value *value = product->results[0];
    int64_t limit = chunking->given ? chunking->given : CHUNK_BYTES,
            bytes = device_bytes(chunking->module, value, parts);
    int64_t count = (bytes + limit - 1) / limit,
            most = chunking->given
                       ? MOST_CHUNKS
                       : device_rows(chunking->module, product, cut, parts) / LEAST_ROWS;
    count = count < MOST_CHUNKS ? count : MOST_CHUNKS;
    count = count < most ? count : most;
    return (int)(count < value->type.extent[cut] ? count : value->type.extent[cut]);
}

/* Cuts the region that begins with a product whose result is large. Returns whether it was cut. */
static bool cut_product(const Chunking *chunking, Op *product) {
    const Value *value = product->results[0];
    int64_t parts[IR_MAX_RANK];
    find_parts(chunking->module, value, parts);
    // take the first dimension along which the region can be cut
    for (int d = 0; d < value->type.rank; d++) {
        int count = parts[d] > 1 || value_cut_along(value, d)
                        ? 1
                        : chunk_count(chunking, product, d, parts);
        Chunked *region =
            count > 1 ? chunked_of(chunking->arena, chunking->module, product, d) : NULL;
        if (region) {
            chunked_cut(region, &chunking->movers, count);
            return true;
        }
    }
    return false;
}

static bool has_stages(const Strategy *strategy) {
    bool several = false;
    for (int p = 0; strategy && p < strategy->pipelines.count; p++)
        several = several || strategy->pipelines.at[p].stages.count > 1;
    return several || (strategy && strategy_has_lengths(strategy));
}

void pass_chunk(Module *module, const PassContext *context) {
    Chunking chunking = {.module = module, .given = context->options->chunk};
    if (context->options->no_chunks || has_stages(module->strategy) ||
        !slice_concat_find(module, &chunking.movers))
        return;
    chunking.arena = arena_create();
    ir_number(module);
    for (int i = 0; i < module->ops.count; i++) {
        Op *op = module->ops.at[i];
        if (op->def->rule->form == RULE_PRODUCT && op->section == SECTION_FORWARD &&
            !op->source->chunk && op->def->rule->kind == RULE_BODY)
            cut_product(&chunking, op);
    }
    arena_destroy(chunking.arena);
}
