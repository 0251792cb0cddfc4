/* Mutated cases: what the reader of hetu-reshard takes is sound, what it refuses it refuses with a place inside the text.
 *
 *     fuzz CASES [COUNT [SEED]]
 *
 * Lines of CASES are changed in a few places each, COUNT times (default 50000). A mutant that is read must print and parse back to equal
 * layouts, and be planned when it is small; one that is refused must have a message with a column in the text and a caret under it. The
 * first one that is wrong is printed; so is one that ends the program.
 */
#include "case.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_COUNT = 50000, LONGEST = 400, MOST_CHANGES = 4, MOST_DEVICES = 64, MOST_ELEMENTS = 1 << 14 };

static char mutant[2 * LONGEST + 1];

typedef Array(const char *) Lines;

/* ---- mutants ---- */

static int below(int count) { return (int)(random() % count); }

static Lines read_lines(Arena *arena, const char *path)
{
    FILE *file = fopen(path, "r");
    Lines lines = {0};
    char line[LONGEST];
    if (!file) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = 0;
        if (strchr(line, ':'))
            array_push(arena, &lines, arena_string(arena, line + strspn(line, "! ")));
    }
    fclose(file);
    return lines;
}

/* Replaces `cut` characters at a place by `text`. */
static void replace(int at, int cut, const char *text, int length)
{
    size_t old = strlen(mutant);
    if (old + (size_t)length >= sizeof mutant)
        return;
    memmove(mutant + at + length, mutant + at + cut, old - (size_t)(at + cut) + 1);
    memcpy(mutant + at, text, (size_t)length);
}

static void change(const Lines *lines)
{
    static const char alphabet[] = "[]{}()|,:-*> \tby0123456789dupsummaxsplitinnerf64%\\\"\xc3\xa9";
    static const char *const words[] = {
        "dup", "sum", "max", "split 0 ", "inner", " by 1:2", "->", "0:2", "[0-3]{0:4}", "99999999999999999999", "1048576", "f32[", " | "};
    int length = (int)strlen(mutant), at = below(length + 1), rest = length - at, cut = rest ? below(rest < 6 ? rest : 6) : 0;
    const char *other = lines->at[below(lines->count)], *word = words[below(sizeof words / sizeof *words)];
    switch (below(5)) {
    case 0: replace(at, cut, "", 0); break;
    case 1: replace(at, rest > 0, &alphabet[below(sizeof alphabet - 1)], 1); break;
    case 2: replace(at, 0, &alphabet[below(sizeof alphabet - 1)], 1); break;
    case 3: replace(at, cut, word, (int)strlen(word)); break;
    default: replace(at, rest, other + below((int)strlen(other)), below(12)); break;
    }
    mutant[strnlen(mutant, LONGEST)] = 0;
}

/* ---- checks ---- */

static void report(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, mutant);
    exit(1);
}

/* The last words when the program ends by itself. */
static void at_end(void)
{
    if (*mutant)
        fprintf(stderr, "the program ended at: %s\n", mutant);
}

static void at_signal(int number)
{
    ssize_t written = write(STDERR_FILENO, mutant, strlen(mutant));
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

/* Where the caret of a column stands: letters of several bytes have one place. */
static int caret_of(int column)
{
    int place = 0;
    for (int i = 0; i + 1 < column; i++)
        place += (mutant[i] & 0xc0) != 0x80;
    return place;
}

/* Whether a caret stands under a column: of a long text, of which a part is shown, under what the text has there. */
static bool caret_is_right(const char *message, int column)
{
    enum { MARGIN = 8, SHORT = 200, SEEN = 8, DOTS = 3 };
    const char *line = strchr(message, '\n') + 1 + MARGIN, *end = strchr(line, '\n');
    int place = (int)strcspn(end + 1 + MARGIN, "^"), count = 0;
    if (strlen(mutant) <= SHORT)
        return place == caret_of(column);
    for (const char *at = line; at <= end; count += (*at++ & 0xc0) != 0x80) {
        int left = (int)(end - at), seen = left - DOTS < SEEN ? left - DOTS : SEEN;
        if (count == place && (column > (int)strlen(mutant) ? at == end : seen <= 0 || !strncmp(at, mutant + column - 1, (size_t)seen)))
            return true;
    }
    return false;
}

/* Every message has a place in the text, and a caret there; a text of blanks only has no line to show. */
static void check_messages(const char *messages, int errors)
{
    int found = 0, column;
    for (const char *at = messages; (at = strstr(at, "case:1:")); at++) {
        if (sscanf(at, "case:1:%d: error: ", &column) != 1)
            continue;
        found++;
        if (column < 1 || column > (int)strlen(mutant) + 1)
            report("a column outside of the text");
        if (*mutant && !caret_is_right(at, column))
            report("a caret elsewhere");
    }
    if (found != errors)
        report("a message without a place");
}

static void check_layout(Arena *arena, Diag *diag, const Layout *layout, Shape shape)
{
    Text text = {.arena = arena};
    layout_print(&text, layout);
    const Layout *again = layout_parse_text(arena, diag, (Position){"printed", 1, 1}, text_bytes(&text));
    if (!again || !layout_check(diag, (Position){"printed", 1, 1}, again, shape))
        report("what is printed is refused");
    int count;
    layout_devices(arena, layout, &count);
    if (count <= MOST_DEVICES && !layout_equal(layout, again, shape))
        report("what is printed is another layout");
}

/* Plans a case that is small. */
static void check_plan(Arena *arena, Case *conversion)
{
    int64_t elements = 1;
    int from, to;
    layout_devices(arena, conversion->from, &from);
    layout_devices(arena, conversion->to, &to);
    for (int d = 0; d < conversion->shape.rank; d++)
        elements = elements > MOST_ELEMENTS ? elements : elements * conversion->shape.extent[d];
    if (elements > MOST_ELEMENTS || from > MOST_DEVICES || to > MOST_DEVICES)
        return;
    Set set = set_plan(arena, &conversion, 1, NULL);
    plan_lowered(arena, set.plan, set.label);
}

/* Whether the mutant was read. */
static bool check(void)
{
    Arena *arena = arena_create();
    char *messages = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&messages, &size);
    Diag *diag = diag_create(arena, out);
    diag_source(diag, "case", mutant);
    Case *conversion = case_read(arena, diag, (Position){"case", 1, 1}, mutant);
    int errors = diag_errors(diag);
    fflush(out);
    if (!conversion == !errors)
        report(conversion ? "errors, and yet a case" : "neither case nor error");
    check_messages(messages, errors);
    if (conversion) {
        check_layout(arena, diag, conversion->from, conversion->shape);
        check_layout(arena, diag, conversion->to, conversion->shape);
        check_plan(arena, conversion);
    }
    fclose(out);
    free(messages);
    arena_destroy(arena);
    return conversion != NULL;
}

int main(int argc, char **argv)
{
    Arena *arena = arena_create();
    Lines lines = read_lines(arena, argc > 1 ? argv[1] : "reshard.cases");
    int count = argc > 2 ? atoi(argv[2]) : DEFAULT_COUNT, taken = 0;
    srandom(argc > 3 ? (unsigned)atoi(argv[3]) : 1);
    atexit(at_end);
    signal(SIGSEGV, at_signal);
    signal(SIGABRT, at_signal);
    for (int i = 0; i < count; i++) {
        snprintf(mutant, sizeof mutant, "%s", lines.at[below(lines.count)]);
        for (int changes = below(MOST_CHANGES + 1); changes > 0; changes--)
            change(&lines);
        taken += check();
    }
    printf("%d mutants: %d read, %d refused\n", count, taken, count - taken);
    *mutant = 0;
    arena_destroy(arena);
    return taken == 0 || taken == count;
}
