#!/usr/bin/env python3
"""Trains the GPT of examples/gpt with hetucc and with PyTorch, on four CPU ranks, in one run.

    tools/bench/beside_torch.py BUILD [PYTHON]

Prints tokens a second of dp4 divided by DistributedDataParallel's, and of tp4 divided by DTensor's
(torch_gpt.py). PYTHON has torch; default: this one. The model has 4 layers, width 256, 4 heads, 16
rows of 128 bytes, AdamW without clipping, one thread a rank. Each run gives the median of 12 steps;
runs of both alternate, and the median of the runs counts.
"""
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import bench

LAYERS, WIDTH, HEADS, BATCH, SEQ, STEPS, WARM, TURNS, RANKS = 4, 256, 4, 16, 128, 12, 3, 3, 4
ROWS = (("dp", "dp4 over DistributedDataParallel", 1.1), ("tp", "tp4 over DTensor", 1.5))


def ours(build, work, kind):
    out = work / kind
    sizes = bench.defines(dict(LAYERS=LAYERS, EMBED=WIDTH, HEADS=HEADS, BATCH=BATCH, SEQ=SEQ, CLIP="0.0f"))
    bench.run(build / "bin" / "hetucc", f"--strategy={bench.GPT}/strategies/{kind}{RANKS}.strategy", "-O2", *sizes, bench.GPT / "gpt.c", *bench.COMMON, "-o", out, "-lm")
    return out


def our_rate(program):
    said = bench.run("mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-x", "OMP_NUM_THREADS=1", "-x", "OPENBLAS_NUM_THREADS=1", "-np", RANKS, program,
                     "--steps", WARM + STEPS, "--sample", 0, "--every", 1, "--fixed")
    return statistics.median(float(n) for n in re.findall(r"(\d+) tokens/s", said)[-STEPS:])


def their_rate(python, kind):
    said = subprocess.run([python, pathlib.Path(__file__).with_name("torch_gpt.py"), kind, *map(str, (RANKS, LAYERS, WIDTH, HEADS, BATCH, SEQ, STEPS))], capture_output=True, text=True)
    if said.returncode:
        sys.exit(said.stderr[-2000:])
    return float(re.search(r"(\S+) tokens/s", said.stdout).group(1))


def main():
    build, python, good = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else sys.executable, True
    if subprocess.run([python, "-c", "import torch.distributed.tensor"], capture_output=True).returncode:
        sys.exit(f"{python} has no torch: python3 -m venv VENV && VENV/bin/pip install torch numpy, and give VENV/bin/python")
    print(f"{'what':36} {'tokens/s':>10} {'PyTorch':>10} {'ratio':>7} {'wanted':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, what, wanted in ROWS:
            program = ours(build, pathlib.Path(folder), kind)
            turns = [(our_rate(program), their_rate(python, kind)) for _ in range(TURNS)]
            own, their = (statistics.median(t) for t in zip(*turns))
            good = good and own / their >= wanted
            print(f"{what:36} {own:10.0f} {their:10.0f} {own / their:7.2f} {f'>= {wanted}':>8}  {'' if own / their >= wanted else 'missed'}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
