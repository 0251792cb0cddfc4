/* Prints a strategy as parse.c reads it; computes a digest by which strategies are compared. */
#include "strategy/parser.h"
#include "support/hash.h"

static void print_shapes(Text *out, const ShapeValues *shapes) {
    for (int i = 0; i < shapes->count; i++)
        text_print(out, "%s%s = %lld", i ? ", " : " (", shapes->at[i].name,
                   (long long)shapes->at[i].value);
    text_string(out, shapes->count ? ")\n" : "\n");
}

static void print_axes(Text *out, const char *const *axes, int count) {
    for (int i = 0; i < count; i++) text_print(out, "%s%s", i ? "*" : "", axes[i]);
}

/* Prints a line of `word` (`split` or `turns`) and its rules; prints nothing without rules. */
static void print_rules(Text *out, const char *word, const SplitRule *rules, int count,
                        const char *indent) {
    if (count) text_print(out, "%s  %s", indent, word);
    for (int i = 0; i < count; i++) {
        text_print(out, " %s:", rules[i].dim);
        print_axes(out, rules[i].axes, rules[i].axis_count);
        text_string(out, rules[i].zigzag ? " zigzag" : "");
    }
    text_string(out, count ? "\n" : "");
}

static void print_zero(Text *out, const Strategy *strategy, const char *indent) {
    if (!strategy->zero && !strategy->zero_at.line) return;
    text_print(out, "%s  zero %d%s", indent, strategy->zero,
               strategy->zero_axes.count ? " over " : "");
    print_axes(out, strategy->zero_axes.at, strategy->zero_axes.count);
    text_string(out, "\n");
}

static void print_optimizer(Text *out, const Strategy *strategy, const char *indent) {
    if (strategy->optimizer) text_print(out, "%s  optimizer %s\n", indent, strategy->optimizer);
}

/* Prints "devices(0-3, h800: 5)", with runs of consecutive numbers as ranges. */
static void print_devices(Text *out, const int *devices, const char *const *classes, int count) {
    text_string(out, "devices(");
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && devices[end] == devices[end - 1] + 1 &&
                          text_same(classes[end], classes[i]);)
            end++;
        text_print(out, classes[i] ? "%s%s: " : "%s", i ? ", " : "", classes[i]);
        text_print(out, end - i > 1 ? "%d-%d" : "%d", devices[i], devices[end - 1]);
    }
    text_string(out, ")");
}

static void print_mesh(Text *out, const Stage *stage) {
    for (int i = 0; i < stage->mesh.count; i++) {
        const MeshAxis *axis = &stage->mesh.at[i];
        text_print(out, "%s%s:%d", i ? ", " : " mesh(", axis->name, axis->count);
        for (int w = 0; axis->weights && w < axis->count; w++)
            text_print(out, "%s%lld", w ? ":" : " by ", (long long)axis->weights[w]);
    }
    text_string(out, stage->mesh.count ? ")" : "");
}

static void print_layers(Text *out, const Stage *stage) {
    for (int i = 0; i < stage->layers.count; i++) {
        const LayerRange *range = &stage->layers.at[i];
        text_string(out, i ? ", " : " layers(");
        if (range->tower) text_print(out, "%s: ", range->tower);
        if (range->name) text_string(out, range->name);
        else
            text_print(out, range->first == range->last ? "%lld" : "%lld-%lld",
                       (long long)range->first, (long long)range->last);
    }
    text_string(out, stage->layers.count ? ")" : "");
}

static void print_stage(Text *out, const Stage *stage, const char *indent) {
    text_print(out, "%s    stage ", indent);
    print_devices(out, stage->devices.at, stage->device_class.at, stage->devices.count);
    print_mesh(out, stage);
    print_layers(out, stage);
    if (stage->recompute) text_print(out, " recompute(%s)", stage->recompute);
    text_string(out, "\n");
}

static void print_pipeline(Text *out, const Pipeline *pipeline, const char *indent) {
    text_print(out, "%s  pipeline", indent);
    if (pipeline->microbatches != 1)
        text_print(out, " microbatches(%lld)", (long long)pipeline->microbatches);
    if (pipeline->rows) text_print(out, " rows(%lld)", (long long)pipeline->rows);
    print_shapes(out, &pipeline->lengths);
    for (int i = 0; i < pipeline->stages.count; i++)
        print_stage(out, &pipeline->stages.at[i], indent);
}

void strategy_print(Text *out, const Strategy *strategy, const char *indent) {
    text_print(out, "%sstrategy %s", indent, strategy->name);
    print_shapes(out, &strategy->shapes);
    print_rules(out, "split", strategy->splits.at, strategy->splits.count, indent);
    print_rules(out, "turns", strategy->turns.at, strategy->turns.count, indent);
    print_zero(out, strategy, indent);
    print_optimizer(out, strategy, indent);
    if (strategy->schedule) text_print(out, "%s  schedule %s\n", indent, strategy->schedule);
    for (int i = 0; i < strategy->pipelines.count; i++)
        print_pipeline(out, &strategy->pipelines.at[i], indent);
    if (strategy->idle.count) {
        text_print(out, "%s  idle ", indent);
        print_devices(out, strategy->idle.at, strategy->idle_class.at, strategy->idle.count);
        text_string(out, "\n");
    }
    text_print(out, "%send strategy\n", indent);
}

uint64_t strategy_digest(Arena *arena, const Strategy *strategy) {
    Text text = {.arena = arena};
    strategy_print(&text, strategy, "");
    return hash_bytes(HASH_START, text.bytes, text.length);
}
