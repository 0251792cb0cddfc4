/* Kernels of gather, scatter, cumsum and rank along one dimension. An operand of global indices
 * lists the indices of that dimension that this device's piece has: 4, 5, 6, 7 for the second half
 * of 8. These indices usually ascend without gaps. A line is the vector of elements along that
 * dimension at fixed other indices. */
#include "cpu/cpu.h"
#include "operators/kernels.h"

#include <hetu/rt.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tensor's lines along dimension `dim`. */
typedef struct Lines {
    int64_t outer, length, inner; // element i of line (o, c) is number (o * length + i) * inner + c
} Lines;

static Lines lines_of(const ht_view *x, int dim) {
    return (Lines){ht_view_count(x, 0, dim), x->extent[dim], ht_view_count(x, dim + 1, x->rank)};
}

/* ---- global and local indices ---- */

/* A global index (or sort key) and the local index of its element in the line. */
typedef struct Entry {
    int64_t number, at;
} Entry;

static int by_number(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Lookup table from distinct global indices to local indices. */
typedef struct Index {
    Entry *entry; // sorted by number; the caller frees the array
    int64_t count;
    bool dense; // entry[i].number is entry[0].number + i for each i
} Index;

static Index index_of(const ht_view *places) {
    int64_t count = cpu_count(places);
    Index index = {cpu_alloc((size_t)count * sizeof(Entry)), count, true};
    bool ascends = true;
    for (int64_t i = 0; i < count; i++) {
        index.entry[i] = (Entry){cpu_index(places, i), i};
        ascends &= !i || index.entry[i - 1].number < index.entry[i].number;
    }
    if (!ascends) qsort(index.entry, (size_t)count, sizeof(Entry), by_number);
    for (int64_t i = 0; i < count; i++)
        index.dense &= index.entry[i].number == index.entry[0].number + i;
    return index;
}

/* Returns how many entries of the table have a number below `number`. */
static int64_t index_before(const Index *index, int64_t number) {
    int64_t low = 0, high = index->count;
    if (index->dense && high) {
        int64_t before = number - index->entry[0].number;
        return before < 0 ? 0 : before < high ? before : high;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (index->entry[middle].number < number) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Returns the local index of a global index, or -1 if this piece lacks it. */
static int64_t index_find(const Index *index, int64_t number) {
    int64_t i = index_before(index, number);
    return i < index->count && index->entry[i].number == number ? index->entry[i].at : -1;
}

/* Returns how many of the elements from `i` to before `end` have the index of the first one. */
static int64_t run_from(const ht_view *number, int64_t i, int64_t end) {
    const int32_t *narrow = number->data;
    const int64_t *wide = number->data;
    int64_t next = i + 1;
    if (number->dtype == HT_I32)
        while (next < end && narrow[next] == narrow[i]) next++;
    else
        while (next < end && wide[next] == wide[i]) next++;
    return next - i;
}

/* Copies an integer tensor; ends the program if an element is outside [0, end). Attribute: end. */
void ht_within_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0];
    int64_t count = cpu_count(x), end = call->attr[0].i;
    bool within = true;
    cpu_need_integers(x, "within");
#pragma omp parallel for schedule(static) reduction(&& : within) if (count > CPU_PARALLEL)
    for (int64_t i = 0; i < count; i++) {
        int64_t number = cpu_index(x, i);
        within = within && number >= 0 && number < end;
    }
    for (int64_t i = 0; !within && i < count; i++) {
        int64_t number = cpu_index(x, i);
        if (number < 0 || number >= end)
            ht_fail("index %ld at element %ld is outside the %ld elements that it chooses from",
                    (long)number, (long)ht_view_element(x, i), (long)end);
    }
    memcpy(call->result[0].data, x->data, (size_t)(count * (int)ht_dtype_bytes(x->dtype)));
}

/* ---- gather and scatter ---- */

/* Computes y[.., i, ..] = x[.., index[.., i, ..], ..] along dimension `dim`; 0 where this device's
 * piece of x lacks that index. Operands: x, index, global indices of x; attribute: dim. */
void ht_gather_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *number = &call->operand[1], *y = &call->result[0];
    Lines from = lines_of(x, (int)call->attr[0].i), to = lines_of(y, (int)call->attr[0].i);
    Index index = index_of(&call->operand[2]);
    int64_t size = (int)ht_dtype_bytes(x->dtype);
    cpu_need_integers(number, "gather");
#pragma omp parallel for schedule(static) if (cpu_count(y) > CPU_PARALLEL)
    for (int64_t row = 0; row < to.outer * to.length; row++) {
        int64_t end = (row + 1) * to.inner, run;
        for (int64_t i = row * to.inner; i < end; i += run) {
            run = run_from(number, i, end);
            int64_t at = index_find(&index, cpu_index(number, i));
            char *place = (char *)y->data + i * size;
            if (at < 0) memset(place, 0, (size_t)(run * size));
            else
                memcpy(place,
                       (const char *)x->data +
                           ((row / to.length * from.length + at) * from.inner + i % to.inner) *
                               size,
                       (size_t)(run * size));
        }
    }
    free(index.entry);
}

/* Adds `n` elements of `from`, from element i on, to those of `to` from element k on, both of the
 * same type. Sums of bf16 go to `wide`, an f32 array with as many elements as `to`. */
static void add(const ht_view *to, float *wide, int64_t k, const ht_view *from, int64_t i,
                int64_t n) {
    switch (to->dtype) {
    case HT_F32:
        for (; n-- > 0; i++) ((float *)to->data)[k++] += ((const float *)from->data)[i];
        return;
    case HT_F64:
        for (; n-- > 0; i++) ((double *)to->data)[k++] += ((const double *)from->data)[i];
        return;
    case HT_I32:
        for (; n-- > 0; i++) ((int32_t *)to->data)[k++] += ((const int32_t *)from->data)[i];
        return;
    case HT_I64:
        for (; n-- > 0; i++) ((int64_t *)to->data)[k++] += ((const int64_t *)from->data)[i];
        return;
    case HT_BF16:
        for (; n-- > 0; i++) wide[k++] += ht_bf16_load(((const uint16_t *)from->data)[i]);
        return;
    }
}

/* Arguments of a scatter of `x` by `number` into `y`, whose lines have the indices of `index`. */
typedef struct Scatter {
    const ht_view *x, *number, *y;
    Lines from, to;
    Index index;
    float *wide; // sums of bf16
} Scatter;

/* Adds the elements of columns [start, end) of the lines with outer index `o`, in x's order. */
static void scatter_columns(const Scatter *s, int64_t o, int64_t start, int64_t end) {
    for (int64_t row = o * s->from.length; row < (o + 1) * s->from.length; row++)
        for (int64_t c = start, run; c < end; c += run) {
            int64_t i = row * s->from.inner + c;
            run = run_from(s->number, i, i + end - c);
            int64_t at = index_find(&s->index, cpu_index(s->number, i));
            if (at >= 0)
                add(s->y, s->wide, (o * s->to.length + at) * s->to.inner + c, s->x, i, run);
        }
}

/* Sets y to 0, then adds each element of x at its index along dimension `dim`, in the order of x.
 * Operands: x, index, global indices of y along dim; attribute: dim. */
void ht_scatter_kernel(const ht_call *call) {
    enum { COLUMNS = 16 }; // a cache line of f32: threads write different ones
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    int dim = (int)call->attr[0].i;
    int64_t count = cpu_count(y);
    Scatter s = {
        x,   &call->operand[1], y, lines_of(x, dim), lines_of(y, dim), index_of(&call->operand[2]),
        NULL};
    if (y->dtype == HT_BF16) s.wide = cpu_alloc((size_t)count * sizeof(float));
    cpu_need_integers(s.number, "scatter");
    memset(y->data, 0, (size_t)(count * (int)ht_dtype_bytes(y->dtype)));
    for (int64_t i = 0; s.wide && i < count; i++) s.wide[i] = 0;
#pragma omp parallel for schedule(static) collapse(2) if (cpu_count(x) > CPU_PARALLEL)
    for (int64_t o = 0; o < s.from.outer; o++)
        for (int64_t c = 0; c < s.from.inner; c += COLUMNS)
            scatter_columns(&s, o, c, c + COLUMNS < s.from.inner ? c + COLUMNS : s.from.inner);
    for (int64_t i = 0; s.wide && i < count; i++)
        ((uint16_t *)y->data)[i] = ht_bf16_store(s.wide[i]);
    free(s.wide);
    free(s.index.entry);
}

/* ---- cumulative sums ---- */

/* Accumulator: f64 for floating-point types, 64-bit for integers. */
typedef union Sum {
    double real;
    uint64_t integer;
} Sum;

/* Adds `count` elements of a row to `count` accumulators. */
HT_CLONES
static void add_row(ht_dtype dtype, Sum *sum, const void *row, int64_t count) {
    switch (dtype) {
    case HT_F32:
        for (int64_t c = 0; c < count; c++) sum[c].real += ((const float *)row)[c];
        break;
    case HT_F64:
        for (int64_t c = 0; c < count; c++) sum[c].real += ((const double *)row)[c];
        break;
    case HT_BF16:
        for (int64_t c = 0; c < count; c++) sum[c].real += ht_bf16_load(((const uint16_t *)row)[c]);
        break;
    case HT_I32:
        for (int64_t c = 0; c < count; c++) sum[c].integer += (uint64_t)((const int32_t *)row)[c];
        break;
    case HT_I64:
        for (int64_t c = 0; c < count; c++) sum[c].integer += (uint64_t)((const int64_t *)row)[c];
        break;
    }
}

HT_CLONES
static void store_row(ht_dtype dtype, const Sum *sum, void *row, int64_t count) {
    switch (dtype) {
    case HT_F32:
        for (int64_t c = 0; c < count; c++) ((float *)row)[c] = (float)sum[c].real;
        break;
    case HT_F64:
        for (int64_t c = 0; c < count; c++) ((double *)row)[c] = sum[c].real;
        break;
    case HT_BF16:
        for (int64_t c = 0; c < count; c++)
            ((uint16_t *)row)[c] = ht_bf16_store((float)sum[c].real);
        break;
    case HT_I32:
        for (int64_t c = 0; c < count; c++) ((int32_t *)row)[c] = (int32_t)sum[c].integer;
        break;
    case HT_I64:
        for (int64_t c = 0; c < count; c++) ((int64_t *)row)[c] = (int64_t)sum[c].integer;
        break;
    }
}

/* Returns entry i by ascending number if `forward`, by descending number otherwise. */
static Entry passed(const Index *index, int64_t i, bool forward) {
    return index->entry[forward ? i : index->count - 1 - i];
}

/* Arguments of cumulative sums of x along a dimension. x has the global indices `places`, y the
 * indices `wanted`. Sums run from the first index on if `forward`, else from the last. */
typedef struct Cumulation {
    const ht_view *x, *y;
    Lines from, to;
    Index places, wanted;
    bool forward;
} Cumulation;

/* Computes the cumulative sums of all lines with outer index `o`. One scan over `places` adds each
 * row of x once. The scan stores the running sums whenever it reaches an index of `wanted`. */
static void add_up(const Cumulation *sums, int64_t o) {
    const ht_view *x = sums->x, *y = sums->y;
    const Index *places = &sums->places, *wanted = &sums->wanted;
    Lines from = sums->from, to = sums->to;
    bool forward = sums->forward;
    int64_t row = from.inner * (int)ht_dtype_bytes(x->dtype), next = 0;
    Sum *sum = cpu_alloc((size_t)from.inner * sizeof *sum);
    memset(sum, 0, (size_t)from.inner * sizeof *sum);
    for (int64_t k = 0; k < wanted->count; k++) {
        Entry to_here = passed(wanted, k, forward);
        for (; next < places->count; next++) {
            Entry one = passed(places, next, forward);
            if (forward ? one.number > to_here.number : one.number < to_here.number) break;
            add_row(x->dtype, sum, (const char *)x->data + (o * from.length + one.at) * row,
                    from.inner);
        }
        store_row(y->dtype, sum, (char *)y->data + (o * to.length + to_here.at) * row, to.inner);
    }
    free(sum);
}

/* Computes prefix sums along a dimension if `forward`, suffix sums otherwise. Each result includes
 * the element at its own index: 1 2 3 gives 1 3 6 or 6 5 3. */
static void add_lines(const ht_call *call, bool forward) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    Cumulation sums = {.x = x,
                       .y = y,
                       .from = lines_of(x, (int)call->attr[0].i),
                       .to = lines_of(y, (int)call->attr[0].i),
                       .places = index_of(&call->operand[2]),
                       .wanted = index_of(&call->operand[1]),
                       .forward = forward};
#pragma omp parallel for schedule(static) if (cpu_count(x) > CPU_PARALLEL)
    for (int64_t o = 0; o < sums.from.outer; o++) add_up(&sums, o);
    free(sums.wanted.entry);
    free(sums.places.entry);
}

/* Computes prefix sums. Operands: x, global indices of y and of x along dim; attribute: dim. */
void ht_cumsum_kernel(const ht_call *call) { add_lines(call, true); }

void ht_cumsum_back_kernel(const ht_call *call) { add_lines(call, false); }

/* ---- order ---- */

/* Returns an integer sort key of element i: ordered as elements, NaN the largest, -0 equal to 0. */
static int64_t order_of(const ht_view *x, int64_t i) {
    double value = 0;
    int64_t bits;
    switch (x->dtype) {
    case HT_I32: return ((const int32_t *)x->data)[i];
    case HT_I64: return ((const int64_t *)x->data)[i];
    case HT_F32: value = ((const float *)x->data)[i]; break;
    case HT_BF16: value = ht_bf16_load(((const uint16_t *)x->data)[i]); break;
    case HT_F64: value = ((const double *)x->data)[i]; break;
    }
    if (isnan(value)) return INT64_MAX;
    value = value == 0 ? 0 : value;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

/* Returns the sort entry of element i of x: its key, inverted if `descending`, and its global
 * index, which breaks ties. */
static Entry entry_of(const ht_view *x, int64_t i, int64_t place, bool descending) {
    int64_t order = order_of(x, i);
    return (Entry){descending ? ~order : order, place};
}

/* Returns how many of `count` sorted entries come before `one`, by binary search. */
static int64_t entries_before(const Entry *entry, int64_t count, Entry one) {
    int64_t low = 0;
    while (low < count) {
        int64_t middle = low + (count - low) / 2;
        if (by_number(&entry[middle], &one) < 0) low = middle + 1;
        else count = middle;
    }
    return low;
}

/* Computes for each element of z its rank (0, 1, ...) among the elements of x in the same line.
 * Each line of x is sorted; a binary search finds each element of z. Operands: x, z, global indices
 * of z and of x along dim; attributes: dim, descending. */
void ht_rank_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *z = &call->operand[1], *at = &call->operand[2],
                  *from = &call->operand[3];
    Lines all = lines_of(x, (int)call->attr[0].i), own = lines_of(z, (int)call->attr[0].i);
    bool descending = call->attr[1].i;
    int32_t *y = call->result[0].data;
#pragma omp parallel if (cpu_count(x) > CPU_PARALLEL)
    {
        Entry *entry = cpu_alloc((size_t)all.length * sizeof *entry);
#pragma omp for schedule(static)
        for (int64_t line = 0; line < all.outer * all.inner; line++) {
            int64_t o = line / all.inner, c = line % all.inner;
            for (int64_t i = 0; i < all.length; i++)
                entry[i] = entry_of(x, (o * all.length + i) * all.inner + c, cpu_index(from, i),
                                    descending);
            qsort(entry, (size_t)all.length, sizeof *entry, by_number);
            for (int64_t i = 0; i < own.length; i++) {
                int64_t number = (o * own.length + i) * own.inner + c;
                y[number] = (int32_t)entries_before(
                    entry, all.length, entry_of(z, number, cpu_index(at, i), descending));
            }
        }
        free(entry);
    }
}
