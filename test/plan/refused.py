#!/usr/bin/env python3
"""Inputs that hetucc --plan refuses: one error, exit status 1 (2 for an invalid option value), and no file:  refused.py HETUCC..."""
import json
import os
import re
import subprocess
import sys

HETUCC = sys.argv[1:]
CLUSTER = json.load(open("cluster.json", encoding="utf-8"))
del CLUSTER["links"]["pairs"]
CLASS = CLUSTER["classes"]["a"]


def with_class(**changes):
    return {**CLUSTER, "classes": {"a": {key: value for key, value in {**CLASS, **changes}.items() if value is not None}}}


# Options, what the cluster file holds (None: it is left as it is), and what the error says.
CASES = [
    (["--plan"], None, "hetucc: error: --plan needs a cluster to plan for: --cluster=FILE"),
    (["--memory=20G", "--cluster=c.json"], None, "hetucc: error: --memory says how much --plan may use"),
    (["--plan", "--cluster=c.json", "--memory=much"], None, 'hetucc: error: --memory is a size such as 20G, 512M or a number of bytes, not "much"'),
    (["--plan", "--cluster=c.json", "--memory=-3G"], None, 'hetucc: error: --memory is a size such as 20G, 512M or a number of bytes, not "-3G"'),
    (["--plan", "--cluster=c.json", "--memory=20Q"], None, 'hetucc: error: --memory is a size such as 20G, 512M or a number of bytes, not "20Q"'),
    (["--plan", "--cluster=c.json", "--strategy=one"], None, "hetucc: error: --plan finds a strategy and writes it: leave out --strategy"),
    (["--plan", "--cluster=c.json", "--emit=cost"], None, "hetucc: error: --plan finds a strategy and writes it: leave out --emit"),
    (["--plan", "--cluster=nowhere.json"], None, "nowhere.json"),
    (["--plan", "--cluster=c.json"], {**CLUSTER, "devices": [{"class": "b", "host": "h"}]}, 'error: "classes" has no object "b"'),
    (["--plan", "--cluster=c.json"], {**CLUSTER, "speed": 3}, '"speed"'),
    (["--plan", "--cluster=c.json"], with_class(memry=3), '"memry"'),
    (["--plan", "--cluster=c.json"], with_class(products=None), "c.json: classes.a.products.f32: missing"),
    (["--plan", "--cluster=c.json"], {**CLUSTER, "devices": []}, "c.json"),
    (["--plan", "--cluster=c.json", "--memory=9K"], CLUSTER, "no strategy fits: device"),
]


def refused(options, held, wanted):
    with open("c.json", "w", encoding="utf-8") as file:
        json.dump(CLUSTER if held is None else held, file)
    said = subprocess.run([*HETUCC, *options, "layers.c", "-o", "out.strategy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    errors = [line for line in said.stderr.splitlines() if "error:" in line]
    status = 2 if re.match("hetucc: error: --(plan|memory) ", wanted) else 1
    assert said.returncode == status and not said.stdout and len(errors) == 1 and wanted in said.stderr, (options, held, said)
    assert not os.path.exists("out.strategy")
    print(errors[0])


for case in CASES:
    refused(*case)
print("refused: all")
