#!/usr/bin/env python3
"""What models bring beside operators: programs that print numbers, made by hetucc for several strategies and for emulated GPUs, against the one-device program."""
import functools
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
sys.path.insert(0, str(HERE.parent / "cuda" / "run"))
import emulated
import harness
from harness import Failure, launch, run

# The programs, and how many ranks their strategies take.
PROGRAMS = {"states": {"mesh": 4, "uneven": 4, "stages": 5}}
EMULATED = {"states": "mesh"}


def numbers(text):
    return [float(word) for word in text.split()]


def compare(found, wanted, tolerance=2e-6):
    """The largest difference, of two lists of numbers, beside the tolerance."""
    if len(found) != len(wanted):
        raise Failure(f"{len(found)} numbers, not {len(wanted)}")
    worst = max(range(len(wanted)), key=lambda i: abs(found[i] - wanted[i]) if math.isfinite(found[i]) else math.inf)
    if not math.isclose(found[worst], wanted[worst], rel_tol=tolerance, abs_tol=tolerance):
        raise Failure(f"number {worst} is {found[worst]}, not {wanted[worst]}")
    return f"{len(found)} numbers, {abs(found[worst] - wanted[worst]):.1g} off at most"


def plain_numbers(bench, name):
    return bench.once(("numbers", name), lambda: numbers(run([bench.plain(HERE / f"{name}.c")]).stdout))


def check_program(bench, name, strategy, ranks):
    found = numbers(launch(bench.compiled(HERE / f"{name}.c", strategy), ranks).stdout)
    return compare(found, plain_numbers(bench, name))


def tests(bench, arguments):
    gpus = emulated.Bench(bench.build, bench.path("emulated"))
    gpus.work.mkdir(exist_ok=True)
    found = []
    for name, strategies in PROGRAMS.items():
        found += [(f"{name}.{s}", functools.partial(check_program, bench, name, s, ranks)) for s, ranks in strategies.items()]
        if name in EMULATED:
            strategy = EMULATED[name]
            found.append((f"{name}.{strategy}.emulated", functools.partial(check_program, gpus, name, strategy, strategies[strategy])))
    return found


if __name__ == "__main__":
    harness.main("users.programs", tests)
