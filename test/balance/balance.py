#!/usr/bin/env python3
"""Tests ht_balance on 8 ranks, one of which becomes slow and heals, or flickers. The work is an operator that sleeps (strained.c), so that ranks do not compete for cores.

The slow rank is found within 3 steps, and a strategy for it is in force within 10. Until then no step takes longer than a slow one; then steps take at most 1.15 times the harmonic bound: all work divided
by the sum of the ranks' speeds. Losses are those of the undisturbed run within 1e-4. A rank that flickers causes at most two switches in 100 steps. HETU_LONG=1 runs 100 steps of several strategies.
"""
import functools
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure

SOURCE, RANKS, LAYERS, ROWS, HIDDEN = HERE / "strained.c", 8, 8, 64, 16


def stages(first, counts, wide=1, mesh=""):
    lines, layer = [], 0
    for s, count in enumerate(counts):
        devices = f"{first + wide * s}" + (f"-{first + wide * s + wide - 1}" if wide > 1 else "")
        lines.append(f"stage devices({devices}){f' mesh({mesh})' if mesh else ''} layers({layer}-{layer + count - 1})")
        layer += count
    return "\n".join(lines)


STRATEGIES = {
    "data": "split batch:dp\nstage devices(0-7) mesh(dp:8)",
    "pipelines": "\n".join(f"pipeline microbatches(16) rows(2)\n{stages(4 * p, [2] * 4)}" for p in range(2)),
    "tensor": "split hidden:tp\n" + "\n".join(f"pipeline microbatches(16) rows(2)\n{stages(4 * p, [4] * 2, 2, 'tp:2')}" for p in range(2)),
    "mixed": "split batch:dp hidden:tp\nzero 1\nstage devices(0-7) mesh(dp:4, tp:2)",
    "alone": "\n".join(f"pipeline microbatches(4) rows(2)\nstage devices({d})" for d in range(8)),
    "bubble": "split batch:dp\nschedule zero_bubble\npipeline microbatches(16) rows(4)\n" + stages(0, [2] * 4, 2, "dp:2"),
}


def build(bench, name, more=()):
    def make():
        strategy, out = bench.path(f"{name}.strategy"), bench.path(f"strained.{name}{''.join(more)}")
        strategy.write_text(f"strategy {name}\n{STRATEGIES[name]}\nend strategy\n")
        harness.run([bench.hetucc, f"--strategy={strategy}", "-O1", *more, *harness.WARNINGS, SOURCE, "-o", out, "-lm"], timeout=300)
        return out
    return bench.once(("strained", name, *more), make)


def trained(program, steps, nap, strain="", ranks=RANKS, more=(), **env):
    """(seconds of each step, losses, what was said)."""
    p = harness.launch(program, ranks, steps, *more, env={"HETU_CHECK": "0", "NAP": str(nap), "STRAIN": strain, **env}, timeout=500)
    found = re.findall(r"^step \d+ seconds ([\d.]+) loss (\S+)$", p.stdout, re.M)
    if len(found) != steps:
        raise Failure(f"{len(found)} of {steps} steps\n{p.stdout[-1000:]}{p.stderr[-2000:]}")
    return [float(s) for s, _ in found], [float(l) for _, l in found], p.stderr


def nap_for(milliseconds):
    """Nanoseconds an element with which healthy ranks that share all work equally take so long for a step."""
    return int(milliseconds * 1e6 * RANKS / (3 * ROWS * HIDDEN * LAYERS))


def events(said):
    """[(step, kind, text)] of what ht_balance said."""
    kinds = (("found", "computes"), ("switch", "from here on"), ("stays", " stays"), ("making", "being made"))
    return [(int(step), next((k for k, word in kinds if word in text), "other"), text) for step, text in re.findall(r"^hetu: balance: step (\d+): (.*)$", said, re.M)]


def undisturbed(bench, name, steps):
    return bench.once(("undisturbed", name, steps), lambda: trained(build(bench, name), steps, 0, HETU_BALANCE="0")[1])


def compare(found, wanted):
    worst = max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(found, wanted))
    if not worst <= 1e-4:
        raise Failure(f"losses are off by {worst:.2g}")
    return worst


def check_turn(said, seen, step, what):
    """The switch that follows what happened at a step: found within 3 steps, in force within 10."""
    found = next((s for s, kind, text in seen if kind == "found" and s >= step), None)
    switch = next((s for s, kind, _ in seen if kind == "switch" and s >= step), None)
    if found is None or switch is None or found > step + 2 or switch > step + 10:
        raise Failure(f"{what} at step {step}: found at {found}, in force at {switch}\n{said[-3000:]}")
    return found, switch


def slow(bench, name, steps, first, healed, milliseconds, rank=5, factor=4, most=1.15):
    """A rank becomes `factor` times as slow at a step, and heals at another."""
    took, losses, said = trained(build(bench, name), steps, nap_for(milliseconds), f"{rank}:{factor}:{first}-{healed}")
    seen, rates = events(said), [factor if r == rank else 1 for r in range(RANKS)]
    worst = compare(losses, undisturbed(bench, name, steps))
    begin, away = check_turn(said, seen, first, "slow")
    end, back = check_turn(said, seen, healed, "healed")
    if f"rank {rank} computes" not in next(text for s, kind, text in seen if kind == "found"):
        raise Failure(f"another rank was found\n{said[-3000:]}")
    strained, healthy = statistics.median(took[first:begin + 1]), statistics.median(took[2:first])
    steady, limit, whole = statistics.median(took[away + 1:healed]), healthy * RANKS / sum(1 / x for x in rates), statistics.median(took[back + 1:])
    beside = took[begin + 1:away] or [0]
    waits = max(statistics.median(beside), max(beside) / 2)  # another process may hold up a step
    note = (f"slow {strained / healthy:.2f}, found {begin}, in force {away}; steady {steady / limit:.3f} of the bound (healthy {healthy * 1000 / milliseconds:.3f} of all work over all ranks, "
            f"again {whole / healthy:.3f}), loss {worst:.1g}, {max(took[away], took[back]):.2f} s with a switch")
    if steady > most * limit or whole > most * healthy or waits > 1.3 * strained:
        raise Failure(f"{note}; steps beside the planner took {waits / strained:.2f} of a slow one\n{said[-3000:]}")
    return note


def flicker(bench, name, steps, period, factor, milliseconds):
    """A rank is slow in every other stretch of so many steps: at most two switches in 100 steps."""
    strain = " ".join(f"3:{factor}:{s}-{s + period}" for s in range(10, steps, 2 * period))
    took, losses, said = trained(build(bench, name), steps, nap_for(milliseconds), strain)
    switches = [s for s, kind, _ in events(said) if kind == "switch"]
    worst = compare(losses, undisturbed(bench, name, steps))
    if any(sum(first <= s < first + 100 for s in switches) > 2 for first in switches):
        raise Failure(f"switches at steps {switches}\n{said[-3000:]}")
    return f"switches at {switches}, loss {worst:.1g}"


def uncalled(bench):
    """A program that does not call ht_balance is balanced under HETU_BALANCE=1, and only then."""
    program, strain = build(bench, "data", ["-DUNCALLED"]), "2:4:6-30"
    took, losses, said = trained(program, 24, nap_for(200), strain, HETU_BALANCE="1")
    worst = compare(losses, undisturbed(bench, "data", 24))
    if not took[22] < 0.6 * took[7] or not check_turn(said, events(said), 6, "slow"):
        raise Failure(f"a step takes {took[22]:.3f} s of {took[7]:.3f}\n{said[-2000:]}")
    if "balance" in trained(program, 12, nap_for(100), strain)[2]:
        raise Failure("it is balanced without HETU_BALANCE=1")
    return f"loss {worst:.1g}"


def quiet(bench):
    """Nothing is said, rows that were fed once stay, and plain C trains the same."""
    program, plain = build(bench, "data"), bench.path("plain")
    library = bench.build / "lib"
    harness.run(["cc", "-std=gnu17", "-O1", *harness.WARNINGS, f"-I{harness.ROOT}/include", SOURCE, "-o", plain, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    took, losses, said = trained(program, 24, nap_for(300), "2:4:6-30", more=["once"], HETU_BALANCE="quiet")
    one = trained(plain, 24, 0, ranks=0, more=["once"])[1]
    worst = compare(losses, one)
    if "balance" in said or not took[22] < 0.6 * took[7]:
        raise Failure(f"a step takes {took[22]:.3f} s of {took[7]:.3f}\n{said[-2000:]}")
    return f"loss {worst:.1g}"


MISTAKES = {
    "null": "ht_balance was called with NULL for the program",
    "infer": "ht_balance is for a program of ht_train; those of ht_infer follow the one that trains",
    "change": "ht_balance was called with .change = -0.1, .steps = 4, .horizon = 10; none of them may be below 0, and 0 is the usual one",
    "steps": "ht_balance was called with .change = 0.2, .steps = -1, .horizon = 10; none of them may be below 0, and 0 is the usual one",
    "horizon": "ht_balance was called with .change = 0.2, .steps = 4, .horizon = -5; none of them may be below 0, and 0 is the usual one",
    "second": "ht_balance was called for a second program of the session; one is balanced",
}


def mistake(bench, kind, text, ranks, **env):
    source, out, library = HERE / "wrong.c", bench.path(f"wrong.{ranks}"), bench.build / "lib"
    plain = ["cc", "-std=gnu17", f"-I{harness.ROOT}/include", f"-L{library}", f"-Wl,-rpath,{library}"]
    bench.once(("wrong", ranks), lambda: harness.run([*(plain if not ranks else [bench.hetucc]), "-O1", *harness.WARNINGS, source, "-o", out, "-lhetu", "-lm"]))
    p = harness.launch(out, ranks, kind, check=False, env=env)
    if bool(p.returncode) != bool(text) or (text or "") not in p.stderr or ("done" in p.stdout) != (not text):
        raise Failure(f"exit {p.returncode}\n{p.stdout}{p.stderr[-1000:]}")


def replaced(bench):
    """HETU_BALANCE=1 balances the first program that trains, until ht_balance is called for another one. What cannot be balanced is told to whom asked for it."""
    mistake(bench, "later", None, 2, HETU_BALANCE="1")
    out = bench.path("wrong.standard")
    harness.run(["sh", "-c", 'exec "$0" -x c - -o "$1" <"$2"', bench.hetucc, out, HERE / "wrong.c"])
    for kind, who in ("fine", "ht_balance"), ("later", "HETU_BALANCE=1"):
        said = harness.launch(out, 2, kind, env={"HETU_BALANCE": "1"}).stderr
        if not re.match(f"hetu: {who} leaves the program as it is: ", said):
            raise Failure(said)


def tests(bench, _):
    case = functools.partial
    yield "slow.data.short", case(slow, bench, "data", 30, 6, 22, 200)
    yield "uncalled", case(uncalled, bench)
    yield "replaced", case(replaced, bench)
    yield "quiet", case(quiet, bench), True
    for ranks in 2, 0:
        for kind, text in {**MISTAKES, "fine": None}.items():
            if ranks or kind != "second":
                yield f"mistake.{kind}.{ranks}", case(mistake, bench, kind, text, ranks), ranks or kind == "fine"
    for name in STRATEGIES:
        yield f"slow.{name}", case(slow, bench, name, 80, 20, 60, 300), True
    yield "slow.first", case(slow, bench, "data", 80, 20, 60, 300, 0), True
    yield "slow.twice", case(slow, bench, "data", 80, 20, 60, 300, 7, 2), True
    for factor, period in (1.4, 10), (1.35, 3), (2, 6), (1.5, 25):
        yield f"flicker.{factor}.{period}", case(flicker, bench, "data", 110, period, factor, 150), True


if __name__ == "__main__":
    harness.main("balance", tests, jobs=1)
