/* Reads roles: which role runs an operator, which device stands for another. passes/specialize.c
 * decides which devices share a role. */
#include "ir/programs/device_programs.h"

#include "ir/analysis/async_collectives.h"
#include "ir/analysis/phases.h"
#include "ir/analysis_cache.h"
#include "ir/programs/conversions.h"
#include "ir/programs/regions.h"
#include "support/intern.h"

int roles_index(const Roles *roles, int device) {
    int low = 0, high = roles->device_count, dense = high ? device - roles->devices[0] : -1;
    if (dense >= 0 && dense < high && roles->devices[dense] == device) return dense;
    while (low < high) {
        int middle = (low + high) / 2;
        if (roles->devices[middle] < device) low = middle + 1;
        else high = middle;
    }
    return low < roles->device_count && roles->devices[low] == device ? low : -1;
}

int device_slots(Module *module, const Role *role, int device) {
    int stage;
    const PipelineRun *run = role->slot_bytes ? device_run(module, device, &stage) : NULL;
    return run ? run->schedule->slot_count[stage] : 0;
}

/* Returns the most bytes of scratch space that a conversion needs on a device of the role. */
static int64_t most_scratch(Module *module, const Role *role, const Op *op) {
    int64_t most = 0;
    for (int i = 0; i < role->device_count; i++) {
        int device = conversion_device(module, op, role->devices[i]);
        int64_t bytes = device < 0 ? 0 : plan_scratch_bytes(op->convert.plan->plan, device);
        most = bytes > most ? bytes : most;
    }
    return most;
}

int64_t role_scratch_bytes(Module *module, const Role *role, const Op *op) {
    if (!op->convert.plan || (op->convert.tensor && op_is_async(module, op))) return 0;
    if (!module->cache->scratch) module->cache->scratch = intern_create(module->arena);
    intptr_t key[] = {(intptr_t)op->convert.plan, (intptr_t)role, op->stage != STAGE_ALL};
    intptr_t *slot = intern_slot(module->cache->scratch, key, sizeof key);
    if (!*slot) *slot = 1 + most_scratch(module, role, op);
    return *slot - 1;
}

bool role_has(Module *module, const Role *role, const Value *value) {
    return value_region(module, value, role->devices[0])->member;
}

int64_t role_bytes(Module *module, const Role *role, const Value *value) {
    int count = value->def && value->def->def == module->builtin->collect ? role->device_count : 1;
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        int64_t bytes = value_local_bytes(module, value, role->devices[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

bool role_runs(Module *module, const Role *role, const Op *op) {
    for (int k = 0; k < op->result_count; k++)
        if (role_has(module, role, op->results[k])) return true;
    return op->convert.plan && role_has(module, role, op->operands[0]);
}

const Op *role_maker(Module *module, const Role *role, const Value *value) {
    const Op *def = value->def;
    if (!def || !role_has(module, role, value)) return NULL;
    if (def->def != module->builtin->stage_union) return def;
    for (int k = 0; k < def->operand_count; k++)
        if (role_has(module, role, def->operands[k]))
            return role_maker(module, role, def->operands[k]);
    return NULL;
}

const Value *role_storage(Module *module, const Role *role, const Value *value) {
    const Value *owner = value_storage(value);
    while (owner->def && owner->def->def == module->builtin->stage_union) {
        const Value *own = NULL;
        for (int k = 0; !own && k < owner->def->operand_count; k++)
            if (role_has(module, role, owner->def->operands[k])) own = owner->def->operands[k];
        if (!own) return owner;
        owner = value_storage(own);
    }
    return owner;
}

const Value *value_storage(const Value *value) {
    while (value->storage) value = value->storage;
    return value;
}

/* The pipeline and stage of a device in the strategy. */
typedef struct Post {
    int run;            // index into module->templates->runs; -1: in no pipeline
    int stage;          // index of its stage in that pipeline
    int representative; // the device at the same position in the template's first pipeline
    int next;           // next device with the same representative; -1: none
} Post;

struct Posts {
    int count;
    Post *at;   // by device
    int *first; // by representative: the first device that it represents; -1: none
};

/* Sets the posts of the devices of one pipeline. */
static void add_posts(const Module *module, struct Posts *posts, int number) {
    const PipelineRun *run = &module->templates->runs.at[number];
    const Pipeline *own = &module->strategy->pipelines.at[run->pipeline];
    const Pipeline *first =
        &module->strategy->pipelines
             .at[template_first_run(module->templates, run->template_index)->pipeline];
    for (int s = 0; s < own->stages.count; s++)
        for (int i = 0; i < own->stages.at[s].devices.count; i++)
            posts->at[own->stages.at[s].devices.at[i]] =
                (Post){number, s, first->stages.at[s].devices.at[i], -1};
}

/* Links the devices of each representative, in ascending order. */
static void link_posts(Arena *arena, struct Posts *posts) {
    posts->first = arena_array(arena, int, posts->count);
    for (int i = 0; i < posts->count; i++) posts->first[i] = -1;
    for (int i = posts->count - 1; i >= 0; i--) {
        int *first = &posts->first[posts->at[i].representative];
        posts->at[i].next = *first;
        *first = i;
    }
}

/* Returns the posts of all devices, memoized. */
static const struct Posts *module_posts(Module *module) {
    if (module->cache->posts) return module->cache->posts;
    struct Posts *posts = module->cache->posts = arena_new(module->arena, struct Posts);
    for (int i = 0; i < module->devices->mesh->device_count; i++)
        posts->count = module->devices->mesh->devices[i] >= posts->count
                           ? module->devices->mesh->devices[i] + 1
                           : posts->count;
    posts->at = arena_array(module->arena, Post, posts->count);
    for (int i = 0; i < posts->count; i++) posts->at[i] = (Post){.run = -1, .representative = i};
    for (int r = 0; r < module->templates->runs.count; r++) add_posts(module, posts, r);
    link_posts(module->arena, posts);
    return posts;
}

int representative_device(Module *module, int device) {
    const struct Posts *posts = module_posts(module);
    return device < posts->count ? posts->at[device].representative : device;
}

const PipelineRun *device_run(Module *module, int device, int *stage) {
    const struct Posts *posts = module_posts(module);
    if (device >= posts->count || posts->at[device].run < 0) return NULL;
    *stage = posts->at[device].stage;
    return &module->templates->runs.at[posts->at[device].run];
}

int op_representative_device(Module *module, const Op *op, int device) {
    return op->stage == STAGE_ALL ? device : representative_device(module, device);
}

int first_represented(Module *module, int representative) {
    return module_posts(module)->first[representative];
}

int next_represented(Module *module, int device) { return module_posts(module)->at[device].next; }
