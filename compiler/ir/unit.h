/* Units: the modules and strategies of one source file, and what the emitter needs to register
 * them.
 *
 *     ht_train(gpt_loss, ...), strategies dp4 and tp4        modules 0: gpt_loss under dp4
 *                                                                    1: gpt_loss under tp4
 */
#ifndef IR_UNIT_H
#define IR_UNIT_H

#include "ir/module.h"

typedef struct ShapeVariable { // #pragma hspmd shape(seq, batch)
    const char *name;
    const char *type; // its C type, "int"
    int64_t value;    // under the program's first strategy
    Position at;
} ShapeVariable;

/* A file of the user that was read, and its text. */
typedef struct UnitFile {
    const char *path, *text;
} UnitFile;

/* The same model, evaluated with the padding lengths of one pipeline. It runs through the passes
 * before pass stage beside the module; pass stage takes its shapes. */
typedef struct LengthVariant {
    Module *module;          // NULL: the pipeline has the strategy's lengths
    const Type *input_types; // of its inputs, as the source declares them
} LengthVariant;

/* The links of a module to other programs. They are not part of its text form. */
typedef struct ModuleLinks {
    Module *optimizer_program; // of `optimizer NAME`: the module under NAME; NULL: none
    LengthVariant *variants;   // by pipeline; NULL: all have the strategy's lengths
    const Type *input_types; // beside variants: of the module's inputs, as the source declares them
    bool layouts_only;       // a running program has it already: passes stop after seed_layouts
    uint64_t digest;         // of its text after pass seed_layouts; 0: not asked for
} ModuleLinks;

typedef enum NumberKind { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOATING } NumberKind;
/* Numbers that evaluating the model read from a variable of static storage, in a row. The program
 * may change the variable before it runs, so a compiled program compares the numbers with its own
 * and refuses others. */
typedef struct CapturedGlobal {
    const char *name;     // "seq"; of an array's elements the array: "grid.sizes"
    const char *variable; // at file scope
    bool far;             // the main file does not declare it: another source of the program does
    int64_t offset;       // of the first one there, in bytes
    int64_t first, count; // its index; -1: it is in no array
    NumberKind kind;
    int size;             // of one, in bytes
    const uint8_t *bytes; // what was read
    Position at;
} CapturedGlobal;

typedef struct Unit {
    Arena *arena;
    Diag *diag;
    const char *file;        // as given on the command line
    Array(Module *) modules; // strategy by strategy, in the order of the first ht_train or ht_infer
                             // that names them
    Array(ModuleLinks) links;     // by module
    Array(Strategy *) strategies; // the program begins with the first; none: it runs on one device
    Array(ShapeVariable) shapes;
    Array(const char *) bodiless; // operators of the user's that this source declares only
    bool prepares; // it calls ht_prepare or ht_balance, so strategies may arrive at run time
    int known;     // the number of strategies that a running program has already (--known); 0: the
                   // unit is a program
    const char *std;             // of -std, "c17"
    Array(UnitFile) files;       // its own, the headers, and other sources that models need
    Array(const char *) defined; // functions and variables of its own file with external linkage
    Array(const char *) absent;  // those that its models need and no file defines yet; if there are
                                 // any, the unit has no modules
    bool linked;                 // its models need other sources
    const struct Migrations *migrations; // between its strategies (migration/migration.h); NULL
                                         // before its modules have roles
} Unit;

/* Returns the number of ranks that the unit's program needs: those of its largest strategy. */
int unit_device_count(const Unit *unit);

/* Returns whether two modules are one program under different strategies: they have the same
 * parameters. */
bool module_same_program(const Module *a, const Module *b);

/* Adds a module with empty links. */
void unit_add(Unit *unit, Module *module);

/* Returns the links of a module of the unit. */
ModuleLinks *unit_links(const Unit *unit, const Module *module);

/* Finds the program that `optimizer` names for each module whose strategy has it. */
void unit_find_optimizer_programs(const Unit *unit);

#endif
