#include "session/image.h"

#include <hetu/version.h>

#include <stdlib.h>
#include <string.h>

static struct {
    RegisteredImage *at;
    int count;
} images;

void ht_register(const ht_image *image, ht_model *model, void (*update)(void), const volatile void *const *now)
{
    RegisteredImage *grown = realloc(images.at, sizeof *grown * (size_t)(images.count + 1));
    if (!grown)
        ht_fail("no memory to register the model %s", image->model);
    images.at = grown;
    images.at[images.count++] = (RegisteredImage){image, model, update, now};
}

static struct {
    const ht_migrations **at;
    int count;
} tables; // of migrations

void ht_register_migrations(const ht_migrations *migrations)
{
    const ht_migrations **grown = realloc(tables.at, sizeof *grown * (size_t)(tables.count + 1));
    if (!grown)
        ht_fail("no memory to register the migrations of a program");
    tables.at = grown;
    tables.at[tables.count++] = migrations;
}

const ht_migration *image_migration(const ht_image *from, const ht_image *to)
{
    for (int t = 0; t < tables.count; t++)
        for (int m = 0; m < tables.at[t]->count; m++)
            if (tables.at[t]->at[m].from == from && tables.at[t]->at[m].to == to)
                return &tables.at[t]->at[m];
    return NULL;
}

int image_count(void) { return images.count; }

const RegisteredImage *image_at(int index) { return &images.at[index]; }

static bool image_fits(const RegisteredImage *registered, const ht_optimizer *optimizer, ht_dtype dtype)
{
    const ht_image *image = registered->image;
    if (image->trains != (optimizer != NULL) || image->dtype != dtype)
        return false;
    return !optimizer ||
           (registered->update == optimizer->update && image->clipped == optimizer->clipped && image->state_count == optimizer->states);
}

int image_find(ht_tensor (*model)(void), const ht_optimizer *optimizer, ht_dtype dtype)
{
    const ht_image *other = NULL;
    for (int i = 0; i < images.count; i++) {
        if (images.at[i].model != model)
            continue;
        if (image_fits(&images.at[i], optimizer, dtype))
            return i;
        other = images.at[i].image;
    }
    if (other)
        ht_fail("the model %s was not compiled for this %s: hetucc has seen it with another optimizer or type", other->model,
                optimizer ? "ht_train" : "ht_infer");
    return -1;
}

int image_next(int index, int after)
{
    const RegisteredImage *own = &images.at[index];
    for (int i = after + 1; i < images.count; i++) {
        const RegisteredImage *other = &images.at[i];
        bool same = other->model == own->model && other->update == own->update && other->image->trains == own->image->trains &&
                    other->image->dtype == own->image->dtype && other->image->clipped == own->image->clipped &&
                    other->image->state_count == own->image->state_count;
        if (i == index || (same && other->image->strategy && own->image->strategy))
            return i;
    }
    return -1;
}

int image_under(int index, const char *strategy)
{
    int found = image_next(index, -1);
    while (found >= 0 && (!images.at[found].image->strategy || strcmp(images.at[found].image->strategy, strategy)))
        found = image_next(index, found);
    return found;
}

int image_ranks(void)
{
    int ranks = 0;
    for (int i = 0; i < images.count; i++)
        ranks = images.at[i].image->device_count > ranks ? images.at[i].image->device_count : ranks;
    return ranks;
}

bool image_transfers(const ht_image *image)
{
    for (int role = 0; role < image->role_count; role++)
        if (image->roles[role].transfer_count)
            return true;
    return false;
}

bool image_any_transfers(void)
{
    for (int i = 0; i < images.count; i++)
        if (images.at[i].image->version == HT_IMAGE_VERSION && image_transfers(images.at[i].image))
            return true;
    return false;
}

static void check_version(const ht_image *image)
{
    if (image->version != HT_IMAGE_VERSION)
        ht_fail("%s: this program was made for another version of libhetu than the one it runs with, " HETU_VERSION "; compile it again",
                image->fingerprint);
}

void image_check(void)
{
    for (int i = 0; i < images.count; i++)
        check_version(images.at[i].image);
    for (int i = 0; i < images.count; i++)
        for (int j = 0; j < i; j++)
            if (images.at[i].model == images.at[j].model && strcmp(images.at[i].image->model, images.at[j].image->model))
                ht_fail("the models %s (%s) and %s (%s) have the same address; link without folding equal functions (--icf=none)",
                        images.at[j].image->model, images.at[j].image->source, images.at[i].image->model, images.at[i].image->source);
}
