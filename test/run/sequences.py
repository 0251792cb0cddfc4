#!/usr/bin/env python3
"""Tests context parallelism: strategies that cut the sequence give what one device gives, by the plain compiler and libhetu.

Keys and values are gathered, or tokens are exchanged for heads around attention (Ulysses), or both over a mesh of two axes. Pieces are ranges of the
sequence, by weights, or zigzag. The models are gpt, llama, and a model of packed sequences. HETU_LONG=1 tries all strategies with all three models.
"""
import collections
import functools
import json
import pathlib

import harness
import pipelines
from harness import EXAMPLES

LONG = harness.LONG
PACKED = pathlib.Path(__file__).resolve().parent / "Inputs" / "packed.c"
GPT = {"EMBED": 24, "HEADS": 4, "VOCAB": 259, "BATCH": 6, "LAYERS": 3, "SEQ": 23, "DROPOUT": "0.1f"}
LLAMA = {"EMBED": 24, "HEADS": 4, "KV_HEADS": 2, "VOCAB": 261, "BATCH": 6, "LAYERS": 3, "FFN": 41, "SEQ": 19}
DEEP = {"LAYERS": 8}

# name: ranks and lines
STRATEGIES = {
    "gather": (4, "split seq:cp\nstage devices(0-3) mesh(cp:4)"),
    "weights": (3, "split seq:cp\nstage devices(2,0,1) mesh(cp:3 by 3:1:2)"),
    "ulysses": (4, "split seq:cp heads:cp\nstage devices(0-3) mesh(cp:4)"),
    "ulysses3": (3, "split seq:cp heads:cp\nzero 3\nstage devices(0-2) mesh(cp:3)"),
    "both": (4, "split seq:cp*ul heads:ul\nzero 1\nstage devices(0-3) mesh(cp:2, ul:2)"),
    "heads": (4, "split heads:tp ffn:tp vocab:tp seq:cp*tp\nstage devices(0-3) mesh(cp:2, tp:2)"),
    "zigzag": (4, "split seq:cp zigzag\nstage devices(0-3) mesh(cp:4)"),
    "fold2": (2, "split seq:cp zigzag\nzero 2\nstage devices(1,0) mesh(cp:2)"),
    "zigzag3": (3, "split seq:cp zigzag\nstage devices(0-2) mesh(cp:3 by 2:1:2)"),
    "folded": (4, "split seq:cp*ul zigzag heads:ul\nzero 3\nstage devices(0-3) mesh(cp:2, ul:2)"),
    "foldturns": (4, "split seq:cp zigzag\nturns seq:cp\nstage devices(0-3) mesh(cp:4)"),
    "foldring": (4, "split seq:cp*ul zigzag heads:ul\nturns seq:cp\nzero 1\nstage devices(0-3) mesh(cp:2, ul:2)"),
    "foldtp": (4, "split heads:tp ffn:tp vocab:tp seq:cp*tp zigzag\nzero 1\npipeline microbatches(3) rows(2)\nstage devices(0-3) mesh(cp:2, tp:2)"),
}
# of 8 layers
STAGES = {
    "stages": (7, """split seq:cp*ul zigzag  heads:ul
      zero 1
      schedule 1f1b
      pipeline microbatches(3) rows(1)
        stage devices(0-2) mesh(cp:3) layers(0-2) recompute(full)
        stage devices(3-4) mesh(ul:2) layers(3-7)
      pipeline microbatches(2) rows(2)
        stage devices(5) layers(0-4)
        stage devices(6) layers(5-7) recompute(selective)"""),
    "ends": (4, """split seq:cp  heads:cp
      pipeline microbatches(7) rows(1)
        stage devices(3) layers(0)
        stage devices(0-2) mesh(cp:3 by 1:2:2) layers(1-7)"""),
}
ALL = {**STRATEGIES, **STAGES}


def check_packed(bench, name):
    """Losses and parameters after training by SGD; the parameters of AdamW follow too little from gradients."""
    ranks, strategy = STRATEGIES[name][0], pipelines.strategy_file(bench, name, STRATEGIES[name][1])
    flags = ("-DSGD",)
    found = pipelines.trained(bench, f"packed.{name}", bench.compiled(PACKED, strategy, flags), ranks, more=pipelines.rate_of(PACKED, flags))
    wanted, initial = pipelines.wanted(bench, PACKED, flags), pipelines.wanted(bench, PACKED, flags, 0)
    loss = harness.compare_losses(found[0], wanted[0], 1e-6)
    return f"loss {loss:.2g}, parameters {harness.compare_parameters(found[1], wanted[1], initial[1], 1e-4):.2g}"


def work_of(bench, strategy, flags):
    """{(operator, line, section): operations of a step, summed over devices} of gpt's training, every operator by itself."""
    out = bench.path(f"{strategy}.cost.json")
    chosen = [f"--strategy={pipelines.strategy_file(bench, strategy, ALL[strategy][1])}"] if strategy else []
    harness.run([bench.hetucc, "--emit=cost-json", "--no-fuse", *chosen, *flags, EXAMPLES / "gpt" / "gpt.c", "-o", out])
    work = collections.Counter()
    for role in next(m for m in json.loads(out.read_text())["models"] if m["kind"] == "train")["roles"]:
        for op in role["operators"]:
            work[op["operator"], op["line"], op["section"]] += op["operations"] * op["runs"] * len(role["devices"])
    return work


def check_work(bench):
    """At 4 ways no work is repeated: forward and backward do as much as on one device, but for sums of what devices contribute to a gradient."""
    flags = pipelines.flags_of({**GPT, "SEQ": 24})
    wanted = work_of(bench, None, flags)
    for name in ("gather", "ulysses", "both", "zigzag", "folded"):
        found = work_of(bench, name, flags)
        for key in set(found) | set(wanted):
            if key[2] != "update" and "add_gradients" not in key[0] and found[key] != wanted[key]:
                raise harness.Failure(f"{name}: {key} does {found[key]} operations on all devices, {wanted[key]} on one")
    return f"{sum(wanted.values())} operations"


def check_resume(bench):
    """The text after each of some passes goes on to the same program."""
    flags, source = pipelines.flags_of({**GPT, "LAYERS": 1}), EXAMPLES / "gpt" / "gpt.c"
    strategy, direct = pipelines.strategy_file(bench, "folded", ALL["folded"][1]), bench.path("direct")
    harness.run([bench.hetucc, f"--strategy={strategy}", *flags, "--emit=c", source, "-o", direct])
    for after in ("seed_layouts", "propagate_layouts", "specialize", "memory"):
        text, resumed = bench.path(f"{after}.ir"), bench.path(f"resumed.{after}")
        harness.run([bench.hetucc, f"--strategy={strategy}", *flags, "--emit=ir", f"--stop-after={after}", source, "-o", text])
        harness.run([bench.hetucc, f"--strategy={strategy}", *flags, f"--resume={text}", "--emit=c", source, "-o", resumed])
        harness.run(["diff", "-r", direct, resumed])


def tests(bench, a):
    yield "work", functools.partial(check_work, bench)
    yield "resume", functools.partial(check_resume, bench)
    models = {"gpt": GPT, "llama": LLAMA}
    chosen = [("gpt", "zigzag"), ("gpt", "both"), ("gpt", "stages"), ("llama", "folded"), ("llama", "ulysses3"), ("packed", "gather"), ("packed", "zigzag3"), ("packed", "folded"), ("packed", "foldturns")]
    for name in ALL if LONG else ():
        chosen += [(model, name) for model in ("gpt", "llama", "packed") if (model, name) not in chosen and (model != "packed" or name in STRATEGIES)]
    for model, name in chosen:
        sizes = {**models.get(model, {}), **(DEEP if name in STAGES else {}), **({"BATCH": 7} if name in STAGES else {})}
        test = functools.partial(check_packed, bench, name) if model == "packed" else functools.partial(pipelines.check_lines, bench, model, name, *ALL[name], sizes)
        yield f"{model}.{name}", test, (model, name) in {("packed", "zigzag3"), ("gpt", "zigzag"), ("packed", "gather")}


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.sequences", tests)
