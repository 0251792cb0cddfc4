"""Writes random models and strategies for stages that are visited more than once: plain C with pragmas, the same text for the same seed.

A model is a sequence of layers. A layer reads the layer before it or any earlier one, and values from outside the layers. Several layers
share parameters; any layer may have losses, divided by means or counts. A layer needs only earlier ones. So a strategy that lists ranges
in the layers' order never contradicts the order of the data, and none may be refused.
"""
import random

from random_text import PRELUDE, Group

WIDTH, HIDDEN, WORDS, STEPS = 4, 4, 5, 3
MOST = 6  # devices


class Visits:
    """A strategy of one or two pipelines, with one to four stages of one to three visits each."""

    def __init__(self, rng):
        self.order = ["stem"] * (rng.random() < 0.25) + list(range(rng.randint(3, 8))) + ["head"] * (rng.random() < 0.6)
        self.axis = rng.choice([None, None, "rows", "hidden"])
        self.pipelines, self.ranks, self.batch = [], 0, 0
        for _ in range(rng.choice([1, 1, 2])):
            stages = self.stages(rng, rng.choice([1, 2, 2, 3, 3, 4]))
            needed = sum(devices for devices, _, _ in stages)
            if not self.pipelines or self.ranks + needed <= MOST:
                microbatches, rows = rng.randint(1, 8), rng.choice([1, 1, 2, 3])
                self.pipelines.append((microbatches, rows, stages))
                self.ranks += needed
                self.batch += microbatches * rows
        self.schedule, self.zero = rng.choice(["", "gpipe", "1f1b", "interleaved", "zero_bubble"]), rng.randrange(4)

    def stages(self, rng, count):
        """(devices, layers, recompute) of so many stages, listed by the first of their layers."""
        visits = [s for s in range(count) for _ in range(rng.choice([1, 2, 2, 3]))]
        while len(visits) > len(self.order):
            repeated = [i for i, s in enumerate(visits) if visits.count(s) > 1]
            visits.pop(rng.choice(repeated) if repeated else 0)
        rng.shuffle(visits)
        cuts = sorted(rng.sample(range(1, len(self.order)), len(visits) - 1))
        own = {}
        for stage, a, b in zip(visits, [0] + cuts, cuts + [len(self.order)]):
            own.setdefault(stage, []).append(self.layers(self.order[a:b]))
        return [(2 if self.axis and len(own) < 4 and rng.random() < 0.4 else 1, ", ".join(layers), rng.choice(["", "", "", " recompute(full)", " recompute(selective)"]))
                for layers in own.values()]

    @staticmethod
    def layers(chunk):
        """A run of layers as text."""
        numbers = [layer for layer in chunk if isinstance(layer, int)]
        names = [str(layer) for layer in chunk if not isinstance(layer, int)]
        ranges = [f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])] if numbers else []
        return ", ".join(sorted(names, reverse=True)[:names.count("stem")] + ranges + ["head"] * names.count("head"))

    def text(self):
        lines, at = ["strategy random"] + ([f"split {self.axis}:a"] if self.axis and any(d > 1 for _, _, stages in self.pipelines for d, _, _ in stages) else []), 0
        lines += [f"zero {self.zero}"] * (self.zero > 0) + [f"schedule {self.schedule}"] * bool(self.schedule)
        for microbatches, rows, stages in self.pipelines:
            lines.append(f"pipeline microbatches({microbatches}) rows({rows})")
            for devices, layers, recompute in stages:
                mesh = f" mesh(a:{devices})" if devices > 1 else ""
                lines.append(f"  stage devices({', '.join(map(str, range(at, at + devices)))}){mesh} layers({layers}){recompute}")
                at += devices
        return "\n".join(lines + ["end strategy", ""])


class Model:
    """A model for the strategy's layers."""

    def __init__(self, rng, index, strategy):
        self.rng, self.index, self.refused, self.mixes, self.inputs = rng, index, False, False, []
        self.batch, self.order, self.outputs = strategy.batch, strategy.order, []
        self.clip = rng.choice(["", "", ", .clip = 0.5f"])
        self.chained = rng.random() < 0.5  # losses are added up from layer to layer, not at the end
        self.perceptrons = 0
        self.begin = [self.perceptron("e"), rng.choice(["x = ht_add(x, e);", "x = ht_mul(ht_add(x, e), g);"]), "ht_tensor v = ht_add(z, ht_scale(x, 0.1f));"]
        self.body = self.build()

    # ---- text ----

    def weight(self, k, kind="w"):
        """A square parameter: the shared one, or the layer's own."""
        return "shared" if self.rng.random() < 0.35 else f'ht_param(ht_shape(E, E), ht_normal(0.4f), "{kind}{k}")'

    def step(self, k, y, seen):
        """A line that makes another y from y."""
        rng, other = self.rng, self.rng.choice(seen)
        return rng.choice([
            f"{y} = ht_tanh(ht_linear({y}, {self.weight(k)}, HT_NONE));",
            f"{y} = ht_add({y}, ht_linear({y}, {self.weight(k, 'v')}, HT_NONE));",
            f"{y} = ht_add({y}, {other});",
            f"{y} = ht_add({y}, {other});",
            f"{y} = ht_tanh(ht_mul({y}, {other}));",
            f"{y} = ht_add({y}, e);",
            f"{y} = ht_tanh(ht_mul({y}, g));",
            f"{y} = ht_scale({y}, 0.5f);",
            f"{y} = ht_add({y}, ht_div(ht_mul(z, g), {self.count()}));",
            self.perceptron(y),
        ])

    def perceptron(self, y):
        """Two products with parameters of its own."""
        self.perceptrons += 1
        k = self.perceptrons
        return (f'ht_tensor u{k} = ht_param(ht_shape(H, E), ht_normal(0.4f), "u{k}"), d{k} = ht_param(ht_shape(E, H), ht_normal(0.4f), "d{k}");\n'
                f"#pragma hspmd dims(u{k}: hidden)\n    {y} = ht_linear(ht_tanh(ht_linear({y}, u{k}, HT_NONE)), d{k}, HT_NONE);")

    def count(self):
        """A number that inputs alone give, above 0."""
        return self.rng.choice(["ht_add(ht_sum(keep), ht_scalar(0.5f))", "ht_sum(ht_mul(z, z))", "ht_add(ht_sum(ht_mul(keep, keep)), ht_scalar(1))"])

    def term(self, y, seen):
        """A loss that is not negative."""
        other = self.rng.choice(seen)
        return self.rng.choice([
            f"ht_scale(ht_mean(ht_mul({y}, {y})), 0.3f)",
            f"ht_scale(ht_mean(ht_mul(ht_sub({y}, {other}), ht_sub({y}, {other}))), 0.2f)",
            f"ht_div(ht_sum(ht_mul(ht_mul({y}, {y}), ht_unsqueeze(keep, -1))), {self.count()})",
            f"ht_div(ht_sum(ht_mul({y}, {y})), {self.count()})",
            f"ht_scale(ht_mean(ht_exp(ht_tanh(ht_mul({y}, {other})))), 0.1f)",
            f"ht_scale(ht_mean(ht_exp(ht_tanh(ht_linear({y}, table, HT_NONE)))), 0.1f)",
        ])

    def layer(self, k, before, seen):
        """The statement of layer k; what it makes is y and the layer's name."""
        rng, y = self.rng, f"y{k}"
        source = before if rng.random() < 0.7 else rng.choice(seen)
        lines = [f"{y} = {source};"] + [self.step(k, y, seen) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        if rng.random() < 0.12:
            lines.append(f'ht_tensor st = ht_state(ht_shape(E), ht_constant(0.1f), "st{k}"); {y} = ht_add({y}, st); ht_assign(st, ht_mul(st, ht_add(g, ht_scalar(0.1f))));')
        if rng.random() < 0.4:
            term = self.term(y, seen)
            lines.append(f"side = ht_add(side, {term});" if self.chained else f"t{k} = {term};")
            self.terms += [] if self.chained else [f"t{k}"]
        if rng.random() < 0.2 and y != source:
            self.outputs.append(f"o{k}")
            lines.append(f'ht_output(ht_scale({y}, 1), "o{k}");')
        lines.append(f"{y} = ht_scale({y}, 0.9f);")
        again = ["#pragma hspmd recompute"] * (rng.random() < 0.1)
        return [f"ht_tensor {y}, t{k};", f"#pragma hspmd layer({k})", *again, "{", *("    " + line for line in lines), "}"]

    def build(self):
        """The layers, and the loss."""
        self.terms, before, seen, lines = [], "x", ["x", "e", "v"], []
        for k in self.order:
            lines += self.layer(k, before, seen)
            before = f"y{k}"
            seen.append(before)
        lines += ["ht_tensor loss;"] + [f"#pragma hspmd layer({self.order[-1]})"] * (self.rng.random() < 0.6)
        lines.append(f"loss = ht_mean(ht_mul(ht_sub({before}, v), ht_sub({before}, v)));")
        return lines + [f"loss = ht_add(loss, {term});" for term in self.terms + ["side"]]

    def text(self):
        """The model function. Names of dimensions stand on what every model has, for a strategy may split no other."""
        lines = [f'ht_scope("m{self.index}");', 'ht_tensor x = ht_input("x", HT_F32, ht_shape(B, E)), z = ht_input("z", HT_F32, ht_shape(B, E));', "#pragma hspmd dims(x: rows)",
                 'ht_tensor id = ht_input("id", HT_I32, ht_shape(B)), side = ht_scalar(0);', 'ht_tensor shared = ht_param(ht_shape(E, E), ht_normal(0.4f), "shared");',
                 'ht_tensor table = ht_param(ht_shape(WORDS, E), ht_normal(0.7f), "table"), g = ht_param(ht_shape(E), ht_ones(), "gain");',
                 "ht_tensor keep = ht_cast(ht_ne(id, ht_scalar_at(1, HT_I32)), HT_F32), e = ht_embedding(table, id);",
                 *self.begin, *self.body, "return loss;"]
        return [f"ht_tensor m{self.index}(void)", "{", *(f"    {line}" for line in lines), "}", ""]

    def inferred(self):
        return False

    def optimizer(self):
        return f"ht_sgd(.lr = 0.05f, .momentum = 0.5f{self.clip})"

    def run_text(self):
        """The function that trains it."""
        n, seed = self.index, 100 * self.index
        lines = ["static float x[B * E], z[B * E];", "static int32_t id[B];", f"for (int step = 0; step < {STEPS}; step++) {{",
                 f"    fill_f(x, B * E, {seed}u + 1000003u * (unsigned)step);", f"    fill_f(z, B * E, {seed + 1}u + 1000003u * (unsigned)step);",
                 f"    fill_i(id, B, {seed + 2}u + 1000003u * (unsigned)step, WORDS, 0);",
                 '    float loss = ht_step(program, ht_feed("x", x), ht_feed("z", z), ht_feed("id", id));', f'    show(out, "loss", "m{n}", &loss, 1);', "}", "(void)inference;"]
        for name in self.outputs:
            lines += [f'ht_fetch(program, "{name}", x);', f'show(out, "output", "m{n}.{name}", x, B * E);']
        return [f"static void run{n}(ht_program *program, ht_program *inference, FILE *out)", "{", *(f"    {line}" for line in lines), "}", ""]


class Visited(Group):
    """Several models and the strategy they share."""

    def __init__(self, seed, count):
        rng = random.Random(f"visits.{seed}")
        self.strategy, self.prelude = Visits(rng), PRELUDE
        self.prelude += f"\nenum {{ B = {self.strategy.batch}, E = {WIDTH}, H = {HIDDEN}, WORDS = {WORDS} }};\n"
        self.models = [Model(random.Random(f"visits.{seed}.{k}"), k, self.strategy) for k in range(count)]
