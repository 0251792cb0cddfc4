#include "frontend/state/walk.h"

void walk_expression(const CExpr *expr, WalkVisit *visit, void *data)
{
    if (!expr)
        return;
    visit(expr, data);
    walk_expression(expr->a, visit, data);
    walk_expression(expr->b, visit, data);
    walk_expression(expr->c, visit, data);
    for (int i = 0; i < expr->args.count; i++)
        walk_expression(expr->args.at[i], visit, data);
    if (expr->kind == C_STATEMENT)
        walk_statement(expr->statement, visit, data);
}

void walk_statement(const CStmt *stmt, WalkVisit *visit, void *data)
{
    if (!stmt)
        return;
    walk_expression(stmt->expr, visit, data);
    walk_expression(stmt->step, visit, data);
    walk_statement(stmt->init, visit, data);
    walk_statement(stmt->then, visit, data);
    walk_statement(stmt->other, visit, data);
    for (int i = 0; i < stmt->vars.count; i++) {
        walk_expression(stmt->vars.at[i]->length, visit, data);
        walk_expression(stmt->vars.at[i]->init, visit, data);
    }
    for (int i = 0; i < stmt->body.count; i++)
        walk_statement(stmt->body.at[i], visit, data);
}
