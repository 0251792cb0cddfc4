/* Writes kernels of matrix products: one call of ht_product with a table of axes. */
#include "emit/kernel/kernel.h"
#include "emit/kernel/local.h"
#include "emit/words.h"
#include "rule/expr.h"

static bool tensor_has(const Tensor *tensor, int factor) {
    for (int d = 0; tensor->value && d < tensor->bound->rank; d++)
        if (tensor->bound->dims[d].factors[0] == factor) return true;
    return false;
}

/* Returns whether one operand has a dimension of the result that the other operand lacks. */
static bool product_is_matrix(const LocalOp *local, const Product *product) {
    bool alone = false;
    for (int f = 0; f < local->factor_count; f++)
        if (!(local->contracted >> f & 1) && local->extent[f] > 1)
            alone = alone || tensor_has(&local->operands[product->x], f) !=
                                 tensor_has(&local->operands[product->w], f);
    return alone;
}

static bool is_float(const Tensor *tensor) {
    return !tensor->value || tensor->value->type.dtype == DTYPE_F32 ||
           tensor->value->type.dtype == DTYPE_BF16;
}

static bool all_floats(const LocalOp *local) {
    bool floats = is_float(&local->results[0]);
    for (int k = 0; k < local->operand_count; k++) floats = floats && is_float(&local->operands[k]);
    return floats;
}

static void find_results(const LocalOp *local, Product *product) {
    const Rule *rule = local->rule;
    if (!rule->equations.count) return;
    product->y = rule->equations.at[1].value;
    product->aux =
        rule->equations.at[0].value < rule->result_count ? rule->equations.at[0].value : -1;
}

bool product_of(const LocalOp *local, Product *product) {
    *product = (Product){.bias = -1, .aux = -1};
    find_results(local, product);
    if (local->term_count < 1 || local->term_count > 2 || !all_floats(local)) return false;
    int main = local->terms[0].contracted ? 0 : local->term_count - 1;
    const Term *term = &local->terms[main],
               *other = local->term_count == 2 ? &local->terms[1 - main] : NULL;
    if (!term->contracted || term->minus || term->flagged || term->contracted != local->contracted)
        return false;
    ProductTerm factors = {0};
    if (!expr_is_product(term->expr, &factors) || factors.count != 2) return false;
    product->scale = factors.scale;
    product->x = operand_of(local, factors.operand[0]);
    product->w = operand_of(local, factors.operand[1]);
    if (other && (other->contracted || other->minus || other->expr->kind != EXPR_ACCESS))
        return false;
    product->bias = other ? operand_of(local, other->expr->index) : -1;
    product->bias_flagged = other && other->flagged;
    return local->operands[product->x].value->type.dtype ==
               local->operands[product->w].value->type.dtype &&
           product_is_matrix(local, product);
}

static const char *factor_name(const LocalOp *local, int factor) {
    return local->rule->factors[local->op->binding->factors[factor].factor].name;
}

/* Returns the stride of the column sums along a factor of the product; 0: sums lack the factor. */
static int64_t sums_stride(const LocalOp *local, int factor) {
    const BoundAccess *there = &local->op->binding->operands[local->summed],
                      *own = &local->sum->binding->operands[0];
    for (int d = 0; d < there->rank; d++)
        if (there->dims[d].factors[0] == factor)
            return tensor_stride(&local->sums, own->dims[d].factors[0]);
    return 0;
}

static void emit_axis(Text *out, const LocalOp *local, const Product *product, int factor) {
    text_print(
        out, "        {%lld, %lld, %lld, %lld, %lld}, /* %s */\n", (long long)local->extent[factor],
        (long long)tensor_stride(&local->results[0], factor),
        (long long)tensor_stride(&local->operands[product->x], factor),
        (long long)tensor_stride(&local->operands[product->w], factor),
        (long long)(local->sum          ? sums_stride(local, factor)
                    : product->bias < 0 ? 0
                                        : tensor_stride(&local->operands[product->bias], factor)),
        factor_name(local, factor));
}

static void no_access(Text *out, const LocalOp *local, int operand, void *context) {
    (void)out, (void)context;
    BUG("%s: operand %d in a scale", local->op->def->name, operand);
}

static const char *tensor_dtype(const Tensor *tensor) { return c_dtype(tensor->value->type.dtype); }

/* Returns the fields of the call for the bias, or for column sums; "" if the call has neither. */
static const char *bias_members(const LocalOp *local, const Product *product, Arena *arena) {
    if (local->sum)
        return arena_format(arena, ".sums = %s, .sums_of_w = %d, ", local->sums.name,
                            local->summed == product->w);
    if (product->bias < 0) return "";
    const Tensor *bias = &local->operands[product->bias];
    return arena_format(arena,
                        product->bias_flagged ? ".bias = at[0] ? %s : NULL, .bias_dtype = %s, "
                                              : ".bias = %s, .bias_dtype = %s, ",
                        bias->name, tensor_dtype(bias));
}

/* Returns the fields of the call for the epilogue. */
static const char *epilogue_members(const LocalOp *local, const Product *product, Arena *arena) {
    if (!local->rule->equations.count) return "";
    const char *epilogue = local->rule->epilogue;
    return product->aux < 0 ? arena_format(arena, ".epilogue = %s, ", epilogue)
                            : arena_format(arena, ".epilogue = %s, .aux = %s, ", epilogue,
                                           local->results[product->aux].name);
}

void emit_product(Text *out, const LocalOp *local, const Product *product) {
    const Tensor *y = &local->results[product->y], *x = &local->operands[product->x],
                 *w = &local->operands[product->w];
    Text scale = {.arena = out->arena};
    if (product->scale) emit_expr(&scale, local, product->scale, no_access, NULL);
    int axes = 0;
    text_string(out, "    static const ht_axis axes[] = {\n");
    for (int f = 0; f < local->factor_count; f++)
        if (local->extent[f] != 1) {
            emit_axis(out, local, product, f);
            axes++;
        }
    text_string(out, "    };\n");
    text_fill(out,
              "    const ht_product_call call = {.y = $y, .y_dtype = $y_dtype, .x = $x, .w = $w, "
              ".dtype = $dtype,\n"
              "                                  $bias.scale = $scale, $epilogue.rank = $axes, "
              ".axes = axes};\n"
              "    ht_product(&call);\n",
              "y", y->name, "y_dtype", tensor_dtype(y), "x", x->name, "w", w->name, "dtype",
              tensor_dtype(x), "bias", bias_members(local, product, out->arena), "scale",
              product->scale ? text_bytes(&scale) : "1", "epilogue",
              epilogue_members(local, product, out->arena), "axes",
              arena_format(out->arena, "%d", axes), NULL);
}
