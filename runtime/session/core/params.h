/* The parameters of a session: this rank's pieces, shared by the programs that name them.
 *
 * Programs may use a parameter in different layouts. Each layout in use has a copy. Before a
 * program runs, param_refresh converts the newest copy to the program's layout. */
#pragma once

#include "session/data/boxes.h"

typedef struct ParamCopy {
    const ht_pieces *pieces;
    float *data;     // on the device
    int64_t version; // Param.version when the values were written; -1: not written yet
    int users;       // number of programs that use the copy
    struct ParamCopy *next;
} ParamCopy;

typedef struct Param {
    const char *name, *shape;
    int init; // kind of initialisation, as in ht_init; `a` is its argument
    double a;
    int64_t elements;
    int64_t version;   // version of the newest copy
    int number, ranks; // index in Params.at; devices of the image that created the parameter
    ParamCopy *copies;
} Param;

typedef struct Params {
    void *by_name; // a tree of <search.h>
    Param **at;    // in order of creation
    int count, capacity;
} Params;

/* Sets *param to the parameter of `image`, and returns its copy in the layout of `image`, with one
 * user more. Creates both if needed; a new parameter's copy gets the initial values. */
ParamCopy *params_open(Params *params, const ht_image_param *image, int ranks, uint64_t seed,
                       Param **param);

/* Removes one user, and frees the copy after its last user unless the parameter has no other copy.
 * All ranks call it together. */
void param_release(Param *param, ParamCopy *copy);

/* Returns the first copy with the newest values; NULL: no copy has them. */
ParamCopy *param_newest(const Param *param);

Param *params_find(const Params *params, const char *name);

/* Copies the newest values into a copy that has older ones. All ranks call it together. */
void param_refresh(Param *param, ParamCopy *copy);

/* Mark a copy as equal to the newest values, or as changed, so that it is the newest. */
void param_brought(const Param *param, ParamCopy *copy);
void param_changed(Param *param, ParamCopy *copy);

/* Copy the whole parameter to or from memory of rank 0. All ranks call them together. */
void param_get(const Param *param, float *to);
void param_set(Param *param, const float *from);

void params_destroy(Params *params);
