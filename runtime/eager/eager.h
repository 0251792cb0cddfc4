/* The one-device library: runs a model as plain C, by its own path.
 *
 * A program evaluates its model function anew each step. Operators compute at once and leave a node
 * on the step's tape; the loss then walks the tape backwards. The session
 * (runtime/session/core/session.c) is the only caller:
 *
 *     eager_store *store = eager_store_create(seed);
 *     eager_program *program = eager_program_create(store, model, &optimizer, &options);
 *     float loss = eager_program_step(program, feeds, hyper);
 *     eager_program_fetch(program, &named, to);
 *
 * Every failure ends the program by ht_fail with a message for the user. Nothing here is
 * thread-safe; one program runs at a time.
 */
#ifndef EAGER_EAGER_H
#define EAGER_EAGER_H

#include "session/core/eager.h"

/* The parameters of a session. */
eager_store *eager_store_create(uint64_t seed);
void eager_store_destroy(eager_store *store);

/* Parameter number `index` in the order of their making, or of a name; NULL when there is none. */
eager_param *eager_store_param(eager_store *store, int index);
eager_param *eager_store_find(eager_store *store, const char *name);

/* A program; optimizer NULL: forward only. Evaluates the model once without computing anything,
 * which makes the parameters. The store must outlive it. */
eager_program *eager_program_create(eager_store *store, ht_tensor (*model)(void),
                                    const ht_optimizer *optimizer,
                                    const ht_program_options *options);
void eager_program_destroy(eager_program *program);

/* The type and the shape of an input; false: there is none of the name. */
bool eager_program_shape(eager_program *program, const char *name, ht_dtype *dtype, ht_dims *shape);

/* One training step, or one forward run when the program has no optimizer. Feeds end with a NULL
 * name; inputs not fed keep the last value, and must have been fed once; `hyper` has the
 * optimizers' numbers. Returns the loss before the update, or the model's value where that is a
 * scalar, else 0. */
float eager_program_step(eager_program *program, const ht_fed *feeds, const float *hyper);

/* The values of the program that have names, by number: outputs of the last step, of which "" is
 * the model's value, parameters and states, inputs; false behind the last. */
bool eager_program_named(const eager_program *program, int index, Named *named);

/* Copies such a value to `to`: of the last step, but for parameters and states what they are by
 * now. */
void eager_program_fetch(eager_program *program, const Named *named, void *to);

/* Elements of the largest input of integers; 0 where there is none. */
int64_t eager_program_tokens(const eager_program *program);

/* The norm of all gradients of the last step together. */
float eager_program_grad_norm(const eager_program *program);

/* Evaluates the model anew, after variables that it reads have changed, and those of the store's
 * programs that run forward on parameters of this one, which trains. Their inputs have to be fed
 * again. */
void eager_program_forget(eager_program *program);

/* State `index` of all optimizers of all programs; false behind the last. */
bool eager_store_state(eager_store *store, int index, eager_state *state);

/* Another seed, and another number of a program's next step, as a checkpoint has them. */
void eager_store_resume(eager_store *store, uint64_t seed);
void eager_program_resume(eager_program *program, int64_t step);

#endif
