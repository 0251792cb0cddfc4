/* Which stage runs an operator.
 *
 * An operator of a layer runs where the strategy puts the layer; one outside of layers where the
 * last-placed of its operands is, or its first user if it has none. What belongs to the gradient of
 * an operator runs where that operator does, and what inputs alone give, which is counted before,
 * in the last visit.
 *
 * Forward goes through the visits in ascending order and backward in descending order. A value goes
 * to readers forward, so what each of them gives of its gradient comes back from the same visit or
 * a later one; these are added up where the last of them is made. So the forward section is placed
 * first, visits are put together and numbered by it, and the backward section is placed by these
 * numbers.
 */
#include "ir/analysis/phases.h"
#include "passes/stage/stage.h"
#include "strategy/place.h"

#include <string.h>

static bool is_forward(const Op *op) {
    return loop_repeats(op->loop) && op->section == SECTION_FORWARD;
}

/* The number of a layer among those of the model, in the order in which it runs them; -1: it is
 * none. */
static int layer_number(const Staging *staging, const Layer *layer) {
    for (int i = 0; layer && i < staging->layers.count; i++)
        if (staging->layers.at[i] == layer || layer_same(staging->layers.at[i], layer)) return i;
    return -1;
}

/* Lists the layers that a turn has and that are not listed yet. */
static void list_layers_of(Staging *staging, LoopPosition turn) {
    const Module *module = staging->module;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op->loop == turn && is_forward(op) && op->source->layer &&
            layer_number(staging, op->source->layer) < 0)
            array_push(staging->arena, &staging->layers, op->source->layer);
    }
}

/* Lists the layers. What is counted stands before the model's loop and says nothing of their
 * order. */
static void list_layers(Staging *staging) {
    staging->layers.count = 0;
    list_layers_of(staging, LOOP_EACH);
    list_layers_of(staging, LOOP_COUNT);
}

/* The operator of the loop that makes what another one reads; NULL where nothing is handed on:
 * every stage has its own part of an input, and what all micro-batches make, as a count, is known
 * everywhere. */
static const Op *maker_of(const Staging *staging, const Value *value) {
    const Op *maker = in_loop(value) ? value->def : NULL;
    bool handed =
        maker && maker->loop == LOOP_EACH && maker->def != staging->module->builtin->local_part;
    return handed && !op_gathers(staging->module, maker) ? maker : NULL;
}

/* Whether an operator of forward needs what it reads in its visit. */
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

/* Edges as compiler/strategy takes them. */
static const int (*edge_pairs(const VisitEdges *edges))[2] {
    return (const int(*)[2])(const void *)edges->at;
}

/* What goes from the layers of a visit to those of another, by operators outside of layers as
 * well. */
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

/* The visits of the body along the data, and the one of each layer. False after an error: layers
 * that no stage has. */
static bool place_layers(Staging *staging) {
    Module *module = staging->module;
    list_layers(staging);
    staging->placement =
        strategy_place(staging->arena, module->diag, module->strategy, staging->run->pipeline,
                       staging->layers.at, staging->layers.count);
    if (!staging->placement) return false;
    VisitEdges edges = find_layer_edges(staging);
    strategy_sort(staging->arena, staging->placement, edge_pairs(&edges), edges.count);
    return true;
}

/* The latest visit of what an operator reads in the loop; -1: none. */
static int operands_visit(const Staging *staging, const Op *op) {
    int latest = -1;
    for (int k = 0; k < op->operand_count; k++) {
        const Op *maker = maker_of(staging, op->operands[k]);
        if (maker && staging->visit[maker->index] > latest) latest = staging->visit[maker->index];
    }
    return latest;
}

/* The visit of an operator of backward: `visit`, or the one that runs later and makes what the
 * operator needs, if there is one. With -1, the last to run of those that make it; -1 stays where
 * there is none. */
static int backward_visit(const Staging *staging, const Op *op, int visit) {
    for (int k = 0; k < op->operand_count; k++) {
        const Op *maker = maker_of(staging, op->operands[k]);
        int made = maker && maker->section == SECTION_BACKWARD ? staging->visit[maker->index] : -1;
        visit = made >= 0 && (visit < 0 || made < visit) ? made : visit;
    }
    return visit;
}

/* The visit of an operator as far as it is known when those before it are; `unit`: by unit, that of
 * its operator of the model. An addition of gradients is of no layer: it is for the value, which
 * several may read. */
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

/* What goes from visit to visit forward. */
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

/* Puts visits together that nothing stands between, and tells the body which there are. False where
 * they are against the flow of the data. */
static bool settle_visits(Staging *staging) {
    Module *module = staging->module;
    VisitEdges edges = find_edges(staging);
    const int(*edge)[2] = edge_pairs(&edges);
    if (!strategy_check_order(module->diag, module->strategy, staging->run->pipeline,
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

/* Of two visits the one that the section runs first; -1: none. */
static int first_of(Section section, int a, int b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return (section == SECTION_FORWARD) == (a < b) ? a : b;
}

/* Notes a visit in which what an operator reads is read. */
static void note_visit(const Op *op, int visit, int *earliest) {
    for (int k = 0; k < op->operand_count; k++)
        if (op->operands[k])
            earliest[op->operands[k]->id] =
                first_of(op->section, earliest[op->operands[k]->id], visit);
}

/* The earliest visit that reads a result; -1: none is known. */
static int reader_visit(const Op *op, const int *earliest) {
    int visit = -1;
    for (int r = 0; r < op->result_count; r++)
        visit = first_of(op->section, visit, earliest[op->results[r]->id]);
    return visit;
}

/* Finds the visits of a section's operators. Those that read nothing of the loop run where they are
 * read first. */
static void assign_visits(Staging *staging, Section section, int *unit) {
    Module *module = staging->module;
    int last = staging->placement->visit_count - 1,
        *earliest = arena_array(staging->arena, int, staging->values);
    memset(earliest, -1, sizeof *earliest * (size_t)staging->values);
    for (int i = 0; i < module->ops.count; i++)
        if (loop_repeats(module->ops.at[i]->loop) && module->ops.at[i]->section == section)
            staging->visit[i] = known_visit(staging, module->ops.at[i], unit);
    for (int i = module->ops.count - 1; i >= 0; i--) {
        const Op *op = module->ops.at[i];
        if (!loop_repeats(op->loop) || op->section != section) continue;
        if (staging->visit[i] < 0) staging->visit[i] = reader_visit(op, earliest);
        if (staging->visit[i] < 0) staging->visit[i] = last;
        note_visit(op, staging->visit[i], earliest);
    }
}

/* By unit, the visit of its operator of the model; -1: it is not of the loop. */
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
