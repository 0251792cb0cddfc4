/* Strategies: what is read, that print and parse are inverse, and every error with its place. */
#include "cluster/cluster.h"
#include "strategy/strategy.h"
#include "strategy/layer_placement.h"
#include "syntax/lex.h"
#include "syntax/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Reading {
    Arena *arena;
    StrategyList list;
    bool good;
    char *messages;
} Reading;

/* Constants of the model that the tests pretend to read: LAYERS is 12, WORLD is 4. */
static bool constant(void *state, const char *name, int64_t *value) {
    (void)state;
    *value = !strcmp(name, "LAYERS") ? 12 : 4;
    return !strcmp(name, "LAYERS") || !strcmp(name, "WORLD");
}

static bool axis_used(void *state, const char *axis) {
    (void)state;
    return !strcmp(axis, "explicit");
}

static Reading read_text(const char *text, const char *unnamed) {
    const StrategyNames names = {NULL, constant, axis_used, NULL};
    Reading reading = {.arena = arena_create()};
    size_t size;
    FILE *out = open_memstream(&reading.messages, &size);
    Diag *diag = diag_create(reading.arena, out);
    diag_source(diag, "s.txt", text);
    TokenList tokens = {0};
    Lexer lexer = lex_begin(reading.arena, diag, (Position){"s.txt", 1, 1}, text);
    lexer.lines = true;
    lex_rest(&lexer, &tokens);
    reading.good = strategy_parse(reading.arena, diag, tokens.at, &names, unnamed, &reading.list) &&
                   !diag_errors(diag);
    fclose(out);
    return reading;
}

static void finish(Reading *reading) {
    free(reading->messages);
    arena_destroy(reading->arena);
}

static char *printed(const Reading *reading) {
    Text text = {.arena = reading->arena};
    for (int i = 0; i < reading->list.count; i++) strategy_print(&text, reading->list.at[i], "");
    return strdup(text_bytes(&text));
}

static const char whole[] =
    "strategy hetero (seq = 1 << 10, batch = 4*LAYERS)\n"
    "  split batch:dp*ep heads:tp seq:tp zigzag // a comment\n"
    "  turns seq:tp keys:ep\n"
    "  zero 1 over dp\n"
    "  schedule 1f1b\n"
    "  pipeline microbatches(8) rows(4)\n"
    "    stage devices(0-3) mesh(tp:4) layers(0-9) recompute(full)\n"
    "    stage devices(4,5) \\\n"
    "      mesh(tp:2 by 3:(LAYERS-11)) layers(10-(LAYERS-1), head, vision: 0-3) /* two\n lines */\n"
    "  pipeline microbatches(WORLD) rows(4)\n"
    "    stage devices(6, 8) mesh(dp:2, ep:1) layers(0-LAYERS)\n"
    "  idle devices(7)\n"
    "end strategy\n";

static void reads_everything(void **state) {
    (void)state;
    Reading reading = read_text(whole, NULL);
    assert_string_equal(reading.messages, "");
    assert_true(reading.good);
    assert_int_equal(reading.list.count, 1);
    const Strategy *s = reading.list.at[0];
    assert_string_equal(s->name, "hetero");
    assert_int_equal(s->shapes.at[0].value, 1024);
    assert_int_equal(s->shapes.at[1].value, 48);
    assert_int_equal(s->splits.count, 4);
    assert_true(s->splits.at[2].zigzag && !s->splits.at[1].zigzag);
    assert_true(s->splits.at[3].implied && !strcmp(s->splits.at[3].dim, "keys"));
    assert_true(strategy_turns(s, "keys", "ep") && strategy_turns(s, "seq", "tp") &&
                !strategy_turns(s, "heads", "tp"));
    assert_int_equal(s->splits.at[0].axis_count, 2);
    assert_string_equal(s->splits.at[0].axes[1], "ep");
    assert_int_equal(s->zero, 1);
    assert_string_equal(s->schedule, "1f1b");
    assert_int_equal(strategy_schedule(s), SCHEDULE_1F1B);
    assert_int_equal(s->pipelines.count, 2);
    assert_int_equal(s->pipelines.at[0].microbatches, 8);
    const Stage *stage = &s->pipelines.at[0].stages.at[1];
    assert_int_equal(stage->devices.at[1], 5);
    assert_int_equal(stage->mesh.at[0].weights[1], 1);
    assert_int_equal(stage->layers.at[0].last, 11);
    assert_string_equal(stage->layers.at[1].name, "head");
    assert_string_equal(stage->layers.at[2].tower, "vision");
    assert_int_equal(stage->device_at.at[1].column, 21);
    assert_int_equal(strategy_device_count(s), 9);
    finish(&reading);
}

static void print_and_parse_are_inverse(void **state) {
    (void)state;
    Reading first = read_text(whole, NULL);
    char *once = printed(&first);
    Reading second = read_text(once, NULL);
    assert_string_equal(second.messages, "");
    char *twice = printed(&second);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
    finish(&first);
    finish(&second);
}

static void short_forms(void **state) {
    (void)state;
    Reading bare = read_text("split batch:dp\nstage devices(0-2) mesh(dp:3)\n", "plan");
    assert_true(bare.good);
    assert_string_equal(bare.list.at[0]->name, "plan");
    assert_int_equal(bare.list.at[0]->pipelines.at[0].microbatches, 1);
    finish(&bare);
    Reading single = read_text("strategy one\nend strategy\nstrategy two\nstage devices(0-1) "
                               "mesh(explicit:2)\nend strategy",
                               NULL);
    assert_string_equal(single.messages, "");
    assert_int_equal(single.list.count, 2);
    assert_int_equal(strategy_device_count(single.list.at[0]), 1);
    assert_int_equal(strategy_device_count(single.list.at[1]), 2);
    finish(&single);
}

/* A text, and what its first message must begin with. */
static const struct Mistake {
    const char *text, *message;
} mistakes[] = {
    {"strategy a\nsplt batch:dp\nend strategy", "s.txt:2:1: error: \"splt\" begins no statement"},
    {"strategy a\nsplit batch dp\nend strategy", "s.txt:2:13: error: expected \":\", found \"dp\""},
    {"strategy a\nsplit batch:\nend strategy",
     "s.txt:2:13: error: expected the name of a mesh axis, found the end of the line"},
    {"strategy a\nsplit batch:dp\nstage devices(0-1) mesh(pd:2)\nend strategy",
     "s.txt:2:13: error: no stage of the strategy \"a\" has a mesh with an axis \"dp\""},
    {"strategy a\nsplit b:dp b:dp\nstage devices(0-1) mesh(dp:2)\nend strategy",
     "s.txt:2:12: error: the dimension \"b\" is split a second time"},
    {"strategy a\nsplit b:dp*dp\nstage devices(0-1) mesh(dp:2)\nend strategy",
     "s.txt:2:12: error: the axis \"dp\" stands here a second time"},
    {"strategy a\nsplit b:dp\nstage devices(0-3) mesh(dp:2, tp:2)\nend strategy",
     "s.txt:3:31: error: nothing is split along the axis \"tp\""},
    {"strategy a\nsplit b:dp\nstage devices(0-2) mesh(dp:2)\nend strategy",
     "s.txt:3:20: error: the axes of this mesh multiply to 2, but its stage has 3 devices"},
    {"strategy a\nstage devices(0-2)\nend strategy",
     "s.txt:2:1: error: this stage has 3 devices, but no mesh"},
    {"strategy a\nsplit b:dp\nstage devices(0,0) mesh(dp:2)\nend strategy",
     "s.txt:3:17: error: device 0 is used twice"},
    {"strategy a\nsplit b:dp\nstage devices(0,2) mesh(dp:2)\nend strategy",
     "s.txt:1:10: error: device 1 is in no stage of the strategy \"a\", and not idle"},
    {"strategy a\nsplit b:dp\nstage devices(3-2) mesh(dp:2)\nend strategy",
     "s.txt:3:15: error: the range"},
    {"strategy a\nsplit b:dp\nstage devices(0-99999) mesh(dp:2)\nend strategy",
     "s.txt:3:15: error: device 99999: device numbers go up to"},
    {"strategy a\nsplit b:dp\nstage devices(0-1) mesh(dp:2 by 3:1:1)\nend strategy",
     "s.txt:3:30: error: the axis \"dp\" has 2 pieces, but 3 weights"},
    {"strategy a\nsplit b:dp\nstage devices(0-1) mesh(dp:2 by 0:0)\nend strategy",
     "s.txt:3:25: error: the weights of the axis \"dp\""},
    {"strategy a\nsplit b:dp\nstage devices(0-1) mesh(dp:2) recompute(ful)\nend strategy",
     "s.txt:3:41: error: expected \"full\" or \"selective\""},
    {"strategy a\nsplit b:dp\nstage devics(0-1) mesh(dp:2)\nend strategy",
     "s.txt:3:7: error: \"devics\" is no clause of \"stage\""},
    {"strategy a\nstage mesh(dp:1)\nend strategy", "s.txt:2:1: error: this stage names no devices"},
    {"strategy a\nstage devices(0) devices(1)\nend strategy",
     "s.txt:2:18: error: the clause \"devices\" stands here a second time"},
    {"strategy a\npipeline rows(0)\nend strategy",
     "s.txt:2:15: error: the number of rows is 0, but must be from 1"},
    {"strategy a\npipeline microbatch(2)\nend strategy",
     "s.txt:2:10: error: \"microbatch\" is no clause of \"pipeline\""},
    {"strategy a\npipeline\nend strategy", "s.txt:2:1: error: this pipeline has no stage"},
    {"strategy a\nstage devices(0)\npipeline\nend strategy",
     "s.txt:3:1: error: a stage stands before this pipeline"},
    {"strategy a\npipeline rows(3)\nstage devices(0)\npipeline\nstage devices(1)\nend strategy",
     "s.txt:4:1: error: where there are several pipelines"},
    {"strategy a\nstage devices(0) layers(0-4)\nstage devices(1) layers(4-5)\nend strategy",
     "s.txt:3:25: error: layer 4 is claimed twice"},
    {"strategy a\nstage devices(0) layers(0-4, head)\nstage devices(1) layers(6, head)\nend "
     "strategy",
     "s.txt:3:28: error: the layer \"head\" is claimed twice"},
    {"strategy a\nstage devices(0) layers(v: 0-4, 0-4, v: 3)\nend strategy",
     "s.txt:2:38: error: layer 3 is claimed twice"},
    {"strategy a\nsplit b:dp\nturns b:tp\nstage devices(0-3) mesh(dp:2, tp:2)\nend strategy",
     "s.txt:3:9: error: the dimension \"b\" is not split along the axis \"tp\", so nothing could "
     "move on in turns"},
    {"strategy a\nturns b:dp\nturns b:dp\nstage devices(0-1) mesh(dp:2)\nend strategy",
     "s.txt:3:7: error: the dimension \"b\" has turns a second time"},
    {"strategy a\nturns b:dp\nsplit b:dp b:dp\nstage devices(0-1) mesh(dp:2)\nend strategy",
     "s.txt:3:12: error: the dimension \"b\" is split a second time"},
    {"strategy a\nturns b:dp zigzag\nend strategy",
     "s.txt:2:12: error: \"zigzag\" belongs to a split, as in: split b:dp zigzag"},
    {"strategy a\nturns b:dp\nstage devices(0-1) mesh(pd:2)\nend strategy",
     "s.txt:2:9: error: no stage of the strategy \"a\" has a mesh with an axis \"dp\""},
    {"strategy a\nsplit b:dp zigzag zigzag\nend strategy",
     "s.txt:2:25: error: expected \":\", found the end of the line"},
    {"strategy a\nzero 0 over dp\nsplit b:dp\nstage devices(0-1) mesh(dp:2)\nend strategy",
     "s.txt:2:13: error: zero 0 cuts nothing, and so names no axes"},
    {"strategy a\nstage devices(h800:) mesh(dp:2)\nend strategy",
     "s.txt:2:20: error: expected a device number, found \")\""},
    {"strategy a\nstage devices(0) layers(v: )\nend strategy",
     "s.txt:2:28: error: expected a layer, found \")\""},
    {"strategy a\nstage devices(0)\nstage devices(1) layers(6-7)\nend strategy",
     "s.txt:2:1: error: where a pipeline has several stages"},
    {"strategy a\nzero 4\nend strategy",
     "s.txt:2:6: error: the level of ZeRO is 4, but must be from 0 to 3"},
    {"strategy a\nzero 1\nzero 1\nend strategy",
     "s.txt:3:1: error: the statement \"zero\" stands here a second time"},
    {"strategy a\nschedule 1f1\nend strategy",
     "s.txt:2:10: error: expected gpipe, 1f1b, interleaved or zero_bubble, found \"1f1\""},
    {"strategy a (seq = NOPE)\nend strategy",
     "s.txt:1:19: error: \"NOPE\" is no integer constant of the model"},
    {"strategy a (seq = 1/0)\nend strategy", "s.txt:1:20: error: this \"/\" has no value"},
    {"strategy a (seq = 1, seq = 2)\nend strategy",
     "s.txt:1:22: error: \"seq\" is given a second value"},
    {"strategy a (seq = 1.5)\nend strategy", "s.txt:1:19: error: \"1.5\" is not an integer"},
    {"strategy a\nend strategy\nstrategy a\nend strategy",
     "s.txt:3:10: error: there is a strategy \"a\" already"},
    {"strategy a\nzero 1\n", "s.txt:1:10: error: the strategy \"a\" has no \"end strategy\""},
    {"end strategy", "s.txt:1:1: error: this \"end strategy\" ends no strategy"},
    {"zero 1", "s.txt:1:1: error: this statement stands outside"},
    {"strategy a\nzero $1\nend strategy", "s.txt:2:6: error: unexpected character '$'"},
    {"strategy a\nzero \xff\nend strategy", "s.txt:2:6: error: the byte 0xff is not UTF-8"},
    {"strategy a\nzero 1 /* no end\nend strategy", "s.txt:2:8: error: this comment does not end"},
    {"strategy a\nzero 1 1\nend strategy",
     "s.txt:2:8: error: expected the end of the line, found \"1\""},
};

static void mistakes_are_reported_where_they_are(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        Reading reading = read_text(mistakes[i].text, NULL);
        assert_false(reading.good);
        if (strncmp(reading.messages, mistakes[i].message, strlen(mistakes[i].message)))
            fail_msg("%s\nshould begin with:\n%s", reading.messages, mistakes[i].message);
        finish(&reading);
    }
}

static void several_mistakes_are_reported(void **state) {
    (void)state;
    Reading reading = read_text("strategy a\nsplt b:dp\nzero 9\nshedule gpipe\nend strategy", NULL);
    assert_non_null(strstr(reading.messages, "s.txt:2:1: error"));
    assert_non_null(strstr(reading.messages, "s.txt:2:1: note: did you mean \"split\"?"));
    assert_non_null(strstr(reading.messages, "s.txt:3:6: error"));
    assert_non_null(strstr(reading.messages, "s.txt:4:1: note: did you mean \"schedule\"?"));
    finish(&reading);
    Reading empty = read_text("// nothing\n", "plan");
    assert_non_null(strstr(empty.messages, "there is no strategy here"));
    finish(&empty);
}

/* ---- classes of devices ---- */

/* A cluster of three devices "a", two "b", one "a". */
static const Cluster *small_cluster(void) {
    static const DeviceClass a = {.name = "a"}, b = {.name = "b"};
    static const ClusterDevice devices[] = {{&a, 0, 0}, {&a, 0, 1}, {&a, 0, 2},
                                            {&b, 0, 3}, {&b, 0, 4}, {&a, 0, 5}};
    static const Cluster cluster = {.device_count = 6, .processor_count = 6, .devices = devices};
    return &cluster;
}

/* What resolving the only strategy of a text reports; NULL: nothing. */
static char *resolved(Reading *reading, const Cluster *cluster) {
    char *messages;
    size_t size;
    FILE *out = open_memstream(&messages, &size);
    Diag *diag = diag_create(reading->arena, out);
    assert_string_equal(reading->messages, "");
    bool good = strategy_resolve(diag, reading->list.at[0], cluster, "c.json");
    fclose(out);
    assert_true(good == !*messages);
    char *kept = good ? NULL : arena_string(reading->arena, messages);
    free(messages);
    return kept;
}

static const char classes[] = "strategy mixed\n"
                              "  split b:dp\n"
                              "  pipeline rows(1)\n"
                              "    stage devices(a: 0-1, a: 3) mesh(dp:3)\n"
                              "  pipeline rows(1)\n"
                              "    stage devices(b: 1, 3) mesh(dp:2)\n"
                              "  idle devices(a: 2)\n"
                              "end strategy\n";

static void classes_are_found_in_the_cluster(void **state) {
    (void)state;
    Reading reading = read_text(classes, NULL);
    char *text = printed(&reading);
    assert_string_equal(text, classes);
    free(text);
    assert_null(resolved(&reading, small_cluster()));
    const Strategy *s = reading.list.at[0];
    static const int expected[] = {0, 1, 5};
    assert_memory_equal(s->pipelines.at[0].stages.at[0].devices.at, expected, sizeof expected);
    assert_int_equal(s->pipelines.at[1].stages.at[0].devices.at[0], 4);
    assert_int_equal(s->idle.at[0], 2);
    assert_int_equal(strategy_device_count(s), 6);
    text = printed(&reading);
    assert_non_null(strstr(text, "devices(0-1, 5)"));
    free(text);
    finish(&reading);
}

/* A strategy of a text with classes, and what resolving it reports. */
static void unresolved(const char *text, const Cluster *cluster, const char *message) {
    Reading reading = read_text(text, NULL);
    char *messages = resolved(&reading, cluster);
    if (!messages || strncmp(messages, message, strlen(message)))
        fail_msg("%s\nshould begin with:\n%s", messages ? messages : "nothing", message);
    finish(&reading);
}

static void classes_that_are_not_there_are_reported(void **state) {
    (void)state;
    unresolved(classes, NULL,
               "s.txt:4:19: error: the class of devices \"a\" is known only with a cluster file");
    unresolved(
        "strategy m\nsplit b:dp\nstage devices(bb: 0-1) mesh(dp:2)\nend strategy", small_cluster(),
        "s.txt:3:15: error: the cluster has no devices of a class \"bb\": c.json lists none");
    unresolved("strategy m\nsplit b:dp\nstage devices(b: 1-2) mesh(dp:2)\nend strategy",
               small_cluster(),
               "s.txt:3:15: error: the cluster has no device 2 of the class \"b\": c.json lists 2, "
               "from 0");
    unresolved("strategy m\nsplit b:dp\nstage devices(b: 0, 3) mesh(dp:2)\nend strategy",
               small_cluster(), "s.txt:3:21: error: device 3 is used twice");
    unresolved("strategy m\nsplit b:dp\nstage devices(b: 0-1) mesh(dp:2)\nend strategy",
               small_cluster(),
               "s.txt:1:10: error: 3 devices between 0 and 2 are in no stage of the strategy "
               "\"m\", and not idle");
}

/* ---- layers of models ---- */

enum { MOST_LAYERS = 16 };

/* Layers from words: "3", "head", "v/3". */
typedef struct Model {
    Layer layer[MOST_LAYERS];
    const Layer *at[MOST_LAYERS];
    char words[MOST_LAYERS][16];
    int count;
} Model;

static void make_model(Model *model, const char *text) {
    *model = (Model){0};
    for (int length; sscanf(text, "%15s%n", model->words[model->count], &length) == 1;
         text += length) {
        char *word = model->words[model->count], *slash = strchr(word, '/');
        Layer *layer = &model->layer[model->count];
        layer->tower = slash ? word : NULL;
        if (slash) *slash = 0;
        word = slash ? slash + 1 : word;
        layer->number = atoi(word);
        layer->name = *word >= '0' && *word <= '9' ? NULL : word;
        model->at[model->count++] = layer;
    }
}

/* The visits of the layers in the first pipeline of a strategy, as text: "0:0 1:1 0:2" is
 * stage:visit by layer. Or what is reported. */
static void expect_placement(const char *stages, const char *layers, const char *expected) {
    Model model;
    char *messages, text[256] = "";
    size_t size;
    FILE *out = open_memstream(&messages, &size);
    Reading reading = read_text(stages, "plan");
    Diag *diag = diag_create(reading.arena, out);
    assert_string_equal(reading.messages, "");
    make_model(&model, layers);
    const Placement *placement = strategy_place(
        reading.arena, diag, &reading.list.at[0]->pipelines.at[0], model.at, model.count);
    fclose(out);
    assert_true(!placement == (*messages != 0));
    for (int l = 0; placement && l < model.count; l++)
        sprintf(text + strlen(text), "%s%d:%d", l ? " " : "",
                placement->visits[placement->visit_of[l]].stage, placement->visit_of[l]);
    if (placement ? strcmp(text, expected) : strncmp(messages, expected, strlen(expected)))
        fail_msg("%sgives\n%s\nand not\n%s", stages, placement ? text : messages, expected);
    free(messages);
    finish(&reading);
}

static void layers_have_visits(void **state) {
    (void)state;
    expect_placement("stage devices(0)", "0 1 head", "0:0 0:0 0:0");
    expect_placement("stage devices(0) layers(0-1)\nstage devices(1) layers(2-3, head)",
                     "0 1 2 3 head", "0:0 0:0 1:1 1:1 1:1");
    expect_placement("stage devices(0) layers(0-1, 6-7)\nstage devices(1) layers(2-5)",
                     "0 1 2 3 4 5 6 7", "0:0 0:0 1:1 1:1 1:1 1:1 0:2 0:2");
    expect_placement("stage devices(0) layers(embed, 0-1, head)\nstage devices(1) layers(2-3)",
                     "embed 0 1 2 3 head", "0:0 0:0 0:0 1:1 1:1 0:2");
    expect_placement("stage devices(0) layers(embed, pos)\nstage devices(1) layers(0-1)",
                     "embed pos 0 1", "0:0 0:0 1:1 1:1");
    expect_placement("stage devices(0) layers(v: 0-1)\nstage devices(1) layers(0)\nstage "
                     "devices(2) layers(1, v: join)",
                     "v/0 0 v/1 v/join 1", "0:0 1:1 0:0 2:2 2:2");
    expect_placement("stage devices(0) layers(0-1, 2-3)", "0 1 2 3", "0:0 0:0 0:1 0:1");
    expect_placement("stage devices(0) layers(0-1)\nstage devices(1) layers(2-3)", "0 1 2 3 4 head",
                     "s.txt:1:1: error: 2 layers of the model, from layer 4 to the layer \"head\", "
                     "are in no stage of this pipeline");
}

/* What a check of the only strategy of a text and a model reports must begin with `expected`; with
 * "" it reports nothing. */
static void expect_messages(Reading *reading, const char *messages, const char *expected) {
    if (*expected ? strncmp(messages, expected, strlen(expected)) : *messages != 0)
        fail_msg("%s\nshould begin with:\n%s", messages, expected);
    finish(reading);
}

static void expect_layers(const char *stages, const char *layers, const char *expected) {
    Model model;
    char *messages;
    size_t size;
    FILE *out = open_memstream(&messages, &size);
    Reading reading = read_text(stages, "plan");
    make_model(&model, layers);
    bool good = strategy_check_layers(diag_create(reading.arena, out), reading.list.at[0], model.at,
                                      model.count);
    fclose(out);
    assert_true(good == !*expected);
    expect_messages(&reading, messages, expected);
    free(messages);
}

static void layers_that_no_model_has_are_reported(void **state) {
    (void)state;
    expect_layers("stage devices(0) layers(0-3, head, v: 0)", "0 1 2 3 head v/0", "");
    expect_layers("stage devices(0) layers(0-4)", "0 2 4", "");
    expect_layers("stage devices(0) layers(0-4)", "0 1 2 3",
                  "s.txt:1:25: error: the model has no layer 4");
    expect_layers("stage devices(0) layers(0-3, haed)", "0 1 2 3 head",
                  "s.txt:1:30: error: the model has no layer \"haed\"");
    expect_layers("stage devices(0) layers(0-3, vison: 0)", "0 1 2 3 vision/0",
                  "s.txt:1:30: error: the model has no tower \"vison\"");
    expect_layers("stage devices(0) layers(v: 0-1, 2-3)", "v/0 v/1 v/2 v/3",
                  "s.txt:1:33: error: the model has no layer 2\ns.txt:1:33: note: the tower \"v\" "
                  "has one; its name stands in front of each range: v: 2-3\n");
    expect_layers("stage devices(0) layers(v: 0-3)", "0 1 2 3 v/0",
                  "s.txt:1:25: error: the model has no layer 3");
}

/* Edges between visits as text: "0>1 1>2". */
static void expect_order(const char *stages, const char *layers, const char *edges,
                         const char *expected) {
    Model model;
    char *messages;
    size_t size;
    int edge[MOST_LAYERS][2], count = 0;
    FILE *out = open_memstream(&messages, &size);
    Reading reading = read_text(stages, "plan");
    Diag *diag = diag_create(reading.arena, out);
    make_model(&model, layers);
    for (int length; sscanf(edges, "%d>%d%n", &edge[count][0], &edge[count][1], &length) == 2;
         edges += length)
        count++;
    const Placement *placement = strategy_place(
        reading.arena, diag, &reading.list.at[0]->pipelines.at[0], model.at, model.count);
    bool good = strategy_check_order(diag, &reading.list.at[0]->pipelines.at[0], placement,
                                     (const int(*)[2])edge, count);
    fclose(out);
    assert_true(good == !*expected);
    expect_messages(&reading, messages, expected);
    free(messages);
}

static void layers_against_the_order_are_reported(void **state) {
    (void)state;
    expect_order("stage devices(0) layers(0)\nstage devices(1) layers(1)", "0 1", "0>1", "");
    expect_order("stage devices(0) layers(0, 3)\nstage devices(1) layers(1-2)", "0 1 2 3",
                 "0>1 1>2", "");
    expect_order("stage devices(0) layers(0)\nstage devices(1) layers(v: 0)", "v/0 0", "", "");
    expect_order("stage devices(0) layers(1)\nstage devices(1) layers(0)", "0 1", "0>1",
                 "s.txt:2:25: error: this is against the data's order: layers that are listed "
                 "before it need its results");
    expect_order("stage devices(0) layers(3, 0)\nstage devices(1) layers(1-2)", "0 1 2 3",
                 "0>1 1>2", "s.txt:1:28: error: this is against the data's order");
    expect_order("stage devices(0) layers(0-1)\nstage devices(1) layers(2, head)\nstage devices(2) "
                 "layers(v: 0)",
                 "v/0 0 1 2 head", "0>1 1>2",
                 "s.txt:3:25: error: this is against the data's order");
    expect_order("stage devices(0) layers(0-3)\nstage devices(1) layers(4-7)", "0 4 1 5 2 6 3 7",
                 "0>1 1>0",
                 "s.txt:1:25: error: these layers are against the data's order: they need what "
                 "other layers make of their results");
}

/* The stages of the visits that are left when those that nothing stands between are one, and by
 * visit as it was its number. */
static void expect_joined(const char *stages, const char *layers, const char *edges,
                          const char *expected) {
    Model model;
    int edge[MOST_LAYERS][2], count = 0;
    char text[256] = "";
    Reading reading = read_text(stages, "plan");
    make_model(&model, layers);
    for (int length; sscanf(edges, "%d>%d%n", &edge[count][0], &edge[count][1], &length) == 2;
         edges += length)
        count++;
    Placement *placement =
        strategy_place(reading.arena, diag_create(reading.arena, stderr),
                       &reading.list.at[0]->pipelines.at[0], model.at, model.count);
    int before = placement->visit_count;
    const int *number = strategy_join(reading.arena, placement, (const int(*)[2])edge, count);
    for (int v = 0; v < placement->visit_count; v++)
        sprintf(text + strlen(text), "%d ", placement->visits[v].stage);
    for (int v = 0; v < before; v++)
        sprintf(text + strlen(text), "%s%d", v ? " " : "of ", number[v]);
    assert_string_equal(text, expected);
    finish(&reading);
}

static void visits_that_nothing_stands_between_are_one(void **state) {
    (void)state;
    expect_joined("stage devices(0) layers(0, 1, 2)", "0 1 2", "0>1 1>2 0>2", "0 of 0 0 0");
    expect_joined("stage devices(0) layers(0, 3)\nstage devices(1) layers(1, 2)", "0 1 2 3",
                  "0>1 1>2 2>3", "0 1 0 of 0 1 1 2");
    expect_joined("stage devices(0) layers(0, 2)\nstage devices(1) layers(1)", "0 1 2",
                  "0>1 1>2 0>2", "0 1 0 of 0 1 2");
    expect_joined("stage devices(0) layers(v: 0, 0)\nstage devices(1) layers(t: 0)", "v/0 t/0 0",
                  "0>2 1>2", "1 0 of 1 0 1");
    expect_joined("stage devices(0) layers(v: 0, t: 0)\nstage devices(1) layers(0)", "v/0 t/0 0",
                  "0>2 1>2", "0 0 1 of 0 1 2");
    expect_joined("stage devices(0) layers(0)\nstage devices(1) layers(v: 0)", "0 v/0", "1>0",
                  "1 0 of 1 0");
}

static void expect_rows(const char *pipelines, int64_t batch, const char *expected) {
    char *messages;
    size_t size;
    FILE *out = open_memstream(&messages, &size);
    Reading reading = read_text(pipelines, "plan");
    bool good = strategy_check_rows(diag_create(reading.arena, out), reading.list.at[0], batch);
    fclose(out);
    assert_true(good == !*expected);
    expect_messages(&reading, messages, expected);
    free(messages);
}

static void rows_add_up(void **state) {
    (void)state;
    expect_rows("stage devices(0)", 7, "");
    expect_rows(
        "pipeline microbatches(5) rows(2)\nstage devices(0)\npipeline rows(3)\nstage devices(1)",
        13, "");
    expect_rows(
        "pipeline microbatches(5) rows(2)\nstage devices(0)\npipeline rows(3)\nstage devices(1)",
        12,
        "s.txt:1:1: error: the rows of the pipelines' micro-batches add up to 13, but the batch "
        "has 12");
}

static void schedules_have_words(void **state) {
    (void)state;
    static const char *const texts[] = {"stage devices(0)", "schedule gpipe",
                                        "schedule zero_bubble",
                                        "stage devices(0) layers(0-1, head, 4-5)",
                                        "schedule 1f1b\nstage devices(0) layers(0-1, 4-5)"};
    static const ScheduleKind kinds[] = {SCHEDULE_1F1B, SCHEDULE_GPIPE, SCHEDULE_ZERO_BUBBLE,
                                         SCHEDULE_INTERLEAVED, SCHEDULE_1F1B};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Reading reading = read_text(texts[i], "plan");
        assert_int_equal(strategy_schedule(reading.list.at[0]), kinds[i]);
        finish(&reading);
    }
}

/* Every text with one token deleted or doubled either parses or reports an error; it never crashes.
 */
static void mutations_do_not_crash(void **state) {
    (void)state;
    size_t length = strlen(whole);
    for (size_t i = 0; i < length; i++) {
        char *text = calloc(1, length + 2);
        memcpy(text, whole, i);
        memcpy(text + i, whole + i + 1, length - i - 1);
        Reading deleted = read_text(text, NULL);
        assert_true(deleted.good == !strlen(deleted.messages));
        finish(&deleted);
        memcpy(text + i, whole + i, length - i);
        memmove(text + i + 1, text + i, length - i);
        Reading doubled = read_text(text, NULL);
        assert_true(doubled.good == !strlen(doubled.messages));
        finish(&doubled);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_everything),
        cmocka_unit_test(print_and_parse_are_inverse),
        cmocka_unit_test(short_forms),
        cmocka_unit_test(mistakes_are_reported_where_they_are),
        cmocka_unit_test(several_mistakes_are_reported),
        cmocka_unit_test(classes_are_found_in_the_cluster),
        cmocka_unit_test(classes_that_are_not_there_are_reported),
        cmocka_unit_test(layers_have_visits),
        cmocka_unit_test(layers_that_no_model_has_are_reported),
        cmocka_unit_test(layers_against_the_order_are_reported),
        cmocka_unit_test(visits_that_nothing_stands_between_are_one),
        cmocka_unit_test(rows_add_up),
        cmocka_unit_test(schedules_have_words),
        cmocka_unit_test(mutations_do_not_crash),
    };
    return cmocka_run_group_tests_name("strategy", tests, NULL, NULL);
}
