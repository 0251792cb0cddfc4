/* What moving values costs, as deduction weighs it: the bytes of the planner's own plans. */
#ifndef PASSES_DEDUCE_PRICE_H
#define PASSES_DEDUCE_PRICE_H

#include "passes/place/mesh.h"

/* Bytes that a device receives, on average, when a value goes from one sharding to another; infinite where it cannot. */
double price_conversion(const Mesh *mesh, const Value *value, const Sharding *from, const Sharding *to);

#endif
