/* The images that hetucc linked into this executable, in the order of their registration, which is the same on all ranks. */
#ifndef CORE_IMAGE_H
#define CORE_IMAGE_H

#include <hetu/hetu.h>
#include <hetu/rt.h>

typedef struct RegisteredImage {
    const ht_image *image;
    ht_tensor (*model)(void);
    void (*update)(void);
} RegisteredImage;

int image_count(void);
const RegisteredImage *image_at(int index);

/* The index of the image for a model function; -1 when there is none. */
int image_find(ht_tensor (*model)(void), bool trains);

/* Ranks that the images need: 0 when there is none. */
int image_ranks(void);

/* Ends the program when two models have one address. */
void image_check(void);

#endif
