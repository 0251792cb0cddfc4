/* The report as a page: page.html with the JSON where it says so. */
#include "planner/report/report.h"

#include <string.h>

static const char page[] = {
#include "planner/report/page.inc"
    0};

/* Where the JSON stands in page.html. */
static const char mark[] = "PLAN_JSON";

/* JSON as the text of a script: "<" would begin a tag there. */
static void print_inside(Text *out, const char *json) {
    for (const char *next; (next = strchr(json, '<')); json = next + 1) {
        text_append(out, json, (size_t)(next - json));
        text_string(out, "\\u003c");
    }
    text_string(out, json);
}

void report_simulations_page(Text *out, Simulation *simulations, int count) {
    Text json = {.arena = out->arena};
    const char *at = strstr(page, mark);
    report_simulations(&json, simulations, count);
    text_append(out, page, (size_t)(at - page));
    print_inside(out, text_bytes(&json));
    text_string(out, at + sizeof mark - 1);
}
