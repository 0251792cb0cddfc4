/* The unit that is being written. */
#ifndef EMIT_EMITTER_H
#define EMIT_EMITTER_H

#include "emit/emit.h"
#include "emit/kernel/shared.h"
#include "reshard/replica_groups.h"
#include "support/intern.h"

typedef struct Emitter {
    Arena *arena;
    const Unit *unit;
    const char *base;   // "gpt"
    const char *prefix; // "gpt", or "gpt_1f0a5e2b" where other sources of the program may have the
                        // same name
    const Backend *backend;
    Intern *kernels; // Kernel * by key
    int kernel_count;
    KernelTexts kernel_texts;      // the functions so far
    Text kernel_externs;           // declarations of the C kernels that they run
    Text key;                      // reused for keys
    Intern *pieces, *pieces_known; // tables of pieces so far, by content, and by layout and type
    int boxes_count;
    Intern *adding; // which devices add a term, by what that follows from
    Intern *lists;  // the numbers of lists of devices so far, by content
    int list_count;
    Intern *plans; // their tables, by plan and the places of its devices
    Intern *notes; // the numbers of tables of notes on calls so far, by content
    int note_count;
    Text note_tables; // they have a file of their own
    Intern *arrays;   // the names of tables of plans so far, by content
    int array_count;
} Emitter;

/* The name of the table of a conversion's replica groups, which is written when it is new;
 * `positions` are the numbers that it has for devices, NULL: their own. */
const char *replica_groups_write(Emitter *emitter, Text *out, const ReplicaGroups *replica_groups,
                                 const int *positions);

/* The name of the unit's fingerprint in emitted C. */
const char *fingerprint_name(const Emitter *emitter);

#endif
