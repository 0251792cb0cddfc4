/* Writes a phase as C. Repeated layers become a loop (loop rerolling); long functions are split. */
#include "emit/program/calls.h"

#include "emit/words.h"
#include "hetu/rt.h"

#include <string.h>

enum {
    FUNCTION_CALLS = 120, // calls after which a function ends
    SCOPE_CALLS = 40,     // calls after which a change of scope ends a function
    CANDIDATES = 48,      // periods that are tried for a repeat
    LEAST_SAVED = 6       // calls that a loop must save
};

Calls calls_create(Arena *arena, UsedKernels *used) {
    return (Calls){.arena = arena, .local = arena_new(arena, LocalOp), .used = used};
}

Call *call_new(Calls *calls, const char *opening, const Op *op) {
    Call *call = arena_new(calls->arena, Call);
    *call = (Call){.opening = opening, .op = op};
    array_push(calls->arena, calls, call);
    return call;
}

void call_add(Calls *calls, Call *call, Argument argument) {
    array_push(calls->arena, &call->arguments, argument);
}

void calls_use(Calls *calls, const Kernel *kernel) {
    UsedKernels *used = calls->used;
    if (!used->known) used->known = intern_create(calls->arena);
    const Kernel **slot = intern_slot(used->known, &kernel, sizeof kernel);
    if (*slot) return;
    *slot = kernel;
    array_push(calls->arena, &used->list, kernel);
}

void calls_externs(Text *out, const RoleWriter *writer, const UsedKernels *used) {
    text_print(out, "extern const ht_reshard *const %s_plan[];\n", writer->name);
    for (int i = 0; i < used->list.count; i++)
        text_print(out, "%s;\n", used->list.at[i]->prototype);
}

/* ---- keys ---- */

static void key_text(Text *key, const Call *call) {
    text_string(key, call->opening);
    for (int a = 0; a < call->arguments.count; a++) {
        const Argument *argument = &call->arguments.at[a];
        text_print(key, ",%d", (int)argument->kind);
        if (argument->text) text_string(key, argument->text);
    }
    text_print(key, "@%s:%d", call->op->at.file ? call->op->at.file : "", call->op->at.line);
}

static void calls_number(Calls *calls) {
    Text key = {.arena = calls->arena};
    Intern *known = intern_create(calls->arena);
    int count = 0;
    for (int i = 0; i < calls->count; i++) {
        key.length = 0;
        key_text(&key, calls->at[i]);
        intptr_t *slot = intern_slot(known, key.bytes, key.length);
        if (!*slot) *slot = ++count;
        calls->at[i]->key = (int)*slot - 1;
    }
}

/* ---- repeats ---- */

/* A stretch of calls: `length` calls that occur `times` times in a row; 1: no repeat. */
typedef struct Stretch {
    int first, length, times;
} Stretch;
typedef Array(Stretch) Stretches;

/* Returns how many calls from `first` on equal the call `period` calls later. */
static int match_length(const int *keys, int count, int first, int period) {
    int length = 0;
    while (first + period + length < count && keys[first + length] == keys[first + period + length])
        length++;
    return length;
}

/* Returns the repeat at `first` that covers the most calls; times 1: no repeat saves enough calls.
 * next[i] is the next call with the key of call i; -1: none. */
static Stretch best_repeat(const int *keys, const int *next, int count, int first) {
    Stretch best = {first, 1, 1};
    int covered = 0, tried = 0;
    for (int at = next[first]; at >= 0 && tried < CANDIDATES; at = next[at], tried++) {
        int period = at - first, times = match_length(keys, count, first, period) / period + 1;
        if (times > 1 && period * (times - 1) >= LEAST_SAVED && period * times > covered) {
            best = (Stretch){first, period, times};
            covered = period * times;
        }
    }
    return best;
}

static int *next_of_key(Arena *arena, const int *keys, int count) {
    int most = 0;
    for (int i = 0; i < count; i++) most = keys[i] > most ? keys[i] : most;
    int *last = arena_array(arena, int, most + 1), *next = arena_array(arena, int, count);
    for (int k = 0; k <= most; k++) last[k] = -1;
    for (int i = count - 1; i >= 0; i--) {
        next[i] = last[keys[i]];
        last[keys[i]] = i;
    }
    return next;
}

/* Cuts a sequence of keys into stretches that cover it. */
static void stretches_find(Arena *arena, const int *keys, int count, Stretches *stretches) {
    Arena *scratch = arena_create();
    const int *next = next_of_key(scratch, keys, count);
    for (int i = 0; i < count;) {
        Stretch stretch = best_repeat(keys, next, count, i);
        Stretch *before = stretches->count ? &stretches->at[stretches->count - 1] : NULL;
        if (stretch.times == 1 && before && before->times == 1) before->length++;
        else array_push(arena, stretches, stretch);
        i += stretch.length * stretch.times;
    }
    arena_destroy(scratch);
}

/* ---- text ---- */

/* Appends one argument. `column`: the column with its number in row `b` of the repeat's table;
 * negative: the number is constant. */
static void text_argument(Text *out, const Argument *argument, int column) {
    static const char *const buffers[] = {[HT_BUFFER_ARENA] = "ht_arena(r, %s)",
                                          [HT_BUFFER_SLOT] = "ht_slot(r, %s)",
                                          [HT_BUFFER_KEPT] = "ht_kept(r, %s)"};
    bool fixed = column < 0;
    int64_t place =
        argument->kind == ARGUMENT_BUFFER ? ht_buffer_place(argument->number) : argument->number;
    const char *number =
        fixed ? c_number(out->arena, place) : arena_format(out->arena, "b[%d]", column);
    switch (argument->kind) {
    case ARGUMENT_BUFFER:
        text_print(out, fixed ? buffers[ht_buffer_kind_of(argument->number)] : "ht_at(r, %s)",
                   number);
        break;
    case ARGUMENT_NUMBERS: text_print(out, "r->piece + %s", number); break;
    case ARGUMENT_NUMBER: text_print(out, fixed ? "%s" : "(size_t)%s", number); break;
    case ARGUMENT_TURN: text_print(out, "ht_turn(r, %s, %s)", number, argument->text); break;
    case ARGUMENT_TEXT: text_string(out, argument->text); break;
    }
}

/* A repeat. Arguments of its calls that differ between iterations become columns of a table. */
typedef struct Repeat {
    Calls *calls;
    Stretch stretch;
    int *column; // by argument, in the order of the calls; -1: the same in every iteration
    int column_count;
} Repeat;

static bool turns_differ(const Calls *calls, Stretch stretch, int call, int argument) {
    int64_t number = calls->at[stretch.first + call]->arguments.at[argument].number;
    for (int turn = 1; turn < stretch.times; turn++)
        if (calls->at[stretch.first + turn * stretch.length + call]
                ->arguments.at[argument]
                .number != number)
            return true;
    return false;
}

/* An argument in an iteration of a stretch: the index of its call, and its index in the call. */
typedef struct ColumnHome {
    int call, argument;
} ColumnHome;

/* Returns whether two arguments are equal in every iteration of a stretch. */
static bool columns_equal(const Calls *calls, Stretch stretch, ColumnHome a, ColumnHome b) {
    for (int turn = 0; turn < stretch.times; turn++) {
        int first = stretch.first + turn * stretch.length;
        if (calls->at[first + a.call]->arguments.at[a.argument].number !=
            calls->at[first + b.call]->arguments.at[b.argument].number)
            return false;
    }
    return true;
}

/* Finds the columns. Arguments that are equal in every iteration share a column. */
static Repeat repeat_columns(Arena *arena, Calls *calls, Stretch stretch, ColumnHome **homes) {
    int arguments = 0;
    for (int c = 0; c < stretch.length; c++)
        arguments += calls->at[stretch.first + c]->arguments.count;
    Repeat repeat = {
        .calls = calls, .stretch = stretch, .column = arena_array(arena, int, arguments + 1)};
    *homes = arena_array(arena, ColumnHome, arguments + 1);
    int n = 0;
    for (int c = 0; c < stretch.length; c++)
        for (int a = 0; a < calls->at[stretch.first + c]->arguments.count; a++, n++) {
            repeat.column[n] = -1;
            if (!turns_differ(calls, stretch, c, a)) continue;
            int64_t number = calls->at[stretch.first + c]->arguments.at[a].number;
            for (int k = 0; k < repeat.column_count && repeat.column[n] < 0; k++)
                if (calls->at[stretch.first + (*homes)[k].call]
                            ->arguments.at[(*homes)[k].argument]
                            .number == number &&
                    columns_equal(calls, stretch, (ColumnHome){c, a}, (*homes)[k]))
                    repeat.column[n] = k;
            if (repeat.column[n] < 0) {
                (*homes)[repeat.column_count] = (ColumnHome){c, a};
                repeat.column[n] = repeat.column_count++;
            }
        }
    return repeat;
}

/* Appends one call. In a repeat (else NULL), *n counts the arguments of all its calls so far. */
static void text_call(Text *out, const Call *call, const Repeat *repeat, int *n) {
    text_print(out, "    %s", call->opening);
    for (int a = 0; a < call->arguments.count; a++) {
        text_string(out, a ? ", " : "");
        text_argument(out, &call->arguments.at[a], repeat ? repeat->column[(*n)++] : -1);
    }
    const char *place = op_place(out->arena, call->op, repeat ? NULL : call->op->source->scope),
               *mark = call->aside ? "" : " ht_did(r);";
    if (call->places) text_print(out, ", \"%s\");%s", c_string(out->arena, place), mark);
    else text_print(out, ");%s /* %s", mark, place);
    if (call->comment && *call->comment)
        text_print(out, "%s%s */\n", call->places ? " /* " : ": ", call->comment);
    else text_string(out, call->places ? "\n" : " */\n");
}

static const char *scope_of(const Call *call) {
    return call->op->source->scope ? call->op->source->scope : "";
}

/* Returns the scopes of a stretch: "h0 .. h9". */
static const char *stretch_scopes(Arena *arena, const Calls *calls, Stretch stretch) {
    const char *first = scope_of(calls->at[stretch.first]),
               *last = scope_of(calls->at[stretch.first + stretch.length * stretch.times - 1]);
    return strcmp(first, last)
               ? arena_format(arena, "%s .. %s", *first ? first : "-", *last ? last : "-")
               : first;
}

/* Returns whether a function that begins with call `first` should end before call `at`. */
static bool function_ends(const Calls *calls, int first, int at) {
    if (at - first >= FUNCTION_CALLS) return true;
    return at - first >= SCOPE_CALLS &&
           strcmp(scope_of(calls->at[at - 1]), scope_of(calls->at[at]));
}

static void emit_table(Text *out, const Repeat *repeat, const ColumnHome *homes, const char *name) {
    Stretch stretch = repeat->stretch;
    text_print(out, "static const int64_t %s_buffers[%d][%d] = {\n", name, stretch.times,
               repeat->column_count);
    for (int turn = 0; turn < stretch.times; turn++) {
        text_string(out, "    {");
        for (int k = 0; k < repeat->column_count; k++) {
            const Call *call =
                repeat->calls->at[stretch.first + turn * stretch.length + homes[k].call];
            text_print(out, "%s%lld", k ? ", " : "",
                       (long long)call->arguments.at[homes[k].argument].number);
        }
        text_string(out, "},\n");
    }
    text_string(out, "};\n\n");
}

static void open_function(Text *out, const char *name, int part, const char *parameters) {
    if (part) text_print(out, "static void %s_%d(%s)\n{\n", name, part, parameters);
    else text_print(out, "static void %s(%s)\n{\n", name, parameters);
}

/* Appends the functions of one iteration of a repeat: `name`, or name_1, name_2, ... for a long
 * one. Returns how many parts there are; 0: it is one function. */
static int emit_turn(Text *out, const Repeat *repeat, const char *name) {
    Stretch stretch = repeat->stretch;
    const char *parameters =
        repeat->column_count ? "ht_worker *r, const int64_t *b" : "ht_worker *r";
    bool split = stretch.length > FUNCTION_CALLS;
    int part = split, n = 0;
    open_function(out, name, part, parameters);
    for (int c = 0, first = 0; c < stretch.length; c++) {
        if (split && c > first &&
            function_ends(repeat->calls, stretch.first + first, stretch.first + c)) {
            text_string(out, "}\n\n");
            open_function(out, name, ++part, parameters);
            first = c;
        }
        if (c == first && repeat->column_count) text_string(out, split ? "    (void)b;\n" : "");
        text_call(out, repeat->calls->at[stretch.first + c], repeat, &n);
    }
    text_string(out, "}\n\n");
    return part;
}

/* ---- the list ---- */

/* A phase's function while it is written: `body` has its statements, `out` functions they call. */
typedef struct Writer {
    Text *out;
    Calls *calls;
    const char *name;
    Text body;
    int functions;
} Writer;

static void emit_repeat(Writer *writer, Stretch stretch) {
    Arena *arena = writer->out->arena;
    const char *name = arena_format(arena, "%s_%d", writer->name, writer->functions++);
    ColumnHome *homes;
    Repeat repeat = repeat_columns(arena, writer->calls, stretch, &homes);
    const char *scopes = stretch_scopes(arena, writer->calls, stretch);
    text_print(writer->out, "/* %s: %d times the same */\n", *scopes ? scopes : "a repeat",
               stretch.times);
    if (repeat.column_count) emit_table(writer->out, &repeat, homes, name);
    int parts = emit_turn(writer->out, &repeat, name);
    text_print(&writer->body, "    for (int i = 0; i < %d; i++)%s", stretch.times,
               parts ? " {\n" : "\n");
    for (int part = parts ? 1 : 0; part <= parts; part++) {
        text_print(&writer->body, "        %s", name);
        if (part) text_print(&writer->body, "_%d", part);
        if (repeat.column_count) text_print(&writer->body, "(r, %s_buffers[i]);\n", name);
        else text_string(&writer->body, "(r);\n");
    }
    text_string(&writer->body, parts ? "    }\n" : "");
}

static void emit_plain_function(Writer *writer, int first, int last) {
    Arena *arena = writer->out->arena;
    const char *name = arena_format(arena, "%s_%d", writer->name, writer->functions++);
    text_print(writer->out, "static void %s(ht_worker *r)\n{\n", name);
    for (int c = first; c < last; c++) text_call(writer->out, writer->calls->at[c], NULL, NULL);
    text_string(writer->out, "}\n\n");
    text_print(&writer->body, "    %s(r);\n", name);
}

static void emit_plain(Writer *writer, Stretch stretch) {
    int end = stretch.first + stretch.length * stretch.times;
    if (end - stretch.first <= SCOPE_CALLS) {
        for (int c = stretch.first; c < end; c++)
            text_call(&writer->body, writer->calls->at[c], NULL, NULL);
        return;
    }
    for (int first = stretch.first, c = first + 1; c <= end; c++)
        if (c == end || function_ends(writer->calls, first, c)) {
            emit_plain_function(writer, first, c);
            first = c;
        }
}

void calls_emit(Text *out, Calls *calls, const char *name, const char *phase_name) {
    calls_number(calls);
    int *keys = arena_array(calls->arena, int, calls->count);
    for (int i = 0; i < calls->count; i++) keys[i] = calls->at[i]->key;
    Stretches stretches = {0};
    stretches_find(calls->arena, keys, calls->count, &stretches);
    Writer writer = {.out = out, .calls = calls, .name = name, .body = {.arena = calls->arena}};
    text_print(out, "\n/* %s */\n\n", phase_name);
    for (int s = 0; s < stretches.count; s++)
        if (stretches.at[s].times > 1) emit_repeat(&writer, stretches.at[s]);
        else emit_plain(&writer, stretches.at[s]);
    text_print(out, "void %s(ht_worker *r)\n{\n%s}\n", name, text_bytes(&writer.body));
}
