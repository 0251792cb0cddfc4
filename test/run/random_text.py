"""Writes random models and strategies: plain C with pragmas, valid by construction, the same text for the same seed.

A model is a chain of operators on a pool of tensors; tensors that no operator reads go into the loss. Dimensions are
objects that tensors share, so that a name is on the same dimension everywhere. With micro-batches no parameter has the
batch's dimension, and rows of the batch are not mixed. A group may ask for mixed rows: then hetucc may refuse a model.
"""
import math
import pathlib
import random
import re

NAMES = ["n0", "n1", "n2", "n3", "n4", "n5"]
EXTENTS = [1, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 9, 11, 12, 13]
MOST = 3000  # elements of a tensor
WIDE = [[8], [2, 4], [4, 2], [3, 3], [4, 3], [2, 5], [2, 2, 2], [2, 3, 2], [4, 2, 2], [16]]
MESHES = [[1], [2], [2], [3], [4], [5], [6], [2, 2], [2, 2], [2, 3], [3, 2], [1, 4], [4, 1], [2, 1, 2], [1, 2, 3]]

PRELUDE = (pathlib.Path(__file__).parent / "Inputs" / "random_prelude.c").read_text()


class Dim:
    """A dimension that several tensors may share. `batch`: rows of the batch; `plain`: no reshape or merged dimension splits it."""

    def __init__(self, extent, batch=False, plain=True):
        self.extent, self.batch, self.plain, self.name, self.parent = extent, batch, plain, None, None

    def root(self):
        return self.parent.root() if self.parent else self


class Tensor:
    def __init__(self, var, dims, kind="value", big=1.0):
        self.var, self.dims, self.kind, self.big, self.used = var, dims, kind, big, False

    def count(self):
        return math.prod(d.extent for d in self.dims)


def unite(a, b):
    """The two dimensions are the same from now on; false when they cannot be."""
    a, b = a.root(), b.root()
    if a is b:
        return True
    if a.extent != b.extent or a.batch != b.batch:
        return False
    b.parent = a
    a.plain = a.plain and b.plain
    return True


class Strategy:
    def __init__(self, rng, meshes, micro):
        self.rng = rng
        self.counts = rng.choice(meshes)
        self.axes = ["a", "b", "c"][:len(self.counts)]
        used = math.prod(self.counts)
        self.ranks = used + (used < 6 and rng.random() < 0.1)
        order = list(range(self.ranks))
        if rng.random() < 0.3:
            rng.shuffle(order)
        self.devices, self.idle = order[:used], order[used:]
        self.microbatches = rng.choice([2, 3, 4]) if rng.random() < 0.3 or micro else 1
        self.weights = [[rng.randint(1, 4) for _ in range(c)] if c > 1 and rng.random() < 0.2 else None for c in self.counts]
        self.zero = rng.choice(["", "", "zero 1", f"zero 1 over {rng.choice(self.axes)}"])
        names = rng.sample(NAMES, rng.randint(1, len(NAMES)))
        self.splits = [(n, rng.sample(self.axes, rng.randint(1, len(self.axes)))) for n in names]
        for axis in self.axes:
            if not any(axis in axes for _, axes in self.splits):
                self.splits[rng.randrange(len(names))][1].append(axis)

    def text(self):
        mesh = ", ".join(f"{a}:{c}" + (" by " + ":".join(map(str, w)) if w else "") for a, c, w in zip(self.axes, self.counts, self.weights))
        lines = ["strategy random"] + [f"split {n}:{'*'.join(axes)}" for n, axes in self.splits] + [self.zero]
        lines += ["pipeline" + (f" microbatches({self.microbatches})" if self.microbatches > 1 else "")]
        lines += [f"  stage devices({', '.join(map(str, self.devices))}) mesh({mesh})"]
        if self.idle:
            lines.append(f"idle devices({', '.join(map(str, self.idle))})")
        return "\n".join([line for line in lines if line] + ["end strategy", ""])

    def axes_layout(self, tensor, partial):
        """A layout in mesh axes: every axis cuts a dimension, holds copies, or (partial) parts of a sum."""
        rng, parts = self.rng, {}
        for axis in rng.sample(self.axes, len(self.axes)):
            kind = rng.choice(["dup", "sum" if partial and rng.random() < 0.3 else "dup"] + [str(d) for d in range(len(tensor.dims))] * 2)
            parts.setdefault(kind, []).append(axis)
        return "{" + ", ".join(f"{kind}:{'*'.join(axes)}" for kind, axes in parts.items()) + "}"

    def group(self, tensor, devices, partial):
        rest, states = len(devices), []
        choices = [d for d, dim in enumerate(tensor.dims) if dim.root().plain]
        while rest > 1:
            count = self.rng.choice([n for n in range(2, rest + 1) if rest % n == 0])
            kind = self.rng.choice(["dup", "sum" if partial and self.rng.random() < 0.3 else "dup", *choices, *choices])
            weights = " by " + ":".join(str(self.rng.randint(1, 3)) for _ in range(count)) if kind not in ("dup", "sum") and self.rng.random() < 0.2 else ""
            states.append(f"{kind}:{count}{weights}")
            rest //= count
        return f"[{','.join(map(str, devices))}]{{{', '.join(states)}}}"

    def device_layout(self, tensor, partial):
        """A layout in device numbers, in one group or two."""
        rng = self.rng
        devices = rng.sample(self.devices, rng.choice([len(self.devices)] * 3 + [rng.randint(1, len(self.devices))]))
        plain = [d for d, dim in enumerate(tensor.dims) if dim.root().plain]
        if len(devices) < 2 or rng.random() < 0.6:
            return self.group(tensor, devices, partial)
        cut = rng.randint(1, len(devices) - 1)
        groups = " | ".join(self.group(tensor, d, False) for d in (devices[:cut], devices[cut:]))
        top = rng.choice(["dup"] + ["sum"] * partial + [f"split {d}" for d in plain])
        if top.startswith("split") and rng.random() < 0.5:
            top += f" by {rng.randint(1, 3)}:{rng.randint(1, 3)}"
        return f"{top} ({groups})"


class Pipelines(Strategy):
    """Several pipelines of several stages. `order` has the layers in the order of the data, those of towers first; with `plain`, no stage has several ranges."""

    MESHES = [[1], [1], [1], [2], [2], [3], [1, 2], [2, 1]]

    def __init__(self, rng, most=8):
        self.rng, self.axes, self.plain, self.schedules = rng, ["a", "b"], False, ["", "gpipe", "1f1b", "interleaved", "zero_bubble"]
        towers = rng.choice([[], [], ["s"], ["s", "t"]])
        self.order = [f"{t}: {l}" for t in towers for l in range(2)] + [str(l) for l in range(4)]
        self.pipelines, used = [], 0
        for _ in range(rng.choice([1, 2, 2, 3])):
            stages = self.stages(rng.choice([1, 2, 2, 3, 4]))
            needed = sum(math.prod(mesh) for mesh, _ in stages)
            if used + needed <= most:
                self.pipelines.append((rng.choice([1, 2, 3, 5]), rng.choice([1, 1, 2, 3]), stages))
                used += needed
            if self.pipelines and used + needed <= most and rng.random() < 0.2:
                self.pipelines.append((rng.choice([1, 2, 3]), *self.pipelines[-1][1:]))
                used += sum(math.prod(mesh) for mesh, _ in self.pipelines[-1][2])
        if not self.pipelines:
            self.pipelines, used = [(3, 2, [([1], "selective"), ([1], None)])], 2
        self.ranks = used + (rng.random() < 0.1)
        order = list(range(self.ranks))
        if rng.random() < 0.3:
            rng.shuffle(order)
        self.devices, self.idle = order[:used], order[used:]
        self.microbatches = 2  # the models' rows of the batch stay apart
        self.batch = sum(m * rows for m, rows, _ in self.pipelines)
        self.axes = [a for k, a in enumerate(self.axes) if any(len(mesh) > k for _, _, stages in self.pipelines for mesh, _ in stages)]
        self.weighs, self.several, self.seed = rng.random() < 0.2, rng.random() < 0.4, rng.random()
        if not self.several and rng.random() < 0.3:
            self.order[-1] = "head"
        self.schedule, self.zero = rng.choice(self.schedules), rng.choice(["", "zero 1", "zero 2", "zero 3", f"zero 1 over {self.axes[0]}"])
        names = rng.sample(NAMES, rng.randint(1, len(NAMES)))
        self.splits = [(n, rng.sample(self.axes, rng.randint(1, len(self.axes)))) for n in names]
        for axis in self.axes:
            if not any(axis in axes for _, axes in self.splits):
                self.splits[rng.randrange(len(names))][1].append(axis)
        self.zigzag = [n for n, _ in self.splits if rng.random() < 0.2]
        self.turning = [(n, rng.choice(axes)) for n, axes in self.splits if rng.random() < 0.2]

    def stages(self, count):
        return [(self.rng.choice(self.MESHES), self.rng.choice([None, None, "full", "selective"])) for _ in range(count)]

    @staticmethod
    def layers(chunk):
        """A list of layers as text: neighbours of a tower are a range, and a name stands alone."""
        runs = []
        for layer in chunk:
            tower, number = (layer[:-1], int(layer[-1])) if layer[-1].isdigit() else (layer, None)
            if runs and runs[-1][0] == tower and runs[-1][2] == number - 1:
                runs[-1][2] = number
            else:
                runs.append([tower, number, number])
        return ", ".join(tower if a is None else f"{tower}{a}" + (f"-{b}" if b > a else "") for tower, a, b in runs)

    def share(self, rng, count):
        """The lists of layers of so many stages: runs of the order, one a stage or more, in turns or there and back."""
        rounds = rng.choice([2, 2, 3]) if self.several and not self.plain else 1
        rounds = min(rounds, len(self.order) // count) if count > 1 else 1
        cuts = sorted(rng.sample(range(1, len(self.order)), rounds * count - 1))
        chunks = [self.order[a:b] for a, b in zip([0] + cuts, cuts + [len(self.order)])]
        back = rng.random() < 0.3
        lists = [[] for _ in range(count)]
        for i, chunk in enumerate(chunks):
            turn, k = divmod(i, count)
            lists[count - 1 - k if back and turn % 2 else k].append(self.layers(chunk))
        return [", ".join(own) for own in lists]

    def mesh(self, rng, counts):
        axes = []
        for axis, count in zip(self.axes, counts):
            weights = " by " + ":".join(str(rng.randint(1, 4)) for _ in range(count)) if self.weighs and count > 1 else ""
            axes.append(f"{axis}:{count}{weights}")
        return f" mesh({', '.join(axes)})"

    def text(self):
        rng, at = random.Random(self.seed), 0
        lines = ["strategy random"] + [f"split {n}:{'*'.join(axes)}" + " zigzag" * (n in self.zigzag) for n, axes in self.splits]
        lines += [f"turns {n}:{axis}" for n, axis in self.turning] + [self.zero, f"schedule {self.schedule}" if self.schedule else ""]
        wheres = {}  # of equal pipelines alike
        for microbatches, rows, stages in self.pipelines:
            lines.append(f"pipeline microbatches({microbatches}) rows({rows})")
            wheres[id(stages)] = wheres.get(id(stages)) or [
                f"{self.mesh(rng, counts)} layers({layers})" + (f" recompute({recompute})" if recompute else "")
                for (counts, recompute), layers in zip(stages, self.share(rng, len(stages)))]
            for (counts, _), where in zip(stages, wheres[id(stages)]):
                devices = self.devices[at:at + math.prod(counts)]
                at += len(devices)
                lines.append(f"  stage devices({', '.join(map(str, devices))}){where}")
        if self.idle:
            lines.append(f"idle devices({', '.join(map(str, self.idle))})")
        return "\n".join([line for line in lines if line] + ["end strategy", ""])

    def place(self, lines, rng):
        """The layer of each line that computes something, along the data; None: it stands outside of layers."""
        at, layers, first = {}, [], next(i for i, layer in enumerate(self.order) if ":" not in layer)
        for i, (t, text) in enumerate(lines):
            if t.kind in ("param", "input"):
                layers.append(None)
                continue
            found = [at[v] for v in re.findall(r"\bx\d+\b", text.split("=", 1)[1]) if v in at]
            least = max(found, default=-1)
            towers = {p // 2 for p in found if p < first} if all(p < first for p in found) else {-1, -2}
            if first and len(towers) < 2 and rng.random() < 0.6:
                tower = towers.pop() if towers else rng.randrange(first // 2)
                where = max(least, 2 * tower + rng.randrange(2))
            else:
                where = max(least, first + min(3, max(0, 4 * i // len(lines) + rng.choice([-1, 0, 0, 1]))))
            outside = rng.random() < 0.15
            if not outside or found:
                at[t.var] = least if outside else where
            layers.append(None if outside else self.order[where])
        return layers


class Model:
    def __init__(self, rng, index, strategy, mixes):
        self.rng, self.index, self.strategy, self.micro, self.mixes = rng, index, strategy, strategy.microbatches > 1, mixes
        self.lines, self.tensors, self.inputs, self.outputs, self.next = [], [], [], [], 0
        self.extras, self.terms, self.without = [], [], set()
        self.batch = Dim(rng.choice([1, 1, 2, 3]) * strategy.microbatches if self.micro else rng.choice(EXTENTS), batch=self.micro)
        if isinstance(strategy, Pipelines):
            self.batch = Dim(strategy.batch, batch=True)
        self.adam = rng.random() < 0.5
        self.clip = rng.choice([0, 0, 0.5])
        self.no_names, self.dropped, self.no_layout, self.refused = False, set(), set(), False
        self.build()

    # ---- text ----

    def var(self):
        self.next += 1
        return f"x{self.next}"

    def make(self, dims, text, big=1.0, kind="value", operands=()):
        """A new tensor: a line of C."""
        t = Tensor(self.var(), dims, kind, big)
        for x in operands:
            x.used = True
        self.lines.append((t, f"ht_tensor {t.var} = {text};"))
        if big > 3:
            return self.make(dims, f"ht_scale({t.var}, {0.5 / big:.4f}f)", 0.5, kind, [t])
        self.tensors.append(t)
        return t

    def shape(self, dims):
        return f"ht_shape({', '.join(str(d.extent) for d in dims)})" if dims else "ht_scalar_shape()"

    def free(self, *dims):
        """Whether the dimensions may be contracted, or an operator may want them whole."""
        return not self.has_rows(dims) or (self.mixes and self.rng.random() < 0.5)

    def has_rows(self, dims):
        return any(d.root().batch for d in dims)

    def fits(self, dims):
        return len(dims) <= 6 and math.prod(d.extent for d in dims) <= MOST

    def fresh(self, most=None):
        return Dim(self.rng.choice([e for e in EXTENTS if not most or e <= most]))

    def param(self, dims, scale=0.5, options=True):
        """A parameter, or None where it would have rows of the batch; sometimes one that stands already (tied)."""
        if self.has_rows(dims) or not self.fits(dims):
            return None
        rng = self.rng
        for t in self.tensors:
            if t.kind == "param" and [d.root() for d in t.dims] == [d.root() for d in dims] and rng.random() < 0.3:
                return t
        extra = rng.choice([", .frozen = true", ", .no_decay = true"]) if options and rng.random() < 0.15 else ""
        init = rng.choice([f"ht_normal({scale:.3f})", f"ht_uniform({scale:.3f})"] * 3 + ["ht_ones()"])
        return self.make(dims, f'ht_param({self.shape(dims)}, {init}, "w{self.next}"{extra})', kind="param")

    def input(self, dims, limit=0, holes=False):
        """Noise (limit 0), or integers below limit."""
        if any(d.root().batch for d in dims[1:]) or not self.fits(dims):
            return None
        name, kind = f"in{len(self.inputs)}", "HT_I32" if limit else "HT_F32"
        count = math.prod(d.extent for d in dims)
        self.inputs.append((name, count, limit, holes))
        t = Tensor(self.var(), dims, "input")
        self.lines.append((t, f'ht_tensor {t.var} = ht_input("{name}", {kind}, {self.shape(dims)});'))
        if not limit:
            self.tensors.append(t)
        return t

    def pick(self, rank=0):
        """A tensor of at least this rank; rather one that nobody used, rather a late one."""
        found = [t for t in self.tensors if len(t.dims) >= rank]
        late = [t for t in found[-4:] if not t.used]
        return self.rng.choice(late if late and self.rng.random() < 0.7 else found) if found else None

    # ---- operators: each gives a new tensor, or None where it does not fit ----

    def linear(self, x=None, out=None):
        x = x or self.pick(1)
        if not x or not self.free(x.dims[-1]):
            return None
        out = out or [self.fresh() for _ in range(self.rng.choice([1, 1, 1, 2]))]
        if not self.fits(x.dims[:-1] + out):
            return None
        w = self.param(out + [x.dims[-1]], 1 / math.sqrt(x.dims[-1].extent))
        bias = self.param(out) if self.rng.random() < 0.5 else None
        return w and self.make(x.dims[:-1] + out, f"ht_linear({x.var}, {w.var}, {bias.var if bias else 'HT_NONE'})", 1.5 * x.big, operands=[x, w])

    def matmul(self):
        x = self.pick(2)
        if not x or not self.free(x.dims[-1]):
            return None
        n = self.fresh()
        if self.rng.random() < 0.4:
            w = self.make(x.dims[:-2] + [x.dims[-1], x.dims[-2]], f"ht_transpose({x.var}, -1, -2)", x.big, operands=[x])
            n = w.dims[-1]
        else:
            w = self.param(x.dims[:-2] + [x.dims[-1], n])
        dims = x.dims[:-1] + [n]
        if not w or not self.fits(dims) or (self.micro and x.dims[-2].root().batch and n.root().batch):
            return None
        return self.make(dims, f"ht_matmul({x.var}, {w.var})", x.big * w.big * math.sqrt(x.dims[-1].extent) / 2, operands=[x, w])

    def binary(self):
        x = self.pick(0)
        keep = self.rng.randint(0, len(x.dims))
        z = None
        if self.rng.random() < 0.6:
            fitting = [t for t in self.tensors if len(t.dims) <= len(x.dims) and (t.dims or not self.micro)
                       and all(a.extent == b.extent and a.root().batch == b.root().batch for a, b in zip(t.dims, x.dims[len(x.dims) - len(t.dims):]))]
            z = self.rng.choice(fitting) if fitting else None
        z = z or self.param(x.dims[keep:])
        if not z or not all(unite(a, b) for a, b in zip(z.dims, x.dims[len(x.dims) - len(z.dims):])):
            return None
        op = self.rng.choice(["add", "sub", "mul", "div"])
        if op == "div":
            return self.make(x.dims, f"ht_div({x.var}, ht_exp(ht_scale(wave({z.var}), 0.5f)))", 1.7 * x.big, operands=[x, z])
        return self.make(x.dims, f"ht_{op}({x.var}, {z.var})", x.big * z.big if op == "mul" else x.big + z.big, operands=[x, z])

    def unary(self):
        x = self.pick()
        op = self.rng.choice(["relu", "gelu", "silu", "scale", "exp", "detach", "wave", "dropout"])
        if op == "scale":
            return self.make(x.dims, f"ht_scale({x.var}, {self.rng.uniform(-1.5, 1.5):.3f}f)", 1.5 * x.big, operands=[x])
        if op == "dropout":
            return self.make(x.dims, f"ht_dropout({x.var}, {self.rng.choice([0.1, 0.5])}f)", 1.5 * x.big, operands=[x])
        if op == "exp":
            return self.make(x.dims, f"ht_exp(ht_scale(wave({x.var}), 0.5f))", 1.5, operands=[x])
        if op == "wave":
            return self.make(x.dims, f"wave({x.var})", operands=[x])
        return self.make(x.dims, f"ht_{op}({x.var})", x.big, operands=[x])

    def norm(self):
        x = self.pick(1)
        if not x or not self.free(x.dims[-1]):
            return None
        op = self.rng.choice(["layer", "rms", "l2", "softmax", "ramp"])
        if op == "softmax":
            return self.make(x.dims, f"ht_softmax({x.var})", 1, operands=[x])
        if op == "ramp":
            return self.make(x.dims[:-1], f"ht_scale(ramp({x.var}), {1 / x.dims[-1].extent:.3f}f)", x.big, operands=[x])
        if op == "l2":
            return self.make(x.dims, f"ht_l2_norm({x.var}, 0.1f)", 1, operands=[x])
        weights = [self.param(x.dims[-1:]) if self.rng.random() < 0.6 else None for _ in range(2 if op == "layer" else 1)]
        args = ", ".join(w.var if w else "HT_NONE" for w in weights)
        return self.make(x.dims, f"ht_{op}_norm({x.var}, {args}, 0.1f)", 1.5, operands=[x, *[w for w in weights if w]])

    def attention(self):
        x = self.pick(2)
        if not x or not self.free(x.dims[-1], x.dims[-2]) or len(x.dims) > 4:
            return None
        rng = self.rng
        groups, width = Dim(rng.choice([1, 2, 3, 4]), plain=False), Dim(rng.choice([2, 4, 6]))
        heads = Dim(groups.extent * rng.choice([1, 1, 2, 3]), plain=False)
        other = x
        if rng.random() < 0.3:
            found = [t for t in self.tensors if len(t.dims) == len(x.dims) and all(a.root() is b.root() for a, b in zip(t.dims[:-2], x.dims[:-2]))]
            found = [t for t in found if self.free(t.dims[-1], t.dims[-2])]
            other = rng.choice(found) if found else x
        q, k, v = self.linear(x, [heads, width]), self.linear(other, [groups, width]), self.linear(other, [groups, width])
        if not (q and k and v):
            return None
        if rng.random() < 0.5:
            position = self.input(x.dims[:-1], 20) if other is x and rng.random() < 0.5 else None
            turn = (lambda t: f"ht_rope_positions({t.var}, {position.var}, 100.0f)") if position else (lambda t: f"ht_rope({t.var}, 100.0f)")
            q, k = (self.make(t.dims, turn(t), t.big, operands=[t]) for t in (q, k))
        segments = self.input(x.dims[:-1], 2) if other is x and rng.random() < 0.4 else None
        causal = rng.choice(["true", "false"]) if other is x else "false"
        if segments and causal == "false" and rng.random() < 0.5:
            causal = "true"
        y = self.make(q.dims, f"ht_attention({q.var}, {k.var}, {v.var}, {segments.var if segments else 'HT_NONE'}, {causal})", 1.5, operands=[q, k, v])
        if rng.random() < 0.6 and self.fits(x.dims):
            merged = Dim(heads.extent * width.extent, plain=False)
            width.plain = False
            y = self.make(y.dims[:-2] + [merged], f"ht_reshape({y.var}, {self.shape(y.dims[:-2] + [merged])})", y.big, operands=[y])
            out = self.linear(y, [x.dims[-1]])
            y = out and self.make(x.dims, f"ht_add({x.var}, {out.var})", x.big + out.big, operands=[x, out])
        return y

    def embedding(self):
        v, e = self.fresh(), self.fresh()
        ids = self.input([self.batch, *[self.fresh() for _ in range(self.rng.randint(0, 2))]], v.extent)
        table = ids and self.fits(ids.dims + [e]) and self.param([v, e])
        return self.make(ids.dims + [e], f"ht_embedding({table.var}, {ids.var})", operands=[table]) if table else None

    def merge(self):
        x = self.pick(2)
        if not x:
            return None
        d = self.rng.randint(0, len(x.dims) - 2)
        a, b = x.dims[d], x.dims[d + 1]
        merged = Dim(a.extent * b.extent, a.root().batch or b.root().batch, False)
        for one in (a, b):
            one.root().plain = False
        if 1 in (a.extent, b.extent) and a.root().batch == b.root().batch:
            unite(merged, a if b.extent == 1 else b)
        dims = x.dims[:d] + [merged] + x.dims[d + 2:]
        return self.make(dims, f"ht_reshape({x.var}, {self.shape(dims)})", x.big, operands=[x])

    def split(self):
        x = self.pick(1)
        if not x:
            return None
        d = self.rng.randrange(len(x.dims))
        n = x.dims[d].extent
        if not self.free(x.dims[d]):
            return None
        a = self.rng.choice([k for k in range(1, n + 1) if n % k == 0])
        parts = [Dim(a, plain=False), Dim(n // a, plain=False)]
        x.dims[d].root().plain = False
        if 1 in (a, n // a):
            unite(x.dims[d], parts[0] if n // a == 1 else parts[1])
        dims = x.dims[:d] + parts + x.dims[d + 1:]
        return self.make(dims, f"ht_reshape({x.var}, {self.shape(dims)})", x.big, operands=[x]) if self.fits(dims) else None

    def scramble(self):
        """A reshape to any shape."""
        x = self.pick(1)
        if not x or not self.free(*x.dims) or x.count() > 400:
            return None
        rest, dims = x.count(), []
        while rest > 1 and len(dims) < 3:
            n = self.rng.choice([k for k in range(1, rest + 1) if rest % k == 0])
            dims.append(Dim(n, plain=False))
            rest //= n
        if rest > 1 or not dims:
            dims.append(Dim(rest, plain=False))
        for d in x.dims:
            d.root().plain = False
        return self.make(dims, f"ht_reshape({x.var}, {self.shape(dims)})", x.big, operands=[x])

    def transpose(self):
        x = self.pick(2)
        if not x:
            return None
        a, b = self.rng.sample(range(len(x.dims)), 2)
        dims = list(x.dims)
        dims[a], dims[b] = dims[b], dims[a]
        return self.make(dims, f"ht_transpose({x.var}, {a}, {b - len(dims)})", x.big, operands=[x])

    def slice(self):
        x = self.pick(1)
        if not x:
            return None
        d = self.rng.randrange(len(x.dims))
        if not self.free(x.dims[d]):
            return None
        start = self.rng.randrange(x.dims[d].extent)
        length = Dim(self.rng.randint(1, x.dims[d].extent - start))
        dims = x.dims[:d] + [length] + x.dims[d + 1:]
        return self.make(dims, f"ht_slice({x.var}, {self.rng.choice([d, d - len(dims)])}, {start}, {length.extent})", x.big, operands=[x])

    def concat(self):
        x = self.pick(1)
        if not x:
            return None
        d = self.rng.randrange(len(x.dims))
        if not self.free(x.dims[d]):
            return None
        found = [t for t in self.tensors if len(t.dims) == len(x.dims) and all(i == d or a.root() is b.root() for i, (a, b) in enumerate(zip(t.dims, x.dims)))
                 and self.free(t.dims[d])]
        xs = [x] + (self.rng.choices(found, k=self.rng.randint(0, 2)) if found else [])
        total = Dim(sum(t.dims[d].extent for t in xs))
        dims = x.dims[:d] + [total] + x.dims[d + 1:]
        if not self.fits(dims):
            return None
        return self.make(dims, f"ht_concat(ht_list({', '.join(t.var for t in xs)}), {d})", max(t.big for t in xs), operands=xs)

    def count_up(self):
        x = self.pick(1)
        if not x or not self.free(x.dims[-1]):
            return None
        n = x.dims[-1].extent
        return self.make(x.dims, f"ht_add({x.var}, ht_scale(ht_cast(ht_iota({n}, HT_I32), HT_F32), {1 / n:.3f}f))", x.big + 1, operands=[x])

    def scalar(self):
        x = self.pick(1)
        if not x or (self.micro and not self.mixes):
            return None
        return self.make([], self.rng.choice([f"ht_mean({x.var})", f"ht_scale(ht_sum({x.var}), {1 / x.count():.4f}f)"]), x.big, operands=[x])

    def blocks(self):
        """A loop of residual blocks, its parameters under a scope."""
        x = self.pick(1)
        if not x or not self.free(x.dims[-1]):
            return None
        e, h = x.dims[-1].extent, self.rng.choice(EXTENTS)
        t = self.make(x.dims, f"ht_scale({x.var}, 0.9f)", x.big, operands=[x])
        body = f"""for (int l = 0; l < {self.rng.randint(1, 3)}; l++) {{
        ht_scope("{t.var}_%d", l);
        ht_tensor up = ht_linear({t.var}, ht_param(ht_shape({h}, {e}), ht_normal(0.3), "up"), HT_NONE);
        {t.var} = ht_add({t.var}, ht_linear(ht_gelu(up), ht_param(ht_shape({e}, {h}), ht_normal(0.3), "down"), HT_NONE));
    }}"""
        self.extras.append((t.var, body))
        return t

    # ---- the whole ----

    OPERATORS = [("linear", 6), ("matmul", 4), ("binary", 6), ("unary", 6), ("norm", 5), ("attention", 4), ("embedding", 2), ("merge", 3), ("split", 3),
                 ("scramble", 1), ("transpose", 3), ("slice", 3), ("concat", 3), ("count_up", 1), ("scalar", 1), ("blocks", 1)]

    def build(self):
        rng = self.rng
        first = self.input([self.batch, *[self.fresh() for _ in range(rng.randint(0, 2))]])
        if rng.random() < 0.5:
            self.input(first.dims[:1] + [self.fresh()])
        names, weights = zip(*self.OPERATORS)
        for _ in range(rng.randint(3, 14)):
            getattr(self, rng.choices(names, weights)[0])()
        self.loss()
        self.name_dims()
        self.lay_out()

    def term(self, x):
        rng, kind = self.rng, self.rng.choice(["square", "mean", "sum", "cross", "peak", "weighed"])
        if kind == "cross" and len(x.dims) and self.free(x.dims[-1]):
            target = self.input(x.dims[:-1], x.dims[-1].extent, True)
            if target:
                return f"ht_mean(ht_cross_entropy({x.var}, {target.var}))"
        if kind == "peak" and len(x.dims) and self.free(x.dims[-1]):
            return f"ht_add(ht_mean(ht_row_max({x.var})), ht_mean(ht_gelu({x.var})))"
        if kind == "square" and not (self.micro and not x.dims):
            return f"ht_mean(ht_mul({x.var}, {x.var}))"
        weight = self.input(x.dims) if kind == "weighed" else None
        if weight:
            return f"ht_div(ht_sum(ht_mul({x.var}, {weight.var})), ht_sum(ht_exp({weight.var})))"
        if kind == "sum":
            return f"ht_scale(ht_sum({x.var}), {1 / x.count():.5f}f)"
        return f"ht_mean(ht_silu({x.var}))" if not self.micro or x.dims else f"ht_mean({x.var})"

    def tied(self, x):
        """The tensor, where it has the batch's rows multiplied by what the first input has in each: micro-batches cut one batch."""
        if not (x.dims and x.dims[0].root() is self.batch.root() and self.batch.root().batch):
            return x
        first = self.lines[0][0]
        mean = f"ht_mean({first.var}, .dim = ht_shape({', '.join(str(d) for d in range(1, len(first.dims)))}))" if len(first.dims) > 1 else first.var
        return self.make(x.dims, f"ht_mul({x.var}, {'ht_unsqueeze(' * (len(x.dims) - 1)}{mean}{', -1)' * (len(x.dims) - 1)})", 1.0, "value", [x])

    def loss(self):
        """A term for every tensor that nobody used."""
        leaves = [t for t in self.tensors if not t.used and t.kind != "input"] or self.tensors[-1:]
        if len(self.inputs) > 1:
            leaves = [self.tied(t) for t in leaves]
        if not any(t.kind == "param" for t in self.tensors):
            leaves.append(self.param([self.fresh()], options=False))
        for x in leaves:
            self.terms.append(f"ht_scale({self.term(x)}, {self.rng.uniform(0.3, 1.5):.3f}f)")
            shows = not self.micro or self.mixes or isinstance(self.strategy, Pipelines)
            if shows and self.rng.random() < 0.2:
                self.outputs.append((x.var, x.count()))

    def name_dims(self):
        roots = []
        for t, _ in self.lines:
            roots += [d.root() for d in t.dims]
        for d in dict.fromkeys(roots):
            if self.rng.random() < (0.6 if d.plain else 0.3):
                d.name = self.rng.choice(NAMES)

    def lay_out(self):
        """By line: whether the names of its tensor stand there, and the layout that is written for it."""
        rng, self.marks = self.rng, {}
        self.layers = self.strategy.place(self.lines, rng) if isinstance(self.strategy, Pipelines) else [None] * len(self.lines)
        for i, (t, _) in enumerate(self.lines):
            named, layout = rng.random() < 0.5, None
            if rng.random() < 0.06:
                partial = t.kind == "value"
                axes = rng.random() < 0.5 or isinstance(self.strategy, Pipelines)
                text = self.strategy.axes_layout(t, partial) if axes else self.strategy.device_layout(t, partial)
                layout = f"{rng.choice(['shard', 'reshard'])}({t.var}: {text})"
            self.marks[i] = named, layout
        self.anew = {i for i in range(len(self.lines)) if isinstance(self.strategy, Pipelines) and rng.random() < 0.06}

    def name(self, dim):
        name = dim.root().name
        return "_" if self.no_names or name in self.dropped or not name else name

    def alive(self):
        """The lines that the terms need, those in `without` left aside."""
        needed = " ".join(term for k, term in enumerate(self.terms) if k not in self.without)
        kept = set()
        for i in reversed(range(len(self.lines))):
            t, text = self.lines[i]
            if re.search(rf"\b{t.var}\b", needed) or t.kind == "input":
                kept.add(i)
                needed += " " + text
        return kept

    def text(self):
        """The model function; the layouts that stand in it are in self.written, by line."""
        lines, kept, self.written = [f"ht_tensor m{self.index}(void)", "{", f'    ht_scope("m{self.index}");'], self.alive(), {}
        for i, (t, text) in enumerate(self.lines):
            if i not in kept:
                continue
            layer = f"#pragma hspmd layer({self.layers[i].replace(':', ',')})" if self.layers[i] else None
            again = "#pragma hspmd recompute" if i in self.anew and t.kind == "value" else None
            lines += [line for line in (layer, again, "    " + text) if line]
            named, layout = self.marks[i]
            names = [self.name(d) for d in t.dims]
            while names and names[-1] == "_":
                names.pop()
            if named and names:
                lines.append(f"#pragma hspmd dims({t.var}: {', '.join(names)})")
            if layout and i not in self.no_layout:
                self.written[len(lines)] = i
                lines.append(f"#pragma hspmd {layout}")
            for body in [body for var, body in self.extras if var == t.var]:
                lines += [line for line in [layer] + [f"    {line}" for line in body.split("\n")] if line]
        lines += [f'    ht_output({var}, "{var}");' for var, _ in self.shown()]
        lines.append("    ht_tensor loss = anchor();")
        for layer in self.strategy.order if isinstance(self.strategy, Pipelines) else []:
            lines += [f"#pragma hspmd layer({layer.replace(':', ',')})", "    loss = ht_scale(loss, 1.01f);"]
        lines += [f"    loss = ht_add(loss, {term});" for k, term in enumerate(self.terms) if k not in self.without]
        return lines + ["    return loss;", "}", ""]

    def shown(self):
        """The outputs that the text still has."""
        kept = {self.lines[i][0].var for i in self.alive()}
        return [(var, count) for var, count in self.outputs if var in kept]

    def fed(self):
        """The inputs that stand in the text, with their numbers."""
        text = "\n".join(self.text())
        return [(k, i) for k, i in enumerate(self.inputs) if f'"{i[0]}"' in text]

    def inferred(self):
        """Whether the value with the new weights is taken after every step, by a program of its own."""
        return self.index % 3 == 0

    def optimizer(self):
        clip = f", .clip = {self.clip}f" if self.clip else ""
        if self.adam:
            return f"ht_adamw(.lr = 0.01f, .eps = 0.01f{clip})"
        return f"ht_sgd(.lr = 0.05f, .momentum = 0.5f{', .decay = 0.1f' if self.index % 3 == 0 else ''}{clip})"

    def run_text(self):
        """The function that trains it."""
        n, lines = self.index, []
        for _, (name, count, limit, _) in self.fed():
            lines.append(f"    static {'int32_t' if limit else 'float'} {name}[{count}];")
        lines.append(f"    for (int step = 0; step < {3 if self.adam else 5}; step++) {{")
        for k, (name, count, limit, holes) in self.fed():
            seed = f"{100 * n + 7 * k} + 1000003u * (unsigned)step"
            lines.append(f"        fill_i({name}, {count}, {seed}, {limit}, {int(holes)});" if limit else f"        fill_f({name}, {count}, {seed});")
        feeds = "".join(f', ht_feed("{name}", {name})' for _, (name, *_) in self.fed())
        lines += [f"        float loss = ht_step(program{feeds});", f'        show(out, "loss", "m{n}", &loss, 1);']
        if self.inferred():
            lines += [f"        ht_run(inference{feeds});", '        ht_fetch(inference, "", &loss);', f'        show(out, "value", "m{n}", &loss, 1);']
        lines.append("    }")
        for name, count in self.shown():
            lines += ["    {", f"        static float value[{count}];", f'        ht_fetch(program, "{name}", value);',
                      f'        show(out, "output", "m{n}.{name}", value, {count});', "    }"]
        return [f"static void run{n}(ht_program *program, ht_program *inference, FILE *out)", "{", *lines, "}", ""]


class Group:
    """Several models and the strategy they share."""

    def __init__(self, seed, count, meshes=MESHES, mixes=False, pipelines=False):
        rng, self.prelude = random.Random(seed), PRELUDE
        self.strategy = Pipelines(rng) if pipelines else Strategy(rng, meshes, mixes)
        self.models = [Model(random.Random(f"{seed}.{k}"), k, self.strategy, mixes) for k in range(count)]

    def accepted(self):
        return [m for m in self.models if not m.refused]

    def text(self, only=None):
        """The C file with all models that are not refused, or with one."""
        lines, self.first = self.prelude.split("\n"), {}
        chosen = [m for m in self.accepted() if only is None or m.index == only]
        for m in chosen:
            self.first[m.index] = len(lines) + 1
            lines += m.text() + m.run_text()
        lines += ["int main(int argc, char **argv)", "{", "    ht_session *session = ht_open(&argc, &argv);", '    FILE *out = fopen(argv[1], "w");']
        lines += [f"    ht_program *p{m.index} = ht_train(session, m{m.index}, {m.optimizer()}, .dtype = DTYPE);" for m in chosen]
        lines += [f"    ht_program *q{m.index} = {f'ht_infer(session, m{m.index}, .dtype = DTYPE)' if m.inferred() else 'NULL'};" for m in chosen]
        lines += ['    show_params(out, session, "before");']
        lines += [f"    run{m.index}(p{m.index}, q{m.index}, out);\n    fflush(out);" for m in chosen]
        return "\n".join(lines + ['    show_params(out, session, "after");', "    fclose(out);", "    ht_close(session);", "    return 0;", "}", ""])

    def model_at(self, line):
        """The model that a line of the text belongs to, and the line within it."""
        found = [k for k, first in self.first.items() if first <= line]
        return (self.models[max(found)], line - self.first[max(found)]) if found else (None, 0)
