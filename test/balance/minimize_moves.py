#!/usr/bin/env python3
"""hetu-balance moves no more bytes than any assignment of devices to the stages of its strategy. The test tries all
assignments of devices that are equally fast, and counts the bytes of the layers that come to a device that lacks them.
"""
import functools
import itertools
import re
import sys
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
import planned
from balance import HIDDEN, LAYERS, RANKS, ROWS
from harness import Failure

WIDTH = int(re.search(r"WIDTH (\d+)", planned.SOURCE.read_text()).group(1))
LAYER = 3 * 4 * 2 * HIDDEN * WIDTH  # bytes of a layer: two weights in f32, and two states of each


def stages_of(text):
    """(device, layers) of each stage; devices are listed one by one."""
    found = []
    for device, first, last in re.findall(r"stage devices\((\d+)\)(?: mesh\([^)]*\))? layers\((\d+)(?:-(\d+))?\)", text):
        found.append((int(device), set(range(int(first), int(last or first) + 1))))
    assert sum(len(layers) for _, layers in found) == LAYERS, text
    return found


def moved(before, stages):
    """Bytes of layers that devices get and lack."""
    had = dict(before)
    return LAYER * sum(len(layers - had.get(device, set())) for device, layers in stages)


def least(bench, device, slow):
    rates = [1.0] * RANKS
    rates[device] = slow
    base, out = planned.file_of(bench, "spare"), bench.path(f"least.{device}.strategy")
    found, _ = planned.answer(planned.ask(bench, [base], rates, "-o", out))
    if found["strategy"][1] != "new":
        raise Failure(f"device {device} is {slow} times as slow, and it stays: {found}")
    before, after = stages_of(base.read_text()), stages_of(out.read_text())
    if device in [d for d, _ in after]:
        raise Failure(f"device {device} still has work")
    said, own = int(found["moves"][0]), moved(before, after)
    healthy = [d for d in range(RANKS) if d != device]
    best = min(moved(before, list(zip(chosen, [layers for _, layers in after]))) for chosen in itertools.permutations(healthy, len(after)))
    if said != own or said != best:
        raise Failure(f"{said} bytes are said to move, {own} do, {best} would do\n{out.read_text()}")
    return f"{said} bytes"


def tests(bench, _):
    for device in range(4):
        for slow in (4.0, 12.0):
            yield f"least.{device}.{slow:g}", functools.partial(least, bench, device, slow), device not in (0, 2) or slow != 12.0


if __name__ == "__main__":
    harness.main("minimize_moves", tests)
