/* State of the emitter while it writes the files of one unit, and of one role. */
#pragma once

#include "emit/backend.h"
#include "ir/programs/device_programs.h"
#include "ir/unit.h"
#include "reshard/replica_groups.h"
#include "support/intern.h"

/* A function of the kernels' file. */
typedef struct KernelText {
    const char *name, *prototype;
    const char *banner; // the comment above the function
    const char *before; // C text of the helper functions that the body calls
    const char *how;    // attributes in front of the function: "HT_CLONES "; "" for none
    const char *body;   // statements of the function
} KernelText;

typedef struct KernelTexts {
    int count, capacity;
    KernelText *at;
} KernelTexts;

typedef struct Emitter {
    Arena *arena;
    const Unit *unit;
    const char *base; // name of the emitted files: "gpt"
    // beginning of emitted symbols: "gpt", or "gpt_1f0a5e2b" where another source of the program
    // may have the same name
    const char *prefix;
    const Backend *backend;
    Text key; // scratch buffer in which keys of the tables below are put together
    struct {
        Intern *known; // Kernel *, by all that the function's text depends on (kernel.c)
        int count;
        KernelTexts texts;
        Text externs; // declarations of the C kernels that emitted kernels run
    } kernels;
    struct {
        Intern *known;     // 1 + number of a table of pieces, by its text
        Intern *by_layout; // 1 + number of a table of pieces, by layout and type
        int count;
    } pieces;
    // lists: numbers of emitted lists of devices or of runs of devices, by their text
    // arrays: names of emitted arrays of conversion plans, by their content
    struct {
        Intern *known;
        int count;
    } lists, arrays;
    struct {
        Intern *known; // number of a table of notes on calls, by its content
        int count;
        Text tables; // text of the file that holds these tables
    } notes;
    Intern *adding; // the devices that add a term (AddedTerm.by), by layouts and factors
    Intern *plans;  // PlanTables *, by plan and the positions of its devices
} Emitter;

typedef Array(int64_t) Row;

/* Numbers that differ between the devices of a role, a row for each device. Columns are unique. */
typedef struct NumberTable {
    int device_count, width;
    Row *rows;     // by index of the device in the role: its numbers
    Intern *known; // 1 + column, by content
    Intern *made;  // 2 + column, by everything that the numbers depend on
} NumberTable;

/* The devices that add a term to a partial result. */
typedef struct AddedTerm {
    const bool *by; // by index in module->devices->roles: the device adds the term
    bool flagged;   // some device of the role does not add the term
} AddedTerm;

/* One role while it is written. */
typedef struct RoleWriter {
    Emitter *emitter;
    Module *module;
    const char *name; // "gpt_gpt_loss": prefix of the symbols that the module's files define
    int role_index;
    const Role *role;
    const int64_t *slot_of; // by value id: number of a parameter, state or input; -1: none
    // by value id: number of the parameter or state that gets the value (calls.h); -1: none
    const int64_t *updated_of;
    NumberTable numbers;
    Intern *flags; // AddedTerm *, by layouts and factors
} RoleWriter;

/* Returns the name of the table of a conversion's replica groups, and writes the table when it is
 * new. The table names a device by positions[device], or by its rank if `positions` is NULL. */
const char *replica_groups_write(Emitter *emitter, Text *out, const ReplicaGroups *replica_groups,
                                 const int *positions);

/* Returns the name of the unit's fingerprint in emitted C. */
const char *fingerprint_name(const Emitter *emitter);

/* Appends the kernels. With `share`, kernels that differ in integer constants alone, such as a
 * number of rows, call one body with parameters. The C compiler translates that body once. Divisors
 * and array extents stay constants, since they help the optimiser. */
void write_kernels(Text *out, const KernelTexts *kernels, bool share);
