#!/usr/bin/env python3
"""hetucc --plan on few devices of two classes: no slower than weighted tensor parallelism over a host, and no slower with more devices or memory:  uneven.py SIMULATE MODEL HETUCC..."""
import json
import re
import subprocess
import sys

SIMULATE, MODEL, *HETUCC = sys.argv[1:]


def rates(speed):
    return {"start": 1e-7, "arithmetic": speed * 2e8, "memory_bandwidth": speed * 1e9, "products": {"f32": [[1e3, speed * 2e8], [1e6, speed * 1e9]]}}


def cluster(*devices):
    """A file of devices (class, host, count)."""
    links = {"local": {"latency": 1e-7, "bandwidth": 1e10}, "remote": {"latency": 1e-6, "bandwidth": 1e9}}
    with open("uneven.json", "w", encoding="utf-8") as file:
        json.dump({"classes": {"a": rates(1), "b": rates(2)}, "devices": [{"class": c, "host": h, "count": n} for c, h, n in devices], "links": links}, file)


def planned(*options):
    """Seconds of a step of the plan, and its bytes."""
    said = subprocess.run([*HETUCC, "--plan", "--cluster=uneven.json", *options, MODEL, "-o", "uneven.strategy"], stdout=subprocess.PIPE, text=True, check=True)
    step, size = re.search(r"1\. (\S+) s, .*?\((\d+) bytes\)", said.stdout).groups()
    return float(step), int(size)


def by_hand(devices, weights, idle=""):
    """Seconds of a step of some devices on one tensor, by weights."""
    with open("hand.strategy", "w", encoding="utf-8") as file:
        file.write(f"strategy s\nsplit hidden:tp\nstage devices({devices}) mesh(tp:{weights.count(':') + 1} by {weights})\n{idle}\nend strategy\n")
    said = subprocess.run([SIMULATE, "--json", "--strategy=hand.strategy", "--cluster=uneven.json", MODEL], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout)["models"][0]["steps"][0]


last = float("inf")
for case, devices, hand in [
    ("of two and one", [("b", "h", 2), ("a", "h", 1)], ("0-2", "2:2:1")),
    ("of a host beside a lone device", [("a", "k", 1), ("b", "h", 2), ("a", "h", 2)], ("1-4", "2:2:1:1", "idle devices(0)")),
    ("with one more", [("a", "k", 1), ("b", "h", 2), ("a", "h", 2), ("b", "z", 1)], None),
]:
    cluster(*devices)
    (step, size), best = planned(), last
    if hand:
        best = min(best, by_hand(*hand))
    print(f"{case}: {step:.6g} s, {best:.6g}")
    assert step <= best * 1.015, (case, step, best)  # weights are small numbers, and not the same ones for other devices
    last = step

# More memory makes no plan slower: what is cut across hosts where there is little is, where there is more, tried as well.
cluster(("a", "k", 1), ("b", "h", 2), ("a", "h", 2))
last = float("inf")
for bound in (21000, 22500, 24000, 27000, 30000, 34000, 1 << 30):
    step, size = planned(f"--memory={bound}")
    print(f"within {bound}: {step:.6g} s, {size} bytes")
    assert size <= bound and step <= last * (1 + 1e-5), (bound, step, size, last)
    last = step
print("uneven: all held")
