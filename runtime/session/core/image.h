/* The images that hetucc linked into this executable, in the order of their registration, which is
 * the same on all ranks. */
#ifndef SESSION_CORE_IMAGE_H
#define SESSION_CORE_IMAGE_H

#include <hetu/rt.h>
#include <hetu/session.h>

typedef struct RegisteredImage {
    const ht_image *image;
    ht_tensor (*model)(void);
    void (*const *updates)(void);
    const volatile void *const *now;
} RegisteredImage;

int image_count(void);
const RegisteredImage *image_at(int index);

/* The index of the image for a model function that is run with these options, and is trained by an
 * optimizer (NULL: it is not trained), under the first of its strategies. -1: the model has no
 * image at all; the program ends when it has others alone. */
int image_find(ht_tensor (*model)(void), const ht_optimizer *optimizer,
               const ht_program_options *options);

/* The next image behind number `after` (-1: the first) that is the same program as image `index`,
 * under a strategy of its own; -1: none. */
int image_next(int index, int after);

/* The same program under the strategy of a name; -1: it has none of this name. */
int image_under(int index, const char *strategy);

/* How a program goes from one image to another; NULL: it does not. */
const ht_migration *image_migration(const ht_image *from, const ht_image *to);

/* Whether the variables that the image's model read when it was compiled have the same values
 * now. */
bool image_reads_agree(int index);

/* The value that a variable had when the image's model read it; false where it did not, or it is no
 * integer. */
bool image_read_integer(int index, const void *variable, int64_t *value);

/* Ends the program when a variable that the image's model read when it was compiled has another
 * value now; `wanted`: it is to be switched to. */
void image_check_reads(int index, bool wanted);

/* Whether parts of some image hand over anything to each other across devices. */
bool image_transfers(const ht_image *image);
bool image_any_transfers(void);

/* The devices of an image up to the last that is not idle under its strategy: so many ranks are
 * enough for it. */
int image_devices(const ht_image *image);

/* Ranks that the images need: 0 when there is none. */
int image_ranks(void);

/* Ends the program when an image is of another version than this library, or two models have one
 * address. */
void image_check(void);

#endif
