#!/usr/bin/env python3
"""Trains random models (random_text.py) on one device and on random strategies, and compares: a search for errors that no example shows.

    random_models.py --build BUILD --seed 1 --count 100        100 groups of models from seed 1 on
    random_models.py --build BUILD --seed 17 --keep /tmp/x     one group; its sources stay in /tmp/x
    random_models.py --build BUILD --bf16                      hetucc's programs in bf16, the plain one in f32 as always

    random_models.py --build BUILD --mixes             rows of the batch are mixed in micro-batches: hetucc refuses a model, or its program computes the same
    random_models.py --build BUILD --pipelines         strategies of several pipelines, stages, schedules; models with layers and towers
    random_models.py --build BUILD --visits            stages that are visited several times (random_visits.py): nothing is refused, results agree within 1e-6
    random_models.py --build BUILD --wide              hetucc alone, on 8 to 16 devices: finds values that a device would lack

A group is one source of several models and one strategy. It is built three times: by the plain compiler, by hetucc without a strategy, and by hetucc
with the strategy. Losses, parameters and outputs must agree. Where a group fails, each of its models runs alone, and the failing models are named.
"""
import functools
import math
import random
import re

import harness
import random_text
import random_visits
from harness import Failure, launch, run

LOSS, CHANGE = 2e-4, 2e-3  # allowed: of a loss, and of a parameter's change
EXACT = 1e-6               # allowed of everything, where models are such that sums lose nothing
NUDGE = 2.0**-23           # by how much of themselves the inputs of a nudged program are larger or smaller
BF16, USUAL = 2e-2, 12     # allowed of everything in bf16, in a model of so many tensors as is usual; roundings add up as the steps of a random walk do


def read(path):
    """{(kind, name): [values, ...]} of what a program wrote."""
    found = {}
    for line in path.read_text().splitlines():
        kind, name, *values = line.split()
        found.setdefault((kind, name), []).append([float(v) for v in values])
    return found


def length(values):
    return math.sqrt(math.fsum(v * v for v in values))


def compare(found, wanted, who, roundings, exact=False, nudged=None):
    """`roundings`: by the start of a name the tensors that a model in bf16 computes; empty in f32. `exact`: all is the same within EXACT of its length, or of 1. `nudged`
    gives what the program with nudged inputs wrote: what moves more than they do may be off by as much more."""
    if set(found) != set(wanted):
        raise Failure(f"{who}: not the same names: {sorted(set(found) ^ set(wanted))[:6]}")
    wrong = []
    for (kind, name), rows in wanted.items():
        for step, (want, have) in enumerate(zip(rows, found[kind, name])):
            error = harness.distance(have, want)
            allowed = LOSS * (0.1 + length(want))
            if kind == "before":
                allowed = 0
            elif exact:
                allowed = EXACT * max(1, length(want))
                if nudged and not error <= allowed:
                    allowed *= max(1, harness.distance(nudged()[kind, name][step], want) / (NUDGE * max(1, length(want))))
            elif roundings:
                allowed = BF16 * math.sqrt(max(1, roundings[name.split(".")[0]] / USUAL)) * (0.1 + length(want))
            elif kind == "after":
                start = wanted["before", name][0]
                allowed = CHANGE * harness.distance(want, start) + 1e-6 * length(want) + 1e-6 * math.sqrt(len(want))
            if not error <= allowed:
                wrong.append(f"{who}: {kind} {name}{f' of step {step}' if kind == 'loss' else ''} is off by {error:.3g}, {allowed:.3g} allowed; it is {have[:4]}, "
                             f"not {want[:4]}")
    if wrong:
        raise Failure("\n".join(wrong[:8]))


# What hetucc rightly refuses: the words of the error, and what to leave out of the model it points at.
REFUSALS = [("has a batch of its own", "tasks"), ("needs the whole batch at once", "model"), ("has the rows of the batch", "model"),
            ("may not be cut: no operator that has it allows it", "name"), ("operators tie", "names"), ("is not one that can be cut like this", "layout")]


def give_way(group, message):
    """Takes back what hetucc refused, where it may refuse it. Returns whether anything changed."""
    if "does not hand values from one of its ranges" in message and not group.strategy.plain:
        group.strategy.plain = True
        return True
    useless = re.findall(r'no pieces of the dimension "(\w+)" move on in turns along the axis "(\w+)"', message)
    if useless:
        group.strategy.turning = [turn for turn in group.strategy.turning if turn not in useless]
        return True
    changed, blocks = False, re.split(r"\n(?=\S*: ?(?:\d+:\d+: )?error)", message)
    for block in blocks:
        for words, what in REFUSALS:
            name = re.search(r'dimension "(\w+)', block)
            for line in re.findall(r"group\.c:(\d+):", block) if words in block else []:
                model, at = group.model_at(int(line))
                if not model:
                    continue
                if what == "model" and model.mixes or what == "tasks" and len(model.inputs) > 1:
                    model.refused = changed = True
                elif what == "name" and name.group(1) not in model.dropped:
                    model.dropped.add(name.group(1))
                    changed = True
                elif what == "names" and not model.no_names:
                    model.no_names = changed = True
                elif what == "layout" and at in model.written and model.written[at] not in model.no_layout:
                    model.no_layout.add(model.written[at])
                    changed = True
    return changed


def compile_many(bench, group, folder, only, flags):
    """The program for the strategy; what hetucc rightly refuses is left out of the models. Returns how often that happened; None: no model is left."""
    source, strategy = folder / "group.c", folder / "random.strategy"
    for refused in range(20):
        if not [m for m in group.accepted() if only is None or m.index == only]:
            return None
        strategy.write_text(group.strategy.text())
        source.write_text(group.text(only))
        p = run([bench.hetucc, "-O0", *flags, f"--strategy={strategy}", source, "-o", folder / "many", "-lm"], timeout=300, check=False)
        if p.returncode == 0:
            return refused
        if not give_way(group, p.stderr):
            raise Failure(f"hetucc --strategy={strategy} {source}: exit {p.returncode}\n{p.stderr[-2500:]}")
    raise Failure("too many refusals")


def build(bench, group, folder, only, flags):
    """The three programs. Returns how often hetucc refused."""
    library, source = bench.build / "lib", folder / "group.c"
    refused = compile_many(bench, group, folder, only, flags)
    if refused is None:
        return None
    run([bench.hetucc, "-O0", *flags, source, "-o", folder / "one", "-lm"], timeout=300)
    run(["cc", "-std=gnu17", "-O0", f"-I{harness.ROOT}/include", source, "-o", folder / "plain", f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    return refused


def check(bench, group, folder, only=None):
    exact = isinstance(group, random_visits.Visited)
    folder.mkdir(parents=True, exist_ok=True)
    if group.wide:
        refused = compile_many(bench, group, folder, only, ["--emit=ir"])
        return f"{group.strategy.ranks} devices, {refused} refusals"
    refused = build(bench, group, folder, only, ["-DDTYPE=HT_BF16"] if group.bf16 else [])
    if refused is None:
        return "all refused"
    launch(folder / "plain", 0, folder / "plain.txt", timeout=60)
    launch(folder / "one", 0, folder / "one.txt", timeout=60)
    wanted = read(folder / "plain.txt")
    roundings = {f"m{model.index}": len(model.tensors) for model in group.models} if group.bf16 else {}

    @functools.cache
    def nudged():
        launch(folder / "plain", 0, folder / "nudged.txt", timeout=60, env={"NUDGE": "1"})
        return read(folder / "nudged.txt")

    compare(read(folder / "one.txt"), wanted, "one device", roundings, exact, nudged)
    launch(folder / "many", group.strategy.ranks, folder / "many.txt", timeout=60)
    compare(read(folder / "many.txt"), wanted, f"{group.strategy.ranks} ranks", roundings, exact, nudged)
    return f"{group.strategy.ranks} ranks" + ", bf16" * group.bf16 + (f", {refused} refusals" if refused else "")


def fails(bench, group, folder, index):
    """What is wrong with one model alone; empty when nothing is."""
    try:
        check(bench, group, folder, index)
    except Failure as e:
        return str(e)
    return ""


def shrink(bench, group, folder, model, what):
    """Leaves out of a model that fails all that does not matter: names, terms of the loss, layouts. Returns what is wrong with the rest."""
    def attempt(field, value):
        nonlocal what
        before = getattr(model, field)
        setattr(model, field, value)
        now = fails(bench, group, folder, model.index)
        if now:
            what = now
        else:
            setattr(model, field, before)

    attempt("no_names", True)
    for k in range(len(model.terms)):
        if len(model.without) + 1 < len(model.terms):
            attempt("without", model.without | {k})
    for i in sorted(set(model.written.values())):
        attempt("no_layout", model.no_layout | {i})
    for name in random_text.NAMES if not model.no_names else []:
        attempt("dropped", model.dropped | {name})
    fails(bench, group, folder, model.index)
    return what


def check_group(bench, seed, a):
    group = random_visits.Visited(seed, a.models) if a.visits else random_text.Group(seed, a.models, random_text.WIDE if a.wide else random_text.MESHES, a.mixes, a.pipelines)
    group.bf16, group.wide = a.bf16 or (a.pipelines and random.Random(f"bf16.{seed}").random() < 0.2), a.wide
    folder = bench.path(f"seed{seed}")
    try:
        return check(bench, group, folder)
    except Failure as whole:
        failures = []
        for model in group.accepted():
            alone = folder / f"m{model.index}"
            what = fails(bench, group, alone, model.index)
            if what and a.shrink and not a.visits:
                what = shrink(bench, group, alone, model, what)
            if what:
                failures.append(f"model {model.index}: {what}")
        raise Failure("\n".join(failures) if failures else f"only together: {whole}") from None


def tests(bench, a):
    for seed in range(a.seed, a.seed + a.count):
        yield f"seed{seed}", lambda seed=seed: check_group(bench, seed, a)


def options(a):
    a.add_argument("--seed", type=int, default=1, help="the first seed")
    a.add_argument("--count", type=int, default=1, help="how many seeds")
    a.add_argument("--models", type=int, default=10, help="models a group")
    a.add_argument("--bf16", action="store_true", help="the compiled programs compute in bf16")
    a.add_argument("--mixes", action="store_true", help="micro-batches, whose rows the models mix")
    a.add_argument("--pipelines", action="store_true", help="strategies of several pipelines and stages")
    a.add_argument("--visits", action="store_true", help="stages that are visited several times")
    a.add_argument("--wide", action="store_true", help="on many devices, compiled only")
    a.add_argument("--shrink", action="store_true", help="make the models that fail as small as they go")


def suite(a):
    return "run.random" + "".join(f"-{name}" for name in ("bf16", "mixes", "wide", "pipelines", "visits") if getattr(a, name))


harness.MEETS = True
harness.main(suite, tests, options)
