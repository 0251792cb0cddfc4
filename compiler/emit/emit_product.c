/* Kernels from products: one call of ht_product with a table of axes. */
#include "emit/emitter.h"

#include <string.h>

/* Reads `scale * (x * w)` in any order of the factors; false when the term is something else. */
static bool product_factors(const Expr *expr, const Expr **accesses, int *access_count, const Expr **scale)
{
    if (expr->kind == EXPR_MUL)
        return product_factors(expr->arg[0], accesses, access_count, scale) && product_factors(expr->arg[1], accesses, access_count, scale);
    if (expr->kind == EXPR_ACCESS) {
        if (*access_count == 2)
            return false;
        accesses[(*access_count)++] = expr;
        return true;
    }
    if ((expr->kind != EXPR_NUMBER && expr->kind != EXPR_ATTR) || *scale)
        return false;
    *scale = expr;
    return true;
}

static bool tensor_has(const Tensor *tensor, int factor)
{
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++)
        if (tensor->bound->dims[d].factors[0] == factor)
            return true;
    return false;
}

/* Whether one operand of the product has an axis of the result that the other lacks: else a loop nest serves as well. */
static bool product_is_matrix(const LocalOp *local, const Product *product)
{
    bool alone = false;
    for (int f = 0; f < local->factor_count; f++)
        if (!(local->contracted >> f & 1) && local->extent[f] > 1)
            alone = alone || tensor_has(&local->operands[product->x], f) != tensor_has(&local->operands[product->w], f);
    return alone;
}

static bool all_floats(const LocalOp *local)
{
    bool floats = local->results[0].value->type.dtype == DTYPE_F32;
    for (int k = 0; k < local->operand_count; k++)
        floats = floats && (!local->operands[k].value || local->operands[k].value->type.dtype == DTYPE_F32);
    return floats;
}

bool product_of(const LocalOp *local, Product *product)
{
    *product = (Product){.bias = -1};
    if (local->result_count != 1 || local->term_count < 1 || local->term_count > 2 || !all_floats(local))
        return false;
    int main = local->terms[0].contracted ? 0 : local->term_count - 1;
    const Term *term = &local->terms[main], *other = local->term_count == 2 ? &local->terms[1 - main] : NULL;
    if (!term->contracted || term->minus || term->flagged || term->contracted != local->contracted)
        return false;
    const Expr *accesses[2];
    int access_count = 0;
    if (!product_factors(term->expr, accesses, &access_count, &product->scale) || access_count != 2)
        return false;
    product->x = operand_of(local, accesses[0]->index);
    product->w = operand_of(local, accesses[1]->index);
    if (other && (other->contracted || other->minus || other->expr->kind != EXPR_ACCESS))
        return false;
    product->bias = other ? operand_of(local, other->expr->index) : -1;
    product->bias_flagged = other && other->flagged;
    return product_is_matrix(local, product);
}

static int64_t stride_of(const Tensor *tensor, int factor)
{
    int64_t stride = 0, step = 1;
    for (int d = tensor->bound->rank - 1; d >= 0; d--) {
        if (tensor->bound->dims[d].factors[0] == factor)
            stride += step;
        step *= tensor->extent[d];
    }
    return stride;
}

static const char *factor_name(const LocalOp *local, int factor)
{
    return local->rule->factors[local->op->binding->factors[factor].factor].name;
}

static void emit_axis(Text *out, const LocalOp *local, const Product *product, int factor)
{
    text_print(out, "        {%lld, %lld, %lld, %lld, %lld}, /* %s */\n", (long long)local->extent[factor],
               (long long)stride_of(&local->results[0], factor), (long long)stride_of(&local->operands[product->x], factor),
               (long long)stride_of(&local->operands[product->w], factor),
               (long long)(product->bias < 0 ? 0 : stride_of(&local->operands[product->bias], factor)), factor_name(local, factor));
}

static void no_access(Text *out, const LocalOp *local, int operand, void *context)
{
    (void)out, (void)context;
    BUG("%s: operand %d in a scale", local->op->def->name, operand);
}

void emit_product(Text *out, const LocalOp *local, const Product *product)
{
    Text scale = {.arena = out->arena};
    if (product->scale)
        emit_expr(&scale, local, product->scale, no_access, NULL);
    int axes = 0;
    text_string(out, "    static const ht_axis axes[] = {\n");
    for (int f = 0; f < local->factor_count; f++)
        if (local->extent[f] != 1) {
            emit_axis(out, local, product, f);
            axes++;
        }
    text_string(out, "    };\n");
    const char *bias = product->bias < 0 ? "NULL" : local->operands[product->bias].name;
    char count[16];
    snprintf(count, sizeof count, "%d", axes);
    text_fill(out,
              product->bias_flagged ? "    ht_product($y, $x, $w, at[0] ? $bias : NULL, $axes, axes, $scale);\n"
                                    : "    ht_product($y, $x, $w, $bias, $axes, axes, $scale);\n",
              "y", local->results[0].name, "x", local->operands[product->x].name, "w", local->operands[product->w].name, "bias", bias,
              "axes", count, "scale", product->scale ? text_bytes(&scale) : "1", NULL);
}
