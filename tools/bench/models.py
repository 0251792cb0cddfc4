#!/usr/bin/env python3
"""Trains the models of tools/bench/models with hetucc and with PyTorch, and prints a table.

    tools/bench/models.py BUILD [--python PYTHON] [--bf16] [--only REGEX]

PYTHON has torch; default: this one. Both train the same model on the same batch with AdamW, begin
with the same weights, and have two threads in one process. Both run by turns, and the least of at
least 20 steps counts. The table has milliseconds a step of hetucc's program, of PyTorch eager and
compiled; the faster of PyTorch's over hetucc's (wanted: 0.95 for each, 1.2 for the geometric mean);
the peak memory of both beyond that of an idle process (PyTorch: the smaller of eager and compiled);
the losses of both after the last step. Where they differ by more than a hundredth (bf16: a
twentieth) after the first step, the row says so.
"""
import argparse
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import bench

FOLDER = pathlib.Path(__file__).resolve().parent / "models"
TURNS, EACH = 5, 4  # 20 steps


def normals(*dims):
    return ("normal", dims)


def integers(below, *dims):
    return (below, dims)


# Of each model: its file, its inputs x, y and z.
MODELS = {
    "resnet18": ("images", normals(32, 3, 32, 32), integers(10, 32)),
    "resnet50": ("images", normals(4, 3, 224, 224), integers(1000, 4)),
    "unet": ("images", normals(8, 3, 64, 64), normals(8, 3, 64, 64)),
    "vit": ("images", normals(4, 3, 224, 224), integers(1000, 4)),
    "lstm": ("sequences", integers(256, 16, 64), integers(256, 16, 64)),
    "gru": ("sequences", integers(256, 16, 64), integers(256, 16, 64)),
    "bert": ("sequences", integers(8192, 8, 128), integers(8192, 8, 128)),
    "moe": ("sequences", integers(256, 8, 64), integers(256, 8, 64)),
    "recommender": ("others", normals(256, 13), ("click", (256,)), integers(20000, 8, 256, 4)),
    "recommender_sparse": ("others", normals(256, 13), ("click", (256,)), integers(20000, 8, 256, 4)),
    "llama": ("sequences", integers(256, 1, 2048), integers(256, 1, 2048)),
    "mlp": ("others", normals(32, 64)),
    "scan": ("sequences", integers(256, 8, 512), integers(256, 8, 512)),
    "diffusion": ("images", normals(8, 3, 32, 32), normals(8, 3, 32, 32), ("time", (8,))),
    "graph": ("others", normals(2048, 64), integers(16, 2048), integers(2048, 2, 16384)),
}

# Writes inputs with the python that has numpy: FOLDER, then NAME KIND DIMS each.
WRITE = """
import sys, numpy
draw = numpy.random.default_rng(1)
for name, kind, dims in zip(*[iter(sys.argv[2:])] * 3):
    dims = tuple(map(int, dims.split(",")))
    x = draw.standard_normal(dims, "float32") if kind == "normal" else draw.random(dims, "float32") if kind == "time" else \\
        draw.integers(0, 2, dims).astype("float32") if kind == "click" else draw.integers(0, int(kind), dims).astype("int32")
    numpy.save(f"{sys.argv[1]}/{name}.npy", x)
    x.tofile(f"{sys.argv[1]}/{name}")
"""


class Trainer:
    """A program that trains by standard input, as timed.h and twins.py say."""

    def __init__(self, *command):
        self.lines, self.least, self.first, self.loss = 0, math.inf, None, None
        self.child = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, env={**os.environ, **bench.THREADS})

    def said(self):
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(self.child.stderr.read()[-1500:] or "no answer")
        return [float(n) for n in line.split()]

    def train(self, steps):
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        least, self.loss = self.said()
        self.first = self.loss if self.first is None else self.first
        return least

    def timed(self, steps):
        self.least = min(self.least, self.train(steps))

    def peak(self):
        self.child.stdin.close()
        peak, = self.said()
        self.child.wait()
        return peak

    def stop(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


def compiled(build, work, name, bf16):
    model, (file, *_) = name.split("_")[0], MODELS[name]
    options = ("-DDTYPE=HT_BF16",) if bf16 else ()
    bench.run(build / "bin" / "hetucc", "-O2", f"-DMODEL={model}", *options, FOLDER / f"{file}.c", "-o", work / name, "-lm")
    return work / name


def measure(options, work, name):
    """Returns the trainers of a model after their steps by turns, and their peaks of memory: of hetucc's
    program, of PyTorch eager, and of PyTorch compiled where it compiles the model."""
    program, folder, trainers = compiled(options.build, work, name, options.bf16), work / f"{name}.data", []
    folder.mkdir()
    what = [word for letter, (kind, dims) in zip("xyz", MODELS[name][1:]) for word in (letter, str(kind), ",".join(map(str, dims)))]
    subprocess.run([options.python, "-c", WRITE, str(folder), *what], check=True)
    try:
        trainers.append(Trainer(program, folder))
        trainers[0].train(1)
        for how in ("eager", "compiled"):
            twin = Trainer(options.python, FOLDER / "twins.py", name, folder, bench.THREADS["OMP_NUM_THREADS"], how, *(("--bf16",) if options.bf16 else ()))
            trainers.append(twin)
            try:
                twin.train(1)
            except RuntimeError:
                if how == "eager":
                    raise
                trainers.pop().stop()  # torch.compile takes no sparse gradients
        for trainer in trainers:
            trainer.train(2)
        for _ in range(TURNS):
            for trainer in trainers:
                trainer.timed(EACH)
                time.sleep(0.02)  # threads that wait by spinning go to sleep
        peaks = [trainer.peak() for trainer in trainers]
    finally:
        for trainer in trainers:
            trainer.stop()
    return trainers, peaks


def close(a, b, bf16):
    return abs(a - b) <= (0.05 if bf16 else 0.01) * abs(b)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--python", default=sys.executable, help="one that has torch")
    parser.add_argument("--bf16", action="store_true", help="mixed precision beside autocast")
    parser.add_argument("--only", default="", help="the models that match")
    options = parser.parse_args()
    if subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode:
        sys.exit(f"{options.python} has no torch: python3 -m venv VENV && VENV/bin/pip install torch numpy, and give VENV/bin/python")
    print(f"{'model':19} {'hetucc ms':>10} {'eager':>9} {'compiled':>9} {'ratio':>6} {'MB':>7} {'PyTorch':>8}  {'loss':>8} {'PyTorch':>8}", flush=True)
    ratios, good = [], True
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            if not re.search(options.only, name):
                continue
            try:
                (own, eager, *fast), peaks = measure(options, pathlib.Path(folder), name)
            except (RuntimeError, SystemExit) as error:
                print(f"{name:19} failed: {error}", flush=True)
                good = False
                continue
            fast = fast[0].least if fast else math.nan
            ratio, theirs = min(eager.least, fast if fast == fast else math.inf) / own.least, min(peaks[1:])
            ratios.append(ratio)
            missed = [*(("slower",) if ratio < 0.95 else ()), *(("more memory",) if peaks[0] > theirs else ()),
                      *(("another loss",) if not close(own.first, eager.first, options.bf16) else ())]
            good = good and not missed
            print(f"{name:19} {own.least:10.3f} {eager.least:9.3f} {fast:9.3f} {ratio:6.2f} {peaks[0] / 1e6:7.0f} {theirs / 1e6:8.0f}  "
                  f"{own.loss:8.4f} {eager.loss:8.4f}  {', '.join(missed)}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{'geometric mean':50} {mean:6.2f}  {'' if mean >= 1.2 else 'missed'}")
        good = good and mean >= 1.2
    sys.exit(not good)


if __name__ == "__main__":
    main()
