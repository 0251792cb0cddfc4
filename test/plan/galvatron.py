"""Tests galvatron: scores plans of generated models and clusters, and compares small ones with exhaustive search."""
import itertools
import random

from planning import plan, ratio, refused, same_plan


def make(seed, classes, per_node, layers, batch):
    """A model and a cluster: classes are (GPUs, slowness, MB)."""
    r = random.Random(seed)
    powers = [2**k for k in range(1, 8)]
    width = r.uniform(0.7, 1.5)
    return {"classes": [{"name": f"c{i}", "gpus": n, "slow": slow, "memory_mb": mb} for i, (n, slow, mb) in enumerate(classes)],
            "per_node": per_node, "layers": layers, "batch": batch, "forward_ms": 5 * width, "parameter_mb": 900 * width**2,
            "hidden_mb": 16 * width, "activation_mb": {str(t): 300 * width / t + 20 for t in [1] + powers}, "recompute_mb": 16 * width,
            "ends_mb": 500 * width, "overlap": 1.1256,
            "bandwidth": {"latency_ms": 0.05, "node": {str(n): r.uniform(120, 160) for n in powers},
                          "near": {str(n): r.uniform(35, 45) for n in powers}, "far": {str(n): 8.0 + n / 2 for n in powers},
                          "alltoall": {str(n): r.uniform(200, 260) for n in powers}, "p2p": {str(p): r.uniform(7.6, 8.8) for p in range(2, 17)}}}


def share(zero, g, m):
    """The part of the model states that a device keeps."""
    e = 1 / g + 0.003
    if zero == 0:
        return 1
    keeps = 7 / 8 if m == 1 else 6 / 8
    if zero == 2:
        return keeps * e + 1 - keeps
    return e if m == 1 else 7 / 8 * e + 1 / 8


def layer(q, gpus, slow, s, m):
    """(ms, ms of synchronisation left over, MB of states, MB of a micro-batch's activations) of a layer."""
    t, samples, links = s["tp"] * s["ulysses"], q["batch"] / m / s["dp"], q["bandwidth"]
    forward, exchange, sync, g = slow * q["forward_ms"] * samples / t, 0, 0, s["dp"] * s["ulysses"]
    backward = forward * (3 if s["recompute"] else 2)
    if t > 1:
        mb = (t - 1) / t * samples * q["hidden_mb"]
        one = mb / t / links["alltoall"][str(t)] if s["ulysses"] > 1 else mb / links["node"][str(t)]
        exchange = (4 if s["ulysses"] > 1 else 6) * (1.5 if s["recompute"] else 1) * (one + links["latency_ms"])
    if g > 1:
        table = "node" if gpus <= q["per_node"] else "near" if s["tp"] == 1 else "far"
        sync = (g - 1) / g * q["parameter_mb"] / s["tp"] / links[table][str(g)]
    left = (q["overlap"] - 1) * min(sync, backward) + max(0, sync - backward)
    active = (q["recompute_mb"] / t if s["recompute"] else q["activation_mb"][str(t)]) * samples
    return forward + backward + exchange + (sync / 2 if s["zero"] == 3 else 0), left, 4 * q["parameter_mb"] / s["tp"] * share(s["zero"], g, m), active


def change(q, m, a, b):
    n = max(a["tp"] * a["ulysses"], b["tp"] * b["ulysses"])
    if a["tp"] * a["ulysses"] == b["tp"] * b["ulysses"]:
        return 0
    rows = q["batch"] / m / min(a["dp"], b["dp"])
    return 2 * ((n - 1) / n * rows * q["hidden_mb"] / q["bandwidth"]["node"][str(n)] + q["bandwidth"]["latency_ms"])


def stage(q, gpus, cls, rows, m, i, p):
    """(ms, ms left over, MB) of stage i of p with a strategy for each of its layers."""
    costs = [layer(q, gpus, cls["slow"], s, m) for s in rows]
    ms = sum(c[0] for c in costs) + sum(change(q, m, a, b) for a, b in zip(rows, rows[1:]))
    if p > 1:
        ms += 2 * q["batch"] / m / rows[0]["dp"] * q["hidden_mb"] / q["bandwidth"]["p2p"][str(p)]
    ends = 4 * q["ends_mb"] * ((i == 0) / rows[0]["tp"] + (i == p - 1) / rows[-1]["tp"])
    return ms, sum(c[1] for c in costs), ends + sum(c[2] + c[3] * min(p - i, m) for c in costs)


def total(stages, m):
    times = [s[0] for s in stages]
    return sum(times) + (m - 1) * max(times) + max(0, max(s[1] - sum(times[:i]) for i, s in enumerate(stages)))


def legal(q, gpus, s, m):
    t = s["tp"] * s["ulysses"]
    return min(s["tp"], s["ulysses"]) == 1 and t <= q["per_node"] and t * s["dp"] == gpus and q["batch"] % (m * s["dp"]) == 0


def score(q, plan):
    """The plan's time; it keeps all rules."""
    owner, m, stages, used, runs, layers = [c for c in q["classes"] for _ in range(c["gpus"])], plan["microbatches"], [], [], [], 0
    assert q["batch"] % m == 0 and m >= len(plan["stages"]) <= 16
    for i, s in enumerate(plan["stages"]):
        n, first, rows = len(s["devices"]), s["devices"][0], [r for r in s["layers"] for _ in range(r["count"])]
        assert n & (n - 1) == 0 and s["devices"] == list(range(first, first + n))
        assert first // q["per_node"] == (first + n - 1) // q["per_node"] or first % q["per_node"] == n % q["per_node"] == 0
        assert all(owner[d] is owner[first] for d in s["devices"]) and rows and all(legal(q, n, r, m) for r in rows)
        stages.append(stage(q, n, owner[first], rows, m, i, len(plan["stages"])))
        assert stages[-1][2] <= owner[first]["memory_mb"] * (1 + 1e-6)
        used += s["devices"]
        layers += len(rows)
        if runs[-1:] != [(owner[first]["name"], n)]:
            runs.append((owner[first]["name"], n))
    assert sorted(used) == list(range(len(owner))) and layers == q["layers"] and len(runs) == len(q["classes"])
    return total(stages, m)


def strategies(q, gpus, m):
    degrees = [2**k for k in range(8)]
    every = ({"tp": t, "ulysses": u, "dp": gpus // (t * u), "zero": z, "recompute": c}
             for t in degrees for u in degrees for z in (0, 2, 3) for c in (False, True) if t * u <= gpus)
    return [s for s in every if legal(q, gpus, s, m)]


def cuts(layers, stages):
    """Layers over stages, at least one each."""
    if stages == 1:
        yield (layers,)
        return
    for first in range(1, layers - stages + 2):
        for rest in cuts(layers - first, stages - 1):
            yield (first,) + rest


def exhaustive(q):
    """The least time over all plans of a cluster of one class: every strategy for every layer."""
    cls, best = q["classes"][0], float("inf")
    for p in [2**k for k in range(5) if cls["gpus"] % 2**k == 0 and 2**k <= q["layers"]]:
        for m in [m for m in range(p, q["batch"] + 1) if q["batch"] % m == 0]:
            options = strategies(q, cls["gpus"] // p, m)
            for cut in cuts(q["layers"], p):
                fitting = []
                for i, l in enumerate(cut):
                    all_rows = (stage(q, cls["gpus"] // p, cls, rows, m, i, p) for rows in itertools.product(options, repeat=l))
                    fitting.append(front(s for s in all_rows if s[2] <= cls["memory_mb"]))
                best = min([best] + [total(stages, m) for stages in itertools.product(*fitting)])
    return best


def front(stages):
    """Those of which none is better in both time and what is left over."""
    kept = []
    for s in sorted(stages):
        if not kept or s[1] < kept[-1][1]:
            kept.append(s)
    return kept


for seed in range(8):
    q = make(seed, [((2, 4)[seed % 2], 1, (9000, 11500, 14000, 60000)[seed // 2])], 4, (2, 3)[seed % 2], 4)
    best, found = exhaustive(q), None
    if best < float("inf"):
        found = ratio("galvatron", f"exhaustive {seed}, best {best:.3f}", q, score, 1.5)
        assert best * (1 - 1e-9) <= found <= best * 1.002, (seed, found, best)
        assert plan("galvatron", q, "--certify")["bound"] <= best * (1 + 1e-9)
    else:
        refused("galvatron", q, ["classes"], q["classes"], "classes: no plan fits the memory")

one = make(20, [(16, 1, 36000)], 8, 40, 64)
ratio("galvatron", "16 devices", one, score, 1.04)
ratio("galvatron", "64 devices", make(21, [(64, 1, 22000)], 8, 48, 256), score, 1.05)
ratio("galvatron", "24 devices, three nodes", make(22, [(24, 1, 30000)], 8, 36, 96), score, 1.05)
mixed = make(23, [(8, 1, 36000), (16, 2.6, 28000)], 8, 40, 96)
ratio("galvatron", "two classes", mixed, score, 1.06)
ratio("galvatron", "three classes", make(24, [(4, 1, 60000), (8, 2, 28000), (4, 3, 24000)], 4, 30, 48), score, 1.1)
same_plan("galvatron", mixed)

# The best plan, by exhaustive search, whose stages take equally long but for rounding.
equal = {"classes": [{"name": "c0", "gpus": 2, "slow": 2.3, "memory_mb": 6000}, {"name": "c1", "gpus": 2, "slow": 2.3, "memory_mb": 2100.0}], "per_node": 2, "layers": 4, "batch": 3, "forward_ms": 1, "parameter_mb": 300, "hidden_mb": 4, "activation_mb": {"1": 290, "2": 150, "4": 80, "8": 45}, "recompute_mb": 16, "ends_mb": 100, "overlap": 1, "bandwidth": {"latency_ms": 0.05, "node": {"2": 5.0, "4": 140.0, "8": 20.0}, "near": {"2": 140.0, "4": 140.0, "8": 20.0}, "far": {"2": 20.0, "4": 20.0, "8": 5.0}, "alltoall": {"2": 140.0, "4": 20.0, "8": 20.0}, "p2p": {"2": 160.0, "3": 160.0, "4": 160.0, "5": 10.0, "6": 10.0, "7": 160.0, "8": 160.0, "9": 10.0, "10": 160.0, "11": 160.0, "12": 10.0, "13": 10.0, "14": 10.0, "15": 10.0, "16": 10.0}}}
assert ratio("galvatron", "equal stages", equal, score, 1.4) <= 49.4 * (1 + 1e-9)

refused("galvatron", one, ["classes", 0, "slow"], -1, "classes[0].slow: -1 is not above 0")
refused("galvatron", one, ["classes", 0, "slow"], None, "classes[0].slow: it is missing")
refused("galvatron", one, ["classes"], [], "classes: the list is empty")
refused("galvatron", one, ["classes", 0, "gpus"], 17, "classes: the classes have no stages of 2^k devices, at most 16 in all, that cut no node")
refused("galvatron", mixed, ["batch"], 1,
        "batch: 1 is less than 2: every pipeline over the classes has at least so many stages, and no fewer micro-batches")
refused("galvatron", one, ["bandwidth", "near", "16"], None, "bandwidth.near: there is no entry for 16")
refused("galvatron", one, ["bandwidth", "p2p", "4"], None, "bandwidth.p2p: there is no entry for 4")
refused("galvatron", one, ["bandwidth", "neer"], {}, "bandwidth.neer: there is no such key; did you mean near?")
refused("galvatron", one, ["layers"], 2.5, "layers: 2.5 is not an integer")
