/* Reads Malleus's input: rates, groups, and the layers that fit into a stage's memory. */
#include "planner/kinds/malleus/problem.h"

#include <math.h>
#include <stdlib.h>

/* MB of a layer, by stage; MB of the ends (embedding and head); MB that a device has for both. */
typedef struct Memory {
    double *per_layer, ends, room;
} Memory;

/* A device and its rate. */
typedef struct Rated {
    double rate;
    int device;
} Rated;

static int by_rate(const void *a, const void *b) {
    const Rated *left = a, *right = b;
    return left->rate != right->rate ? (left->rate > right->rate) - (left->rate < right->rate)
                                     : left->device - right->device;
}

/* Reads the rates of a node's devices and sorts them from fast to slow. */
static void read_node(Arena *arena, Malleus *malleus, Field list, int node) {
    int count;
    double *rates = field_positives(list, 1, &count);
    Rated *rated = arena_array(arena, Rated, count);
    if (node == 0) malleus->per_node = count;
    if (count != malleus->per_node)
        field_refuse(list, "the node has %d devices, and others have %d", count, malleus->per_node);
    for (int i = 0; i < count; i++) rated[i] = (Rated){rates[i], node * malleus->per_node + i};
    qsort(rated, (size_t)count, sizeof *rated, by_rate);
    malleus->nodes[node] =
        (MalleusNode){arena_array(arena, int, count), arena_array(arena, double, count)};
    for (int i = 0; i < count; i++) {
        malleus->nodes[node].devices[i] = rated[i].device;
        malleus->nodes[node].rates[i] = rated[i].rate;
    }
}

static void read_nodes(Arena *arena, Malleus *malleus, Field rates) {
    malleus->node_count = field_count(rates, 1);
    malleus->nodes = arena_array(arena, MalleusNode, malleus->node_count);
    for (int i = 0; i < malleus->node_count; i++) read_node(arena, malleus, field_at(rates, i), i);
}

/* Reads tp, a power of two that a node has devices for, and the slowdown of each group size. */
static void read_groups(Malleus *malleus, Field tp, Field slowdown) {
    malleus->tp = field_integer(tp, 1, 1 << 20);
    malleus->slowdown = field_positives(slowdown, 1, &malleus->sizes);
    if (malleus->tp & (malleus->tp - 1)) field_refuse(tp, "%d is no power of two", malleus->tp);
    if (malleus->tp > malleus->per_node)
        field_refuse(tp, "%d devices are more than a node has, %d", malleus->tp, malleus->per_node);
    if (malleus->sizes > 30 || malleus->tp != 1 << (malleus->sizes - 1))
        field_refuse(
            slowdown,
            "the list has %d entries; it needs one for each power of two from %d down to 1",
            malleus->sizes, malleus->tp);
}

static Memory read_memory(Field field, int *stages) {
    static const char *const keys[] = {"per_layer", "ends", "extra", "bound", "gap", NULL};
    Memory memory;
    field_keys(field, keys);
    memory.per_layer = field_positives(field_get(field, "per_layer"), 1, stages);
    memory.ends = field_number(field_get(field, "ends"), 0);
    memory.room = field_positive(field_get(field, "bound")) -
                  field_number(field_get(field, "gap"), 0) -
                  field_number(field_get(field, "extra"), 0);
    if (*stages > MOST_STAGES)
        field_refuse(field_get(field, "per_layer"), "%d stages are more than %d", *stages,
                     MOST_STAGES);
    return memory;
}

/* Returns how many layers fit: (per_layer l + ends) tp / n <= bound - gap - extra. */
static int count_holds(const Malleus *malleus, const Memory *memory, int count, int stage,
                       int size) {
    double ends = stage == 0 || stage == count - 1 ? memory->ends : 0;
    double layers = floor((memory->room / (1 << size) - ends) /
                              memory->per_layer[malleus->most_stages - count + stage] +
                          1e-9);
    return (int)fmin(fmax(layers, 0), malleus->layers);
}

static void tabulate_holds(Arena *arena, Malleus *malleus, const Memory *memory) {
    int stages = malleus->most_stages, sizes = malleus->sizes;
    malleus->holds = arena_array(arena, int, stages *stages *sizes);
    malleus->least = arena_array(arena, int, stages *sizes);
    malleus->most = arena_array(arena, int, stages *sizes);
    for (int i = 0; i < stages * sizes; i++) malleus->least[i] = malleus->layers;
    for (int i = 0; i < stages * stages * sizes; i++) {
        int count = i / sizes / stages + 1, stage = i / sizes % stages, size = i % sizes,
            of = (count - 1) * sizes + size;
        if (stage >= count) continue;
        int holds = malleus->holds[i] = count_holds(malleus, memory, count, stage, size);
        malleus->least[of] = holds < malleus->least[of] ? holds : malleus->least[of];
        malleus->most[of] = holds > malleus->most[of] ? holds : malleus->most[of];
    }
}

Malleus *malleus_read(Arena *arena, Field input) {
    static const char *const keys[] = {"rates",  "tp",           "slowdown", "pipelines",
                                       "layers", "microbatches", "memory",   NULL};
    Malleus *malleus = arena_new(arena, Malleus);
    field_keys(input, keys);
    read_nodes(arena, malleus, field_get(input, "rates"));
    if (input_error(input)) return NULL;
    read_groups(malleus, field_get(input, "tp"), field_get(input, "slowdown"));
    malleus->layers = field_integer(field_get(input, "layers"), 1, 1 << 20);
    malleus->microbatches = field_integer(field_get(input, "microbatches"), 1, 1 << 20);
    malleus->pipelines =
        field_integer(field_get(input, "pipelines"), 1, malleus->node_count * malleus->per_node);
    Memory memory = read_memory(field_get(input, "memory"), &malleus->most_stages);
    if (malleus->pipelines > malleus->microbatches)
        field_refuse(field_get(input, "pipelines"),
                     "%d pipelines have less than a micro-batch each of %d", malleus->pipelines,
                     malleus->microbatches);
    if (input_error(input)) return NULL;
    tabulate_holds(arena, malleus, &memory);
    return malleus;
}

double malleus_rate(const Malleus *malleus, int node, int first, int size) {
    return malleus->slowdown[size] * malleus->nodes[node].rates[first + (malleus->tp >> size) - 1];
}
