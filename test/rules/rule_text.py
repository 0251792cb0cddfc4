"""Writes random rules of operators: each as a pragma for hetucc, and as C in double for the reference.

An expression keeps the interval in which its values lie, so that functions get arguments at which they are smooth and well conditioned. Both texts come from the same
choices. All else (what is summed, which derivative) is derived independently: for the pragma by the compiler, for the reference by check.h with sums and differences.
"""
import math as m
import random

EXTENT = {"a": 3, "b": 5, "c": 4}
SCALE = 0.75  # the argument `f` of a rule
FUNCTIONS = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "pow", "power", "fabs", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf",
             "erfc", "fmax", "fmin", "hypot", "floor", "ceil", "round", "rint", "trunc"]


class Expr:
    """`rule` and `c` are texts; `level` says how tightly they bind; `factors` are those of the operands that occur."""

    def __init__(self, rule, c, low, high, level=9, factors=frozenset(), kind=""):
        self.rule, self.c, self.low, self.high, self.level, self.factors, self.kind = rule, c, low, high, level, factors, kind

    def most(self):
        return max(abs(self.low), abs(self.high))


class Operand:
    def __init__(self, name, index, factors, low, high, integer=False, optional=False, absent=False):
        self.name, self.index, self.factors, self.low, self.high = name, index, factors, low, high
        self.integer, self.optional, self.absent = integer, optional, absent

    def access(self):
        text = f"{'?' if self.optional else ''}{self.name}[{', '.join(self.factors)}]"
        return Expr(text, f"v[{self.index}]", self.low, self.high, factors=frozenset(self.factors))


def number(value):
    """A number in float: quotients of integers would be C's."""
    text = f"{value:g}f" if value != int(value) else f"{value:.1f}f"
    return Expr(text, text, value, value)


def integer(value):
    return Expr(str(value), f"{value}.0", value, value)


def wrapped(e, level):
    return (f"({e.rule})", f"({e.c})") if e.level < level else (e.rule, e.c)


def binary(sign, a, b):
    level = {"+": 4, "-": 4, "*": 5, "/": 5}[sign]
    (ra, ca), (rb, cb) = wrapped(a, level), wrapped(b, level + 1)
    corners = {"+": [a.low + b.low, a.high + b.high], "-": [a.low - b.high, a.high - b.low],
               "*": [x * y for x in (a.low, a.high) for y in (b.low, b.high)],
               "/": [x / y for x in (a.low, a.high) for y in (b.low, b.high)] if sign == "/" else []}[sign]
    return Expr(f"{ra} {sign} {rb}", f"{ca} {sign} {cb}", min(corners), max(corners), level, a.factors | b.factors, sign)


def call(name, *args, low, high):
    return Expr(f"{name}f({', '.join(a.rule for a in args)})", f"{name}({', '.join(a.c for a in args)})", low, high,
                factors=frozenset().union(*(a.factors for a in args)), kind=name)


def compare(sign, a, b):
    (ra, ca), (rb, cb) = wrapped(a, 4), wrapped(b, 4)
    return Expr(f"{ra} {sign} {rb}", f"{ca} {sign} {cb}", 0, 1, 3, a.factors | b.factors, sign)


def select(condition, a, b):
    (rc, cc), (ra, ca), (rb, cb) = wrapped(condition, 2), wrapped(a, 2), wrapped(b, 2)
    return Expr(f"{rc} ? {ra} : {rb}", f"{cc} ? {ca} : {cb}", min(a.low, b.low), max(a.high, b.high), 1, condition.factors | a.factors | b.factors, "?")


class Generator:
    """The expressions of one rule."""

    def __init__(self, rng, operands):
        self.rng, self.operands = rng, operands

    def leaf(self):
        choice = self.rng.random()
        if choice < 0.1:
            return number(self.rng.choice([2, 3, 0.5, 0.3, 1.7, -1, -0.6]))
        if choice < 0.17:
            return Expr("f", repr(SCALE), SCALE, SCALE)
        o = self.rng.choice(self.operands)
        return binary("*", number(0.5), o.access()) if o.integer else o.access()

    def within(self, e, least, most):
        """e, or something of it that lies between the two."""
        if least <= e.low and e.high <= most:
            return e
        if least < -1 and most > 1 and self.rng.random() < 0.5:
            return self.small(e)
        middle, radius = (least + most) / 2, (most - least) / 2
        wave = call("sin", self.small(e, 6), low=-1, high=1)
        step = number(round(radius * 0.9, 2))
        return binary("+", number(round(middle, 2)), binary("*", step, wave)) if middle else binary("*", step, wave)

    def small(self, e, most=1.0):
        if e.most() <= most:
            return e
        return binary("*", number(float(f"{0.95 * most / e.most():.1g}")), e) if e.most() < 40 * most else call("tanh", e, low=-1, high=1)

    def positive(self, e):
        """Something of e that is well above 0."""
        if e.low >= 0.25:
            return e
        e = self.small(e, 3)
        inner = binary("*", e, e) if self.rng.random() < 0.5 else call("fabs", e, low=0, high=e.most())
        inner.low, inner.high = 0, max(e.most(), e.most() ** 2)
        return binary("+", number(self.rng.choice([0.5, 0.7, 1.5])), inner)

    def odd(self, e):
        """Something like e that is none of the few numbers in bf16: where it is compared, or has a step, derivatives must not be asked for on the edge."""
        return binary("+", binary("*", number(1.0173), e), number(0.0131))

    def function(self, name, e, depth):
        """A function of math.h, of e or of something like it."""
        if name in ("exp", "exp2", "expm1", "sinh", "cosh"):
            e = self.within(e, -2.5, 2.5)
            f = getattr(m, name, None) or (lambda x: 2 ** x)
            return call(name, e, low=min(f(e.low), f(e.high)) if name != "cosh" else 1, high=max(f(e.low), f(e.high)))
        if name in ("log", "log2", "log10", "log1p", "sqrt", "cbrt"):
            e = self.positive(e)
            f = {"log": m.log, "log2": m.log2, "log10": m.log10, "log1p": m.log1p, "sqrt": m.sqrt, "cbrt": lambda x: x ** (1 / 3)}[name]
            return call(name, e, low=f(e.low), high=f(e.high))
        if name == "pow":
            e, by = self.within(self.positive(e), 0.25, 4), self.small(self.expr(depth - 1), 1.5)
            corners = [x ** y for x in (e.low, e.high) for y in (by.low, by.high)]
            return call("pow", e, by, low=min(corners), high=max(corners))
        if name == "power":
            by = self.rng.choice([2, 3, -1, 0.5, 1.5, -2, 1, 0])
            e = self.small(e, 3) if by in (0, 1, 2, 3) else self.within(self.positive(e), 0.25, 4)
            corners = [e.low ** by, e.high ** by] + ([0] if e.low < 0 else [])
            return call("pow", e, integer(by) if by == int(by) else number(by), low=min(corners), high=max(corners))
        if name in ("asin", "acos"):
            return call(name, self.within(e, -0.9, 0.9), low=-1.2, high=2.8)
        if name == "tan":
            return call(name, self.within(e, -1, 1), low=-1.6, high=1.6)
        if name == "fabs":
            return call(name, e, low=0, high=e.most())
        if name in ("fmax", "fmin", "hypot"):
            other = self.positive(self.expr(depth - 1)) if name == "hypot" else self.expr(depth - 1)
            both = max(e.most(), other.most())
            return call(name, e, other, low=other.low if name == "hypot" else -both, high=1.5 * both)
        if name in ("floor", "ceil", "round", "rint", "trunc"):
            e = self.odd(e)
            return call(name, e, low=e.low - 1, high=e.high + 1)
        return call(name, self.small(e, 4), low=-1.6, high=2)

    def condition(self, depth):
        integers = [o for o in self.operands if o.integer]
        if integers and self.rng.random() < 0.5:
            o = self.rng.choice(integers).access()
            if self.rng.random() < 0.5:
                return compare(self.rng.choice(["==", "!=", "<", ">="]), o, integer(self.rng.choice([0, 1, -2])))
            parity = Expr(f"{o.rule} % 2", f"((int){o.c} % 2)", -1, 1, 5, o.factors, "%")
            return compare(self.rng.choice(["==", "!="]), parity, integer(0))
        return compare(self.rng.choice(["<", "<=", ">", ">="]), self.odd(self.expr(depth - 1)), self.expr(depth - 1))

    def expr(self, depth):
        if depth <= 0:
            return self.leaf()
        choice = self.rng.random()
        if choice < 0.45:
            e = self.function(self.rng.choice(FUNCTIONS), self.expr(depth - 1), depth)
        elif choice < 0.55:
            e = select(self.condition(depth), self.expr(depth - 1), self.expr(depth - 1))
        elif choice < 0.6:
            e = binary("*", self.condition(depth), self.expr(depth - 1))
        elif choice < 0.7:
            e = binary("/", self.expr(depth - 1), self.positive(self.expr(depth - 1)))
        else:
            e = binary(self.rng.choice("+-***"), self.expr(depth - 1), self.expr(depth - 1))
        return e if e.most() < 30 else self.small(e, 10)

    def term(self, depth):
        """An expression that is no sum, so that it is one term."""
        e = self.expr(depth)
        if e.kind in ("+", "-") or not e.factors:
            e = binary("*", self.rng.choice(self.operands).access(), e)
        return e


class Rule:
    """A rule with its operands: `kind` is "" (f32), "half" (bf16), "wide" (bf16 operands, f32 result) or "narrow" (f32 operands, bf16 result)."""

    def __init__(self, rng, index, function=None):
        self.index = index
        if function:
            self.form(rng, function)
        else:
            self.draw(rng)
        self.finish()

    def form(self, rng, function):
        """One function under a sum: over rows, with a factor outside or inside, or as a mean of all."""
        form = self.index % 4
        self.kind = "half" if self.index % 5 == 4 else ""
        self.result = [["a"], ["a"], ["b"], []][form]
        self.operands = [Operand("x0", 0, ["a", "b"], -1.7, 1.7), Operand("x1", 1, ["b"], 0.3, 1.7)]
        gen, x, z = Generator(rng, self.operands[form % 2:]), *(o.access() for o in self.operands)
        e = gen.function(function, binary("*", x, z) if form == 2 else x, 1)
        if e.kind in ("+", "-"):
            e = binary("*", number(1.5), e)
        e = binary("*", e, z) if form == 1 else e
        if form == 3:
            r, c = wrapped(e, 5)
            e = Expr(f"{r} / (size(a) * size(b))", f"{c} / 15", e.low, e.high, 5, e.factors, "/")
        self.terms = [("+", e, False)]

    def draw(self, rng):
        self.kind = rng.choice(["", "", "", "", "", "half", "wide", "narrow"])
        self.result = sorted(rng.sample("abc", rng.choice([0, 1, 1, 2, 2, 3])))
        self.operands = [self.operand(rng, i) for i in range(rng.choice([1, 2, 2, 3]))]
        floats = [o for o in self.operands if not o.optional]
        gen = Generator(rng, floats)
        self.terms = []  # (sign, expression, whether it is left out)
        for t in range(rng.choice([1, 1, 1, 2, 3])):
            e = gen.term(rng.choice([1, 2, 2, 3]))
            contracted = sorted(e.factors - set(self.result))
            if contracted and rng.random() < 0.3:
                f = rng.choice(contracted)
                r, c = wrapped(e, 5)
                e = Expr(f"{r} / size({f})", f"{c} / {EXTENT[f]}", e.low / EXTENT[f], e.high / EXTENT[f], 5, e.factors, "/")
            self.terms.append((rng.choice("++-") if t else rng.choice("+++-"), e, False))
        for o in self.operands:
            if o.optional:
                a = o.access()
                e = binary("*", call("tanh", a, low=-1, high=1), gen.term(1))
                self.terms.append((rng.choice("+-"), e, o.absent))

    def finish(self):
        """Keeps the operands that occur, and numbers those that are given."""
        self.operands = [o for o in self.operands if any(f"v[{o.index}]" in e.c for _, e, _ in self.terms)]
        has = set().union(*(o.factors for o in self.operands if not o.absent))
        self.sizes = [f for f in self.result if f not in has]
        for i, o in enumerate(self.given()):
            for _, e, _ in self.terms:
                e.c = e.c.replace(f"v[{o.index}]", f"v[{i}]")
            o.index = i

    def given(self):
        """The operands that are not absent."""
        return [o for o in self.operands if not o.absent]

    def operand(self, rng, i):
        factors = sorted(set(rng.sample("abc", rng.choice([1, 1, 2, 2, 3]))) | (set(self.result) if i == 0 and rng.random() < 0.9 else set()))
        optional = i > 0 and rng.random() < 0.15
        integer = i > 0 and not optional and rng.random() < 0.2
        low = -3 if integer else rng.choice([-1.7, 0.3])
        return Operand(f"x{i}", i, factors, low, 3 if integer else 1.7, integer, optional, optional and rng.random() < 0.5)

    def text(self):
        body = ""
        for sign, e, _ in self.terms:
            r, _ = wrapped(e, 5)
            body += (f" {sign} " if body else "-" if sign == "-" else "") + r
        clauses = "".join(f" size({f}: {EXTENT[f]})" for f in self.sizes)
        if self.kind in ("wide", "narrow") or any(o.integer for o in self.operands):
            clauses += f" dtype(y: {'bf16' if self.kind in ('half', 'narrow') else 'f32'})"
        return f"y[{', '.join(self.result)}] = {body}{clauses}"


def rules(seed, count):
    """So many random rules; of seed 0, every function in two forms."""
    rng = random.Random(seed)
    return [Rule(rng, i, None if seed else FUNCTIONS[i // 2]) for i in range(count if seed else 2 * len(FUNCTIONS))]
