/* Writes each operator's table (runtime/eager/operator.h) and its C function. */
#include "operators.h"

#include "rule/equations.h"
#include "rule/expr.h"
#include "rule/gradient.h"

#include <string.h>

static bool is_tensors(ParamKind kind) { return kind == PARAM_TENSOR || kind == PARAM_TENSORS; }

/* ---- integers over arguments and extents ---- */

/* Writes a leaf. Implements ExprLeaf; `context` is the OpDef. */
static void write_leaf(Text *out, const Expr *leaf, void *context) {
    if (leaf->kind == EXPR_SIZE) text_print(out, "(Wide)size[%d]", leaf->index);
    else
        text_print(out,
                   opdef_attr_kind(context, leaf->index) == PARAM_FLOAT ? "attr[%d].f"
                                                                        : "(Wide)attr[%d].i",
                   leaf->index);
}

/* Writes a check for each integer division: the C function returns `none` for the divisor 0. */
static void write_guards(Text *out, const OpDef *def, const Expr *expr, const char *none) {
    bool divides = expr->kind == EXPR_DIV || expr->kind == EXPR_MOD;
    if (divides && !opdef_float_in(def, expr->arg[0], 0) && !opdef_float_in(def, expr->arg[1], 0)) {
        text_string(out, "    if ((");
        expr_print(out, expr->arg[1], write_leaf, (void *)def);
        text_print(out, ") == 0)\n        return %s;\n", none);
    }
    for (int i = 0; i < expr->arg_count; i++) write_guards(out, def, expr->arg[i], none);
}

static void write_number(Text *out, const OpDef *def, bool condition, const char *name,
                         const Expr *expr) {
    text_print(
        out,
        "static %s %s(const ht_attr *attr, const int64_t *size)\n{\n    (void)attr, (void)size;\n",
        condition ? "bool" : "Wide", name);
    write_guards(out, def, expr, condition ? "false" : "-1");
    text_string(out, "    return ");
    expr_print(out, expr, write_leaf, (void *)def);
    text_string(out, ";\n}\n\n");
}

static void write_numbers(Text *out, const OpDef *def) {
    const Rule *rule = def->rule;
    for (int f = 0; f < rule->factor_count; f++) {
        const Factor *factor = &rule->factors[f];
        if (factor->count)
            write_number(out, def, false,
                         arena_format(out->arena, "count_%s_of_%s", factor->name, def->name),
                         factor->count);
        if (factor->size)
            write_number(out, def, false,
                         arena_format(out->arena, "size_%s_of_%s", factor->name, def->name),
                         factor->size);
    }
    for (int k = 0; k < rule->operand_count; k++)
        if (rule->operands[k].reads)
            write_number(
                out, def, false,
                arena_format(out->arena, "reads_%s_of_%s", rule->operands[k].name, def->name),
                rule->operands[k].reads);
    for (int r = 0; r < rule->requirements.count; r++)
        write_number(out, def, true, arena_format(out->arena, "requirement_%d_of_%s", r, def->name),
                     rule->requirements.at[r].condition);
}

/* ---- operations ---- */

enum { MOST_TERMS = 256 };

/* Returns the operands that an expression reads, as bits. */
static uint32_t read_operands(const Expr *expr) {
    uint32_t read = expr->kind == EXPR_ACCESS ? UINT32_C(1) << expr->index : 0;
    for (int i = 0; i < expr->arg_count; i++) read |= read_operands(expr->arg[i]);
    return read;
}

static int first_of(const Rule *rule, const Access *value) {
    int f = 0;
    while (f < rule->factor_count && !access_has(value, f)) f++;
    return f;
}

/* Writes the number of floating-point operations of a value, counted as in
 * compiler/cost/flops_and_bytes.c: by term, over the term's and value's factors. */
static void write_value_operations(Text *out, const Rule *rule, const Access *value,
                                   const Expr *expr) {
    ExprTerm terms[MOST_TERMS];
    int count = expr_terms(expr, terms, MOST_TERMS);
    for (int t = 0; t < count && t < MOST_TERMS; t++) {
        bool *marked = arena_array(out->arena, bool, rule->factor_count + 1), summed = false;
        equations_mark(rule, terms[t].expr, marked);
        for (int f = 0; f < rule->factor_count; f++) summed |= marked[f] && !access_has(value, f);
        text_print(out, "    total += (present & 0x%xu) != 0x%xu ? 0 : %d.0",
                   read_operands(terms[t].expr), read_operands(terms[t].expr),
                   expr_operations(terms[t].expr) + summed);
        for (int f = 0; f < rule->factor_count; f++)
            if (marked[f] || access_has(value, f)) text_print(out, " * (double)size[%d]", f);
        for (int f = 0; t && f < rule->factor_count; f++)
            if (access_has(value, f))
                text_print(
                    out, f == first_of(rule, value) ? " + (double)size[%d]" : " * (double)size[%d]",
                    f);
        text_string(out, ";\n");
    }
}

/* Returns whether operations can be counted: by a clause `operations`, a body, or equations. */
static bool has_operations(const Rule *rule) {
    return rule->call.operations || rule->kind == RULE_BODY || rule->equations.count;
}

static void write_operations(Text *out, const OpDef *def) {
    const Rule *rule = def->rule;
    if (!has_operations(rule)) return;
    text_print(out,
               "static double operations_of_%s(const ht_attr *attr, const int64_t *size, uint32_t "
               "present)\n{\n    double total = 0;\n"
               "    (void)attr, (void)size, (void)present;\n",
               def->name);
    if (rule->call.operations) {
        write_guards(out, def, rule->call.operations, "0");
        text_string(out, "    total = (double)(");
        expr_print(out, rule->call.operations, write_leaf, (void *)def);
        text_string(out, ");\n    return total;\n}\n\n");
        return;
    }
    if (rule->kind == RULE_BODY) write_value_operations(out, rule, &rule->results[0], rule->body);
    for (int e = 0; rule->kind != RULE_BODY && e < rule->equations.count; e++)
        write_value_operations(out, rule, equations_value(rule, rule->equations.at[e].value),
                               rule->equations.at[e].expr);
    text_string(out, "    return total;\n}\n\n");
}

/* ---- types ---- */

/* One choice of the types that a rule leaves open; a set bit means an integer type. Bit 0 is the
 * common type of operands, bit 1 + k the type of operand k if that differs; the arguments' bits
 * follow. */
typedef struct Choice {
    const OpDef *def;
    uint32_t bits, used; // used: the bits that the rule depends on
} Choice;

static bool ask(Choice *choice, int bit) {
    choice->used |= UINT32_C(1) << bit;
    return choice->bits >> bit & 1;
}

/* Returns whether a tensor has an integer type. `operand` is its number; -1: it is a result. */
static bool is_integer(Choice *choice, const Access *access, int operand) {
    const Rule *rule = choice->def->rule;
    const Element *element = &access->element;
    switch (element->kind) {
    case ELEMENT_FIXED: return !dtype_is_float((DType)element->index);
    case ELEMENT_INTEGER: return true;
    case ELEMENT_ARGUMENT: return ask(choice, 1 + rule->operand_count + element->index);
    case ELEMENT_OPERAND:
        return is_integer(choice, &rule->operands[element->index], element->index);
    case ELEMENT_FOLLOWS:
        if (operand >= 0) return ask(choice, rule_of_one_type(rule) ? 0 : 1 + operand);
        return rule->operand_count && is_integer(choice, &rule->operands[0], 0);
    case ELEMENT_WIDE: break;
    }
    bool any = false, real = false;
    for (int k = 0; k < rule->operand_count; k++)
        if (rule->operands[k].element.kind == ELEMENT_FOLLOWS) {
            any = true;
            real |= !is_integer(choice, &rule->operands[k], k);
        }
    return any ? !real : rule->operand_count && rule->operands[0].element.kind == ELEMENT_INTEGER;
}

/* Returns the operands and results of integer types, as bits. */
static uint32_t integers_of(Choice *choice) {
    const Rule *rule = choice->def->rule;
    uint32_t integers = 0;
    for (int k = 0; k < rule->operand_count; k++)
        integers |= (uint32_t)is_integer(choice, &rule->operands[k], k) << k;
    for (int r = 0; r < rule->result_count; r++)
        integers |= (uint32_t)is_integer(choice, &rule->results[r], -1)
                    << (rule->operand_count + r);
    return integers;
}

/* Returns whether a call with these types is refused, since its integer result would lose the
 * fractions. */
static bool loses_fractions(const OpDef *def, uint32_t integers) {
    ElementKind kind = def->rule->results[0].element.kind;
    return !opdef_is_integral(def) && kind != ELEMENT_FIXED && kind != ELEMENT_ARGUMENT &&
           integers >> def->rule->operand_count & 1;
}

typedef Array(uint32_t) Sets;

/* Returns all choices of types that calls of an operator may have, as the bits of integers_of. */
static Sets choices_of(Arena *arena, const OpDef *def) {
    Sets sets = {0};
    Choice all = {.def = def};
    int bits = 1 + def->rule->operand_count + def->attr_count;
    integers_of(&all);
    for (uint32_t b = 0; b < UINT32_C(1) << bits; b++) {
        Choice choice = {.def = def, .bits = b};
        uint32_t integers = integers_of(&choice);
        if (!(b & ~all.used) && !loses_fractions(def, integers)) array_push(arena, &sets, integers);
    }
    return sets;
}

/* ---- loops ---- */

static const char *loops_name(Arena *arena, const OpDef *def, LoopsVariant variant) {
    Text name = {.arena = arena};
    text_print(&name, "f%d_of_%s", variant.wide ? 64 : 32, def->name);
    if (variant.operand >= 0)
        text_print(&name, "_by_%s", def->rule->operands[variant.operand].name);
    if (variant.integers) text_print(&name, "_%x", variant.integers);
    return text_bytes(&name);
}

/* Returns the choices that loops are written for; a gradient needs a floating-point operand and
 * result. */
static Sets loops_of(Arena *arena, const OpDef *def, int operand) {
    Sets choices = choices_of(arena, def), found = {0};
    for (int c = 0; c < choices.count; c++) {
        uint32_t integers = choices.at[c], ends = UINT32_C(1) << def->rule->operand_count |
                                                  (operand < 0 ? 0 : UINT32_C(1) << operand);
        if (operand < 0 || !(integers & ends)) array_push(arena, &found, integers);
    }
    return found;
}

static void write_loops(Text *out, const OpDef *def, int operand) {
    Sets choices = loops_of(out->arena, def, operand);
    for (int c = 0; c < choices.count; c++)
        for (int wide = 0; wide < 2 && !opdef_remainder(out->arena, def, choices.at[c]); wide++) {
            LoopsVariant variant = {operand, choices.at[c], wide};
            loops_write(out, def, loops_name(out->arena, def, variant), variant);
        }
}

static void write_variants(Text *out, const OpDef *def, int operand, const char *blanks) {
    Sets choices = loops_of(out->arena, def, operand);
    text_print(out, "{%d, (const OperatorVariant[]){\n", choices.count);
    for (int c = 0; c < choices.count; c++) {
        const char *refusal = opdef_remainder(out->arena, def, choices.at[c]);
        if (refusal)
            text_print(out, "%s    {.integers = 0x%x, .refusal = \"%s\"},\n", blanks, choices.at[c],
                       refusal);
        else
            text_print(out, "%s    {0x%x, %s, %s, NULL},\n", blanks, choices.at[c],
                       loops_name(out->arena, def, (LoopsVariant){operand, choices.at[c], false}),
                       loops_name(out->arena, def, (LoopsVariant){operand, choices.at[c], true}));
    }
    text_print(out, "%s}}", blanks);
}

/* ---- operands that results equal ---- */

static void list_factors(const Access *access, int *factors, int *count) {
    *count = 0;
    for (int d = 0; d < access->dim_count; d++)
        for (int k = 0; k < access->dims[d].count; k++)
            factors[(*count)++] = access->dims[d].factors[k];
}

/* Returns whether the factors of `part` are a subsequence of `whole`'s factors. With equal shapes,
 * both tensors then have the same element order. */
static bool is_within(const Access *part, const Access *whole) {
    int a[64], b[64], a_count, b_count, found = 0;
    list_factors(part, a, &a_count);
    list_factors(whole, b, &b_count);
    for (int k = 0; k < b_count && found < a_count; k++) found += b[k] == a[found];
    return found == a_count;
}

/* Simplifies an expression for the case that every operand except `operand` is 0. */
static const Expr *alone(Arena *arena, const Expr *expr, int operand) {
    if (expr->kind == EXPR_ACCESS)
        return expr->index == operand ? expr : expr_number(arena, 0, NULL);
    if (expr->kind != EXPR_ADD && expr->kind != EXPR_SUB) return expr;
    return expr_binary(arena, expr->kind, alone(arena, expr->arg[0], operand),
                       alone(arena, expr->arg[1], operand));
}

/* Returns, as bits, the operands that equal the result when the other operands are 0 (x + z). */
static uint32_t passing(Arena *arena, const Rule *rule) {
    uint32_t set = 0;
    for (int k = 0; rule->kind == RULE_BODY && k < rule->operand_count; k++) {
        const Expr *left = alone(arena, rule->body, k);
        if (left->kind == EXPR_ACCESS && left->index == k &&
            is_within(&rule->operands[k], &rule->results[0]))
            set |= UINT32_C(1) << k;
    }
    return set;
}

/* Returns the name of the CPU kernel; NULL where loops compute the operator. */
static const char *kernel_of(const Rule *rule) {
    const RuleKernel *kernel = rule_kernel(rule, "cpu");
    return kernel ? kernel->function : NULL;
}

/* Returns whether loops compute the values. */
static bool has_loops(const Rule *rule) {
    return rule->kind == RULE_BODY || rule->kind == RULE_EQUATIONS;
}

static bool flows(const Rule *rule) {
    return !rule->grad.function || strcmp(rule->grad.function, "none");
}

static bool has_function(const Rule *rule) {
    return rule->grad.function && strcmp(rule->grad.function, "none");
}

/* Returns whether the gradient is derived from the rule's expression. */
static bool by_rule(const Rule *rule) { return rule->kind == RULE_BODY && !rule->grad.function; }

static const Expr *gradient(Arena *arena, const Rule *rule, int operand) {
    return rule_gradient(arena, rule, operand, 0);
}

/* Returns whether an operator is an optimizer's update: its first operand is a parameter, and its
 * result replaces the parameter. */
static bool is_update(const Rule *rule) {
    return rule->result_count > 0 && rule->results[0].inplace == 0;
}

/* ---- the table ---- */

static void write_factors(Text *out, const OpDef *def) {
    const Rule *rule = def->rule;
    text_string(out, "    .factors = (const OperatorFactor[]){\n");
    for (int f = 0; f < rule->factor_count; f++) {
        const Factor *factor = &rule->factors[f];
        bool in_member = false, elsewhere = false;
        uint32_t size_of = 0;
        for (int k = 0; k < rule->operand_count; k++)
            *(rule->operands[k].variadic ? &in_member : &elsewhere) |=
                access_has(&rule->operands[k], f);
        for (int r = 0; r < rule->result_count; r++) elsewhere |= access_has(&rule->results[r], f);
        for (int g = 0; factor->size && g < rule->factor_count; g++)
            size_of |= (uint32_t)expr_mentions(factor->size, EXPR_SIZE, g) << g;
        text_print(
            out,
            "        {.name = \"%s\", .ellipsis = %d, .contracted = %d, .maximum = %d, .each = %d",
            factor->name, factor->ellipsis, factor->contracted, factor->reduction == REDUCE_MAX,
            in_member && !elsewhere);
        if (factor->count) text_print(out, ", .count = count_%s_of_%s", factor->name, def->name);
        if (factor->size)
            text_print(out, ", .size = size_%s_of_%s, .size_of = 0x%x", factor->name, def->name,
                       size_of);
        text_string(out, "},\n");
    }
    text_string(out, "    },\n");
}

/* Writes "x[b.., (g r)]". */
static void write_access_text(Text *out, const Rule *rule, const Access *access) {
    text_print(out, "%s%s[", access->name, access->variadic ? "[]" : "");
    for (int d = 0; d < access->dim_count; d++) {
        const RuleDim *dim = &access->dims[d];
        text_print(out, "%s%s", d ? ", " : "", dim->count > 1 ? "(" : "");
        for (int k = 0; k < dim->count; k++)
            text_print(out, "%s%s%s", k ? " " : "", rule->factors[dim->factors[k]].name,
                       rule->factors[dim->factors[k]].ellipsis ? ".." : "");
        text_string(out, dim->count > 1 ? ")" : "");
    }
    text_string(out, "]");
}

static void write_accesses(Text *out, const OpDef *def, const char *field, const Access *accesses,
                           int count) {
    static const char *const elements[] = {
        [ELEMENT_FOLLOWS] = "FOLLOWS", [ELEMENT_FIXED] = "FIXED", [ELEMENT_ARGUMENT] = "ARGUMENT",
        [ELEMENT_OPERAND] = "OPERAND", [ELEMENT_WIDE] = "WIDE",   [ELEMENT_INTEGER] = "INTEGER"};
    text_print(out, "    .%s = (const OperatorAccess[]){\n", field);
    for (int i = 0; i < count; i++) {
        const Access *access = &accesses[i];
        text_print(out, "        {\"%s\", \"", access->name);
        write_access_text(out, def->rule, access);
        text_print(out, "\", %d, {ELEMENT_%s, %d}, %d, (const RuleDim[]){", access->optional,
                   elements[access->element.kind], access->element.index, access->dim_count);
        for (int d = 0; d < access->dim_count; d++) {
            text_print(out, "{%d, (const int[]){", access->dims[d].count);
            for (int k = 0; k < access->dims[d].count; k++)
                text_print(out, k ? ", %d" : "%d", access->dims[d].factors[k]);
            text_string(out, "}}, ");
        }
        text_print(out, "{0}}, %s},\n",
                   access->reads
                       ? arena_format(out->arena, "reads_%s_of_%s", access->name, def->name)
                       : "NULL");
    }
    text_string(out, "    },\n");
}

static void write_requirements(Text *out, const OpDef *def) {
    text_print(out,
               "    .requirement_count = %d,\n    .requirements = (const OperatorRequirement[]){\n",
               def->rule->requirements.count);
    for (int r = 0; r < def->rule->requirements.count; r++)
        text_print(out, "        {requirement_%d_of_%s, \"%s\"},\n", r, def->name,
                   def->rule->requirements.at[r].text);
    text_string(out, "        {0}},\n");
}

static void write_groups(Text *out, const Rule *rule) {
    int *group = arena_array(out->arena, int, rule->operand_count + 1), count = 0;
    rule_linear(rule, group);
    for (int k = 0; k < rule->operand_count; k++) count = group[k] > count ? group[k] : count;
    text_print(out, "    .group_count = %d,\n    .groups = (const uint32_t[]){", count);
    for (int g = 1; g <= count; g++) {
        uint32_t set = 0;
        for (int k = 0; k < rule->operand_count; k++) set |= (uint32_t)(group[k] == g) << k;
        text_print(out, "0x%x, ", set);
    }
    text_string(out, "0},\n");
}

static void write_gradients(Text *out, const OpDef *def) {
    const Rule *rule = def->rule;
    text_string(out, "    .backward.gradients = (const OperatorGradient[]){\n");
    for (int k = 0; k < rule->operand_count; k++) {
        const Expr *expr = gradient(out->arena, rule, k);
        bool same = expr->kind == EXPR_ACCESS && expr->index == rule->operand_count &&
                    is_within(&rule->operands[k], &rule->results[0]);
        text_print(out, "        {.same = %d", same);
        if (expr->kind != EXPR_NUMBER || expr->number != 0) {
            text_string(out, ", .loops = ");
            write_variants(out, def, k, "        ");
        }
        text_string(out, "},\n");
    }
    text_string(out, "        {0}},\n");
}

static void write_table(Text *out, const OpDef *def) {
    const Rule *rule = def->rule;
    const char *kind = is_update(rule)           ? "UPDATE"
                       : rule->kind == RULE_VIEW ? "VIEW"
                       : has_loops(rule)         ? "LOOPS"
                                                 : "KERNEL";
    text_print(
        out,
        "static const Operator %s_operator = {\n    .name = \"%s\",\n    .kind = OPERATOR_%s,\n",
        def->name, def->name, kind);
    if (has_operations(def->rule))
        text_print(out, "    .operations = operations_of_%s,\n", def->name);
    text_print(out,
               "    .factor_count = %d, .result_count = %d, .operand_count = %d, .attr_count = %d, "
               ".shape = %d,\n",
               rule->factor_count, rule->result_count, rule->operand_count, def->attr_count,
               rule->shape_attr);
    text_print(out,
               "    .values = {0x%x, %d, %d, %d}, .passes = 0x%x, "
               ".backward.exists = %d,\n",
               rule->call.types, rule_of_one_type(rule), opdef_is_integral(def),
               rule_has_infinity(rule), passing(out->arena, rule), flows(rule));
    if (rule->factor_count) write_factors(out, def);
    write_accesses(out, def, "results", rule->results, rule->result_count);
    if (rule->operand_count)
        write_accesses(out, def, "operands", rule->operands, rule->operand_count);
    write_requirements(out, def);
    write_groups(out, rule);
    if (kernel_of(rule)) text_print(out, "    .kernel = %s,\n", kernel_of(rule));
    if (has_function(rule)) text_print(out, "    .backward.function = %s,\n", rule->grad.function);
    if (by_rule(rule)) write_gradients(out, def);
    if (has_loops(rule)) {
        text_string(out, "    .loops = ");
        write_variants(out, def, -1, "    ");
        text_string(out, ",\n");
    }
    text_string(out, "};\n\n");
}

/* ---- the C function ---- */

static void write_arguments(Text *out, const OpDef *def) {
    static const char *const fields[] = {
        [PARAM_INT] = "i", [PARAM_FLOAT] = "f", [PARAM_SHAPE] = "dims", [PARAM_DTYPE] = "i"};
    text_string(out, "    const ht_attr attr[] = {");
    for (int p = 0; p < def->param_count; p++)
        if (!is_tensors(def->params[p].kind))
            text_print(out, "{.%s = %s}, ", fields[def->params[p].kind], def->params[p].name);
    text_string(out, "{0}};\n");
}

static void write_operands(Text *out, const Rule *rule) {
    text_string(out, "    const ht_tensors operands[] = {");
    for (int k = 0; k < rule->operand_count; k++)
        text_print(out, rule->operands[k].variadic ? "%s, " : "{1, &%s}, ", rule->operands[k].name);
    text_string(out, "{0}};\n");
}

static void write_function(Text *out, const Declaration *declaration) {
    const OpDef *def = &declaration->def;
    int count = def->rule->result_count;
    text_print(out, "%s (%s)(%s)\n{\n", declaration->result, def->name, declaration->params);
    write_operands(out, def->rule);
    write_arguments(out, def);
    text_print(
        out,
        "    ht_tensor results[%d];\n    operator_call(&%s_operator, operands, attr, results);\n",
        count, def->name);
    if (!strcmp(declaration->result, "ht_tensor")) {
        text_string(out, "    return results[0];\n}\n\n");
        return;
    }
    text_print(out, "    return (%s){", declaration->result);
    for (int r = 0; r < count; r++) text_print(out, r ? ", results[%d]" : "results[%d]", r);
    text_string(out, "};\n}\n\n");
}

/* ---- the files ---- */

void operators_write(Text *out, const Declarations *all) {
    text_string(out, "/* The operators of <hetu/ops.h> on one device, written by hetu-operators "
                     "from their rules. */\n"
                     "#include \"cpu/cpu.h\"\n"
                     "#include \"eager/operator.h\"\n"
                     "#include \"operators/kernels.h\"\n"
                     "\n"
                     "#include <hetu/rt.h>\n"
                     "\n"
                     "#include <hetu/vector_math.h>\n"
                     "#include <math.h>\n\n");
    for (int i = 0; i < all->count; i++) {
        const OpDef *def = &all->at[i].def;
        text_print(out, "/* ---- %s ---- */\n\n", def->name);
        write_numbers(out, def);
        write_operations(out, def);
        if (has_loops(def->rule)) write_loops(out, def, -1);
        for (int k = 0; by_rule(def->rule) && k < def->rule->operand_count; k++) {
            const Expr *expr = gradient(out->arena, def->rule, k);
            if (expr->kind != EXPR_NUMBER || expr->number != 0) write_loops(out, def, k);
        }
        write_table(out, def);
        write_function(out, &all->at[i]);
    }
}

void kernels_write(Text *out, const Declarations *all) {
    text_string(out, "/* The kernels of the operators of <hetu/ops.h>, written by hetu-operators: "
                     "functions of the same names in "
                     "runtime/cpu and in runtime/cuda.\n"
                     " *\n"
                     " * Each computes what its operator's rule and comment say, on the pieces "
                     "that the views describe. */\n"
                     "#ifndef OPERATORS_KERNELS_H\n"
                     "#define OPERATORS_KERNELS_H\n"
                     "\n"
                     "#include <hetu/kernel.h>\n"
                     "\n"
                     "#ifdef __cplusplus\n"
                     "extern \"C\" {\n"
                     "#endif\n"
                     "\n");
    for (int i = 0; i < all->count; i++) {
        const Rule *rule = all->at[i].def.rule;
        for (int k = 0; k < rule->call.kernel_count; k++)
            text_print(out, "ht_kernel %s;\n", rule->call.kernels[k].function);
    }
    text_string(out, "\n"
                     "#ifdef __cplusplus\n"
                     "}\n"
                     "#endif\n"
                     "\n"
                     "#endif\n");
}

void names_write(Text *out, const Declarations *all) {
    text_string(out, "/* The operators of <hetu/ops.h>, written by hetu-operators: "
                     "UNCOMPILED(name) for each. */\n");
    for (int i = 0; i < all->count; i++) text_print(out, "UNCOMPILED(%s)\n", all->at[i].def.name);
}
