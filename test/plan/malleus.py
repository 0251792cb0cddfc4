"""Tests kind malleus on generated clusters: checks and scores plans by the formulas of malleus.h, and compares them with the bounds that --certify prints.

A case is given by the arguments of `generate` (such as a seed, nodes, stragglers), and by the largest allowed ratio of the step's time to its bound.
"""
import os
import random

from planner import answer, near, once, run

TABLES = {
    8: ([1, 1.9, 3.66, 7.22], [2895, 2685, 2485, 2295, 2110, 1933, 1769, 1647], 600, 4700),
    4: ([1, 2, 4], [4450, 4095, 3745, 3390, 3040, 2690], 1000, 4600),
    2: ([1, 2], [4600, 4100, 3640, 3130], 1200, 5500),
}
STRAGGLERS = [2.57, 3.8, 5.42, 12.53]


def generate(seed, nodes, tp, pipelines, stragglers, layers=80, microbatches=64, jitter=0.0):
    dice = random.Random(seed)
    rates = [[round(1 + jitter * dice.random(), 2) for _ in range(8)] for _ in range(nodes)]
    for _ in range(stragglers):
        rates[dice.randrange(nodes)][dice.randrange(8)] = dice.choice(STRAGGLERS)
    slowdown, per_layer, ends, extra = TABLES[tp]
    memory = {"per_layer": per_layer, "ends": ends, "extra": extra, "bound": 81252, "gap": 4096}
    return {"rates": rates, "tp": tp, "slowdown": slowdown, "pipelines": pipelines, "layers": layers, "microbatches": microbatches, "memory": memory}


def stage_time(case, stage, index, count):
    """Units of a stage; asserts that its devices are a group, and that memory holds its layers."""
    devices, layers, tp, memory = stage["devices"], stage["layers"], case["tp"], case["memory"]
    share = tp // len(devices)
    assert share * len(devices) == tp and share & (share - 1) == 0 and layers >= 1
    assert len({d // 8 for d in devices}) == 1, "a group within a node"
    per_layer = memory["per_layer"][len(memory["per_layer"]) - count + index]
    need = (per_layer * layers + memory["ends"] * (index in (0, count - 1))) * share + memory["extra"]
    assert need <= memory["bound"] - memory["gap"] + 1e-6, "out of memory"
    return case["slowdown"][share.bit_length() - 1] * max(case["rates"][d // 8][d % 8] for d in devices) * layers


def score(case, plan):
    """The step's time; asserts that the plan is one."""
    steps = []
    for pipeline in plan["pipelines"]:
        stages, m = pipeline["stages"], pipeline["microbatches"]
        assert sum(s["layers"] for s in stages) == case["layers"] and len(stages) <= min(m, len(case["memory"]["per_layer"]))
        times = [stage_time(case, s, i, len(stages)) for i, s in enumerate(stages)]
        steps.append((m - 1) * max(times) + sum(times))
    assert len(steps) == case["pipelines"] and sum(p["microbatches"] for p in plan["pipelines"]) == case["microbatches"]
    once([d for p in plan["pipelines"] for s in p["stages"] for d in s["devices"]] + plan["idle"], 8 * len(case["rates"]))
    return max(steps)


def check(name, case, most):
    """A plan's score is what it says, and at most `most` of the bound; None: the bound takes too long here."""
    plan = answer("malleus", case)
    objective = score(case, plan)
    assert near(objective, plan["objective"]), (objective, plan["objective"])
    if most is None:
        print(f"{name}: {objective:.3f}")
        return
    bound = answer("malleus", case, "--certify")["bound"]
    print(f"{name}: {objective:.3f}, bound {bound:.3f}, ratio {objective / bound:.4f}")
    assert bound <= objective * (1 + 1e-9) and objective <= most * bound * (1 + 1e-9)


# Healthy nodes: B - P micro-batches at L / S layers a stage and a first one through all layers, (32 - 1) 20 + 80 = 700.
healthy = generate(0, 8, 8, 2, 0)
assert near(score(healthy, answer("malleus", healthy)), 700)
check("healthy", healthy, 1.001)

# One device of 12.53 in a node of eight: what branch and bound over all groupings finds is 734.4.
alone = generate(0, 8, 8, 2, 0)
alone["rates"][3][5] = 12.53
assert near(score(alone, answer("malleus", alone)), 734.4)

check("three stragglers", generate(1, 8, 8, 2, 3), 1.04)
if os.environ.get("HETU_LONG"):
    check("tp 4, three stragglers", generate(4, 6, 4, 3, 3, layers=60, microbatches=48), 1.15)
    check("seven nodes, four stragglers", generate(2, 7, 8, 2, 4), 1.06)
    check("five nodes of pairs, three pipelines", generate(3, 5, 2, 3, 2, layers=48, microbatches=48), 1.08)
check("jitter, 128 devices", generate(5, 16, 8, 4, 3, microbatches=128, jitter=0.1), None)

# Rates in other units: a plan takes so many times as long, and one is found where a group of all devices alone has room.
tight = {"rates": [[12.5, 12.5, 1, 12.5]], "tp": 4, "slowdown": [1, 1.9, 3.7], "pipelines": 1, "layers": 7, "microbatches": 9,
         "memory": {"per_layer": [120], "ends": 0, "extra": 20, "bound": 3000, "gap": 0}}
for unit in (1, 1e-6, 1e6):
    for case, least in ((alone, 734.4), (tight, 787.5)):
        scaled = {**case, "rates": [[x * unit for x in node] for node in case["rates"]]}
        assert near(answer("malleus", scaled)["objective"], least * unit), (unit, least)

# The best plans, by exhaustive search, of clusters of a few devices: one that needs a slow device for its memory, and one that leaves most devices idle.
for case, least in (({"rates": [[1.0, 1.0, 1.07, 2.57]], "tp": 4, "slowdown": [1, 2, 4], "pipelines": 1, "layers": 6, "microbatches": 3, "memory": {"per_layer": [93.3, 90.6, 89.8], "ends": 20, "extra": 0, "bound": 579.8499999999999, "gap": 10}}, 46.26),
                    ({"rates": [[12.5, 12.5, 1.0, 12.5, 1.07]], "tp": 4, "slowdown": [1, 2, 3.5], "pipelines": 2, "layers": 1, "microbatches": 9, "memory": {"per_layer": [93.1, 50.2], "ends": 0, "extra": 0, "bound": 229.825, "gap": 10}}, 17.5)):
    assert near(answer("malleus", case)["objective"], least), (case, least)

# The same plan whenever; a short limit still gives one.
jitter = generate(6, 8, 8, 2, 2, jitter=0.12)
assert run("malleus", jitter)[1] == run("malleus", jitter)[1]
quick = answer("malleus", jitter, "--limit=0.1")
assert near(score(jitter, quick), quick["objective"])
print("malleus: all held")
