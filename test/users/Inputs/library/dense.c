#include "layers.h"

#include "width.inc"

/* The other file has another function of this name. */
static ht_tensor scaled(ht_tensor x) { return ht_mul(x, ht_scalar(GAIN)); }

/* And another struct. */
struct place {
    const char *name;
    int number;
};

static ht_dims shape_of(struct place place, const struct width *width)
{
    return place.number ? ht_shape(width->out, width->in) : ht_shape(width->out);
}

ht_tensor dense(ht_tensor x, const struct width *width, const char *name)
{
    ht_scope("%s", name);
    struct place weight = {"w", 1}, bias = {"b", 0};
    ht_tensor w = ht_param(shape_of(weight, width), ht_normal(0.3f), weight.name), b = ht_param(shape_of(bias, width), ht_zeros(), bias.name);
#pragma hspmd dims(w: out, _)
    return scaled(ht_linear(x, w, b));
}

ht_tensor tower_rest(ht_tensor x, int depth) { return depth > 1 ? tower(x, depth - 1) : x; }
