/* Modules: the intermediate representation of one model function, straight-line SSA over tensors.
 *
 *     param %0 "up.w" init normal 0.02 : f32[1024, 256] dims(ffn, embed)
 *     input %1 "x" : f32[16, 256] dims(batch, embed)
 *     section forward
 *       %2 = ht_linear(%1, %0, -) : f32[16, 1024] dims(batch, ffn)
 *       %3 = ht_mean(%2) : f32[]
 *     loss %3
 *
 * The operators stand in execution order, each in a section: forward, backward, update. A pass
 * (passes/pass_manager.h) changes a module in place. ir/text/text.h prints and parses modules, and
 * ir/verify/verify.h says whether one is well formed. Options of the command line are in
 * PassContext, other programs in ModuleLinks (ir/unit.h), memoized results in an AnalysisCache. */
#pragma once

#include "ir/builtin.h"
#include "ir/op.h"
#include "ir/value.h"
#include "strategy/strategy.h"
#include "support/intern.h"

typedef enum InitKind { INIT_ZEROS, INIT_CONSTANT, INIT_NORMAL, INIT_UNIFORM } InitKind;

typedef struct Parameter {
    Value *value;
    const char *name;  // full, scopes included: "h0.up.w"
    const char *shape; // as declared: "(3, 4)"
    InitKind init;
    double a;        // the constant, the standard deviation, or the bound of the interval [-a, a)
    bool no_decay;   // the optimizer applies no weight decay to it
    bool frozen;     // the optimizer does not update it
    bool state;      // a frozen value that the model may assign, such as a running mean
    bool kept;       // the parameter is a state of an optimizer's rule
    int group;       // index into module->optimizer->groups
    Value *gradient; // after pass differentiate; NULL: frozen or unused
    Value *updated;  // its value after the step; NULL: unchanged
    int state_count;
    Value *states[4], *states_updated[4]; // optimizer states, initially 0, and their new values
} Parameter;

/* Parameters with an optimizer of their own. */
typedef struct ParamGroup {
    const char *names;         // the pattern that their names match; NULL: all other parameters
    const char *function;      // C name of the optimizer's operator or rule
    const char *after;         // C name of the function that runs after `function`; NULL: none
    const char *function_name; // name of `function` for ht_image; NULL: its address is used
    const char *after_name;    // name of `after` for ht_image; NULL: its address is used
} ParamGroup;

typedef struct Output {
    const char *name;
    Value *value;
} Output;

typedef enum ModuleKind { MODULE_TRAIN, MODULE_INFER } ModuleKind;

/* The target that a module is compiled for. */
typedef struct Target {
    const char *cluster_file;      // NULL: none
    const struct Cluster *cluster; // prices conversions; NULL: one host with equal links
    bool overlap;                  // ZeRO's collectives overlap with computing; needs more memory
} Target;

/* The source of a module. Only `file` and `at` are part of the text form. */
typedef struct ModuleSource {
    const char *file;
    Position at;                                           // position of the model function
    Array(const struct CapturedGlobal *) captured_globals; // ir/unit.h
    Array(const OpDef *) slice_concat_ops; // declared operators that slice or concatenate tensors
} ModuleSource;

/* Definitions and gradient functions of the operators in use, each once. */
typedef struct ModuleLibrary {
    Array(const OpDef *) defs;
    Array(const Function *) gradients;
} ModuleLibrary;

/* The optimizer of MODULE_TRAIN. */
typedef struct ModuleOptimizer {
    const OpDef *op;          // (p, g, states..., ?norm) -> (p, states...); NULL: MODULE_INFER
    int state_count;          // number of states of each parameter
    Array(ParamGroup) groups; // first the group without names; not part of the text form
    bool averaged;            // MODULE_INFER: the model reads averages of parameters
    bool clip;                // `op` gets the global gradient norm as its operand ?norm
    bool norm;                // the square of the gradient norm is an output (ht_grad_norm)
} ModuleOptimizer;

/* The devices that a module runs on, and its programs for them. */
typedef struct ModuleDevices {
    Target target;
    const Mesh *mesh;    // after pass seed_layouts: the mesh of all devices
    struct Roles *roles; // after pass specialize (ir/programs/device_programs.h)
    Array(struct PlannedConversion *) conversions; // after pass specialize, each once
} ModuleDevices;

struct Module {
    Arena *arena;
    Diag *diag;
    const char *name; // name of the model function
    ModuleKind kind;
    ModuleSource *source;
    Array(Parameter *) params;
    Array(Value *) inputs;
    Array(Output) outputs; // MODULE_INFER: the output named "" is the model function's result
    Value *loss;           // MODULE_TRAIN: the loss; else NULL
    Array(Op *) ops;
    ModuleLibrary *library;
    BuiltinDefs *builtin;
    ModuleOptimizer *optimizer;
    DType precision; // DTYPE_F32 or DTYPE_BF16, for operators whose rules leave the type open
    const Strategy *strategy;
    PipelineTemplates *templates; // after pass stage
    ModuleDevices *devices;
    const char *last_pass;       // name of the last pass that has run; NULL: none
    int next_id;                 // id of the next value
    struct AnalysisCache *cache; // ir/analysis_cache.h
};

Module *module_create(Arena *arena, Diag *diag, const char *name);

/* Makes a value with a new id. The caller sets the other fields. */
Value *ir_value(Module *module, ValueKind kind, const char *name, Type type, Position at);

/* A call of a declared operator. */
typedef struct OpCall {
    const OpDef *def;
    Value *const *operands; // in the rule's order, with all variadic tensors; NULL: absent
    int operand_count;
    const Attr *attrs; // def->attr_count arguments
} OpCall;

/* Makes the operator of a call: binds the rule, infers the results' types, makes the results. Does
 * not append the operator to module->ops. Returns NULL after it reported an error (shapes that do
 * not match the rule, too few operands). */
Op *ir_op(Module *module, const OpCall *call, Position at);

/* Makes the operators of a call as ir_op, and appends them to `joins`; the last one has the call's
 * results. Makes one operator, or several where a rule with a clause `row` has more tensors than
 * fit into one call (join.c). Returns false after an error, which is reported. */
bool ir_join(Module *module, const OpCall *call, Position at, Ops *joins);

/* Makes an operator in the place of `like` (op_take_place). Aborts if the rule does not bind. */
Op *ir_op_like(Module *module, const OpCall *call, const Op *like);

/* Copies an operator, with other operands (op->operand_count entries, of the same types). Makes new
 * results, which have the names and types of the old results but no layouts. */
Op *ir_clone(Module *module, const Op *op, Value *const *operands);

/* Binds the rule of a call to its operands. Writes the results' types to `types`
 * (rule->result_count). Returns NULL after an error, which is reported unless `diag` is NULL. */
const Binding *ir_bind(Arena *arena, Diag *diag, Position at, const OpCall *call, Type *types);

/* Binds an operator again after its operands' element types changed; sets its results' types. */
void ir_rebind(Module *module, Op *op);

/* Returns the devices on which an operator runs. */
static inline const Mesh *op_mesh(const Module *module, const Op *op) {
    const bool all = op->stage == STAGE_ALL;
    return all ? module->devices->mesh : module->templates->stages.at[op->stage].mesh;
}

/* Returns the largest number of micro-batches that a pipeline has. */
int64_t module_microbatches(const Module *module);

/* Returns how often an operator runs in a step: once, or for each micro-batch of its template. */
int64_t op_runs(const Module *module, const Op *op);

/* Sets index and loop_first of the operators in module->ops. */
void ir_number(Module *module);

/* Returns the definition in the module's library that equals `def` in name, parameters and text.
 * Adds `def` if there is none, under a numbered name if its name is taken. */
const OpDef *module_def(Module *module, const OpDef *def);

/* Return the input, the parameter or the operator definition with a name; NULL if there is none. */
Value *module_input(const Module *module, const char *name);
const Parameter *module_param(const Module *module, const char *name);
const OpDef *module_def_named(const Module *module, const char *name);

/* Returns whether a step may change a parameter. */
static inline bool param_changes(const Module *module, const Value *param) {
    return module->kind == MODULE_TRAIN || module->params.at[param->index]->updated;
}

/* Returns the ZeRO level of the strategy, 0 to 3. */
static inline int module_zero(const Module *module) {
    return module->strategy ? module->strategy->zero : 0;
}

/* Returns the table that interns layouts, extents and names of dimensions. */
Intern *module_interned(Module *module);

/* Returns the table of equivalent devices of the module's cluster (cluster/cluster.h). */
Intern *module_equivalent_devices(Module *module);

/* Returns whether two layouts that outlive the module are equal (layout_equal), memoized. */
bool module_layouts_equal(Module *module, const Layout *a, const Layout *b, Type type);

/* Returns layout_shard_replicas of a layout, computed once for layouts that differ in devices. */
const Layout *module_layout_shard_replicas(Module *module, const Layout *layout, Type type);
