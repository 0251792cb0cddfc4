/* Prints layouts in the notation of layout.h. */
#include "layout/layout.h"

void layout_print_weights(Text *out, const int64_t *weights, int count) {
    for (int i = 0; weights && i < count; i++)
        text_print(out, "%s%lld", i ? ":" : " by ", (long long)weights[i]);
}

void layout_print_devices(Text *out, const int *devices, int count, int least) {
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && devices[end] == devices[end - 1] + 1;) end++;
        if (end - i < least) end = i + 1;
        text_print(out, end - i > 1 ? "%s%d-%d" : "%s%d", i ? "," : "", devices[i],
                   devices[end - 1]);
    }
}

static void print_state(Text *out, const State *state) {
    if (state->kind == STATE_SPLIT) text_print(out, "%d:%d", state->dim, state->count);
    else
        text_print(out, "%s:%d",
                   state->kind == STATE_DUP   ? "dup"
                   : state->kind == STATE_SUM ? "sum"
                                              : "max",
                   state->count);
    layout_print_weights(out, state->weights, state->count);
    text_string(out, state->zigzag ? " zigzag" : "");
}

static void print_group(Text *out, const Group *group) {
    text_string(out, "[");
    layout_print_devices(out, group->devices, group->device_count, 3);
    text_string(out, "]{");
    for (int s = 0; s < group->state_count; s++) {
        text_string(out, s ? "," : "");
        print_state(out, &group->states[s]);
    }
    text_string(out, "}");
}

static void print_view(Text *out, const Layout *layout) {
    for (int f = 0; f < layout->view_rank; f++) {
        const char *before = !f ? "(" : layout->view_dim[f] == layout->view_dim[f - 1] ? "*" : ", ";
        text_print(out, "%s%lld", before, (long long)layout->view[f]);
    }
    text_string(out, layout->view_rank ? ") " : "");
}

static void print_top(Text *out, const Layout *layout) {
    static const char *const names[] = {[TOP_NONE] = "",
                                        [TOP_DUP] = "dup",
                                        [TOP_SUM] = "sum",
                                        [TOP_MAX] = "max",
                                        [TOP_SPLIT] = "split"};
    text_string(out, names[layout->top]);
    if (layout->top != TOP_SPLIT) return;
    text_print(out, " %d%s", layout->top_dim, layout->inner ? " inner" : "");
    layout_print_weights(out, layout->top_weights, layout->group_count);
    text_string(out, " ");
}

void layout_print(Text *out, const Layout *layout) {
    print_view(out, layout);
    if (layout->group_count == 1) {
        print_group(out, &layout->groups[0]);
        return;
    }
    print_top(out, layout);
    for (int g = 0; g < layout->group_count; g++) {
        text_string(out, g ? " | " : "(");
        print_group(out, &layout->groups[g]);
    }
    text_string(out, ")");
}
