#!/usr/bin/env python3
"""Compares hetu-simulate with real runs on 4 and 8 ranks: gpt and llama with an activation that sleeps (Inputs/slow.h), so that ranks do not compete for cores.

Each step takes the simulated time within 10%, and strategies whose steps differ by 15% or more are in the simulated order. The bytes that ranks receive in a step
are those of the conversions; the memory that a rank reserves is the simulated arena. HETU_LONG=1 tries 12 strategies of each kind, else a few. All but the
sleep is priced by a cluster file of this kind of machine, or by the file that HETU_CLUSTER names.
"""
import functools
import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import EXAMPLES, Failure, launch, run

harness.OPTIMISED = "-O1"

LONG = harness.LONG
LAYERS, BATCH, NANOSECONDS, STEPS = 4, 16, 4000, 4
SIZES = {"EMBED": 32, "HEADS": 4, "LAYERS": LAYERS, "BATCH": BATCH, "SEQ": 16, "VOCAB": 256, "NANOSECONDS": NANOSECONDS}
LLAMA = {"KV_HEADS": 4, "FFN": 128}


def stage(first, count, layers, mesh=None, more=""):
    devices = f"{first}-{first + count - 1}" if count > 1 else f"{first}"
    return f"  stage devices({devices}){f' mesh({mesh})' if mesh else ''} layers({layers}) {more}"


def pipeline(microbatches, *stages, rows=BATCH):
    return f"pipeline microbatches({microbatches}) rows({rows // microbatches})\n" + "\n".join(stages)


TP, DP = "split heads:tp ffn:tp vocab:tp\n", "split batch:dp\n"
BOTH = "split batch:dp heads:tp ffn:tp vocab:tp\n"

FOUR = {
    "dp4": DP + "stage devices(0-3) mesh(dp:4)",
    "tp4": TP + "stage devices(0-3) mesh(tp:4)",
    "pp2tp2": TP + pipeline(4, stage(0, 2, "0-1", "tp:2"), stage(2, 2, "2-3", "tp:2")),
    "unequal": TP + pipeline(4, stage(0, 3, "0-2", "tp:3"), stage(3, 1, "3"), rows=BATCH),
    "dp2tp2": BOTH + "stage devices(0-3) mesh(dp:2, tp:2)",
    "pp4.gpipe": "schedule gpipe\n" + pipeline(4, *(stage(s, 1, s) for s in range(4))),
    "pp4": "schedule 1f1b\n" + pipeline(8, *(stage(s, 1, s) for s in range(4))),
    "pp4.zb": "schedule zero_bubble\n" + pipeline(8, *(stage(s, 1, s) for s in range(4))),
    "interleaved": DP + pipeline(4, stage(0, 2, "0, 2", "dp:2"), stage(2, 2, "1, 3", "dp:2")),
    "pipelines": pipeline(4, stage(0, 1, "0-1"), stage(1, 1, "2-3"), rows=8) + "\n" + pipeline(4, stage(2, 1, "0-1"), stage(3, 1, "2-3"), rows=8),
    "pipelines.unequal": pipeline(4, *(stage(s, 1, r) for s, r in enumerate(("0-1", "2", "3"))), rows=12) + "\n" + pipeline(2, stage(3, 1, "0-3"), rows=4),
    "zero2": DP + "zero 2\n" + pipeline(2, stage(0, 4, "0-3", "dp:4", "recompute(full)")),
}
EIGHT = {
    "dp8": DP + "stage devices(0-7) mesh(dp:8)",
    "dp2tp4": BOTH + "stage devices(0-7) mesh(dp:2, tp:4)",
    "dp4tp2": BOTH + "stage devices(0-7) mesh(dp:4, tp:2)",
    "pp2tp4": TP + pipeline(4, stage(0, 4, "0-1", "tp:4"), stage(4, 4, "2-3", "tp:4")),
    "pp4tp2": TP + pipeline(8, *(stage(2 * s, 2, s, "tp:2") for s in range(4))),
    "pp4dp2": DP + "schedule gpipe\n" + pipeline(4, *(stage(2 * s, 2, s, "dp:2") for s in range(4))),
    "pp4.zb": DP + "schedule zero_bubble\n" + pipeline(8, *(stage(2 * s, 2, s, "dp:2") for s in range(4))),
    "unequal": TP + pipeline(4, stage(0, 4, "0-2", "tp:4"), stage(4, 4, "3", "tp:4")),
    "interleaved": TP + pipeline(4, stage(0, 4, "0, 2", "tp:4"), stage(4, 4, "1, 3", "tp:4")),
    "pipelines": "\n".join(pipeline(4, *(stage(4 * p + s, 1, s) for s in range(4)), rows=8) for p in range(2)),
    "pipelines.unequal": TP + pipeline(6, stage(0, 2, "0-1", "tp:2"), stage(2, 2, "2-3", "tp:2"), rows=12) + "\n" + pipeline(2, stage(4, 4, "0-3", "tp:4"), rows=4),
    "zero1": DP + "zero 1\n" + pipeline(2, stage(0, 4, "0-1", "dp:4"), stage(4, 4, "2-3", "dp:4", "recompute(full)")),
}
SOME = {("gpt", 4, "pp2tp2"), ("llama", 4, "pp4.gpipe")}


def cluster(bench):
    """Rates of a few billion operations a second, and messages of 50 microseconds: of ranks that share two cores."""
    if os.environ.get("HETU_CLUSTER"):
        held = json.loads(pathlib.Path(os.environ["HETU_CLUSTER"]).read_text())
        held["devices"] = [{"class": next(iter(held["classes"])), "host": "h", "count": 8}]
    else:
        link = {"latency": 5e-5, "bandwidth": 5e8}
        held = {"classes": {"a": {"start": 1e-6, "memory_bandwidth": 5e9, "products": {"f32": [[1e4, 2e9], [1e6, 2e10]]}}}, "devices": [{"class": "a", "host": "h", "count": 8}], "links": {"local": link, "remote": link}}
    for each in held["classes"].values():
        each["arithmetic"] = 10000 / (NANOSECONDS * 1e-9)
    path = bench.path("real.cluster.json")
    path.write_text(json.dumps(held))
    return path


def model_of(bench, name):
    header = bench.path(f"{name}.h")
    sizes = SIZES if name == "gpt" else {**SIZES, **LLAMA}
    bench.once(header, lambda: header.write_text("".join(f"#define {key} {value}\n" for key, value in sizes.items()) + f'#include "{HERE}/Inputs/slow.h"\n'))
    return EXAMPLES / name / f"{name}.c", ("-include", str(header))


def simulated(bench, name, strategy):
    source, flags = model_of(bench, name)
    said = run([bench.build / "bin" / "hetu-simulate", "--json", f"--strategy={strategy}", f"--cluster={bench.once('cluster', lambda: cluster(bench))}", *flags, source])
    return next(model for model in json.loads(said.stdout)["models"] if model["kind"] == "train")


def took(program, ranks, wanted):
    """Seconds of a step of a run: of several runs the least, since what disturbs the machine makes it longer; more of them where it takes longer than was simulated."""
    rates = []
    while len(rates) < 2 or len(rates) < 5 and BATCH * 16 / max(rates) > 1.05 * wanted:
        said = launch(program, ranks, "--steps", STEPS, "--fixed", "--sample", 0, "--every", 1, env={"HETU_CHECK": "0"}).stdout
        rates += [float(text) for text in re.findall(r"([\d.]+) tokens/s", said)[-1:]]
    return BATCH * 16 / max(rates)


def built(bench, name, ranks, kind):
    """The strategy's file, and the program."""
    source, flags = model_of(bench, name)
    strategy = bench.path(f"{name}.{ranks}.{kind}.strategy")
    strategy.write_text("strategy s\n" + {4: FOUR, 8: EIGHT}[ranks][kind] + "\nend strategy\n")
    return strategy, bench.compiled(source, strategy, (f"--cluster={bench.once('cluster', lambda: cluster(bench))}", *flags))


def measure(bench, name, ranks, kind):
    """(simulated, real) seconds of a step, once."""
    def make():
        strategy, program = built(bench, name, ranks, kind)
        wanted = simulated(bench, name, strategy)["steps"][0]
        return wanted, took(program, ranks, wanted)
    return bench.once((name, ranks, kind), make)


# ---- bytes ----

COMMAND = 64  # bytes that a command to make a step exceeds, which is broadcast to all ranks; what these models broadcast does not


def received(bench, program, ranks, steps, out):
    """Bytes that all ranks receive in a run, but for commands, as pmpi.c counts them."""
    launch(program, ranks, "--steps", steps, "--fixed", "--sample", 0, preload=bench.build / "lib" / "pmpi.so", env={"PMPI_OUT": str(out), "PMPI_SMALL": str(COMMAND), "HETU_CHECK": "0"})
    lines = [line.split("\t") for path in out.parent.glob(out.name + ".*") for line in path.read_text().splitlines()]
    return sum(float(size) for call, _, size in lines if call != "MPI_Bcast")


def traffic(bench, name, ranks, kind):
    """The bytes of a step: those of runs of two lengths, against those of the conversions."""
    strategy, program = built(bench, name, ranks, kind)
    short, long = (received(bench, program, ranks, steps, bench.path(f"{name}.{ranks}.{kind}.{steps}.pmpi")) for steps in (2, 5))
    rows = simulated(bench, name, strategy)["conversions"]
    wanted, found = sum(row["bytes"] for row in rows), (long - short) / 3
    if abs(found - wanted) > 1e-9 * wanted:
        raise Failure(f"{found:.0f} bytes a step, simulated {wanted}")
    return f"{found:.0f} bytes"


# ---- memory ----

def arenas(bench, name, strategy):
    """By device: the bytes of the arena and the slots that the emitted image says."""
    source, flags = model_of(bench, name)
    folder = bench.path(f"{strategy.name}.emitted")
    folder.mkdir(exist_ok=True)
    run([bench.hetucc, "--emit=c", "-o", folder, f"--strategy={strategy}", f"--cluster={bench.once('cluster', lambda: cluster(bench))}", *flags, source])
    image = (folder / f"{source.stem}.image.c").read_text()

    def numbers(pattern):
        return [tuple(map(int, re.findall(r"\d+", text))) for text in re.findall(pattern, image)]
    train = r"[a-z_]*_train"
    roles = [tuple(map(int, row)) for row in re.findall(r"\{(\d+), (\d+), ", re.search(rf"(?s)ht_image_role roles_{train}\[\] = \{{(.*?)\n\}};", image).group(1))]
    slots = numbers(rf"ht_schedule schedule_{train}_\d+ = \{{\d+, (\d+),")
    role_of, schedule_of = (numbers(rf"int {word}_of_{train}\[\] = \{{([\d, ]*)\}}")[0] for word in ("role", "schedule"))
    whole = 64  # what the runtime reserves is whole lines of the cache
    return [-(-roles[r][0] // whole) * whole + -(-roles[r][1] // whole) * whole * slots[s][0] for r, s in zip(role_of, schedule_of)]


def memory(bench, name, ranks, kind):
    strategy, _ = built(bench, name, ranks, kind)
    wanted = arenas(bench, name, strategy)
    actors = simulated(bench, name, strategy)["actors"]
    found = [next(actor["memory"]["arena"] for actor in actors if device in actor["devices"]) for device in range(ranks)]
    if found != wanted:
        raise Failure(f"arenas of {wanted}, simulated {found}")
    return f"{wanted}"


def step(bench, name, ranks, kind):
    wanted, found = measure(bench, name, ranks, kind)
    if abs(wanted - found) > 0.10 * found:
        raise Failure(f"a step takes {found:.4f} s, simulated {wanted:.4f}: {wanted / found - 1:+.1%}")
    return f"{found:.4f} s, simulated {wanted / found - 1:+.1%}"


def order(bench, cases):
    """Of those that were measured, every pair whose steps differ by 15% or more."""
    times = [measure(bench, *case) for case in cases]
    pairs = wrong = 0
    for a, (sim_a, real_a) in enumerate(times):
        for sim_b, real_b in times[:a]:
            if max(real_a, real_b) >= 1.15 * min(real_a, real_b):
                pairs += 1
                wrong += (sim_a < sim_b) != (real_a < real_b)
    if wrong:
        raise Failure(f"{wrong} of {pairs} pairs in another order")
    return f"{pairs} pairs"


def tests(bench, _):
    cases = [(name, ranks, kind) for name in ("gpt", "llama") for ranks, kinds in ((4, FOUR), (8, EIGHT)) for kind in kinds if LONG or (name, ranks, kind) in SOME]
    for case in cases:
        yield "step." + ".".join(map(str, case)), functools.partial(step, bench, *case)
    for case in [case for case in cases if LONG] or [("gpt", 4, "pp2tp2")]:
        yield "traffic." + ".".join(map(str, case)), functools.partial(traffic, bench, *case)
        yield "memory." + ".".join(map(str, case)), functools.partial(memory, bench, *case)
    yield "order", functools.partial(order, bench, cases)


if __name__ == "__main__":
    harness.main("simulate.real", tests, jobs=1)
