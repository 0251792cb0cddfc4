/* Pipeline templates in IR text (ir/pipeline_template.h):
 *
 *     batch unit 1
 *     template rows 2 first 0 stages 2 visits 0 1
 *     stage 0 of template 0
 *     run pipeline 0 template 0 microbatches 5 row 0
 *     schedule template 0 microbatches 5
 *         stage 0 slots 2: F0:0/0 F0:1/1 B0:0 ...
 *
 * A template with padding lengths has the word `short_rows` before its visits. A line `mesh` after
 * a line `stage` gives the mesh of that stage. */
#include "ir/text/parse.h"
#include "schedule/schedule.h"

#include "syntax/lex.h"

enum { MOST_MICROBATCHES = 1 << 24 };

static bool parse_count(IrParser *parser, const char *word, int64_t most, int64_t *number) {
    if (!tokens_expect(&parser->tokens, word, "here") || !parse_int(parser, number)) return false;
    return (*number >= 0 && *number <= most) ||
           parse_fail(parser, "a number that can be, before this");
}

bool parse_batch(IrParser *parser) {
    int64_t unit;
    if (!parse_count(parser, "unit", INT64_MAX, &unit) || !unit)
        return parse_fail(parser, "a number of rows, before this");
    parser->module->templates->row_unit = unit;
    return true;
}

/* Reads the stage of each visit, up to the end of the line. */
static bool parse_visits(IrParser *parser, Body *body) {
    Array(int) stages = {0};
    while (parser->tokens.token->kind == TOKEN_NUMBER) {
        int64_t stage;
        if (!parse_int(parser, &stage)) return false;
        if (stage < 0 || stage >= body->stage_count)
            return parse_fail(parser, "a stage of the template, before this");
        array_push(parser->arena, &stages, (int)stage);
    }
    body->visit_count = stages.count;
    body->visit_stage = stages.at;
    return true;
}

bool parse_body(IrParser *parser) {
    Body body = {0};
    int64_t first, stages;
    if (!parse_count(parser, "rows", INT64_MAX, &body.rows) ||
        !parse_count(parser, "first", MOST_MICROBATCHES, &first) ||
        !parse_count(parser, "stages", MOST_MICROBATCHES, &stages))
        return false;
    body.first_stage = (int)first;
    body.stage_count = (int)stages;
    body.short_rows = tokens_take(&parser->tokens, "short_rows");
    if (tokens_take(&parser->tokens, "visits") && !parse_visits(parser, &body)) return false;
    array_push(parser->arena, &parser->module->templates->at, body);
    return true;
}

bool parse_stage(IrParser *parser) {
    int64_t number, body;
    if (!parse_int(parser, &number) || !tokens_expect(&parser->tokens, "of", "after the number") ||
        !parse_count(parser, "template", parser->module->templates->at.count - 1, &body))
        return false;
    array_push(parser->arena, &parser->module->templates->stages,
               (TemplateStage){.template_index = (int)body,
                               .number = (int)number,
                               .mesh = parser->module->devices->mesh});
    parser->in_stage = true;
    return true;
}

bool parse_run(IrParser *parser) {
    int64_t pipeline, body;
    PipelineRun run = {0};
    const Strategy *strategy = parser->module->strategy;
    if (!strategy) return parse_fail(parser, "a strategy before this");
    if (!parse_count(parser, "pipeline", strategy->pipelines.count - 1, &pipeline) ||
        !parse_count(parser, "template", parser->module->templates->at.count - 1, &body) ||
        !parse_count(parser, "microbatches", MOST_MICROBATCHES, &run.microbatches) ||
        !parse_count(parser, "row", INT64_MAX, &run.first_row))
        return false;
    run.pipeline = (int)pipeline;
    run.template_index = (int)body;
    array_push(parser->arena, &parser->module->templates->runs, run);
    return true;
}

bool parse_schedule(IrParser *parser) {
    PipelineTemplates *bodies = parser->module->templates;
    int64_t body, microbatches;
    bool used = false;
    if (!parse_count(parser, "template", bodies->at.count - 1, &body) ||
        !parse_count(parser, "microbatches", MOST_MICROBATCHES, &microbatches))
        return false;
    const Schedule *schedule = schedule_parse(&parser->tokens);
    for (int r = 0; schedule && r < bodies->runs.count; r++)
        if (bodies->runs.at[r].template_index == body &&
            bodies->runs.at[r].microbatches == microbatches) {
            bodies->runs.at[r].schedule = schedule;
            used = true;
        }
    return !schedule || used || parse_fail(parser, "a schedule of a line `run`, before this");
}
