#!/usr/bin/env python3
"""Compares seconds of conversions over shared uplinks with closed forms:  uplinks.py HETU_RESHARD FOLDER

Three hosts a, b and c have two devices each. Links within a host take no time; others carry 1e9 bytes a second for each device.
"""
import json
import pathlib
import subprocess
import sys

RESHARD, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
RATE, BYTES = 1e9, 4 * 1024 * 1024


def seconds(uplinks, conversion):
    free, far = {"latency": 1e-18, "bandwidth": 1e30}, {"latency": 1e-18, "bandwidth": RATE}
    path = FOLDER / "uplinks.json"
    path.write_text(json.dumps({"classes": {"a": {}}, "devices": [{"class": "a", "host": host, "count": 2} for host in "abc"], "links": {"local": free, "remote": far, "uplinks": uplinks}}))
    said = subprocess.run([RESHARD, f"--cluster={path}", "--json", f"f32[1024,1024]: {conversion}"], stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)["seconds"]


def card(of, bandwidth=RATE, **more):
    return {"of": of, "bandwidth": bandwidth, **more}


ACROSS, SWAP, OUT, SUM = "[0-1]{0:2} -> [2-3]{0:2}", "[0-3]{0:4} -> [2,3,0,1]{0:4}", "[0-3]{0:4} -> [4-5]{0:2}", "[0-3]{sum:4} -> [0-3]{dup:4}"
ROUND = "[0-5]{sum:6} -> [0-5]{dup:6}"
CARDS = [card(host) for host in "abc"]
# What is shared, the conversion, and its seconds as a multiple of BYTES / RATE.
CASES = [
    ("nothing", [], ACROSS, 1 / 2),
    ("a card that sends", [card("a")], ACROSS, 1),
    ("a card that receives", [card("b")], ACROSS, 1),
    ("a card that receives slowly", [card("b", **{"in": RATE / 4})], ACROSS, 4),
    ("a card that only sends slowly", [card("b", RATE / 4, **{"in": 1e12})], ACROSS, 1 / 2),
    ("cards of devices", [card([0]), card([1]), card("b", 1e12)], ACROSS, 1 / 2),
    ("slow cards of devices", [card([0], RATE / 3), card([1])], ACROSS, 3 / 2),
    ("a card in both directions at once", [card("a")], SWAP, 1 / 2),
    ("a card in one direction at a time", [card("a", duplex=False)], SWAP, 1),
    ("a switch of two hosts", [card(["a", "b"])], OUT, 1),
    ("a switch of other hosts", [card(["a", "b"])], ACROSS, 1 / 2),
    ("a switch of all hosts", [card(["a", "b", "c"], 1)], ACROSS, 1 / 2),
    ("a sum, nothing shared", [], SUM, 1 / 2),
    ("a sum", CARDS, SUM, 1),
    ("a sum, one slow card", [card("a", RATE / 2), card("b")], SUM, 2),
    ("a sum on three hosts", CARDS, ROUND, 2 * 2 / 3),
    ("within hosts", [card("a", 1), card("b", 1)], "[0-3]{0:2,sum:2} -> [0-3]{0:2,dup:2}", 0),
]
for what, shared, conversion, wanted in CASES:
    found = seconds(shared, conversion) / (BYTES / RATE)
    print(f"{what}: {conversion}: {found:.6g}, {wanted:.6g}")
    assert abs(found - wanted) <= 1e-6 * max(wanted, 1), (what, found, wanted)
print("uplinks: all right")
