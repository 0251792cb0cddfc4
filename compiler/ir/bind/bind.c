/* Binding: a rule's factors on the dimensions of a call's operands, and the results' types.
 *
 *     y[b.., o] = x[b.., i] * w[o, i]        x: f32[8, 16, 64], w: f32[32, 64]
 *
 * 1. bind_counts: x has 3 dimensions, so `b..` stands for 2.
 * 2. bind_extents: b is 8 and 16, i is 64 (x and w agree), o is 32. The clause `size` gives
 *    extents that no operand has. A merged dimension, (h d), gives d when it is divided by h.
 * 3. result_type: y is f32[8, 16, 32].
 *
 * compiler/binding/binding.c has steps 1 and 2, and their messages about mismatched extents. */
#include "ir/bind/bind.h"

/* ---- messages ---- */

const char *bind_type_text(const Binder *binder, Type type) {
    Text out = {.arena = binder->arena};
    text_print(&out, "%s[", dtype_name(type.dtype));
    for (int d = 0; d < type.rank; d++)
        text_print(&out, d ? ", %lld" : "%lld", (long long)type.extent[d]);
    text_string(&out, "]");
    return text_bytes(&out);
}

void bind_note_value(const Binder *binder, int operand) {
    const Value *value = binder->operands[operand];
    if (value->at.file)
        NOTE(binder, value->at, "%s is made here: %s", binder->call.tensors[operand].name,
             bind_type_text(binder, value->type));
}

static const char *access_text(const Binder *binder, const Access *access) {
    Text out = {.arena = binder->arena};
    rule_print_access(&out, binder->rule, access);
    return text_bytes(&out);
}

/* ---- callbacks of the library compiler/binding ---- */

static bool host_count(const BindCall *call, int factor, int64_t *value) {
    const Binder *binder = call->context;
    return expr_integer(binder->rule->factors[factor].count, binder->attrs, NULL, value);
}

static bool host_size(const BindCall *call, int factor, int64_t *value) {
    const Binder *binder = call->context;
    return expr_integer(binder->rule->factors[factor].size, binder->attrs, call->size, value);
}

static const char *host_access_text(const BindCall *call, int tensor) {
    const Binder *binder = call->context;
    return access_text(binder, &binder->rule->operands[call->tensors[tensor].operand]);
}

static ht_dtype host_argument(const BindCall *call, int index) {
    return (ht_dtype)((const Binder *)call->context)->attrs[index].i;
}

static void host_refuse(const BindCall *call, const int *tensors, int count, const char *format,
                        ...) {
    const Binder *binder = call->context;
    if (!binder->diag) return;
    va_list arguments;
    va_start(arguments, format);
    diag_error(binder->diag, binder->at, "%s", arena_vformat(binder->arena, format, arguments));
    va_end(arguments);
    for (int i = 0; i < count; i++) bind_note_value(binder, tensors[i]);
}

static const BindHost host = {host_count,       host_size,     bind_violated,
                              host_access_text, host_argument, host_refuse};

BindTensor bind_tensor(const Access *access, int operand, int member, const Value *value) {
    BindTensor tensor = {.name = access->name,
                         .element = access->element,
                         .operand = operand,
                         .member = member,
                         .dim_count = access->dim_count,
                         .dims = access->dims};
    if (!value) return tensor;
    tensor.given = true;
    tensor.dtype = (ht_dtype)value->type.dtype;
    tensor.rank = value->type.rank;
    tensor.extent = value->type.extent;
    return tensor;
}

/* ---- operands ---- */

static int variadic_operand(const Rule *rule) {
    for (int i = 0; i < rule->operand_count; i++)
        if (rule->operands[i].variadic) return i;
    return -1;
}

/* Describes the call's tensors in binder->call.tensors. Returns false after an error. */
static bool map_operands(Binder *binder) {
    const Rule *rule = binder->rule;
    int variadic = variadic_operand(rule), least = rule->operand_count - (variadic >= 0);
    int members = binder->call.members = binder->operand_count - least;
    if (members < 0 || (variadic < 0 && members != 0))
        return ERROR(binder, "%s takes %d tensor%s, not %d", binder->def->name, rule->operand_count,
                     rule->operand_count == 1 ? "" : "s", binder->operand_count),
               false;
    if (variadic >= 0 && members == 0)
        return ERROR(binder, "%s: %s[] needs at least one tensor", binder->def->name,
                     rule->operands[variadic].name),
               false;
    for (int i = 0, next = 0; i < rule->operand_count; i++)
        for (int k = 0; k < (i == variadic ? members : 1); k++, next++)
            binder->call.tensors[next] =
                bind_tensor(&rule->operands[i], i, k, binder->operands[next]);
    return true;
}

/* Reports absent tensors that the rule does not allow to be absent. */
static bool check_present(Binder *binder) {
    for (int i = 0; i < binder->operand_count; i++) {
        const Access *access = &binder->rule->operands[binder->call.tensors[i].operand];
        if (!binder->operands[i] && !access->optional)
            ERROR(binder, "%s: the tensor '%s' is absent, and may not be: the rule is %s",
                  binder->def->name, access->name, access_text(binder, access));
    }
    return !binder->call.failed;
}

/* Returns whether no tensor but the variadic operand has `factor`. */
static bool only_in_variadic(const Rule *rule, int factor) {
    int variadic = variadic_operand(rule);
    if (variadic < 0) return false;
    for (int i = 0; i < rule->operand_count; i++)
        if (i != variadic && access_has(&rule->operands[i], factor)) return false;
    for (int i = 0; i < rule->result_count; i++)
        if (access_has(&rule->results[i], factor)) return false;
    return true;
}

/* Describes the factors and the results of the rule in binder->call. */
static void describe(Binder *binder) {
    const Rule *rule = binder->rule;
    for (int f = 0; f < rule->factor_count; f++)
        binder->call.factors[f] = (BindFactor){.name = rule->factors[f].name,
                                               .ellipsis = rule->factors[f].ellipsis,
                                               .counted = rule->factors[f].count,
                                               .sized = rule->factors[f].size,
                                               .each = only_in_variadic(rule, f)};
    for (int i = 0; i < rule->result_count; i++)
        binder->call.results[i] = bind_tensor(&rule->results[i], -1, 0, NULL);
}

static BoundAccess expand(Binder *binder, const BindTensor *tensor, int index) {
    int unused, rank = bind_rank(&binder->call, tensor, &unused);
    BoundDim *dims = arena_array(binder->arena, BoundDim, rank);
    for (int d = 0, next = 0; d < tensor->dim_count; d++) {
        const RuleDim *dim = &tensor->dims[d];
        int repeats = dim->count > 1 ? 1 : binder->call.factors[dim->factors[0]].count;
        for (int k = 0; k < repeats; k++, next++) {
            int *factors = arena_array(binder->arena, int, dim->count);
            for (int j = 0; j < dim->count; j++)
                factors[j] = bind_bound(&binder->call, dim->factors[j], tensor->member, k);
            dims[next] = (BoundDim){.count = dim->count, .factors = factors, .written = next};
        }
    }
    return (BoundAccess){.access = index, .rank = rank, .written_rank = rank, .dims = dims};
}

/* ---- results ---- */

/* Returns the type of a result. Each extent is the product of the extents of bound factors. */
static Type result_type(Binder *binder, const BindTensor *result, const BoundAccess *bound) {
    int64_t *extent = arena_array(binder->arena, int64_t, bound->rank + 1);
    if (bound->rank > IR_MAX_RANK)
        ERROR(binder, "%s: the result %s has %d dimensions; at most %d are allowed",
              binder->def->name, result->name, bound->rank, IR_MAX_RANK);
    for (int d = 0; d < bound->rank; d++) {
        extent[d] = 1;
        for (int k = 0; k < bound->dims[d].count; k++)
            extent[d] *= binder->call.extent[bound->dims[d].factors[k]];
    }
    Type type = {.dtype = (DType)bind_element(&binder->call, result->element),
                 .rank = bound->rank,
                 .extent = extent};
    if (type_elements(type) > IR_MAX_ELEMENTS)
        ERROR(binder, "%s: the result %s, %s, has too many elements", binder->def->name,
              result->name, bind_type_text(binder, type));
    return type;
}

static const BoundFactor *bound_factors(Binder *binder) {
    const BindCall *call = &binder->call;
    BoundFactor *factors = arena_array(binder->arena, BoundFactor, call->bound_count + 1);
    for (int b = 0; b < call->bound_count; b++)
        factors[b] = (BoundFactor){.factor = bind_factor(call, b), .extent = call->extent[b]};
    return factors;
}

/* Binds a rule that is no view, in the steps of the file's head. Returns NULL after an error. */
static const Binding *bind_rule(Binder *binder, Type *types) {
    BindCall *call = &binder->call;
    describe(binder);
    bind_check_remainders(binder);
    if (call->failed || !bind_types(call) || !bind_counts(call)) return NULL;
    if (call->bound_count > IR_MAX_FACTORS || binder->operand_count > IR_MAX_OPERANDS) {
        ERROR(binder, "%s: a call of %d tensors and %d factors; at most %d and %d are possible",
              binder->def->name, binder->operand_count, call->bound_count, IR_MAX_OPERANDS,
              IR_MAX_FACTORS);
        NOTE(binder, binder->at, "make it of several calls");
        return NULL;
    }
    call->extent = arena_array(binder->arena, int64_t, call->bound_count + 1);
    call->source = arena_array(binder->arena, BindSource, call->bound_count + 1);
    if (!bind_extents(call)) return NULL;
    BoundAccess *operands = arena_array(binder->arena, BoundAccess, binder->operand_count + 1);
    BoundAccess *results = arena_array(binder->arena, BoundAccess, call->result_count);
    for (int i = 0; i < binder->operand_count; i++) {
        operands[i].access = call->tensors[i].operand;
        if (binder->operands[i])
            operands[i] = expand(binder, &call->tensors[i], call->tensors[i].operand);
    }
    for (int i = 0; i < call->result_count; i++) {
        results[i] = expand(binder, &call->results[i], i);
        types[i] = result_type(binder, &call->results[i], &results[i]);
    }
    Binding *binding = arena_new(binder->arena, Binding);
    *binding = (Binding){.factor_count = call->bound_count,
                         .operand_count = binder->operand_count,
                         .result_count = call->result_count,
                         .factors = bound_factors(binder),
                         .operands = operands,
                         .results = results};
    return call->failed ? NULL : binding;
}

const Binding *ir_bind(Arena *arena, Diag *diag, Position at, const OpCall *call, Type *types) {
    const Rule *rule = call->def->rule;
    int factors = rule->factor_count + 1;
    Binder binder = {.arena = arena,
                     .diag = diag,
                     .at = at,
                     .def = call->def,
                     .rule = rule,
                     .attrs = call->attrs,
                     .operands = call->operands,
                     .operand_count = call->operand_count,
                     .call = {.host = &host,
                              .context = &binder,
                              .name = call->def->name,
                              .tensor_count = call->operand_count,
                              .result_count = rule->result_count,
                              .factor_count = rule->factor_count,
                              .tensors = arena_array(arena, BindTensor, call->operand_count + 1),
                              .results = arena_array(arena, BindTensor, rule->result_count + 1),
                              .factors = arena_array(arena, BindFactor, factors),
                              .types = rule->call.types,
                              // operators that the compiler inserts have no file
                              .alike = call->def->at.file && rule_of_one_type(rule),
                              .integral = !call->def->at.file || opdef_is_integral(call->def),
                              .size = arena_array(arena, int64_t, factors)}};
    if (!map_operands(&binder) || !check_present(&binder)) return NULL;
    return rule->kind == RULE_VIEW ? bind_view(&binder, types) : bind_rule(&binder, types);
}
