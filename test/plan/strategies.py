#!/usr/bin/env python3
"""Tests strategies that hetucc --plan finds for generated models and clusters (generated.py), under memory bounds near what the models need.

hetucc accepts each strategy, and counts the bytes that the plan says. A run with real kernels gives the losses of one device, within the memory bound. Where
no plan fits, no strategy of an exhaustive search fits. The same input gives the same plan. The test runs a few of forty seeds, and with HETU_LONG=1 all.
"""
import functools
import itertools
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, launch, run

import generated

FEW = (1, 12)
SLACK = 512 << 20  # bytes of addresses: what MPI and OpenBLAS, which never gives up asking for its buffers, take beside what hetucc plans


def written(bench, seed, scale=1):
    """The model, its cluster, and what they are."""
    def make():
        text, sizes = generated.model(seed, scale)
        held = generated.cluster(seed)
        model, cluster = bench.path(f"m{seed}.{scale}.c"), bench.path(f"c{seed}.json")
        model.write_text(text)
        cluster.write_text(json.dumps(held))
        return model, cluster, sizes, held
    return bench.once(("written", seed, scale), make)


def plan(bench, seed, memory, scale=1):
    """What --plan says under a bound: (strategy's file, seconds, bytes), or the least bytes that would do as a number."""
    def make():
        model, cluster, _, _ = written(bench, seed, scale)
        out = bench.path(f"p{seed}.{scale}.{memory}.strategy")
        said = run([bench.hetucc, "--plan", f"--cluster={cluster}", f"--memory={memory}", "-o", out, model], check=False)
        if said.returncode:
            least = re.search(r"with .* \((\d+) bytes\) a device one would", said.stderr)
            if said.returncode != 1 or out.exists() or said.stdout or not least:
                raise Failure(f"exit {said.returncode}\n{said.stdout}{said.stderr}")
            return int(least.group(1))
        first = re.search(r"1\. (\S+) s, .*\((\d+) bytes\)", said.stdout)
        return out, float(first.group(1)), int(first.group(2))
    return bench.once(("plan", seed, memory, scale), make)


def costs(bench, seed, strategy, scale=1):
    """The most bytes that hetucc counts for a device under a strategy; None: it does not take it."""
    model, cluster, _, _ = written(bench, seed, scale)
    said = run([bench.hetucc, f"--strategy={strategy}", f"--cluster={cluster}", "--emit=cost-json", model], check=False)
    if said.returncode == 2:
        raise Failure(said.stderr)
    return None if said.returncode else max(role["memory"]["peak"] for entry in json.loads(said.stdout)["models"] for role in entry["roles"])


HUGE, TINY = 1 << 50, 1000


def bounds(bench, seed):
    """Bounds from the least that would do to what the fastest plan takes."""
    least, most = plan(bench, seed, TINY), plan(bench, seed, HUGE)[2]
    return least, most, sorted({least, (least + most) // 2, (3 * least + most) // 4} if most > least else {least})


def fits(bench, seed):
    """Under each bound the plan is one that hetucc takes, within it, and no more memory makes it slower."""
    least, _, tried = bounds(bench, seed)
    seconds = []
    for bound in [*tried, HUGE]:
        found = plan(bench, seed, bound)
        if isinstance(found, int):
            raise Failure(f"nothing fits {bound} bytes, but {least} would do")
        strategy, step, said = found
        peak = costs(bench, seed, strategy)
        if peak is None or peak > bound or abs(peak - said) > 0.03 * said:
            raise Failure(f"{bound} bytes: the plan says {said}, hetucc {peak}")
        seconds.append(step)
    below = plan(bench, seed, least - 1)
    if below != least:
        raise Failure(f"{least} bytes are the least that would do, and of {least - 1} bytes the planner says {below}")
    return f"{len(seconds)} bounds from {least} bytes"


def twice(bench, seed):
    model, cluster, _, _ = written(bench, seed)
    texts = []
    for n in range(2):
        out = bench.path(f"twice{seed}.strategy")
        said = run([bench.hetucc, "--plan", f"--cluster={cluster}", "-o", out, model])
        texts.append((out.read_text(), said.stdout))
    if texts[0] != texts[1]:
        raise Failure("two plans of one input differ")


# ---- exhaustive search ----

def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def cuts(layers, stages):
    """All ways to give consecutive layers to stages."""
    for places in itertools.combinations(range(1, layers), stages - 1):
        yield list(zip((0, *places), (*places, layers)))


def shapes(count, layers):
    """(stages, dp, tp) of devices 0 .. n - 1."""
    for n in range(1, count + 1):
        for stages in divisors(n):
            for data in divisors(n // stages):
                if stages <= max(layers, 1):
                    yield stages, data, n // stages // data


def splits(sizes, data, width):
    """Rules of split: along tp all names that parameters have, or those of the hidden layer alone."""
    names = sizes["names"]
    hidden = f"{names['inner']}:tp"
    ways = [f"{hidden} {names['heads']}:tp {names['places']}:tp", hidden] if sizes["attention"] else [hidden]
    return [" ".join([f"{names['rows']}:dp"] * (data > 1) + [way] * (width > 1)) for way in (ways if width > 1 else ways[:1])]


def space(seed, sizes, held):
    """Strategies as text: equal blocks of devices, equal rows, layers as they may be cut."""
    layers = sizes["LAYERS"] if sizes["layered"] else 0
    for stages, data, width in shapes(len(generated.device_classes(held)), layers):
        mesh = ", ".join([f"dp:{data}"] * (data > 1) + [f"tp:{width}"] * (width > 1))
        size = data * width
        for split in splits(sizes, data, width):
            for rows in [r for r in divisors(sizes["ROWS"]) if r >= data]:
                for cut in cuts(layers, stages) if stages > 1 else [None]:
                    for zero in range(4) if data > 1 else (0, 3) if width > 1 else [0]:
                        for recompute in ("", " recompute(selective)", " recompute(full)"):
                            lines = [f"strategy s\n{'split ' + split if split else ''}\nzero {zero}\npipeline microbatches({sizes['ROWS'] // rows}) rows({rows})"]
                            for s in range(stages):
                                devices = f"{s * size}-{(s + 1) * size - 1}" if size > 1 else s * size
                                part = f" layers({cut[s][0]}-{cut[s][1] - 1})" if cut and cut[s][1] - cut[s][0] > 1 else f" layers({cut[s][0]})" if cut else ""
                                lines.append(f"stage devices({devices}){f' mesh({mesh})' if mesh else ''}{part}{recompute}")
                            yield "\n".join(lines) + "\nend strategy\n"


def nothing(bench, seed):
    """What the planner says is the least is what an exhaustive search finds, or less."""
    _, _, sizes, held = written(bench, seed)
    least = plan(bench, seed, TINY)
    if not isinstance(plan(bench, seed, least - 1), int):
        return "less than the least fits, too"
    file, count = bench.path(f"x{seed}.strategy"), 0
    for text in space(seed, sizes, held):
        file.write_text(text)
        peak = costs(bench, seed, file)
        count += peak is not None
        if peak is not None and peak < least:
            raise Failure(f"nothing fits {least - 1} bytes, says the planner; this needs {peak}:\n{text}")
    return f"{count} strategies need {least} bytes or more"


# Strategies of exhaustive searches that need less than what the planner once said was the least: by seed the names along tp and the stage.
SMALL = {22: ("inner", "devices(0-2) mesh(tp:3)"), 23: ("inner", "devices(0-3) mesh(tp:4)"), 33: ("inner", "devices(0-2) mesh(tp:3)")}


def small(bench, seed):
    """What needs little where one name alone is cut along tp, rows come one by one and ZeRO cuts the rest: the planner finds it, or what needs less."""
    _, _, sizes, _ = written(bench, seed)
    name, stage = SMALL[seed]
    file = bench.path(f"small{seed}.strategy")
    file.write_text(f"strategy s\nsplit {sizes['names'][name]}:tp\nzero 3\npipeline microbatches({sizes['ROWS']}) rows(1)\nstage {stage} recompute(full)\nend strategy\n")
    least, peak = plan(bench, seed, TINY), costs(bench, seed, file)
    if peak is None or least > peak:
        raise Failure(f"the planner says that {least} bytes are the least, and this needs {peak}:\n{file.read_text()}")
    return f"{least} bytes, and {peak} cut by one name"


# ---- runs ----

def runs(bench, seed):
    """A larger model under the middle of its bounds: the program has no more than that, and the losses of one device."""
    scale = 16
    model, cluster, _, held = written(bench, seed, scale)
    least, most = plan(bench, seed, TINY, scale), plan(bench, seed, HUGE, scale)[2]
    bound = max((least + most) // 2, least)
    strategy, _, said = plan(bench, seed, bound, scale)
    program, plain = bench.path(f"run{seed}"), bench.path(f"plain{seed}")
    run([bench.hetucc, f"--strategy={strategy}", f"--cluster={cluster}", model, "-o", program])
    library = bench.build / "lib"
    run(["cc", "-O1", "-w", f"-I{harness.ROOT}/include", model, "-o", plain, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    devices = [int(n) for line in strategy.read_text().splitlines() for text in re.findall(r"devices\(([^)]*)\)", line) for n in re.findall(r"\d+", text)]
    ranks, limit = max(devices) + 1, {"preload": bench.build / "lib" / "limited.so", "timeout": 300}
    limited = launch(program, ranks, env={"LIMITED_BYTES": str(bound + SLACK), "OPENBLAS_NUM_THREADS": "1"}, **limit).stdout
    if not launch(program, ranks, env={"LIMITED_BYTES": str(said // 4)}, check=False, **limit).returncode:
        raise Failure("the bound bounds nothing")
    wanted = launch(plain, 0, timeout=300).stdout
    pairs = list(zip(re.findall(r"loss (\S+)", limited), re.findall(r"loss (\S+)", wanted)))
    if len(pairs) != 2 or any(abs(float(a) - float(b)) > 1e-4 * abs(float(b)) for a, b in pairs):
        raise Failure(f"losses {limited!r}, one device {wanted!r}")
    return f"{said} of {bound} bytes"


def tests(bench, _):
    for seed in range(40):
        rare = seed not in FEW
        yield f"fits.{seed}", functools.partial(fits, bench, seed), rare
        yield f"runs.{seed}", functools.partial(runs, bench, seed), rare or seed != FEW[0]
        yield f"nothing.{seed}", functools.partial(nothing, bench, seed), True
    for seed in SMALL:
        yield f"small.{seed}", functools.partial(small, bench, seed), seed != 22
    yield "twice", functools.partial(twice, bench, FEW[0])


if __name__ == "__main__":
    harness.main("plan.strategies", tests)
