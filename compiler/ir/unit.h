/* Units: the modules and strategies of one source file, and data to register them.
 *
 *     ht_train(gpt_loss, ...), strategies dp4 and tp4        modules 0: gpt_loss under dp4
 *                                                                    1: gpt_loss under tp4
 */
#pragma once

#include "ir/module.h"

typedef struct ShapeVariable { // #pragma hspmd shape(seq, batch)
    const char *name;
    const char *type; // its C type, "int"
    int64_t value;    // its value under the program's first strategy
    Position at;
} ShapeVariable;

/* A file of the user that was read, and its text. */
typedef struct UnitFile {
    const char *path, *text;
} UnitFile;

/* A module's model, evaluated with the padding lengths of one pipeline. The variant goes through
 * the passes before pass stage, as the module does; pass stage copies shapes from it. */
typedef struct LengthVariant {
    Module *module;          // NULL: the pipeline has the strategy's lengths
    const Type *input_types; // types of its inputs, as the source declares them
} LengthVariant;

/* The links of a module to other programs. The links are not part of the module's text form. */
typedef struct ModuleLinks {
    Module *optimizer_program; // `optimizer NAME`: the module under strategy NAME; NULL: none
    LengthVariant *variants;   // by pipeline; NULL: all pipelines have the strategy's lengths
    const Type *input_types; // with variants: types of the module's inputs, as the source has them
    bool layouts_only;       // a running program has this module: passes stop after seed_layouts
    uint64_t digest;         // hash of its text after pass seed_layouts; 0: not requested
} ModuleLinks;

typedef enum NumberKind { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOATING } NumberKind;
/* Consecutive numbers that the compiler read from a variable of static storage to evaluate the
 * model. The program may change the variable before it runs the model, so the compiled program
 * compares the variable with these numbers, and stops if they differ. */
typedef struct CapturedGlobal {
    const char *name;     // "seq"; for elements of an array the array's name: "grid.sizes"
    const char *variable; // the variable at file scope that holds the numbers
    bool far;             // another source of the program declares it, not the main file
    int64_t offset;       // bytes from the variable's start to the first number
    int64_t first, count; // array index of the first number (-1: no array); how many numbers
    NumberKind kind;
    int size;             // bytes of one number
    const uint8_t *bytes; // the numbers as read
    Position at;
} CapturedGlobal;

typedef struct Unit {
    Arena *arena;
    Diag *diag;
    const char *file;         // as given on the command line
    Array(Module *) modules;  // modules of the first strategy first; for one strategy in the order
                              // in which ht_train and ht_infer first name the models
    Array(ModuleLinks) links; // by module
    Array(Strategy *) strategies; // the program starts with the first; empty: it runs on one device
    Array(ShapeVariable) shapes;
    Array(const char *) bodiless; // user operators that this source declares but does not define
    bool prepares; // strategies may arrive at run time: under HETU_BALANCE=1, or `asks`
    bool asks;     // the source calls ht_prepare or ht_balance
    int known;     // the number of strategies that a running program has already (--known); 0: the
                   // unit is a whole program
    const char *std;             // argument of -std, "c17"
    Array(UnitFile) files;       // its own file, headers, and other sources that models need
    Array(const char *) defined; // functions and variables of its own file with external linkage
    Array(const char *) absent;  // functions and variables that its models need and no file defines
                                 // yet; if there are any, the unit has no modules
    bool linked;                 // its models need other sources
    const struct Migrations *migrations; // between strategies; NULL before modules have roles
} Unit;

/* Returns the number of ranks that the unit's program needs: that of its largest strategy. */
int unit_device_count(const Unit *unit);

/* Returns whether two modules are one program under different strategies: the model's name, kind,
 * precision and optimizer are equal, and the strategies differ. */
bool module_same_program(const Module *a, const Module *b);

/* Adds a module with empty links. */
void unit_add(Unit *unit, Module *module);

/* Returns the links of a module. Aborts if the module is not in the unit. */
ModuleLinks *unit_links(const Unit *unit, const Module *module);

/* Sets links.optimizer_program of each module whose strategy has `optimizer NAME`. */
void unit_find_optimizer_programs(const Unit *unit);
