#!/usr/bin/env python3
"""Tests recomputation: programs that compute values again in backward give the same bits as programs that keep the values, and keep what they should.

Each case trains an example without recompute, with recompute(full) and with recompute(selective): losses and parameters are equal to the bit. By --emit=cost-json, `full` keeps for backward
the input of each layer and the input of what follows the layers, and `selective` keeps less than training without recompute. The arena is at most 1.1 times the most memory needed at one time.
"""
import functools
import json
import pathlib

import harness
from harness import EXAMPLES, Failure, launch, run

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 6
LONG = harness.LONG
MODES = ("none", "full", "selective")
SMALL = 1 << 15  # bytes in which it counts that places are multiples of 64
ARENA = ("gradients", "activations", "temporaries", "scratch")

# Sizes that divide nothing, by which the closed form goes.
GPT = {"EMBED": 100, "HEADS": 5, "VOCAB": 257, "BATCH": 6, "LAYERS": 3, "SEQ": 30}
LLAMA = {"EMBED": 60, "HEADS": 6, "KV_HEADS": 3, "VOCAB": 257, "BATCH": 6, "LAYERS": 3, "FFN": 51, "SEQ": 19}
SPLIT = "split batch:dp  heads:tp  ffn:tp  vocab:tp"
# name: the strategy's lines, its mesh, by what weights rows and positions are cut, micro-batches
STRATEGIES = {
    "dp2tp2sp": ([SPLIT + "  seq:tp"], "mesh(dp:2, tp:2)", (1, 1), (1, 1), 3),
    "uneven": ([SPLIT], "mesh(dp:2 by 3:1, tp:2 by 3:1)", (3, 1), (1,), 1),
    "zero4": (["split batch:dp", "zero 1"], "mesh(dp:4)", (1, 1, 1, 1), (1,), 1),
    "zero3": ([SPLIT + "  seq:tp", "zero 3"], "mesh(dp:2, tp:2)", (1, 1), (1, 1), 2),
    "tp4": ([SPLIT], "mesh(tp:4)", (1,), (1,), 2),
}


def strategy_file(bench, name, mode):
    splits, mesh, _, _, microbatches = STRATEGIES[name]
    recompute = "" if mode == "none" else f" recompute({mode})"
    path = bench.path(f"{name}.{mode}.strategy")
    path.write_text("\n".join([f"strategy {name}", *(f"  {line}" for line in splits), f"  pipeline microbatches({microbatches})",
                               f"    stage devices(0-3) {mesh}{recompute}", "end strategy", ""]))
    return path


def flags_of(sizes, extra):
    return tuple(f"-D{key}={value}" for key, value in sizes.items()) + extra


def trained(bench, name, source, strategy, flags):
    program = bench.compiled(source, strategy, flags)
    losses, dump = bench.path(f"{name}.losses"), bench.path(f"{name}.dump")
    launch(program, 4, "--steps", STEPS, "--sample", 0, "--losses", losses, "--dump", dump)
    return losses.read_text(), dump.read_bytes()


def kept(bench, source, strategy, flags):
    """Bytes that the training program of each role keeps for backward; the arena of each program is checked."""
    out = bench.path(f"{source.stem}.{strategy.stem}{''.join(flags)}.json")
    run([bench.hetucc, f"--strategy={strategy}", "--emit=cost-json", *flags, source, "-o", out])
    models = json.loads(out.read_text())["models"]
    for memory in (role["memory"] for model in models for role in model["roles"]):
        alive = sum(memory[kind] for kind in ARENA)
        if alive > SMALL and alive + memory["gaps"] > 1.1 * alive:
            raise Failure(f"the arena has {alive + memory['gaps']} bytes, {alive} are needed at one time")
    return [role["memory"]["kept"] for model in models if model["kind"] == "train" for role in model["roles"]]


def pieces(count, weights):
    places = [count * sum(weights[:i]) // sum(weights) for i in range(len(weights) + 1)]
    return [end - begin for begin, end in zip(places, places[1:])]


def closed_form(name, sizes, size):
    """What devices keep under recompute(full): the input of each layer, and of what follows the layers."""
    _, _, rows, positions, microbatches = STRATEGIES[name]
    return {(sizes["LAYERS"] + 1) * r * s * sizes["EMBED"] * size for r in pieces(sizes["BATCH"] // microbatches, rows) for s in pieces(sizes["SEQ"], positions)}


def check(bench, example, name, sizes, extra):
    source, flags = EXAMPLES / example / f"{example}.c", flags_of(sizes, extra)
    strategies = {mode: strategy_file(bench, name, mode) for mode in MODES}
    key = f"{example}.{name}{''.join(extra)}"
    wanted = trained(bench, f"{key}.none", source, strategies["none"], flags)
    for mode in MODES[1:]:
        found = trained(bench, f"{key}.{mode}", source, strategies[mode], flags)
        if found[0] != wanted[0]:
            raise Failure(f"recompute({mode}) gives other losses:\n{found[0]}not\n{wanted[0]}")
        if found[1] != wanted[1]:
            raise Failure(f"recompute({mode}) gives other parameters")
    bytes_kept = {mode: kept(bench, source, strategies[mode], flags) for mode in MODES}
    formula = closed_form(name, sizes, 2 if "-DDTYPE=HT_BF16" in extra else 4)
    if set(bytes_kept["full"]) != formula:
        raise Failure(f"recompute(full) keeps {bytes_kept['full']} bytes, not {sorted(formula)}")
    if any(s >= n for s, n in zip(bytes_kept["selective"], bytes_kept["none"])):
        raise Failure(f"recompute(selective) keeps {bytes_kept['selective']} bytes, and {bytes_kept['none']} are kept without")
    return " ".join(f"{mode} {max(bytes_kept[mode])}" for mode in MODES)


def check_pragma(bench, strategy, written):
    """Marked statements, nested ones and ones in a loop, among them: the same losses to the bit, and less is kept."""
    source = HERE / "Inputs" / "marked.c"
    path = bench.path(f"marked.{strategy}.strategy")
    path.write_text(f"split batch:dp  heads:tp{'' if written else '  seq:tp'}\npipeline microbatches(3)\nstage devices(0-3) {strategy}\n")
    results = []
    for marks in ((), ("-DMARK",)):
        flags = (*marks, *(("-DWRITTEN",) if written else ()))
        results.append((launch(bench.compiled(source, path, flags), 4).stdout, kept(bench, source, path, flags)))
    if results[0][0] != results[1][0]:
        raise Failure(f"the pragma changes the losses:\n{results[1][0]}not\n{results[0][0]}")
    if any(b >= a for a, b in zip(results[0][1], results[1][1])):
        raise Failure(f"with the pragma {results[1][1]} bytes are kept, without {results[0][1]}")
    return f"kept {results[0][1][0]}, marked {results[1][1][0]}"


def tests(bench, a):
    dropout, half = ("-DDROPOUT=0.1f",), ("-DDTYPE=HT_BF16",)
    chosen = [("gpt", "dp2tp2sp", GPT, dropout), ("gpt", "uneven", GPT, dropout), ("llama", "dp2tp2sp", LLAMA, half), ("llama", "zero3", LLAMA, ())]
    if LONG:
        chosen = [(example, name, sizes, extra) for example, sizes, flags in (("gpt", GPT, dropout), ("llama", LLAMA, ())) for name in STRATEGIES
                  for extra in (flags, flags + half)]
    for i, (example, name, sizes, extra) in enumerate(chosen):
        yield f"{example}.{name}{'.bf16' if half[0] in extra else ''}", functools.partial(check, bench, example, name, sizes, extra), i in (0, 3)
    yield "pragma", functools.partial(check_pragma, bench, "mesh(dp:2, tp:2)", False)
    yield "pragma.written", functools.partial(check_pragma, bench, "mesh(dp:2, tp:2)", True)


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.recompute", tests)
