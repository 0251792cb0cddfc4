"""C that hetucc evaluates at compile time gives gcc's values: random functions, many in each program, are compared with what gcc compiles and runs.

Each program has functions that write text. Each function is a model, whose parameter has that text as its name. A function that hetucc refuses is left out and counted by message;
a crash, an internal error, or another text is a failure. With HETU_LONG=1 there are 500 programs, and gcc's programs run under the address and undefined-behaviour sanitizers.
"""
import collections
import pathlib
import random
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness

FUNCTIONS = 16
OPTIONS = [(), ("-std=gnu17",), ("-std=gnu11",), ("-std=gnu2x",), ("-std=c99",), ("-funsigned-char",), ("-fshort-enums",), ("-funsigned-char", "-fshort-enums")]
# Refusals that the table of probes has, and this generator draws now and then.
EXPECTED = re.compile("C leaves open which operand|arrays of variable length have one dimension|keeps nothing from step to step")
INTEGERS = {"char": (0, 127), "signed char": (-128, 127), "unsigned char": (0, 255), "short": (-32768, 32767), "unsigned short": (0, 65535), "int": (-2**31, 2**31 - 1),
            "unsigned": (0, 2**32 - 1), "long": (-2**63, 2**63 - 1), "unsigned long long": (0, 2**64 - 1), "_Bool": (0, 1)}
HEAD = """#ifndef PLAIN
#include <hetu/hetu.h>
#endif
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#define NAME_(a, b) a##b
#define NAME(a, b) NAME_(a, b)
#define TEXT(x) #x
#define FROM(i, n) for (; (i) < (n); (i)++)
static void marks(char *t) /* names of parameters have letters, digits and a few marks */
{
    for (; *t; t++)
        *t = *t == ' ' ? '_' : *t == '<' || *t == '>' ? '.' : *t == '+' ? 'p' : *t == '#' ? 'h' : *t;
}
#define PUT(...) (void)snprintf(o + strlen(o), 400 - strlen(o), __VA_ARGS__)
"""


class Writer:
    """Writes functions. Arithmetic is on unsigned types, or on values that are small, so that nothing is undefined."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.outer = []

    def small(self):
        return str(self.random.randint(-99, 99))

    def constant(self, kind):
        low, high = INTEGERS[kind]
        return str(self.random.choice([max(low, -100), min(high, 117), self.random.randint(max(low, -1000), min(high, 1000))]))

    def expression(self, names, depth=2):
        """An expression of unsigned long long over integers of any type."""
        if depth == 0:
            return self.random.choice([*names, self.small()])
        a, b, c = (self.expression(names, depth - 1) for _ in range(3))
        form = self.random.choice(["(0ull + {a} {op} {b})", "((0u + {a}) >> ({b} & 15))", "({a} < {b} ? {c} : 0ull + {b})", "(({a}) % (({b} & 31) + 1u))", "!({a} == {b})",
                                   "(({t})({a}) ^ 5u)", "(({a}) && ({b}) || ({c}))",
                                   "((void)({a}), ~0ull & ({b}))"])  # gcc 12 ends with an internal error at (_Bool)(1, 2)
        return form.format(a=a, b=b, c=c, op=self.random.choice("+-*&|^"), t=self.random.choice(list(INTEGERS)))

    def conversions(self, n):
        kinds = [self.random.choice(list(INTEGERS)) for _ in range(4)]
        lines = [f"{k} v{i} = {self.constant(k)};" for i, k in enumerate(kinds)]
        names = [f"v{i}" for i in range(4)]
        for i in range(5):
            target = self.random.choice(names)
            lines.append(f"{target} = ({kinds[int(target[1])]}){self.expression(names)};")
        return [*lines, 'PUT("%llx.%llx.%d", v0 + 0ull, v1 * 3ull, v2 < v3);', 'PUT("%llx", ' + self.expression(names) + " + 0ull);"]

    def arrays(self, n):
        form = self.random.choice([f"int d[{self.random.randint(3, 5)}]", "int d[static 3]", "int d[]", "const int *d"])
        writes = "" if "const" in form else f"d[{self.random.randint(0, 2)}] += {self.small()}; "
        self.outer.append(f"static int sum{n}({form}, int (*m)[3]) {{ int s = 0; {writes}m[1][2] = d[1]; for (const int *p = d, *e = &d[3]; p < e; p++) s = s * 3 + *p; return s; }}")
        values = [self.small() for _ in range(5)]
        first, last = sorted(self.random.sample(range(5), 2))
        return [f"int a[5] = {{{', '.join(values)}, [{first} ... {last}] = {self.small()}}}, m[2][3] = {{[1] = {{{self.small()}}}, [0][2] = {self.small()}}};",
                f"int s = sum{n}(a, m);", 'PUT("%d.%d.%d.%d", s, a[0], a[4], m[1][2] + m[0][2]);', 'PUT("%zu", sizeof a / sizeof *a + sizeof m[0]);']

    def switches(self, n):
        value = self.random.randint(0, 6)
        steps = [f"r = r * 3 + {self.random.randint(1, 9)};" + (" break;" if self.random.random() < 0.3 else "") for _ in range(6)]
        text = f"switch (i) {{ case 0: {steps[0]} case 1: {{ {steps[1]} case 2: {steps[2]} {{ case 3: {steps[3]} }} }} default: {steps[4]} case 5 ... 6: {steps[5]} }}"
        return ["int r = 1, i = 0;", f"FROM(i, {value + 2}) {{ {text} if (r > 9000) break; r %= 977; }}", 'PUT("%d.%d", r, i);',
                f"do {{ r--; if (r % {self.random.randint(2, 5)} == 0) continue; i++; }} while (r > {self.random.randint(0, 20)} && i < 40);", 'PUT(".%d.%d", r, i);']

    def records(self, n):
        a, b, c = (self.small() for _ in range(3))
        self.outer.append(f"struct S{n} {{ signed char a; union {{ struct {{ short low, high; }}; int whole; }}; int t[3]; double f; }};")
        self.outer.append(f"static struct S{n} moved{n}(struct S{n} s, struct S{n} *to) {{ s.a += 1; to->t[1] = s.a; s.t[2] = to->whole; return s; }}")
        shadow = self.random.choice(["", f"struct S{n} {{ int z, a; }} u = {{{a}, {b}}}; PUT(\"%d.\", u.a);"])
        return [f"struct S{n} s = {{.t[1] = {a}, {b}, .a = {c}, .low = {a}, .f = {self.small()}.25}}, k = {{.whole = {b}}};", f"struct S{n} r = moved{n}(s, &k);",
                f"{{ {shadow} }}", 'PUT("%d.%d.%d.%d.%d", s.a, r.a, k.t[1], r.t[2], s.t[2]);', f'PUT("%zu.%zu.%g", sizeof s, offsetof(struct S{n}, t[1]), r.f);',
                f'PUT("%d", ((struct S{n}){{.t = {{{b}, {c}}}}}).t[1]);']

    def formats(self, n):
        flags, width = self.random.choice(["", "-", "0", "+", " ", "#"]), self.random.choice(["", "3", "9"])
        letter = self.random.choice("diuxXo")
        flags = "" if flags == "#" and letter in "diu" or flags in "+ " and letter not in "di" else flags
        size, value = self.random.choice([("hh", ""), ("h", ""), ("", ""), ("l", "l"), ("ll", "ll")])
        kind = "" if letter in "di" else "u"
        number = self.random.randint(0, 2**31 - 1) if kind else self.random.randint(-2**31 + 1, 2**31 - 1)
        return [f'PUT("<%{flags}{width}{size}{letter}>", {number}{kind}{value});', f'PUT("<%{self.random.choice(["", "-"])}*.*{self.random.choice("feg")}>", 12, {self.random.randint(0, 6)}, {self.small()} / {self.random.randint(1, 9)}.0);',
                f'PUT("<%.{self.random.randint(0, 5)}s%c>", "words", 65 + {self.random.randint(0, 25)});', f'PUT("%s", TEXT(a{n} + b));']

    def calls(self, n):
        self.outer.append(f"static unsigned f{n}(unsigned k) {{ return k < 2 ? k + {self.random.randint(0, 9)} : f{n}(k - 1) * 3 + f{n}(k - 2); }}")
        self.outer.append(f"static unsigned g{n}(unsigned k) {{ return k * {self.random.randint(2, 99)}u - 7; }}")
        self.outer.append(f"enum E{n} {{ A{n} = {self.small()}, B{n}, C{n} = 1 << 10 }};")
        return [f"unsigned (*t[])(unsigned) = {{f{n}, g{n}}}, r = 0;", f"for (unsigned i = 0; i < {self.random.randint(2, 7)}; i++) r ^= t[i & 1](i + NAME(C, {n}) % 3);",
                f'PUT("%u.%d", r, B{n});', f'const char *w = "{self.random.choice(["abcabc", "hello", "xyz"])}"; char b[8] = {{"{self.random.choice(["ab", "lo", "z"])}"}};',
                'PUT("%zu.%zu.%d", strlen(w), strcspn(w, b), strstr(w, b) ? (int)(strstr(w, b) - w) : -1);']

    def floats(self, n):
        return [f"float x = {self.small()}.1f; double y = {self.small()} / 7.0;", f"for (int i = 0; i < {self.random.randint(1, 9)}; i++) {{ x = x * 0.5f + (float)y; y = x - y / 3; }}",
                'PUT("%a.%a", (double)x, y);', f'PUT("%d.%d.%u", (int)(x * 3), x < y, (unsigned char)({self.random.randint(0, 255)}.9));']

    def bit_fields(self, n):
        fields, lines = [], []
        for i in range(self.random.randint(3, 6)):
            base, most = self.random.choice([("unsigned", 32), ("signed", 32), ("unsigned char", 8), ("short", 16), ("signed char", 8), ("_Bool", 1), ("unsigned long", 32)])
            fields.append((f"f{i}", base, self.random.randint(1, most)))
        members = "".join(self.random.choice(["", "", " unsigned : 3;", " int : 0;", " char c%d;" % i]) + f" {base} {name} : {width};" for i, (name, base, width) in enumerate(fields))
        self.outer.append(f"struct B{n} {{{members} int last; }};")
        lines = [f"struct B{n} s = {{.{self.random.choice(fields)[0]} = {self.small()}, .last = {self.small()}}}, t = {{0}}, *p = &t;"]
        for _ in range(6):
            name, other = self.random.choice(fields)[0], self.random.choice(fields)[0]
            form = self.random.choice(["s.{a} = {n};", "p->{a} += {n};", "s.{a} ^= p->{b};", "++s.{a};", "p->{a}--;", "p->{a} = s.{b};", "s.{a} = 3ll - s.{b} * {n}ll;", "s.last ^= (s.{a} = {n});", "t = s;",
                                       "s.last ^= ~s.{a} & (p->{b} < {n});"])
            lines.append(form.format(a=name, b=other, n=self.small()))
        shown = " ".join(f's.{name} * 1LL, p->{name} * 1LL,' for name, _, _ in fields)
        return [*lines, f'PUT("{"%lld." * (2 * len(fields))}%d.%zu", {shown} s.last, sizeof s);']

    def variable_lengths(self, n):
        size, other = self.random.randint(1, 6), self.random.randint(1, 5)
        self.outer.append(f"static int filled{n}(int k, int *a) {{ int t[k], s = 0; for (int i = 0; i < k; i++) t[i] = i * {self.small()}; for (int i = 0; i < k; i++) s = s * 3 + t[i] - a[i % {size}]; return s + (int)sizeof t; }}")
        deep = self.random.random() < 0.2
        more = [f"int m[k][{other}]; m[k - 1][{other - 1}] = {self.small()}; PUT(\".%d\", m[k - 1][{other - 1}]);"] if not deep else [f"int j = {other}, m[k][j]; m[k - 1][j - 1] = 4; PUT(\".%d\", m[k - 1][j - 1]);"]
        return [f"int k = {size}; int a[k]; char text[k + 9];", f"for (int i = 0; i < k; i++) a[i] = i ^ {self.small()};", f"k += {other}; PUT(\"%zu.%d\", sizeof a / sizeof *a, filled{n}({other}, a));",
                f"(void)snprintf(text, sizeof text, \"%d\", {self.random.randint(-10**8, 10**8)}); PUT(\".%s.%zu\", text, sizeof text);", *more,
                f"for (int i = 1; i < {other + 1}; i++) {{ short v[i]; v[i - 1] = (short)(i * {self.small()}); PUT(\".%d\", v[i - 1] + (int)sizeof v); }}"]

    def statics(self, n):
        first = self.random.choice(["", f"kept = {self.small()};", f"kept = {self.small()};", f"kept = {self.small()};"])
        self.outer.append(f"static int next{n}(int k) {{ static const int table[] = {{{self.small()}, {self.small()}, {self.small()}}}; static int last; last = k; last += table[(unsigned)k % 3]; return last; }}")
        return [f"static int kept = {self.small()}; static const char *const words[] = {{\"one\", \"two\", \"three\"}};", first,
                f"for (int i = 0; i < {self.random.randint(1, 5)}; i++) {{ static int inner; inner = i; kept += next{n}(inner) + inner; }}", f'PUT("%d.%s", {"kept" if first else "1"}, words[{self.random.randint(0, 2)}]);']

    def choices(self, n):
        return [f"int v = _Generic({self.random.choice(['1', '1.0', '1u', 'o'])}, int: 1, double: 2, default: 3);", 'PUT("%d", v);'] if self.random.random() < 0.3 else \
               [f'_Static_assert(sizeof(int) == 4, "int"); __typeof__({self.random.choice(["1", "1.5f", "1ull", "(char)1"])}) v = {self.random.randint(0, 99)};', 'PUT("%zu.%d", sizeof v, (int)v + (int)_Alignof(__typeof__(v)));']

    def effects(self, n):
        """Initialisers, arguments and operands that change what others may read."""
        self.outer.append(f"static int g{n} = {self.random.randint(1, 9)}, seen{n};")
        self.outer.append(f"static int set{n}(int k) {{ seen{n} = seen{n} * 7 + k; return g{n} = k; }}")
        self.outer.append(f"static int three{n}(int a, int b, int c) {{ return a * 100 + b * 10 + c; }}")

        def operand(depth):
            a, b = (operand(depth - 1) for _ in range(2)) if depth else ("", "")
            simple = [f"g{n}", f"set{n}({self.random.randint(0, 9)})", str(self.random.randint(1, 9)), "x", f"set{n}({self.random.randint(0, 9)})"]
            return self.random.choice(simple) if not depth or self.random.random() < 0.3 else self.random.choice([f"({a} {op} {b})" for op in ("+", "-", "*", "<", "==", "&", "^", ",", "&&")])
        lines = [f"g{n} = {self.random.randint(1, 9)}; seen{n} = 0; int x = {self.random.randint(0, 9)}, a[3];"]
        form = self.random.choice(["struct {{ int p, q[2]; }} t = {{.q = {{{a}, {b}}}, .p = {c}}}; PUT(\"%d.%d.%d\", t.p, t.q[0], t.q[1]);", "int t[] = {{{a}, [3] = {b}, [1] = {c}}}; PUT(\"%d.%d.%d\", t[0], t[3], t[1]);",
                                   "PUT(\"%d\", three" + str(n) + "({a}, {b}, {c}));", "PUT(\"%d\", {d});", "g" + str(n) + " = {d}; PUT(\"%d\", g" + str(n) + ");",
                                   "g" + str(n) + " += {d}; PUT(\"%d\", g" + str(n) + ");", "a[{a} & 1 ? 1 : 2] = {b}; PUT(\"%d\", x);"])
        lines.append(form.format(a=operand(1), b=operand(1), c=operand(0), d=operand(2)))
        return [*lines, f'PUT(".%d.%d", g{n}, seen{n});']

    def jumps(self, n):
        a, b, c = (self.random.randint(1, 9) for _ in range(3))
        inside = self.random.choice(["if (r % {a} == {b} % {a}) goto next; r += i; next:;", "{{ r += {a}; if (r > {b}0) goto out; }} r++;", "switch (i) {{ case 1: r += 5; goto next; default: r++; }} r *= 2; next: r %= 97;"])
        self.outer.append(f"static int walk{n}(int k) {{ int r = 0; goto test; back: for (int i = 0; i < {c}; i++) {{ {inside.format(a=a, b=b)} }} test: if (k-- > 0) goto back; r += 1000; {'out: ' if 'out' in inside else ''}return r; }}")
        return [f'PUT("%d.%d", walk{n}({a % 4}), walk{n}({b % 3}));', f"int i = 0, m = {c}; again: if (i++ < {a}) {{ m = m * 3 + i; if (m > {b}00) goto end; goto again; }} m = -m; end: PUT(\".%d.%d\", m, i);"]

    def function(self, n):
        kind = self.random.choice([self.conversions, self.arrays, self.switches, self.records, self.formats, self.calls, self.floats, self.bit_fields, self.bit_fields, self.variable_lengths,
                                   self.statics, self.choices, self.effects, self.effects, self.jumps])
        lines = kind(n)
        return f"static void case{n}(char *o)\n{{\n    " + "\n    ".join(lines) + "\n}\n"


def program(seed):
    writer = Writer(seed)
    text = HEAD
    for n in range(FUNCTIONS):
        writer.outer = []
        body = writer.function(n)
        text += f"#ifndef GONE{n}\n" + "\n".join(writer.outer) + "\n" + body + "#endif\n"
    return text


def ending(cases):
    """The models and main of a program with these cases."""
    models = "".join(f'static ht_tensor model{n}(void) {{ char t[512] = "{n}:"; case{n}(t); marks(t); return ht_mean(ht_param(ht_shape(2), ht_ones(), t)); }}\n' for n in cases)
    starts = "".join(f"    ht_infer(s, model{n});\n" for n in cases)
    plain = "".join(f'    {{ char t[512] = "{n}:"; case{n}(t); marks(t); puts(t); }}\n' for n in cases)
    return f"#ifdef PLAIN\nint main(void)\n{{\n{plain}    return 0;\n}}\n#else\n{models}int main(int argc, char **argv)\n{{\n    ht_session *s = ht_open(&argc, &argv);\n{starts}    return 0;\n}}\n#endif\n"


def texts(output):
    return dict(line.split(":", 1) for line in output)


def evaluated(bench, path, source, options):
    """The texts of the functions that hetucc evaluates, and the messages of the refusals."""
    cases, refusals = list(range(FUNCTIONS)), collections.Counter()
    for _ in range(4):
        gone = "".join(f"#define GONE{n}\n" for n in range(FUNCTIONS) if n not in cases)
        path.write_text(gone + source + ending(cases))
        done = harness.run([bench.hetucc, "--emit=ir", "--stop-after=frontend", *options, path], check=False)
        if done.returncode == 0:
            return texts(re.findall(r'"(\d+:[^"]*)"', done.stdout)), refusals
        if done.returncode != 1 or "internal error" in done.stderr or not re.search(r":\d+:\d+: error: ", done.stderr):
            raise harness.Failure(f"{path}: exit {done.returncode}\n{done.stderr[-2000:]}")
        refusals.update(re.sub(r"model\d+|\"\w+\"", "it", message) for message in re.findall(r": error: (.*)", done.stderr))
        gone = {int(n) for n in re.findall(r"(?:in the call of case|: error: the model model)(\d+)", done.stderr)}
        cases = [n for n in cases if n not in gone]
        if not gone:
            break
    raise harness.Failure(f"{path}: refused as a whole\n{done.stderr[-2000:]}")


def check(bench, seed):
    source, options = program(seed), OPTIONS[seed % len(OPTIONS)]
    path, binary = bench.path(f"values{seed}.c"), bench.path(f"values{seed}")
    path.write_text(source + ending(range(FUNCTIONS)))
    extra = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if harness.LONG else []
    harness.run(["gcc", "-w", "-O0", "-DPLAIN", *extra, *options, path, "-o", binary])
    wanted = texts(harness.run([binary]).stdout.splitlines())
    found, refusals = evaluated(bench, path, source, options)
    for n, text in found.items():
        if text.replace("\\\\", "\\") != wanted[n]:
            raise harness.Failure(f"{path}: case{n} is {text!r}, gcc has {wanted[n]!r}")
    odd = sum(count for message, count in refusals.items() if not EXPECTED.search(message))
    if len(found) + sum(refusals.values()) < FUNCTIONS or odd > FUNCTIONS // 4:
        raise harness.Failure(f"{path}: {len(found)} of {FUNCTIONS} functions are evaluated: {dict(refusals)}")
    return "; ".join(f"{count} refused: {message}" for message, count in refusals.items())


def tests(bench, _arguments):
    return [(f"seed{s}", lambda s=s: check(bench, s), s >= 40) for s in range(500)]


if __name__ == "__main__":
    harness.main("values", tests)
