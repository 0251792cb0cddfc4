/* Prints a plan as a table or JSON. */
#include "case.h"

#include "cost/cost.h"

#include <jansson.h>
#include <stdlib.h>

/* Marks the tensors that have elements in the segments; returns the number of new marks. */
static int mark_tensors(const Plan *plan, const Segments *segments, bool *marked) {
    int count = 0;
    for (int i = 0; i < segments->count; i++) {
        const Segment *segment = &segments->at[i];
        const Bucket *bucket = task_bucket(plan, segment->task);
        int64_t volume = bucket->overlap->bundles.at[plan->tasks.at[segment->task].bundle].volume;
        for (int64_t k = segment->lo / volume; k * volume < segment->hi; k++) {
            count += !marked[bucket->tensors[k]];
            marked[bucket->tensors[k]] = true;
        }
    }
    return count;
}

/* ---- table ---- */

static void print_group(FILE *out, const Devices *group) {
    for (int i = 0; i < group->count; i++) fprintf(out, i ? ",%d" : "[%d", group->at[i]);
    fputs("]", out);
}

static void print_message(FILE *out, const Set *set, const Message *message) {
    fprintf(out, "        %d -> %d  %lld bytes", message->sender, message->receiver,
            (long long)message->bytes);
    if (set->count > 1) {
        Arena *scratch = arena_create();
        int count =
            mark_tensors(set->plan, &message->segments, arena_array(scratch, bool, set->count));
        fprintf(out, count > 1 ? " of %d tensors" : " of %d tensor", count);
        arena_destroy(scratch);
    }
    fputc('\n', out);
}

static void print_step(FILE *out, const Set *set, int number) {
    const Step *step = &set->plan->steps.at[number];
    fprintf(out, "%4d  %-15s", number + 1, verb_word(step->verb));
    if (step->group.count) {
        print_group(out, &step->group);
        for (int i = 0; i < step_part_count(step); i++)
            fprintf(out, i ? ",%lld" : "  parts %lld",
                    (long long)segments_bytes(set->plan, &step->parts[i]));
    } else
        fprintf(out, "%d messages%s", step->messages.count,
                step->combine ? ", reduced at the receivers" : "");
    fputc('\n', out);
    for (int i = 0; i < step->messages.count; i++) print_message(out, set, &step->messages.at[i]);
}

void report_table(FILE *out, const Set *set) {
    const Plan *plan = set->plan;
    for (int i = 0; i < set->count; i++) fprintf(out, "%s\n", set->cases[i]->text);
    fprintf(out, "%s: %lld bytes received in all, %.3g s\n", plan_name(plan),
            (long long)plan_bytes(plan), conversion_seconds(plan->cluster, plan));
    fprintf(out, "step  what           who\n");
    for (int s = 0; s < plan->steps.count; s++) print_step(out, set, s);
    fprintf(out, "device       received           sent        scratch\n");
    for (int i = 0; i < plan->device_count; i++)
        fprintf(out, "%6d %14lld %14lld %14lld\n", plan->devices[i], (long long)plan->received[i],
                (long long)plan->sent[i], (long long)plan_scratch_bytes(plan, plan->devices[i]));
}

/* ---- JSON ---- */

static json_t *json_devices(const Devices *devices) {
    json_t *list = json_array();
    for (int i = 0; i < devices->count; i++)
        json_array_append_new(list, json_integer(devices->at[i]));
    return list;
}

/* Returns the numbers of the tensors that have elements in the segments. */
static json_t *json_tensors(const Set *set, const Segments *segments) {
    Arena *scratch = arena_create();
    bool *marked = arena_array(scratch, bool, set->count);
    json_t *list = json_array();
    mark_tensors(set->plan, segments, marked);
    for (int t = 0; t < set->count; t++)
        if (marked[t]) json_array_append_new(list, json_integer(t));
    arena_destroy(scratch);
    return list;
}

static json_t *json_message(const Set *set, const Message *message) {
    json_t *object = json_pack("{s:i,s:i,s:I}", "from", message->sender, "to", message->receiver,
                               "bytes", (json_int_t)message->bytes);
    if (set->count > 1)
        json_object_set_new(object, "tensors", json_tensors(set, &message->segments));
    return object;
}

static json_t *json_step(const Set *set, const Step *step) {
    json_t *object = json_object(), *parts = json_array(), *messages = json_array();
    json_object_set_new(object, "what", json_string(verb_word(step->verb)));
    json_object_set_new(object, "group", json_devices(&step->group));
    json_object_set_new(object, "reduces", json_boolean(step->combine));
    for (int i = 0; i < step_part_count(step); i++)
        json_array_append_new(parts, json_integer(segments_bytes(set->plan, &step->parts[i])));
    for (int i = 0; i < step->messages.count; i++)
        json_array_append_new(messages, json_message(set, &step->messages.at[i]));
    json_object_set_new(object, "parts", parts);
    json_object_set_new(object, "messages", messages);
    return object;
}

/* Returns an object with `case`, the text of the only case, or with `cases`, a list of texts. */
static json_t *json_cases(const Set *set) {
    if (set->count == 1) return json_pack("{s:s}", "case", set->cases[0]->text);
    json_t *list = json_array();
    for (int i = 0; i < set->count; i++)
        json_array_append_new(list, json_string(set->cases[i]->text));
    return json_pack("{s:o}", "cases", list);
}

void report_json(FILE *out, const Set *set) {
    const Plan *plan = set->plan;
    json_t *steps = json_array(), *devices = json_array(), *top = json_cases(set);
    for (int s = 0; s < plan->steps.count; s++)
        json_array_append_new(steps, json_step(set, &plan->steps.at[s]));
    for (int i = 0; i < plan->device_count; i++)
        json_array_append_new(
            devices, json_pack("{s:i,s:I,s:I,s:I}", "device", plan->devices[i], "received",
                               (json_int_t)plan->received[i], "sent", (json_int_t)plan->sent[i],
                               "scratch", (json_int_t)plan_scratch_bytes(plan, plan->devices[i])));
    json_object_update_new(top, json_pack("{s:s,s:I,s:f,s:o,s:o}", "name", plan_name(plan), "bytes",
                                          (json_int_t)plan_bytes(plan), "seconds",
                                          conversion_seconds(plan->cluster, plan), "steps", steps,
                                          "devices", devices));
    json_dumpf(top, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(top);
}
