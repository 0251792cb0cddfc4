/* Places layers, and operators named as layers, on stages and visits (Megatron's model chunks of a
 * virtual pipeline). passes/stage/assign_stages.c places operators outside of layers. */
#include "strategy/parser.h"
#include "strategy/layer_placement.h"

/* ---- layers ---- */

bool layer_same(const Layer *a, const Layer *b) {
    if (!a || !b) return a == b;
    return text_same(a->tower, b->tower) && text_same(a->name, b->name) &&
           (a->name || a->number == b->number);
}

bool layer_follows(const Layer *last, const Layer *next) {
    return text_same(last->tower, next->tower) && !last->name && !next->name &&
           next->number == last->number + 1;
}

/* Returns a layer's name: "layer 3", "layer 3 of the tower \"vision\"", "the layer \"head\"". */
static const char *layer_shown(Arena *arena, const Layer *layer) {
    const char *what = layer->name ? arena_format(arena, "the layer \"%s\"", layer->name)
                                   : arena_format(arena, "layer %d", layer->number);
    return layer->tower ? arena_format(arena, "%s of the tower \"%s\"", what, layer->tower) : what;
}

static bool range_has(const LayerRange *range, const Layer *layer) {
    return text_same(range->tower, layer->tower) && text_same(range->name, layer->name) &&
           (range->name || (range->first <= layer->number && layer->number <= range->last));
}

/* ---- visits ---- */

/* The state while a model's layers are placed. */
typedef struct Placer {
    Arena *arena;
    Diag *diag;
    const Pipeline *pipeline;
    const Layer *const *layers;
    int count;
    int *stage, *item; // by layer: its stage, and index in the stage's `layers`; -1: in no stage
    int *visit;        // by layer: its visit; -1: not known yet
    Array(Visit) visits;
} Placer;

static const LayerRange *item_of(const Placer *placer, int layer) {
    return &placer->pipeline->stages.at[placer->stage[layer]].layers.at[placer->item[layer]];
}

/* Sets `stage` and `item` of each layer, -1 if no stage lists the layer, and each `visit` to -1. */
static void find_items(Placer *placer) {
    for (int l = 0; l < placer->count; l++) {
        placer->stage[l] = placer->item[l] = placer->visit[l] = -1;
        for (int s = 0; s < placer->pipeline->stages.count; s++)
            for (int i = 0; i < placer->pipeline->stages.at[s].layers.count; i++)
                if (range_has(&placer->pipeline->stages.at[s].layers.at[i], placer->layers[l])) {
                    placer->stage[l] = s;
                    placer->item[l] = i;
                }
    }
}

static int add_visit(Placer *placer, int stage, int item) {
    const Stage *own = &placer->pipeline->stages.at[stage];
    array_push(placer->arena, &placer->visits,
               ((Visit){stage, item, own->layers.count ? own->layers.at[item].at : own->at}));
    return placer->visits.count - 1;
}

/* Returns the nearest layer in direction `step` that is in a range of the same stage; -1: another
 * stage's layer or the model's end comes first. */
static int neighbour(const Placer *placer, int layer, int step) {
    for (int l = layer + step;
         l >= 0 && l < placer->count && placer->stage[l] == placer->stage[layer]; l += step)
        if (!item_of(placer, l)->name) return l;
    return -1;
}

/* Returns the layer that decides on the visit of `layer`: `layer` itself if it is in a range; else
 * its neighbour in a range; else the first of the adjacent named layers on the stage. */
static int leader(const Placer *placer, int layer) {
    int before = neighbour(placer, layer, -1), after = neighbour(placer, layer, 1), first = layer;
    if (!item_of(placer, layer)->name) return layer;
    if (before >= 0 || after >= 0) return before >= 0 ? before : after;
    while (first > 0 && placer->stage[first - 1] == placer->stage[layer]) first--;
    return first;
}

/* Returns the visit already added for the LayerRange that contains `layer`; -1: none yet. */
static int find_visit(const Placer *placer, int layer) {
    for (int v = 0; v < placer->visits.count; v++)
        if (placer->visits.at[v].stage == placer->stage[layer] &&
            placer->visits.at[v].item == placer->item[layer])
            return v;
    return -1;
}

static void find_visits(Placer *placer) {
    for (int l = 0; l < placer->count; l++) {
        int lead = leader(placer, l), visit = find_visit(placer, lead);
        placer->visit[l] =
            visit >= 0 ? visit : add_visit(placer, placer->stage[lead], placer->item[lead]);
    }
}

/* Returns whether every layer has a stage; reports the layers that have none. */
static bool all_placed(const Placer *placer) {
    int missing = 0, first = -1, last = -1;
    for (int l = 0; l < placer->count; l++)
        if (placer->stage[l] < 0) {
            missing++;
            last = l;
            first = first < 0 ? l : first;
        }
    Position at = placer->pipeline->at;
    if (missing == 1)
        diag_error(placer->diag, at, "%s is in no stage of this pipeline",
                   layer_shown(placer->arena, placer->layers[first]));
    else if (missing)
        diag_error(placer->diag, at,
                   "%d layers of the model, from %s to %s, are in no stage of this pipeline",
                   missing, layer_shown(placer->arena, placer->layers[first]),
                   layer_shown(placer->arena, placer->layers[last]));
    if (missing)
        diag_note(placer->diag, at,
                  "every layer stands in the layers(...) of one stage, as in: stage devices(0-3) "
                  "layers(0-9, head)");
    return !missing;
}

Placement *strategy_place(Arena *arena, Diag *diag, const Pipeline *pipeline,
                          const Layer *const *layers, int count) {
    Placer placer = {arena, diag, pipeline, layers, count, .visit = arena_array(arena, int, count)};
    Placement *placement = arena_new(arena, Placement);
    placer.stage = arena_array(arena, int, count);
    placer.item = arena_array(arena, int, count);
    if (placer.pipeline->stages.count == 1 && !placer.pipeline->stages.at[0].layers.count) {
        add_visit(&placer, 0, 0);
    } else {
        find_items(&placer);
        if (!all_placed(&placer)) return NULL;
        find_visits(&placer);
        if (!count) add_visit(&placer, 0, 0);
    }
    *placement = (Placement){placer.visits.count, placer.visits.at, count, layers, placer.visit};
    return placement;
}

/* ---- layers that the model lacks ---- */

typedef struct Searched {
    bool tower;              // some layer belongs to the tower
    bool whole, first, last; // some layer is inside the range; begins it; ends it
    const Layer *highest;    // the highest numbered layer of the tower; NULL: none
    const char *elsewhere;   // another tower that has the first layer of the range; NULL: none
    const char *names[64];   // names of the tower's layers, for suggestions
    const char *towers[64];
    int name_count, tower_count;
} Searched;

static Searched search_range(const LayerRange *range, const Layer *const *layers, int count) {
    Searched found = {0};
    for (int l = 0; l < count; l++) {
        const Layer *layer = layers[l];
        if (layer->tower && found.tower_count < 64 &&
            !(found.tower_count && text_same(found.towers[found.tower_count - 1], layer->tower)))
            found.towers[found.tower_count++] = layer->tower;
        if (!text_same(layer->tower, range->tower)) {
            found.elsewhere = layer->tower && !layer->name && layer->number == range->first
                                  ? layer->tower
                                  : found.elsewhere;
            continue;
        }
        found.tower = true;
        if (layer->name && found.name_count < 64) found.names[found.name_count++] = layer->name;
        if (!layer->name && (!found.highest || layer->number > found.highest->number))
            found.highest = layer;
        found.whole |= range_has(range, layer);
        found.first |= !layer->name && layer->number == range->first;
        found.last |= !layer->name && layer->number == range->last;
    }
    return found;
}

/* Reports an item of layers(...) whose tower, name, first or last layer the models do not have. */
static void check_item(Diag *diag, const LayerRange *range, const Layer *const *layers, int count) {
    Searched found = search_range(range, layers, count);
    if (range->tower && !found.tower) {
        diag_error(diag, range->at, "the model has no tower \"%s\"", range->tower);
        if (!diag_suggest(diag, range->at, range->tower, found.towers, found.tower_count))
            diag_note(diag, range->at,
                      "the pragma layer(%s, l) in front of a statement makes it a layer of one",
                      range->tower);
    } else if (range->name && !found.whole) {
        diag_error(diag, range->at, "the model has no layer \"%s\"", range->name);
        if (!diag_suggest(diag, range->at, range->name, found.names, found.name_count))
            diag_note(diag, range->at, "the pragma layer(%s) in front of a statement makes it one",
                      range->name);
    } else if (!range->name && !(found.first && found.last)) {
        diag_error(diag, range->at, "the model has no layer %lld",
                   (long long)(found.first ? range->last : range->first));
        if (!found.first && found.elsewhere)
            diag_note(
                diag, range->at,
                "the tower \"%s\" has one; its name stands in front of each range: %s: %lld-%lld",
                found.elsewhere, found.elsewhere, (long long)range->first, (long long)range->last);
        else if (found.highest)
            diag_note(diag, range->at, "the last one is layer %lld",
                      (long long)found.highest->number);
        else
            diag_note(diag, range->at,
                      "it has no numbered layers; the pragma layer(l) in front of a statement "
                      "makes it one");
    }
}

bool strategy_check_layers(Diag *diag, const Strategy *strategy, const Layer *const *layers,
                           int count) {
    int before = diag_errors(diag);
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            const Stage *stage = &strategy->pipelines.at[p].stages.at[s];
            for (int i = 0; i < stage->layers.count; i++)
                check_item(diag, &stage->layers.at[i], layers, count);
        }
    return diag_errors(diag) == before;
}

/* ---- the order of data ---- */

typedef struct Order {
    Diag *diag;
    const Pipeline *pipeline;
    const Placement *placement;
    const int (*edge)[2];
    int edge_count;
    bool *reached; // [from][to]: there is a path of data between the visits
} Order;

static bool reaches(const Order *order, int from, int to) {
    return order->reached[from * order->placement->visit_count + to];
}

static void reach_all(Order *order) {
    int count = order->placement->visit_count;
    for (int e = 0; e < order->edge_count; e++)
        order->reached[order->edge[e][0] * count + order->edge[e][1]] |=
            order->edge[e][0] != order->edge[e][1];
    for (int by = 0; by < count; by++)
        for (int from = 0; from < count; from++)
            for (int to = 0; to < count && reaches(order, from, by); to++)
                order->reached[from * count + to] |= reaches(order, by, to);
}

/* Reports a visit that sends data to another visit and needs data of it; names the first one. */
static void check_visit(const Order *order, int visit) {
    const Visit *own = &order->placement->visits[visit];
    if (!reaches(order, visit, visit)) return;
    for (int other = 0; other < order->placement->visit_count; other++)
        if (other != visit && reaches(order, visit, other) && reaches(order, other, visit)) {
            diag_error(order->diag, own->at,
                       "these layers are against the data's order: they need what other layers "
                       "make of their results");
            diag_note(order->diag, order->placement->visits[other].at,
                      "those are here; cut the range where the data leaves the stage");
            return;
        }
}

/* Reports `second`, listed after `first`, if data goes from `second` to `first` and not back. */
static void check_listed(const Order *order, int first, int second) {
    const Visit *a = &order->placement->visits[first], *b = &order->placement->visits[second];
    if (!reaches(order, second, first) || reaches(order, first, second)) return;
    diag_error(
        order->diag, b->at,
        "this is against the data's order: layers that are listed before it need its results");
    diag_note(order->diag, a->at,
              "they are here; list %s in the order in which the data goes through them",
              a->stage == b->stage ? "ranges" : "stages");
}

/* Returns whether the model runs any layer of an item inside the loop of micro-batches. */
static bool is_run(const Order *order, const LayerRange *item) {
    for (int l = 0; l < order->placement->layer_count; l++)
        if (range_has(item, order->placement->layers[l])) return true;
    return false;
}

/* Returns whether a visit is the first of its stage. Items before it in the stage's list may only
 * be names that run inside the loop of micro-batches and have no visit. */
static bool is_first(const Order *order, const Visit *visit) {
    const Stage *stage = &order->pipeline->stages.at[visit->stage];
    for (int i = 0; i < visit->item; i++)
        if (!stage->layers.at[i].name || !is_run(order, &stage->layers.at[i])) return false;
    for (int v = 0; v < order->placement->visit_count; v++)
        if (order->placement->visits[v].stage == visit->stage &&
            order->placement->visits[v].item < visit->item)
            return false;
    return true;
}

bool strategy_check_order(Diag *diag, const Pipeline *pipeline, const Placement *placement,
                          const int (*edge)[2], int edge_count) {
    Arena *scratch = arena_create();
    int count = placement->visit_count, before = diag_errors(diag);
    Order order = {diag, pipeline,   placement,
                   edge, edge_count, arena_array(scratch, bool, count *count)};
    reach_all(&order);
    for (int v = 0; v < count; v++) check_visit(&order, v);
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            const Visit *first = &placement->visits[a], *second = &placement->visits[b];
            if (first->stage == second->stage
                    ? first->item < second->item
                    : first->stage < second->stage && is_first(&order, first) &&
                          is_first(&order, second))
                check_listed(&order, a, b);
        }
    arena_destroy(scratch);
    return diag_errors(diag) == before;
}

/* ---- merging and sorting visits ---- */

/* The state while visits are merged. A merged visit is represented by one of its members. */
typedef struct Joiner {
    int count;
    int *lead;     // by visit: its representative
    bool *edge;    // [from][to]: data goes straight from one representative to the other
    bool *farther; // [from][to]: data goes there by way of a third visit
} Joiner;

static bool *joiner_cell(const Joiner *joiner, bool *matrix, int from, int to) {
    return &matrix[from * joiner->count + to];
}

/* Computes joiner->farther from joiner->edge. */
static void find_ways(const Joiner *joiner) {
    int count = joiner->count;
    memset(joiner->farther, 0, sizeof *joiner->farther * (size_t)count * (size_t)count);
    for (int by = 0; by < count; by++)
        for (int from = 0; from < count; from++)
            for (int to = 0; to < count; to++) {
                bool there = *joiner_cell(joiner, joiner->edge, from, by) ||
                             *joiner_cell(joiner, joiner->farther, from, by);
                bool on = *joiner_cell(joiner, joiner->edge, by, to) ||
                          *joiner_cell(joiner, joiner->farther, by, to);
                *joiner_cell(joiner, joiner->farther, from, to) |= there && on;
            }
}

/* Merges visit `second` into `first`. */
static void put_together(Joiner *joiner, int first, int second) {
    for (int v = 0; v < joiner->count; v++) {
        joiner->lead[v] = joiner->lead[v] == second ? first : joiner->lead[v];
        *joiner_cell(joiner, joiner->edge, first, v) |=
            *joiner_cell(joiner, joiner->edge, second, v);
        *joiner_cell(joiner, joiner->edge, v, first) |=
            *joiner_cell(joiner, joiner->edge, v, second);
        *joiner_cell(joiner, joiner->edge, second, v) =
            *joiner_cell(joiner, joiner->edge, v, second) = false;
    }
    *joiner_cell(joiner, joiner->edge, first, first) = false;
}

/* Merges the first two visits of a stage of which one sends data to the other, and none by way of
 * a third visit. Returns whether there was such a pair. */
static bool join_two(Joiner *joiner, const Placement *placement) {
    find_ways(joiner);
    for (int from = 0; from < joiner->count; from++)
        for (int to = 0; to < joiner->count; to++)
            if (*joiner_cell(joiner, joiner->edge, from, to) &&
                placement->visits[from].stage == placement->visits[to].stage &&
                !*joiner_cell(joiner, joiner->farther, from, to)) {
                put_together(joiner, from < to ? from : to, from < to ? to : from);
                return true;
            }
    return false;
}

/* Returns whether a visit is an unnumbered representative whose predecessors are numbered. */
static bool comes_next(const Joiner *joiner, const int *number, int visit) {
    bool next = joiner->lead[visit] == visit && number[visit] < 0;
    for (int v = 0; v < joiner->count && next; v++)
        next = !*joiner_cell(joiner, joiner->edge, v, visit) || number[v] >= 0;
    return next;
}

/* Returns whether the strategy lists a visit before another. */
static bool listed_before(const Visit *visit, const Visit *other) {
    return visit->stage != other->stage ? visit->stage < other->stage : visit->item < other->item;
}

/* Returns whether an unnumbered visit of the same stage is listed before this one. */
static bool comes_early(const Joiner *joiner, const Placement *placement, const int *number,
                        int visit) {
    const Visit *own = &placement->visits[visit];
    for (int v = 0; v < joiner->count; v++)
        if (joiner->lead[v] == v && number[v] < 0 && placement->visits[v].stage == own->stage &&
            placement->visits[v].item < own->item)
            return true;
    return false;
}

/* Returns the next visit in data order, among several the one listed first; -1: no visit is left,
 * or all visits left wait for each other. Visits of a stage keep their listed order as far as the
 * data allows, so that shared values are computed in the earlier visit. */
static int find_next(const Joiner *joiner, const Placement *placement, const int *number) {
    int next = -1;
    bool next_early = false;
    for (int v = 0; v < joiner->count; v++) {
        if (!comes_next(joiner, number, v)) continue;
        bool early = comes_early(joiner, placement, number, v);
        if (next < 0 || (early != next_early
                             ? next_early
                             : listed_before(&placement->visits[v], &placement->visits[next]))) {
            next = v;
            next_early = early;
        }
    }
    return next;
}

/* Puts the placement's visits in data order, cycles last. Returns new numbers by old numbers. */
static const int *number_visits(Arena *arena, const Joiner *joiner, Placement *placement) {
    int *number = arena_array(arena, int, joiner->count), total = 0;
    Visit *visits = arena_array(arena, Visit, joiner->count);
    memset(number, -1, sizeof *number * (size_t)joiner->count);
    for (int next; (next = find_next(joiner, placement, number)) >= 0;) {
        visits[total] = placement->visits[next];
        number[next] = total++;
    }
    for (int v = 0; v < joiner->count; v++)
        if (joiner->lead[v] == v && number[v] < 0) {
            visits[total] = placement->visits[v];
            number[v] = total++;
        }
    for (int v = 0; v < joiner->count; v++) number[v] = number[joiner->lead[v]];
    for (int l = 0; l < placement->layer_count; l++)
        placement->visit_of[l] = number[placement->visit_of[l]];
    placement->visits = visits;
    placement->visit_count = total;
    return number;
}

static const int *settle(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count,
                         bool join) {
    Arena *scratch = arena_create();
    int count = placement->visit_count;
    Joiner joiner = {count, arena_array(scratch, int, count),
                     arena_array(scratch, bool, count *count),
                     arena_array(scratch, bool, count *count)};
    for (int v = 0; v < count; v++) joiner.lead[v] = v;
    for (int e = 0; e < edge_count; e++)
        *joiner_cell(&joiner, joiner.edge, edge[e][0], edge[e][1]) = edge[e][0] != edge[e][1];
    while (join && join_two(&joiner, placement)) continue;
    const int *number = number_visits(arena, &joiner, placement);
    arena_destroy(scratch);
    return number;
}

void strategy_sort(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count) {
    settle(arena, placement, edge, edge_count, false);
}

const int *strategy_join(Arena *arena, Placement *placement, const int (*edge)[2], int edge_count) {
    return settle(arena, placement, edge, edge_count, true);
}

/* ---- rows ---- */

bool strategy_check_rows(Diag *diag, const Strategy *strategy, int64_t batch) {
    int64_t sum = 0, product = 0;
    bool said = true, fits = true;
    for (int p = 0; p < strategy->pipelines.count; p++) {
        const Pipeline *pipeline = &strategy->pipelines.at[p];
        said &= pipeline->rows > 0;
        fits &= !__builtin_mul_overflow(pipeline->rows, pipeline->microbatches, &product) &&
                !__builtin_add_overflow(sum, product, &sum);
    }
    if (!said || (fits && sum == batch)) return true;
    Position at = strategy->pipelines.at[0].at;
    diag_error(diag, at,
               "the rows of the pipelines' micro-batches add up to %lld, but the batch has %lld",
               (long long)sum, (long long)batch);
    for (int p = 0; p < strategy->pipelines.count; p++)
        diag_note(diag, strategy->pipelines.at[p].at, "%lld micro-batches of %lld rows are here",
                  (long long)strategy->pipelines.at[p].microbatches,
                  (long long)strategy->pipelines.at[p].rows);
    return false;
}

/* ---- schedules ---- */

ScheduleKind strategy_schedule(const Strategy *strategy) {
    ScheduleKind kind = SCHEDULE_1F1B;
    if (strategy->schedule && schedule_kind(strategy->schedule, &kind)) return kind;
    for (int p = 0; p < strategy->pipelines.count; p++)
        for (int s = 0; s < strategy->pipelines.at[p].stages.count; s++) {
            const Stage *stage = &strategy->pipelines.at[p].stages.at[s];
            int ranges = 0;
            for (int i = 0; i < stage->layers.count; i++) ranges += !stage->layers.at[i].name;
            kind = ranges > 1 ? SCHEDULE_INTERLEAVED : kind;
        }
    return kind;
}
