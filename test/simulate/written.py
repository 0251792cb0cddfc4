#!/usr/bin/env python3
"""Compares the outputs of hetu-simulate with each other:  written.py TABLE TRACE.json PAGE.html STEPS.json"""
import json
import re
import sys

table, trace, page, steps = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
STREAMS = ["computing", "collectives", "messages", "sums"]
MICROBATCHES, FORWARD = 4, 2 * 2 * 3 * 64 * 64 / 1e9


def near(found, wanted, most):
    assert abs(found - wanted) <= most * abs(wanted), (found, wanted)


length = float(re.search(r"step 0: (\S+) s", table).group(1))
events = [event for event in json.loads(trace)["traceEvents"] if event["ph"] == "X"]
model = json.loads(steps)["models"][0]

# Three steps, of one length; where the time goes adds up.
assert len(model["steps"]) == 3
for seconds in model["steps"]:
    near(seconds, length, 1e-6)
for actor in model["actors"]:
    near(actor["computing"] + actor["exposed"] + actor["idle"], sum(model["steps"]), 1e-9)
    memory = actor["memory"]
    assert max(point[1] for point in memory["curve"]) == memory["used"] <= memory["peak"] and memory["arena"] < memory["peak"], memory

# Tasks of a row stand one behind the other, and end with the step.
near(max(event["ts"] + event["dur"] for event in events) / 1e6, length, 1e-6)
assert {event["cat"] for event in events} == {"computing", "collectives", "messages", "sums"} - ({"collectives"} if not any(e["cat"] == "collectives" for e in events) else set())
for device in range(4):
    assert any(event["pid"] == device and event["cat"] == "computing" for event in events)
rows = {}
for event in sorted(events, key=lambda event: event["ts"]):
    assert STREAMS[event["tid"] % len(STREAMS)] == event["cat"]
    ends = rows.setdefault((event["pid"], event["tid"]), 0)
    assert ends <= event["ts"] * (1 + 1e-12), event
    rows[event["pid"], event["tid"]] = event["ts"] + event["dur"]

# The page holds the simulated times: of the first pipeline, as many rows as the schedule has, each as long as what it computes or longer.
report = json.loads(re.search(r'<script id="plan" type="application/json">(.*?)</script>', page, re.S).group(1))["models"][0]
near(report["length"], length, 1e-6)
assert [group["pipelines"] for group in report["pipelines"]] == [[0], [1]]
for stage in report["pipelines"][0]["stages"]:
    assert len(stage["rows"]) == 3 * MICROBATCHES
    for part, _, _, _, begin, end in stage["rows"]:
        assert end - begin >= (0 if part == "W" else FORWARD) and end <= length, (part, begin, end)
for group in report["pipelines"]:
    assert len(group["messages"]) == 2 * MICROBATCHES
    for source, target, _, begin, end in group["messages"]:
        near(end - begin, 1e-6 + 4 * 3 * 64 / 1e9, 0.12)
for _, _, name, begin, end in report["sums"]:
    assert 0 < begin < end <= length, (name, begin, end)
print("written")
