"""The cases of pytorch.py: what is called here, what the same is in PyTorch, and the operands.

A case's call is a C expression, or statements that end with `return`, over its operands; the same in PyTorch is Python, read only where PyTorch is installed. Operands are named x, z, w,
v and b. `dims` names their dimensions, which strategies cut; without it those of x are named f0, f1, ... Numbers are multiples of 1/32, which bf16 holds, so some occur twice.
"""
import math

INF, NAN = math.inf, math.nan
EDGES = [0.0, -0.0, 1e-30, -1e-30, 20.5, -20.5, 88, -88, 1e30, -1e30, INF, -INF, NAN, 1, -1, 0.5, 2, -2]


class Operand:
    """`numbers`, row-major, in a shape; integers are fed as they are, other numbers get a gradient."""

    def __init__(self, shape, numbers, integer=False):
        self.shape, self.numbers, self.integer = shape, numbers, integer


def count(shape):
    return math.prod(shape)


def spread(shape, low, high):
    """Numbers between low and high in no order, the same on every machine."""
    state, numbers = 12345 + 7 * count(shape), []
    for _ in range(count(shape)):
        state = state * 1103515245 + 12345 & 0x7fffffff
        numbers.append(low + (state >> 12) % (high - low))
    return numbers


def plain(*shape):
    return Operand(shape, [n / 32 for n in spread(shape, -48, 49)])


def positive(*shape):
    return Operand(shape, [n / 32 for n in spread(shape, 8, 97)])


def integers(below, *shape):
    return Operand(shape, spread(shape, 0, below), True)


def numbers(shape, *values):
    return Operand(shape, values)


def given(shape, *values):
    return Operand(shape, values, True)


def edges():
    return Operand((len(EDGES),), EDGES)


def finite_edges():
    finite = [n for n in EDGES if math.isfinite(n)]
    return Operand((len(finite),), finite)


def pair_of_edges():
    """Every edge beside every other."""
    n = len(EDGES)
    return {"x": Operand((n, n), [a for a in EDGES for _ in EDGES]), "z": Operand((n, n), EDGES * n)}


class Case:
    def __init__(self, name, call, torch, dims=None, edge=False, **operands):
        self.name, self.call, self.torch, self.operands, self.dims = name, call, torch, operands, dims
        self.edge = edge  # PyTorch's in float is wanted, where numbers end as here; it is not run in bf16
        if dims is None and "x" in operands and not operands["x"].integer:
            self.dims = {"x": ", ".join(f"f{d}" for d in range(min(len(operands["x"].shape), 4)))}


def maps():
    """Operators of one tensor, on ordinary numbers and on edges."""
    table = [
        ("exp", "ht_exp(x)", "torch.exp(x)"), ("log", "ht_log(x)", "torch.log(x)"), ("sqrt", "ht_sqrt(x)", "torch.sqrt(x)"), ("rsqrt", "ht_rsqrt(x)", "torch.rsqrt(x)"),
        ("abs", "ht_abs(x)", "torch.abs(x)"), ("neg", "ht_neg(x)", "torch.neg(x)"), ("sin", "ht_sin(x)", "torch.sin(x)"), ("cos", "ht_cos(x)", "torch.cos(x)"),
        ("tanh", "ht_tanh(x)", "torch.tanh(x)"), ("erf", "ht_erf(x)", "torch.erf(x)"), ("sigmoid", "ht_sigmoid(x)", "torch.sigmoid(x)"),
        ("gelu_erf", "ht_gelu_erf(x)", "F.gelu(x)"), ("softplus", "ht_softplus(x, 1, 20)", "F.softplus(x)"), ("softplus_steep", "ht_softplus(x, 2, 1)", "F.softplus(x, 2, 1)"),
        ("leaky_relu", "ht_leaky_relu(x, 0.01f)", "F.leaky_relu(x)"), ("elu", "ht_elu(x, 1.5f)", "F.elu(x, 1.5)"), ("clamp", "ht_clamp(x, -0.5f, 1)", "torch.clamp(x, -0.5, 1)"),
        ("square", "ht_pow(x, ht_scalar(2))", "torch.pow(x, 2)"), ("cube_root", "ht_pow(x, ht_scalar(-1.5))", "torch.pow(x, -1.5)"),
    ]
    for name, call, torch in table:
        yield Case(name, call, torch, x=positive(3, 5) if name in ("log", "sqrt", "rsqrt", "cube_root") else plain(3, 5))
        yield Case(name + "_edges", call, torch, edge=True, x=finite_edges() if name in ("clamp", "gelu_erf") else edges())


def pairs():
    """Operators of two tensors: broadcast by NumPy's rule, and on edges."""
    for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"):
        call, torch = f"ht_{name}(x, z)", f"torch.{name}(x, z)"
        yield Case(name, call, torch, x=positive(3, 5, 7), z=positive(5, 1))
        yield Case(name + "_small_first", call, torch, x=positive(1, 5, 1), z=positive(3, 1, 7), dims={"z": "f0, _, f1"})
        yield Case(name + "_scalar", call.replace("z", "ht_scalar(0.5)"), torch.replace("z", "torch.tensor(0.5)"), x=positive(5, 7))
        yield Case(name + "_edges", call, torch, edge=True, **pair_of_edges())
    yield Case("add_wide", "ht_add(x, z)", "x + z", x=plain(7), z=plain(3, 5, 1), dims={"z": "f0, f1"})
    yield Case("sub_front", "ht_sub(x, z)", "x - z", x=plain(5, 7), z=plain(3, 1, 1, 1), dims={"x": "f0, f1"})
    mask = given((3, 1, 7), *([0, 1, 1, 0, 0, 1, 0] * 3))
    yield Case("where", "ht_where(b, x, z)", "torch.where(b != 0, x, z)", b=mask, x=plain(3, 5, 7), z=plain(5, 1))
    yield Case("masked_fill", "ht_masked_fill(x, b, -2.5f)", "x.masked_fill(b != 0, -2.5)", b=mask, x=plain(3, 5, 7))
    yield Case("where_edges", "ht_where(ht_gt(x, z), ht_log(x), z)", "torch.where(x > z, torch.log(x), z)", edge=True, **pair_of_edges())


def reductions():
    """Over each choice of dimensions, and where rows are equal, infinite or NaN."""
    some = {"all": ("", ""), "last": (".dim = ht_shape(-1)", "-1"), "middle": (".dim = ht_shape(1), .keepdim = true", "1, keepdim=True"),
            "outer": (".dim = ht_shape(0, 2)", "(0, 2)"), "inner": (".dim = ht_shape(-1, 1), .keepdim = true", "(1, 2), keepdim=True")}
    for kind, (options, dim) in some.items():
        for name, torch in (("sum", "sum"), ("mean", "mean"), ("max", "amax"), ("min", "amin"), ("var", "var"), ("logsumexp", "logsumexp")):
            call = f"ht_{name}(x, {options})" if options else f"ht_{name}(x)"
            yield Case(f"{name}_{kind}", call, f"torch.{torch}(x, {dim or '(0, 1, 2)'})", x=plain(3, 5, 7))
    for name in ("argmax", "argmin"):
        yield Case(name + "_all", f"ht_{name}(x)", f"torch.{name}(x)", x=plain(3, 5, 7))
        yield Case(name + "_middle", f"ht_{name}(x, .dim = ht_shape(1))", f"torch.{name}(x, 1)", x=plain(3, 5, 7))
    yield Case("var_population", "ht_var(x, .dim = ht_shape(1), .correction = 0)", "torch.var(x, 1, correction=0)", x=plain(3, 5, 7))
    ends = numbers((7, 4), 1, 1, 0, 1, INF, 2, INF, 0, -INF, -INF, -INF, -INF, NAN, 1, 2, 3, 2, -INF, 2, 1, 0.0, -0.0, 0, 0, 3, NAN, NAN, INF)
    for name, torch in (("sum", "sum"), ("mean", "mean"), ("max", "amax"), ("min", "amin"), ("logsumexp", "logsumexp"), ("argmax", "argmax"), ("argmin", "argmin")):
        yield Case(name + "_edges", f"ht_{name}(x, .dim = ht_shape(-1))", f"torch.{torch}(x, -1)", edge=True, dims={"x": "f0"}, x=ends)
    for largest in (True, False):
        call = f"ht_sorted s = ht_topk(x, 3, 1, {str(largest).lower()}); return s."
        sort = f"ht_sorted s = ht_sort(x, 1, {str(largest).lower()}); return s."
        for k, part in enumerate(("values", "indices")):
            found = f"torch.sort(x, dim=1, descending={largest}, stable=True)[{k}]"
            yield Case(f"topk_{part}_{largest}", call + part + ";", found + "[:, :3]", x=plain(3, 5, 7))
            yield Case(f"sort_{part}_{largest}", sort + part + ";", found, x=plain(3, 5, 7))
            yield Case(f"sort_{part}_{largest}_edges", sort + part + ";", found, edge=True, x=ends)


def shapes():
    x = plain(3, 5, 7)
    table = [
        ("permute", "ht_permute(x, ht_shape(2, 0, 1))", "x.permute(2, 0, 1)"), ("unsqueeze", "ht_unsqueeze(x, -2)", "x.unsqueeze(-2)"),
        ("squeeze", "ht_squeeze(ht_sum(x, .dim = ht_shape(1), .keepdim = true), 1)", "x.sum(1)"),
        ("expand", "ht_expand(x, ht_shape(2, 3, 5, 7))", "x.expand(2, 3, 5, 7)"), ("stack", "ht_stack(ht_list(x, ht_exp(x), x), 1)", "torch.stack([x, x.exp(), x], 1)"),
        ("split", "ht_tensor parts[4]; ht_split(x, 2, 1, parts); return ht_matmul(parts[0], ht_transpose(parts[1], -1, -2));",
         "x.split(2, 1)[0] @ x.split(2, 1)[1].mT"),
        ("chunk", "ht_tensor parts[4]; int n = ht_chunk(x, 3, -1, parts); return parts[n - 1];", "x.chunk(3, -1)[-1]"),
        ("pad", "ht_pad(x, ht_shape(1, 2, 0, 3), 0)", "F.pad(x, (1, 2, 0, 3))"), ("pad_value", "ht_pad(x, ht_shape(2, 0, 1, 1), -1.5)", "F.pad(x, (2, 0, 1, 1), value=-1.5)"),
        ("roll", "ht_roll(x, -2, 1)", "x.roll(-2, 1)"), ("flip", "ht_flip(x, 1)", "x.flip(1)"), ("cumsum", "ht_cumsum(x, 1)", "x.cumsum(1)"),
        ("tril", "ht_tril(x, 1)", "x.tril(1)"), ("triu", "ht_triu(x, -1)", "x.triu(-1)"),
        ("full", "ht_mul(x, ht_full(ht_shape(5, 7), 1.5, HT_F32))", "x * torch.full((5, 7), 1.5)"),
        ("arange", "ht_mul(x, ht_arange(1, 4.5, 0.5, HT_F32))", "x * torch.arange(1, 4.5, 0.5)"),
    ]
    for name, call, torch in table:
        yield Case(name, call, torch, x=x)
    yield Case("arange_down", "ht_cast(ht_arange(9, -5, -2, HT_I32), HT_F32)", "torch.arange(9, -5, -2)")
    yield Case("one_hot", "ht_mul(x, ht_cast(ht_one_hot(b, 7), HT_F32))", "x * F.one_hot(b, 7)", x=x, b=integers(7, 3, 5))
    yield Case("gather", "ht_gather(x, 1, b)", "x.gather(1, b)", x=x, b=integers(5, 3, 4, 7))
    yield Case("scatter_add", "ht_scatter_add(x, -2, b, z)", "x.scatter_add(1, b, z)", x=x, b=integers(5, 3, 4, 7), z=plain(3, 4, 7))
    yield Case("index_select", "ht_index_select(x, 1, b)", "x.index_select(1, b)", x=x, b=integers(5, 4))


GROUPS = {"elements": (maps, pairs), "reductions": (reductions,), "shapes": (shapes,)}


def cases_of(group):
    return [case for make in GROUPS[group] for case in make()]


def all_cases():
    return [case for group in GROUPS for case in cases_of(group)]
