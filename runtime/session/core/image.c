/* Registers images and migrations, and finds a model's image by function, optimizer and options. */
#include "session/core/image.h"

#include <hetu/version.h>

#include <stdlib.h>
#include <string.h>

static struct {
    RegisteredImage *at;
    int count;
} images;

void ht_register(const ht_image *image, ht_model *model, void (*const *updates)(void),
                 const volatile void *const *now) {
    RegisteredImage *grown = realloc(images.at, sizeof *grown * (size_t)(images.count + 1));
    if (!grown) ht_fail("no memory to register the model %s", image->model);
    images.at = grown;
    images.at[images.count++] = (RegisteredImage){image, model, updates, now};
}

static struct {
    const ht_migrations **at;
    int count;
} tables; // the registered tables of migrations

void ht_register_migrations(const ht_migrations *migrations) {
    const ht_migrations **grown = realloc(tables.at, sizeof *grown * (size_t)(tables.count + 1));
    if (!grown) ht_fail("no memory to register the migrations of a program");
    tables.at = grown;
    tables.at[tables.count++] = migrations;
}

const ht_migration *image_migration(const ht_image *from, const ht_image *to) {
    for (int t = 0; t < tables.count; t++)
        for (int m = 0; m < tables.at[t]->count; m++)
            if (tables.at[t]->at[m].from == from && tables.at[t]->at[m].to == to)
                return &tables.at[t]->at[m];
    return NULL;
}

int image_count(void) { return images.count; }

const RegisteredImage *image_at(int index) { return &images.at[index]; }

/* Returns whether two optimizer functions are equal: by name if both have one, else by address. */
static bool same_function(void (*a)(void), const char *a_name, void (*b)(void),
                          const char *b_name) {
    return a_name && b_name ? !strcmp(a_name, b_name) : a == b && !a_name == !b_name;
}

static bool group_fits(const RegisteredImage *registered, int g, const char *names,
                       const ht_optimizer *optimizer) {
    const char *own = registered->image->groups[g], *const *rules =
                                                        registered->image->rule_names + 2 * g;
    void (*function)(void) =
        optimizer->update ? optimizer->update : (void (*)(void))optimizer->rule;
    void (*after)(void) = (void (*)(void))optimizer->after;
    return (own == names || (own && names && !strcmp(own, names))) &&
           same_function(registered->updates[2 * g], rules[0], function,
                         optimizer->rule ? optimizer->rule_name : NULL) &&
           same_function(registered->updates[2 * g + 1], rules[1], after,
                         after ? optimizer->after_name : NULL);
}

static bool image_fits(const RegisteredImage *registered, const ht_optimizer *optimizer,
                       const ht_program_options *options) {
    const ht_image *image = registered->image;
    if (image->trains != (optimizer != NULL) || image->dtype != options->dtype ||
        image->averaged != options->averaged)
        return false;
    if (!optimizer) return true;
    bool fits = image->group_count == 1 + options->groups.count &&
                group_fits(registered, 0, NULL, optimizer),
         clipped = optimizer->clipped;
    for (int g = 0; g < options->groups.count && fits; g++) {
        fits = group_fits(registered, 1 + g, options->groups.at[g].names,
                          &options->groups.at[g].optimizer);
        clipped |= options->groups.at[g].optimizer.clipped;
    }
    return fits && image->clipped == clipped &&
           (!optimizer->update || image->state_count == optimizer->states);
}

int image_find(ht_tensor (*model)(void), const ht_optimizer *optimizer,
               const ht_program_options *options) {
    const ht_image *other = NULL;
    for (int i = 0; i < images.count; i++) {
        if (images.at[i].model != model) continue;
        if (image_fits(&images.at[i], optimizer, options)) return i;
        other = images.at[i].image;
    }
    if (other)
        ht_fail("the model %s was not compiled for this %s: hetucc has seen it with other "
                "optimizers, groups or options",
                other->model, optimizer ? "ht_train" : "ht_infer");
    return -1;
}

/* Returns whether two images have the same optimizers for the same parameters. */
static bool same_optimizers(const RegisteredImage *a, const RegisteredImage *b) {
    bool same =
        a->image->group_count == b->image->group_count && a->image->averaged == b->image->averaged;
    for (int g = 1; g < a->image->group_count && same; g++)
        same = !strcmp(a->image->groups[g], b->image->groups[g]);
    for (int f = 0; f < 2 * a->image->group_count && same; f++)
        same = same_function(a->updates[f], a->image->rule_names[f], b->updates[f],
                             b->image->rule_names[f]);
    return same;
}

int image_next(int index, int after) {
    const RegisteredImage *own = &images.at[index];
    for (int i = after + 1; i < images.count; i++) {
        const RegisteredImage *other = &images.at[i];
        bool same = other->model == own->model && same_optimizers(own, other) &&
                    other->image->trains == own->image->trains &&
                    other->image->dtype == own->image->dtype &&
                    other->image->clipped == own->image->clipped &&
                    other->image->state_count == own->image->state_count;
        if (i == index || (same && other->image->strategy && own->image->strategy)) return i;
    }
    return -1;
}

int image_under(int index, const char *strategy) {
    int found = image_next(index, -1);
    while (found >= 0 && (!images.at[found].image->strategy ||
                          strcmp(images.at[found].image->strategy, strategy)))
        found = image_next(index, found);
    return found;
}

int image_devices(const ht_image *image) {
    int count = image->device_count;
    while (count > 1 && image->role_of[count - 1] < 0) count--;
    return count;
}

int image_ranks(void) {
    int ranks = 0;
    for (int i = 0; i < images.count; i++)
        ranks = images.at[i].image->device_count > ranks ? images.at[i].image->device_count : ranks;
    return ranks;
}

bool image_transfers(const ht_image *image) {
    for (int role = 0; role < image->role_count; role++)
        if (image->roles[role].transfer_count) return true;
    return false;
}

bool image_any_transfers(void) {
    for (int i = 0; i < images.count; i++)
        if (images.at[i].image->version == HT_IMAGE_VERSION && image_transfers(images.at[i].image))
            return true;
    return false;
}

static void check_version(const ht_image *image) {
    if (image->version != HT_IMAGE_VERSION)
        ht_fail("%s: this program was made for another version of libhetu than the one it runs "
                "with, " HETU_VERSION "; compile it again",
                image->fingerprint);
}

void image_check(void) {
    for (int i = 0; i < images.count; i++) check_version(images.at[i].image);
    for (int i = 0; i < images.count; i++)
        for (int j = 0; j < i; j++)
            if (images.at[i].model == images.at[j].model &&
                strcmp(images.at[i].image->model, images.at[j].image->model))
                ht_fail("the models %s (%s) and %s (%s) have the same address; link without "
                        "folding equal functions (--icf=none)",
                        images.at[j].image->model, images.at[j].image->source,
                        images.at[i].image->model, images.at[i].image->source);
}
