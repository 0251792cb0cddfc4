#!/usr/bin/env python3
"""Tests pipelines: strategies of several stages and of unequal pipelines give what one device gives, by the plain compiler and libhetu.

Each case trains gpt or llama, 8 layers of sizes that no device count divides, and compares losses with AdamW and parameters with SGD. All holders of a parameter
hold the same bits after every step (HETU_CHECK). In between, parameters are read and text is written through ht_infer. Strategies: tensor-parallel stages beside a
pipeline of another shape, one device beside many, several ranges of layers a stage, equal pipelines that share a program, ZeRO, recomputed layers, 16 ranks in four
pipelines, an idle device. modalities.c is a model of two towers that join: values skip stages, several stages read parameters and inputs, ranges pass values to one
another. Programs in bf16 have losses within 2e-2 of one device's. Without HETU_LONG some cases train by AdamW alone and some not at all; pairs.py has similar cases.
"""
import functools
import pathlib

import harness
from harness import EXAMPLES, compare_losses, compare_parameters, launch, read_losses, read_parameters, resolve_parameters

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 5
LONG = harness.LONG
GPT = {"EMBED": 20, "HEADS": 4, "VOCAB": 259, "BATCH": 19, "LAYERS": 8, "SEQ": 11, "DROPOUT": "0.1f"}
LLAMA = {"EMBED": 24, "HEADS": 4, "KV_HEADS": 2, "VOCAB": 261, "BATCH": 19, "LAYERS": 8, "FFN": 37, "SEQ": 9}
SPLIT = "split heads:tp  ffn:tp  vocab:tp"

# name: ranks and lines
STRATEGIES = {
    "a": (7, f"""{SPLIT}
      schedule 1f1b
      pipeline microbatches(5) rows(2)
        stage devices(0-1) mesh(tp:2) layers(0-2)
        stage devices(2-3) mesh(tp:2) layers(3-7)
      pipeline microbatches(3) rows(3)
        stage devices(4-5) mesh(tp:2) layers(0-5)
        stage devices(6) layers(6-7)"""),
    "b": (6, f"""{SPLIT}
      zero 1
      pipeline microbatches(3) rows(3)
        stage devices(0-2) mesh(tp:3)
      pipeline microbatches(2) rows(4)
        stage devices(3,5) mesh(tp:2)
      pipeline microbatches(2) rows(1)
        stage devices(4)"""),
    "c": (8, f"""{SPLIT}
      schedule gpipe
      zero 1
      pipeline microbatches(4) rows(3)
        stage devices(0-1) mesh(tp:2) layers(0-1)
        stage devices(2) layers(2-4)
        stage devices(3) layers(5-7) recompute(full)
      pipeline microbatches(7) rows(1)
        stage devices(4) layers(0-3) recompute(selective)
        stage devices(5) layers(4-5)
        stage devices(6-7) mesh(tp:2) layers(6-7)"""),
    "equal": (8, f"""{SPLIT}  seq:tp
      pipeline microbatches(4) rows(1)
        stage devices(0-1) mesh(tp:2) layers(0-2)
        stage devices(2-3) mesh(tp:2) layers(3-7)
      pipeline microbatches(15) rows(1)
        stage devices(7,6) mesh(tp:2) layers(0-2)
        stage devices(5,4) mesh(tp:2) layers(3-7)"""),
    "ranges": (2, """schedule interleaved
      pipeline microbatches(19) rows(1)
        stage devices(0) layers(0-1, 4-5)
        stage devices(1) layers(2-3, 6-7)"""),
    "five": (18, f"""{SPLIT}
      schedule 1f1b
      zero 1
      pipeline microbatches(3) rows(3)
        stage devices(0-1) mesh(tp:2) layers(0-1)
        stage devices(2-3) mesh(tp:2) layers(2-3)
        stage devices(4-5) mesh(tp:2) layers(4-5)
        stage devices(6-7) mesh(tp:2) layers(6-7)
      pipeline microbatches(5) rows(2)
        stage devices(8-9) mesh(tp:2) layers(0-2)
        stage devices(10-11) mesh(tp:2) layers(3-4)
        stage devices(12-13) mesh(tp:2) layers(5)
        stage devices(14) layers(6)
        stage devices(15) layers(7)
      idle devices(16, 17)"""),
    "four": (16, f"""{SPLIT}  seq:tp
      schedule gpipe
      zero 1
      pipeline microbatches(2) rows(3)
        stage devices(0-3) mesh(tp:4) layers(0-3)
        stage devices(4-6) mesh(tp:3) layers(4-7)
      pipeline microbatches(3) rows(2)
        stage devices(7-8) mesh(tp:2) layers(0-6)
        stage devices(9) layers(7)
      pipeline microbatches(5) rows(1)
        stage devices(10) layers(0-1) recompute(full)
        stage devices(11) layers(2-5) recompute(selective)
        stage devices(12) layers(6-7) recompute(full)
      pipeline microbatches(1) rows(2)
        stage devices(13-15) mesh(tp:3)"""),
    "tied": (8, f"""{SPLIT}
      pipeline microbatches(19) rows(1)
        stage devices(0-3) mesh(tp:4) layers(0-3)
        stage devices(4-6) mesh(tp:3) layers(4-7)
      idle devices(7)"""),
    "beside": (7, f"""{SPLIT}
      zero 1
      schedule gpipe
      pipeline microbatches(4) rows(2)
        stage devices(0-3) mesh(tp:4)
      pipeline microbatches(11) rows(1)
        stage devices(4-6) mesh(tp:3) recompute(selective)"""),
    "weights": (5, f"""{SPLIT}  batch:dp
      pipeline microbatches(3) rows(5)
        stage devices(0-1) mesh(dp:2 by 3:2) layers(0-3)
        stage devices(2) layers(4-7) recompute(selective)
      pipeline microbatches(1) rows(4)
        stage devices(3-4) mesh(tp:2 by 3:1)"""),
    "three": (3, """schedule interleaved
      zero 1
      pipeline microbatches(19) rows(1)
        stage devices(0) layers(0, 3, 6) recompute(full)
        stage devices(1) layers(1, 4) recompute(selective)
        stage devices(2) layers(2, 5, 7)"""),
    "there": (4, """pipeline microbatches(7) rows(1)
        stage devices(0) layers(0, 2, 4-5)
        stage devices(1) layers(1, 3, 6-7)
      pipeline microbatches(6) rows(2)
        stage devices(2) layers(0-1, 4-5)
        stage devices(3) layers(2-3, 6-7)"""),
    "back": (2, """pipeline microbatches(19) rows(1)
        stage devices(0) layers(0-3)
        stage devices(1) layers(4-5, 6-7)"""),
    "one": (3, """pipeline microbatches(1) rows(19)
        stage devices(2) layers(0)
        stage devices(0) layers(1-6)
        stage devices(1) layers(7)"""),
}


# of the model of two towers
TOWERS = {
    "towers": (11, """split heads:tp  ffn:tp  vocab:tp
      pipeline microbatches(4) rows(3)
        stage devices(0) layers(vision: 0-2)
        stage devices(1) layers(text: 0-2)
        stage devices(2-3) mesh(tp:2) layers(0-1)
        stage devices(4) layers(2)
        stage devices(5) layers(plain, head)
      pipeline microbatches(7) rows(1)
        stage devices(6-8) mesh(tp:3) layers(vision: 0-2, text: 0, text: 1-2, 0)
        stage devices(9) layers(1-2, plain, head)
      idle devices(10)"""),
    "joined": (4, """split heads:tp  ffn:tp  vocab:tp
      schedule gpipe
      zero 1
      pipeline microbatches(19) rows(1)
        stage devices(0-1) mesh(tp:2) layers(vision: 0-2, 0) recompute(full)
        stage devices(2) layers(text: 0-2, 1) recompute(selective)
        stage devices(3) layers(2, plain, head)"""),
    "apart": (8, """split heads:tp  ffn:tp  vocab:tp
      pipeline microbatches(7) rows(2)
        stage devices(0) layers(text: 0-2)
        stage devices(1) layers(vision: 0-2)
        stage devices(2) layers(0-2)
        stage devices(3-4) mesh(tp:2) layers(plain)
        stage devices(5) layers(head)
      pipeline microbatches(1) rows(5)
        stage devices(6-7) mesh(tp:2)"""),
}

# By SGD, where f32 stores the changes of the example's own rate too coarsely (resolve_parameters).
RATES = {"gpt": ("--rate", "0.3"), "llama": ("--rate", "0.3"), "modalities": ("--rate", "0.25"), "packed": ("--rate", "0.03")}


def flags_of(sizes, extra=()):
    return tuple(f"-D{key}={value}" for key, value in sizes.items()) + extra


def strategy_file(bench, name, lines):
    path = bench.path(f"{name}.strategy")
    path.write_text(f"strategy {name.replace('.', '_')}\n{lines}\nend strategy\n")
    return path


def trained(bench, key, program, ranks, steps=STEPS, more=()):
    """The losses of a program and its parameters afterwards."""
    losses, dump = bench.path(f"{key}.losses"), bench.path(f"{key}.dump")
    launch(program, ranks, "--steps", steps, "--sample", 3, "--losses", losses, "--dump", dump, *more)
    return read_losses(losses) if steps else [], read_parameters(dump)


def source_of(example):
    return HERE / "modalities.c" if example == "towers" else EXAMPLES / example / f"{example}.c"


def rate_of(source, flags):
    return RATES.get(source.stem, ()) if "-DSGD" in flags else ()


def wanted(bench, source, flags, steps=STEPS):
    key = f"{source.stem}.wanted{''.join(flags)}.{steps}"
    return bench.once(key, lambda: trained(bench, key, bench.plain(source, flags), 0, steps, rate_of(source, flags)))


def found(bench, source, name, ranks, lines, flags, steps=STEPS):
    """What the program for a strategy gives."""
    program = bench.compiled(source, strategy_file(bench, name, lines), flags)
    return trained(bench, f"{source.stem}.{name}{''.join(flags)}", program, ranks, steps, rate_of(source, flags))


def check_lines(bench, example, name, ranks, lines, sizes, both=True):
    """A strategy of these lines: losses by AdamW; with `both` also losses and parameters by SGD."""
    source, adam, sgd = source_of(example), flags_of(sizes), flags_of(sizes, harness.SGD)
    loss = compare_losses(found(bench, source, name, ranks, lines, adam)[0], wanted(bench, source, adam)[0], 1e-6)
    if not both:
        return f"loss {loss:.2g}"
    losses, parameters = found(bench, source, name, ranks, lines, sgd)
    compare_losses(losses, wanted(bench, source, sgd)[0], 1e-6)
    after, before = wanted(bench, source, sgd)[1], wanted(bench, source, sgd, 0)[1]
    stored = resolve_parameters(after, before, 1e-4)
    off = compare_parameters(parameters, after, before, 1e-4)
    return f"loss {loss:.2g}, parameters {off:.2g}, stored to {stored:.2g}"


def check_half(bench, example, name, ranks, lines, sizes):
    source = source_of(example)
    losses = found(bench, source, name, ranks, lines, flags_of(sizes, ("-DDTYPE=HT_BF16",)))[0]
    return f"loss {compare_losses(losses, wanted(bench, source, flags_of(sizes))[0], 2e-2):.2g}"


# What runs without HETU_LONG: of which both optimizers, and of which AdamW alone.
BOTH = {("gpt", "ranges"), ("gpt", "one"), ("towers", "joined")}
SOME = {("gpt", "c"), ("gpt", "equal"), ("gpt", "there"), ("gpt", "beside")}


def tests(bench, a):
    for example, strategies, sizes in ("gpt", STRATEGIES, GPT), ("llama", STRATEGIES, LLAMA), ("towers", TOWERS, {}):
        for name, (ranks, lines) in strategies.items():
            both = LONG or (example, name) in BOTH
            if both or (example, name) in SOME:
                yield f"{example}.{name}", functools.partial(check_lines, bench, example, name, ranks, lines, sizes, both)
            if LONG:
                yield f"{example}.{name}.bf16", functools.partial(check_half, bench, example, name, ranks, lines, sizes)


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.pipelines", tests)
