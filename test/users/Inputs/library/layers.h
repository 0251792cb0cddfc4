/* A library of layers: what its three files and the model's share. */
#ifndef LAYERS_H
#define LAYERS_H

#include <hetu/hetu.h>

#define GAIN 0.5

struct width {
    int in, out;
};
enum { WIDE = 10, DEEP = 3 };

/* Shape variables of the model, which layers read. */
extern int batch;
#pragma hspmd shape(batch)

/* Widths of the library's own. */
extern const struct width widths[2];

/* A layer of a width; its parameters are called by it. */
ht_tensor dense(ht_tensor x, const struct width *width, const char *name);

/* Layers in turn, by recursion that goes from file to file. */
ht_tensor tower(ht_tensor x, int depth);
ht_tensor tower_rest(ht_tensor x, int depth);

/* An optimizer of the library's. */
ht_optimizer library_optimizer(void);

/* An operator with a gradient of its own, whose body is the library's. */
void squash_kernel(const ht_call *call);
void squash_gradient(ht_grad *g);
#pragma hspmd op y[i..] = squash(x[i..]) kernel(squash_kernel) grad(squash_gradient)
ht_tensor squash(ht_tensor x);

#endif
