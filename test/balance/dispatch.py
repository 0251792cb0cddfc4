#!/usr/bin/env python3
"""Tests ht_dispatch: batches of mixed lengths on 8 ranks, under strategies whose pipelines read rows of different lengths. Operators sleep (dispatched.c), so that ranks do not compete for cores.

Compared with a program that pads all rows to the longest one, ht_dispatch trains 1.3 or more times as many tokens a second. Planning does not delay the steps. Losses are those of one device
on the same sequences within 1e-4. HETU_LONG=1 trains 50 steps with several seeds.
"""
import functools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure

SOURCE, RANKS, NAP = HERE / "dispatched.c", 8, 2000


def alone(first, rows, seq):
    """Pipelines of a device each, which have so many rows."""
    return "\n".join(f"pipeline rows({r}) (seq = {seq})\nstage devices({first + i}) mesh(tp:1)" for i, r in enumerate(rows))


SPLIT = "split heads:tp hidden:tp\n"
STRATEGIES = {
    "longest": "split batch:dp\nstage devices(0-7) mesh(dp:8)",
    "few": SPLIT + "pipeline rows(2)\nstage devices(0-1) mesh(tp:2)\n" + alone(2, [3, 3, 2, 2, 2, 2], 32),
    "some": SPLIT + "pipeline rows(2)\nstage devices(0-1) mesh(tp:2)\npipeline rows(2)\nstage devices(2-3) mesh(tp:2)\n" + alone(4, [2, 2], 64) + "\n" + alone(6, [4, 4], 32),
}


def build(bench, names):
    def make():
        out, files = bench.path("dispatched." + "".join(names)), []
        for name in names:
            files.append(bench.path(f"dispatch.{name}.strategy"))
            files[-1].write_text(f"strategy {name}\n{STRATEGIES[name]}\nend strategy\n")
        harness.run([bench.hetucc, *(f"--strategy={f}" for f in files), "-O1", *harness.WARNINGS, SOURCE, "-o", out, "-lm"], timeout=300)
        return out
    return bench.once(("dispatched", names), make)


def plain(bench):
    def make():
        out, library = bench.path("dispatched.plain"), bench.build / "lib"
        harness.run(["cc", "-std=gnu17", "-O1", *harness.WARNINGS, f"-I{harness.ROOT}/include", SOURCE, "-o", out, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
        return out
    return bench.once("dispatched.plain", make)


def trained(program, ranks, steps, seed, nap=NAP, kind="mixed"):
    """A dictionary for each step."""
    p = harness.launch(program, ranks, steps, kind, seed, env={"HETU_CHECK": "0", "NAP": str(nap)}, timeout=300)
    pattern = r"^step \d+ seconds (?P<seconds>\S+) planned (?P<planned>\S+) tokens (?P<tokens>\d+) loss (?P<loss>\S+) under (?P<under>\S+)$"
    found = [{k: v if k == "under" else float(v) for k, v in m.groupdict().items()} for m in re.finditer(pattern, p.stdout, re.M)]
    if len(found) != steps:
        raise Failure(f"{len(found)} of {steps} steps\n{p.stdout[-1000:]}{p.stderr[-2000:]}")
    return found


def pace(steps):
    return sum(s["tokens"] for s in steps) / sum(s["seconds"] for s in steps)


def dispatched(bench, steps, seed):
    own, padded = trained(build(bench, tuple(STRATEGIES)), RANKS, steps, seed), trained(build(bench, tuple(STRATEGIES)), RANKS, steps, seed, NAP, "padded")
    one = trained(plain(bench), 0, steps, seed, 0)
    worst = max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(own, one))
    switches = [i for i in range(steps) if own[i]["under"] != (own[i - 1]["under"] if i else "longest")]
    kept = [s for i, s in enumerate(own) if i and i not in switches]
    hidden = max(s["planned"] for s in kept) / (sum(s["seconds"] for s in kept) / len(kept))
    note = f"{pace(own) / pace(padded):.2f} times the tokens, loss {worst:.1g}, planning {100 * hidden:.2f}% of a step at most, {len(switches)} switches, {', '.join(sorted({s['under'] for s in own}))}"
    if pace(own) < 1.3 * pace(padded) or not worst <= 1e-4 or hidden > 0.02 or {s["under"] for s in own} != set(STRATEGIES):
        raise Failure(note + "".join(f"\n{i} {s}" for i, s in enumerate(own)))
    return note


MISTAKES = {
    "zero": "ht_dispatch was given length 0 for sequence 3; lengths are 1 or more",
    "long": 'ht_dispatch: no strategy of the model loss holds the batch: under "some", which comes furthest, sequence 5 of length 129 finds no row as long; the next one has 128',
    "many": "ht_dispatch was given 17 sequences, and the strategies of the model loss have 16 rows at most",
    "none": "ht_dispatch was called for no sequences",
    "null": "ht_dispatch was called with NULL for the lengths",
    "variable": "ht_dispatch was given a variable that the model loss does not read",
    "next": "ht_dispatch was called with .next_count = 3 and without .next",
}


def mistake(bench, kind, text):
    p = harness.launch(build(bench, tuple(STRATEGIES)), RANKS, 2, f"wrong.{kind}", check=False)
    if not p.returncode or text not in p.stderr:
        raise Failure(f"exit {p.returncode}\n{p.stderr[-2000:]}")


def tests(bench, _):
    case = functools.partial
    yield "mixed.short", case(dispatched, bench, 12, 1)
    for seed in range(1, 5):
        yield f"mixed.{seed}", case(dispatched, bench, 50, seed), True
    for kind, text in MISTAKES.items():
        yield f"mistake.{kind}", case(mistake, bench, kind, text), kind != "long"


if __name__ == "__main__":
    harness.main("dispatch", tests, jobs=1)
