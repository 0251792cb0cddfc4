#!/usr/bin/env python3
"""A mixture of experts: all-to-alls send tokens to the devices that hold the experts, and back, by names alone and by pragmas. Losses are the one-device program's; -Rcomm lists the all-to-alls."""
import functools
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, compare_losses, launch, run

harness.MEETS = True

SOURCE = HERE / "experts.c"
SIZES = {"even": (), "odd": ("-DEXPERTS=6", "-DBATCH=9")}
# By name: the strategy, the pragmas' flag, and how many all-to-all a step has on even sizes, where that is all that goes between devices but small sums: there and back, and back again; None: not counted.
PROGRAMS = {"names": ("experts", (), 3), "pragmas": ("batch", ("-DPRAGMAS",), 3), "later": ("later", (), None), "rows": ("rows", (), None), "lacks": ("lacks", ("-DPRAGMAS",), None)}


def losses(program, ranks):
    return [float(word) for word in launch(program, ranks).stdout.split()]


def check(bench, name, size):
    strategy, pragmas, count = PROGRAMS[name]
    flags = (*pragmas, *SIZES[size])
    found = losses(bench.compiled(SOURCE, strategy, flags), 4)
    wanted = bench.once(("losses", size), lambda: losses(bench.plain(SOURCE, SIZES[size]), 0))
    if not wanted[-1] < 0.6 * wanted[0]:
        raise Failure(f"the model does not learn: {wanted}")
    note = f"{compare_losses(found, wanted, 2e-6):.1g} off at most"
    if count and size == "even":
        said = [line for line in run([bench.hetucc, f"--strategy={strategy}", *flags, "-Rcomm", "--stop-after=specialize", SOURCE]).stderr.splitlines() if "remark:" in line]
        between = [line for line in said if "all-to-all" in line]
        weights = [line for line in said if " up" in line or " down" in line]
        if len(between) != count or weights:
            raise Failure(f"{len(between)} all-to-all, not {count}; weights that move: {weights}\n" + "\n".join(said))
    return note


def tests(bench, arguments):
    return [(f"{name}.{size}", functools.partial(check, bench, name, size), size == "odd" and name != "names" or name in ("later", "rows")) for name in PROGRAMS for size in SIZES]


if __name__ == "__main__":
    harness.main("users.experts", tests)
