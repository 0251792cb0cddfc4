#!/usr/bin/env python3
"""Inputs that hetu-simulate refuses, each with one line and exit status 1:  mistakes.py HETU_SIMULATE FOLDER"""
import json
import os
import subprocess
import sys

SIMULATE, FOLDER = sys.argv[1:]
os.chdir(FOLDER)
CLUSTER = json.load(open("cluster.json", encoding="utf-8"))


def without(key):
    return {**CLUSTER, "classes": {"a": {k: v for k, v in CLUSTER["classes"]["a"].items() if k != key}}}


def with_class(**keys):
    return {**CLUSTER, "classes": {"a": {**CLUSTER["classes"]["a"], **keys}}}


def events(*entries):
    return {"events": list(entries)}


EVENT = {"at": 0, "devices": [0], "slowdown": 2}
# The file, what it holds, and the line.
CASES = [
    ("e.json", events({**EVENT, "slowdown": -2}), "e.json: events[0].slowdown: -2 is not above 0"),
    ("e.json", events(EVENT, {**EVENT, "at": -1}), "e.json: events[1].at: -1 is less than 0"),
    ("e.json", events({**EVENT, "speed": 2}), "e.json: events[0].speed: "),
    ("e.json", events({"at": 0, "class": "b", "slowdown": 2}), 'e.json: events[0].class: no device of the cluster is of the class "b"'),
    ("e.json", events({"at": 0, "host": "i", "bandwidth": 2}), 'e.json: events[0].host: the cluster has no host "i"'),
    ("e.json", events({"at": 0, "devices": [4], "slowdown": 2}), "e.json: events[0].devices[0]: "),
    ("e.json", events({"at": 0, "link": ["h", "i"], "bandwidth": 2}), 'e.json: events[0].link: "pairs" of the cluster has no link between two such hosts'),
    ("e.json", events({"at": 0, "link": "far", "bandwidth": 2}), 'e.json: events[0].link: "far" is not "local", "remote" or a list of two hosts'),
    ("e.json", events({"at": 0, "link": "local", "slowdown": 2}), "e.json: events[0].slowdown: of a link it is"),
    ("e.json", events({"at": 0, "devices": [0]}), 'e.json: events[0]: needs one of "slowdown" and "bandwidth"'),
    ("e.json", events({"at": 0, "slowdown": 2}), 'e.json: events[0]: needs one of "devices", "class", "host" and "link"'),
    ("e.json", {}, "e.json: events: "),
    ("c.json", without("products"), "c.json: classes.a.products.f32: missing; ht_linear at layers.c:"),
]


def run(*options):
    said = subprocess.run([SIMULATE, "layers.c", "--strategy=two.strategy", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return said.returncode, said.stdout, said.stderr


def refused(wanted, *options, status=1):
    code, out, err = run(*options)
    assert code == status and not out and err.startswith(f"hetu-simulate: error: {wanted}") and err.count("\n") == 1, (wanted, code, out, err)


for name, held, line in CASES:
    with open(name, "w", encoding="utf-8") as file:
        json.dump(held, file)
    refused(line, *(["--cluster=cluster.json", "--events=e.json"] if name == "e.json" else ["--cluster=c.json"]))
# Of a cluster file, a diagnostic with its line: the first one.
for broken, line in [({**CLUSTER, "linsk": {}}, 'error: "linsk" means nothing here'), (with_class(memroy=1), 'error: "memroy" means nothing here'),
                     (with_class(arithmetic=-1e9), 'error: the class "a" needs a positive number "arithmetic"'), ({**CLUSTER, "devices": [{"class": "b", "host": "h"}]}, 'error: "classes" has no object "b"'),
                     ('{"devices": [], "devices": []}', "error: duplicate object key")]:
    with open("c.json", "w", encoding="utf-8") as file:
        file.write(broken if isinstance(broken, str) else json.dumps(broken))
    code, out, err = run("--cluster=c.json")
    assert code == 1 and not out and err.startswith("c.json:1:") and line in err.split("\n")[0], (line, code, out, err)
refused("--cluster: missing", status=2)
refused("--steps=0: a number of steps is 1 to 100000", "--cluster=cluster.json", "--steps=0", status=2)
refused("nowhere.json: ", "--cluster=cluster.json", "--events=nowhere.json")
code, out, err = run("--cluster=cluster.json", "--zzz1")
assert code == 1 and not out and "--zzz1" in err and err.count("\n") == 1, (code, out, err)
code, out, err = run("--cluster=cluster.json", "-O2", "-Wall", "-isystem", ".", "-DUNUSED=1")
assert code == 0 and out and not err, (code, out, err)
print("mistakes: all refused")
