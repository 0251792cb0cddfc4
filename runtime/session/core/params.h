/* The parameters of a session: this rank's pieces, shared by the programs that name them.
 *
 * Programs may want a parameter in different layouts. Each layout in use is a copy; the newest one
 * is moved into another when a program that reads that one runs.
 */
#ifndef SESSION_CORE_PARAMS_H
#define SESSION_CORE_PARAMS_H

#include "session/data/boxes.h"

typedef struct ParamCopy {
    const ht_pieces *pieces;
    float *data; // on the device
    int64_t version;
    int users; // programs that have it
    struct ParamCopy *next;
} ParamCopy;

typedef struct Param {
    const char *name, *shape;
    int init; // how it was initialised
    double a;
    int64_t elements;
    int64_t version; // of the newest copy
    int number, ranks;
    ParamCopy *copies;
} Param;

typedef struct Params {
    void *by_name; // a tree of <search.h>
    Param **at;    // in the order of their making
    int count, capacity;
} Params;

/* The copy of a parameter in the layout of `image`, for one more user; made, with its initial
 * values where it is the first one. */
ParamCopy *params_open(Params *params, const ht_image_param *image, int ranks, uint64_t seed,
                       Param **param);

/* A user gives a copy up. It goes with the last one, unless the parameter has no other; all ranks
 * together. */
void param_release(Param *param, ParamCopy *copy);

/* The first copy with the newest values. */
ParamCopy *param_newest(const Param *param);

Param *params_find(const Params *params, const char *name);

/* Brings a copy up to date; all ranks together. */
void param_refresh(Param *param, ParamCopy *copy);

/* Says that a copy has been given the newest values, or that it holds new ones. */
void param_brought(const Param *param, ParamCopy *copy);
void param_changed(Param *param, ParamCopy *copy);

/* Copies the whole parameter to or from memory of rank 0; all ranks together. */
void param_get(const Param *param, float *to);
void param_set(Param *param, const float *from);

void params_destroy(Params *params);

#endif
