"""Inputs that hetu-plan refuses: one line with file, key and reason, exit status 1, nothing on standard output."""
import copy

from planner import run

MALLEUS = {"rates": [[1, 1], [1, 2.5]], "tp": 2, "slowdown": [1, 1.9], "pipelines": 1, "layers": 8, "microbatches": 8,
           "memory": {"per_layer": [10, 10], "ends": 1, "extra": 1, "bound": 1000, "gap": 0}}
SCHEMES = [{"tp": 1, "pp": 1, "a": 1e-6, "b": 0.2, "c": 30, "tokens": 4096}, {"tp": 4, "pp": 1, "a": 1e-6, "b": 0.1, "c": 30, "tokens": 32768}]
HYDRAULIS = {"gpus": 4, "strategies": 2, "longest": 4096, "schemes": SCHEMES, "lengths": [100, 200]}
BATCH = {"schemes": SCHEMES, "strategies": [[{"tp": 1, "pp": 1, "count": 2}]], "lengths": [100, 200]}

# Kind, input, the key's path, what is put there (None: taken away), the line behind "input.json: ".
CASES = [
    ("malleus", MALLEUS, ("rates", 1, 1), -2.5, "rates[1][1]: -2.5 is not above 0"),
    ("malleus", MALLEUS, ("rates", 1, 1), 1e308, "rates[1][1]: 1e308 is more than 1e+30"),
    ("malleus", MALLEUS, ("slowdown", 1), 1e200, "slowdown[1]: 1e200 is more than 1e+30"),
    ("malleus", MALLEUS, ("memory", "per_layer", 0), 1e-300, "memory.per_layer[0]: 1e-300 is less than 1e-30"),
    ("hydraulis-batch", BATCH, ("schemes", 0, "a"), 1e308, "schemes[0].a: 1e308 is more than 1e+30"),
    ("malleus", MALLEUS, ("rates", 1), [1], "rates[1]: the node has 1 devices, and others have 2"),
    ("malleus", MALLEUS, ("rates",), [], "rates: the list is empty"),
    ("malleus", MALLEUS, ("tp",), 3, "tp: 3 is no power of two"),
    ("malleus", MALLEUS, ("tp",), 4, "tp: 4 devices are more than a node has, 2"),
    ("malleus", MALLEUS, ("slowdown",), [1], "slowdown: the list has 1 entries; it needs one for each power of two from 2 down to 1"),
    ("malleus", MALLEUS, ("pipelines",), 5, "pipelines: 5 is not in 1 .. 4"),
    ("malleus", MALLEUS, ("layers",), 2.5, "layers: 2.5 is not an integer"),
    ("malleus", MALLEUS, ("memory", "bound"), None, "memory.bound: it is missing"),
    ("malleus", MALLEUS, ("memory", "gaps"), 3, "memory.gaps: there is no such key; did you mean gap?"),
    ("malleus", MALLEUS, ("memory", "ga\np"), 3, "memory.ga p: there is no such key; did you mean gap?"),
    ("malleus", MALLEUS, ("memory", "bound"), 12, "memory: no plan was found whose stages have room for 8 layers in each of 1 pipelines"),
    ("hydraulis", HYDRAULIS, ("longest",), 65536, "longest: 65536 tokens; the schemes that 4 devices have room for hold at most 32768"),
    ("hydraulis", HYDRAULIS, ("lengths", 1), 5000, "lengths[1]: 5000 tokens are more than the longest, 4096"),
    ("hydraulis", HYDRAULIS, ("schemes", 0, "b"), 0, "schemes[0].b: 0 is not above 0"),
    ("hydraulis", HYDRAULIS, ("schemes", 1, "tp"), 1, "schemes[1]: there is a scheme with tp 1 and pp 1 before it"),
    ("hydraulis", HYDRAULIS, ("batch",), 1, "batch: there is no such key"),
    ("hydraulis-batch", BATCH, ("lengths", 0), 5000, "lengths[0]: a sequence of 5000 tokens; the pipelines hold at most 4096"),
    ("hydraulis-batch", BATCH, ("lengths", 0), 0, "lengths[0]: 0 is not in 1 .. 268435456"),
    ("hydraulis-batch", BATCH, ("strategies", 0, 0, "pp"), 2, "strategies[0][0]: there is no scheme with tp 1 and pp 2"),
    ("hydraulis-batch", BATCH, ("strategies",), None, "strategies: it is missing"),
]


def changed(case, path, value):
    case = copy.deepcopy(case)
    at = case
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return case


for kind, case, path, value, line in CASES:
    for options in ([], ["--certify"]):
        if options and line.startswith("memory: no plan"):
            continue
        status, out, errors, _ = run(kind, changed(case, path, value), *options)
        assert (status, out, errors) == (1, "", f"hetu-plan: error: input.json: {line}\n"), (status, out, errors, line)
for kind, case in (("malleus", MALLEUS), ("hydraulis-batch", BATCH)):
    status, out, errors, _ = run(kind, case)
    assert status == 0 and out and not errors, (kind, errors)
print("mistakes: all refused")
