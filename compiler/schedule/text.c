/* Prints and parses schedules. F0:3/1 is the forward phase of visit 0, micro-batch 3, in slot 1. */
#include "schedule/schedule.h"

#include "syntax/lex.h"
#include "syntax/tokens.h"

#include <string.h>

static const char letters[] = "FBW";
enum { ROWS_A_LINE = 16 };

void schedule_print(Text *out, const Schedule *schedule, const char *indent) {
    for (int s = 0; s < schedule->stage_count; s++) {
        text_print(out, "%sstage %d slots %d:", indent, s, schedule->slot_count[s]);
        for (int i = 0; i < schedule->row_count[s]; i++) {
            const ScheduleRow *row = &schedule->rows[s][i];
            if (i && i % ROWS_A_LINE == 0) text_print(out, "\n%s   ", indent);
            text_print(out, " %c%d:%d", letters[row->phase], row->visit, row->microbatch);
            if (row->phase == SCHEDULE_FORWARD) text_print(out, "/%d", row->slot);
        }
        text_string(out, "\n");
    }
}

typedef Array(ScheduleRow) RowList;
typedef Array(Position) PlaceList;

/* Returns the value of a text of decimal digits; -1: the text is not such a number or too large. */
static int number_in(const char *text) {
    int64_t number = 0;
    for (; *text >= '0' && *text <= '9' && number < INT32_MAX; text++)
        number = number * 10 + (*text - '0');
    return *text || number > INT32_MAX ? -1 : (int)number;
}

static bool parse_number(Tokens *tokens, const char *what, int *number) {
    *number = tokens->token->kind == TOKEN_NUMBER ? number_in(tokens->token->text) : -1;
    if (*number < 0) return tokens_unexpected(tokens, what);
    tokens_next(tokens);
    return true;
}

/* Returns whether a token is a phase and a visit, such as F0. */
static bool is_row(const Token *token) {
    return token->kind == TOKEN_NAME && strchr(letters, *token->text) && token->text[1] &&
           number_in(token->text + 1) >= 0;
}

static bool is_stage(const Token *token) { return token_is(token, "stage"); }

/* Advances across line ends to the next token if `is` accepts that token, and returns true. Else
 * returns false, and the current token stays. */
static bool come_to(Tokens *tokens, bool (*is)(const Token *)) {
    const Token *next = tokens->token;
    while (next->kind == TOKEN_LINE) next++;
    if (!is(next)) return false;
    tokens->token = next;
    return true;
}

/* Gives rows the slot of the forward row of their visit and micro-batch; false: one is missing. */
static bool find_slots(Tokens *tokens, RowList *rows, const PlaceList *places) {
    for (int i = 0; i < rows->count; i++) {
        ScheduleRow *row = &rows->at[i];
        int from = 0;
        while (from < rows->count &&
               (rows->at[from].phase != SCHEDULE_FORWARD || rows->at[from].visit != row->visit ||
                rows->at[from].microbatch != row->microbatch))
            from++;
        if (from == rows->count) {
            diag_error(tokens->diag, places->at[i], "the stage has no F%d:%d, so this has no slot",
                       row->visit, row->microbatch);
            return false;
        }
        row->slot = rows->at[from].slot;
    }
    return true;
}

/* Appends a row (F0:3/1, B0:3, W0:3) and its position in the text. Returns false after an error. */
static bool parse_row(Tokens *tokens, RowList *rows, PlaceList *places) {
    Position at = tokens->token->at;
    ScheduleRow row = {.phase = (SchedulePhase)(strchr(letters, *tokens->token->text) - letters),
                       .visit = number_in(tokens->token->text + 1)};
    tokens_next(tokens);
    if (!tokens_expect(tokens, ":", "and a micro-batch behind the visit") ||
        !parse_number(tokens, "a micro-batch", &row.microbatch))
        return false;
    if (row.phase == SCHEDULE_FORWARD &&
        (!tokens_expect(tokens, "/", "and a slot behind the micro-batch") ||
         !parse_number(tokens, "a slot", &row.slot)))
        return false;
    array_push(tokens->arena, rows, row);
    array_push(tokens->arena, places, at);
    return true;
}

/* Reads a stage's number, which must be `expected`, its slots and its rows, after the word `stage`:
 * "0 slots 2: F0:0/0 ...". Returns false after an error. */
static bool parse_stage(Tokens *tokens, int expected, int *slot_count, RowList *rows,
                        PlaceList *places) {
    int stage;
    Position at = tokens->token->at;
    if (!parse_number(tokens, "the number of a stage", &stage) ||
        !tokens_expect(tokens, "slots", NULL) ||
        !parse_number(tokens, "a number of slots", slot_count) || !tokens_expect(tokens, ":", NULL))
        return false;
    if (stage != expected) {
        diag_error(tokens->diag, at, "stages stand in order: this is stage %d, not %d", expected,
                   stage);
        return false;
    }
    while (come_to(tokens, is_row))
        if (!parse_row(tokens, rows, places)) return false;
    return find_slots(tokens, rows, places);
}

const Schedule *schedule_parse(Tokens *tokens) {
    Array(int) row_counts = {0}, slot_counts = {0};
    Array(ScheduleRow *) stages = {0};
    Array(Position *) places = {0};
    while (come_to(tokens, is_stage)) {
        tokens_next(tokens);
        RowList rows = {0};
        PlaceList at = {0};
        int slot_count;
        if (!parse_stage(tokens, stages.count, &slot_count, &rows, &at)) return NULL;
        array_push(tokens->arena, &row_counts, rows.count);
        array_push(tokens->arena, &slot_counts, slot_count);
        array_push(tokens->arena, &stages, rows.at);
        array_push(tokens->arena, &places, at.at);
    }
    Schedule *schedule = arena_new(tokens->arena, Schedule);
    *schedule = (Schedule){stages.count, row_counts.at, stages.at, slot_counts.at, places.at};
    return schedule;
}
