/* Builds and changes the IR: values, operators, types. Equal calls share bindings (bind/bind.c). */
#include "ir/module.h"
#include "ir/analysis_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The parts that equal calls share. */
typedef struct Shared {
    const Attr *attrs;
    const Binding *binding;
    const Type *types;
} Shared;

#define uthash_malloc(size) arena_alloc(table->arena, (size))
#define uthash_free(pointer, size) ((void)(pointer))
#include <uthash.h>

typedef struct CallEntry {
    Shared shared;
    UT_hash_handle hh;
} CallEntry;

typedef struct DefEntry {
    const OpDef *def, *own; // the given definition, and the equal one in module->library->defs
    UT_hash_handle hh;
} DefEntry;

struct CallTable {
    Arena *arena;
    CallEntry *calls;
    DefEntry *defs;
    Text key; // key of the call that is looked up
};

Module *module_create(Arena *arena, Diag *diag, const char *name) {
    Module *module = arena_new(arena, Module);
    module->arena = arena;
    module->diag = diag;
    module->name = name;
    module->source = arena_new(arena, ModuleSource);
    module->library = arena_new(arena, ModuleLibrary);
    module->builtin = arena_new(arena, BuiltinDefs);
    module->optimizer = arena_new(arena, ModuleOptimizer);
    module->templates = arena_new(arena, PipelineTemplates);
    module->devices = arena_new(arena, ModuleDevices);
    module->cache = arena_new(arena, AnalysisCache);
    module->cache->calls = arena_new(arena, struct CallTable);
    module->cache->calls->arena = module->cache->calls->key.arena = arena;
    module->builtin->reshard =
        module_def(module, rule_inserted(arena, "reshard", "y[i..] = x[i..]"));
    return module;
}

Value *ir_value(Module *module, ValueKind kind, const char *name, Type type, Position at) {
    Value *value = arena_new(module->arena, Value);
    *value = (Value){.kind = kind, .id = module->next_id++, .name = name, .type = type, .at = at};
    return value;
}

Shape type_shape(Type type) { return (Shape){type.rank, type.extent}; }

int64_t type_elements(Type type) {
    int64_t count = 1;
    for (int d = 0; d < type.rank; d++)
        if (__builtin_mul_overflow(count, type.extent[d], &count)) return INT64_MAX;
    return count;
}

bool type_equal(Type a, Type b) {
    return a.dtype == b.dtype && a.rank == b.rank &&
           (!a.rank || a.extent == b.extent ||
            !memcmp(a.extent, b.extent, sizeof *a.extent * (size_t)a.rank));
}

bool type_converts(Type a, Type b) {
    if (dtype_is_float(a.dtype) && dtype_is_float(b.dtype)) a.dtype = b.dtype;
    return type_equal(a, b);
}

const char *type_shape_text(Arena *arena, Type type) {
    const char *text = "(";
    for (int d = 0; d < type.rank; d++)
        text = arena_format(arena, d ? "%s, %lld" : "%s%lld", text, (long long)type.extent[d]);
    return arena_format(arena, "%s)", text);
}

/* ---- definitions ---- */

static const char *unique_name(const Module *module, const char *name) {
    const char *tried = name;
    for (int number = 2;; number++) {
        bool taken = false;
        for (int i = 0; i < module->library->defs.count; i++)
            taken |= !strcmp(module->library->defs.at[i]->name, tried);
        if (!taken) return tried;
        tried = arena_format(module->arena, "%s_%d", name, number);
    }
}

static bool params_equal(const OpDef *a, const OpDef *b) {
    if (a->param_count != b->param_count) return false;
    for (int i = 0; i < a->param_count; i++)
        if (a->params[i].kind != b->params[i].kind || strcmp(a->params[i].name, b->params[i].name))
            return false;
    return true;
}

/* Returns the known definition with the same rule and the same name, apart from a number that
 * unique_name appended: "add" or "add_2"; NULL if there is none. */
static const OpDef *find_def(const Module *module, const OpDef *def) {
    size_t length = strlen(def->name);
    for (int i = 0; i < module->library->defs.count; i++) {
        const OpDef *known = module->library->defs.at[i];
        bool numbered =
            !strncmp(known->name, def->name, length) && known->name[length] == '_' &&
            known->name[length + 1 + strspn(known->name + length + 1, "0123456789")] == 0;
        if ((numbered || !strcmp(known->name, def->name)) &&
            !strcmp(known->rule->text, def->rule->text) && params_equal(known, def))
            return known;
    }
    return NULL;
}

static const OpDef *add_def(Module *module, const OpDef *def) {
    const char *name = unique_name(module, def->name);
    if (name != def->name) {
        OpDef *copy = arena_copy(module->arena, def, sizeof *def);
        copy->name = name;
        def = copy;
    }
    array_push(module->arena, &module->library->defs, def);
    return def;
}

const OpDef *module_def(Module *module, const OpDef *def) {
    struct CallTable *table = module->cache->calls;
    DefEntry *entry;
    HASH_FIND_PTR(table->defs, &def, entry);
    if (entry) return entry->own;
    const OpDef *own = find_def(module, def);
    if (!own) own = add_def(module, def);
    entry = arena_new(module->arena, DefEntry);
    *entry = (DefEntry){.def = def, .own = own};
    HASH_ADD_PTR(table->defs, def, entry);
    return own;
}

const OpDef *placeholder_def(Module *module, OptimizerPlaceholder placeholder) {
    static const struct {
        const char *name, *rule;
    } texts[] = {[PLACEHOLDER_GRADIENT] = {"gradient", "g[i..] = p[i..]"},
                 [PLACEHOLDER_NORM] = {"gradient_norm", "n[] = p[i..] * p[i..]"},
                 [PLACEHOLDER_UPDATED] = {"updated", "q[i..] = p[i..]"}};
    return module_def(
        module, rule_inserted(module->arena, texts[placeholder].name, texts[placeholder].rule));
}

/* ---- operators ---- */

static void append(Text *key, const void *bytes, size_t size) {
    if (size) text_append(key, bytes, size);
}

/* Writes to *key, as bytes, everything that the binding of a call depends on. */
static void write_key(Text *key, const OpCall *call) {
    key->length = 0;
    append(key, &call->def, sizeof call->def);
    for (int i = 0; i < call->def->attr_count; i++) {
        const Attr *attr = &call->attrs[i];
        append(key, &attr->i, sizeof attr->i);
        append(key, &attr->f, sizeof attr->f);
        append(key, &attr->count, sizeof attr->count);
        append(key, attr->ints, sizeof *attr->ints * (size_t)attr->count);
    }
    for (int i = 0; i < call->operand_count; i++) {
        const Value *operand = call->operands[i];
        int head[2] = {operand ? (int)operand->type.dtype : -1, operand ? operand->type.rank : 0};
        append(key, head, sizeof head);
        if (operand) append(key, operand->type.extent, sizeof(int64_t) * (size_t)head[1]);
    }
}

static const Attr *copy_attrs(Arena *arena, const OpCall *call) {
    Attr *copy = arena_array(arena, Attr, call->def->attr_count + 1);
    for (int i = 0; i < call->def->attr_count; i++) {
        const Attr *attr = &call->attrs[i];
        copy[i] = *attr;
        if (attr->count)
            copy[i].ints = arena_copy(arena, attr->ints, sizeof *attr->ints * (size_t)attr->count);
    }
    return copy;
}

/* Binds a call, or finds the binding of an equal call; returns NULL after an error. */
static const Shared *bind_shared(Module *module, const OpCall *call, Position at) {
    struct CallTable *table = module->cache->calls;
    CallEntry *entry;
    write_key(&table->key, call);
    HASH_FIND(hh, table->calls, text_bytes(&table->key), table->key.length, entry);
    if (!entry) {
        Type *types = arena_array(module->arena, Type, call->def->rule->result_count);
        OpCall own = *call;
        own.attrs = copy_attrs(module->arena, call);
        const Binding *binding = ir_bind(module->arena, module->diag, at, &own, types);
        if (binding) {
            entry = arena_new(module->arena, CallEntry);
            entry->shared = (Shared){own.attrs, binding, types};
            const char *bytes =
                arena_copy(module->arena, text_bytes(&table->key), table->key.length);
            HASH_ADD_KEYPTR(hh, table->calls, bytes, table->key.length, entry);
        }
    }
    return entry ? &entry->shared : NULL;
}

Op *ir_op(Module *module, const OpCall *call, Position at) {
    OpCall own = *call;
    own.def = module_def(module, call->def);
    const Shared *shared = bind_shared(module, &own, at);
    if (!shared) return NULL;
    int result_count = own.def->rule->result_count;
    Op *op = arena_new(module->arena, Op);
    *op = (Op){.def = own.def,
               .attrs = shared->attrs,
               .binding = shared->binding,
               .operand_count = call->operand_count,
               .result_count = result_count,
               .operands = arena_array(module->arena, Value *, call->operand_count + 1),
               .results = arena_array(module->arena, Value *, result_count),
               .at = at,
               .stage = STAGE_ALL,
               .source = &op_no_source};
    for (int i = 0; i < call->operand_count; i++) op->operands[i] = call->operands[i];
    for (int i = 0; i < result_count; i++) {
        op->results[i] = ir_value(module, VALUE_RESULT, NULL, shared->types[i], at);
        op->results[i]->def = op;
        op->results[i]->index = i;
    }
    return op;
}

const OpSource op_no_source = {.op = -1};

OpSource *op_change_source(Arena *arena, Op *op) {
    OpSource *own = arena_copy(arena, op->source, sizeof *own);
    op->source = own;
    return own;
}

void op_take_place(Arena *arena, Op *op, const Op *like) {
    op->at = like->at;
    op->source = like->source;
    if (like->source->fused_count || like->source->reason || like->source->recomputes) {
        OpSource *own = op_change_source(arena, op);
        own->fused_at = NULL;
        own->fused_count = 0;
        own->reason = NULL;
        own->recomputes = NULL;
    }
    op->section = like->section;
    op->loop = like->loop;
    op->stage = like->stage;
    op->visit = like->visit;
    op->is_wgrad = like->is_wgrad;
    for (int i = 0; i < op->result_count; i++) op->results[i]->at = like->at;
}

Op *ir_op_like(Module *module, const OpCall *call, const Op *like) {
    Op *op = ir_op(module, call, like->at);
    if (!op)
        BUG("the inserted operator %s does not bind: %s", call->def->name, call->def->rule->text);
    op_take_place(module->arena, op, like);
    return op;
}

Op *ir_clone(Module *module, const Op *op, Value *const *operands) {
    Op *clone = arena_copy(module->arena, op, sizeof *op);
    clone->operands =
        arena_copy(module->arena, operands, sizeof *operands * (size_t)op->operand_count);
    clone->results = arena_array(module->arena, Value *, op->result_count);
    for (int i = 0; i < op->result_count; i++) {
        const Value *result = op->results[i];
        clone->results[i] = ir_value(module, VALUE_RESULT, result->name, result->type, result->at);
        clone->results[i]->dims = result->dims;
        clone->results[i]->micro = result->micro;
        clone->results[i]->chunk = result->chunk;
        clone->results[i]->def = clone;
        clone->results[i]->index = i;
    }
    return clone;
}

void ir_rebind(Module *module, Op *op) {
    OpCall call = {op->def, op->operands, op->operand_count, op->attrs};
    const Shared *shared = bind_shared(module, &call, op->at);
    if (!shared) BUG("%s does not bind to operands of other element types", op->def->name);
    op->binding = shared->binding;
    for (int i = 0; i < op->result_count; i++) op->results[i]->type = shared->types[i];
}

/* Returns the number of a micro-batch's rows in a tensor along a bound factor; -1: no such rows. */
static int64_t rows_along(const Value *value, const BoundAccess *access, int factor) {
    const BoundDim *dim =
        value && value->micro.kind == MICRO_ROWS ? &access->dims[value->micro.dim] : NULL;
    return dim && dim->count == 1 && dim->factors[0] == factor
               ? value->type.extent[value->micro.dim]
               : -1;
}

/* Returns the minimum of `least` and the extents of a tensor along a bound factor. In a pipeline of
 * shorter padding length, the minimum is less than the extent in the binding. */
static int64_t length_along(int64_t least, const Value *value, const BoundAccess *access,
                            int factor) {
    for (int d = 0; value && d < access->rank && d < value->type.rank; d++)
        if (access->dims[d].count == 1 && access->dims[d].factors[0] == factor &&
            value->type.extent[d] < least)
            least = value->type.extent[d];
    return least;
}

int64_t op_extent(const Op *op, int factor) {
    int64_t rows = -1;
    for (int k = 0; rows < 0 && k < op->operand_count; k++)
        rows = rows_along(op->operands[k], &op->binding->operands[k], factor);
    for (int k = 0; rows < 0 && k < op->result_count; k++)
        rows = rows_along(op->results[k], &op->binding->results[k], factor);
    int64_t length = op->binding->factors[factor].extent;
    for (int k = 0; rows < 0 && k < op->operand_count; k++)
        length = length_along(length, op->operands[k], &op->binding->operands[k], factor);
    for (int k = 0; rows < 0 && k < op->result_count; k++)
        length = length_along(length, op->results[k], &op->binding->results[k], factor);
    return rows < 0 ? length : rows;
}

/* Returns a non-negative floating-point number, spelled so that C reads back the same value. */
static const Expr *float_number(Arena *arena, double value, bool wide) {
    const Expr *zero = expr_number(arena, 0, NULL),
               *minus_one = expr_negative(arena, expr_number(arena, 1, NULL));
    if (isinf(value))
        return expr_negative(arena, expr_call(arena, wide ? "log" : "logf", &zero, 1));
    if (isnan(value)) return expr_call(arena, wide ? "sqrt" : "sqrtf", &minus_one, 1);
    char *digits = arena_format(arena, wide ? "%.17g" : "%.9g", value);
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    return expr_number(arena, strtod(digits, NULL),
                       arena_format(arena, "%s%s%s", digits, point, wide ? "" : "f"));
}

const Expr *argument_number(Arena *arena, const Op *op, int attr) {
    bool floating = opdef_attr_kind(op->def, attr) == PARAM_FLOAT;
    double value = floating ? op->attrs[attr].f : (double)op->attrs[attr].i;
    const Expr *number =
        floating ? float_number(arena, fabs(value), op->results[0]->type.dtype == DTYPE_F64)
                 : expr_number(arena, fabs(value), NULL);
    return value < 0 ? expr_negative(arena, number) : number;
}

/* Returns the most micro-batches of a pipeline of template `body`; `body` -1: of any pipeline. */
static int64_t most_microbatches(const Module *module, int body) {
    int64_t most = 1;
    for (int i = 0; i < module->templates->runs.count; i++) {
        const PipelineRun *run = &module->templates->runs.at[i];
        if ((body < 0 || run->template_index == body) && run->microbatches > most)
            most = run->microbatches;
    }
    return most;
}

int64_t module_microbatches(const Module *module) { return most_microbatches(module, -1); }

int64_t op_runs(const Module *module, const Op *op) {
    if (!loop_repeats(op->loop)) return 1;
    return most_microbatches(module, op->stage == STAGE_ALL
                                         ? -1
                                         : module->templates->stages.at[op->stage].template_index);
}

Value *module_input(const Module *module, const char *name) {
    for (int i = 0; i < module->inputs.count; i++)
        if (!strcmp(module->inputs.at[i]->name, name)) return module->inputs.at[i];
    return NULL;
}

const Parameter *module_param(const Module *module, const char *name) {
    for (int i = 0; i < module->params.count; i++)
        if (!strcmp(module->params.at[i]->name, name)) return module->params.at[i];
    return NULL;
}

const OpDef *module_def_named(const Module *module, const char *name) {
    for (int i = 0; i < module->library->defs.count; i++)
        if (!strcmp(module->library->defs.at[i]->name, name)) return module->library->defs.at[i];
    return NULL;
}

Intern *module_interned(Module *module) {
    if (!module->cache->interned) module->cache->interned = intern_create(module->arena);
    return module->cache->interned;
}

Intern *module_equivalent_devices(Module *module) {
    if (!module->cache->equivalent_devices)
        module->cache->equivalent_devices = intern_create(module->arena);
    return module->cache->equivalent_devices;
}

bool module_layouts_equal(Module *module, const Layout *a, const Layout *b, Type type) {
    enum { UNKNOWN, EQUAL, UNEQUAL };
    if (a == b) return true;
    if (!module->cache->equal) module->cache->equal = intern_create(module->arena);
    int64_t key[2 + IR_MAX_RANK] = {(intptr_t)a, (intptr_t)b};
    for (int d = 0; d < type.rank; d++) key[2 + d] = type.extent[d];
    intptr_t *known = intern_slot(module->cache->equal, key, sizeof *key * (size_t)(2 + type.rank));
    if (*known == UNKNOWN) *known = layout_equal(a, b, type_shape(type)) ? EQUAL : UNEQUAL;
    return *known == EQUAL;
}

/* Returns a layout's entry in the memoization cache. Entries move when the cache grows. */
static const Layout **spread_slot(Module *module, const Layout *layout, Type type) {
    if (!module->cache->sharded_replicas)
        module->cache->sharded_replicas = intern_create(module->arena);
    int64_t key[1 + IR_MAX_RANK] = {(intptr_t)layout};
    for (int d = 0; d < type.rank; d++) key[1 + d] = type.extent[d];
    return intern_slot(module->cache->sharded_replicas, key, sizeof *key * (size_t)(1 + type.rank));
}

const Layout *module_layout_shard_replicas(Module *module, const Layout *layout, Type type) {
    const Layout *known = *spread_slot(module, layout, type);
    if (known) return known;
    Arena *scratch = arena_create();
    Intern *shared = module_interned(module);
    // compute the layout for devices 0, 1, ..., then rename these to the layout's devices
    const Layout *numbered = layout_intern(shared, layout_renumbered(scratch, layout)), *spread;
    int count;
    if (numbered == layout) spread = layout_shard_replicas(scratch, layout, type_shape(type));
    else
        spread = layout_of_devices(scratch, module_layout_shard_replicas(module, numbered, type),
                                   layout_devices(scratch, layout, &count));
    spread = layout_intern(shared, spread);
    *spread_slot(module, layout, type) = spread;
    arena_destroy(scratch);
    return spread;
}

void ir_number(Module *module) {
    for (int i = 0; i < module->ops.count; i++) {
        const Op *before = i ? module->ops.at[i - 1] : NULL;
        Op *op = module->ops.at[i];
        op->index = i;
        op->loop_first = before && before->loop == op->loop ? before->loop_first : i;
    }
}
