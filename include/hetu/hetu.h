/* hetu.h: the header that a model includes.
 *
 * A model is plain C for one device. `cc model.c -lhetu` runs it on one device; `hetucc model.c -o
 * model` compiles a program for many devices that computes the same values. Pragmas begin with
 * `#pragma hspmd`; a plain C compiler ignores them. See hspmd(7) for the language.
 */
#ifndef HETU_HETU_H
#define HETU_HETU_H

#ifdef __cplusplus
/* No such file: the C++ compiler ends with this one error. */
#include <a model is C, not C++; put it into a .c file, and let C++ call its functions by extern C>
#else

#include <hetu/model.h>
#include <hetu/session.h>
#include <hetu/strategies.h>
#include <hetu/checkpoints.h>

/* Operators, and functions made of them. */
#include <hetu/ops.h>
#include <hetu/tensors.h>
#include <hetu/indexing.h>
#include <hetu/reductions.h>
#include <hetu/losses.h>
#include <hetu/einsum.h>
#include <hetu/images.h>
#include <hetu/layers.h>
#include <hetu/optimizers.h>

#endif
#endif
