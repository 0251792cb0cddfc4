/* The one-device library behind a session: runs models that hetucc did not compile. The library
 * registers itself if it is linked (eager/model.c); programs for other devices are built without
 * the library. eager/eager.h describes its functions. */
#pragma once

#include "session/data/named_values.h"

#include <hetu/session.h>

typedef struct eager_store eager_store;
typedef struct eager_program eager_program;

/* A parameter of a session, shared by its programs. */
typedef struct eager_param {
    const char *name; // full name, scopes included
    ht_dims shape;
    int64_t count; // elements
    float *data;
    ht_init init;
} eager_param;

/* A state of an optimizer: `number` is its index among the states of the parameter, `program` the
 * index of its program among the programs that train. */
typedef struct eager_state {
    const eager_param *param;
    int number, program;
    float *data;
} eager_state;

typedef struct EagerLibrary {
    eager_store *(*store_create)(uint64_t seed);
    eager_param *(*store_param)(eager_store *store, int index);
    eager_param *(*store_find)(eager_store *store, const char *name);
    eager_program *(*program_create)(eager_store *store, ht_tensor (*model)(void),
                                     const ht_optimizer *optimizer,
                                     const ht_program_options *options);
    bool (*program_input)(eager_program *program, const char *name, ht_dtype *dtype,
                          ht_dims *shape); // returns false if there is no such input
    float (*program_step)(eager_program *program, const ht_fed *feeds, const float *hyper);
    int64_t (*program_tokens)(const eager_program *program);
    float (*program_grad_norm)(const eager_program *program);
    bool (*program_named)(const eager_program *program, int index,
                          Named *named); // returns false after the last value
    int64_t (*program_bytes)(const eager_program *program, const Named *named);
    void (*program_fetch)(eager_program *program, const Named *named, void *to);
    void (*program_forget)(eager_program *program);
    bool (*store_state)(eager_store *store, int index, eager_state *state);
    void (*store_resume)(eager_store *store, uint64_t seed);
    void (*program_resume)(eager_program *program, int64_t step);
} EagerLibrary;

/* Registers the library; called before main. */
void session_use_eager(const EagerLibrary *library);
