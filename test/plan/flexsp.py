"""Tests flexsp: scores its plans of generated batches, and compares small ones with exhaustive search."""
import itertools
import random

from planning import plan, ratio, refused, same_plan

RATES = {2: 119.54, 4: 104.07, 8: 96.5, 16: 10.33, 32: 5.94, 64: 4.87}


def make(seed, gpus, sequences, median, memory=30720.0, degrees=None, longest=1.0):
    """Log-normal lengths with a heavy tail, at most the part `longest` of what the largest degree holds."""
    r = random.Random(seed)
    degrees = degrees or [d for d in (1, 2, 4, 8, 16, 32, 64) if d <= gpus]
    q = {"gpus": gpus, "degrees": degrees, "alltoall": {str(d): RATES[d] for d in degrees if d > 1}, "a1": 5.128e-6, "a2": 0.1839576,
         "b1": 629.3563, "layers": 32, "hidden": 4096, "token_mb": 4.480441895, "states_mb": 7168.0, "memory_mb": memory}
    most = int((memory - 7168.0) / 4.480441895 * max(degrees) * longest)
    tail = lambda: 8 * median * r.paretovariate(1.4)
    q["lengths"] = [min(most, max(1, int(tail() if r.random() < 0.03 else r.lognormvariate(0, 1.3) * median))) for _ in range(sequences)]
    return q


def group_time(q, degree, tokens):
    exchange = 4 * 2 * q["layers"] * q["hidden"] * 2 * sum(tokens) / 2**20 / degree / q["alltoall"][str(degree)] if degree > 1 else 0
    return sum(q["a1"] * s * s + q["a2"] * s for s in tokens) / degree + q["b1"] + exchange


def fits(q, degree, tokens):
    return sum(tokens) / degree * q["token_mb"] + q["states_mb"] <= q["memory_mb"] * (1 + 1e-9)


def score(q, p):
    """The plan's time; it keeps all rules."""
    seen, total = [], 0
    for batch in p["microbatches"]:
        assert sum(g["degree"] for g in batch["groups"]) <= q["gpus"]
        for g in batch["groups"]:
            assert g["degree"] in q["degrees"] and g["sequences"]
            assert fits(q, g["degree"], [q["lengths"][s] for s in g["sequences"]])
            seen += g["sequences"]
        total += max(group_time(q, g["degree"], [q["lengths"][s] for s in g["sequences"]]) for g in batch["groups"])
    assert sorted(seen) == list(range(len(q["lengths"])))
    return total


def partitions(items):
    """All partitions of a list into lists."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]]] + rest
        for i in range(len(rest)):
            yield rest[:i] + [[items[0]] + rest[i]] + rest[i + 1:]


def batch_times(q, groups):
    """The least time of a micro-batch of these groups over their degrees; None when they do not fit together."""
    best = None
    for degrees in itertools.product(q["degrees"], repeat=len(groups)):
        if sum(degrees) <= q["gpus"] and all(fits(q, d, g) for d, g in zip(degrees, groups)):
            time = max(group_time(q, d, g) for d, g in zip(degrees, groups))
            best = time if best is None else min(best, time)
    return best


def exhaustive(q):
    """The least time of all plans: sequences into micro-batches, and each of these into groups."""
    def least(batch):
        return min((t for t in (batch_times(q, groups) for groups in partitions(batch)) if t is not None), default=float("inf"))
    return min(sum(least(batch) for batch in batches) for batches in partitions(q["lengths"]))


for seed in range(12):
    q = make(seed, gpus=(4, 6, 8)[seed % 3], sequences=5, median=4000, memory=(30720.0, 12000.0)[seed % 2])
    best, found = exhaustive(q), score(q, plan("flexsp", q, "--limit=0.02"))
    print(f"flexsp exhaustive {seed}: {found:.3f} ms, best {best:.3f}")
    assert best * (1 - 1e-9) <= found <= best * (1 + 1e-9), (seed, found, best)
    assert plan("flexsp", q, "--certify")["bound"] <= best * (1 + 1e-9)

ratio("flexsp", "512 sequences on 64", make(1, 64, 512, 600), score, 1.15)
ratio("flexsp", "few degrees on 48", make(2, 48, 300, 1000, degrees=[2, 8, 16]), score, 1.25)
ratio("flexsp", "tight memory on 16", make(3, 16, 128, 1500, longest=0.5), score, 1.2)
ratio("flexsp", "one sequence", make(4, 8, 1, 5000), score, 1.5)
q = make(5, 24, 200, 800)
same_plan("flexsp", q)
score(q, plan("flexsp", q, "--limit=0.01"))

# What fits exactly fits, however room / token_mb is rounded: 4480 MB hold 1000 tokens of 4.48 MB a device, and no more.
q = {**make(6, 4, 1, 1000, degrees=[2]), "token_mb": 4.48, "states_mb": 100.0, "memory_mb": 4580.0, "lengths": [2000, 264]}
assert len(plan("flexsp", q)["microbatches"]) == 1
score(q, plan("flexsp", q))
refused("flexsp", q, ["lengths", 0], 2001, "lengths[0]: no group holds 2001 tokens: degree 2 holds 2000")

q = make(6, 8, 6, 1000)
refused("flexsp", q, ["gpus"], None, "gpus: it is missing")
refused("flexsp", q, ["gpu"], 8, "gpu: there is no such key; did you mean gpus?")
refused("flexsp", q, ["a2"], -0.1, "a2: -0.1 is not above 0")
refused("flexsp", q, ["alltoall", "4"], -3, "alltoall.4: -3 is not above 0")
refused("flexsp", q, ["alltoall", "4"], None, "alltoall: there is no entry for 4")
refused("flexsp", q, ["degrees", 1], 3, "degrees[1]: 3 is not a power of two")
refused("flexsp", q, ["degrees", 1], 1, "degrees[1]: degree 1 is there twice")
refused("flexsp", q, ["lengths", 2], 50000, "lengths[2]: no group holds 50000 tokens: degree 8 holds 42052")
refused("flexsp", q, ["lengths"], [], "lengths: the list is empty")
