/* strategies.h: how a running program goes from one strategy to another. Included by hetu.h. */
#ifndef HETU_STRATEGIES_H
#define HETU_STRATEGIES_H

#include <hetu/session.h>

/* Switches a program to another strategy that hetucc compiled (--strategy=a --strategy=b; programs
 * begin with the first), together with the ht_infer programs that share its parameters. Parameters,
 * optimizer states and the step number stay the same, bit for bit. NULL selects the first strategy
 * that was compiled for the current values of the `shape` variables. If the strategy was compiled
 * for other values, set the variables before the call; values that disagree end the program. Feed
 * all inputs again after a switch. Returns false when a strategy of ht_prepare cannot be made, when
 * a signal asks the program to end before the strategy is compiled, or, under HETU_STRATEGY, when
 * the strategy needs more devices than there are ranks; else true. A step switches by itself only
 * under ht_balance. On one device, the call only permits changed `shape` variables. */
bool ht_switch(ht_program *program, const char *strategy);

/* Compiles a new strategy while the program runs: FILE, FILE:NAME or a name of the source, as
 * --strategy takes them. Returns at once; hetucc and the C compiler run during the training on rank
 * 0's machine, on the source as it was when the program was compiled. All ranks load the strategy
 * together, in a later step, ht_fit or ht_switch. ht_switch accepts the strategy's name or the text
 * given here, and waits for the compiler. When compiling fails, or the strategy needs more devices
 * than there are ranks, ht_switch prints the reason and returns false; training goes on unchanged.
 * The call must stand in the model's source file. On one device, the call does nothing. */
void ht_prepare(ht_program *program, const char *strategy);

typedef struct ht_balance_options {
    double change;  // relative change of a rank's computing time from which the rank counts as a straggler or as recovered; 0: 0.3 (30 %)
    int steps;      // steps in a row for which the change must last; 0: 3
    double horizon; // steps within which a switch must pay back its cost; 0: 100
    bool quiet;     // no messages on standard error
} ht_balance_options;

/* Keeps a program balanced while it trains: call it once, after ht_train. Each step measures the
 * computing time of every rank. When a rank becomes slower than in the first steps, or recovers, a
 * new strategy is planned and compiled during the training. If a switch pays back its cost, a later
 * step begins with the switch. Shape variables, inputs, parameters and the step number stay the
 * same; outputs of ht_infer programs must be fetched before the next step. Rank 0 prints each
 * finding and switch to standard error, unless the environment has HETU_BALANCE=quiet.
 * HETU_BALANCE=0 turns balancing off; HETU_BALANCE=1 balances programs without the call. The call
 * must stand in the model's source file. On one device, the call does nothing.
 *
 *     ht_balance(program, .horizon = 1000);
 */
#define ht_balance(program, ...) ht_balance_with((program), (ht_balance_options){.change = 0 __VA_OPT__(,) __VA_ARGS__})
void ht_balance_with(ht_program *program, ht_balance_options options);

typedef struct ht_dispatched {
    const int64_t *row;   // by sequence: its row in the batch; valid until the next call
    int64_t rows, length; // shape of the batch under the strategy; on one device, the number of sequences and the longest length
    const char *strategy; // name of the strategy; NULL on one device
} ht_dispatched;
typedef struct ht_dispatch_options {
    const int64_t *next; // lengths of the next batch; NULL: they are not known
    int64_t next_count;  // number of lengths in `next`; 0: `count`
} ht_dispatch_options;

/* Chooses the best strategy for a batch of sequences of unequal lengths. Switches to that strategy
 * (ht_switch), sets the `shape` variables to its values, and assigns each sequence a row that its
 * pipeline reads to the end. `seq`, an int, is the shape variable of the sequence length. With
 * `.next`, the lengths of the next batch, that batch is planned while this one trains. Rows without
 * a sequence, and elements after a sequence, are padding. On one device, sequence i gets row i, and
 * seq becomes the longest length.
 *
 *     const ht_dispatched *to = ht_dispatch(program, &seq, lengths, count, .next =
 *         lengths_of_next);
 *     for (int64_t i = 0; i < count; i++)
 *         memcpy(tokens + to->row[i] * seq, sequence[i], sizeof *tokens * (size_t)lengths[i]);
 */
#define ht_dispatch(program, seq, lengths, count, ...) \
    ht_dispatch_with((program), (seq), (lengths), (count), (ht_dispatch_options){.next_count = 0 __VA_OPT__(,) __VA_ARGS__})
const ht_dispatched *ht_dispatch_with(ht_program *program, int *seq, const int64_t *lengths, int64_t count, ht_dispatch_options options);

/* Returns the smallest value >= `least` that a strategy of the program gives an integer `shape`
 * variable: seq = ht_fit(program, &seq, 700). On one device, returns `least`. Ends the program when
 * no strategy has such a value. */
int64_t ht_fit(ht_program *program, const void *variable, int64_t least);

#endif
