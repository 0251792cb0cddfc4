#!/usr/bin/env python3
"""Pipelines: strategies of several stages and unequal pipelines give what one device gives, by the plain compiler and libhetu.

Each case trains gpt or llama, 8 layers of sizes that divide nothing, with AdamW and compares losses, and with SGD the parameters; all holders of a parameter hold the same bits after every step
(HETU_CHECK), and parameters are read and text is written through ht_infer in between. Strategies: tensor parallel stages beside a pipeline of another shape, one device beside many, several
ranges of layers a stage, equal pipelines that share a program, the states cut, layers made anew.
"""
import functools
import os

import harness
from harness import EXAMPLES, compare_losses, compare_parameters, launch, read_losses, read_parameters

STEPS = 5
LONG = os.environ.get("HETU_LONG")
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
    "one": (3, """pipeline microbatches(1) rows(19)
        stage devices(2) layers(0)
        stage devices(0) layers(1-6)
        stage devices(1) layers(7)"""),
}


def flags_of(sizes, extra=()):
    return tuple(f"-D{key}={value}" for key, value in sizes.items()) + extra


def strategy_file(bench, name, lines):
    path = bench.path(f"{name}.strategy")
    path.write_text(f"strategy {name.replace('.', '_')}\n{lines}\nend strategy\n")
    return path


def trained(bench, key, program, ranks, steps=STEPS):
    """The losses of a program and its parameters afterwards."""
    losses, dump = bench.path(f"{key}.losses"), bench.path(f"{key}.dump")
    launch(program, ranks, "--steps", steps, "--sample", 3, "--losses", losses, "--dump", dump)
    return read_losses(losses) if steps else [], read_parameters(dump)


def wanted(bench, source, flags, steps=STEPS):
    key = f"{source.stem}.wanted{''.join(flags)}.{steps}"
    return bench.once(key, lambda: trained(bench, key, bench.plain(source, flags), 0, steps))


def check_lines(bench, example, name, ranks, lines, sizes):
    """A strategy of these lines."""
    source, strategy = EXAMPLES / example / f"{example}.c", strategy_file(bench, name, lines)
    adam, sgd = flags_of(sizes), flags_of(sizes, ("-DSGD",))
    found = trained(bench, f"{example}.{name}.adam", bench.compiled(source, strategy, adam), ranks)
    loss = compare_losses(found[0], wanted(bench, source, adam)[0], 1e-6)
    found = trained(bench, f"{example}.{name}.sgd", bench.compiled(source, strategy, sgd), ranks)
    compare_losses(found[0], wanted(bench, source, sgd)[0], 1e-6)
    parameters = compare_parameters(found[1], wanted(bench, source, sgd)[1], wanted(bench, source, sgd, 0)[1], 1e-4)
    return f"loss {loss:.2g}, parameters {parameters:.2g}"


def tests(bench, a):
    chosen = [("gpt", name, GPT) for name in STRATEGIES] + [("llama", name, LLAMA) for name in (STRATEGIES if LONG else ("a", "c"))]
    for example, name, sizes in chosen:
        yield f"{example}.{name}", functools.partial(check_lines, bench, example, name, *STRATEGIES[name], sizes)


if __name__ == "__main__":
    harness.main("run.pipelines", tests)
