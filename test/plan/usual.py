#!/usr/bin/env python3
"""Compares hetucc --plan, in the simulator, with common strategies: data parallelism without and with ZeRO, tensor parallelism within hosts, pipelines.

No plan is slower than any of these strategies on any cluster, and the printed plans are of different kinds:  usual.py SIMULATE FOLDER HETUCC...
"""
import itertools
import json
import os
import re
import subprocess
import sys

SIMULATE, FOLDER, *HETUCC = sys.argv[1:]
LONG = os.environ.get("HETU_LONG")

# Speeds of a device (products by work, FLOP/s; bytes a second), and of links (latency, bandwidth).
DEVICES = {"small": ([[1e3, 1e9], [1e9, 1e11]], 1e10), "large": ([[1e5, 2e11], [1e9, 6e13]], 2e12)}
LINKS = {"slow": ((1e-6, 1e9), (1e-5, 1e8)), "fast": ((2e-6, 3e11), (5e-6, 2.5e10)), "latent": ((1e-4, 1e10), (1e-3, 1e10))}


def cluster(name, hosts, each, device, links):
    products, memory = DEVICES[device]
    local, remote = ({"latency": l, "bandwidth": b} for l, b in LINKS[links])
    rates = {"start": 2e-6, "arithmetic": products[0][1], "memory_bandwidth": memory, "products": {"f32": products}}
    with open(name, "w", encoding="utf-8") as file:
        json.dump({"classes": {"a": rates}, "devices": [{"class": "a", "host": f"h{h}", "count": each} for h in range(hosts)],
                   "links": {"local": local, "remote": remote}}, file)


def stages(layers, count, size, mesh):
    """`layers` consecutive ones over so many stages of `size` devices; no stage has none."""
    ends = [layers * (s + 1) // count for s in range(count)]
    for s, (first, end) in enumerate(zip([0, *ends], ends)):
        devices = f"{s * size}-{(s + 1) * size - 1}" if size > 1 else s * size
        part = f"layers({first}-{end - 1})" if end - first > 1 else f"layers({first})"
        yield f"stage devices({devices}){f' mesh({mesh})' if mesh else ''} {part if count > 1 else ''}"


def usual(hosts, each, rows, layers, batch, tensor):
    """Strategies by their names: batch is the batch's dimension, tensor the rules that cut tensors, rows those of a batch."""
    devices = hosts * each
    def strategy(count, data, width, micro, zero=0):
        mesh = ", ".join([f"dp:{data}"] * (data > 1) + [f"tp:{width}"] * (width > 1))
        rules = " ".join([f"{batch}:dp"] * (data > 1) + [tensor] * (width > 1))
        lines = [f"strategy s\n{f'split {rules}' if rules else ''}\nzero {zero}\npipeline microbatches({micro}) rows({rows // micro})"]
        return "\n".join(lines + list(stages(layers, count, data * width, mesh))) + "\nend strategy\n"
    if rows >= devices:
        for zero in range(4):
            yield f"dp, zero {zero}", strategy(1, devices, 1, 1, zero)
        yield "dp of a host", strategy(1, each, 1, 1)
    yield "one device", strategy(1, 1, 1, 1)
    if tensor and rows >= hosts:
        yield "tp in hosts, dp", strategy(1, hosts, each, 1)
        yield "tp in hosts, dp, zero 1", strategy(1, hosts, each, 1, 1)
    for count in sorted({hosts, devices} & set(range(2, layers + 1))):
        for micro in sorted({m for m in (count, 2 * count, rows) if rows % m == 0}):
            if rows // micro >= devices // count:
                yield f"{count} stages, dp, {micro} micro-batches", strategy(count, devices // count, 1, micro)
            if tensor and count == hosts and each > 1:
                yield f"{count} stages, tp, {micro} micro-batches", strategy(count, 1, each, micro)


def simulated(text, model, held):
    """Seconds of a step; None: hetucc does not take the strategy."""
    with open("usual.strategy", "w", encoding="utf-8") as file:
        file.write(text)
    said = subprocess.run([SIMULATE, "--json", "--strategy=usual.strategy", f"--cluster={held}", model], capture_output=True, text=True, check=False)
    return json.loads(said.stdout)["models"][0]["steps"][0] if said.returncode == 0 else None


def kind(line):
    """What a printed plan is beside ZeRO, recomputing and the layers of its stages."""
    text = line.split(": ", 1)[1].split("; tp cuts")[0]
    return re.sub(r"; zero \d| \d+ layers?| selective| full| by \d+(:\d+)*", "", text)


def check(model, shape, hosts, each, device, links):
    held = "usual.json"
    cluster(held, hosts, each, device, links)
    said = subprocess.run([*HETUCC, "--plan", f"--cluster={held}", f"{FOLDER}/{model}", "-o", "plan.strategy"], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [line for line in said.splitlines() if re.match(r"\d+\. ", line)]
    step = float(re.match(r"1\. (\S+) s", lines[0]).group(1))
    times = {name: simulated(text, f"{FOLDER}/{model}", held) for name, text in usual(hosts, each, *shape)}
    times = {name: time for name, time in times.items() if time}
    best = min(times, key=times.get)
    print(f"{model} on {hosts} x {each} {device}, {links} links: {step:.6g} s; {best}: {times[best]:.6g} s", flush=True)
    kinds = [kind(line) for line in lines]
    assert len(times) > 3 and step <= times[best] * (1 + 1e-5), (times, said)
    assert len(set(kinds)) == len(kinds), said
    if len(lines) > 2:
        folded.append("   with zero " in said)


# Rows, layers, the batch's dimension, and rules for tensors.
MODELS = {"vit": (12, 4, "batch", "heads:tp ffn:tp"), "resnet": (12, 1, "batch", ""), "lstm": (12, 2, "batch", "hidden:tp"), "dlrm": (12, 2, "batch", "ffn:tp")}
FEW = [("vit", 1, 4, "small", "fast"), ("vit", 1, 2, "large", "slow"), ("lstm", 1, 2, "small", "latent")]
ALL = itertools.product(MODELS, (1, 2), (2, 4, 6), DEVICES, LINKS)

folded = []
for m, *where in ALL if LONG else FEW:
    check(f"users/models/{m}.c", MODELS[m], *where)
assert any(folded)
print("usual: all held")
