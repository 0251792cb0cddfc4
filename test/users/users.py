#!/usr/bin/env python3
"""Tests parts of models other than operators: programs that print numbers, made by hetucc for several strategies and for emulated GPUs, against
the one-device program; and optimizers after 24 steps and batch norm with running means against PyTorch's numbers (optimizers.txt).

Some strategies run only with HETU_LONG=1."""
import functools
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
sys.path.insert(0, str(HERE.parent / "cuda" / "run"))
import emulated
import harness
import optimizers
from harness import Failure, launch, run

harness.MEETS = True

LONG = harness.LONG
# How many ranks the strategies of every program take.
RANKS = {"mesh": 4, "uneven": 4, "stages": 5}
# The programs, by source and flags; the strategies that always run, and the one that runs on emulated GPUs.
PROGRAMS = {"states": ("states", (), list(RANKS), "mesh"),
            "groups": ("optimizers", ("-DOPTIMIZER=0",), ["stages"], None),
            "adafactor": ("optimizers", ("-DOPTIMIZER=1",), ["mesh"], None),
            "muon": ("optimizers", ("-DOPTIMIZER=2",), ["uneven"], "uneven"),
            "fetch": ("fetch", (), ["uneven", "stages"], "uneven"),
            "norm": ("norm", (), ["uneven", "stages"], None)}


def numbers(text):
    return [float(word) for word in text.split()]


def compare(found, wanted, tolerance=4e-6):
    """The largest difference of two lists of numbers, beside the tolerance."""
    if len(found) != len(wanted):
        raise Failure(f"{len(found)} numbers, not {len(wanted)}")
    worst = max(range(len(wanted)), key=lambda i: abs(found[i] - wanted[i]) if math.isfinite(found[i]) else math.inf)
    if not math.isclose(found[worst], wanted[worst], rel_tol=tolerance, abs_tol=tolerance):
        raise Failure(f"number {worst} is {found[worst]}, not {wanted[worst]}")
    return f"{len(found)} numbers, {abs(found[worst] - wanted[worst]):.1g} off at most"


def plain_numbers(bench, source, flags):
    return bench.once(("numbers", source, flags), lambda: numbers(run([bench.plain(HERE / f"{source}.c", flags)]).stdout))


def check_program(bench, builder, name, strategy):
    source, flags = PROGRAMS[name][:2]
    found = numbers(launch(builder.compiled(HERE / f"{source}.c", strategy, flags), RANKS[strategy]).stdout)
    return compare(found, plain_numbers(bench, source, flags))


def check_pytorch(bench, name):
    source, flags = PROGRAMS[name][:2]
    return compare(plain_numbers(bench, source, flags)[optimizers.GIVEN[name]:], optimizers.kept_numbers()[name])


def check_order(bench, ranks):
    """A row of 200 000 elements is sorted, and added up, in the time of n log n: a comparison of each with each takes a minute."""
    source = HERE / "order.c"
    program = bench.compiled(source, "two", ()) if ranks else bench.plain(source)
    unordered, misplaced, off, sums, backward = numbers(launch(program, ranks, timeout=20).stdout)
    if unordered or misplaced or max(off, sums, backward) > 1e-6:
        raise Failure(f"{unordered} elements are out of order, {misplaced} places are wrong, gradients are {off} and {backward} off, sums {sums}")
    return f"gradients {max(off, backward):.1g}, sums {sums:.1g} off"


# Names that the model of fetch.c does not have, and what is said of them.
WRONG_NAMES = {"h0.yy": 'has no value "h0.yy"; near it are "h0.y", "h1.y", ',
               "Momentum": 'has no value "Momentum"; near it are "h0.w.momentum", "h1.w.momentum", ',
               "turned": 'has 2 values whose names end with "turned"; say which: "h0.turned", "h1.turned", '}


def check_wrong_names(bench, strategy):
    source = HERE / "fetch.c"
    program = bench.compiled(source, strategy) if strategy else bench.plain(source)
    for name, message in WRONG_NAMES.items():
        said = launch(program, RANKS.get(strategy, 0), name, check=False).stderr
        lines = [line for line in said.splitlines() if message in line]
        if len(lines) != 1:
            raise Failure(f"of {name} is said: {said}")
    return f"{len(WRONG_NAMES)} names"


def tests(bench, arguments):
    gpus = emulated.Bench(bench.build, bench.path("emulated"))
    gpus.work.mkdir(exist_ok=True)
    found = [(f"{name}.pytorch", functools.partial(check_pytorch, bench, name)) for name in optimizers.GIVEN]
    found += [("order.plain", functools.partial(check_order, bench, 0)), ("order.two", functools.partial(check_order, bench, 2)),
              ("order.two.emulated", functools.partial(check_order, gpus, 2), True)]
    found += [("fetch.names.plain", functools.partial(check_wrong_names, bench, None)), ("fetch.names.uneven", functools.partial(check_wrong_names, bench, "uneven"))]
    for name, (_, _, strategies, on_gpus) in PROGRAMS.items():
        found += [(f"{name}.{s}", functools.partial(check_program, bench, bench, name, s)) for s in (RANKS if LONG else strategies)]
        if on_gpus:
            found.append((f"{name}.{on_gpus}.emulated", functools.partial(check_program, bench, gpus, name, on_gpus)))
    return found


if __name__ == "__main__":
    harness.main("users.programs", tests)
