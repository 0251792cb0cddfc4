#include "session/finite.h"

#include "base/fail.h"
#include "base/places.h"

#include <math.h>

enum { BLOCK = 4096 };

/* Element i as a double; integers are finite. */
static double element(const WindowTensor *tensor, int64_t i)
{
    switch (tensor->dtype) {
    case HT_F32: return ((const float *)tensor->data)[i];
    case HT_F64: return ((const double *)tensor->data)[i];
    case HT_BF16: return ht_bf16_load(((const uint16_t *)tensor->data)[i]);
    default: return 0;
    }
}

/* The first element that is not finite; -1: all are. An element times 0 is 0 where it is finite, else NaN, which sums keep. */
static int64_t find(const WindowTensor *tensor)
{
    for (int64_t first = 0; first < tensor->count; first += BLOCK) {
        int64_t end = first + BLOCK < tensor->count ? first + BLOCK : tensor->count;
        double sum = 0;
        for (int64_t i = first; i < end; i++)
            sum += element(tensor, i) * 0;
        for (int64_t i = first; sum != 0 && i < end; i++)
            if (!isfinite(element(tensor, i)))
                return i;
    }
    return -1;
}

void finite_check(const ht_called *call, int64_t step, const WindowTensor *made)
{
    int64_t i = find(made);
    if (i < 0)
        return;
    double value = element(made, i);
    places_find();
    fail_doing(call->at);
    ht_fail("%s%s%s makes %s, element %lld of %lld%s%s%s%s in step %lld (HETU_NAN)", call->name, *call->value ? " of " : "", call->value,
            isnan(value) ? "a NaN"
            : value < 0  ? "minus infinity"
                         : "an infinity",
            (long long)i, (long long)made->count, *call->scope ? ", in " : "", call->scope, *call->layer ? ", layer " : "", call->layer,
            (long long)step);
}
