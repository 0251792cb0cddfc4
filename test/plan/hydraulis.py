"""Tests kinds hydraulis and hydraulis-batch on generated lengths: checks and scores plans by the
formulas of hydraulis.h, and compares them with certified bounds and with what a fixed strategy reaches."""
import itertools
import math
import random

from planner import answer, near, once, run

# The published 32B table: tp, pp, a, b, c, tokens of a micro-batch on 64 devices.
TABLE = [(1, 4, 9.392e-7, 0.2126, 36.0, 1920), (2, 2, 3.734e-6, 0.21306, 80.7, 3968), (4, 1, 3.869e-6, 0.239, 120.7, 7808),
         (4, 2, 2.046e-6, 0.1183, 65.4, 12416), (8, 1, 2.125e-6, 0.14141, 122.9, 21888), (8, 2, 1.068e-6, 0.07106, 61.8, 25856),
         (16, 1, 1.378e-6, 0.10244, 145.7, 43520)]
SCHEMES = [dict(zip(("tp", "pp", "a", "b", "c", "tokens"), row)) for row in TABLE]
KNOWN = {(s["tp"], s["pp"]): s for s in SCHEMES}


def lengths(dice, count, longest):
    """Wikipedia's: lognormal with a tail."""
    drawn = []
    while len(drawn) < count:
        length = int(dice.lognormvariate(5.95, 1.26)) if dice.random() < 0.995 else int(11000 * dice.paretovariate(1.9))
        if 16 <= length <= longest:
            drawn.append(length)
    return drawn


def fill(dice, sample, tokens):
    """A batch of so many tokens."""
    batch = []
    while tokens > 0:
        batch.append(min(dice.choice(sample), tokens))
        tokens -= batch[-1]
    return batch


def score(batch, strategy, plan):
    """Milliseconds of a step; asserts that the plan is one of the strategy."""
    wanted = sorted((p["tp"], p["pp"]) for p in strategy for _ in range(p["count"]))
    assert sorted((p["tp"], p["pp"]) for p in plan["pipelines"]) == wanted
    once([i for p in plan["pipelines"] for m in p["microbatches"] for i in m], len(batch))
    times = []
    for p in plan["pipelines"]:
        s, v = KNOWN[p["tp"], p["pp"]], len(p["microbatches"])
        assert all(m and sum(batch[i] for i in m) <= s["tokens"] for m in p["microbatches"])
        heaviest = max((sum(s["a"] * batch[i] ** 2 + s["b"] * batch[i] for i in m) for m in p["microbatches"]), default=0)
        times.append((heaviest + s["c"]) * (p["pp"] - 1 + v) if v else 0)
    return max(times)


def step(strategies, batch):
    """The time of a batch under a set of strategies; the plan says the same, and no bound is above."""
    plan = answer("hydraulis-batch", {"schemes": SCHEMES, "strategies": strategies, "lengths": batch})
    time = score(batch, strategies[plan["strategy"]], plan)
    assert near(time, plan["objective"])
    return time


def check(seed, gpus, longest, most, gain):
    """On unseen batches, the chosen strategies take at most `most` of the bound of any, and fixed TP16 `gain` times as long."""
    dice = random.Random(seed)
    sample = lengths(dice, 4096, longest)
    case = {"gpus": gpus, "strategies": 3, "longest": longest, "schemes": SCHEMES, "lengths": sample}
    strategies = answer("hydraulis", case, "--effort=0.5")["strategies"]
    assert 1 <= len(strategies) <= 3
    assert all(sum(p["tp"] * p["pp"] * p["count"] for p in s) <= gpus for s in strategies)
    assert any(KNOWN[p["tp"], p["pp"]]["tokens"] >= longest for s in strategies for p in s)
    own = fixed = bound = 0
    for _ in range(2):
        batch = fill(dice, sample, 4096 * gpus)
        own += step(strategies, batch)
        fixed += step([[{"tp": 16, "pp": 1, "count": gpus // 16}]], batch)
        bound += answer("hydraulis", dict(case, lengths=batch), "--certify")["bound"]
    print(f"{gpus} devices, {longest} tokens: {own:.1f} ms, bound {bound:.1f}, ratio {own / bound:.4f}, {fixed / own:.2f} over fixed TP16")
    assert bound <= own <= most * bound and fixed >= gain * own


def partitions(items):
    """All partitions of a list into lists."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]]] + rest
        for i in range(len(rest)):
            yield rest[:i] + [[items[0]] + rest[i]] + rest[i + 1:]


def pipeline_time(scheme, lengths):
    """The least time of a pipeline over all partitions of its sequences into micro-batches."""
    weigh = lambda m: sum(scheme["a"] * s * s + scheme["b"] * s for s in m)
    return min(((max(map(weigh, p), default=0) + scheme["c"]) * (scheme["pp"] - 1 + len(p)) if p else 0
                for p in partitions(lengths) if all(sum(m) <= scheme["tokens"] for m in p)), default=math.inf)


def check_small(schemes, strategy, batch):
    """The bound is not above the best of all plans, which no plan is below, and a plan is found."""
    pipelines = [next(s for s in schemes if (s["tp"], s["pp"]) == (p["tp"], p["pp"])) for p in strategy for _ in range(p["count"])]
    best = min(max(pipeline_time(s, [b for b, at in zip(batch, places) if at == p]) for p, s in enumerate(pipelines))
               for places in itertools.product(range(len(pipelines)), repeat=len(batch)))
    case = {"schemes": schemes, "strategies": [strategy], "lengths": batch}
    bound, found = answer("hydraulis-batch", case, "--certify")["bound"], answer("hydraulis-batch", case)["objective"]
    assert bound <= best * (1 + 1e-9) and best * (1 - 1e-9) <= found <= 1.5 * best, (case, bound, best, found)


check(1, 64, 16384, 1.15, 1.3)
check(2, 32, 32768, 1.25, 1.3)

# The bound of a batch under given strategies is at least that of any strategy, and no plan is below it.
dice = random.Random(3)
batch = fill(dice, lengths(dice, 1000, 16384), 65536)
strategies = [[{"tp": 8, "pp": 1, "count": 1}, {"tp": 4, "pp": 1, "count": 2}]]
any_bound = answer("hydraulis", {"gpus": 16, "strategies": 1, "longest": 16384, "schemes": SCHEMES, "lengths": batch}, "--certify")["bound"]
own_bound = answer("hydraulis-batch", {"schemes": SCHEMES, "strategies": strategies, "lengths": batch}, "--certify")["bound"]
assert any_bound <= own_bound * (1 + 1e-2) and own_bound <= step(strategies, batch)

# A single sequence takes (a s^2 + b s + c) pp where that is least.
least = min((s["a"] * 6000**2 + s["b"] * 6000 + s["c"]) * s["pp"] for s in SCHEMES if s["tokens"] >= 6000 and s["tp"] <= 8)
assert near(step([[{"tp": s["tp"], "pp": s["pp"], "count": 1} for s in SCHEMES if s["tp"] <= 8]], [6000]), least)

# Few sequences on many stages, whose micro-batches cost next to nothing or nothing, and pipelines that are best left empty: against all plans.
for trial in range(40):
    schemes = [{"tp": t, "pp": dice.choice([1, 2, 4]), "a": 1e-6 * dice.random(), "b": dice.uniform(0.05, 0.3), "c": dice.choice([0, 0, 1e-9, 1, 10, 100]),
                "tokens": dice.choice([500, 1000, 4096])} for t in (1, 2)]
    schemes[dice.randrange(2)]["tokens"] = 4096
    check_small(schemes, [{"tp": s["tp"], "pp": s["pp"], "count": dice.randint(1, 2)} for s in schemes], [dice.choice([57, 100, 900, 1000, 4000]) for _ in range(dice.randint(1, 4))])
case = {"schemes": [dict(SCHEMES[0], c=0, pp=4, tokens=64), dict(SCHEMES[6], c=0)], "lengths": [30000] * 40 + [20] * 40,
        "strategies": [[{"tp": 1, "pp": 4, "count": 8}, {"tp": 16, "pp": 1, "count": 1}]]}
assert math.isfinite(answer("hydraulis-batch", case)["objective"])

# Times in other units, and one scheme beside which the other's take none: a bound is what it was.
for unit in (1e-9, 1e-6, 1e6, 1e18):
    dice = random.Random(7)
    for fixed in (1, unit):
        schemes = [{"tp": t, "pp": 1, "a": 1e-6 * unit, "b": 0.2 * unit, "c": 30 * (fixed if t == 1 else unit), "tokens": 4096} for t in (1, 2)]
        check_small(schemes, [{"tp": 1, "pp": 1, "count": 2}], [dice.choice([57, 100, 900, 1000, 4000]) for _ in range(4)])
        check_small(schemes, [{"tp": 1, "pp": 1, "count": 1}, {"tp": 2, "pp": 1, "count": 1}], [100, 200, 4000])

# The best dispatches, by exhaustive search: of the strategy that looks second, and where most micro-batches of longest-first dispatch are too many.
for case, least in (({"schemes": [{"tp": 2, "pp": 1, "a": 5e-07, "b": 0.12, "c": 0.0, "tokens": 2304}, {"tp": 1, "pp": 1, "a": 4e-06, "b": 0.1, "c": 36.0, "tokens": 1920}], "strategies": [[{"tp": 2, "pp": 1, "count": 2}], [{"tp": 1, "pp": 1, "count": 2}, {"tp": 2, "pp": 1, "count": 1}], [{"tp": 1, "pp": 1, "count": 1}, {"tp": 2, "pp": 1, "count": 2}]], "lengths": [172, 2304, 230, 2304, 63, 411, 1059, 150]}, 292.771776),
                    ({"schemes": [{"tp": 2, "pp": 3, "a": 0.0, "b": 0.016666666666666666, "c": 36.0, "tokens": 2048}, {"tp": 4, "pp": 1, "a": 2.5e-07, "b": 0.025, "c": 0.0, "tokens": 4096}, {"tp": 2, "pp": 2, "a": 1e-06, "b": 0.025, "c": 0.0, "tokens": 3840}], "strategies": [[{"tp": 2, "pp": 2, "count": 1}, {"tp": 4, "pp": 1, "count": 1}]], "lengths": [1342, 1757, 4096, 154, 319, 772, 172, 4096]}, 213.188608)):
    assert answer("hydraulis-batch", case)["objective"] <= least * (1 + 1e-6), (case, least)

# The same plan whenever.
case = {"schemes": SCHEMES, "strategies": strategies, "lengths": batch}
assert run("hydraulis-batch", case)[1] == run("hydraulis-batch", case)[1]
assert math.isfinite(answer("hydraulis-batch", case, "--limit=0.05")["objective"])
print("hydraulis: all held")
