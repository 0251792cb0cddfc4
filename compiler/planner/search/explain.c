/* Prints the plan, the runners-up, and what bounds each: computing, communication or idling. */
#include "planner/search/evaluated.h"
#include "planner/search/devices.h"
#include "planner/search/search_model.h"

#include <math.h>
#include <string.h>

/* Returns bytes as a text with a unit: "1.25 GiB". */
static const char *bytes_text(Arena *arena, int64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double number = (double)bytes;
    int unit = 0;
    for (; number >= 1024 && unit < 4; unit++) number /= 1024;
    return arena_format(arena, unit ? "%.2f %s" : "%.0f %s", number, units[unit]);
}

static const char *class_name(const EvaluationContext *context, int device) {
    const DeviceClass *class = context->devices->cluster->devices[device].class;
    return class && class->name ? class->name : "?";
}

/* Returns a text: what takes most of the busiest device's step, and the percentages of the step. */
static const char *bound_text(Arena *arena, const EvaluationContext *context,
                              const Verdict *verdict) {
    const char *where = arena_format(arena, "device %d (%s)", verdict->busiest,
                                     class_name(context, verdict->busiest));
    const char *what = verdict->computing >= verdict->exposed && verdict->computing >= verdict->idle
                           ? "computing on"
                       : verdict->exposed >= verdict->idle ? "communication of"
                                                           : "waiting of";
    return arena_format(arena, "%s %s: computes %.0f%%, communicates alone %.0f%%, waits %.0f%%",
                        what, where, 100 * verdict->computing, 100 * verdict->exposed,
                        100 * verdict->idle);
}

static const char *memory_text(Arena *arena, const EvaluationContext *context,
                               const Verdict *verdict) {
    int64_t most = devices_memory(context->devices, verdict->worst);
    const char *peak = arena_format(arena, "%s (%lld bytes)", bytes_text(arena, verdict->peak),
                                    (long long)verdict->peak);
    if (!most) return arena_format(arena, "%s on device %d", peak, verdict->worst);
    return arena_format(arena, "%s of %s on device %d", peak, bytes_text(arena, most),
                        verdict->worst);
}

/* Prints a line of `begin` and the memory of a session with all programs, if there are several. */
static void print_together(Text *out, const char *begin, const EvaluationContext *context,
                           const Verdict *verdict) {
    int64_t most = devices_memory(context->devices, verdict->fullest);
    if (verdict->programs < 2) return;
    text_print(out, "%sa session with all %d programs keeps %s (%lld bytes)", begin,
               verdict->programs, bytes_text(out->arena, verdict->together),
               (long long)verdict->together);
    if (most) text_print(out, " of %s", bytes_text(out->arena, most));
    text_print(out, " on device %d%s\n", verdict->fullest,
               most && verdict->together > most ? ", which is too much" : "");
}

/* Returns the description of a candidate without its ZeRO level. */
static const char *without_zero(Arena *arena, const TriedStrategy *tried, const Fleet *devices) {
    Text text = {.arena = arena};
    Candidate candidate = tried->candidate;
    candidate.zero = 0;
    candidate_describe(&text, &candidate, devices);
    return text_bytes(&text);
}

bool explain_folds(Arena *arena, const TriedStrategy *head, const TriedStrategy *other,
                   const Fleet *devices) {
    return head->candidate.zero != other->candidate.zero &&
           !strcmp(without_zero(arena, head, devices), without_zero(arena, other, devices));
}

/* Prints on one line the strategies after strategy `head` that differ from `head` only in ZeRO. */
static void print_levels(Text *out, const EvaluationContext *context, const TriedList *best,
                         int head) {
    bool any = false;
    for (int i = head + 1; i < best->count; i++) {
        const TriedStrategy *own = best->at[i];
        if (!explain_folds(out->arena, best->at[head], own, context->devices)) continue;
        text_print(out, "%szero %d: %.6g s, %s", any ? "; " : "   with ", own->candidate.zero,
                   own->verdict.seconds, bytes_text(out->arena, own->verdict.peak));
        any = true;
    }
    text_string(out, any ? "\n" : "");
}

/* Returns whether a strategy is printed on the line of an earlier one. */
static bool is_folded(Arena *arena, const EvaluationContext *context, const TriedList *best,
                      int at) {
    for (int i = 0; i < at; i++)
        if (explain_folds(arena, best->at[i], best->at[at], context->devices)) return true;
    return false;
}

void explain_print(Text *out, const EvaluationContext *context, const TriedList *best, int tried) {
    text_print(
        out, "%s of %s on %d devices: the best of %d strategies that were compiled and simulated\n",
        context->model->module->name, context->model->module->source->file, context->devices->count,
        tried);
    for (int i = 0, number = 0; i < best->count; i++) {
        const TriedStrategy *own = best->at[i];
        if (is_folded(out->arena, context, best, i)) continue;
        text_print(out, "%d. %.6g s, %s: ", ++number, own->verdict.seconds,
                   memory_text(out->arena, context, &own->verdict));
        candidate_describe(out, &own->candidate, context->devices);
        text_print(out, "\n   bound by %s\n", bound_text(out->arena, context, &own->verdict));
        print_levels(out, context, best, i);
        print_together(out, "   ", context, &own->verdict);
    }
}

void explain_comment(Text *out, const EvaluationContext *context, const TriedStrategy *plan,
                     const char *source) {
    text_print(out, "// planned for %s by hetucc --plan: a step of %.6g s, %s\n", source,
               plan->verdict.seconds, memory_text(out->arena, context, &plan->verdict));
    text_print(out, "// bound by %s\n", bound_text(out->arena, context, &plan->verdict));
    print_together(out, "// ", context, &plan->verdict);
}

void explain_report(Diag *diag, const EvaluationContext *context, const TriedStrategy *least,
                    int tried) {
    Text text = {.arena = context->arena};
    const Verdict *verdict = &least->verdict;
    int64_t most = devices_memory(context->devices, verdict->worst);
    candidate_describe(&text, &least->candidate, context->devices);
    diag_error(diag, (Position){0},
               "no strategy fits: device %d (%s) has %s (%lld bytes) and lacks %s, with %s (%lld "
               "bytes) a device one would",
               verdict->worst, class_name(context, verdict->worst),
               bytes_text(context->arena, most), (long long)most,
               bytes_text(context->arena, verdict->lack), bytes_text(context->arena, verdict->most),
               (long long)verdict->most);
    diag_note(diag, (Position){0},
              "of %d that were compiled, the one that needs least: %s; %s of it are parameters, "
              "gradients and states",
              tried, text_bytes(&text), bytes_text(context->arena, verdict->states));
}
