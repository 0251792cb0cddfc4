#!/usr/bin/env python3
"""hetu-profile writes, within two minutes, a cluster file with all rates that hetu-simulate needs, and prints how well these rates hold."""
import functools
import json
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, launch, run


def profile(bench):
    path, begin = bench.path("cluster.json"), time.time()
    said = launch(bench.build / "bin" / "hetu-profile", 2, path, timeout=200).stdout
    seconds = time.time() - begin
    own = json.loads(path.read_text())["classes"]["rank"]
    if seconds > 120 or not 1 <= own["overlap"] <= 2 or len(own["products"]["f32"]) < 5 or not all(own[key] > 0 for key in ("start", "arithmetic")):
        raise Failure(f"{seconds:.0f} s, {own}")
    off = re.search(r"of what was not fitted, a mean of ([\d.]+) times off", said)
    if not off or "a layer, of two depths" not in said:
        raise Failure(said)
    strategy = bench.path("one.strategy")
    strategy.write_text("strategy one\nsplit batch:dp\nstage devices(0-1) mesh(dp:2)\nend strategy\n")
    run([bench.build / "bin" / "hetu-simulate", f"--strategy={strategy}", f"--cluster={path}", HERE / "Inputs" / "layers.c"])
    return f"{seconds:.0f} s, a mean of {off.group(1)} times off"


if __name__ == "__main__":
    harness.main("simulate.profile", lambda bench, _: [("profile", functools.partial(profile, bench))], jobs=1)
