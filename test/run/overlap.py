#!/usr/bin/env python3
"""Pipelines of operators that sleep (overlap.c), so that a step takes the time of its schedule: times against closed forms, long sums of gradients that are hidden, and ranks
that are killed in any phase. With messages that are late and end only when they are received, these programs and visits.c give the same bits.

Let f, b and w be the times of a stage's phases (forward, backward, wgrad) and t = f + b + w. With M micro-batches, S stages and V ranges a stage, a step takes at most 1.10 times

    1f1b         (M + S - 1) t, and with unequal stages the sum of t + (M - 1) times the largest
    interleaved  M t + (S - 1) t / V, where S divides M
    zero_bubble  M t + (S - 1) (f + b - w)

HETU_LONG=1 tries more cases of each kind.
"""
import functools
import pathlib
import re
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sessions"))
import harness
import sessions
import visits
from harness import Failure
from sessions import Job, expect

SOURCE, ROWS, NAP = HERE / "overlap.c", 48, 20  # milliseconds
LONG = harness.LONG
PARTS = ("forward", "backward", "weights", "update")


def stages(layers, first=0):
    """Lines of stages of one device each, which have these layers."""
    return "\n".join(f"stage devices({first + s}) layers({ranges})" for s, ranges in enumerate(layers))


def pipeline(microbatches, layers, first=0, rows=ROWS):
    return f"pipeline microbatches({microbatches}) rows({rows // microbatches})\n{stages(layers, first)}"


def ranges(counts):
    """The layers of stages that have so many."""
    return [f"{sum(counts[:s])}-{sum(counts[:s + 1]) - 1}" for s in range(len(counts))]


def build(bench, source, name, lines, layers=0):
    strategy = bench.path(f"{source.stem}.{name}.strategy")
    strategy.write_text(f"strategy overlap\n{lines}\nend strategy\n")
    return bench.compiled(source, strategy, (f"-DLAYERS={layers}",) if layers else ())


def run(program, ranks, mpi=True, seconds=100, **more):
    """What a program prints that ends well."""
    codes, said, _ = Job([program] * ranks, mpi=mpi, **more).finish(seconds)
    if any(codes):
        raise Failure(f"exit {codes}\n{said[-3000:]}")
    return said


def shortest_step(said):
    return min(float(text) for text in re.findall(r"^seconds ([\d.]+)$", said, re.M))


# ---- times ----

# name: ranks, layers, the strategy's lines, and in naps how long a step may take
TIMES = {
    "1f1b": (4, 4, "schedule 1f1b\n" + pipeline(8, ranges([1] * 4)), (8 + 3) * 3),
    "interleaved": (4, 8, pipeline(4, ["0, 4", "1, 5", "2, 6", "3, 7"]), 4 * 6 + 3 * 3),
    "zero_bubble": (8, 8, "schedule zero_bubble\n" + pipeline(12, ranges([1] * 8)), 12 * 3 + 7),
    "unequal": (5, 4, "schedule 1f1b\n" + pipeline(4, ranges([1, 2, 1]), rows=16) + "\n" + pipeline(4, ranges([2, 2]), 3, rows=32), 4 * 3 + 3 * 6),
}
MORE_TIMES = {
    "1f1b.eight": (8, 8, "schedule 1f1b\n" + pipeline(16, ranges([1] * 8)), (16 + 7) * 3),
    "1f1b.few": (4, 4, "schedule 1f1b\n" + pipeline(2, ranges([1] * 4)), (2 + 3) * 3),
    "interleaved.two": (2, 8, pipeline(8, ["0, 2, 4, 6", "1, 3, 5, 7"]), 8 * 12 + 3),
    "interleaved.three": (3, 9, pipeline(6, ["0, 3, 6", "1, 4, 7", "2, 5, 8"]), 6 * 9 + 2 * 3),
    "interleaved.eight": (8, 16, pipeline(8, [f"{s}, {8 + s}" for s in range(8)]), 8 * 6 + 7 * 3),
    "zero_bubble.four": (4, 4, "schedule zero_bubble\n" + pipeline(24, ranges([1] * 4)), 24 * 3 + 3),
    "zero_bubble.square": (3, 6, "schedule zero_bubble\n" + pipeline(3, ranges([2] * 3)), 3 * 6 + 2 * 2),
    "unequal.middle": (4, 7, "schedule 1f1b\n" + pipeline(6, ranges([1, 3, 2, 1])), 7 * 3 + 5 * 9),
    "unequal.first": (3, 5, "schedule 1f1b\n" + pipeline(6, ranges([3, 1, 1])), 5 * 3 + 5 * 9),
    "unequal.eight": (8, 12, "schedule 1f1b\n" + pipeline(12, ranges([1, 2, 1, 1, 3, 2, 1, 1])), 12 * 3 + 11 * 9),
}


def timed(bench, name, mpi, ranks, layers, lines, naps):
    program = build(bench, SOURCE, name, lines, layers)
    seconds, wanted = shortest_step(run(program, ranks, mpi, NAPS=f"{NAP} {NAP} {NAP}")), naps * NAP / 1000
    if seconds > 1.10 * wanted:
        raise Failure(f"a step takes {seconds:.4f} s, not {wanted:.4f}")
    return f"{seconds / wanted:.3f} of {wanted:.2f} s"


# ---- sums of gradients ----

# name: layers, and how many of them a rank has; the strategy's lines, on 4 ranks
HIDDEN = {
    "pipelines": (8, 4, "\n".join(pipeline(3, ranges([4, 4]), 2 * p, ROWS // 2) for p in range(2))),
    "copies": (8, 4, "split batch:dp\npipeline microbatches(4)\nstage devices(0-1) mesh(dp:2) layers(0-3)\nstage devices(2-3) mesh(dp:2) layers(4-7)"),
    "data": (8, 8, "split batch:dp\nstage devices(0-3) mesh(dp:4)"),
    "four": (8, 8, "\n".join(pipeline(1, ["0-7"], p, ROWS // 4) for p in range(4))),
}


def hidden(bench, name, layers, sums, lines):
    """Where the sum of each layer's gradients takes 20 ms more, since each of the two messages in a row that it takes arrives 10 ms later, a step takes little
    more than before."""
    program = build(bench, SOURCE, f"hidden.{name}", lines, layers)
    slow = {"LD_PRELOAD": str(bench.build / "lib" / "slow.so"), "SLOW_MOST": "0", "NAPS": f"{NAP} {NAP} {NAP}"}
    before, after = (shortest_step(run(program, 4, **slow, SLOW_SUMS=str(late))) for late in (0, 10))
    shown = (after - before) * 1000 / (20 * sums)
    if shown > 0.3:
        raise Failure(f"of {20 * sums} ms, {shown:.2f} are not hidden")
    return f"{1 - shown:.2f} of {20 * sums} ms"


# ---- the same bits ----

UNEQUAL = pipeline(3, ranges([1, 3]), rows=18) + "\n" + pipeline(5, ranges([2, 1, 1]), 2, rows=30)
V_SHAPE = pipeline(4, ["0, 7", "1, 6", "2, 5", "3-4"])

# name: ranks, layers, lines; of overlap.c
BITS = {"1f1b": (5, 4, "schedule 1f1b\nzero 1\n" + UNEQUAL), "gpipe": (4, 8, "schedule gpipe\n" + V_SHAPE), "zero_bubble": (4, 8, "schedule zero_bubble\n" + V_SHAPE)}


def values_of(folder):
    """{file: bytes} of what a program has dumped."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def dumped(bench, program, ranks, label, mpi, **more):
    folder = bench.path(label)
    folder.mkdir()
    said = run(program, ranks, mpi, HETU_DUMP=str(folder), **more)
    return [line for line in said.splitlines() if not line.startswith("seconds ")], values_of(folder)


def same_bits(bench, program, ranks, name, seeds, mpi):
    program = program()
    kind = "mpi" if mpi else "alone"
    wanted = dumped(bench, program, ranks, f"{name}.{kind}.bits", mpi)
    for seed in seeds:
        late = {"LD_PRELOAD": str(bench.build / "lib" / "slow.so"), "SLOW_SEED": str(seed)}
        if dumped(bench, program, ranks, f"{name}.{kind}.bits.{seed}", mpi, **late) != wanted:
            raise Failure(f"other losses or values with seed {seed}")
    return f"{len(wanted[1])} files, {len(seeds)} seeds"


# ---- ranks that are killed ----

KILLED = pipeline(3, ranges([2, 2]), rows=24) + "\n" + pipeline(4, ranges([1, 3]), 2, rows=24)


def killed(bench, mpi, rank, part):
    """The others end in time and say what they did; somebody names the rank."""
    program = build(bench, SOURCE, "killed", KILLED, 4)
    more = sessions.halt(sessions.Programs(bench), rank, "sum", 3, signal.SIGKILL) if part == "sum" else {"FATAL": f"{rank} {PARTS.index(part)} 5"}
    codes, said, took = Job([program] * 4, mpi=mpi, NAPS="5 5 5", **more).finish(60)
    if not all(codes) or took > 30:
        raise Failure(f"exit {codes} after {took:.1f} s\n{said[-3000:]}")
    doing = r"(?: \((?:\w+)(?: of visit \d)?(?:, micro-batch \d)?\))?(?: at overlap\.c:\d+(?: h\d)?| while it waited)?"
    others = {int(r) for r in re.findall(rf"^hetu: rank (\d) ends in step \d+{doing}: rank {rank} has ended{doing}$", said, re.M)}
    if len(others) < (1 if mpi else 3) or rank in others:
        raise Failure(f"ranks {sorted(others)} say why they end\n{said[-3000:]}")
    return f"after {took:.1f} s"


def times(bench):
    case = functools.partial
    for name, (ranks, *rest) in {**TIMES, **(MORE_TIMES if LONG else {})}.items():
        yield f"time.{name}", case(timed, bench, name, True, ranks, *rest)
    yield "time.alone", case(timed, bench, "1f1b", False, *TIMES["1f1b"])
    for name, rest in HIDDEN.items() if LONG else [("four", HIDDEN["four"])]:
        yield f"hidden.{name}", case(hidden, bench, name, *rest)


def endings(bench):
    """Of programs for whose results time is of no importance."""
    case = functools.partial
    programs = [(name, ranks, case(build, bench, SOURCE, f"bits.{name}", lines, layers)) for name, (ranks, layers, lines) in BITS.items()]
    programs += [(f"visits.{name}", ranks, case(build, bench, visits.SOURCE, name, lines)) for name, (ranks, lines) in visits.STRATEGIES.items()]
    some = {"1f1b": (True, False), "zero_bubble": (True,), "visits.interleaved": (True,), "visits.zero_2": (False,), "visits.zero_3": (True,)}
    for number, (name, ranks, program) in enumerate(programs):
        for mpi in (True, False) if LONG else some.get(name, ()):
            seeds = range(1, 21) if LONG else (number + 1,)
            yield f"bits.{name}.{'mpi' if mpi else 'alone'}", case(same_bits, bench, program, ranks, name, seeds, mpi)
    few = {("forward", 1, True), ("backward", 0, True), ("weights", 3, False), ("sum", 0, False), ("update", 2, True)}
    for part in (*PARTS, "sum"):
        for rank in range(4):
            for mpi in True, False:
                if LONG or (part, rank, mpi) in few:
                    yield f"kill.{part}.{rank}.{'mpi' if mpi else 'alone'}", case(killed, bench, mpi, rank, part)


if __name__ == "__main__":
    sessions.stalls = sessions.Stalls()
    harness.main(lambda a: "run.overlap-ends" if a.ends else "run.overlap", lambda bench, a: endings(bench) if a.ends else times(bench),
                 lambda a: a.add_argument("--ends", action="store_true", help="bits, and ranks that are killed, instead of times"), jobs=1)
