#!/usr/bin/env python3
"""Compares hetu-simulate with real runs of real kernels, one rank a core: hetu-profile measures the machine, and each step takes the simulated time within 20%.

The machine must be quiet. HETU_CLUSTER names a cluster file that was measured before.
"""
import functools
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
import real
from harness import EXAMPLES, Failure, launch, run

RANKS, STEPS, LAYERS = 2, 6, 4
SIZES = {"EMBED": 256, "HEADS": 4, "LAYERS": LAYERS, "BATCH": 8, "SEQ": 128, "VOCAB": 1024}
LLAMA = {"KV_HEADS": 2, "FFN": 688}
STRATEGIES = {
    "dp2": "split batch:dp\nstage devices(0-1) mesh(dp:2)",
    "tp2": "split heads:tp ffn:tp vocab:tp\nstage devices(0-1) mesh(tp:2)",
    "zero2": "split batch:dp\nzero 2\nstage devices(0-1) mesh(dp:2)",
    "pp2": "pipeline microbatches(4) rows(2)\nstage devices(0) layers(0-1)\nstage devices(1) layers(2-3)",
    "uneven": "pipeline microbatches(8) rows(1)\nstage devices(0) layers(0-2) recompute(full)\nstage devices(1) layers(3)",
    "one": "stage devices(0)",
}


def measured(bench):
    """The cluster file of this machine's two cores."""
    if os.environ.get("HETU_CLUSTER"):
        return os.environ["HETU_CLUSTER"]
    path = bench.path("kernels.cluster.json")
    launch(bench.build / "bin" / "hetu-profile", RANKS, path, timeout=300)
    return path


def step(bench, name, kind):
    """Of several runs the least: what disturbs the machine makes a step longer."""
    flags = tuple(f"-D{key}={value}" for key, value in {**SIZES, **(LLAMA if name == "llama" else {})}.items())
    source, strategy = EXAMPLES / name / f"{name}.c", bench.path(f"{name}.{kind}.strategy")
    strategy.write_text(f"strategy s\n{STRATEGIES[kind]}\nend strategy\n")
    program = bench.compiled(source, strategy, ("-O3", *flags))
    said = run([bench.build / "bin" / "hetu-simulate", "--json", f"--strategy={strategy}", f"--cluster={bench.once('cluster', lambda: measured(bench))}", *flags, source]).stdout
    wanted = next(model for model in real.json.loads(said)["models"] if model["kind"] == "train")["steps"][0]
    rates = []
    for _ in range(3):
        out = launch(program, 1 if kind == "one" else RANKS, "--steps", STEPS, "--fixed", "--sample", 0, "--every", 1,
                     env={"HETU_CHECK": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}).stdout
        rates += [float(text) for text in re.findall(r"([\d.]+) tokens/s", out)[1:]]
    found = SIZES["BATCH"] * SIZES["SEQ"] / max(rates)
    if abs(wanted - found) > 0.2 * found:
        raise Failure(f"a step takes {found:.4f} s, simulated {wanted:.4f}: {wanted / found - 1:+.1%}")
    return f"{found:.4f} s, simulated {wanted / found - 1:+.1%}"


def tests(bench, _):
    for name in ("gpt", "llama"):
        for kind in STRATEGIES:
            yield f"kernels.{name}.{kind}", functools.partial(step, bench, name, kind)


if __name__ == "__main__":
    harness.main("simulate.kernels", tests, jobs=1)
