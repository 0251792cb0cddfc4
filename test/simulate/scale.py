#!/usr/bin/env python3
"""Measures the time and memory of hetu-simulate for a GPT of 96 layers on thousands of devices, eight a host.

Its memory is at most 2 GB; on 4,096 devices, in the long tests, its processor time is at most 10 s, too.
"""
import functools
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "run"), str(HERE.parent.parent / "tools" / "bench")]
import harness
import scale
from harness import Failure

SIZES = {"EMBED": 1024, "HEADS": 16, "LAYERS": scale.SIZES["LAYERS"], "SEQ": 256, "VOCAB": 51200}
SECONDS = 10


def cluster(devices):
    kind = {"memory_bandwidth": 2e12, "start": 4e-6, "arithmetic": 1.5e14, "products": {"f32": [[1e9, 1.5e14], [1e13, 1.5e14]]}}
    links = {"local": {"latency": 5e-6, "bandwidth": 1.5e11}, "remote": {"latency": 1e-5, "bandwidth": 1e10}}
    return {"classes": {"a": kind}, "devices": [{"class": "a", "host": f"h{i}", "count": 8} for i in range(devices // 8)], "links": links}


def flat(devices):
    return [f"  stage devices(0-{devices - 1}) mesh(dp:{devices // 8}, tp:8)"], devices // 8


def separate(devices):
    """Pipelines of 8 stages of 8 devices, each written by itself."""
    return [line for first in range(0, devices, 64) for line in ["  pipeline microbatches(16) rows(1)", *scale.stages(first, 8, 1, 8)]], devices // 4


MAKE = {"stages of many": scale.one_kind, "many pipelines": separate, "two kinds": scale.two_kinds, "one mesh": flat}


def simulates(bench, devices, gigabytes, seconds, kind):
    lines, batch = MAKE[kind](devices)
    strategy, clusters = (bench.path(f"{kind}.{devices}.{what}") for what in ("strategy", "json"))
    strategy.write_text("\n".join(["strategy scale", "  split batch:dp  heads:tp  ffn:tp  vocab:tp", "  schedule 1f1b", "  zero 1", *lines, "end strategy", ""]))
    clusters.write_text(json.dumps(cluster(devices)))
    said = bench.path(f"{kind}.{devices}.said")
    with open(said, "w") as out:
        child = subprocess.Popen([bench.build / "bin" / "hetu-simulate", "--json", f"--strategy={strategy}", f"--cluster={clusters}",
                                  *(f"-D{k}={v}" for k, v in {**SIZES, "BATCH": batch}.items()), scale.GPT], stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failure(f"hetu-simulate: exit {child.returncode}")
    step = next(m for m in json.loads(said.read_text())["models"] if m["kind"] == "train")["steps"][0]
    taken, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9
    if not step > 0 or peak > gigabytes or taken > seconds:
        raise Failure(f"{taken:.1f} s and {peak:.2f} GB, and not {seconds} s and {gigabytes} GB")
    return f"a step of {step:.3f} s, simulated in {taken:.1f} s and {peak:.2f} GB"


def tests(bench, _):
    """Equal pipelines and one mesh on 1,024 devices always; the rest takes its time. Pipelines of two kinds share links in many ways, and are fewer actors for 4,096
    devices than for 1,024, where no time is promised."""
    for kind in MAKE:
        name = kind.replace(" ", "-")
        yield f"1024.{name}", functools.partial(simulates, bench, 1024, 2, 600, kind), kind in ("many pipelines", "two kinds")
        yield f"4096.{name}", functools.partial(simulates, bench, 4096, 2, SECONDS, kind), True


if __name__ == "__main__":
    harness.main("simulate.scale", tests, jobs=1)
