/* The models of a translation unit: what ht_train and ht_infer are called with. */
#ifndef FRONTEND_MODELS_H
#define FRONTEND_MODELS_H

#include "frontend/ctree.h"
#include "frontend/frontend.h"

/* Whether the unit calls ht_train or ht_infer at all. */
bool models_exist(CUnit *unit);

/* Visits the calls of ht_train and ht_infer with all expressions in them. */
void models_walk(CUnit *unit, CVisit *visit, void *data);

/* Evaluates every model that ht_train or ht_infer names and appends a module for each. Errors are
 * reported. */
void models_read(CUnit *cunit, Unit *unit, const FrontendOptions *options);

#endif
