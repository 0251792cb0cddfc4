// What was once evaluated wrongly, or refused though it is ordinary C: every assertion holds at compile time, and when gcc compiles the file.
// RUN: %hetucc --emit=ir --stop-after=frontend %s | FileCheck %s
// RUN: %cc -D PLAIN %s -o %t -lm && %t

#ifndef PLAIN
#include <hetu/hetu.h>
#endif
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- parameters of array type ---- */

typedef int Three[3];
static int last(const int d[3]) { return d[2]; }
static int last_of(Three d) { return *(d + 2) + (d ? d : d + 1)[0] + (0, d)[1]; }
static int at_least(int d[static 3]) { d[0] = 7, d++; return d[0] - d[-1] + (int)sizeof d; }
static int open(const int d[]) { return d[1]; }
static int rows(int m[][2], int (*n)[2]) { return m[1][0] + n[1][1] + (*(m + 1))[0]; }
static int twice(int n) { return 2 * n; }
static int apply(int f(int), int n) { return f(n) + (*f)(n); }
static void clear(int d[2]) { memset(d, 0, 2 * sizeof *d); }

static void parameters(void)
{
    int a[3] = {1, 2, 3}, m[2][2] = {{1, 2}, {3, 4}};
    assert(last(a) == 3 && last_of(a) == 6 && open(a) == 2);
    assert(at_least(a) == 2 - 7 + 8 && a[0] == 7);
    assert(rows(m, m) == 10 && apply(twice, 3) == 12);
    clear(a);
    assert(a[0] == 0 && a[1] == 0 && a[2] == 3);
}

/* ---- switches and loops ---- */

static int nested(int x)
{
    int r = 0;
    switch (x) {
    case 1: {
        r = 1;
    case 2: r += 2; break;
    }
        if (x > 100) {
        case 3: r = 3;
        } else {
        case 4: r += 4;
        }
        break;
        for (int k = 0; k < 2; k++) {
        case 5: k = 1; r += 5;
        }
        break;
        do {
            r += 10;
        case 6: r += 6;
        } while (r < 20);
        break;
    case 7 ... 9:
        switch (x) {
        case 7: r = 70; break;
        default: r = 80;
        }
        break;
    default: r = 9;
    }
    return r;
}

static int duff(int n)
{
    int sum = 0, i = (n + 3) / 4;
    switch (n % 4) {
    case 0:
        do {
            sum++;
        case 3: sum++;
        case 2: sum++;
        case 1: sum++;
        } while (--i > 0);
    }
    switch (n)
    case 6: sum += 100;
    return sum;
}

#define FROM(i, k) for (; (i) < (k); (i)++)
#define UNTIL(i, k) for (; (i) < (k);)
#define COUNT(i) for (i = 0;; i++)
#define EACH for (;;)

static void control(void)
{
    assert(nested(1) == 3 && nested(2) == 2 && nested(3) == 3 && nested(4) == 4 && nested(5) == 5 && nested(6) == 22);
    assert(nested(7) == 70 && nested(8) == 80 && nested(50) == 9 && duff(7) == 7 && duff(6) == 106);
    int i = 2, c = 0;
    FROM(i, 5) c++;
    UNTIL(i, 9) i += 2;
    assert(c == 3 && i == 9);
    COUNT(i) if (i == 4) break;
    EACH { if (++i > 6) break; }
    assert(i == 7);
    for (const char *s = "for (;;)"; *s; s++)
        c++;
    assert(c == 11);
}

/* ---- types are their declarations ---- */

struct S { int a; };
enum { LOCAL = 1 };
#define TWO(x, y) struct { int a, b; } x = {1, 2}; struct { int b, a; } y = {1, 2}
static int shadowed(void)
{
    struct S { int z, a; };
    enum { LOCAL = 5 };
    struct S s = {3, 4}, *p = &s;
    return s.a + p->z + (int)sizeof(struct S) + LOCAL;
}
struct Nested { union { struct { int a, b; }; int v[2]; }; struct { int c; struct { int d; }; }; };
static int outer = 4;

static void types(void)
{
    struct S s = {7};
    TWO(u, v);
    struct Nested n = {.v = {1, 2}, .d = 6}, o = {{{1, 2}}, {3, {4}}};
    extern int outer;
    assert(shadowed() == 20 && s.a == 7 && sizeof s == 4 && LOCAL == 1);
    assert(u.a == 1 && v.a == 2 && n.a == 1 && n.b == 2 && n.c == 0 && n.d == 6 && o.v[1] == 2 && o.d == 4);
    assert(outer == 4);
}

/* ---- initialisers and bit-fields ---- */

struct B { int a; int : 0; int b, c; };
struct Bits { unsigned u : 3; int i : 5; unsigned : 4; _Bool f : 1; unsigned long w : 33; int : 0; int last; };
struct Pair { int a, b; };
struct Held { char text[4]; struct Pair p; union { int x; struct Pair q; }; };
static int calls;
static int next(void) { return ++calls; }

static void initialisers(void)
{
    struct B x = {1, 2, 3};
    assert(x.a == 1 && x.b == 2 && x.c == 3);
    struct Bits f = {9, -3, 2, .last = 4}, g;
    assert(f.u == 1 && f.i == -3 && f.f == 1 && f.last == 4);
    assert((f.u = 13) == 5 && ++f.u == 6 && (f.u += 3) == 1 && f.i-- == -3 && f.i == -4 && (f.u -= 2) == 7 && -f.u < 0);
    g.u = 2, g.i = 3;
    assert(g.u + g.i == 5);
    calls = 0;
    struct Pair s = {.b = next(), .a = next()};
    assert(s.a == 1 && s.b == 2);
    calls = 0;
    struct Pair r = {.a = next(), .b = 8, .a = next()};
    assert(r.a == 1 && r.b == 8 && calls == 1);
    int i = 0, a[4] = {[0 ... 3] = ++i}, b[] = {[2] = 5, 6, [0] = 1, [1 ... 2] = 4};
    assert(a[0] == 1 && a[3] == 1 && i == 1 && b[0] == 1 && b[1] == 4 && b[2] == 4 && b[3] == 6 && sizeof b == 16);
    struct Pair list[3] = {[0 ... 1] = {next(), 3}}, other[3] = {[0 ... 1].a = next(), [1].b = 9};
    assert(list[0].a == 2 && list[1].a == 2 && list[1].b == 3 && list[2].a == 0 && other[1].a == 3 && other[1].b == 9);
    calls = 0;
    int late[3] = {[0 ... 2] = next(), [0] = next()};
    assert(late[0] == 1 && late[1] == 2 && late[2] == 2);
    calls = 0;
    int mixed[2][2] = {[1][0] = next(), [0][1] = next(), next(), next()};
    assert(mixed[0][1] == 1 && mixed[1][0] == 2 && mixed[1][1] == 3 && calls == 3);
    char braced[4] = {"xyz"};
    struct Held h = {{"abc"}, 1, 2, .q = {3, 4}, .x = 5}, k = {"de", .p.b = 6, .p = {7}};
    assert(!strcmp(braced, "xyz") && !strcmp(h.text, "abc") && h.p.b == 2 && h.x == 5 && k.p.a == 7 && k.p.b == 0);
}

/* ---- pointers behind the end, values that nobody reads ---- */

static void places(void)
{
    int a[4] = {1, 2, 3, 4}, t = 0, m[2][3] = {{1, 2, 3}, {4, 5, 6}};
    for (int *p = a, *e = &a[4]; p < e; p++)
        t += *p;
    for (int *p = &m[0][0]; p != &m[2][0]; p++)
        t += *p;
    int x;
    (void)x;
    x = 1;
    assert(t == 31 && x == 1 && &a[4] - a == 4 && &*a == a && &a[1] + 3 == a + 4);
    assert(!strcmp(__func__, "places") && (x ?: 5) == 1);
}

/* ---- gcc's order ---- */

static int read = 5;
static int set(void) { return read = 9, 1; }
#define AFTER(value) (read = 5, (value))

static void order(void)
{
    int a[4] = {0};
    calls = 0;
    a[next()] = next();
    int apart = next() - next() * 10;
    assert(a[1] == 2 && apart == 3 - 40);
    assert(AFTER(read + set()) == 10 && AFTER(read - set()) == 4 && AFTER(read < set() + 5) == 0 && AFTER(read -= set()) == 8);
}

/* ---- functions ---- */

static void formats(void)
{
    char n[128], few[4];
    int length = snprintf(n, sizeof n, "%hhd.%hx.%hhx.%hd|%.*f|%-*d|%*d|", 300, 0x12345, 0x1ff, 70000, 2, 1.0 / 3, 4, 7, -3, 5);
    assert(length == 30 && !strcmp(n, "44.2345.ff.4464|0.33|7   |5  |"));
    snprintf(n, sizeof n, "%zu %td %jd %lld %#o %+d % d %05d %.3s %5s %-5s| %c%% %e %g %a", (size_t)7, (ptrdiff_t)-2, (intmax_t)3, -4LL, 8, 9, 10, -11,
             "abcdef", "ab", "cd", 'x', 1e4, 1e-5, 0.75);
    assert(!strcmp(n, "7 -2 3 -4 010 +9  10 -0011 abc    ab cd   | x% 1.000000e+04 1e-05 0x1.8p-1"));
    assert(snprintf(few, sizeof few, "%d", 123456) == 6 && !strcmp(few, "123") && snprintf(NULL, 0, "%c%d", 0, 5) == 2);
    const char open[3] = {'a', 'b', 'c'};
    assert(snprintf(n, sizeof n, "%.3s", open) == 3 && !strcmp(n, "abc"));
    for (int i = 0; i < 20000; i++)
        snprintf(n, sizeof n, "h%d.%s", i, "weight");
    assert(!strcmp(n, "h19999.weight"));
}

static void numbers(void)
{
    char n[32];
    snprintf(n, sizeof n, "%a", tanh(0.7));
    assert(!strcmp(n, "0x1.356fb17af2e91p-1") && tgamma(3.3) == 0x1.577ae04a2e93dp+1 && cbrt(2.5 * 2) == 0x1.b5c0fbcfec4d4p+0);
    int exponent;
    double whole;
    assert(frexp(12.0, &exponent) == 0.75 && exponent == 4 && modf(-2.5, &whole) == -0.5 && whole == -2);
    assert(isdigit('7') && !isdigit('x') && isalpha('q') && toupper('q') == 'Q' && tolower('Q') == 'q' && isspace(' '));
    assert(__builtin_popcount(0xF0) == 4 && __builtin_clz(1) == 31 && __builtin_ctzll(8) == 3 && __builtin_ffs(0) == 0);
    assert(fpclassify(0.0) == FP_ZERO && isnormal(1.0) && isgreater(2.0, 1.0) && !isless(2.0f, NAN));
}

static int check(void)
{
    parameters(), control(), types(), initialisers(), places(), order(), formats(), numbers();
    return 4;
}

#ifdef PLAIN
int main(void) { return check() != 4; }
#else
// CHECK: module "model"
static ht_tensor model(void) { return ht_sum(ht_input("x", HT_F32, ht_shape(check()))); }
int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, model, ht_sgd(.lr = 1));
}
#endif
