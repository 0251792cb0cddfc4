/* Enumerates the pipelines: orders of the classes, each class cut into stages of equal size. */
#include "planner/kinds/galvatron/galvatron.h"

#include "support/array.h"

typedef Array(Pipeline) Pipelines;

typedef struct Making {
    Arena *arena;
    const Galvatron *q;
    Pipelines *out;
} Making;

/* Returns whether a class can be cut into stages of n devices: inside a node, or of whole nodes. */
static bool class_cut(const Galvatron *q, const GalvatronClass *class, int n) {
    if (class->gpus % n) return false;
    for (int first = class->first; first < class->first + class->gpus; first += n) {
        bool inside = first / q->per_node == (first + n - 1) / q->per_node,
             whole = first % q->per_node == 0 && n % q->per_node == 0;
        if (!inside && !whole) return false;
    }
    return true;
}

/* Adds the pipeline with each number of micro-batches that divides the batch and is at least the
 * number of stages. */
static void microbatches_add(const Making *making, Pipeline pipeline) {
    for (int m = pipeline.stages; m <= making->q->batch; m++)
        if (making->q->batch % m == 0) {
            pipeline.microbatches = m;
            array_push(making->arena, making->out, pipeline);
        }
}

/* Adds the pipelines that begin with `pipeline`; `used` is the bit set of its classes. */
static void classes_add(const Making *making, const Pipeline *pipeline, unsigned used) {
    const Galvatron *q = making->q;
    if (used == (1u << q->class_count) - 1) microbatches_add(making, *pipeline);
    for (int c = 0; c < q->class_count; c++)
        for (int n = 1; !(used >> c & 1) && n <= q->class[c].gpus; n *= 2) {
            Pipeline longer = *pipeline;
            if (longer.stages + q->class[c].gpus / n > GALVATRON_STAGES ||
                !class_cut(q, &q->class[c], n))
                continue;
            for (int first = q->class[c].first; first < q->class[c].first + q->class[c].gpus;
                 first += n) {
                longer.class[longer.stages] = c, longer.gpus[longer.stages] = n;
                longer.first[longer.stages++] = first;
            }
            classes_add(making, &longer, used | 1u << c);
        }
}

const Pipeline *galvatron_pipelines(Arena *arena, const Galvatron *q, int *count) {
    Pipelines out = {0};
    classes_add(&(Making){arena, q, &out}, &(Pipeline){0}, 0);
    *count = out.count;
    return out.at;
}
