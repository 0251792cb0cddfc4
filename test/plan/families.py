"""Makes cases for every kind of plan from a seed, as in the papers: with their coefficients, distributions of lengths, towers and stragglers, but other numbers of devices, sequences and tasks."""
import random

# ---- lengths ----

def length(dice, kind):
    """Wikipedia's, CommonCrawl's or GitHub's: lognormal with a heavy tail."""
    if kind == "wiki":
        return dice.lognormvariate(5.95, 1.26) if dice.random() < 0.995 else 11000 * dice.paretovariate(1.9)
    mu, part, tail = {"crawl": (7.0, 0.985, 1.4), "github": (6.6, 0.975, 1.2)}[kind]
    return dice.lognormvariate(mu, 1.5) if dice.random() < part else 16384 * dice.paretovariate(tail)


def lengths(dice, kind, count, longest):
    drawn = []
    while len(drawn) < count:
        drawn += [x for x in [int(length(dice, kind))] if 16 <= x <= longest]
    return drawn


def batch(dice, kind, tokens, longest):
    drawn = []
    while tokens > 0:
        drawn.append(min(lengths(dice, kind, 1, longest)[0], tokens))
        tokens -= drawn[-1]
    return drawn


# ---- flexsp ----

MODELS = [(5.128e-6, 0.1839576, 629.3563, 4.480441895, 4096, 32, 7), (9.2852e-6, 0.3060189, 1132.5632, 4.220439453, 5120, 40, 13), (1.54262e-5, 0.8035742, 2789.3644, 3.417381836, 6656, 60, 30)]
ALLTOALL = {"2": 119.54, "4": 104.07, "8": 96.5, "16": 10.33, "32": 5.94, "64": 4.87}


def flexsp(dice):
    gpus = dice.choice([16, 32, 64, 64])
    a1, a2, b1, token, hidden, layers, billions = dice.choice(MODELS[:2] if gpus < 64 else MODELS)
    states = 16e3 * billions / gpus * 1.024
    longest = min(dice.choice([32, 64, 128, 192, 256, 384]) * 1024, int((30720 - states) / token * gpus * 0.99))
    kept = {d: rate for d, rate in ALLTOALL.items() if int(d) <= gpus}
    return {"gpus": gpus, "degrees": [1] + [int(d) for d in kept], "alltoall": kept, "a1": a1, "a2": a2, "b1": b1, "layers": layers, "hidden": hidden, "token_mb": token,
            "states_mb": states, "memory_mb": 30720, "lengths": lengths(dice, dice.choice(["wiki", "crawl", "github"]), dice.choice([128, 256, 512]), longest)}


# ---- galvatron ----

SIZES = {"7b": (32, 4.64, 772, 16, [290, 150, 80, 45], 500), "13b": (40, 7.1, 1210, 20, [360, 186, 99, 56], 625), "30b": (60, 11.8, 2028, 26, [470, 243, 129, 72], 812)}


def bandwidth(gpus):
    inside = {2: 163.671, 4: 138.581, 8: 109.45} if gpus <= 8 else {2: 7.65998, 4: 8.02132, 8: 8.76278, 16: 8.13177, 32: 8.1}
    far = {2: 8.13007, 4: 16.22, 8: 20.7724, 16: 24.0, 32: 26.0}
    return {"latency_ms": 0.05, "node": {"2": 138.156, "4": 159.119, "8": 154.203}, "near": {str(g): b for g, b in ((16, 44.682), (32, 40.0), (64, 36.0)) if g <= gpus},
            "far": {str(g): b for g, b in far.items() if g <= gpus}, "alltoall": {"2": 204.0, "4": 256.0, "8": 221.0},
            "p2p": {str(s): inside[max(k for k in inside if k <= s)] for s in range(2, gpus + 1)}}


def galvatron(dice):
    size = dice.choice(["7b", "7b", "13b", "30b"])
    layers, forward, parameter, hidden, activation, ends = SIZES[size]
    counts = dice.choice([[8], [16], [32], [64], [8, 8], [8, 16], [16, 16]] if size == "7b" else [[16], [32], [64], [16, 16], [8, 16]] if size == "13b" else [[32], [64], [32, 16]])
    speeds = dice.sample([("a100", 1, [36000, 74000]), ("v100", 2.6, [28000]), ("h20", 1.9, [74000])], len(counts))
    room = [20000, 22000, 36000, 74000] if len(counts) == 1 else None
    classes = [{"name": name, "gpus": n, "slow": slow if room is None else 1, "memory_mb": dice.choice(room or memory)} for n, (name, slow, memory) in zip(counts, speeds)]
    return {"classes": classes, "per_node": 8, "layers": layers, "batch": dice.choice([2, 4, 6]) * sum(counts), "forward_ms": forward, "parameter_mb": parameter, "hidden_mb": hidden,
            "activation_mb": {str(2**k): mb for k, mb in enumerate(activation)}, "recompute_mb": hidden, "ends_mb": ends, "overlap": 1.1256, "bandwidth": bandwidth(sum(counts))}


# ---- hydraulis ----

SCHEMES = [(1, 4, 9.39192752e-07, 0.212596087, 35.9947), (2, 2, 3.73416233e-06, 0.213060059, 80.7167), (2, 4, 1.97033746e-06, 0.106558744, 42.9449),
           (2, 6, 1.31605318e-06, 0.0718051676, 28.6163), (4, 1, 3.86950049e-06, 0.238996833, 120.6948), (4, 2, 2.04563898e-06, 0.118301177, 65.4239),
           (4, 4, 1.05779156e-06, 0.0592119769, 35.3353), (4, 6, 7.02993498e-07, 0.039850898, 24.072), (8, 1, 2.12548718e-06, 0.141411593, 122.9102),
           (8, 2, 1.06789378e-06, 0.071058246, 61.7678), (8, 3, 6.85518086e-07, 0.0482754236, 38.0697), (8, 4, 4.91076016e-07, 0.0370804063, 25.4424),
           (16, 1, 1.37779723e-06, 0.1024, 145.7)]
TOKENS = {32: [1536, 3072, 5376, 6144, 6144, 10624, 12928, 13696, 18816, 22912, 24192, 24832, 38528], 64: [1920, 3968, 6272, 7040, 7808, 12416, 14592, 15360, 21888, 25856, 27264, 27904, 43520],
          128: [2176, 4480, 6784, 7552, 8704, 13184, 15488, 16256, 23424, 27392, 28672, 29440, 46080]}


def hydraulis(dice):
    """The first call's input, and the batches of the second one."""
    gpus, longest, kind = dice.choice([32, 64, 64, 128]), dice.choice([8, 16, 24, 32]) * 1024, dice.choice(["wiki", "crawl", "github"])
    schemes = [dict(zip(("tp", "pp", "a", "b", "c", "tokens"), (*scheme, tokens))) for scheme, tokens in zip(SCHEMES, TOKENS[gpus])]
    tokens = dice.choice([4096, 4096, 4096, 1600]) * gpus
    q = {"gpus": gpus, "strategies": dice.choice([3, 4]), "longest": longest, "schemes": schemes, "lengths": lengths(dice, kind, 8192, longest)}
    return q, [batch(dice, kind, tokens, longest) for _ in range(4)]


# ---- malleus ----

TABLES = {"70b": (8, [1, 1.9, 3.66, 7.22], [2895, 2685, 2485, 2295, 2110, 1933, 1769, 1647], 600, 4700, 80), "110b": (8, [1, 1.91, 3.77, 7.35], [4240, 3930, 3630, 3338, 3068, 2830, 2597, 2438], 500, 4900, 80),
          "70b-tp4": (4, [1, 2, 4], [4450.8, 4095.4, 3745.47, 3389.63, 3038.79, 2693.7], 1000, 4600, 80), "32b-tp2": (2, [1, 2], [4608.02, 4124.24, 3641.99, 3129.95], 1200, 5500, 60)}


def malleus(dice):
    tp, slowdown, per_layer, ends, extra, layers = TABLES[(name := dice.choice(sorted(TABLES)))]
    nodes, pipelines = dice.choice({"32b-tp2": [(4, 4), (3, 3)], "70b-tp4": [(8, 4), (6, 3), (6, 2)]}.get(name, [(8, 2), (6, 2), (9, 2), (12, 3)]))
    jitter = dice.choice([0, 0, 0.1])
    rates = [[round(1 + jitter * dice.random(), 2) for _ in range(8)] for _ in range(nodes)]
    for _ in range(dice.choice([1, 2, 3, 4, 5])):
        rates[dice.randrange(nodes)][dice.randrange(8)] = dice.choice([2.34, 2.57, 3.8, 4.79, 5.42, 12.53])
    return {"rates": rates, "tp": tp, "slowdown": slowdown, "pipelines": pipelines, "layers": layers, "microbatches": dice.choice([48, 64, 64]),
            "memory": {"per_layer": per_layer, "ends": ends, "extra": extra, "bound": 81252, "gap": 4096}}


# ---- spindle ----

def curve(gpus, batch, work, fixed):
    """ms a layer: work over the devices that divide the batch, a fixed part that grows where they are few rows, links beyond an island."""
    counts = [n for n in (1, 2, 3, 4, 6, 8, 16, 24, 32, 48, 64) if n <= gpus and batch % n == 0]
    return {str(n): round(work / n + fixed + 0.06 * (n > 1) + 0.25 * (n > 8) * fixed * (n - 8) / n, 4) for n in counts}


MODALITIES = {"clip": {"vision": (32, 1.0), "text": (24, 0.3), "audio": (12, 0.4), "imu": (6, 0.1), "depth": (12, 0.5), "thermal": (12, 0.15)},
              "ofasys": {"text": (2, 0.2), "box": (2, 0.15), "image": (16, 0.4), "audio": (12, 0.6), "video": (16, 0.7)}}


def task(dice, family, gpus, t):
    """Towers and what follows them."""
    rows = dice.choice([48, 96, 192] if family != "qwen" else [32, 64, 192])
    def operator(name, layers, after, work, fixed, mb, last=""):
        return {"name": f"t{t}.{name}", "layers": layers, "after": [f"t{t}.{a}" for a in after], "ms": curve(gpus, rows, work, fixed), "weights": name + last, "state_mb": mb}
    if family == "qwen":
        towers = [["vision"], ["audio"], ["vision", "audio"]][t % 3]
        sizes = {"vision": (48, 16), "audio": (32, 8)}
        return [operator(m, sizes[m][0], [], sizes[m][1] * dice.uniform(0.8, 1.2), 0.5, 80) for m in towers] + [operator("llm", 32, towers, dice.uniform(30, 48), 0.5, 700)]
    kinds = MODALITIES[family]
    towers = dice.sample(sorted(kinds), 2 if family == "clip" else dice.choice([1, 1, 2]))
    scale = dice.uniform(2, 50) if family == "clip" else dice.uniform(4, 14)
    made = [operator(m, kinds[m][0], [], scale * kinds[m][1], dice.uniform(0.4, 1.2), 30 if family == "clip" else 25) for m in towers]
    if family == "clip":
        return made + [operator("loss", 1, towers, dice.uniform(1, 6), dice.uniform(0.5, 1.2), 2)]
    work = dice.uniform(9, 14)
    return made + [operator("encoder", 12, towers, work, dice.uniform(0.4, 1.2), 40), operator("decoder", 12, ["encoder"], work * dice.uniform(1, 1.2), dice.uniform(0.4, 1.2), 50)]


def spindle(dice):
    family, gpus = dice.choice(["clip", "clip", "ofasys", "qwen"]), dice.choice([8, 16, 32, 64])
    gpus = max(gpus, 16) if family == "qwen" else gpus
    tasks = 3 if family == "qwen" else dice.choice([3, 4, 6, 7, 8, 10])
    return {"gpus": gpus, "island": 8, "memory_mb": 60000, "operators": [o for t in range(tasks) for o in task(dice, family, gpus, t)]}


FAMILIES = {"flexsp": flexsp, "galvatron": galvatron, "hydraulis": hydraulis, "malleus": malleus, "spindle": spindle}


def case(kind, seed):
    """(input, batches) of a kind; batches are hydraulis's alone."""
    made = FAMILIES[kind](random.Random(f"{kind} {seed}"))
    return made if kind == "hydraulis" else (made, [])
