/* The one-device library: runs a model as plain C, without hetucc.
 *
 * A program evaluates its model function in each step. Operators compute at once and record
 * themselves on the step's tape. Backward then runs the tape in reverse (reverse-mode automatic
 * differentiation). The session (runtime/session/core/session.c) is the only caller:
 *
 *     eager_store *store = eager_store_create(seed);
 *     eager_program *program = eager_program_create(store, model, &optimizer, &options);
 *     float loss = eager_program_step(program, feeds, hyper);
 *     eager_program_fetch(program, &named, to);
 *
 * Every failure ends the program by ht_fail with a message for the user. Nothing here is
 * thread-safe; one program runs at a time. */
#pragma once

#include "session/core/eager.h"

/* Creates the parameters of a session; `seed` determines their initial values. */
eager_store *eager_store_create(uint64_t seed);

/* Return parameter `index` in order of creation, or the one called `name`; NULL: none. */
eager_param *eager_store_param(eager_store *store, int index);
eager_param *eager_store_find(eager_store *store, const char *name);

/* Creates a program; optimizer NULL: forward only. Evaluates the model once without computing, to
 * create the parameters. The store must outlive the program. */
eager_program *eager_program_create(eager_store *store, ht_tensor (*model)(void),
                                    const ht_optimizer *optimizer,
                                    const ht_program_options *options);

/* Sets *dtype and *shape to those of an input; returns false if no input has the name. */
bool eager_program_shape(eager_program *program, const char *name, ht_dtype *dtype, ht_dims *shape);

/* Runs one training step, or one forward pass if the program has no optimizer. `feeds` ends with a
 * NULL name. Inputs that are not fed keep their last value; the program ends if there is none.
 * `hyper` has the optimizers' hyperparameters. Returns the model's value before the update if the
 * value is an f32 scalar (such as the loss), else 0. */
float eager_program_step(eager_program *program, const ht_fed *feeds, const float *hyper);

/* Sets *named to named value `index` of the program; returns false past the last. The outputs of
 * the last step come first ("" is the model's value), then parameters and states, then inputs. */
bool eager_program_named(const eager_program *program, int index, Named *named);

/* Return a value's size in bytes; copy the value to `to`. Outputs are of the last step. */
int64_t eager_program_bytes(const eager_program *program, const Named *named);
void eager_program_fetch(eager_program *program, const Named *named, void *to);

/* Returns the number of elements of the largest integer input; 0: there is none. */
int64_t eager_program_tokens(const eager_program *program);

/* Returns the global L2 norm of the last step's gradients. */
float eager_program_grad_norm(const eager_program *program);

/* Evaluates the model again after variables that the model reads have changed. If this program
 * trains, forward-only programs that share its parameters are evaluated again, too. The inputs of
 * all these programs must be fed again. */
void eager_program_forget(eager_program *program);

/* Sets *state to number `index` of the states of all programs; returns false past the last. */
bool eager_store_state(eager_store *store, int index, eager_state *state);

/* Set the store's seed, and the number of a program's next step, from a checkpoint. */
void eager_store_resume(eager_store *store, uint64_t seed);
void eager_program_resume(eager_program *program, int64_t step);
