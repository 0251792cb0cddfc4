#!/usr/bin/env python3
"""Tests pipelines whose tables are written by hand (tables.c), with mpirun and without: values, times, slow messages, and ranks killed in any phase."""
import functools
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "run"), str(HERE.parent / "sessions")]
import harness
import sessions
from harness import Failure
from sessions import Job, expect

FORWARD, BACKWARD = 20, 20  # milliseconds


def run(bench, mpi, schedule, stages, pipelines, microbatches, forward=FORWARD, backward=BACKWARD, program="tables", **more):
    """Seconds of a step."""
    arguments = [schedule, stages, pipelines, microbatches, forward, backward]
    codes, said, _ = Job([bench.build / "test" / "pipelines" / program] * (stages * pipelines), arguments, mpi=mpi, **more).finish(60)
    if any(codes):
        raise Failure(f"exit {codes}\n{said[-3000:]}")
    expect(said, "same bits")
    return float(re.search(r"seconds ([\d.]+)", said)[1])


def timed(bench, mpi, schedule, stages, pipelines, microbatches):
    """A step takes what the closed form says: the schedule keeps the stages busy, and messages cost nothing."""
    seconds = run(bench, mpi, schedule, stages, pipelines, microbatches)
    wanted = (microbatches + stages - 1) * (FORWARD + BACKWARD) / 1000
    if not wanted <= seconds <= 1.10 * wanted:
        raise Failure(f"a step takes {seconds:.4f} s, not {wanted:.4f}")
    return f"{seconds / wanted:.3f} of (M + S - 1) t"


def slow(bench, seeds, *arguments):
    """Every send is synchronous and late."""
    for seed in seeds:
        run(bench, True, *arguments, 0, 0, LD_PRELOAD=str(bench.build / "lib" / "slow.so"), SLOW_SEED=str(seed))


def hidden(bench, added=20):
    """Sums of gradients that take longer cost a step little where there is something to compute beside them."""
    slow = {"LD_PRELOAD": str(bench.build / "lib" / "slow.so"), "SLOW_MOST": "0", "TABLES_TAIL": "60"}
    before = run(bench, True, "1f1b", 2, 2, 3, 5, 5, **slow)
    after = run(bench, True, "1f1b", 2, 2, 3, 5, 5, SLOW_SUMS=str(added), **slow)
    shown = (after - before) * 1000 / (2 * added)
    if shown > 0.3:
        raise Failure(f"of {2 * added} ms, {shown:.2f} are not hidden")
    return f"{1 - shown:.2f} of {2 * added} ms"


def killed(bench, mpi, rank, part, microbatch):
    """The others end soon, and name the rank."""
    codes, said, took = Job([bench.build / "test" / "pipelines" / "tables"] * 4, ["1f1b", 2, 2, 4, 5, 5, rank, part, microbatch], mpi=mpi).finish(60)
    if not all(codes) or took > 30:
        raise Failure(f"exit {codes} after {took:.1f} s\n{said[-3000:]}")
    if not re.search(rf"rank {rank} has ended|rank {rank} with PID", said):
        raise Failure(f"nobody named rank {rank}\n{said[-3000:]}")
    expect(said, "hetu: rank ")
    return f"after {took:.1f} s"


def emulated(bench, mpi, schedule, stages, pipelines, microbatches, **more):
    """The same on emulated GPUs: one a rank, which NCCL connects, or one for all."""
    run(bench, mpi, schedule, stages, pipelines, microbatches, 0, 0, "cuda_tables", HETU_EMULATE_POISON="1", HETU_EMULATE_PROTECT="1", **more)


def tests(bench, a):
    case, long = functools.partial, bool(os.environ.get("HETU_LONG"))
    yield "time.gpipe", case(timed, bench, True, "gpipe", 3, 1, 5), True
    yield "time.1f1b", case(timed, bench, True, "1f1b", 4, 1, 8)
    yield "time.1f1b.alone", case(timed, bench, False, "1f1b", 4, 1, 6), True
    yield "time.sums", case(timed, bench, True, "1f1b", 2, 2, 5)
    yield "time.sums.alone", case(timed, bench, False, "gpipe", 2, 2, 4)
    yield "hidden", case(hidden, bench)
    yield "apart", case(run, bench, False, "1f1b", 4, 1, 6, 0, 0, HETU_NODE="{}")
    for schedule in "gpipe", "1f1b":
        yield f"slow.{schedule}", case(slow, bench, range(1, 21) if long else (1, 2), schedule, 2, 2, 4)
        yield f"slow.{schedule}.deep", case(slow, bench, range(21, 41) if long else (3,), schedule, 4, 1, 5), schedule == "gpipe"
    for order in ("issue", "late") if (bench.build / "test" / "pipelines" / "cuda_tables").exists() else ():
        for schedule, shape in ("gpipe", (2, 2, 3)), ("1f1b", (4, 1, 6)):
            yield f"cuda.nccl.{schedule}.{order}", case(emulated, bench, True, schedule, *shape, HETU_EMULATE_DEVICES="8", HETU_EMULATE_ORDER=order)
            yield f"cuda.staged.{schedule}.{order}", case(emulated, bench, order == "late", schedule, *shape, HETU_EMULATE_ORDER=order)
    for mpi in True, False:
        for rank, part, microbatch in [(r, p, m) for p in ("forward", "backward", "tail", "update") for r, m in ((0, 0), (1, 1), (3, 2))]:
            if long or (rank, part) in {(1, "forward"), (0, "backward"), (3, "update")}:
                yield f"kill.{'mpi' if mpi else 'alone'}.{part}.{rank}", case(killed, bench, mpi, rank, part, microbatch)


if __name__ == "__main__":
    sessions.stalls = sessions.Stalls()
    harness.main("pipelines.tables", tests, jobs=1)
