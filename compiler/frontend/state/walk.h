/* Walks over the C tree. */
#ifndef FRONTEND_STATE_WALK_H
#define FRONTEND_STATE_WALK_H

#include "frontend/ctree.h"

typedef void WalkVisit(const CExpr *expr, void *data);

/* Calls `visit` for every expression in a statement, outer ones first. */
void walk_statement(const CStmt *stmt, WalkVisit *visit, void *data);
void walk_expression(const CExpr *expr, WalkVisit *visit, void *data);

#endif
