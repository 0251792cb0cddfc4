/* Layouts as a model's source writes them, in the pragmas `shard` and `reshard`: in device numbers, or over the axes of a mesh that is
 * known later.
 *
 *     [0-3]{0:4}            device numbers: a layout
 *     {batch:dp, 1:tp*ep}   axes: dimensions by name or number, and the axes that cut them, the first major; `seq:cp fold`
 */
#ifndef LAYOUT_WRITTEN_H
#define LAYOUT_WRITTEN_H

#include "layout/layout.h"

typedef struct WrittenAxis {
    const char *name;
    Position at;
} WrittenAxis;

typedef struct WrittenState {
    StateKind kind;
    const char *name; // STATE_SPLIT: the dimension's name; NULL: it is numbered
    int dim;          // its number
    int axis_count;
    const WrittenAxis *axes;
    bool fold; // STATE_SPLIT
    Position at;
} WrittenState;

typedef struct WrittenLayout {
    Position at;
    const Layout *layout; // NULL: over axes
    int state_count;
    const WrittenState *states;
} WrittenLayout;

/* Reads a layout from the tokens, up to `close`, which stays the current token; NULL: up to the end. NULL after an error was reported. */
const WrittenLayout *written_parse(Tokens *tokens, const char *close);

/* Appends its text, which parses back. */
void written_print(Text *out, const WrittenLayout *written);

/* Whether the layout names the axis. */
bool written_names(const WrittenLayout *written, const char *axis);

#endif
