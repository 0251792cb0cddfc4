"""The cases of pytorch.py: each case's call in C, its counterpart in PyTorch, and its operands.

The call is a C expression over the operands, or statements that end with `return`. The counterpart is Python, evaluated only where PyTorch is installed. Operands are named x, z, w, v and b.
`dims` names their dimensions, which strategies cut; without it the dimensions of x are named f0, f1, ... Numbers are multiples of 1/32, which bf16 holds exactly, so some numbers occur twice.
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
    """Edges, each beside every other."""
    some = [0.0, -0.0, 1e-30, 20.5, INF, -INF, NAN, -1, 0.5]
    n = len(some)
    return {"x": Operand((n, n), [a for a in some for _ in some]), "z": Operand((n, n), some * n)}


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
    yield Case("clamp_crossed", "ht_clamp(x, 1, -0.5f)", "torch.clamp(x, 1, -0.5)", x=plain(3, 5))
    for name, call, torch in table:
        yield Case(name, call, torch, x=positive(3, 5) if name in ("log", "sqrt", "rsqrt", "cube_root") else plain(3, 5))
        yield Case(name + "_edges", call, torch, edge=True, x=finite_edges() if name == "gelu_erf" else edges())


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
    yield Case("var_edges", "ht_var(x, .dim = ht_shape(-1))", "torch.var(x, -1)", edge=True, dims={"x": "f0"}, x=ends)
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


def losses():
    x, z, zero_to_one = plain(3, 5), plain(5, 3), Operand((3, 5), [n / 32 for n in spread((3, 5), 0, 33)])
    for name, torch in (("mse_loss", "mse_loss"), ("l1_loss", "l1_loss"), ("huber_loss", "huber_loss"), ("bce_with_logits", "binary_cross_entropy_with_logits"), ("kl_div", "kl_div")):
        for reduction in ("mean", "sum", "none"):
            yield Case(f"{name}_{reduction}", f"ht_{name}(x, z, .reduction = HT_REDUCE_{reduction.upper()})", f"F.{torch}(x, z, reduction='{reduction}')", x=x, z=positive(3, 5) if name == "kl_div" else zero_to_one)
    yield Case("huber_small", "ht_huber_loss(x, z, .delta = 0.25f)", "F.huber_loss(x, z, delta=0.25)", x=x, z=zero_to_one)
    yield Case("huber_edges", "ht_huber_loss(x, z, .reduction = HT_REDUCE_NONE)", "F.huber_loss(x, z, reduction='none')", edge=True, x=numbers((7,), 1, 0, -1, 3, INF, -INF, NAN), z=numbers((7,), 0, 0, 0, 0, 0, 0, 0))
    yield Case("bce_weights", "ht_bce_with_logits(x, z, .weight = ht_detach(w), .pos_weight = ht_detach(v))", "F.binary_cross_entropy_with_logits(x, z, w.detach(), pos_weight=v.detach())", x=x, z=zero_to_one,
               w=positive(3, 5), v=positive(5))
    yield Case("bce_zero", "ht_bce_with_logits(x, z)", "F.binary_cross_entropy_with_logits(x, z)", x=numbers((5,), 0, 0, 0, 40, -40), z=numbers((5,), 0, 1, 0.5, 1, 0))
    yield Case("kl_batch", "ht_kl_div(x, z, .batchmean = true)", "F.kl_div(x, z, reduction='batchmean')", x=x, z=positive(3, 5))
    yield Case("kl_log", "ht_kl_div(x, z, .log_target = true)", "F.kl_div(x, z, log_target=True)", x=x, z=plain(3, 5))
    target, w, v = integers(7, 3, 5), positive(7), plain(3, 5, 7)
    some = given((3, 5), *([0, -100, 6, 3, 2] * 3))
    flat = "x.reshape(-1, 7), b.reshape(-1)"
    for name, options, torch in (("plain", "", ""), ("weights", ".weight = ht_detach(w)", "weight=w.detach()"), ("smooth", ".label_smoothing = 0.1f", "label_smoothing=0.1"),
                                 ("all", ".weight = ht_detach(w), .label_smoothing = 0.25f, .ignore_index = 3", "weight=w.detach(), label_smoothing=0.25, ignore_index=3")):
        for reduction in ("mean", "sum"):
            for which, b in (("", target), ("_some", some)):
                if which and "ignore" in options:
                    b = integers(7, 3, 5)
                yield Case(f"cross_entropy_{name}_{reduction}{which}",
                           f"ht_cross_entropy_loss(x, b, .reduction = HT_REDUCE_{reduction.upper()}{', ' + options if options else ''})",
                           f"F.cross_entropy({flat}, reduction='{reduction}'{', ' + torch if torch else ''})", x=v, b=b, **({"w": w} if "w=" in options.replace(" ", "") or "weight" in options else {}))
    yield Case("cross_entropy_none", "ht_cross_entropy_loss(x, b, .weight = ht_detach(w), .reduction = HT_REDUCE_NONE)", f"F.cross_entropy({flat}, w.detach(), reduction='none').reshape(3, 5)", x=v, b=some, w=w)
    yield Case("cross_entropy_z", "ht_cross_entropy_loss(x, b, .z_loss = 0.01f)", f"F.cross_entropy({flat}) + 0.01 * (x.logsumexp(-1)[b >= 0] ** 2).mean()", x=v, b=some)
    yield Case("cross_entropy_all_ignored", "ht_cross_entropy_loss(x, b)", f"F.cross_entropy({flat})", edge=True, x=v, b=given((3, 5), *([-100] * 15)))
    yield Case("contrastive", "ht_contrastive_loss(x, z, w)", "(F.cross_entropy(w * x @ z.T, torch.arange(5)) + F.cross_entropy(w * z @ x.T, torch.arange(5))) / 2",
               x=plain(5, 3), z=z, w=Operand((), [1.5]), dims={"x": "f0, f1"})


def einsums():
    table = [("ij->ji", [(3, 5)]), ("ijk->j", [(3, 5, 7)]), ("ij,jk->ik", [(3, 5), (5, 7)]), ("ij,jk", [(3, 5), (5, 7)]), ("bij,bjk->bik", [(3, 4, 5), (3, 5, 7)]),
             ("bshd,bthd->bhst", [(3, 4, 2, 5), (3, 6, 2, 5)]), ("i,j->ij", [(5,), (7,)]), ("ij,ij->", [(3, 5), (3, 5)]), ("ij,kj,kl->li", [(3, 5), (7, 5), (7, 2)]),
             ("ijk,kl->jl", [(3, 5, 4), (4, 7)]), ("abc,adc->bda", [(3, 5, 4), (3, 2, 4)]), ("i j, j k -> i k", [(3, 5), (5, 7)]), ("ii->i", [(5, 5)]), ("ii", [(5, 5)]),
             ("iji,jk->ki", [(5, 3, 5), (3, 2)]), ("...ij,...jk->...ik", [(2, 3, 4, 5), (3, 5, 7)]), ("i...->...", [(3, 5, 7)]), ("b...d,...d", [(3, 5, 7), (2, 5, 7)]),
             ("...,...->...", [(3, 5), ()]), ("ij,ij->ij", [(3, 5), (1, 5)]), ("ij,jk->k", [(3, 5), (1, 7)])]
    for k, (text, shapes) in enumerate(table):
        names = ("x", "z", "w")[:len(shapes)]
        yield Case(f"einsum_{k}", f'ht_einsum("{text}", ht_list({", ".join(names)}))', f"torch.einsum('{text}', {', '.join(names)})", **{n: plain(*s) for n, s in zip(names, shapes)})


def images():
    dims = {"x": "f0, f1"}
    x, w, b = plain(3, 4, 7, 5), plain(6, 4, 3, 3), plain(6)
    half = plain(6, 2, 3, 2)
    for name, options, torch, kernel in (("plain", "", "", w), ("padded", ".padding = 1", "padding=1", w), ("strided", ".stride = {2, 1}, .padding = {1, 0}", "stride=(2, 1), padding=(1, 0)", w),
                                         ("dilated", ".dilation = 2, .padding = {2, 2}", "dilation=2, padding=2", w), ("grouped", ".groups = 2, .stride = 2", "groups=2, stride=2", half)):
        yield Case("conv2d_" + name, f"ht_conv2d(x, w, b{', ' + options if options else ''})", f"F.conv2d(x, w, b{', ' + torch if torch else ''})", x=x, w=kernel, b=b, dims=dims)
    yield Case("conv1d", "ht_conv1d(x, w, HT_NONE, .stride = {2}, .padding = {1})", "F.conv1d(x, w, stride=2, padding=1)", x=plain(3, 4, 7), w=plain(5, 4, 3), dims=dims)
    table = [("max_pool", "ht_max_pool2d(x, 2)", "F.max_pool2d(x, 2)"), ("max_pool_padded", "ht_max_pool2d(x, {3, 2}, .stride = {2, 2}, .padding = {1, 1})", "F.max_pool2d(x, (3, 2), 2, 1)"),
             ("avg_pool", "ht_avg_pool2d(x, {2, 3}, .stride = 1, .padding = 1)", "F.avg_pool2d(x, (2, 3), 1, 1)"),
             ("adaptive", "ht_adaptive_avg_pool2d(x, 3, 2)", "F.adaptive_avg_pool2d(x, (3, 2))"), ("nearest", "ht_upsample_nearest(x, 10, 4)", "F.interpolate(x, (10, 4))"),
             ("bilinear", "ht_upsample_bilinear(x, 10, 4, false)", "F.interpolate(x, (10, 4), mode='bilinear')"),
             ("bilinear_corners", "ht_upsample_bilinear(x, 10, 4, true)", "F.interpolate(x, (10, 4), mode='bilinear', align_corners=True)")]
    for name, call, torch in table:
        yield Case(name, call, torch, x=x, dims=dims)
    equal = numbers((1, 1, 2, 6), 1, 1, 0, 2, 3, NAN, 1, 1, 2, 2, 3, 3)
    yield Case("max_pool_edges", "ht_max_pool2d(x, {2, 2})", "F.max_pool2d(x, 2)", edge=True, x=equal, dims={})
    v, u = positive(4), plain(4)
    yield Case("batch_norm", "ht_batch_norm(x, v, z, 1e-5f)", "F.batch_norm(x, None, None, v, z, True)", x=x, v=v, z=u, dims=dims)
    yield Case("batch_norm_flat", "ht_batch_norm(x, HT_NONE, HT_NONE, 1e-5f)", "F.batch_norm(x, None, None, None, None, True)", x=plain(7, 4), dims=dims)
    yield Case("group_norm", "ht_group_norm(x, 2, v, z, 1e-5f)", "F.group_norm(x, 2, v, z)", x=x, v=v, z=u, dims={"x": "f0"})
    yield Case("instance_norm", "ht_instance_norm(x, v, z, 1e-5f)", "F.instance_norm(x, None, None, v, z)", x=x, v=v, z=u, dims=dims)


def attentions():
    q, k, v = plain(3, 5, 4, 6), plain(3, 7, 2, 6), plain(3, 7, 2, 3)
    torch = "F.scaled_dot_product_attention(*(a.transpose(1, 2) for a in (x, z.repeat_interleave(2, 2), w.repeat_interleave(2, 2))){}).transpose(1, 2)"
    explicit = "((torch.einsum('bshd,bthd->bhst', x, z.repeat_interleave(2, 2)) * {scale}){cap}{hide}).softmax(-1).matmul(w.repeat_interleave(2, 2).transpose(1, 2)).transpose(1, 2)"
    near = "torch.arange(5)[:, None] - torch.arange(7)"
    some = given((3, 1, 5, 7), *[0 if i // 7 % 5 == 2 or i % 3 == 0 else 1 for i in range(105)])
    table = [("plain", "", torch.format("")), ("causal", ", .causal = true", torch.format(", is_causal=True")), ("scaled", ", .scale = 0.3f", torch.format(", scale=0.3")),
             ("boolean", ", .mask = b", torch.format(", attn_mask=b != 0")), ("additive", ", .mask = v", torch.format(", attn_mask=v")),
             ("window", ", .window = 3, .causal = true", explicit.format(scale="6 ** -0.5", cap="", hide=f".masked_fill(({near} >= 3) | ({near} < 0), -math.inf)")),
             ("soft_cap", ", .soft_cap = 1.5f, .scale = 0.5f", explicit.format(scale="0.5 / 1.5", cap=").tanh() * 1.5", hide="").replace("((torch", "(((torch", 1))]
    for name, options, wanted in table:
        more = {"b": some} if name == "boolean" else {"v": plain(4, 1, 7)} if name == "additive" else {}
        yield Case("attention_" + name, f"ht_masked_attention(x, z, w{options})", wanted, x=q, z=k, w=v, dims={"x": "f0, _, (f1 f2)", "z": "f0, _, f1"}, **more)


GROUPS = {"elements": (maps, pairs), "reductions": (reductions,), "shapes": (shapes,), "losses": (losses,), "layers": (einsums, images, attentions)}


def cases_of(group):
    return [case for make in GROUPS[group] for case in make()]


def all_cases():
    return [case for group in GROUPS for case in cases_of(group)]
