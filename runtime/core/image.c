#include "core/image.h"

#include <stdlib.h>
#include <string.h>

static struct {
    RegisteredImage *at;
    int count;
} images;

void ht_register(const ht_image *image, ht_model *model, void (*update)(void))
{
    RegisteredImage *grown = realloc(images.at, sizeof *grown * (size_t)(images.count + 1));
    if (!grown)
        ht_fail("no memory to register the model %s", image->model);
    images.at = grown;
    images.at[images.count++] = (RegisteredImage){image, model, update};
}

int image_count(void) { return images.count; }

const RegisteredImage *image_at(int index) { return &images.at[index]; }

int image_find(ht_tensor (*model)(void), bool trains)
{
    for (int i = 0; i < images.count; i++)
        if (images.at[i].model == model && images.at[i].image->trains == trains)
            return i;
    return -1;
}

int image_ranks(void)
{
    int ranks = 0;
    for (int i = 0; i < images.count; i++)
        ranks = images.at[i].image->device_count > ranks ? images.at[i].image->device_count : ranks;
    return ranks;
}

void image_check(void)
{
    for (int i = 0; i < images.count; i++)
        for (int j = 0; j < i; j++)
            if (images.at[i].model == images.at[j].model && strcmp(images.at[i].image->model, images.at[j].image->model))
                ht_fail("the models %s (%s) and %s (%s) have the same address; link without folding equal functions (--icf=none)",
                        images.at[j].image->model, images.at[j].image->source, images.at[i].image->model, images.at[i].image->source);
}
