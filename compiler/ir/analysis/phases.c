/* Says which phase runs an operator, which messages cross stages, and sorts operators by phase. */
#include "ir/analysis/phases.h"

#include <stdlib.h>

Phase op_phase(const Module *module, const Op *op) {
    static const Phase of_sections[] = {[SECTION_FORWARD] = PHASE_FORWARD,
                                        [SECTION_BACKWARD] = PHASE_BACKWARD,
                                        [SECTION_UPDATE] = PHASE_UPDATE};
    if (!module->templates->at.count) return of_sections[op->section];
    switch (op->loop) {
    case LOOP_COUNT: return PHASE_COUNTING;
    case LOOP_BEFORE: return PHASE_BEFORE;
    case LOOP_AFTER: return PHASE_UPDATE;
    default:
        return op->section == SECTION_FORWARD ? PHASE_FORWARD
               : op->is_wgrad                 ? PHASE_WGRAD
                                              : PHASE_BACKWARD;
    }
}

const char *phase_name(Phase phase) {
    static const char *const names[] = {
        [PHASE_COUNTING] = "count",    [PHASE_BEFORE] = "before", [PHASE_FORWARD] = "forward",
        [PHASE_BACKWARD] = "backward", [PHASE_WGRAD] = "weights", [PHASE_UPDATE] = "update"};
    return names[phase];
}

bool same_phase(const Module *module, const Op *a, const Op *b) {
    return a->stage == b->stage && a->visit == b->visit &&
           op_phase(module, a) == op_phase(module, b);
}

bool op_gathers(const Module *module, const Op *op) {
    return op->def == module->builtin->accumulate || op->def == module->builtin->collect;
}

bool op_is_addition(const Op *op) {
    const Expr *body = op->def->rule->kind == RULE_BODY && op->def->rule->form == RULE_MAP
                           ? op->def->rule->body
                           : NULL;
    return body && body->kind == EXPR_ADD && body->arg[0]->kind == EXPR_ACCESS &&
           body->arg[1]->kind == EXPR_ACCESS && op->operand_count == 2 && op->operands[0] &&
           op->operands[1] && type_equal(op->operands[0]->type, op->operands[1]->type);
}

bool op_adds_alike(const Op *op) {
    bool alike = op_is_addition(op) && type_equal(op->operands[0]->type, op->results[0]->type);
    const BoundAccess *result = &op->binding->results[0];
    for (int k = 0; alike && k < 2; k++)
        for (int d = 0; alike && d < result->rank; d++) {
            const BoundDim *dim = &op->binding->operands[k].dims[d];
            alike = dim->count == 1 && result->dims[d].count == 1 &&
                    dim->factors[0] == result->dims[d].factors[0];
        }
    return alike;
}

bool op_may_read(const Module *module, const Op *maker, const Op *reader) {
    return maker->visit == reader->visit || maker->loop != LOOP_EACH || reader->loop != LOOP_EACH ||
           maker->def == module->builtin->local_part || op_gathers(module, maker);
}

bool op_crosses_stages(const Module *module, const Op *op) {
    const Op *maker = op->def == module->builtin->reshard ? op->operands[0]->def : NULL;
    if (!maker || op->stage == STAGE_ALL || maker->stage == STAGE_ALL) return false;
    return op->stage != maker->stage || !op_may_read(module, maker, op);
}

typedef struct StageEdge {
    int from, to;
} StageEdge;

/* Returns a message's edge in forward direction; a message with a gradient goes the other way. */
static StageEdge edge_of(const Module *module, const Op *op) {
    int from = op->operands[0]->def->visit, to = op->visit;
    return op_phase(module, op) == PHASE_FORWARD ? (StageEdge){from, to} : (StageEdge){to, from};
}

StageGraph template_graph(Arena *arena, const Module *module, int number) {
    static const int zero[] = {0};
    const Body *body = &module->templates->at.at[number];
    Array(StageEdge) edges = {0}; // each edge once
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (!op_crosses_stages(module, op) || op->loop != LOOP_EACH ||
            module->templates->stages.at[op->stage].template_index != number)
            continue;
        StageEdge edge = edge_of(module, op);
        bool known = false;
        for (int e = 0; e < edges.count && !known; e++)
            known = edges.at[e].from == edge.from && edges.at[e].to == edge.to;
        if (!known) array_push(arena, &edges, edge);
    }
    return (StageGraph){.stage_count = body->stage_count,
                        .visit_count = body->visit_count ? body->visit_count : 1,
                        .stage_of = body->visit_count ? body->visit_stage : zero,
                        .edge_count = edges.count,
                        .edge = (const int(*)[2])(const void *)edges.at,
                        .trains = module->kind == MODULE_TRAIN};
}

int value_ready_at(const Module *module, const Value *value) {
    const Op *def = value->def;
    int last = def->index;
    for (int k = 0; def->def == module->builtin->stage_union && k < def->operand_count; k++) {
        const Op *maker = def->operands[k]->def, *first = def->operands[0]->def;
        if (module->templates->stages.at[maker->stage].template_index ==
            module->templates->stages.at[first->stage].template_index)
            last = k && last > maker->index ? last : maker->index;
    }
    return last;
}

/* The sort key of an operator: loop, template, phase, visit (backward: descending), index. */
typedef struct Place {
    int loop, body, phase, visit, index;
    Op *op;
} Place;

static Place place_of(const Module *module, Op *op) {
    Place place = {.phase = (int)op_phase(module, op), .index = op->index, .op = op};
    place.loop = op->loop == LOOP_COUNT    ? 0
                 : op->loop == LOOP_BEFORE ? 1
                 : op->loop == LOOP_EACH   ? 2
                                           : 3;
    if (!loop_repeats(op->loop)) return place;
    place.body =
        op->stage == STAGE_ALL ? 0 : module->templates->stages.at[op->stage].template_index;
    place.visit =
        place.phase == PHASE_FORWARD || place.phase == PHASE_COUNTING ? op->visit : -op->visit;
    return place;
}

static int compare_places(const void *a, const void *b) {
    const Place *x = a, *y = b;
    const int keys[][2] = {{x->loop, y->loop},
                           {x->body, y->body},
                           {x->phase, y->phase},
                           {x->visit, y->visit},
                           {x->index, y->index}};
    for (int k = 0; k < 5; k++)
        if (keys[k][0] != keys[k][1]) return keys[k][0] < keys[k][1] ? -1 : 1;
    return 0;
}

void ir_order_parts(Module *module) {
    ir_number(module);
    if (!module->templates->at.count) return;
    Arena *scratch = arena_create();
    Place *places = arena_array(scratch, Place, module->ops.count);
    for (int i = 0; i < module->ops.count; i++) places[i] = place_of(module, module->ops.at[i]);
    qsort(places, (size_t)module->ops.count, sizeof *places, compare_places);
    for (int i = 0; i < module->ops.count; i++) module->ops.at[i] = places[i].op;
    arena_destroy(scratch);
    ir_number(module);
}
