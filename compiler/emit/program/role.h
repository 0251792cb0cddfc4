/* A role's program: operators become calls, repeated calls become loops, phases become functions.
 *
 *     forward of stage 0   ->   void gpt_gpt_loss_train_role0_forward(ht_worker *r)
 *                              {
 *                                  gpt_linear_3(ht_arena(r, 640), ht_slot(r, 2)); ht_did(r);
 *                              }
 *
 * Pass specialize finds which devices share a role. */
#pragma once

#include "emit/emitter.h"
#include "ir/analysis/phases.h"
#include "ir/programs/device_programs.h"

RoleWriter role_writer(Emitter *emitter, Module *module, const char *name, int role);

/* Tables of notes on a part's calls as text (call_notes.c); all NULL: no notes. */
typedef struct Notes {
    int call_count;
    // each text is named after the field of ht_part that it fills
    const char *call, *calls, *made, *buffer, *whose;
    int whose_count;
} Notes;

/* A part that a role runs (ir/analysis/phases.h). */
typedef struct RolePart {
    Phase phase;
    int visit;
    const char *name;         // "forward", "visit1_backward"
    bool runs;                // the part has operators to run
    Array(int) receive, send; // indices of RoleText.transfers
    Notes notes;
} RolePart;

/* A transfer in which a role takes part: a message between stages, an asynchronous collective, or
 * the gather of a prefetched parameter (op_prefetch_point). */
typedef struct RoleTransfer {
    const Op *op;                // first operator of the transfer
    bool flies;                  // the transfer is asynchronous
    bool ahead, sends, receives; // ahead: the gather of a prefetched parameter
    int tensor_count;
    int64_t *from, *to; // by tensor: buffers; 0 where the role has none
    int64_t *turn;      // by tensor: bytes of one micro-batch's rows of `from`; 0: all of `from`
    int64_t scratch;    // buffer of scratch memory; 0: none
    // asynchronous: producers of the tensors that this role sends; empty: the role only receives
    Array(const Op *) makers;
    int number; // asynchronous: position in the order in which all devices begin them
} RoleTransfer;

typedef struct RoleText {
    // parts in the order of their first calls, which follows the order of the module
    Array(RolePart) parts;
    Array(RoleTransfer) transfers;
} RoleText;

/* Returns the index of a role's part; -1 where the role has none. */
int role_part(const RoleText *text, Phase phase, int visit);

/* Appends the C text of a role, part by part. Returns its parts and transfers. */
RoleText emit_role(Text *out, RoleWriter *writer);
