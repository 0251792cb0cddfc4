/* Which stage runs an operator.
 *
 * An operator of a layer runs where the strategy puts the layer; one outside of layers where the last-placed of its operands is, or its
 * first user if it has none. What belongs to the gradient of an operator runs where that operator does.
 */
#include "ir/parts.h"
#include "passes/stage/stage.h"

#include <string.h>

static bool is_forward(const Op *op) { return turn_loops(op->turn) && op->section == SECTION_FORWARD; }

/* The number of a layer among those of the model, in the order in which it runs them; -1: it is none. */
static int layer_number(const Staging *staging, const Layer *layer)
{
    for (int i = 0; layer && i < staging->layers.count; i++)
        if (staging->layers.at[i] == layer || layer_same(staging->layers.at[i], layer))
            return i;
    return -1;
}

static void list_layers(Staging *staging)
{
    const Module *module = staging->module;
    staging->layers.count = 0;
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (is_forward(op) && op->layer && layer_number(staging, op->layer) < 0)
            array_push(staging->arena, &staging->layers, op->layer);
    }
}

/* The visits of the body, as the strategy lists them, and the one of each layer. False after an error: layers that no stage has. */
static bool place_layers(Staging *staging)
{
    Module *module = staging->module;
    list_layers(staging);
    staging->placement =
        strategy_place(staging->arena, module->diag, module->strategy, staging->run->pipeline, staging->layers.at, staging->layers.count);
    return staging->placement;
}

/* The operator of the loop that makes what another one reads; NULL where nothing is handed on: every stage has its own part of an input. */
static const Op *maker_of(const Staging *staging, const Value *value)
{
    return in_loop(value) && value->def->def != staging->module->part_def ? value->def : NULL;
}

/* The latest visit of what an operator reads in the loop; -1: none. */
static int operands_visit(const Staging *staging, const Op *op)
{
    int latest = -1;
    for (int k = 0; k < op->operand_count; k++) {
        const Op *maker = maker_of(staging, op->operands[k]);
        if (maker && staging->visit[maker->index] > latest)
            latest = staging->visit[maker->index];
    }
    return latest;
}

/* The visit of the first reader of any result; -1: none is known. */
static int reader_visit(const Staging *staging, const Op *op)
{
    for (int r = 0; r < op->result_count; r++) {
        const Op *reader = staging->readers[op->results[r]->id].first;
        if (reader && staging->visit[reader->index] >= 0)
            return staging->visit[reader->index];
    }
    return -1;
}

/* The visit of an operator as far as it is known when those before it are. */
static int known_visit(const Staging *staging, const Op *op, const int *unit)
{
    int layer = layer_number(staging, op->layer);
    if (layer >= 0)
        return staging->placement->visit_of[layer];
    if (op->section != SECTION_FORWARD && op->unit >= 0 && unit[op->unit] >= 0)
        return unit[op->unit];
    return operands_visit(staging, op);
}

typedef struct VisitEdge {
    int from, to;
} VisitEdge;

typedef Array(VisitEdge) VisitEdges;

/* What goes from visit to visit forward. */
static VisitEdges find_edges(const Staging *staging)
{
    const Module *module = staging->module;
    VisitEdges edges = {0};
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        for (int k = 0; is_forward(op) && k < op->operand_count; k++) {
            const Op *maker = maker_of(staging, op->operands[k]);
            VisitEdge edge = {maker && is_forward(maker) ? staging->visit[maker->index] : -1, staging->visit[i]};
            bool known = edge.from < 0 || edge.from == edge.to;
            for (int e = 0; e < edges.count && !known; e++)
                known = edges.at[e].from == edge.from && edges.at[e].to == edge.to;
            if (!known)
                array_push(staging->arena, &edges, edge);
        }
    }
    return edges;
}

/* Puts visits together that nothing stands between, and tells the body which there are. False where they are against the flow of the
 * data. */
static bool settle_visits(Staging *staging)
{
    Module *module = staging->module;
    VisitEdges edges = find_edges(staging);
    const int(*edge)[2] = (const int(*)[2])(const void *)edges.at;
    if (!strategy_check_order(module->diag, module->strategy, staging->run->pipeline, staging->placement, edge, edges.count))
        return false;
    const int *joined = strategy_join(staging->arena, staging->placement, edge, edges.count);
    for (int i = 0; i < module->ops.count; i++)
        staging->visit[i] = staging->visit[i] < 0 ? -1 : joined[staging->visit[i]];
    Body *body = &module->bodies.at.at[staging->run->body];
    int count = staging->placement->visit_count, *stages = arena_array(module->arena, int, count);
    for (int v = 0; v < count; v++)
        stages[v] = staging->placement->visits[v].stage;
    body->visit_count = count;
    body->visit_stage = stages;
    return true;
}

static void assign_visits(Staging *staging)
{
    Module *module = staging->module;
    int last = staging->placement->visit_count - 1;
    int *unit = arena_array(staging->arena, int, staging->ops + staging->values);
    memset(unit, -1, sizeof *unit * (size_t)(staging->ops + staging->values));
    for (int section = SECTION_FORWARD; section <= SECTION_BACKWARD; section++) {
        for (int i = 0; i < module->ops.count; i++)
            if (turn_loops(module->ops.at[i]->turn) && (int)module->ops.at[i]->section == section)
                staging->visit[i] = known_visit(staging, module->ops.at[i], unit);
        for (int i = module->ops.count - 1; i >= 0; i--) {
            const Op *op = module->ops.at[i];
            if (!turn_loops(op->turn) || (int)op->section != section)
                continue;
            if (staging->visit[i] < 0)
                staging->visit[i] = reader_visit(staging, op);
            if (staging->visit[i] < 0)
                staging->visit[i] = last;
            if (op->unit >= 0)
                unit[op->unit] = staging->visit[i];
        }
    }
}

bool find_visits(Staging *staging)
{
    if (!place_layers(staging))
        return false;
    memset(staging->visit, -1, sizeof *staging->visit * (size_t)staging->module->ops.count);
    assign_visits(staging);
    return settle_visits(staging);
}

int stage_of(const Staging *staging, const Op *op)
{
    return staging->module->bodies.at.at[staging->run->body].first_stage + staging->placement->visits[staging->visit[op->index]].stage;
}
