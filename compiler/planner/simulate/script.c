/* Turns a phase's operators into seconds of computing and conversions, for a stage's actors. */
#include "planner/simulate/script.h"

#include "ir/analysis/async_collectives.h"
#include "ir/programs/device_programs.h"
#include "cost/cost.h"
#include "cost/stage_seconds.h"

#include <math.h>

Scripts scripts_create(Arena *arena, Symmetry *fold, const bool *marked) {
    const Module *module = fold->module;
    int runs = module->templates->runs.count;
    StageGraph *graphs = arena_array(arena, StageGraph, runs + 1);
    Scripts scripts = {.arena = arena, .fold = fold, .marked = marked, .graphs = graphs};
    scripts.parts = arena_array(arena, const Script **, runs + 1);
    scripts.edges = arena_array(arena, const EdgeScript **, runs + 1);
    for (int r = 0; r < runs; r++) {
        graphs[r] = template_graph(arena, module, module->templates->runs.at[r].template_index);
        scripts.parts[r] = arena_array(arena, const Script *, PHASES *graphs[r].visit_count);
        scripts.edges[r] = arena_array(arena, const EdgeScript *, graphs[r].edge_count * 2);
    }
    return scripts;
}

/* Records the rate or device that the cluster file lacks, unless something is recorded already. */
static void note_unknown(Scripts *scripts, const Op *op, const Actor *actor, const Work *work) {
    const char *file = scripts->fold->module->devices->target.cluster_file;
    if (scripts->unknown) return;
    if (!actor->class)
        scripts->unknown = arena_format(scripts->arena, "%s: devices: there is no device %d", file,
                                        actor->devices[0]);
    else
        scripts->unknown = arena_format(
            scripts->arena, "%s: classes.%s.%s: missing; %s at %s:%d needs it", file,
            actor->class->name,
            work->product ? arena_format(scripts->arena, "products.%s", dtype_word(work->dtype))
                          : "arithmetic",
            op->def->name, op->at.file ? op->at.file : "-", op->at.line);
}

static double op_seconds(Scripts *scripts, const Op *op, const Actor *actor) {
    Work work = op_device_work(scripts->fold->module, op, actor->devices[0]);
    double seconds = work_seconds(actor->class, &work);
    if (!isfinite(seconds)) note_unknown(scripts, op, actor, &work);
    return isfinite(seconds) ? seconds : 0;
}

/* Adds an operator's seconds to the last item; to a new item if the last one is a conversion, or
 * ends with a marked operator. */
static void add_computing(Scripts *scripts, Script *script, const Op *op) {
    ScriptItem *last = script->items.count ? &script->items.at[script->items.count - 1] : NULL;
    if (!last || last->transfers || scripts->marked[last->op->index]) {
        array_push(
            scripts->arena, &script->items,
            (ScriptItem){op, arena_array(scripts->arena, double, script->actor_count), NULL});
        last = &script->items.at[script->items.count - 1];
    }
    last->op = op;
    for (int i = 0; i < script->actor_count && op->def->rule->kind != RULE_VIEW; i++) {
        const Actor *actor = &scripts->fold->actors[script->actors[i]];
        if (role_runs(scripts->fold->module, actor->role, op))
            ((double *)last->seconds)[i] += op_seconds(scripts, op, actor);
    }
}

static void add_conversion(Scripts *scripts, Script *script, const Op *op, int run) {
    const ActorTransfers *transfers = symmetry_transfers(scripts->fold, op->convert.plan, run);
    if (!op->convert.tensor && (transfers->count || transfers->copier_count))
        array_push(scripts->arena, &script->items, (ScriptItem){op, NULL, transfers});
    else if (scripts->marked[op->index])
        array_push(
            scripts->arena, &script->items,
            (ScriptItem){op, arena_array(scripts->arena, double, script->actor_count), NULL});
}

/* Sets the script's actors to those of a stage of a run; run -1: to all actors. */
static void find_actors(Scripts *scripts, Script *script, int run, int stage) {
    const Symmetry *fold = scripts->fold;
    const Module *module = fold->module;
    int *actors = arena_array(scripts->arena, int, fold->actor_count);
    for (int a = 0; a < fold->actor_count; a++) {
        const Actor *actor = &fold->actors[a];
        if (run < 0 ||
            (actor->run && fold->stands[actor->run - module->templates->runs.at] == run &&
             actor->stage == stage))
            actors[script->actor_count++] = a;
    }
    script->actors = actors;
}

static const Script *make_part(Scripts *scripts, int run, Phase phase, int visit) {
    const Module *module = scripts->fold->module;
    const StageGraph *graph = &scripts->graphs[run];
    int stage = graph->stage_of[visit],
        own = module->templates->at.at[module->templates->runs.at[run].template_index].first_stage +
              stage;
    Script *script = arena_new(scripts->arena, Script);
    find_actors(scripts, script, run, stage);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bool backward;
        bool everywhere = op->stage == STAGE_ALL;
        if (!(everywhere ? visit == 0 : op->stage == own && op->visit == visit) ||
            op_phase(module, op) != phase || op_is_async(module, op) ||
            op_edge(module, graph, op, &backward) >= 0)
            continue;
        if (op->convert.plan) add_conversion(scripts, script, op, everywhere ? -1 : run);
        else if (op->def->rule->kind != RULE_VIEW || scripts->marked[op->index])
            add_computing(scripts, script, op);
    }
    return script;
}

const Script *script_of(Scripts *scripts, int run, Phase phase, int visit) {
    const Script **slot =
        &scripts->parts[run][(int)phase * scripts->graphs[run].visit_count + visit];
    if (!*slot) *slot = make_part(scripts, run, phase, visit);
    return *slot;
}

/* Adds a conversion: once if all devices run it, else for each pipeline of the stage's template
 * that is simulated (Symmetry.stands). */
static void add_everywhere(Scripts *scripts, Script *script, const Op *op) {
    const Module *module = scripts->fold->module;
    if (op->stage == STAGE_ALL) add_conversion(scripts, script, op, -1);
    for (int r = 0; op->stage != STAGE_ALL && r < module->templates->runs.count; r++)
        if (scripts->fold->stands[r] == r &&
            module->templates->runs.at[r].template_index ==
                module->templates->stages.at[op->stage].template_index)
            add_conversion(scripts, script, op, r);
}

const Script *whole_script_of(Scripts *scripts, Phase phase) {
    const Module *module = scripts->fold->module;
    if (scripts->whole[phase]) return scripts->whole[phase];
    Script *script = arena_new(scripts->arena, Script);
    find_actors(scripts, script, -1, 0);
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        if (op_phase(module, op) != phase || op_is_async(module, op)) continue;
        if (op->convert.plan) add_everywhere(scripts, script, op);
        else if (op->def->rule->kind != RULE_VIEW || scripts->marked[op->index])
            add_computing(scripts, script, op);
    }
    return scripts->whole[phase] = script;
}

static const EdgeScript *make_edge(Scripts *scripts, int run, int edge, bool backward) {
    const Module *module = scripts->fold->module;
    Array(const Op *) ops = {0};
    Array(const ActorTransfers *) transfers = {0};
    for (int i = 0; i < module->ops.count; i++) {
        const Op *op = module->ops.at[i];
        bool back = false;
        if (op->convert.tensor || op->stage == STAGE_ALL ||
            module->templates->stages.at[op->stage].template_index !=
                module->templates->runs.at[run].template_index ||
            op_edge(module, &scripts->graphs[run], op, &back) != edge || back != backward)
            continue;
        array_push(scripts->arena, &ops, op);
        array_push(scripts->arena, &transfers,
                   symmetry_transfers(scripts->fold, op->convert.plan, run));
    }
    EdgeScript *script = arena_new(scripts->arena, EdgeScript);
    *script = (EdgeScript){ops.count, (const Op *const *)ops.at,
                           (const ActorTransfers *const *)transfers.at};
    return script;
}

const EdgeScript *edge_script_of(Scripts *scripts, int run, int edge, bool backward) {
    const EdgeScript **slot = &scripts->edges[run][edge * 2 + backward];
    if (!*slot) *slot = make_edge(scripts, run, edge, backward);
    return *slot;
}
