#!/usr/bin/env python3
"""Reports of chain.c against closed forms:  check.py closed REPORT.json PIPELINES MESSAGE_SECONDS | page REPORT.html REPORT.json"""
import json
import re
import sys

STAGES, MICROBATCHES, ROWS, WIDTH, RATE = 4, 6, 2, 64, 1e9


def near(found, expected, tolerance=1e-6):
    assert abs(found - expected) <= tolerance * abs(expected), (found, expected)


def check_group(group, unit):
    """What is no product takes no time in seconds, and is less than 3% of a step and 10% of a part in operations. Under 1f1b a step of equal stages takes (M + S - 1) t, t the time of one micro-batch forward and backward, and stage s keeps S - s."""
    one = 2 * ROWS * WIDTH * WIDTH / unit
    near(group["end"] - group["begin"], (MICROBATCHES + STAGES - 1) * 2 * one, 0.03 if unit == 1 else 1e-6)
    for number, stage in enumerate(group["stages"]):
        assert stage["visits"] == [{"visit": number, "layers": str(number)}], stage["visits"]
        assert stage["slots"] == STAGES - number
        assert [row[2] for row in stage["rows"] if row[0] == "F"] == list(range(MICROBATCHES))
        for part, _, _, slot, begin, end in stage["rows"]:
            near(end - begin, 0 if part == "W" else one, 0 if part == "W" else 0.1 if unit == 1 else 1e-6)
            assert 0 <= slot < stage["slots"]
        ends = [row[5] for row in stage["rows"]]
        assert all(row[4] >= end for row, end in zip(stage["rows"][1:], ends)), "rows of a stage overlap"
        if unit != 1:
            near(stage["idle"], (STAGES - 1) / (MICROBATCHES + STAGES - 1), 1e-5)
    assert len(group["messages"]) == 2 * (STAGES - 1) * MICROBATCHES


def check_messages(model):
    """A stage sends the rows of a micro-batch to the next, and their gradients back."""
    runs = MICROBATCHES * sum(len(group["pipelines"]) for group in model["pipelines"])
    crossing = [row for row in model["conversions"] if row["stages"] and row["bytes"]]
    assert len(crossing) == 2 * (STAGES - 1), crossing
    for row in crossing:
        assert row["file"].endswith("chain.c") and row["line"] > 0 and row["count"] == 1, row
        assert row["bytes"] == runs * 4 * ROWS * WIDTH and row["received"] == MICROBATCHES * 4 * ROWS * WIDTH, row


def check_memory(model):
    devices = [role["devices"] for role in model["memory"]]
    assert len(devices) == len(set(devices))
    for role in model["memory"]:
        assert sum(role["bytes"].values()) == role["peak"] and role["stages"], role
        assert role["limit"] is None or role["peak"] <= role["limit"]


def closed(path, groups, unit):
    with open(path, encoding="utf-8") as file:
        model = json.load(file)["models"][0]
    assert [group["pipelines"] for group in model["pipelines"]] == json.loads(groups), model["pipelines"]
    assert model["idle"] == "8" and model["devices"] == 8 and model["unit"] == unit
    for group in model["pipelines"]:
        check_group(group, RATE if unit == "seconds" else 1)
    check_messages(model)
    check_memory(model)
    assert model["sums"] and model["length"] >= max(group["end"] for group in model["pipelines"])


def page(html, path):
    """The page holds the same JSON, and refers to nothing outside."""
    with open(html, encoding="utf-8") as file:
        text = file.read()
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    held = re.search(r'<script id="plan" type="application/json">(.*?)</script>', text, re.S).group(1)
    assert json.loads(held) == plan
    outside = re.findall(r"https?://(?!www\.w3\.org/2000/svg)|@import|\b(?:src|href)=|url\(", text)
    assert not outside, outside


if __name__ == "__main__":
    {"closed": closed, "page": page}[sys.argv[1]](*sys.argv[2:])
