/* Modules: the intermediate representation of one model function, straight-line SSA over tensors.
 *
 * A module has parameters, inputs, and one list of operators in execution order, each in a section
 * (forward, backward, update). The text form (ir/text/print.h) parses back (ir/text/parse.h), and
 * ir_verify says whether a module is well formed.
 */
#ifndef IR_MODULE_H
#define IR_MODULE_H

#include "ir/captured_globals.h"
#include "ir/op.h"
#include "support/intern.h"

typedef enum InitKind { INIT_ZEROS, INIT_CONSTANT, INIT_NORMAL, INIT_UNIFORM } InitKind;

typedef struct Parameter {
    Value *value;
    const char *name;  // full, scopes included: "h0.up.w"
    const char *shape; // as declared: "(3, 4)"
    InitKind init;
    double a; // constant; standard deviation; bound of [-a, a)
    bool no_decay, frozen;
    bool state;      // the model assigns it, or nobody; frozen, too
    bool kept;       // a state of an optimizer's rule
    int group;       // of module->optimizer.groups
    Value *gradient; // after differentiation; NULL when frozen or unused
    Value *updated; // the new value, in value's layout after pass propagate_layouts; NULL: it stays
    int state_count;
    Value *states[4], *states_updated[4]; // the optimizer's, same shape, zero at the start
} Parameter;

/* Parameters that have one optimizer. */
typedef struct ParamGroup {
    const char *names; // the pattern that their names match; NULL: the others
    // in C: the optimizer's operator or rule, and what follows or NULL
    const char *function, *after;
    const char *function_name, *after_name; // for programs; NULL: they are known by address
} ParamGroup;

typedef struct Output {
    const char *name;
    Value *value;
} Output;

typedef enum ModuleKind { MODULE_TRAIN, MODULE_INFER } ModuleKind;

/* Options of the command line for the passes. */
typedef struct CompileOptions {
    const char *cluster_file;                // NULL: none
    const struct Cluster *cluster;           // prices conversions; NULL: one host with equal links
    bool remark_comm, warn_implicit_reshard; // -Rcomm, -Wimplicit-reshard
    int64_t bucket;                          // --bucket: bytes of a gradient bucket; 0: not given
    bool no_views;                           // --no-views: slices and concatenations are copied
    bool no_chunks;                          // --no-chunks: no rows are computed in chunks
    int64_t chunk;                           // --chunk: bytes of a chunk; 0: not given
    bool overlap;       // ZeRO's collectives overlap with computing, for more memory
    bool estimate_only; // arenas may be longer than necessary: the program does not run
} CompileOptions;

/* Memoization caches of functions of a module. */
typedef struct Caches {
    struct CallTable *calls;           // ir_op and module_def (ir/module.c)
    struct RegionTable *regions;       // value_region (ir/programs)
    struct Posts *representatives;     // representative_device, device_run (ir/programs)
    struct Intern *scratch;            // role_scratch_bytes (ir/programs)
    struct Intern *interned;           // module_interned
    struct Intern *equal;              // module_layouts_equal
    struct Intern *sharded_replicas;   // module_layout_shard_replicas
    struct Intern *plans;              // conversion_plan (ir/programs)
    struct Intern *equivalent_devices; // module_equivalent_devices
} Caches;

/* Where a module comes from. Only `file` and `at` are part of the text form. */
typedef struct ModuleSource {
    const char *file;
    Position at; // of the model function
    Array(const CapturedGlobal *) captured_globals;
    Array(const OpDef *) slice_concat_ops; // declared operators that slice and concatenate tensors
} ModuleSource;

/* Definitions and gradient functions of the operators in use, each once. */
typedef struct ModuleLibrary {
    Array(const OpDef *) defs;
    Array(const Function *) gradients;
} ModuleLibrary;

/* Definitions of the compiler's own operators. */
typedef struct BuiltinDefs {
    const OpDef *reshard;     // conversions of the source and of pass propagate_layouts; the layout
                              // of the result says what they make
    const OpDef *accumulate;  // its operand in the first micro-batch, then the sum so far; NULL:
                              // the batch runs as a whole (pass microbatch)
    const OpDef *local_part;  // a micro-batch's rows, or what a stage has, of a value that exists
                              // elsewhere too (passes microbatch and stage)
    const OpDef *stage_union; // the operands, each on the devices of its stage, as one tensor
                              // (pass stage)
    const OpDef *collect;     // the rows of all micro-batches, of an operand with one's (pass
                              // microbatch)
} BuiltinDefs;

/* The optimizer of MODULE_TRAIN. */
typedef struct ModuleOptimizer {
    const OpDef *op;          // (p, g, states..., ?norm) -> (p, states...); NULL for MODULE_INFER
    int state_count;          // states a parameter
    Array(ParamGroup) groups; // the group of the others first; not part of the text form
    bool averaged;            // of MODULE_INFER: it reads averages of parameters
    bool clip;                // update gets the global gradient norm as its operand ?norm
    bool norm;                // the square of that norm is an output (ht_grad_norm)
    Module *program;          // of `optimizer NAME`: the program under NAME; NULL: none, or not
                              // looked for yet
} ModuleOptimizer;

/* The same model with the lengths of pipelines, up to pass stage. Not part of the text form. */
typedef struct ModuleLengths {
    Module **variants;          // by pipeline; NULL, as a whole or of a pipeline: the strategy's
    const Type *input_types[2]; // of a variant: the inputs' types with the strategy's values, and
                                // with the pipeline's own
} ModuleLengths;

/* What is laid out over devices. */
typedef struct ModuleDevices {
    const Mesh *mesh;    // after pass seed_layouts: of all devices
    struct Roles *roles; // after pass specialize (ir/programs/device_programs.h)
    Array(struct PlannedConversion *) conversions; // after pass specialize: the distinct ones
} ModuleDevices;

/* How far a module has come through the passes. */
typedef struct ModuleProgress {
    const char *last_pass; // NULL: none
    bool layouts_only;     // a running program has it: the passes stop at layouts
    uint64_t digest;       // of its text after pass seed_layouts; 0: not asked for
} ModuleProgress;

/* What a compilation gives its modules. */
typedef struct ModuleContext {
    CompileOptions options;
    Caches caches;
    int next_id; // of a value
} ModuleContext;

struct Module {
    Arena *arena;
    Diag *diag;
    const char *name; // the model function
    ModuleKind kind;
    ModuleSource source;
    Array(Parameter *) params;
    Array(Value *) inputs;
    Array(Output) outputs; // the model's value is output "" of MODULE_INFER
    Value *loss;           // of MODULE_TRAIN
    Array(Op *) ops;
    ModuleLibrary library;
    BuiltinDefs builtin;
    ModuleOptimizer optimizer;
    DType precision; // of operators whose rules leave it open: DTYPE_F32 or DTYPE_BF16
    const Strategy *strategy;
    PipelineTemplates templates; // after pass stage
    ModuleLengths lengths;
    ModuleDevices devices;
    ModuleProgress progress;
    ModuleContext context;
};

Module *module_create(Arena *arena, Diag *diag, const char *name);

/* Adds a value to the module; the caller sets its other fields. */
Value *ir_value(Module *module, ValueKind kind, const char *name, Type type, Position at);

/* Makes an operator: binds the rule to the operands, infers the results' types, makes the results.
 * The operator is appended nowhere. `operands` has one entry a tensor in the order of the rule's
 * operands, variadic ones spread, NULL for absent ones. Returns NULL after it reported an error
 * (shapes that do not match the rule, too few operands). */
Op *ir_op(Module *module, const OpDef *def, Value *const *operands, int operand_count,
          const Attr *attrs, Position at);

/* Makes an operator for `like`, in its place. A failure to bind is a bug. */
Op *ir_op_like(Module *module, const OpDef *def, Value *const *operands, int operand_count,
               const Attr *attrs, const Op *like);

/* Copies an operator, with other operands (op->operand_count entries, of the same types). The
 * results are new values with the names and types of the old. */
Op *ir_clone(Module *module, const Op *op, Value *const *operands);

/* Binds a rule. Writes the results' types to `types` (rule->result_count). Returns NULL after it
 * reported an error. */
const Binding *ir_bind(Arena *arena, Diag *diag, Position at, const OpDef *def, const Attr *attrs,
                       Value *const *operands, int operand_count, Type *types);

/* Binds an operator again whose operands have other element types than before, and sets its
 * results' types. A failure is a bug. */
void ir_rebind(Module *module, Op *op);

/* Returns the devices on which an operator runs. */
static inline const Mesh *op_mesh(const Module *module, const Op *op) {
    return op->stage == STAGE_ALL ? module->devices.mesh
                                  : module->templates.stages.at[op->stage].mesh;
}

/* Returns the number of micro-batches of the pipeline that has most of them. */
int64_t module_microbatches(const Module *module);

/* Returns how often an operator runs in a step: once, or with each micro-batch of that pipeline of
 * its template that has most. */
int64_t op_runs(const Module *module, const Op *op);

/* Sets index and loop_first of the operators in module->ops. */
void ir_number(Module *module);

/* Returns the definition in the module's library that is `def`, or equals it by name and text; adds
 * `def` when there is none. */
const OpDef *module_def(Module *module, const OpDef *def);

/* Whether a step may give a parameter another value. */
static inline bool param_changes(const Module *module, const Value *param) {
    return module->kind == MODULE_TRAIN || module->params.at[param->index]->updated;
}

/* Returns the ZeRO level of the strategy, 0 to 3. */
static inline int module_zero(const Module *module) {
    return module->strategy ? module->strategy->zero : 0;
}

/* Returns the table in which equal things (layouts, extents, names of dimensions) are one
 * pointer. */
Intern *module_interned(Module *module);

/* Returns the table of equivalent devices of the module's cluster
 * (cluster/cluster.h). */
Intern *module_equivalent_devices(Module *module);

/* Whether two layouts, which live as long as the module, are equal (layout_equal); each pair is
 * compared once. */
bool module_layouts_equal(Module *module, const Layout *a, const Layout *b, Type type);

/* Returns layout_shard_replicas of a layout, computed once for all layouts that differ in their
 * devices' numbers alone. */
const Layout *module_layout_shard_replicas(Module *module, const Layout *layout, Type type);

#endif
