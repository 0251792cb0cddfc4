"""Writes random models over all operators, types and shapes as C text, valid ones and ones with a mistake, for front_doors.py.

A model is a list of C statements over a pool of values whose types and shapes are known here. A model with a mistake ends with an operator whose operands were changed:
an extent by one, a dimension more or less, another type, an argument out of range, no tensor at all. The changed model may still be valid: the two compilers decide that.
"""
import random

FLOATS = ["HT_F32", "HT_F32", "HT_F64", "HT_BF16"]
KINDS_OF_MISTAKES = 6
EXTENTS = [1, 2, 2, 3, 3, 4, 5, 6]


def elements(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def shape_text(shape):
    return f"ht_shape({', '.join(map(str, shape))})" if shape else "ht_scalar_shape()"


OPTIMIZERS = ["ht_sgd(.lr = 0.05f)", "ht_adamw(.lr = 0.01f)", "ht_sgd(.lr = 0.05f, .momentum = 0.5f, .clip = 0.1f)"]


class Value:
    def __init__(self, text, dtype, shape):
        self.text, self.dtype, self.shape = text, dtype, list(shape)


class Model:
    """`second` is what another program of the session does with the model: None, "infer", or an optimizer. `lines` are the body of a model function, `inputs` are (name, dtype, elements, bound of integers), `outputs` (name, dtype, elements)."""

    def __init__(self, seed, index, mistake):
        self.random = random.Random(f"{seed} {index}")
        self.index, self.mistake = index, mistake
        self.lines, self.inputs, self.outputs, self.pool, self.names = [], [], [], [], 0
        self.optimizer = self.random.choice(OPTIMIZERS)
        self.second = self.random.choice([None, "infer", *OPTIMIZERS])
        self.build()

    # ---- values ----

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def extent(self):
        return 0 if self.random.random() < 0.04 else self.random.choice(EXTENTS)

    def shape(self, rank):
        return [self.extent() for _ in range(rank)]

    def let(self, text, dtype, shape):
        name = self.name("v")
        self.lines.append(f"ht_tensor {name} = {text};")
        value = Value(name, dtype, shape)
        self.pool.append(value)
        return value

    def parameter(self, shape, init=None):
        name = self.name("p")
        options = self.random.choice(["", "", "", ", .frozen = true", ", .no_decay = true"])
        init = init or self.random.choice(["ht_normal(0.5)", "ht_uniform(0.7)", "ht_constant(0.3)"])
        return self.let(f'ht_param({shape_text(shape)}, {init}, "{name}"{options})', "HT_F32", shape)

    def input(self, shape, dtype="HT_F32", bound=3):
        name = self.name("x")
        self.inputs.append((name, dtype, elements(shape), max(bound, 1)))
        return self.let(f'ht_input("{name}", {dtype}, {shape_text(shape)})', dtype, shape)

    def make(self, shape, dtype):
        """A new value of this shape and type."""
        if dtype in ("HT_I32", "HT_I64"):
            return self.input(shape, dtype)
        source = self.parameter(shape) if self.random.random() < 0.5 else self.input(shape)
        return source if dtype == "HT_F32" else self.let(f"ht_cast({source.text}, {dtype})", dtype, shape)

    def pick(self, least=0, most=6):
        """A floating-point value with so many dimensions."""
        fitting = [v for v in self.pool if v.dtype in FLOATS and least <= len(v.shape) <= most]
        if fitting and self.random.random() < 0.8:
            return self.random.choice(fitting)
        return self.make(self.shape(self.random.randint(least, min(most, max(least, 3)))), self.random.choice(FLOATS))

    # ---- mistakes ----

    def spoil(self, values, numbers):
        """Changes one operand, or one number."""
        choices = [("value", i) for i in range(len(values)) if values[i]] + [("number", i) for i in range(len(numbers))]
        kind, i = self.random.choice(choices)
        if kind == "number":
            numbers[i] += self.random.choice([-100, -7, -1, 1, 2, 9])
            return
        value, how = values[i], self.random.randrange(KINDS_OF_MISTAKES)
        shape = list(value.shape)
        if how == 0 and shape:
            shape[self.random.randrange(len(shape))] += self.random.choice([-1, 1])
            shape = [max(e, 0) for e in shape]
        elif how == 1 and shape:
            shape.pop(self.random.randrange(len(shape)))
        elif how == 2:
            shape.insert(self.random.randrange(len(shape) + 1), self.random.choice([1, 2]))
        elif how == 3:
            values[i] = None
            return
        dtype = self.random.choice(["HT_F32", "HT_BF16", "HT_F64", "HT_I32", "HT_I64"]) if how >= 4 else value.dtype
        values[i] = self.make(shape, dtype)

    def call(self, function, values, numbers, build, dtype, shape, spoilt):
        """Appends a call; `build(texts of operands, numbers)` is its text."""
        if spoilt:
            self.spoil(values, numbers)
        text = build([v.text if v else "HT_NONE" for v in values], numbers)
        return self.let(text, dtype, shape)

    # ---- operators ----

    def unary(self, spoilt):
        x = self.pick()
        function = self.random.choice(["ht_relu", "ht_gelu", "ht_silu", "ht_detach"])
        return self.call(function, [x], [], lambda t, n: f"{function}({t[0]})", x.dtype, x.shape, spoilt)

    def scale(self, spoilt):
        x = self.pick()
        return self.call("ht_scale", [x], [], lambda t, n: f"ht_scale({t[0]}, 0.7f)", x.dtype, x.shape, spoilt)

    def binary(self, spoilt):
        x = self.pick()
        z = self.make(x.shape[self.random.randint(0, len(x.shape)):], x.dtype)
        function = self.random.choice(["ht_add", "ht_sub", "ht_mul"])
        return self.call(function, [x, z], [], lambda t, n: f"{function}({t[0]}, {t[1]})", x.dtype, x.shape, spoilt)

    def linear(self, spoilt):
        x = self.pick(1, 3)
        out = self.shape(self.random.randint(0, 2))
        w = self.make(out + x.shape[-1:], x.dtype)
        b = self.make(out, x.dtype) if self.random.random() < 0.5 else None
        return self.call("ht_linear", [x, w, b], [], lambda t, n: f"ht_linear({t[0]}, {t[1]}, {t[2]})", x.dtype, x.shape[:-1] + out, spoilt)

    def matmul(self, spoilt):
        x = self.pick(2, 4)
        n = self.extent()
        w = self.make(x.shape[:-2] + [x.shape[-1], n], x.dtype)
        return self.call("ht_matmul", [x, w], [], lambda t, _: f"ht_matmul({t[0]}, {t[1]})", x.dtype, x.shape[:-1] + [n], spoilt)

    def softmax(self, spoilt):
        x = self.pick(1)
        return self.call("ht_softmax", [x], [], lambda t, n: f"ht_softmax({t[0]})", x.dtype, x.shape, spoilt)

    def norm(self, spoilt):
        x = self.pick(1)
        kind = self.random.choice(["layer", "rms", "l2"])
        w, b = (self.make(x.shape[-1:], "HT_F32") if self.random.random() < 0.5 else None for _ in range(2))
        if kind == "layer":
            return self.call("", [x, w, b], [], lambda t, n: f"ht_layer_norm({t[0]}, {t[1]}, {t[2]}, 1e-3f)", x.dtype, x.shape, spoilt)
        if kind == "rms":
            return self.call("", [x, w], [], lambda t, n: f"ht_rms_norm({t[0]}, {t[1]}, 1e-3f)", x.dtype, x.shape, spoilt)
        return self.call("", [x], [], lambda t, n: f"ht_l2_norm({t[0]}, 1e-3f)", x.dtype, x.shape, spoilt)

    def embedding(self, spoilt):
        rows = self.random.randint(3, 6)
        table, ids = self.parameter([rows, self.extent()]), self.input(self.shape(self.random.randint(0, 2)), self.random.choice(["HT_I32", "HT_I64"]))
        return self.call("", [table, ids], [], lambda t, n: f"ht_embedding({t[0]}, {t[1]})", "HT_F32", ids.shape + table.shape[1:], spoilt)

    def rope(self, spoilt):
        b, s, h, d = self.shape(self.random.randint(0, 1)), self.extent(), self.extent(), 2 * self.random.randint(1, 2)
        x = self.make(b + [s, h, d], "HT_F32")
        if self.random.random() < 0.5:
            return self.call("", [x], [], lambda t, n: f"ht_rope({t[0]}, 100)", "HT_F32", x.shape, spoilt)
        at = self.input(b + [s], "HT_I32")
        return self.call("", [x, at], [], lambda t, n: f"ht_rope_positions({t[0]}, {t[1]}, 100)", "HT_F32", x.shape, spoilt)

    def attention(self, spoilt):
        b, s, g, d = self.shape(self.random.randint(0, 1)), self.random.choice(EXTENTS), self.random.randint(1, 2), self.random.randint(1, 3)
        seg = self.input(b + [s], "HT_I32") if self.random.random() < 0.3 else None
        t_ = s if seg else self.random.choice(EXTENTS)
        q = self.make(b + [s, g * self.random.randint(1, 2), d], "HT_F32")
        k, v = self.make(b + [t_, g, d], "HT_F32"), self.make(b + [t_, g, d], "HT_F32")
        return self.call("", [q, k, v, seg], [], lambda t, n: f"ht_attention({t[0]}, {t[1]}, {t[2]}, {t[3]}, {'true' if s <= t_ else 'false'})", "HT_F32", q.shape, spoilt)

    def cross_entropy(self, spoilt):
        x = self.make(self.shape(self.random.randint(0, 2)) + [self.random.randint(3, 6)], "HT_F32")
        target = self.input(x.shape[:-1], self.random.choice(["HT_I32", "HT_I64"]))
        return self.call("", [x, target], [], lambda t, n: f"ht_cross_entropy({t[0]}, {t[1]})", "HT_F32", x.shape[:-1], spoilt)

    def reshape(self, spoilt):
        x = self.pick()
        total, shape = elements(x.shape), []
        left = total
        for _ in range(self.random.randint(0, 3)):
            divisors = [e for e in range(1, left + 1) if left % e == 0] if left else [1, 0]
            shape.append(self.random.choice(divisors))
            left = left // shape[-1] if shape[-1] else 0
        if elements(shape) != total:
            shape.append(left)
        asked = list(shape)
        if asked and self.random.random() < 0.5 and total:
            asked[self.random.randrange(len(asked))] = -1
        return self.call("", [x], asked, lambda t, n: f"ht_reshape({t[0]}, {shape_text(n)})", x.dtype, shape, spoilt)

    def transpose(self, spoilt):
        x = self.pick(1)
        a, b = self.random.randrange(len(x.shape)), self.random.randrange(len(x.shape))
        shape = list(x.shape)
        shape[a], shape[b] = shape[b], shape[a]
        a -= self.random.choice([0, len(shape)])
        return self.call("", [x], [a, b], lambda t, n: f"ht_transpose({t[0]}, {n[0]}, {n[1]})", x.dtype, shape, spoilt)

    def slice(self, spoilt):
        x = self.pick(1)
        d = self.random.randrange(len(x.shape))
        start = self.random.randint(0, x.shape[d])
        length = self.random.randint(0, x.shape[d] - start)
        function = self.random.choice(["ht_slice", "ht_slice_at"])
        return self.call("", [x], [d, start, length], lambda t, n: f"{function}({t[0]}, {n[0]}, {n[1]}, {n[2]})", x.dtype, x.shape[:d] + [length] + x.shape[d + 1:],
                         spoilt)

    def concat(self, spoilt):
        x = self.pick(1)
        d, members, total = self.random.randrange(len(x.shape)), [x], x.shape[self.random.randrange(0, 1)]
        for _ in range(self.random.randint(0, 2)):
            members.append(self.make(x.shape[:d] + [self.extent()] + x.shape[d + 1:], x.dtype))
        total = sum(m.shape[d] for m in members)
        return self.call("", members, [d], lambda t, n: f"ht_concat(ht_list({', '.join(t)}), {n[0]})", x.dtype, x.shape[:d] + [total] + x.shape[d + 1:], spoilt)

    def pad(self, spoilt):
        x = self.pick(1)
        d = self.random.randrange(len(x.shape))
        start, more = self.random.randint(0, 2), self.random.randint(0, 2)
        total = start + x.shape[d] + more
        return self.call("", [x], [d, start, total], lambda t, n: f"ht_pad_at({t[0]}, {n[0]}, {n[1]}, {n[2]})", x.dtype, x.shape[:d] + [total] + x.shape[d + 1:], spoilt)

    def dropout(self, spoilt):
        x = self.pick()
        return self.call("", [x], [], lambda t, n: f"ht_dropout({t[0]}, 0.25f)", x.dtype, x.shape, spoilt)

    def cast(self, spoilt):
        x, n = self.random.choice(self.pool) if self.pool else self.pick(), self.random.randint(0, 3)
        if self.random.random() < 0.3:
            return self.call("", [], [n], lambda t, k: f"ht_cast(ht_iota({k[0]}, HT_I32), HT_F32)", "HT_F32", [n], spoilt)
        return self.call("", [x], [], lambda t, k: f"ht_cast({t[0]}, HT_F32)", "HT_F32", x.shape, spoilt)

    def total(self, spoilt):
        x = self.pick()
        function = self.random.choice(["ht_sum", "ht_mean"]) if elements(x.shape) else "ht_sum"
        return self.call("", [x], [], lambda t, n: f"{function}({t[0]})", x.dtype, [], spoilt)

    OPERATORS = [unary, scale, binary, binary, linear, linear, matmul, softmax, norm, norm, embedding, rope, attention, cross_entropy, reshape, reshape, transpose, slice,
                 concat, pad, dropout, cast, total]

    # ---- what is no operator ----

    def names_twice(self):
        """A parameter, an input or an output a second time, the same or another."""
        kind, shape = self.random.randrange(3), self.shape(2)
        again = shape if self.random.random() < 0.4 else shape[::-1] + self.shape(self.random.randint(0, 1))
        if kind == 0:
            first = self.parameter(shape, "ht_normal(0.5)")
            text = self.lines[-1].split(" = ", 1)[1].replace(shape_text(shape), shape_text(again), 1)
            text = text if self.random.random() < 0.6 else text.replace("0.5", self.random.choice(["0.5", "0.25"]))
            self.let(text.rstrip(";"), "HT_F32", again)
        elif kind == 1:
            first = self.input(shape)
            self.let(self.lines[-1].split(" = ", 1)[1].replace(shape_text(shape), shape_text(again), 1).rstrip(";"), "HT_F32", again)
        else:
            first = self.pick()
            name = self.random.choice(["twice", "twice", "", "a b"])
            self.lines.append(f'ht_output({first.text}, "twice"); ht_output({first.text}, "{name}");')

    def build(self):
        r = self.random
        for _ in range(r.randint(2, 7)):
            r.choice(self.OPERATORS)(self, False)
        for value in r.sample(self.pool, min(2, len(self.pool))):
            name = self.name("o")
            self.outputs.append((name, value.dtype, elements(value.shape)))
            self.lines.append(f'ht_output({value.text}, "{name}");')
        terms = [v for v in self.pool if v.dtype == "HT_F32" and elements(v.shape)]
        if not terms:
            terms = [self.parameter([2])]
        if self.mistake:
            if r.random() < 0.15:
                self.names_twice()
            else:
                spoilt = r.choice(self.OPERATORS)(self, True)
                self.lines.append(f'ht_output({spoilt.text}, "spoilt");')
        loss = f"ht_mean({terms[-1].text})"
        for term in terms[:-1]:
            loss = f"ht_add({loss}, ht_mean({term.text}))"
        self.lines.append(f"return {loss};")

    def text(self):
        body = "\n    ".join(self.lines)
        return f"static ht_tensor model{self.index}(void)\n{{\n    {body}\n}}\n"


PRELUDE = """#include <hetu/hetu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const void *made(const char *name, ht_dtype dtype, long count, int bound)
{
    static union { float f[4096]; double d[4096]; uint16_t h[4096]; int32_t i[4096]; int64_t l[4096]; } data[64];
    static int next;
    void *to = &data[next++ % 64];
    for (long i = 0; i < count; i++) {
        long k = (long)(strlen(name) + (unsigned char)name[strlen(name) - 1] + i * 7);
        double f = sin((double)k);
        if (dtype == HT_F32) ((float *)to)[i] = (float)f;
        else if (dtype == HT_F64) ((double *)to)[i] = f;
        else if (dtype == HT_BF16) ((uint16_t *)to)[i] = (uint16_t)(f < 0 ? 0xbf00 : 0x3f00);
        else if (dtype == HT_I32) ((int32_t *)to)[i] = (int32_t)(k % bound);
        else ((int64_t *)to)[i] = k % bound;
    }
    return to;
}

static void print(const char *kind, const char *name, const float *values, size_t count)
{
    printf("%s %s", kind, name);
    for (size_t i = 0; i < count; i++)
        printf(" %.9g", (double)values[i]);
    printf("\\n");
}

"""


def second_text(m, feeds):
    """The other program of a session runs between the steps of the first."""
    if not m.second:
        return "", ""
    if m.second == "infer":
        return f"        ht_program *q = ht_infer(session, model{m.index});\n", f"            ht_run(q{feeds});\n"
    return f"        ht_program *q = ht_train(session, model{m.index}, {m.second});\n", f"            values[2 + i] = ht_step(q{feeds});\n"


def program_text(models):
    """A program that runs the model of its first argument: two steps, its outputs and its parameters; hetucc compiles all."""
    text = PRELUDE + "".join(m.text() for m in models) + "\nint main(int argc, char **argv)\n{\n    static float values[1 << 16];\n    size_t count;\n"
    text += "    int model = atoi(argv[1]);\n    ht_session *session = ht_open(&argc, &argv);\n    ht_program *p = NULL;\n"
    for m in models:
        feeds = "".join(f', ht_feed("{n}", made("{n}", {d}, {c}, {b}))' for n, d, c, b in m.inputs)
        text += f"    if (model == {m.index}) {{\n        p = ht_train(session, model{m.index}, {m.optimizer});\n"
        opening, running = second_text(m, feeds)
        text += f"{opening}        for (int i = 0; i < 2; i++) {{\n            values[i] = ht_step(p{feeds});\n{running}        }}\n"
        text += f"        print(\"loss\", \"\", values, {4 if '_step' in running else 2});\n"
        for program in "pq" if m.second else "p":
            for name, dtype, count in m.outputs:
                if dtype == "HT_F32":
                    text += f'        ht_fetch({program}, "{name}", values);\n        print("output-{program}", "{name}", values, {count});\n'
        text += "    }\n"
    text += "    for (int i = 0; ht_param_name(session, i, &count); i++) {\n        ht_get_param(session, ht_param_name(session, i, &count), values, count);\n"
    text += '        print("param", ht_param_name(session, i, &count), values, count);\n    }\n}\n'
    return text
