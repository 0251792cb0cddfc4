/* Declarations shared by the files of the parser of IR text (ir/text/text.h has an example):
 *
 *     parse.c           lines: the module's head, definitions, parameters, inputs, gradients
 *     parse_op.c        operators and factored bindings
 *     parse_value.c     types, names, layouts and other attributes of values
 *     parse_mesh.c      meshes and their rules
 *     parse_bodies.c    pipeline templates and schedules
 *     parse_roles.c     roles and conversion plans
 *
 * Each function reads from the current token, and returns false or NULL after an error. */
#pragma once

#include "ir/text/text.h"
#include "syntax/tokens.h"

typedef struct StorageFix { // a reference to a value that the parser may not have read yet
    Value *value;
    int storage;   // id of the value whose storage `value` uses, or inside which it lies
    bool within;   // the value is a subview at `place`
    Subview place; // its `whole` is not yet set
    Position at;
} StorageFix;

typedef struct IrParser {
    Tokens tokens;
    Arena *arena;
    Diag *diag;
    Module *module;
    Position head;                   // position of the line `module`
    Array(Value *) values;           // by id
    Array(const Frame *) frames;     // by number
    Array(const Binding *) bindings; // by number
    Array(StorageFix) storages;
    Mesh *mesh;         // mesh of the last line `mesh`
    bool in_stage;      // the next line `mesh` belongs to the last line `stage`
    Position layout_at; // position of the last layout
    OpSource source;    // provenance of the current operator
    Function *function; // the current gradient; NULL: the module's own operators
    Section section;
    struct InternEntry *interned;
    struct DefName *defs;
    int next_id;
} IrParser;

/* Reports that the current token is not what `expected` describes. Returns false. */
bool parse_fail(IrParser *parser, const char *expected);

/* ---- basic elements ---- */
bool parse_int(IrParser *parser, int64_t *value);
bool parse_double(IrParser *parser, double *value);
bool parse_string(IrParser *parser, const char **string);
bool parse_name(IrParser *parser, const char **name);
bool parse_position(IrParser *parser, Position *at); // @FILE:LINE:COLUMN, or nothing
bool parse_dtype(IrParser *parser, DType *dtype);
bool parse_type(IrParser *parser, Type *type);

/* Reads NAME or NAME:PART. */
bool parse_dim_name(IrParser *parser, DimName *name);

/* Reads %ID of a known value, or - for NULL. */
bool parse_ref(IrParser *parser, Value **value);

/* Reads %ID of a new value. */
bool parse_new_id(IrParser *parser, int *id);

/* Registers a value as %id. */
void define_value(IrParser *parser, Value *value, int id);

/* Reads <LAYOUT>, which must fit a tensor of the type. */
const Layout *parse_layout(IrParser *parser, Type type);

/* Reads the part of a value after the colon. If the text has no position, value->at is kept. */
bool parse_value(IrParser *parser, Value *value);

/* Read lines `%ID = OPERATOR(...)` and `binding ...`. */
bool parse_op(IrParser *parser);
bool parse_binding(IrParser *parser);

/* Read lines `mesh` and `split`. */
bool parse_mesh(IrParser *parser);
bool parse_split(IrParser *parser);

/* Read lines `batch`, `template`, `stage`, `run`, `schedule`. */
bool parse_batch(IrParser *parser);
bool parse_body(IrParser *parser);
bool parse_stage(IrParser *parser);
bool parse_schedule(IrParser *parser);
bool parse_run(IrParser *parser);

/* Read lines `role`, `offsets`, `scratch`, `plan`. */
bool parse_role(IrParser *parser);
bool parse_offsets(IrParser *parser);
bool parse_scratch(IrParser *parser);
bool parse_plan(IrParser *parser);

/* Reads the name of an operator that is defined above; NULL after a message. */
const OpDef *parse_def_name(IrParser *parser);
