/* Parses a case, and checks that it can be planned. */
#include "case.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    ht_dtype dtype;
    int bytes;
} dtypes[] = {{"f32", HT_F32, 4},
              {"bf16", HT_BF16, 2},
              {"f64", HT_F64, 8},
              {"i32", HT_I32, 4},
              {"i64", HT_I64, 8}};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static Position shifted(Position at, size_t columns) {
    at.column += (int)columns;
    return at;
}

int case_element(const Case *conversion) {
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].dtype == conversion->dtype) return dtypes[i].bytes;
    BUG("dtype %d", (int)conversion->dtype);
}

/* Reads the element type at the beginning of a text; sets *length to the length of its name. */
static bool read_dtype(Diag *diag, Position at, const char *text, Case *conversion,
                       size_t *length) {
    for (int i = 0; i < DTYPES; i++) {
        *length = strlen(dtypes[i].name);
        if (!strncmp(text, dtypes[i].name, *length) && text[*length] == '[') {
            conversion->dtype = dtypes[i].dtype;
            return true;
        }
    }
    diag_error(diag, at,
               "expected the tensor's type and shape, such as 'f32[8,12]'; the types are f32, "
               "bf16, f64, i32 and i64");
    return false;
}

/* The text of a case while its shape is read. */
typedef struct ShapeReader {
    Diag *diag;
    Position at;      // where `text` begins
    const char *text; // text of the case
    const char *next; // the unread rest
} ShapeReader;

static bool shape_error(const ShapeReader *reader, const char *at, const char *message) {
    diag_error(reader->diag, shifted(reader->at, (size_t)(at - reader->text)), "%s", message);
    return false;
}

/* Reads one extent of the shape; *left is the largest product of the extents still to come. */
static bool read_extent(ShapeReader *reader, int64_t *left, int64_t *extent) {
    const char *begin = reader->next;
    for (*extent = 0; isdigit((unsigned char)*reader->next); ++reader->next) {
        if (*extent > (INT64_MAX / 32 - 9) / 10)
            return shape_error(reader, begin, "the extent is too large");
        *extent = 10 * *extent + (*reader->next - '0');
    }
    if (reader->next == begin) return shape_error(reader, begin, "expected an extent");
    if (*extent > *left) return shape_error(reader, begin, "the tensor has too many elements");
    *left = *extent ? *left / *extent : *left;
    return true;
}

/* Reads '[8,12]:' at reader->next. */
static bool read_shape(Arena *arena, ShapeReader *reader, Shape *shape) {
    int64_t *extents = arena_array(arena, int64_t, LAYOUT_MAX_RANK), left = INT64_MAX / 32;
    shape->extent = extents;
    ++reader->next;
    while (*reader->next != ']') {
        if (shape->rank == LAYOUT_MAX_RANK)
            return shape_error(
                reader, reader->next,
                arena_format(arena, "a tensor has at most %d dimensions", LAYOUT_MAX_RANK));
        reader->next += strspn(reader->next, " \t");
        if (!read_extent(reader, &left, &extents[shape->rank++])) return false;
        reader->next += strspn(reader->next, " \t");
        if (*reader->next != ']' && *reader->next != ',')
            return shape_error(reader, reader->next, "expected ',' or ']' after an extent");
        reader->next += *reader->next == ',';
    }
    ++reader->next;
    reader->next += strspn(reader->next, " \t");
    if (*reader->next != ':')
        return shape_error(reader, reader->next, "expected ':' after the shape");
    ++reader->next;
    return true;
}

static const Layout *read_layout(Arena *arena, Diag *diag, Position at, const char *text,
                                 Shape shape) {
    const Layout *layout = layout_parse_text(arena, diag, at, text);
    return layout && layout_check(diag, at, layout, shape) ? layout : NULL;
}

/* Returns the column at which a layout's text says sum or max; 0: the layout is not partial. */
static size_t partial_column(const Layout *layout) {
    if (layout->top == TOP_SUM || layout->top == TOP_MAX) return (size_t)layout->top_column;
    for (int g = 0; g < layout->group_count; g++)
        for (int s = 0; s < layout->groups[g].state_count; s++) {
            const State *state = &layout->groups[g].states[s];
            if (state->count > 1 && (state->kind == STATE_SUM || state->kind == STATE_MAX))
                return (size_t)state->column;
        }
    return 0;
}

/* Checks that the number of bytes that all devices send and receive does not overflow. */
static bool check_size(Arena *arena, Diag *diag, Position at, const Case *conversion) {
    int from, to;
    __int128 bytes = case_element(conversion);
    layout_devices(arena, conversion->from, &from);
    layout_devices(arena, conversion->to, &to);
    for (int d = 0; d < conversion->shape.rank; d++) bytes *= conversion->shape.extent[d];
    if (bytes * 2 * (from + to) <= INT64_MAX) return true;
    diag_error(diag, at, "the tensor has too many elements for conversions between %d devices",
               from + to);
    return false;
}

Case *case_read(Arena *arena, Diag *diag, Position at, const char *text) {
    Case *conversion = arena_new(arena, Case);
    size_t length, blank = strspn(text, " \t");
    conversion->text = text;
    if (!read_dtype(diag, shifted(at, blank), text + blank, conversion, &length)) return NULL;
    ShapeReader reader = {diag, at, text, text + blank + length};
    if (!read_shape(arena, &reader, &conversion->shape)) return NULL;
    const char *next = reader.next, *arrow = strstr(next, "->");
    if (!arrow) {
        diag_error(diag, shifted(at, strlen(text)),
                   "expected '->' and the layout after the conversion");
        return NULL;
    }
    next += strspn(next, " \t");
    const char *target = arrow + 2 + strspn(arrow + 2, " \t");
    conversion->from_at = shifted(at, (size_t)(next - text));
    conversion->to_at = shifted(at, (size_t)(target - text));
    conversion->from =
        read_layout(arena, diag, conversion->from_at,
                    arena_substring(arena, next, (size_t)(arrow - next)), conversion->shape);
    conversion->to = read_layout(arena, diag, conversion->to_at, target, conversion->shape);
    if (!conversion->from || !conversion->to) return NULL;
    StateKind from = layout_partial(conversion->from), to = layout_partial(conversion->to);
    if (from != STATE_DUP && to != STATE_DUP && from != to) {
        diag_error(diag, shifted(conversion->to_at, partial_column(conversion->to)),
                   "a tensor of pending %s cannot become one of pending %s",
                   from == STATE_SUM ? "sums" : "maxima", to == STATE_SUM ? "sums" : "maxima");
        return NULL;
    }
    return check_size(arena, diag, shifted(at, blank + length), conversion) ? conversion : NULL;
}

/* Returns whether the cluster lists all devices of a layout; reports the lowest missing device. */
static bool layout_on_cluster(Diag *diag, Position at, const Layout *layout,
                              const Cluster *cluster) {
    int missing = cluster_missing(cluster, layout);
    if (missing >= 0)
        diag_error(diag, at, "the cluster has no device %d: it lists %d, from 0", missing,
                   cluster->device_count);
    return missing < 0;
}

bool case_on_cluster(Diag *diag, const Case *conversion, const Cluster *cluster) {
    bool from = layout_on_cluster(diag, conversion->from_at, conversion->from, cluster);
    return layout_on_cluster(diag, conversion->to_at, conversion->to, cluster) && from;
}

bool case_plannable(Diag *diag, const Case *conversion) {
    bool plannable = conversion_plannable(
        &(Conversion){conversion->shape, conversion->dtype, conversion->from, conversion->to});
    if (!plannable)
        diag_error(diag, conversion->to_at,
                   "this layout and the one before it cut the tensor into more than %d cells",
                   RESHARD_MOST_CELLS);
    return plannable;
}

Set set_plan(Arena *arena, Case *const *cases, int count, const Cluster *cluster) {
    Set set = {count, cases, count == 1 ? cases[0]->text : arena_format(arena, "%d tensors", count),
               NULL};
    Conversion *conversions = arena_array(arena, Conversion, count);
    for (int i = 0; i < count; i++)
        conversions[i] =
            (Conversion){cases[i]->shape, cases[i]->dtype, cases[i]->from, cases[i]->to};
    set.plan = reshard_plan_all(arena, cluster, conversions, count);
    return set;
}
