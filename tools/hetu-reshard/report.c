#include "case.h"

#include <jansson.h>

static const char *verb_name(const Step *step)
{
    static const char *const names[] = {[HT_ALL_REDUCE] = "all-reduce", [HT_REDUCE_SCATTER] = "reduce-scatter", [HT_ALL_GATHER] = "all-gather",
                                        [HT_ALL_TO_ALL] = "all-to-all", [HT_BROADCAST] = "broadcast",           [HT_REDUCE] = "reduce",
                                        [HT_EXCHANGE] = "send-receive"};
    return names[step->verb];
}

static void print_group(FILE *out, const Devices *group)
{
    for (int i = 0; i < group->count; i++)
        fprintf(out, i ? ",%d" : "[%d", group->at[i]);
    fputs("]", out);
}

static void print_step(FILE *out, const Case *conversion, int number)
{
    const Step *step = &conversion->plan->steps.at[number];
    fprintf(out, "%4d  %-15s", number + 1, verb_name(step));
    if (step->group.count) {
        print_group(out, &step->group);
        for (int i = 0; i < step_part_count(step); i++)
            fprintf(out, i ? ",%lld" : "  parts %lld", (long long)segments_bytes(conversion->plan, &step->parts[i]));
    } else
        fprintf(out, "%d messages%s", step->messages.count, step->combine ? ", reduced at the receivers" : "");
    fputc('\n', out);
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        fprintf(out, "        %d -> %d  %lld bytes\n", message->sender, message->receiver, (long long)message->bytes);
    }
}

void report_table(FILE *out, const Case *conversion)
{
    const Plan *plan = conversion->plan;
    fprintf(out, "%s\n%s: %lld bytes received in all, %.3g s\n", conversion->text, plan_name(plan), (long long)plan_bytes(plan), plan_seconds(plan));
    fprintf(out, "step  what           who\n");
    for (int s = 0; s < plan->steps.count; s++)
        print_step(out, conversion, s);
    fprintf(out, "device       received           sent        scratch\n");
    for (int i = 0; i < plan->device_count; i++)
        fprintf(out, "%6d %14lld %14lld %14lld\n", plan->devices[i], (long long)plan->received[i], (long long)plan->sent[i],
                (long long)plan_scratch_bytes(plan, plan->devices[i]));
}

static json_t *json_devices(const Devices *devices)
{
    json_t *list = json_array();
    for (int i = 0; i < devices->count; i++)
        json_array_append_new(list, json_integer(devices->at[i]));
    return list;
}

static json_t *json_step(const Case *conversion, const Step *step)
{
    json_t *object = json_object(), *parts = json_array(), *messages = json_array();
    json_object_set_new(object, "what", json_string(verb_name(step)));
    json_object_set_new(object, "group", json_devices(&step->group));
    json_object_set_new(object, "reduces", json_boolean(step->combine));
    for (int i = 0; i < step_part_count(step); i++)
        json_array_append_new(parts, json_integer(segments_bytes(conversion->plan, &step->parts[i])));
    for (int i = 0; i < step->messages.count; i++)
        json_array_append_new(messages, json_pack("{s:i,s:i,s:I}", "from", step->messages.at[i].sender, "to", step->messages.at[i].receiver, "bytes",
                                                  (json_int_t)step->messages.at[i].bytes));
    json_object_set_new(object, "parts", parts);
    json_object_set_new(object, "messages", messages);
    return object;
}

void report_json(FILE *out, const Case *conversion)
{
    const Plan *plan = conversion->plan;
    json_t *steps = json_array(), *devices = json_array();
    for (int s = 0; s < plan->steps.count; s++)
        json_array_append_new(steps, json_step(conversion, &plan->steps.at[s]));
    for (int i = 0; i < plan->device_count; i++)
        json_array_append_new(devices, json_pack("{s:i,s:I,s:I,s:I}", "device", plan->devices[i], "received", (json_int_t)plan->received[i], "sent",
                                                 (json_int_t)plan->sent[i], "scratch", (json_int_t)plan_scratch_bytes(plan, plan->devices[i])));
    json_t *top = json_pack("{s:s,s:s,s:I,s:f,s:o,s:o}", "case", conversion->text, "name", plan_name(plan), "bytes", (json_int_t)plan_bytes(plan), "seconds",
                            plan_seconds(plan), "steps", steps, "devices", devices);
    json_dumpf(top, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(top);
}
