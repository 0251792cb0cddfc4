#!/usr/bin/env python3
"""Tests padding lengths: pipelines that read only the first part of each row give what one device gives on the padded batch, by the plain compiler and libhetu.

gpt and llama have rows of several lengths, with unequal meshes, several stages and schedules, ZeRO, recomputed layers, pieces of the sequence, dropout, and bf16. AdamW
compares losses, SGD losses and parameters. A step with rows longer than their pipeline reads is refused. There are less than half as many operations as for the padded batch.
"""
import json
import pathlib
import re

import harness
import pipelines
from harness import EXAMPLES, Failure, compare_losses, compare_parameters

SOURCE = pathlib.Path(__file__).resolve().parent / "Inputs" / "lengths.c"
STEPS = 4
SIZES = {"EMBED": 20, "HEADS": 4, "VOCAB": 259, "BATCH": 7, "LAYERS": 4, "SEQ": 23}
EXAMPLE = {"gpt": {**SIZES, "DROPOUT": "0.1f"}, "llama": {**SIZES, "EMBED": 24, "KV_HEADS": 2, "FFN": 37}}
MIXED = "((r) < 3 ? 23 - 2 * (r) : (r) < 6 ? 9 - (r) % 2 : 2)"
SPLIT = "split heads:tp  ffn:tp  vocab:tp"
TAIL = "pipeline microbatches(1) rows(1) (seq = 2)"

# name: ranks and lines; rows are 3 of at most 23, 3 of at most 9, and 1 of 2
STRATEGIES = {
    "two": (3, f"pipeline microbatches(3) rows(1)\nstage devices(0)\npipeline microbatches(1) rows(3) (seq = 9)\nstage devices(1)\n{TAIL}\nstage devices(2)"),
    "tp": (6, f"""{SPLIT}  seq:tp
      zero 1
      pipeline microbatches(1) rows(3)
        stage devices(0-2) mesh(tp:3)
      pipeline microbatches(3) rows(1) (seq = 9)
        stage devices(4,3) mesh(tp:2) recompute(full)
      {TAIL}
        stage devices(5)"""),
    "stages": (6, f"""{SPLIT}
      schedule 1f1b
      zero 2
      pipeline microbatches(3) rows(1) (seq = 23)
        stage devices(0-1) mesh(tp:2) layers(0-1)
        stage devices(2) layers(2-3) recompute(selective)
      pipeline microbatches(3) rows(1) (seq = 9)
        stage devices(3) layers(0-2)
        stage devices(4) layers(3)
      {TAIL}
        stage devices(5)"""),
    "bubble": (4, """schedule zero_bubble
      pipeline microbatches(3) rows(1)
        stage devices(0) layers(0-1)
        stage devices(1) layers(2-3)
      pipeline microbatches(4) rows(1) (seq = 9)
        stage devices(2) layers(0-1)
        stage devices(3) layers(2-3)"""),
    "cut": (5, f"""split seq:cp
      zero 3
      pipeline microbatches(1) rows(3)
        stage devices(0-1) mesh(cp:2)
      pipeline microbatches(1) rows(3) (seq = 9)
        stage devices(2-3) mesh(cp:2)
      {TAIL}
        stage devices(4)"""),
    "alone": (1, "pipeline microbatches(1) rows(7) (seq = 23)\nstage devices(0)"),
}
# Of the issue: rows of two lengths, 2 of 128 and 8 of 32.
WIDE = {"SEQ": 128, "BATCH": 10, "EMBED": 32, "LAYERS": 2, "HEADS": 4, "VOCAB": 259, "DROPOUT": "0.1f"}
WIDE_ROWS = "((r) < 2 ? 128 : 32)"
WIDE_LINES = f"""{SPLIT}
      pipeline microbatches(2) rows(1)
        stage devices(0-3) mesh(tp:4)
      pipeline microbatches(2) rows(2) (seq = 32)
        stage devices(4)
      pipeline microbatches(2) rows(2) (seq = 32)
        stage devices(5)"""


def flags_of(example, sizes, rows, more=()):
    return (f'-DMODEL="{EXAMPLES / example / example}.c"', f"-DLENGTH(r)={rows}", *(f"-D{k}={v}" for k, v in sizes.items()), *more)


def trained(bench, key, program, ranks, steps=STEPS, rate=()):
    losses, dump = bench.path(f"{key}.losses"), bench.path(f"{key}.dump")
    harness.launch(program, ranks, "--steps", steps, "--sample", 0, "--losses", losses, "--dump", dump, *rate)
    return harness.read_losses(losses) if steps else [], harness.read_parameters(dump)


def plain(bench, key, flags, steps=STEPS, rate=()):
    key = f"{key}.plain.{steps}"
    return bench.once(key, lambda: trained(bench, key, build_plain(bench, key, flags), 0, steps, rate))


def build_plain(bench, key, flags):
    """bench.plain names its output after the flags, which are long here."""
    out, library = bench.path(f"{key}.program"), bench.build / "lib"
    harness.run(["cc", "-std=gnu17", "-O1", *harness.WARNINGS, *flags, f"-I{harness.ROOT}/include", SOURCE, *bench.common(), "-o", out, f"-L{library}",
                 f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    return out


def compiled(bench, key, lines, flags):
    out, strategy = bench.path(f"{key}.program"), pipelines.strategy_file(bench, key, lines)
    harness.run([bench.hetucc, f"--strategy={strategy}", "-O1", *harness.WARNINGS, *flags, SOURCE, *bench.common(), "-o", out, "-lm"], timeout=300)
    return out


def check(bench, example, name, kind):
    ranks, lines = STRATEGIES[name]
    flags = flags_of(example, EXAMPLE[example], MIXED, {"adam": (), "sgd": harness.SGD, "bf16": ("-DDTYPE=HT_BF16",)}[kind])
    key, base = f"{example}_{name}_{kind}", f"{example}_{kind}"
    rate = ("--rate", "0.3") if kind == "sgd" else ()  # the example's own changes some parameters too little to compare
    wanted = plain(bench, base, flags, STEPS, rate)
    found = trained(bench, key, compiled(bench, key, lines, flags), ranks, STEPS, rate)
    loss = compare_losses(found[0], wanted[0], 2e-2 if kind == "bf16" else 1e-5)
    if kind != "sgd":
        return f"loss {loss:.2g}"
    return f"loss {loss:.2g}, parameters {compare_parameters(found[1], wanted[1], plain(bench, base, flags, 0)[1], 1e-4):.2g}"


def operations(bench, key, flags, lines):
    out, strategy = bench.path(f"{key}.json"), pipelines.strategy_file(bench, key, lines)
    harness.run([bench.hetucc, "--emit=cost-json", f"--strategy={strategy}", *flags, SOURCE, "-o", out])
    roles = next(m for m in json.loads(out.read_text())["models"] if m["kind"] == "train")["roles"]
    return sum(op["operations"] * len(r["devices"]) for r in roles for op in r["operators"] if op["section"] != "update")


def check_wide(bench, example):
    sizes = {**WIDE, **({"KV_HEADS": 4, "FFN": 48} if example == "llama" else {})}
    flags = flags_of(example, sizes, WIDE_ROWS)
    found = trained(bench, f"{example}_wide", compiled(bench, f"{example}_wide", WIDE_LINES, flags), 6)
    loss = compare_losses(found[0], plain(bench, f"{example}_wide", flags)[0], 1e-4)
    own, whole = (operations(bench, f"{example}_{n}", flags, lines) for n, lines in (("wide", WIDE_LINES), ("whole", "stage devices(0)")))
    if own >= whole / 2:
        raise Failure(f"{own:.4g} operations, not less than half of {whole:.4g}")
    return f"loss {loss:.2g}, operations {own / whole:.2f}"


def check_refused(bench):
    """Row 5 has one element more than its pipeline reads: every rank ends, and nothing is trained."""
    flags = flags_of("gpt", EXAMPLE["gpt"], "((r) == 5 ? 10 : 9)")
    p = harness.launch(compiled(bench, "refused", STRATEGIES["bubble"][1], flags), 4, "--steps", 2, "--sample", 0, check=False)
    said = re.search(r'the input "targets" \(gpt\.c:\d+\) has (\d+) in row 5 at element 9, which its pipeline does not read: of dimension 1 it reads the first 9; '
                     r"only -100 stands for nothing there \(pragma padding\): put longer rows", p.stderr)
    if not p.returncode or not said or "step" in p.stdout:
        raise Failure(f"exit {p.returncode}\n{p.stdout[-500:]}{p.stderr[-1500:]}")


OFTEN = {"gpt.tp.adam", "gpt.stages.adam", "llama.two.sgd", "llama.bubble.sgd", "llama.cut.sgd", "llama.stages.bf16"}


def tests(bench, _):
    yield "gpt.wide", lambda: check_wide(bench, "gpt")
    yield "llama.wide", lambda: check_wide(bench, "llama"), True
    yield "refused", lambda: check_refused(bench)
    for example in EXAMPLE:
        for name in STRATEGIES:
            for kind in ("adam", "sgd", "bf16"):
                case = f"{example}.{name}.{kind}"
                yield case, lambda e=example, n=name, k=kind: check(bench, e, n, k), case not in OFTEN


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("lengths", tests)
