#!/usr/bin/env python3
"""Makes new resharding cases: of the families of reshard.cases, and of families that this file lacks.

usage: families.py [--seed S] [--count N] [--ranks R] [--family NAME]...

Prints N cases of each family (or of those that are named), one a line, on at most R devices. The same seed gives the same cases.
A case that must be refused begins with '! ' and ends with '# caret COLUMN': the column, from 1, where the message must point.
"""
import argparse
import math
import random

PARTIAL = ("sum", "max")


# ---- parts of layouts ----

def divisors(n):
    return [d for d in range(2, n + 1) if n % d == 0]


def factors(r, n):
    """n as an ordered product of numbers above 1."""
    out = []
    while n > 1:
        out.append(r.choice(divisors(n)))
        n //= out[-1]
    return out


def weights(r, count, chance):
    """' by 3:0:1' for `count` pieces, or nothing."""
    if r.random() >= chance:
        return ""
    w = [r.choice((0, 1, 1, 2, 3, 4, 5)) for _ in range(count)]
    w[r.randrange(count)] = r.randint(1, 5)
    return " by " + ":".join(map(str, w))


def state(r, kind, count, weighted):
    return f"{kind}:{count}" + (weights(r, count, weighted) if isinstance(kind, int) else "")


def listed(devices):
    """The devices as text: a range where they are one, at times."""
    if len(devices) > 2 and devices == list(range(devices[0], devices[-1] + 1)):
        return f"[{devices[0]}-{devices[-1]}]"
    return "[" + ",".join(map(str, devices)) + "]"


def group(r, devices, kinds, weighted=0.0):
    """A subgroup whose states are of random `kinds`."""
    return listed(devices) + "{" + ",".join(state(r, r.choice(kinds), n, weighted) for n in factors(r, len(devices))) + "}"


def kinds_of(rank, partial=None):
    return list(range(rank)) + ["dup"] + ([partial] if partial else [])


def extents(r, rank, most):
    """A shape of at most `most` elements; sizes divide little, and at times nothing is left."""
    shape = []
    for _ in range(rank):
        n = r.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 24, 25, 33))
        shape.append(n if math.prod(shape) * n <= most else r.choice((1, 2, 3)))
    return shape


def partial_of(r):
    return r.choice((None, None, "sum", "sum", "max"))


def case(shape, src, dst):
    return f"f32[{','.join(map(str, shape))}]: {src} -> {dst}"


# ---- families ----

def one_axis(r, ranks):
    shape = extents(r, 2, 150)
    n, m = r.randint(1, min(8, ranks)), r.randint(1, min(8, ranks))
    first, second = r.sample(range(ranks), n), r.sample(range(ranks), m)
    src = r.choice([0, 1, "dup"] + ([r.choice(PARTIAL)] if n > 1 else []))
    dst = r.choice((0, 1, "dup"))
    if r.random() < 0.1 and src not in PARTIAL and m > 1:
        dst = r.choice(PARTIAL)
    return case(shape, f"{listed(first)}{{{src}:{n}}}", f"{listed(second)}{{{dst}:{m}}}")


def two_axes(r, ranks):
    shape = extents(r, 2, 200)
    a, b = r.choice([(x, y) for x in range(2, 7) for y in range(2, 7) if x * y <= min(ranks, 24)])
    partial, devices = partial_of(r), list(range(a * b))
    if r.random() < 0.3:
        r.shuffle(devices)
    def pair(kinds):
        return f"{listed(devices)}{{{state(r, r.choice(kinds), a, 0.1)},{state(r, r.choice(kinds), b, 0.1)}}}"
    return case(shape, pair(kinds_of(2, partial)), pair(kinds_of(2)))


def three_axes(r, ranks):
    n = r.choice([x for x in (8, 12, 16, 18, 24) if x <= ranks])
    return case(extents(r, 3, 1500), group(r, list(range(n)), kinds_of(3, partial_of(r)), 0.05), group(r, list(range(n)), kinds_of(3), 0.05))


def cross_mesh(r, ranks):
    """From one set of devices to another that may overlap it."""
    n, m = r.randint(1, ranks // 2), r.randint(1, ranks // 2)
    begin = r.choice((n, n, n // 2))
    shape = extents(r, 2, 450)
    return case(shape, group(r, list(range(n)), kinds_of(2, partial_of(r))), group(r, list(range(begin, begin + m)), kinds_of(2)))


def transposed(r, n):
    """0 .. n - 1 as the axes of a mesh order them after a transposition."""
    axes = factors(r, n)
    order, strides = list(range(len(axes))), [math.prod(axes[i + 1:]) for i in range(len(axes))]
    r.shuffle(order)
    devices = [0]
    for i in order:
        devices = [d + k * strides[i] for d in devices for k in range(axes[i])]
    return devices


def collectives(r, ranks):
    """No reduction; the same devices in other orders."""
    n, rank = r.choice([x for x in (2, 4, 6, 8, 12, 16, 24, 32, 48, 64) if x <= ranks]), r.choice((2, 2, 3, 4))
    shape = [r.choice((2, 4, 8, 12, 16)) for _ in range(rank)]
    return case(shape, group(r, transposed(r, n), kinds_of(rank)), group(r, transposed(r, n), kinds_of(rank)))


def union(r, numbers, rank, partial):
    """One subgroup, or up to four under a top."""
    counts = []
    while len(counts) < r.choice((1, 2, 2, 3, 4)) and sum(counts) < len(numbers):
        counts.append(r.randint(1, min(6, len(numbers) - sum(counts))))
    devices, groups = list(numbers), []
    for n in counts:
        groups.append(group(r, [devices.pop() for _ in range(n)], kinds_of(rank, partial), 0.25))
    if len(groups) == 1:
        return groups[0]
    tops = ["dup"] + [partial] * bool(partial)
    if rank:
        tops += [f"split {r.randrange(rank)}{r.choice(('', ' inner'))}{weights(r, len(groups), 0.3)}" for _ in range(2)]
    top = r.choice(tops)
    return f"{top}{' ' if top.startswith('split') else ''}({' | '.join(groups)})"


def unions(r, ranks, most=600):
    shape = extents(r, r.choice((0, 1, 1, 2, 2, 3)), most)
    return case(shape, union(r, r.sample(range(ranks), ranks), len(shape), partial_of(r)), union(r, r.sample(range(ranks), ranks), len(shape), None))


def view_of(r, shape):
    """A view of the shape, and its rank."""
    dims = []
    for n in shape:
        d = r.choice(divisors(n)) if n > 1 else 1
        dims.append([d, n // d] if 1 < d < n and r.random() < 0.7 else [n])
    return "(" + ", ".join("*".join(map(str, d)) for d in dims) + ") ", sum(map(len, dims))


def views(r, ranks):
    shape = [r.choice((6, 12, 20, 24, 30, 36, 60)) for _ in range(r.choice((1, 2)))]
    def side(partial):
        view, rank = view_of(r, shape) if r.random() < 0.8 else ("", len(shape))
        return view + union(r, r.sample(range(ranks), ranks), rank, partial)
    return case(shape, side(partial_of(r)), side(None))


def weighted(r, ranks):
    shape, n = extents(r, 2, 300), r.randint(2, min(8, ranks))
    devices = list(range(n))
    return case(shape, group(r, devices, kinds_of(2, partial_of(r)), 1.0), group(r, devices, kinds_of(2), 1.0))


def scarce(r, ranks):
    """Fewer elements than devices, none at all, or no dimension."""
    shape = r.choice(([], [0], [1], [2], [3, 1], [0, 4], [2, 0], [1, 1, 1], [5]))
    return case(shape, union(r, r.sample(range(ranks), ranks), len(shape), partial_of(r)), union(r, r.sample(range(ranks), ranks), len(shape), None))


def one_device(r, ranks):
    d = r.randrange(ranks)
    shape = extents(r, r.choice((0, 1, 2)), 100)
    other = union(r, r.sample(range(ranks), ranks), len(shape), None)
    return case(shape, *r.choice(((f"[{d}]{{}}", other), (other, f"[{d}]{{}}"), (f"[{d}]{{}}", f"[{r.randrange(ranks)}]{{}}"))))


def from_partial(r, ranks):
    """Contributions with duplicates, onto layouts of the same or of other devices."""
    shape, partial = extents(r, r.choice((1, 2)), 400), r.choice(PARTIAL)
    n = r.choice([x for x in (2, 3, 4, 6, 8, 9, 12, 16, 24) if x <= ranks])
    devices = r.sample(range(ranks), n)
    kinds = [partial, partial, "dup"] + list(range(len(shape)))
    src = group(r, devices, kinds)
    if r.random() < 0.1:
        return case(shape, src, src)
    return case(shape, src, r.choice((group(r, devices, kinds_of(len(shape))), union(r, r.sample(range(ranks), ranks), len(shape), None))))


def to_partial(r, ranks):
    shape, partial = extents(r, r.choice((1, 2)), 200), r.choice(PARTIAL)
    numbers = r.sample(range(ranks), ranks)
    return case(shape, union(r, r.sample(range(ranks), ranks), len(shape), None), union(r, numbers, len(shape), partial))


def same(r, ranks):
    """A union becomes what it is: nothing moves."""
    shape = extents(r, r.choice((0, 1, 2)), 200)
    layout = union(r, r.sample(range(ranks), ranks), len(shape), partial_of(r))
    return case(shape, layout, layout)


# ---- refused ----

def wrong_layouts(r, n, rows, columns):
    """Layouts for n devices and a tensor of rows and columns, each in three parts: the middle one, or what follows the first where it is empty, is wrong."""
    return [
        (f"[0-{n - 1}]", f"{{0:{n},1:2}}", ""),                           # counts that do not multiply to the devices
        (f"[0-{n - 1}]{{", f"{r.choice((2, 3, 9))}:{n}", "}"),             # no such dimension
        ("[0,", "0", "]{dup:2}"),                                         # a device twice
        ("[0-2,", "1-3", "]{dup:6}"),
        ("dup([0,1]{dup:2} | [", f"{r.choice((0, 1))}", "]{})"),
        (f"[0-{n - 1}]{{0:", "0", "}"),                                   # no piece
        (f"[0-{n - 1}]{{0:{n} by ", "1" + ":1" * n, "}"),                  # other weights than pieces
        (f"[0-{n - 1}]{{0:{n} by ", "0" + ":0" * (n - 1), "}"),            # nothing for anybody
        (f"split {r.choice((0, 1))} by ", "1:2:3", " ([0]{} | [1]{})"),
        ("", "split 5", " ([0]{} | [1]{})"),
        (f"[0-{n - 1}", "{", f"0:{n}}}"),                                  # a bracket that is missing
        (f"[0-{n - 1}]{{0:{n}", "", ""),
        (f"[0-{n - 1}]{{", r.choice(("row", "sun")), f":{n}}}"),           # no name that is known
        (f"[0-{n - 1}]{{0", "*", f"{n}}}"),
        ("[", "3-1", "]{dup:3}"),                                         # a range that ends before it begins
        (f"[0-{n - 1}]{{0:{n}}}", " and more", ""),
        ("", f"({rows}*2,{columns})", f" [0-{n - 1}]{{0:{n}}}"),           # a view of another tensor
        ("", f"({rows})", f" [0-{n - 1}]{{0:{n}}}"),
        ("sum([0]{} | [1,2]{", "max:2", "})"),                            # two kinds of reduction
        ("[0-3]{sum:2,", "max:2", "}"),
        ("", "{0:2}", ""),                                                # no devices
        ("", "", ""),
    ]


def refused(r, ranks):
    """A case with one thing wrong in it, and where."""
    n, rows, columns = r.choice((2, 4, 6)), r.randint(2, 20), r.randint(2, 20)
    head, sound = f"f32[{rows},{columns}]: ", f"[0-{n - 1}]{{0:{n}}}"
    layouts = wrong_layouts(r, n, rows, columns)
    before, wrong, after = r.choice(
        [(head + a, b, f"{c} -> {sound}") for a, b, c in layouts] + [(f"{head}{sound} -> {a}", b, c) for a, b, c in layouts] + [
            ("", "float", f"[{rows}]: {sound} -> {sound}"),
            (f"f32[{rows},", "9" * 20, f"]: {sound} -> {sound}"),
            (f"f32[{rows} ", f"{columns}", f"]: {sound} -> {sound}"),
            (f"f32[{rows},{columns}] ", f"{sound}", f" -> {sound}"),
            (f"{head}{sound} {sound}", "", ""),
            (f"{head}[0,1]{{sum:2}} -> [0,1]{{", "max:2", "}"),
            (f"{head}max([0]{{}} | [1,2]{{0:2}}) -> ", "sum", "([0]{} | [1]{})"),
        ])
    text = (before + wrong + after).rstrip()
    return f"! {text} # caret {len(text) - len(text[len(before):].lstrip()) + 1}"


FAMILIES = {f.__name__: f for f in (one_axis, two_axes, three_axes, cross_mesh, collectives, unions, views, weighted, scarce, one_device, from_partial, to_partial, same, refused)}


def make(seed, count, ranks, names=None):
    """`count` cases of each of the families."""
    lines = []
    for name in names or FAMILIES:
        r = random.Random(f"{seed} {name}")
        lines += [FAMILIES[name](r, ranks) for _ in range(count)]
    return lines


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=20)
    a.add_argument("--ranks", type=int, default=24)
    a.add_argument("--family", action="append", choices=FAMILIES)
    a = a.parse_args()
    print("\n".join(make(a.seed, a.count, a.ranks, a.family)))


if __name__ == "__main__":
    main()
