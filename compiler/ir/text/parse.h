/* What the files of the IR's parser share: parse.c reads lines, parse_value.c types, values and
 * what they are made of, parse_op.c operators. */
#ifndef IR_TEXT_PARSE_H
#define IR_TEXT_PARSE_H

#include "ir/text/text.h"
#include "syntax/tokens.h"

typedef struct StorageFix {
    Value *value;
    int storage; // the id of the value whose storage it takes, or within which it lies
    bool within;
    Subview place; // its whole is not known yet
    Position at;
} StorageFix;

typedef struct IrParser {
    Tokens tokens;
    Arena *arena;
    Diag *diag;
    Module *module;
    Position head;                   // of the module's line
    Array(Value *) values;           // by id
    Array(const Frame *) frames;     // by number
    Array(const Binding *) bindings; // by number
    Array(StorageFix) storages;
    Mesh *mesh;         // read last
    bool in_stage;      // a line `stage` was before: meshes are those of stages
    Position layout_at; // of the layout read last
    OpSource source;    // of the operator that is read
    Function *function; // the gradient that is being read
    Section section;
    struct InternEntry *interned;
    struct DefName *defs;
    int next_id;
} IrParser;

/* Reports what was expected at the current token; false. */
bool parse_fail(IrParser *parser, const char *expected);

/* Basic pieces; false after an error. */
bool parse_int(IrParser *parser, int64_t *value);
bool parse_double(IrParser *parser, double *value);
bool parse_string(IrParser *parser, const char **string);
bool parse_name(IrParser *parser, const char **name);
bool parse_position(IrParser *parser, Position *at); // absent: an empty position
bool parse_dtype(IrParser *parser, DType *dtype);
bool parse_type(IrParser *parser, Type *type);

/* NAME or NAME:PART. */
bool parse_dim_name(IrParser *parser, DimName *name);

/* %ID or -: a value that is known, or NULL. */
bool parse_ref(IrParser *parser, Value **value);

/* %ID of a value that is made here. */
bool parse_new_id(IrParser *parser, int *id);

/* Makes `value` known as %id. */
void define_value(IrParser *parser, Value *value, int id);

/* <LAYOUT>, which fits a tensor of the type; NULL after an error. */
const Layout *parse_layout(IrParser *parser, Type type);

/* What stands behind the colon. The position is that of the value before, unless the text says
 * another. */
bool parse_value(IrParser *parser, Value *value);

/* A line that begins with %: an operator; and `binding ...`. */
bool parse_op(IrParser *parser);
bool parse_binding(IrParser *parser);

/* mesh, split. */
bool parse_mesh(IrParser *parser);
bool parse_split(IrParser *parser);

/* batch, body, stage, run. */
bool parse_batch(IrParser *parser);
bool parse_body(IrParser *parser);
bool parse_stage(IrParser *parser);
bool parse_schedule(IrParser *parser);
bool parse_run(IrParser *parser);

/* role, offsets, scratch, plan. */
bool parse_role(IrParser *parser);
bool parse_offsets(IrParser *parser);
bool parse_scratch(IrParser *parser);
bool parse_plan(IrParser *parser);

/* The definition called `name`; NULL after an error. */
const OpDef *parse_def_name(IrParser *parser);
void remember_def(IrParser *parser, const OpDef *def);

/* A string that equal strings share. */
const char *ir_shared_string(IrParser *parser, const char *string);

#endif
