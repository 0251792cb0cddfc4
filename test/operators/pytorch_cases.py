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


def all_cases():
    return [*maps(), *pairs()]
