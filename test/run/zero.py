#!/usr/bin/env python3
"""Tests ZeRO 2 and 3: training against the one-device program, bytes received, and bytes that devices hold.

AdamW: every loss within 1e-6. SGD: parameters as in train.py. The bytes received in a step are those of the MPI calls (traffic.py),
the bytes of parameters those of HETU_DUMP, the bytes of states and gradients those of the cost report; each equals a closed form.
"""
import functools
import json
import math

import harness
import train
from harness import EXAMPLES, Failure, launch, run
from traffic import EMBED, FLAGS, GPT, LAYERS, N, SEQ, VOCAB, counted, parameters

# Meshes of 4 devices, the dimensions that their axes cut, micro-batches, and the axes that `zero` names.
MESHES = {
    "data": ("dp:4", "batch:dp", 3, ""),
    "two": ("dp:2, ep:2", "batch:dp*ep", 2, " over ep"),
    "tensor": ("dp:2, tp:2", "batch:dp heads:tp ffn:tp vocab:tp hidden:tp seq:tp", 2, ""),
    "uneven": ("dp:4 by 3:3:1:1", "batch:dp", 1, ""),
}
ODD = {"gpt": ["-DEMBED=60", "-DHEADS=5", "-DVOCAB=257", "-DBATCH=12", "-DLAYERS=2", "-DSEQ=19", "-DDROPOUT=0.1f"],
       "llama": ["-DEMBED=60", "-DHEADS=6", "-DKV_HEADS=3", "-DVOCAB=257", "-DBATCH=12", "-DLAYERS=2", "-DFFN=51", "-DSEQ=19"]}
# How a parameter of zero.c lies: in several boxes, on subgroups of unequal sizes.
SHARDS = {"data": (), "two": ("-DSGD", "-DSHARD=dup([0,2]{0:2} | [1]{})"), "tensor": ("-DSHARD=dup([0,2,1]{0:3} | [3]{})",), "uneven": ("-DDTYPE=HT_BF16",)}
CORNERS = harness.ROOT / "test" / "run" / "zero.c"


def strategy(bench, level, mesh, microbatches=None):
    """A strategy file."""
    def make():
        axes, splits, count, over = MESHES[mesh]
        path = bench.path(f"{mesh}{level}.{microbatches}.strategy")
        path.write_text(f"split {splits}\nzero {level}{over}\npipeline microbatches({microbatches or count})\n  stage devices(0-3) mesh({axes})\n")
        return path
    return bench.once(("strategy", level, mesh, microbatches), make)


def check_training(bench, example, level, mesh, sgd):
    flags = ODD[example]
    source, name = EXAMPLES / example / f"{example}.c", f"{example}.{mesh}{level}.{sgd}"
    losses, wanted, initial = train.oracle(bench, source, flags, sgd)
    program = bench.compiled(source, strategy(bench, level, mesh), tuple(flags + train.optimizer_flags(sgd)))
    found, after = train.trained(bench, name, program, 4, sgd)
    error = harness.compare_parameters(after, wanted, initial, 1e-4) if sgd else 0
    return f"loss {harness.compare_losses(found, losses, 1e-5 if sgd else 1e-6):.1g}, parameters {error:.1g}"


def check_half(bench, level):
    """bf16: parameters and states in f32, as in the one-device program."""
    source, flags = GPT, ODD["gpt"]
    wanted = train.oracle(bench, source, flags, False)[0]
    program = bench.compiled(source, strategy(bench, level, "tensor"), (*flags, "-DDTYPE=HT_BF16"))
    return f"loss {harness.compare_losses(train.trained(bench, f'half{level}', program, 4, False)[0], wanted, 1e-2):.1g}"


def numbers(text):
    return [float(word) for word in text.split() if "." in word]


def check_corners(bench, level, mesh, flags):
    wanted = bench.once(("corners", flags), lambda: numbers(run([bench.plain(CORNERS, flags)]).stdout))
    found = numbers(launch(bench.compiled(CORNERS, strategy(bench, level, mesh), flags), 4).stdout)
    tolerance = 2e-2 if "-DDTYPE=HT_BF16" in flags else 2e-6
    if len(found) != len(wanted) or not all(math.isclose(f, w, rel_tol=tolerance, abs_tol=tolerance) for f, w in zip(found, wanted)):
        raise Failure(f"{found}\ninstead of\n{wanted}")
    return f"{len(found)} numbers"


# ---- bytes ----

def zero_bytes(level, microbatches):
    """Bytes that all ranks together receive in a step of gpt under `data`."""
    weights, places, table = parameters(), SEQ * EMBED, VOCAB * EMBED
    products, gains = 12 * EMBED * EMBED * LAYERS, (2 * LAYERS + 1) * EMBED
    reduced = microbatches * weights  # a reduce-scatter of each gradient in each micro-batch
    if level == 2:
        return 4 * (N - 1) * (reduced + weights)  # and an all-gather of the new weights
    forward = weights - places + table  # the tied table twice, at both ends of the model; the places before the loop
    backward = products + gains + table  # what gradients of activations need
    return 4 * (N - 1) * (reduced + microbatches * (forward + backward) + places)


def check_bytes(bench, level, microbatches):
    flags = (*(flag for flag in FLAGS if not flag.startswith("-DBATCH")), "-DBATCH=12")
    program = bench.compiled(GPT, strategy(bench, level, "data", microbatches), flags)
    label = f"bytes{level}.{microbatches}"
    short, long = counted(bench, program, 2, label), counted(bench, program, 5, label)
    total, wanted = sum(long[call] - short.get(call, 0) for call in long) / 3, zero_bytes(level, microbatches)
    if total != wanted:
        raise Failure(f"{total:.0f} bytes a step, not {wanted}")
    return f"{total:.0f} bytes"


# ---- what devices hold ----

def piece(shape, count, index):
    """Elements of piece `index` of `count` of the first dimension that divides, else the longest."""
    dim = next((d for d, n in enumerate(shape) if n % count == 0), max(range(len(shape)), key=lambda d: (shape[d], -d)))
    length = shape[dim] * (index + 1) // count - shape[dim] * index // count
    return length * math.prod(shape) // shape[dim] if shape else 1


def dumped(folder, rank):
    """{parameter: (shape, elements held)} of the first step."""
    found = {}
    for path in (folder / "step0" / str(rank)).glob("*.boxes"):
        if "%" in path.stem:  # a state
            continue
        lines = [line.split() for line in path.read_text().splitlines()]
        boxes = [[bounds.split(":") for bounds in line] for line in lines[1:]]
        volume = sum(math.prod(int(hi) - int(lo) for lo, hi in box) for box in boxes)
        found[path.stem] = ([int(n) for n in lines[0]], volume)
    return found


def check_held(bench, level):
    folder = bench.path(f"held{level}")
    program = bench.compiled(GPT, strategy(bench, level, "data"), tuple(ODD["gpt"]))
    launch(program, 4, "--steps", 1, "--sample", 0, env={"HETU_DUMP": str(folder)})
    total = [0] * N
    for rank in range(N):
        for name, (shape, held) in dumped(folder, rank).items():
            wanted = piece(shape, N, rank) if level == 3 else math.prod(shape)
            total[rank] += 4 * piece(shape, N, rank)
            if held != wanted:
                raise Failure(f"rank {rank} holds {held} elements of {name}, not {wanted}")
    report = json.loads(run([bench.hetucc, f"--strategy={strategy(bench, level, 'data')}", "--emit=cost-json", *ODD["gpt"], GPT]).stdout)
    roles = {d: role["memory"] for role in report["models"][0]["roles"] for d in role["devices"]}
    largest = 4 * 4 * 60 * 60  # an unreduced gradient: of a weight of the widest product
    for rank, memory in roles.items():
        if memory["states"] != 2 * total[rank] or not total[rank] <= memory["gradients"] <= total[rank] + largest:
            raise Failure(f"rank {rank}: {memory['states']} bytes of states, {memory['gradients']} of gradients; its part of the weights has {total[rank]}")
    return f"{total[0]} bytes of each of parameters, gradients and states"


def tests(bench, _):
    for i, mesh in enumerate(MESHES):
        yield f"corners.{mesh}1", functools.partial(check_corners, bench, 1, mesh, SHARDS[mesh]), i % 2 > 0
    for level in (2, 3):
        for i, mesh in enumerate(MESHES):
            yield f"gpt.{mesh}{level}.adamw", functools.partial(check_training, bench, "gpt", level, mesh, False), (i + level) % 2 > 0
        for mesh in ("data", "tensor"):
            rare = (level == 2) == (mesh == "data")
            yield f"gpt.{mesh}{level}.sgd", functools.partial(check_training, bench, "gpt", level, mesh, True), rare
            yield f"llama.{mesh}{level}.sgd", functools.partial(check_training, bench, "llama", level, mesh, True), not rare
        for microbatches in (1, 3):
            yield f"bytes{level}.{microbatches}", functools.partial(check_bytes, bench, level, microbatches)
        yield f"half{level}", functools.partial(check_half, bench, level)
        yield f"held{level}", functools.partial(check_held, bench, level)
        for i, mesh in enumerate(MESHES):
            yield f"corners.{mesh}{level}", functools.partial(check_corners, bench, level, mesh, SHARDS[mesh]), (i + level) % 2 == 0


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.zero", tests)
