#!/usr/bin/env python3
"""Ten models as people write them (models/), without operators of their own: under each strategy they give what one device gives.

With AdamW losses are within 1e-6; with SGD parameters are within 1e-4 of their change, at rates at which f32 stores such small changes. Generation writes the same tokens as a
program without a cache. Operators over the whole batch, such as batch norm, are refused in micro-batches. Each model has one strategy; HETU_LONG=1 tries all, with both optimizers.
"""
import functools
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
import pipelines
from harness import LONG, Failure, compare_losses, compare_parameters, launch, resolve_parameters, run

harness.MEETS = True

STEPS, LOSSES = 4, {"AdamW": 1e-6, "SGD": 1e-5}
# By SGD, where the model's own rate changes some parameters by too few units in the last place, or by hardly enough.
RATES = {"clip": 0.01, "dlrm": 0.02, "lstm": 0.2, "moe": 0.02, "resnet": 0.006, "unet": 0.02, "vit": 0.02}
pipelines.RATES |= {model: ("--rate", rate) for model, rate in RATES.items()}
NAMES = "heads:tp ffn:tp vocab:tp channels:tp hidden:tp expert:tp"
CHAIN = "pipeline microbatches({0}) rows({1})\n stage devices(0) layers({2})\n stage devices(1-2) mesh(tp:2) layers({3})"
STRATEGIES = {
    "dp4": (4, "split batch:dp\nstage devices(0-3) mesh(dp:4)"),
    "tp4": (4, f"split {NAMES}\nstage devices(0-3) mesh(tp:4)"),
    "dp2tp2": (4, f"split batch:dp {NAMES}\nstage devices(0-3) mesh(dp:2, tp:2)"),
    "uneven": (4, f"split batch:dp {NAMES}\nstage devices(0-3) mesh(dp:2 by 7:5, tp:2 by 2:1)"),
    "zero": (4, f"split batch:dp {NAMES}\nzero 3\nstage devices(0-3) mesh(dp:2, tp:2 by 2:1)"),
    "micro": (3, "split batch:dp\nzero 1\npipeline microbatches(3) rows(4)\nstage devices(0-2) mesh(dp:3)"),
    "stages": (3, None),
}
# By model: the layers of two stages, and whether its batch can run in parts; the strategy and the optimizer that always run.
MODELS = {
    "clip": ("vision: 0-1, text: 0", "text: 1", False, "stages", "AdamW"),
    "dlrm": ("0", "1", True, "zero", "SGD"),
    "gan": ("0", "1", True, "uneven", "AdamW"),
    "lstm": ("0", "1", True, "micro", "SGD"),
    "moe": ("0", "1", False, "tp4", "AdamW"),
    "resnet": ("0-3", "4-7", False, "dp2tp2", "SGD"),
    "translate": ("encoder: 0-1", "0-1", True, "stages", "SGD"),
    "unet": ("0-1", "2-4", True, "dp4", "AdamW"),
    "vit": ("0-2", "3", True, "micro", "AdamW"),
}
GENERATING = ("dp4", "dp2tp2", "uneven")


def flags_of(optimizer):
    return ("-DSGD",) if optimizer == "SGD" else ()


def lines_of(model, strategy):
    first, second, parts, *_ = MODELS[model]
    return STRATEGIES[strategy][1] or f"split {NAMES}\n" + CHAIN.format(*((3, 4) if parts else (1, 12)), first, second)


def check(bench, model, strategy, optimizer):
    source, flags = HERE / "models" / f"{model}.c", flags_of(optimizer)
    losses, parameters = pipelines.found(bench, source, f"{model}.{strategy}", STRATEGIES[strategy][0], lines_of(model, strategy), (*flags, "-Wno-unused-function"), STEPS)
    wanted, after = pipelines.wanted(bench, source, (*flags, "-Wno-unused-function"), STEPS)
    said = f"loss {compare_losses(losses, wanted, LOSSES[optimizer]):.2g}"
    if optimizer == "SGD":
        before = pipelines.wanted(bench, source, (*flags, "-Wno-unused-function"), 0)[1]
        stored = resolve_parameters(after, before, 1e-4)
        said += f", parameters {compare_parameters(parameters, after, before, 1e-4):.2g}, stored to {stored:.2g}"
    return said


def check_refused(bench, model):
    """What needs the whole batch cannot run in micro-batches, and hetucc says so."""
    strategy = pipelines.strategy_file(bench, f"{model}.micro", STRATEGIES["micro"][1])
    said = run([bench.hetucc, "-c", f"--strategy={strategy}", HERE / "models" / f"{model}.c", "-o", bench.path(f"{model}.o")], check=False)
    if not said.returncode or "needs the whole batch at once" not in said.stderr:
        raise Failure(f"exit {said.returncode}\n{said.stderr}")
    return said.stderr.splitlines()[0].split("error: ")[-1]


def check_generated(bench, strategy):
    source = HERE / "models" / "generate.c"
    wanted = run([bench.plain(source, ("-Wno-unused-function",))]).stdout.splitlines()[0].split()
    text = pipelines.strategy_file(bench, f"generate.{strategy}", STRATEGIES[strategy][1])
    found = launch(bench.compiled(source, text, ("-Wno-unused-function",)), STRATEGIES[strategy][0]).stdout.splitlines()[0].split()
    if found != wanted or found[::2] != found[1::2] or len(set(found)) < 5:
        raise Failure(f"{' '.join(found)}\nnot {' '.join(wanted)}")
    return f"{len(found) // 2} tokens"


def tests(bench, _):
    for model, (_, _, parts, usual, optimizer) in MODELS.items():
        for strategy in STRATEGIES:
            for own in ("AdamW", "SGD"):
                if strategy != "micro" or parts:
                    yield f"{model}.{strategy}.{own}", functools.partial(check, bench, model, strategy, own), (strategy, own) != (usual, optimizer)
        if not parts:
            yield f"{model}.refused", functools.partial(check_refused, bench, model)
    for strategy in GENERATING:
        yield f"generate.{strategy}", functools.partial(check_generated, bench, strategy), strategy != "uneven"


if __name__ == "__main__":
    harness.main("users.models", tests)
