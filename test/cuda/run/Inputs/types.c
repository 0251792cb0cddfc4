/* Sums over rows, columns and everything, transposes and broadcasts in every element type; prints a checksum of each output. */
#include <hetu/hetu.h>

#include <stdint.h>
#include <stdio.h>

#pragma hspmd op y[r..] = x[r.., c] * x[r.., c]
ht_tensor row_squares(ht_tensor x);

#pragma hspmd op y[c] = x[r, c] + ?z[c] - 1
ht_tensor column_sums(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a, b] = x[b, a] + z[a]
ht_tensor turned(ht_tensor x, ht_tensor z);

#pragma hspmd op y[] = x[i..]
ht_tensor total(ht_tensor x);

enum { ROWS = 48, COLUMNS = 64, WIDE = 9000, LONG = 70000, OUTPUTS = 6 };
static const int COUNTS[OUTPUTS] = {ROWS, COLUMNS, ROWS * COLUMNS, 1, 2, 1};

static void outputs_of(ht_dtype dtype, const char *const *in, const char *const *out)
{
    ht_tensor x = ht_input(in[0], dtype, ht_shape(ROWS, COLUMNS)), z = ht_input(in[1], dtype, ht_shape(COLUMNS));
    ht_output(row_squares(x), out[0]);
    ht_output(column_sums(x, z), out[1]);
    ht_output(turned(x, z), out[2]);
    ht_output(total(x), out[3]);
    ht_output(row_squares(ht_input(in[2], dtype, ht_shape(2, WIDE))), out[4]);
    ht_output(total(ht_input(in[3], dtype, ht_shape(LONG))), out[5]);
}

enum { KINDS = 5 };
static const ht_dtype KIND[KINDS] = {HT_F32, HT_BF16, HT_F64, HT_I32, HT_I64};
static const char *const IN[KINDS][4] = {{"fx", "fz", "fw", "fl"}, {"hx", "hz", "hw", "hl"}, {"dx", "dz", "dw", "dl"}, {"ix", "iz", "iw", "il"}, {"lx", "lz", "lw", "ll"}};
static const char *const OUT[KINDS][OUTPUTS] = {{"f0", "f1", "f2", "f3", "f4", "f5"}, {"h0", "h1", "h2", "h3", "h4", "h5"}, {"d0", "d1", "d2", "d3", "d4", "d5"},
                                                {"i0", "i1", "i2", "i3", "i4", "i5"}, {"l0", "l1", "l2", "l3", "l4", "l5"}};

static ht_tensor all(void)
{
    for (int k = 0; k < KINDS; k++)
        outputs_of(KIND[k], IN[k], OUT[k]);
    return ht_sum(ht_input("one", HT_F32, ht_shape(4)));
}

/* Element i of memory of a type. */
static double element(ht_dtype dtype, const void *from, int i)
{
    union {
        uint32_t bits;
        float f;
    } half = {(uint32_t)((const uint16_t *)from)[i] << 16};
    switch (dtype) {
    case HT_F32: return ((const float *)from)[i];
    case HT_BF16: return half.f;
    case HT_F64: return ((const double *)from)[i];
    case HT_I32: return ((const int32_t *)from)[i];
    default: return (double)((const int64_t *)from)[i];
    }
}

static void set(ht_dtype dtype, void *to, int i, int value)
{
    union {
        float f;
        uint32_t bits;
    } half = {(float)value / 8};
    switch (dtype) {
    case HT_F32: ((float *)to)[i] = (float)value / 8; break;
    case HT_BF16: ((uint16_t *)to)[i] = (uint16_t)(half.bits >> 16); break;
    case HT_F64: ((double *)to)[i] = value / 7.0; break;
    case HT_I32: ((int32_t *)to)[i] = value; break;
    default: ((int64_t *)to)[i] = value;
    }
}

int main(int argc, char **argv)
{
    static int64_t data[KINDS][LONG], fetched[ROWS * COLUMNS];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_infer(session, all);
    float one[4] = {1};
    ht_fed feeds[KINDS * 4 + 2] = {ht_feed("one", one)};
    for (int k = 0; k < KINDS; k++) {
        for (int i = 0; i < LONG; i++)
            set(KIND[k], data[k], i, i * 7 % 23 - 11);
        for (int n = 0; n < 4; n++)
            feeds[1 + 4 * k + n] = ht_feed(IN[k][n], (const void *)data[k]);
    }
    ht_run_with(program, feeds);
    for (int k = 0; k < KINDS; k++)
        for (int o = 0; o < OUTPUTS; o++) {
            double sum = 0;
            ht_fetch(program, OUT[k][o], fetched);
            for (int i = 0; i < COUNTS[o]; i++)
                sum += (i % 17 + 1) * element(KIND[k], fetched, i);
            printf("%s %.7g\n", OUT[k][o], sum);
        }
    return 0;
}
