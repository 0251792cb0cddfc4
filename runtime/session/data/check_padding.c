/* Checks that the elements beyond padding lengths, which no pipeline reads, are padding. */
#include "session/data/feed.h"

#include <string.h>

static double element_at(ht_dtype dtype, const void *data, int64_t i) {
    uint32_t bits;
    float single;
    switch (dtype) {
    case HT_I32: return ((const int32_t *)data)[i];
    case HT_I64: return (double)((const int64_t *)data)[i];
    case HT_F64: return ((const double *)data)[i];
    case HT_F32: return ((const float *)data)[i];
    case HT_BF16:
        bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    }
    return 0;
}

/* Returns the first dimension d along which a row's element i has index read[d - 1] or more, so
 * that its pipeline does not read it; 0: the pipeline reads it. */
static int behind(const ht_padding *padding, const int64_t *read, int64_t i) {
    int found = 0;
    for (int d = padding->rank - 1; d > 0; d--) {
        if (i % padding->extent[d] >= read[d - 1]) found = d;
        i /= padding->extent[d];
    }
    return found;
}

static _Noreturn void refuse(const ht_image_input *input, const int64_t *read, int64_t row,
                             int64_t i, double value) {
    int d = behind(input->padding, read, i);
    ht_fail("the input \"%s\" (%s) has %.9g in row %lld at element %lld, which its pipeline does "
            "not read: of dimension %d it reads the first "
            "%lld; only %.9g stands for nothing there (pragma padding): put longer rows where a "
            "longer pipeline reads them, or cut them",
            input->name, input->at, value, (long long)row, (long long)i, d, (long long)read[d - 1],
            input->padding->value);
}

static void check_row(const ht_image_input *input, const void *data, const int64_t *read,
                      int64_t row, int64_t elements) {
    for (int64_t i = 0; i < elements; i++) {
        double value = element_at(input->dtype, data, row * elements + i);
        if (value != input->padding->value && behind(input->padding, read, i))
            refuse(input, read, row, i, value);
    }
}

void padding_put(const ht_image_input *input, void *element) {
    double value = input->padding->value;
    uint16_t half;
    switch (input->dtype) {
    case HT_I32: memcpy(element, &(int32_t){(int32_t)value}, sizeof(int32_t)); break;
    case HT_I64: memcpy(element, &(int64_t){(int64_t)value}, sizeof(int64_t)); break;
    case HT_F64: memcpy(element, &value, sizeof value); break;
    case HT_F32: memcpy(element, &(float){(float)value}, sizeof(float)); break;
    case HT_BF16:
        half = ht_bf16_store((float)value);
        memcpy(element, &half, sizeof half);
        break;
    }
}

void padding_check(const ht_image_input *input, const void *data) {
    const ht_padding *padding = input->padding;
    int64_t elements = 1;
    for (int d = 1; d < padding->rank; d++) elements *= padding->extent[d];
    for (int p = 0; p < padding->count; p++) {
        const int64_t *pipeline = padding->rows + (ptrdiff_t)p * (padding->rank + 1);
        for (int64_t row = pipeline[0]; row < pipeline[1]; row++)
            check_row(input, data, pipeline + 2, row, elements);
    }
}

void padding_needs(const ht_image_input *input, const void *row, int64_t *needs) {
    const ht_padding *padding = input->padding;
    int64_t elements = 1;
    for (int d = 1; d < padding->rank; d++) {
        elements *= padding->extent[d];
        needs[d - 1] = 0;
    }
    for (int64_t i = 0; i < elements; i++) {
        if (element_at(input->dtype, row, i) == padding->value) continue;
        int64_t rest = i;
        for (int d = padding->rank - 1; d > 0; d--) {
            int64_t place = rest % padding->extent[d];
            needs[d - 1] = place >= needs[d - 1] ? place + 1 : needs[d - 1];
            rest /= padding->extent[d];
        }
    }
}

bool padding_fits(const ht_image_input *input, int64_t place, const int64_t *needs) {
    const ht_padding *padding = input->padding;
    bool fits = true;
    for (int p = 0; p < padding->count; p++) {
        const int64_t *pipeline = padding->rows + (ptrdiff_t)p * (padding->rank + 1);
        for (int d = 1; place >= pipeline[0] && place < pipeline[1] && d < padding->rank; d++)
            fits &= needs[d - 1] <= pipeline[1 + d];
    }
    return fits;
}
