#!/usr/bin/env python3
"""Trains each example on every strategy and compares with the one-device program.

20 steps of AdamW: every loss within 1e-4. 20 steps of SGD (momentum 0.9, rate 0.1, larger initial weights): every loss within 1e-5, and each parameter
tensor's error at most 1e-4 of its own change, except for tensors that change by less than 1e-6 of the largest change. In group bf16, 50 steps of AdamW in
bf16: every loss within 1e-2 of the one-device program's, which computes in f32. With HETU_CHECK the runtime compares the bits of all holders after every step.
"""
import functools
import pathlib

import harness
from harness import EXAMPLES, launch

STEPS = 20
BF16_STEPS = 50
HERE = pathlib.Path(__file__).resolve().parent
GPT = EXAMPLES / "gpt" / "gpt.c"
STRATEGIES = ["single", "dp4", "tp4", "dp2tp2", "dp2tp2sp", "zero4", "uneven"]
SMALL = {"gpt": ["-DEMBED=64", "-DLAYERS=2", "-DSEQ=32"], "llama": ["-DEMBED=48", "-DLAYERS=2", "-DFFN=110", "-DSEQ=24"], "mlp": [], "custom": []}
ODD = ["-DEMBED=100", "-DHEADS=5", "-DVOCAB=257", "-DBATCH=6", "-DLAYERS=2", "-DSEQ=30", "-DDROPOUT=0.1f"]
ODD_LLAMA = ["-DEMBED=60", "-DHEADS=6", "-DKV_HEADS=3", "-DVOCAB=257", "-DBATCH=3", "-DLAYERS=2", "-DFFN=51", "-DSEQ=19"]


def strategy_of(example, name):
    if name == "wide":
        return HERE / "Inputs" / "wide.strategy"
    return EXAMPLES / "gpt" / "strategies" / f"{name}.strategy" if example == "gpt" else name


def cases(group):
    """(test name, example, strategy, flags, ranks) of a group."""
    if group == "odd":
        for name in STRATEGIES[1:]:
            yield f"gpt.odd.{name}", "gpt", name, ODD, 4
        for name in ["tp4", "dp2tp2sp", "uneven"]:
            yield f"llama.odd.{name}", "llama", name, ODD_LLAMA, 4
    elif group == "custom":
        for name in ["dp4", "sp4", "dp2tp2"]:
            yield f"custom.{name}", "custom", name, SMALL["custom"], 4
    else:
        for name in STRATEGIES:
            yield f"{group}.{name}", group, name, SMALL[group], 1 if name == "single" else 4


def wide_cases(group):
    """A case on 8 ranks, trained by SGD alone."""
    if group in ("gpt", "llama"):
        yield f"{group}.wide", group, "wide", SMALL[group], 8


def optimizer_flags(sgd):
    return list(harness.SGD) if sgd else []


def trained(bench, key, program, ranks, sgd, steps=None):
    """(losses, parameters) of a training run."""
    rate = "0.1" if sgd else "0.001"
    losses, dump = bench.path(key + ".losses"), bench.path(key + ".dump")
    launch(program, ranks, "--steps", steps or STEPS, "--rate", rate, "--sample", 0, "--losses", losses, "--dump", dump)
    return harness.read_losses(losses), harness.read_parameters(dump)


def oracle(bench, source, flags, sgd):
    """The one-device program's (losses, parameters, initial parameters)."""
    def make():
        key = f"oracle.{source.stem}{''.join(flags)}.{'sgd' if sgd else 'adamw'}"
        program, initial = bench.plain(source, tuple(flags + optimizer_flags(sgd))), bench.path(key + ".initial")
        launch(program, 0, "--steps", 0, "--sample", 0, "--dump", initial)
        return *trained(bench, key, program, 0, sgd), harness.read_parameters(initial)
    return bench.once(("oracle", source, tuple(flags), sgd), make)


def check(bench, name, example, strategy, flags, ranks, sgd):
    source = EXAMPLES / example / f"{example}.c"
    losses, parameters, initial = oracle(bench, source, flags, sgd)
    program = bench.compiled(source, strategy_of(example, strategy), tuple(flags + optimizer_flags(sgd)))
    found, after = trained(bench, f"{name}.{'sgd' if sgd else 'adamw'}", program, ranks, sgd)
    loss = harness.compare_losses(found, losses, 1e-5 if sgd else 1e-4)
    error = harness.compare_parameters(after, parameters, initial, 1e-4) if sgd else 0
    return f"loss {loss:.1g}" + (f", parameters {error:.1g}" if sgd else "")


def check_bf16(bench, name, example, strategy, flags, ranks):
    source = EXAMPLES / example / f"{example}.c"
    wanted, _ = bench.once(("f32", source), lambda: trained(bench, f"{example}.f32", bench.plain(source, tuple(flags)), 0, False, BF16_STEPS))
    program = bench.compiled(source, strategy_of(example, strategy), (*flags, "-DDTYPE=HT_BF16"))
    found, _ = trained(bench, f"{name}.bf16", program, ranks, False, BF16_STEPS)
    return f"loss {harness.compare_losses(found, wanted, 1e-2):.1g}"


def tests(bench, a):
    harness.MEETS = a.group != "gpt"  # which stays with MPI
    if a.group == "bf16":
        for e, example in enumerate(("gpt", "llama")):
            for i, (name, *case) in enumerate(cases(example)):
                yield f"{name}.bf16", functools.partial(check_bf16, bench, name, *case), (i + e) % 2 > 0
        return
    for i, (name, *case) in enumerate(cases(a.group)):
        for sgd in (False, True):
            rare = a.group in ("odd", "mlp") and i % 2 != sgd
            yield f"{name}.{'sgd' if sgd else 'adamw'}", functools.partial(check, bench, name, *case, sgd), rare
    for name, *case in wide_cases(a.group):
        yield f"{name}.sgd", functools.partial(check, bench, name, *case, True)


if __name__ == "__main__":
    harness.OPTIMISED = "-O1"
    harness.main(lambda a: f"run.{a.group}", tests, lambda a: a.add_argument("--group", default="gpt", help="gpt, llama, mlp, custom, odd or bf16"))
