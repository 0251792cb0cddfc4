#!/usr/bin/env python3
"""Tests padding: of random models with and without masks, a pipeline of shorter rows gives one device's losses on the padded batch, or hetucc refuses the model.

One device decides what is right. A model that hetucc accepts must give one device's losses, whatever values are behind the rows in inputs without pragma
`padding`. hetucc must refuse a model whose losses depend on these values; it also refuses some models that it cannot analyse.
"""
import random
import re

import harness
from harness import Failure, compare_losses

ROWS, SEQ, SHORT, EMBED, VOCAB, STEPS = 4, 9, 4, 8, 11, 3

# What a layer makes of x[ROWS, seq, EMBED]; `here` is kept apart from what stands behind, `all` is not.
LAYERS = {
    "linear": "x = ht_add(x, ht_gelu(ht_linear(x, weight({n}, EMBED, EMBED), HT_NONE)));",
    "rms": "x = ht_rms_norm(x, HT_NONE, 1e-5f);",
    "layer_norm": "x = ht_layer_norm(x, HT_NONE, HT_NONE, 1e-5f);",
    "dropout": "x = ht_dropout(x, 0.25f);",
    "causal": "x = ht_add(x, joined(ht_attention(heads(x, {n}), heads(x, {n} + 100), heads(x, {n} + 200), HT_NONE, true)));",
    "rope": "x = ht_add(x, joined(ht_attention(ht_rope(heads(x, {n}), 100), ht_rope(heads(x, {n} + 100), 100), heads(x, {n}), HT_NONE, true)));",
    "cumsum": "x = ht_rms_norm(ht_cumsum(x, 1), HT_NONE, 1e-5f);",
    "masked": "x = ht_mul(x, mask);",
    "mean": "x = ht_add(x, ht_mean(x, .dim = ht_shape(1), .keepdim = true));",
    "masked_mean": "x = ht_add(x, ht_div(ht_sum(ht_mul(x, mask), .dim = ht_shape(1), .keepdim = true), ht_sum(mask, .dim = ht_shape(1), .keepdim = true)));",
    "largest": "x = ht_add(x, ht_max(x, .dim = ht_shape(1), .keepdim = true));",
    "masked_largest": "x = ht_add(x, ht_max(ht_where(ht_eq(mask, ht_scalar(0)), ht_scalar(-INFINITY), x), .dim = ht_shape(1), .keepdim = true));",
    "full": "x = ht_add(x, joined(ht_attention(heads(x, {n}), heads(x, {n} + 100), heads(x, {n}), HT_NONE, false)));",
    "scores": "x = ht_add(x, scored(x, mask, {n}, true));",
    "masked_scores": "x = ht_add(x, scored(x, mask, {n}, false));",
    "softmax": "x = ht_mul(x, ht_transpose(ht_softmax(ht_transpose(x, 1, 2)), 1, 2));",
    "masked_softmax": "x = ht_mul(x, ht_transpose(ht_softmax(ht_transpose(ht_masked_fill(x, ht_eq(mask, ht_scalar(0)), -INFINITY), 1, 2)), 1, 2));",
    "last": "x = ht_add(x, ht_slice(x, 1, seq - 1, 1));",
    "first": "x = ht_add(x, ht_slice(x, 1, 0, 1));",
    "previous": "x = ht_add(x, ht_pad(ht_slice(x, 1, 0, seq - 1), ht_shape(0, 0, 1, 0), 0));",
    "next": "x = ht_add(x, ht_pad(ht_slice(x, 1, 1, seq - 1), ht_shape(0, 0, 0, 1), 0));",
    "starts": "x = ht_add(x, ht_pad(ht_slice(x, 1, 1, 2), ht_shape(0, 0, 0, seq - 2), 0));",
    "positions": "x = ht_add(x, ht_embedding(weight({n}, TOP, EMBED), ht_arange(0, seq, 1, HT_I32)));",
    "scaled": "x = ht_scale(x, 2.0f / seq);",
    "triangle": "x = ht_add(x, ht_matmul(ht_tril(ht_expand(ht_scalar(0.1), ht_shape(ROWS, seq, seq)), 0), x));",
    "squares": "x = ht_add(x, ht_matmul(ht_expand(ht_scalar(0.1), ht_shape(ROWS, seq, seq)), x));",
}
LOSSES = {
    "cross": "return ht_mean(ht_cross_entropy(ht_linear(x, weight(900, VOCAB, EMBED), HT_NONE), targets));",
    "counted": "ht_tensor each = ht_cross_entropy(ht_linear(x, weight(900, VOCAB, EMBED), HT_NONE), targets); return ht_div(ht_sum(each), "
               "ht_sum(ht_cast(ht_ne(targets, ht_scalar_at(-100, HT_I32)), HT_F32)));",
    "masked_square": "return ht_div(ht_sum(ht_mul(ht_mul(x, x), mask)), ht_sum(mask));",
    "square": "return ht_mean(ht_mul(x, x));",
    "pooled": "ht_tensor pooled = ht_div(ht_sum(ht_mul(x, mask), .dim = ht_shape(1)), ht_sum(mask, .dim = ht_shape(1))); return ht_mean(ht_mul(pooled, pooled));",
}
# Models that any version of the compiler should take, and that it must refuse.
TAKEN = [(("linear", "rms", "causal"), "cross"), (("rope", "layer_norm", "dropout"), "counted"), (("masked_mean",), "masked_square"), (("linear",), "pooled"),
         (("masked_softmax",), "cross"), (("masked_largest",), "cross"), (("masked_scores", "scaled"), "cross"), (("triangle", "positions"), "cross"),
         (("cumsum",), "cross"), (("first", "causal"), "pooled"), (("previous", "starts", "linear"), "counted")]
REFUSED = [(("full",), "cross"), (("mean", "causal"), "cross"), (("largest",), "cross"), (("softmax",), "cross"), (("linear",), "square"), (("last",), "cross"),
           (("squares",), "cross"), (("next",), "cross"), (("scores",), "cross")]

HEAD = """#include <hetu/hetu.h>
#include <hetu/tensors.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
enum { ROWS = %d, TOP = %d, EMBED = %d, VOCAB = %d };
int seq = TOP;
#pragma hspmd shape(seq)
#pragma hspmd padding(targets: -100)
#pragma hspmd padding(mask: 0)
static ht_tensor weight(int n, int rows, int columns)
{
    char name[16];
    snprintf(name, sizeof name, "w%%d", n);
    return ht_param(ht_shape(rows, columns), ht_normal(0.3f), name);
}
static ht_tensor heads(ht_tensor x, int n) { return ht_reshape(ht_linear(x, weight(n, EMBED, EMBED), HT_NONE), ht_shape(ROWS, seq, 2, EMBED / 2)); }
static ht_tensor joined(ht_tensor x) { return ht_reshape(x, ht_shape(ROWS, seq, EMBED)); }
/* Attention by its products: keys that stand for nothing are seen, or not. */
static ht_tensor scored(ht_tensor x, ht_tensor mask, int n, bool all)
{
    ht_tensor q = ht_linear(x, weight(n, EMBED, EMBED), HT_NONE), scores = ht_matmul(q, ht_transpose(x, 1, 2));
    ht_tensor hidden = ht_transpose(ht_eq(mask, ht_scalar(0)), 1, 2);
    return ht_matmul(ht_softmax(all ? scores : ht_masked_fill(scores, hidden, -INFINITY)), x);
}
"""


def model_text(k, model):
    layers, loss = model
    lines = "\n    ".join(LAYERS[name].format(n=10 * i + 1) for i, name in enumerate(layers))
    return f"""#ifdef M{k}
/* {" ".join(layers)}: {loss} */
static ht_tensor model{k}(void)
{{
    ht_tensor ids = ht_input("ids", HT_I32, ht_shape(ROWS, seq)), targets = ht_input("targets", HT_I32, ht_shape(ROWS, seq));
    ht_tensor mask = ht_input("mask", HT_F32, ht_shape(ROWS, seq, 1)), x = ht_input("x", HT_F32, ht_shape(ROWS, seq, EMBED));
    (void)targets, (void)mask;
    ht_scope("m{k}");
    x = ht_add(x, ht_embedding(weight(0, VOCAB, EMBED), ids));
    {lines}
    {LOSSES[loss]}
}}
#endif
"""


def source_text(models):
    calls = "\n".join(f"#ifdef M{k}\n    run(ht_train(session, model{k}, ht_sgd(.lr = 0.5f)), {k}, file);\n#endif" for k in range(len(models)))
    return HEAD % (ROWS, SEQ, EMBED, VOCAB) + "".join(model_text(k, m) for k, m in enumerate(models)) + f"""
static int32_t ids[ROWS * TOP], targets[ROWS * TOP];
static float mask[ROWS * TOP], x[ROWS * TOP * EMBED];
static float noise(unsigned *state) {{ return (float)((*state = *state * 1664525u + 1013904223u) >> 8) / (1 << 24); }}
static void run(ht_program *program, int k, FILE *file)
{{
    for (int step = 0; step < {STEPS}; step++)
        fprintf(file, "%d %.9g\\n", k, ht_step(program, ht_feed("ids", ids), ht_feed("targets", targets), ht_feed("mask", mask), ht_feed("x", x)));
}}
int main(int argc, char **argv)
{{
    ht_session *session = ht_open(&argc, &argv);
    FILE *file = fopen(argv[1], "w");
    unsigned here = 7, behind = (unsigned)atoi(argv[2]);
    for (int i = 0; i < ROWS * TOP; i++) {{
        bool in = i % TOP < (i / TOP < 2 ? TOP - i / TOP : {SHORT} - i / TOP % 2);
        unsigned *state = in || i / TOP < 2 ? &here : &behind;
        ids[i] = (int)(noise(state) * VOCAB);
        for (int e = 0; e < EMBED; e++)
            x[i * EMBED + e] = noise(state) - 0.5f;
        targets[i] = in ? ids[i] : -100;
        mask[i] = in;
    }}
{calls}
    return fclose(file);
}}
"""


STRATEGY = f"pipeline microbatches(1) rows(2)\nstage devices(0)\npipeline microbatches(2) rows(1) (seq = {SHORT})\nstage devices(1)\n"


class Case:
    """The models of one source, by number: which hetucc takes, and the losses."""

    def __init__(self, bench, name, models):
        self.bench, self.name, self.models = bench, name, models
        self.source = bench.path(f"behind_{name}.c")
        self.source.write_text(source_text(models))
        self.strategy = bench.path(f"behind_{name}.strategy")
        self.strategy.write_text(f"strategy two\n{STRATEGY}end strategy\n")

    def hetucc(self, numbers, *more, check=True):
        return harness.run([self.bench.hetucc, f"--strategy={self.strategy}", *(f"-DM{k}" for k in numbers), self.source, *more], check=check)

    def taken(self, k):
        p = self.hetucc([k], "--emit=ir", "--stop-after=stage", "-o", self.bench.path(f"behind_{self.name}_{k}.ir"), check=False)
        if p.returncode and not re.search(r"error: .*gives something else than the padded batch", p.stderr):
            raise Failure(f"model {k} {self.models[k]}: {p.stderr[-1500:]}")
        return not p.returncode

    def losses(self, program, ranks, behind):
        out = self.bench.path(f"behind_{self.name}_{ranks}_{behind}.losses")
        harness.launch(program, ranks, out, behind)
        found = {}
        for line in out.read_text().splitlines():
            found.setdefault(int(line.split()[0]), []).append(float(line.split()[1]))
        return found

    def plain(self):
        out, library = self.bench.path(f"behind_{self.name}_plain"), self.bench.build / "lib"
        harness.run(["cc", "-std=gnu17", "-O1", *(f"-DM{k}" for k in range(len(self.models))), f"-I{harness.ROOT}/include", self.source, "-o", out, f"-L{library}",
                     f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
        return self.losses(out, 0, 1), self.losses(out, 0, 2)

    def check(self):
        one, other = self.plain()
        matters = [k for k in range(len(self.models)) if one[k] != other[k]]
        taken = [k for k in range(len(self.models)) if self.taken(k)]
        for k in set(taken) & set(matters):
            raise Failure(f"model {k} {self.models[k]} is taken, but its losses depend on what stands behind: {one[k]} {other[k]}")
        if taken:
            program = self.bench.path(f"behind_{self.name}_two")
            self.hetucc(taken, "-o", program)
            found = self.losses(program, 2, 1)
            for k in taken:
                compare_losses(found[k], one[k], 1e-5)
        cautious = [self.models[k] for k in range(len(self.models)) if k not in taken and k not in matters]
        return taken, f"{len(taken)} of {len(self.models)} taken, {len(cautious)} refused of which one device's losses do not depend on it {cautious[:3]}"


def check_known(bench):
    taken, said = Case(bench, "known", TAKEN + REFUSED).check()
    wanted = list(range(len(TAKEN)))
    if taken != wanted:
        raise Failure(f"taken: {taken}, not {wanted}")
    return said


def check_random(bench, seed):
    draw = random.Random(seed)
    models = [(tuple(draw.choices(list(LAYERS), k=draw.randint(1, 4))), draw.choice(list(LOSSES))) for _ in range(12)]
    return Case(bench, str(seed), models).check()[1]


def tests(bench, _):
    yield "known", lambda: check_known(bench)
    for seed in range(1, 21):
        yield f"seed{seed}", lambda s=seed: check_random(bench, s), True


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("behind", tests)
