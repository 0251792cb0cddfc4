/* The intermediate representation: straight-line SSA over tensors.
 *
 * A module is one model function: parameters, inputs, and one list of operators in execution order, each in a section (forward, backward,
 * update). A value has a type, dimension names, and, after layout propagation, a layout. An operator refers to its definition, that is to its rule;
 * nothing here switches on which operator it is. The text form (ir/text/print.h) parses back (ir/text/parse.h), and ir_verify says whether
 * a module is well formed.
 *
 * Types, layouts, bindings and names are shared between values and never changed in place.
 */
#ifndef IR_IR_H
#define IR_IR_H

#include "ir/binding.h"
#include "ir/dim.h"
#include "ir/mesh.h"
#include "ir/pipeline_template.h"
#include "ir/captured_globals.h"
#include "layout/user_layout.h"
#include "strategy/strategy.h"
#include "support/array.h"
#include "support/intern.h"

typedef struct Value Value;
typedef struct Op Op;
typedef struct Function Function;
typedef struct Module Module;

typedef enum ValueKind { VALUE_RESULT, VALUE_PARAM, VALUE_INPUT, VALUE_STATE, VALUE_ARGUMENT } ValueKind;

/* The place of a value in one that has it and more. */
typedef struct Subview {
    const Value *whole;
    int dim;       // along which the value is a part; -1: it has the same elements in another shape
    int64_t start; // the first of them
} Subview;

/* The rows that a value has of a larger tensor: from `start` on of `extent` along dimension `dim`. */
typedef struct Chunk {
    int dim;
    int64_t start, extent;
} Chunk;

struct Value {
    ValueKind kind;
    int id;           // unique in its module; %id in the text
    const char *name; // parameters, inputs, states: the name; results: the variable of the source where known; else NULL
    Type type;
    const Dim *dims;              // one a dimension; NULL: nothing is named
    Position dims_at;             // of the `dims` pragma that named them; without a file when none did
    const UserLayout *user_layout; // what the source writes, until pass seed_layouts makes a layout of it; NULL: nothing
    Position layout_at;           // where the source gives it its layout; file NULL: it does not
    const Layout *layout;         // after pass seed_layouts of what is given, and wherever one is asked for; after pass propagate_layouts of all values
    int micro; // in a step of micro-batches: 0 it does not depend on which; d + 1 its dimension d has the rows of one of them, an interval
               // of the batch (of an input: the batch); MICRO_SUM a contribution to a sum over them
    const Chunk *chunk;   // after pass chunk: the rows that it has, by which kernels are told where it lies; NULL: all
    const Value *storage; // after pass memory: the value whose storage this one takes; NULL: its own
    const Subview *subview; // after pass memory: where it lies in what its storage is for; NULL: it lies in a row (ir/analysis/subviews.h)
    Op *def;              // VALUE_RESULT
    int index;            // which result of def, or which parameter, input, state
    Position at;
    const double *padding; // of an input, of the source: what stands for nothing in it; NULL: not said. Not part of the text form
};

enum { MICRO_SUM = -1 };

/* When an operator runs in a step of micro-batches: once before them, with each, once after them; or, before all that, with each for what
 * inputs alone add up to. */
typedef enum LoopPosition { LOOP_BEFORE, LOOP_EACH, LOOP_AFTER, LOOP_COUNT } LoopPosition;

static inline bool loop_repeats(LoopPosition turn) { return turn == LOOP_EACH || turn == LOOP_COUNT; }

typedef enum Section { SECTION_FORWARD, SECTION_BACKWARD, SECTION_UPDATE } Section;

/* The chain of calls that led to an operator, innermost first. */
typedef struct Frame Frame;
struct Frame {
    const char *function;
    Position at; // of the call
    const Frame *caller;
};

struct Op {
    const OpDef *def;
    const Attr *attrs; // def->attr_count
    const Binding *binding;
    int operand_count, result_count;
    Value **operands; // NULL entries are absent
    Value **results;
    Section section;
    LoopPosition loop;    // LOOP_BEFORE everywhere when the step has no micro-batches
    int stage;    // where it runs: of module->stages; STAGE_ALL on all devices
    int visit;    // of its body: layers that a stage has without another in between, counted along the data; 0 in LOOP_COUNT
    bool is_wgrad; // of the backward section: no other layer and no stage waits for it (pass split_wgrad)
    bool run_in_place;   // results of turns (passes/propagate_layouts/ring.c), as they come: it is not put off, so that they are not kept
    int chunk;    // after pass chunk: the number of the chunk of rows that it computes, from 1 on; 0 none
    int source_op;     // the number of the operator of the model that it stands for or is the gradient of; -1 none
    Position at;
    const Position *fused_at; // of the operators that pass fuse put into this one, the first left out
    int fused_count;
    const Frame *frames;
    const char *scope;        // "h3": ht_scope's path, or NULL
    const Layer *layer;       // of the pragma `layer`; NULL none
    int recompute;            // of `recompute`: which run of a marked statement it belongs to, from 1 on; 0 none
    const Op *recomputes;          // between passes recompute and fuse: the operator of the forward section that it runs again; NULL elsewhere
    const Function *gradient; // of clause grad, specialised to this call's types and attributes; NULL for bodies, views and grad(none)
    const char *reason;       // conversions that layout propagation inserted: why, for -Rcomm; NULL elsewhere
    const struct PlannedConversion *conversion; // conversions, after pass specialize (ir/programs/device_programs.h); NULL elsewhere
    int tensor;                                 // of its conversion: which of the tensors
    int index;                                  // position in module->ops, set by ir_number
    int loop_first;                             // of those of its turn without another between, that of the first; set by ir_number
};

typedef Array(Op *) Ops;

/* The gradient of a call as a piece of IR: params are dy of each result, the results, the operands (NULL where absent or not used);
 * returns has one value an operand, NULL where no gradient flows. */
struct Function {
    const char *name;
    Array(Value *) params;
    Array(Op *) ops;
    Array(Value *) returns;
};

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
    int group;       // of module->groups: the optimizer that it has
    Value *gradient; // after differentiation; NULL when frozen or unused
    Value *updated;  // the new value, in value's layout after pass propagate_layouts; NULL: it stays
    int state_count;
    Value *states[4], *states_updated[4]; // the optimizer's, same shape, zero at the start
} Parameter;

/* Parameters that have one optimizer. */
typedef struct ParamGroup {
    const char *names;                      // the pattern that their names match; NULL: the others
    const char *function, *after;           // in C: the optimizer's operator or rule, and what comes behind it or NULL
    const char *function_name, *after_name; // by which programs know them; NULL: by their addresses
} ParamGroup;

typedef struct Output {
    const char *name;
    Value *value;
} Output;

typedef enum ModuleKind { MODULE_TRAIN, MODULE_INFER } ModuleKind;

/* What the command line asks of the passes. */
typedef struct CompileOptions {
    const char *cluster_file;                // NULL: none
    const struct Cluster *cluster;           // that conversions are planned for (cluster/cluster.h); NULL: one host with equal links
    bool remark_comm, warn_implicit_reshard; // -Rcomm, -Wimplicit-reshard
    int64_t bucket;                          // --bucket: bytes (passes/gradient_buckets.h); 0: not given
    bool no_views;                           // --no-views: slices and rows are moved
    bool no_chunks;                          // --no-chunks: nothing is computed by chunks of rows
    int64_t chunk;                           // --chunk: bytes (passes/chunk/chunk.h); 0: not given
    bool overlap;                            // what zero moves runs beside computing, although that needs more memory: op_is_async, op_prefetch_point
    bool estimate_only;                              // arenas may be longer than they need be: what is compiled is weighed, and does not run
} CompileOptions;

/* What functions remember of their earlier answers. */
typedef struct Caches {
    struct CallTable *calls;     // ir_op and module_def (ir/module.c)
    struct RegionTable *regions; // value_region (ir/programs/device_programs.c)
    struct Posts *representatives;         // representative_device, device_run (ir/programs/device_programs.c)
    struct Intern *scratch;      // role_scratch_bytes (ir/programs/device_programs.c)
    struct Intern *interned;       // module_interned
    struct Intern *equal;        // module_layouts_equal
    struct Intern *sharded_replicas;       // module_layout_shard_replicas
    struct Intern *plans;        // conversion_plan (ir/programs/device_programs.c)
    struct Intern *equivalent_devices;        // module_equivalent_devices
} Caches;

/* A reshard of the source (`reshard` pragma) is an operator whose definition is module->reshard_def and whose result the source, or after
 * pass seed_layouts the text, gives a layout; conversions that layout propagation inserts have the same definition, and their result's layout says what
 * they make. */
struct Module {
    Arena *arena;
    Diag *diag;
    const char *name; // the model function
    ModuleKind kind;
    const char *source;        // the file
    Position at;               // of the model function
    Array(const OpDef *) defs; // each operator used, once
    Array(const OpDef *) slice_concat_ops; // operators that the source declares to take pieces of tensors and to put tensors in a row; not part of the text form
    Array(Parameter *) params;
    Array(Value *) inputs;
    Array(Output) outputs; // named ones; of MODULE_INFER the model's value is output "" at first
    Value *loss;           // MODULE_TRAIN
    Array(const Function *) gradients;
    Array(Op *) ops;
    const OpDef *update;      // the optimizer's operator: (p, g, states..., ?norm) -> (p, states...); NULL for MODULE_INFER
    int state_count;          // states a parameter
    Array(ParamGroup) groups; // of MODULE_TRAIN, the others' first; not part of the text form
    bool averaged;            // of MODULE_INFER: it reads averages of parameters
    bool clip;                // the global gradient norm is given to update as its operand ?norm
    bool norm;                // the square of that norm is an output (ht_grad_norm); pass differentiate makes it
    DType precision;          // the type that operators work in where their rules leave that open: DTYPE_F32 or DTYPE_BF16
    const OpDef *reshard_def;
    Array(const CapturedGlobal *) captured_globals; // not part of the text form
    const OpDef *accumulate_def; // its result is its operand in the first micro-batch, and then their sum (made by pass microbatch; NULL
                                 // where the batch runs as a whole; ops stand in the order of their turns otherwise)
    const OpDef *local_part_def;    // its result is its operand, which is somewhere else too: the rows of a micro-batch at work, or what a stage
                              // holds (made by passes microbatch and stage)
    const OpDef *union_def;   // its result is its operands, each on the devices of its stage, as one tensor (made by pass stage)
    const OpDef *collect_def; // its result has the rows of all micro-batches, its operand those of one (made by pass microbatch)
    PipelineTemplates templates;            // after pass stage
    Module **length_variants; // by pipeline of the strategy, up to pass stage: the same model with the pipeline's lengths; NULL, as a whole or of a
                      // pipeline: it has the strategy's. Not part of the text form
    const Type *input_types[2]; // of such a module: the inputs' types in the source, with the strategy's values and with its own
    const Strategy *strategy;
    Module *optimizer_program;                                  // of `optimizer NAME`: the program under NAME; NULL: none, or not looked for yet
    bool layouts_only;                                    // a program that runs has it: it is placed, and nothing is made of it
    uint64_t digest;                               // of its text after pass seed_layouts; 0: not asked for
    const char *after;                             // the pass that it has come through last; NULL: none
    const Mesh *mesh;                              // after pass seed_layouts: of all devices
    struct Roles *roles;                           // after pass specialize (ir/programs/device_programs.h)
    Array(struct PlannedConversion *) conversions; // after pass specialize: the distinct ones, each of some operator
    int next_id;
    CompileOptions options;
    Caches caches;
};

Module *module_create(Arena *arena, Diag *diag, const char *name);

/* A value of the module; the caller sets what else it needs. */
Value *ir_value(Module *module, ValueKind kind, const char *name, Type type, Position at);

/* Makes an operator: binds the rule to the operands, infers the results' types, and gives results values; it is appended nowhere.
 * NULL after an error was reported (shapes that do not match the rule, too few operands). `operands` has one entry a tensor in the order of
 * the rule's operands, variadic ones spread, NULL for absent ones. */
Op *ir_op(Module *module, const OpDef *def, Value *const *operands, int operand_count, const Attr *attrs, Position at);

/* What follows an operator into those that passes make for it: position, frames, scope, layer, recompute, section, turn and stage. Gives
 * them to `op` and its results. */
void op_take_place(Op *op, const Op *like);

/* Such a place where no operator is. */
static inline Op op_place_at(Position at) { return (Op){.at = at, .stage = STAGE_ALL, .source_op = -1}; }

/* An operator that a pass makes for `like`: ir_op in its place. A failure to bind is a bug. */
Op *ir_op_like(Module *module, const OpDef *def, Value *const *operands, int operand_count, const Attr *attrs, const Op *like);

/* An operator once more, with all that is known of it, of other operands (op->operand_count entries, of the same types); its results are
 * new values with the names and types of the old. */
Op *ir_clone(Module *module, const Op *op, Value *const *operands);

/* Binds a rule; NULL after an error. Writes the results' types to `types` (rule->result_count). */
const Binding *ir_bind(Arena *arena, Diag *diag, Position at, const OpDef *def, const Attr *attrs, Value *const *operands,
                       int operand_count, Type *types);

/* Binds an operator anew whose operands have other element types than before; sets its results' types. A failure is a bug. */
void ir_rebind(Module *module, Op *op);

/* The element type that the rule gives a result, and an operand: false where it leaves that open. `arena` is scratch. */
DType op_result_dtype(Arena *arena, const Op *op, int result);
bool op_operand_dtype(Arena *arena, const Op *op, int operand, DType *dtype);

/* The devices on which an operator runs. */
static inline const Mesh *op_mesh(const Module *module, const Op *op)
{
    return op->stage == STAGE_ALL ? module->mesh : module->templates.stages.at[op->stage].mesh;
}

/* The extent over which an operator runs along a bound factor: its own, or the rows of a micro-batch or the length of a pipeline where that
 * is what its tensors have. */
int64_t op_extent(const Op *op, int factor);

/* Micro-batches of the pipeline of most of them. */
int64_t module_microbatches(const Module *module);

/* How often in a step an operator runs: once, or with each micro-batch of the pipeline of its body that has most. */
int64_t op_runs(const Module *module, const Op *op);

/* Sets op->index and op->turn_first along module->ops. */
void ir_number(Module *module);

/* The definition in module->defs that is `def` or equals it by name and text; added when there is none. */
const OpDef *module_def(Module *module, const OpDef *def);

/* Whether a step may give a parameter another value. */
static inline bool param_changes(const Module *module, const Value *param)
{
    return module->kind == MODULE_TRAIN || module->params.at[param->index]->updated;
}

/* The level of ZeRO that the strategy asks for, 0 to 3. */
static inline int module_zero(const Module *module) { return module->strategy ? module->strategy->zero : 0; }

/* The table in which what is equal (layouts, extents, names of dimensions) is one pointer. */
Intern *module_interned(Module *module);

/* The table of devices of the module's cluster that are alike (cluster/device_equivalence.h). */
Intern *module_equivalent_devices(Module *module);

/* layout_equal, which is asked once for each pair of layouts and extents. The layouts live as long as the module. */
bool module_layouts_equal(Module *module, const Layout *a, const Layout *b, Type type);

/* layout_shard_replicas, shared, which is asked once for all layouts that differ in their devices' numbers alone. */
const Layout *module_layout_shard_replicas(Module *module, const Layout *layout, Type type);

#endif
