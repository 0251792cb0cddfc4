// The evaluator agrees with C: every assertion holds at compile time, and when the same file runs.
// RUN: %hetucc --emit=ir --stop-after=frontend %s | FileCheck %s
// RUN: %cc -D PLAIN %s -o %t -lm && %t

#ifdef PLAIN
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#else
#include <hetu/hetu.h>
#endif
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Point {
    int x;
    float y[3];
    struct {
        short low, high;
    };
    union {
        uint32_t bits;
        float number;
    } u;
    const char *name;
} Point;

enum { SMALL = -2, LARGE = 1 << 20 };
static const int table[] = {3, 1, 4, 1, 5, [7] = 9, 2};
static const char *const words[] = {"zero", "one", "two"};
static double matrix[2][3] = {1, 2, 3, {4, 5}};
static int counter;
static int *cursor = &counter;
int global = sizeof(Point) > 8 ? 40 + 2 : 0;

static void integers(void)
{
    unsigned char c = 255;
    c++;
    assert(c == 0);
    signed char s = (signed char)200;
    assert(s == -56);
    assert(-1 > 1u);
    assert((unsigned)-1 == UINT_MAX);
    assert(INT_MIN / 2 == -1073741824 && -7 / 2 == -3 && -7 % 2 == -1);
    uint64_t wide = 0xFFFFFFFFFFFFFFFFu;
    assert(wide + 2 == 1 && wide >> 63 == 1);
    int64_t mixed = (int64_t)INT32_MAX * 4;
    assert(mixed == 8589934588);
    assert((SMALL >> 1) == -1 && (LARGE & 0xFFFFF) == 0 && (5 ^ 3) == 6 && ~0 == -1);
    short h = 1;
    h += 70000;
    assert(h == 4465);
    int i = 5;
    assert(i++ == 5 && ++i == 7 && i-- == 7 && i == 6);
    bool b = 0.25;
    assert(b == 1 && !b == 0);
    assert((1 ? -1 : 0u) > 0);
    assert('a' == 97 && sizeof 'a' == 4 && sizeof(char[3]) == 3);
    i <<= 3;
    assert(i == 48 && (i |= 1) == 49);
    assert(__builtin_expect(i, 1) == 49);
}

static void floats(void)
{
    float f = 0.1f;
    double d = 0.1;
    assert(f != d && (float)d == f);
    assert(f * 3 != d * 3 && 16777216.0f + 1.0f == 16777216.0f);
    assert((int)-2.9 == -2 && (int)2.9f == 2 && (uint8_t)250.7 == 250);
    assert(1 / 2 == 0 && 1 / 2.0 == 0.5);
    assert(sqrtf(2) != sqrt(2) && pow(2, 10) == 1024 && fabs(-3.5) == 3.5 && floorf(2.5f) == 2);
    assert(fmax(1, 2) == 2 && fmin(1, 2) == 1 && lround(2.5) == 3 && fmod(7, 4) == 3);
    assert(isnan(NAN) && isinf(INFINITY) && !isnan(1.0) && 1 / INFINITY == 0);
    f += 0.2;
    assert(f == (float)(0.1f + 0.2));
    assert(exp(0) == 1 && logf(1) == 0 && fma(2, 3, 4) == 10 && copysign(1, -2) == -1);
    long long big = 1LL << 53;
    assert((double)(big + 1) == (double)big && (float)16777217 == 16777216);
}

static int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

static Point moved(Point p, int by)
{
    p.x += by;
    p.y[1] = (float)by;
    return p;
}

static void structs(void)
{
    Point p = {.y[1] = 2, 3, .x = 7, .low = 1, .u.number = 1.0f, .name = "p"}, q = p;
    assert(p.y[0] == 0 && p.y[1] == 2 && p.y[2] == 3 && p.x == 7 && p.low == 1 && p.high == 0);
    assert(p.u.bits == 0x3F800000);
    q = moved(p, 5);
    assert(p.x == 7 && q.x == 12 && q.y[1] == 5 && moved(q, 1).x == 13 && moved(moved(q, 1), 2).y[1] == 2);
    Point *at = &q;
    at->x--;
    (*at).high = 9;
    assert(q.x == 11 && q.high == 9 && !strcmp(at->name, "p"));
    Point list[2] = {{1}, {.x = 2}};
    at = list;
    at++;
    assert(at->x == 2 && at - list == 1 && at > list && at[-1].x == 1);
    assert((Point){.x = 4}.x == 4 && ((int[]){5, 6, 7})[2] == 7);
    assert(offsetof(Point, y[1]) == 8);
    memset(&q, 0, sizeof q);
    assert(q.x == 0 && !q.name);
    Point copy;
    memcpy(&copy, &list[1], sizeof copy);
    assert(copy.x == 2 && (p.x > 3 ? p : copy).x == 7);
}

static void arrays(void)
{
    assert(sizeof table / sizeof *table == 9 && table[2] == 4 && table[7] == 9 && table[8] == 2 && table[5] == 0);
    assert(matrix[0][2] == 3 && matrix[1][1] == 5 && matrix[1][2] == 0);
    int n = 4, total = 0, square[n];
    for (int i = 0; i < n; i++)
        square[i] = i * i;
    for (int *p = square; p != square + n; p++)
        total += *p;
    assert(total == 14 && 2 [square] == 4);
    char text[16] = "abc";
    assert(text[3] == 0 && strlen(text) == 3 && sizeof text == 16);
    strcat(text, "def");
    assert(!strcmp(text, "abcdef") && strchr(text, 'd') == text + 3 && !strncmp(text, "abz", 2));
    int length = snprintf(text, sizeof text, "%s-%03d|%5.2f|%x", words[1], 7, 2.5, 255u);
    assert(length == 16 && !strcmp(text, "one-007| 2.50|f"));
    int ranges[] = {[0 ... 2] = 8, 1};
    assert(ranges[2] == 8 && ranges[3] == 1);
}

static int sign(int n) { return (n > 0) - (n < 0); }
static int twice(int n) { return 2 * n; }

static void control(void)
{
    int sum = 0, i = 0;
    while (1) {
        if (++i > 10)
            break;
        if (i % 2)
            continue;
        sum += i;
    }
    assert(sum == 30);
    do
        sum--;
    while (sum > 20);
    assert(sum == 20);
    for (;;)
        if (sum++ == 25)
            break;
    for (int k = 0; k < 3;)
        k++;
    for (i = 0; i < 3; i++)
        ;
    assert(sum == 26 && i == 3);
    int seen = 0;
    for (int k = 0; k < 6; k++)
        switch (k) {
        case 0: seen += 1; break;
        case 1:
        case 2: seen += 10; /* fallthrough */
        case 3: seen += 100; break;
        default: seen += 1000;
        }
    assert(seen == 1 + 20 + 300 + 2000);
    int (*f)(int) = sign, (*all[])(int) = {sign, twice};
    assert(f(-3) == -1 && all[1](4) == 8 && (*f)(2) == 1);
    assert((i = 1, i + 1) == 2 && (i ?: 9) == 1 && ({ int t = 4; t + 1; }) == 5);
    assert(factorial(10) == 3628800);
    assert((i && 0) == 0 && (0 || i) == 1);
}

static int next(bool first)
{
    static int calls;
    if (first)
        calls = 10;
    return calls++;
}

static int check(void)
{
    integers();
    floats();
    structs();
    arrays();
    control();
    assert(global == 42);
    assert(next(true) == 10 && next(false) == 11);
    *cursor += 2;
    assert(counter == 2 && __func__[0] == 'c');
    counter = 0;
    return 1;
}

#ifdef PLAIN
int main(void)
{
    return !check();
}
#else
// CHECK: param {{.*}}"w" {{.*}}f32[7]
ht_tensor model(void)
{
    return ht_sum(ht_param(ht_shape(6 + check()), ht_zeros(), "w"));
}

int main(int argc, char **argv)
{
    ht_train(ht_open(&argc, &argv), model, ht_sgd(.lr = 1));
}
#endif
