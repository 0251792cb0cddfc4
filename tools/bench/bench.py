#!/usr/bin/env python3
"""Measures and prints the table of tools/bench.sh:

    bench.py BUILD

Measures the training speed of a GPT, compared with OpenBLAS; compile time; memory, compared with
the least possible (closed_form); conversions of layouts, compared with plain MPI; their planning.
scale.py compiles for many devices, switching.py changes strategies, known.py has published results.
"""
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import known
import scale
import switching

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPT = ROOT / "examples" / "gpt"
COMMON = [ROOT / "examples" / "common" / f"{n}.c" for n in ("options", "progress", "text")]
# Waiting threads sleep: with two hardware threads a core, a spinning one slows down the other.
THREADS = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1",
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

SPEED = dict(EMBED=768, HEADS=12, LAYERS=12, BATCH=4, SEQ=64, VOCAB=50304)
MEMORY = dict(EMBED=256, HEADS=4, LAYERS=6, BATCH=16, SEQ=128, VOCAB=256)
TINY = dict(EMBED=8, HEADS=2, LAYERS=1, BATCH=1, SEQ=4, VOCAB=256)
EIGHT = """strategy eight
  split batch:dp  heads:tp  ffn:tp  vocab:tp  seq:tp
  pipeline
    stage devices(0-7) mesh(dp:2, tp:4)
end strategy
"""


def run(*command, statuses=(0,)):
    command = [str(c) for c in command]
    p = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **THREADS})
    if p.returncode not in statuses:
        sys.exit(f"{' '.join(command)}\nexit {p.returncode}\n{(p.stdout + p.stderr)[-2000:]}")
    return p.stdout


def defines(sizes):
    return [f"-D{name}={value}" for name, value in sizes.items()]


def program(build, work, sizes, label):
    """Compiles the GPT of these sizes for one device, without clipping."""
    out = work / label
    run(build / "bin" / "hetucc", f"--strategy={GPT}/strategies/single.strategy", "-O2", *defines(sizes), GPT / "gpt.c", *COMMON, "-o", out, "-lm")
    return out


def sgemm(work):
    return float(run(work / "sgemm"))


def speed(build, work):
    """Returns the operations a second of a training step, and those of sgemm.

    Counts 6 operations for each token and each weight of a matrix product.
    """
    run("cc", "-O2", ROOT / "tools" / "bench" / "sgemm.c", "-o", work / "sgemm", "-lopenblas")
    weights = SPEED["LAYERS"] * 12 * SPEED["EMBED"] ** 2 + SPEED["VOCAB"] * SPEED["EMBED"]
    trained = program(build, work, SPEED, "speed")
    before = sgemm(work)
    said = run(trained, "--steps", 8, "--sample", 0, "--every", 1)
    after = sgemm(work)
    rate = float(re.findall(r"(\d+) tokens/s", said)[-1])
    return 6 * weights * rate, max(before, after)


def compile_seconds(build, work):
    """Returns hetucc's own seconds for a 12-layer model on 8 devices, the best of three."""
    strategy, best = work / "eight.strategy", 1e9
    strategy.write_text(EIGHT)
    sizes = {**SPEED, "BATCH": 8}
    for i in range(3):
        start = time.monotonic()
        run(build / "bin" / "hetucc", f"--strategy={strategy}", "--emit=c", *defines(sizes), GPT / "gpt.c", "-o", work / f"eight{i}")
        best = min(best, time.monotonic() - start)
    return best


def peak_bytes(trained):
    """Returns the peak of resident memory over three steps, in bytes."""
    child = subprocess.Popen([str(trained), "--steps", "3", "--sample", "0"], stdout=subprocess.DEVNULL, env={**os.environ, **THREADS})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{trained}: exit {child.returncode}")
    return 1024 * usage.ru_maxrss


def closed_form(s):
    """Returns the bytes that training needs at least, and how many of them are activations.

    They are the parameters, gradients and two moments; the activations that backward reads of each
    layer; the logits and their gradient; the gradients within one layer. A layer keeps, in widths of
    EMBED a token: its input, the first norm's result, query, key and value (3), attention's result,
    the middle of the block, the second norm's result, the hidden layer before and after gelu (8).
    A layer also keeps two numbers for each norm and one for each head.
    """
    embed, tokens = s["EMBED"], s["BATCH"] * s["SEQ"]
    weights = s["LAYERS"] * (12 * embed ** 2 + 13 * embed) + (s["VOCAB"] + s["SEQ"]) * embed + 2 * embed
    layer = 16 * embed + s["HEADS"] + 4
    head = 2 * embed + 2 * s["VOCAB"]
    within = 9 * embed
    activations = 4 * tokens * (s["LAYERS"] * layer + head + within)
    return 16 * weights + activations, activations


def memory(build, work):
    grown = peak_bytes(program(build, work, MEMORY, "memory")) - peak_bytes(program(build, work, TINY, "tiny"))
    expected, activations = closed_form(MEMORY)
    assert 2 * activations >= expected
    return grown, expected


def conversions(build):
    """Returns the rows for conversions (textbook.c): of each size the slowest against plain MPI."""
    said = run("mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", "4", build / "tools" / "bench" / "textbook", statuses=(0, 1))
    measured = [line.split(maxsplit=4) for line in said.splitlines()]
    rows = []
    for size, label in ((4 << 10, "4 KiB"), (16 << 20, "16 MiB")):
        ratio, name = max((float(m[3]), m[4]) for m in measured if int(m[0]) == size)
        rows.append((f"conversions over plain MPI, {label}", name, ratio, "<= 1.1", ratio <= 1.1))
    return rows


def growth(seconds):
    """Fits seconds = c * (n log n)^e to {devices: seconds} by least squares; returns e."""
    points = [(math.log(n * math.log(n)), math.log(s)) for n, s in seconds.items()]
    x, y = (sum(p) / len(points) for p in zip(*points))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, b in points)


def planning(build):
    """Returns the rows for the planner."""
    taken = {}
    for line in run(build / "tools" / "bench" / "planning").splitlines():
        devices, _, seconds, name = line.split(maxsplit=3)
        taken.setdefault(name, {})[int(devices)] = float(seconds)
    rows, weights = [], ("weight, copies", "weight, shards")
    for name in weights:
        ms = 1e3 * taken[name][4096]
        rows.append(("planning dp256 tp16 to dp128 tp32, ms", f"4096 devices, {name}", ms, "<= 20", ms <= 20))
    for name in weights:
        exponent = growth(taken[name])
        rows.append(("planning on 64-16384, power of n log n", name, exponent, "<= 1", exponent <= 1))
    for name in ("tensors", "unlike tensors"):
        ms = 1e3 * taken[name][64]
        rows.append(("planning a change of strategy, ms", f"1000 {name}, 64 devices", ms, "<= 200", ms <= 200))
    return rows


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        reached, blas = speed(build, work)
        seconds = compile_seconds(build, work)
        grown, expected = memory(build, work)
    rows = [
        ("training, Gflop/s over sgemm 2048", f"{reached / 1e9:.1f} / {blas / 1e9:.1f}", reached / blas, ">= 0.6", reached / blas >= 0.6),
        ("hetucc, 12 layers, 8 devices, seconds", "without the C compiler", seconds, "<= 0.5", seconds <= 0.5),
        ("peak memory over the closed form, MB", f"{grown / 1e6:.0f} / {expected / 1e6:.0f}", grown / expected, "<= 1.1", grown / expected <= 1.1),
        *conversions(build),
        *planning(build),
        *scale.rows(build / "bin" / "hetucc"),
        *switching.rows(build / "bin" / "hetucc"),
    ]
    print(f"{'what':44} {'measured':30} {'value':>7} {'wanted':>8}")
    for what, measured, value, wanted, good in rows:
        print(f"{what:44} {measured:30} {value:7.3f} {wanted:>8}  {'' if good else 'missed'}")
    print()
    good = known.print_table(build)
    sys.exit(not good or not all(row[-1] for row in rows))


if __name__ == "__main__":
    main()
