#include "ir/programs/representatives.h"

#include "ir/analysis_cache.h"

/* Where a device stands in the strategy. */
typedef struct Post {
    int run;            // pipeline, of module->templates->runs; -1: none
    int stage;          // of that pipeline
    int representative; // device of the template's first pipeline that does the same
    int next;           // device with the same representative; -1: none
} Post;

struct Posts {
    int count;
    Post *at;   // by device
    int *first; // by representative: the first device that it represents; -1: none
};

/* Enters the devices of one pipeline. */
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
