/* Makes the meshes of a strategy: the named axes of each stage's devices, and their split rules.
 *
 * The last axis of a mesh is the fastest over the stage's devices. grouped_query_heads.c says which
 * axes are divided into prime factors, since there are fewer key-value heads than tp. */
#include "passes/seed_layouts/seed_layouts.h"

#include "cluster/cluster.h"

static const MeshAxis *find_axis(const Stage *stage, const char *name) {
    for (int i = 0; i < stage->mesh.count; i++)
        if (!strcmp(stage->mesh.at[i].name, name)) return &stage->mesh.at[i];
    return NULL;
}

/* Returns the weights; NULL if they are equal or absent. */
static const int64_t *unequal(const int64_t *weights, int count) {
    for (int i = 1; weights && i < count; i++)
        if (weights[i] != weights[0]) return weights;
    return NULL;
}

static void add_axis(Module *module, Mesh *mesh, const MeshAxis *axis, int count,
                     const int64_t *weights) {
    if (mesh->axis_count == MESH_MOST) {
        diag_error(module->diag, axis->at,
                   "the mesh has more than %d axes, counting the prime factors of those that cut "
                   "merged dimensions",
                   MESH_MOST);
        return;
    }
    mesh->axis[mesh->axis_count++] = (Axis){axis->name, count, unequal(weights, count)};
}

/* Adds an axis of the strategy to the mesh, whole or as its prime factors. */
static void add_axes(Module *module, Mesh *mesh, const MeshAxis *axis) {
    if (!axis_must_factor(module, axis)) {
        add_axis(module, mesh, axis, axis->count, axis->weights);
        return;
    }
    for (int rest = axis->count, p = 2; rest > 1; p++)
        for (; rest % p == 0; rest /= p) add_axis(module, mesh, axis, p, NULL);
}

/* Adds the mesh rules of one `name:axis`. A part of the axis cuts the first factor of `name` if it
 * divides its rest or is coprime to it, else the second. *cut: pieces of the first so far. */
static void add_rules(Module *module, Mesh *mesh, const SplitRule *split, const char *axis,
                      int64_t *cut) {
    int64_t head = head_extent(module, split->dim);
    for (int a = 0; a < mesh->axis_count; a++) {
        if (strcmp(mesh->axis[a].name, axis)) continue;
        bool fits = !head || head % (*cut * mesh->axis[a].count) == 0 ||
                    head_gcd(head, mesh->axis[a].count) == 1;
        if (fits) *cut *= mesh->axis[a].count;
        array_push(
            module->arena, &mesh->rules,
            (MeshRule){
                .dim = {split->dim, !fits}, .axis = a, .zigzag = split->zigzag, .at = split->at});
    }
}

/* Returns whether the cluster has all devices of a stage; reports the first missing one. */
static bool is_on_cluster(const Module *module, const Stage *stage) {
    const Cluster *cluster = module->devices->target.cluster;
    for (int i = 0; cluster && i < stage->devices.count; i++)
        if (stage->devices.at[i] >= cluster->device_count) {
            diag_error(module->diag, stage->device_at.at[i],
                       "the cluster has no device %d: %s lists %d, from 0", stage->devices.at[i],
                       module->devices->target.cluster_file, cluster->device_count);
            return false;
        }
    return true;
}

static Mesh *single_device(Module *module) {
    static const int zero = 0;
    Mesh *mesh = arena_new(module->arena, Mesh);
    mesh->device_count = 1;
    mesh->devices = &zero;
    return mesh;
}

static Mesh *stage_mesh(Module *module, const Stage *stage) {
    if (!is_on_cluster(module, stage)) return NULL;
    Mesh *mesh = arena_new(module->arena, Mesh);
    mesh->device_count = stage->devices.count;
    mesh->devices = stage->devices.at;
    for (int i = 0; i < stage->mesh.count; i++) add_axes(module, mesh, &stage->mesh.at[i]);
    for (int i = 0; i < module->strategy->splits.count; i++) {
        const SplitRule *split = &module->strategy->splits.at[i];
        int64_t cut = 1;
        for (int k = 0; k < split->axis_count; k++)
            if (find_axis(stage, split->axes[k]))
                add_rules(module, mesh, split, split->axes[k], &cut);
    }
    return diag_errors(module->diag) ? NULL : mesh;
}

/* Makes a mesh over the devices of all stages of all pipelines. No split rule uses its one axis.
 * Returns NULL after an error. */
static Mesh *all_devices(Module *module) {
    Mesh *mesh = arena_new(module->arena, Mesh);
    Array(int) devices = {0};
    for (int r = 0; r < module->templates->runs.count; r++) {
        const Pipeline *pipeline =
            &module->strategy->pipelines.at[module->templates->runs.at[r].pipeline];
        for (int s = 0; s < pipeline->stages.count; s++) {
            if (!is_on_cluster(module, &pipeline->stages.at[s])) return NULL;
            for (int i = 0; i < pipeline->stages.at[s].devices.count; i++)
                array_push(module->arena, &devices, pipeline->stages.at[s].devices.at[i]);
        }
    }
    mesh->device_count = devices.count;
    mesh->devices = devices.at;
    mesh->axis_count = 1;
    mesh->axis[0] = (Axis){.name = "device", .count = devices.count};
    return mesh;
}

bool meshes_create(Module *module) {
    PipelineTemplates *bodies = module->templates;
    const Pipeline *first = module->strategy ? &module->strategy->pipelines.at[0] : NULL;
    bool several = bodies->stages.count > 1 || bodies->runs.count > 1;
    module->devices->mesh = !first    ? single_device(module)
                            : several ? all_devices(module)
                                      : stage_mesh(module, &first->stages.at[0]);
    for (int s = 0; s < bodies->stages.count && module->devices->mesh; s++) {
        TemplateStage *stage = &bodies->stages.at[s];
        const Pipeline *pipeline =
            &module->strategy->pipelines
                 .at[template_first_run(bodies, stage->template_index)->pipeline];
        stage->mesh = several ? stage_mesh(module, &pipeline->stages.at[stage->number])
                              : module->devices->mesh;
        if (!stage->mesh) return false;
    }
    return module->devices->mesh != NULL;
}
