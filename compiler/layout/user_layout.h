/* Layouts in a model's source (`shard`, `reshard`): with device numbers, or over a strategy's axes.
 *
 *     [0-3]{0:4}            device numbers: a layout
 *     {batch:dp, 1:tp*ep}   axes: dimensions by name or number, and the axes that cut them, the
 *                           slowest first; zigzag: {seq:cp zigzag}
 */
#pragma once

#include "layout/layout.h"

typedef struct UserLayoutAxis {
    const char *name;
    Position at;
} UserLayoutAxis;

typedef struct UserLayoutState {
    StateKind kind;
    const char *name; // STATE_SPLIT: the dimension's name; NULL: `dim` has its number
    int dim;          // STATE_SPLIT without a name: number of the dimension
    int axis_count;
    const UserLayoutAxis *axes;
    bool zigzag; // STATE_SPLIT: the cut is zigzag
    Position at;
} UserLayoutState;

typedef struct UserLayout {
    Position at;
    const Layout *layout; // layout in device numbers; NULL: the layout is over axes
    int state_count;
    const UserLayoutState *states;
} UserLayout;

/* Reads a layout up to token `close` (NULL: the end), not past it. Returns NULL after an error. */
const UserLayout *user_layout_parse(Tokens *tokens, const char *close);

/* Prints the layout as text that user_layout_parse reads. */
void user_layout_print(Text *out, const UserLayout *written);

/* Returns whether the layout names the axis. */
bool user_layout_names(const UserLayout *written, const char *axis);
