/* The registered images, those of arrivals (ht_prepare) last; in the same order on all ranks. */
#pragma once

#include <hetu/rt.h>
#include <hetu/session.h>

typedef struct RegisteredImage {
    const ht_image *image;
    ht_tensor (*model)(void);
    void (*const *updates)(void);    // by optimizer: its rule or update, then `after`
    const volatile void *const *now; // by read: address of the variable in this program
} RegisteredImage;

int image_count(void);
const RegisteredImage *image_at(int index);

/* Returns the first image of a model function with these options and optimizer (NULL: ht_infer).
 * Returns -1 if the model has no image. Ends the program if no image of the model has them. */
int image_find(ht_tensor (*model)(void), const ht_optimizer *optimizer,
               const ht_program_options *options);

/* Returns the next image after image `after` (-1: the first image) of the same program as image
 * `index`, under any strategy; -1: none. Image `index` itself counts, too. */
int image_next(int index, int after);

/* Returns the image under a strategy of the same program as image `index`; -1: none. */
int image_under(int index, const char *strategy);

/* Returns the migration between two images; NULL: there is none. */
const ht_migration *image_migration(const ht_image *from, const ht_image *to);

/* Returns whether the variables that hetucc read for the image still have the same values. */
bool image_reads_agree(int index);

/* Sets *value to the value of an integer variable at compile time. Returns false if the model did
 * not read the variable, or it is not an integer. */
bool image_read_integer(int index, const void *variable, int64_t *value);

/* Ends the program if a variable has another value than the image's model read at compile time.
 * `wanted`: the image is to be switched to. */
void image_check_reads(int index, bool wanted);

/* Return whether the image, or any image, has transfers between parts on different devices. */
bool image_transfers(const ht_image *image);
bool image_any_transfers(void);

/* Returns how many ranks an image needs: its devices up to the last that is not idle. */
int image_devices(const ht_image *image);

/* Returns the largest number of devices of an image, idle ones included; 0: no images. */
int image_ranks(void);

/* Ends the program if an image is of another library version, or two models have one address. */
void image_check(void);
