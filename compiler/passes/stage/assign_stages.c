/* Finds the stage of each operator.
 *
 *     stages: layers 0-5 on stage 0, layers 6-11 on stage 1
 *     forward:  embedding -> visit 0 (its first reader is layer 0); layer 6, loss -> visit 1
 *     backward: the gradient of layer 6 -> visit 1, the gradient of layer 0 -> visit 0
 *
 * An operator of a layer runs in the visit to which the strategy assigns the layer. An operator
 * outside of layers runs in the latest visit of its operands, or with its first reader if no visit
 * makes operands. A gradient runs where its forward operator runs. Sums of inputs alone, which the
 * counting loop computes, run in the last visit.
 *
 * Forward passes through visits in ascending order, backward in descending order. The readers of a
 * value are in its visit or later ones, so the contributions to its gradient come from these
 * visits. The visit that runs last adds the contributions. So the forward section is placed first,
 * visits are joined and numbered by it, and the backward section is placed by these numbers. */
#include "ir/analysis/phases.h"
#include "passes/stage/stage.h"
#include "strategy/layer_placement.h"

#include <string.h>

static bool is_forward(const Op *op) {
    return loop_repeats(op->loop) && op->section == SECTION_FORWARD;
}

/* Returns the number of a layer in the order in which the model runs layers; -1: unknown. */
static int layer_number(const Staging *staging, const Layer *layer) {
    for (int i = 0; layer && i < staging->layers.count; i++)
        if (staging->layers.at[i] == layer || layer_same(staging->layers.at[i], layer)) return i;
    return -1;
}

/* Appends to `layers` the layers of one loop's operators that are not listed yet. */
static void list_layers_of(Staging *staging, LoopPosition turn) {
    const Module *module = staging->module;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->loop == turn && is_forward(op) && op->source->layer &&
            layer_number(staging, op->source->layer) < 0)
            array_push(staging->arena, &staging->layers, op->source->layer);
    }
}

/* Lists the layers. The counting loop comes last, because it does not determine their order. */
static void list_layers(Staging *staging) {
    staging->layers.count = 0;
    list_layers_of(staging, LOOP_EACH);
    list_layers_of(staging, LOOP_COUNT);
}

/* Returns the loop's operator that makes a value which must be sent to the visit of its reader;
 * NULL: the value is not sent. Every stage has its own part of inputs, and sums over all
 * micro-batches are known everywhere. */
static const Op *maker_of(const Staging *staging, const Value *value) {
    const Op *maker = in_loop(value) ? value->def : NULL;
    bool handed =
        maker && maker->loop == LOOP_EACH && maker->def != staging->module->builtin->local_part;
    return handed && !op_gathers(staging->module, maker) ? maker : NULL;
}

/* Returns whether an operator of the forward section needs its operands in its own visit. */
static bool orders(const Staging *staging, const Op *op) {
    return is_forward(op) && !staging->loose[op->index];
}

typedef struct VisitEdge {
    int from, to;
} VisitEdge;

typedef Array(VisitEdge) VisitEdges;

static void add_edge(Staging *staging, VisitEdges *edges, int from, int to) {
    bool known = from < 0 || from == to;
    for (int e = 0; e < edges->count && !known; e++)
        known = edges->at[e].from == from && edges->at[e].to == to;
    if (!known) array_push(staging->arena, edges, ((VisitEdge){from, to}));
}

/* Returns edges as pairs {from, to}, the form that compiler/strategy takes. */
static const int (*edge_pairs(const VisitEdges *edges))[2] {
    return (const int(*)[2])(const void *)edges->at;
}

/* Finds the data flow between the layers of visits, also through operators outside of layers. */
static VisitEdges find_layer_edges(Staging *staging) {
    const Module *module = staging->module;
    int count = staging->placement->visit_count;
    bool *sources = arena_array(staging->arena, bool, (size_t)count *(size_t)module->ops.count);
    VisitEdges edges = {0};
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        int layer = orders(staging, op) ? layer_number(staging, op->source->layer) : -1;
        bool *own = &sources[(size_t)count * (size_t)i];
        for (int k = 0; orders(staging, op) && k < op->operand_count; k++) {
            const Op *maker = maker_of(staging, op->operands[k]);
            for (int v = 0; maker && v < count; v++)
                own[v] |= sources[(size_t)count * (size_t)maker->index + (size_t)v];
        }
        for (int v = 0; layer >= 0 && v < count; v++) {
            if (own[v]) add_edge(staging, &edges, v, staging->placement->visit_of[layer]);
            own[v] = v == staging->placement->visit_of[layer];
        }
    }
    return edges;
}

/* Finds visits in data-flow order, and the visit of each layer. False: a layer has no stage. */
static bool place_layers(Staging *staging) {
    Module *module = staging->module;
    list_layers(staging);
    staging->placement = strategy_place(staging->arena, module->diag,
                                        &module->strategy->pipelines.at[staging->run->pipeline],
                                        staging->layers.at, staging->layers.count);
    if (!staging->placement) return false;
    VisitEdges edges = find_layer_edges(staging);
    strategy_sort(staging->arena, staging->placement, edge_pairs(&edges), edges.count);
    return true;
}

/* Returns the latest visit of an operator's operands in the loop; -1: none. */
static int operands_visit(const Staging *staging, const Op *op) {
    int latest = -1;
    for (int k = 0; k < op->operand_count; k++) {
        const Op *maker = maker_of(staging, op->operands[k]);
        if (maker && staging->visit[maker->index] > latest) latest = staging->visit[maker->index];
    }
    return latest;
}

/* Returns the visit of a backward operator: of `visit` and the visits that make its operands, the
 * visit that runs last. `visit` may be -1 (unknown). Returns -1 if no visit is known. */
static int backward_visit(const Staging *staging, const Op *op, int visit) {
    for (int k = 0; k < op->operand_count; k++) {
        const Op *maker = maker_of(staging, op->operands[k]);
        int made = maker && maker->section == SECTION_BACKWARD ? staging->visit[maker->index] : -1;
        visit = made >= 0 && (visit < 0 || made < visit) ? made : visit;
    }
    return visit;
}

/* Returns the visit of an operator if the visits of earlier operators determine it; -1: unknown.
 * `unit`: by number of a forward operator, its visit. An addition of gradients belongs to no layer,
 * because several layers may read the value. */
static int known_visit(const Staging *staging, const Op *op, const int *unit) {
    int layer = layer_number(staging, op->source->layer);
    if (op->loop == LOOP_COUNT) return staging->placement->visit_count - 1;
    if (op->section == SECTION_FORWARD)
        return layer >= 0 ? staging->placement->visit_of[layer] : operands_visit(staging, op);
    int summed = op_is_addition(op) ? backward_visit(staging, op, -1) : -1;
    if (summed >= 0) return summed;
    int own = layer >= 0            ? staging->placement->visit_of[layer]
              : op->source->op >= 0 ? unit[op->source->op]
                                    : -1;
    return backward_visit(staging, op, own);
}

/* Finds the data flow between visits in the forward section. */
static VisitEdges find_edges(Staging *staging) {
    const Module *module = staging->module;
    VisitEdges edges = {0};
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int k = 0; orders(staging, op) && k < op->operand_count; k++) {
            const Op *maker = maker_of(staging, op->operands[k]);
            add_edge(staging, &edges,
                     maker && is_forward(maker) ? staging->visit[maker->index] : -1,
                     staging->visit[i]);
        }
    }
    return edges;
}

/* Joins two visits of a stage if data flows between them, but not through a third visit. Stores the
 * template's visits. Returns false if visits run against the data flow. */
static bool settle_visits(Staging *staging) {
    Module *module = staging->module;
    VisitEdges edges = find_edges(staging);
    const int(*edge)[2] = edge_pairs(&edges);
    if (!strategy_check_order(module->diag, &module->strategy->pipelines.at[staging->run->pipeline],
                              staging->placement, edge, edges.count))
        return false;
    const int *joined = strategy_join(staging->arena, staging->placement, edge, edges.count);
    for (int i = 0; i < module->ops.count; i++)
        staging->visit[i] = staging->visit[i] < 0 ? -1 : joined[staging->visit[i]];
    Body *body = &module->templates->at.at[staging->run->template_index];
    int count = staging->placement->visit_count, *stages = arena_array(module->arena, int, count);
    for (int v = 0; v < count; v++) stages[v] = staging->placement->visits[v].stage;
    body->visit_count = count;
    body->visit_stage = stages;
    return true;
}

/* Returns the one of two visits that a section runs first; -1: both are unknown. */
static int first_of(Section section, int a, int b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return (section == SECTION_FORWARD) == (a < b) ? a : b;
}

/* Sets earliest[] (by value id) of an operator's operands to `visit` if that visit runs first. */
static void note_visit(const Op *op, int visit, int *earliest) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k])
            earliest[op->operands[k]->id] =
                first_of(op->section, earliest[op->operands[k]->id], visit);
}

/* Returns the earliest visit that reads a result; -1: unknown. */
static int reader_visit(const Op *op, const int *earliest) {
    int visit = -1;
    for (int r = 0; r < op->result_count; r++)
        visit = first_of(op->section, visit, earliest[op->results[r]->id]);
    return visit;
}

/* Sets the visits of a section's operators: known_visit, else reader_visit, else the last visit. */
static void assign_visits(Staging *staging, Section section, int *unit) {
    Module *module = staging->module;
    int last = staging->placement->visit_count - 1,
        *earliest = arena_array(staging->arena, int, staging->values);
    memset(earliest, -1, sizeof *earliest * (size_t)staging->values);
    // in order of the operators: visits from layers and operands
    for (int i = 0; i < module->ops.count; i++)
        if (loop_repeats(module->ops.at[i]->loop) && module->ops.at[i]->section == section)
            staging->visit[i] = known_visit(staging, module->ops.at[i], unit);
    // in reverse order: operators without a visit get the visit of a reader
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        if (!loop_repeats(op->loop) || op->section != section) continue;
        if (staging->visit[i] < 0) staging->visit[i] = reader_visit(op, earliest);
        if (staging->visit[i] < 0) staging->visit[i] = last;
        note_visit(op, staging->visit[i], earliest);
    }
}

/* Returns the visit of each forward operator by its number (OpSource.op); -1: not in the loop. */
static int *visits_of_units(Staging *staging) {
    const Module *module = staging->module;
    int count = staging->ops + staging->values, *unit = arena_array(staging->arena, int, count);
    memset(unit, -1, sizeof *unit * (size_t)count);
    for (int i = module->ops.count - 1; i >= 0; i--)
        if (is_forward(module->ops.at[i]) && module->ops.at[i]->source->op >= 0)
            unit[module->ops.at[i]->source->op] = staging->visit[i];
    return unit;
}

bool find_visits(Staging *staging) {
    if (!place_layers(staging)) return false;
    memset(staging->visit, -1, sizeof *staging->visit * (size_t)staging->module->ops.count);
    assign_visits(staging, SECTION_FORWARD, NULL);
    if (!settle_visits(staging)) return false;
    assign_visits(staging, SECTION_BACKWARD, visits_of_units(staging));
    return true;
}

int stage_of(const Staging *staging, const Op *op) {
    return staging->module->templates->at.at[staging->run->template_index].first_stage +
           staging->placement->visits[staging->visit[op->index]].stage;
}
