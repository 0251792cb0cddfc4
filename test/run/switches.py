#!/usr/bin/env python3
"""Tests switches: a program that changes its strategy while it trains computes what one device does.

gpt and llama, with 8 layers, dropout and AdamW, take every ordered pair of strategies in one run, one step under each, and with HETU_LONG each pair in a run of its own, there and back. Losses are one device's.
Parameters and moments have the same bits before and after a switch (HETU_DUMP, put together from all ranks). The bytes that a switch sends, counted from the MPI calls, are those that ranks lack by the boxes in the dumps.
In each round of a batch of tensors a rank sends another at most one message. During a switch a rank needs little more memory than before or after; a thousand switches leave memory and open files as they were.
"""
import functools
import math
import pathlib

import harness
from harness import EXAMPLES, Failure, compare_losses, launch, read_losses, run
from pipelines import GPT, LLAMA, LONG, SPLIT, flags_of

HERE = pathlib.Path(__file__).resolve().parent
SWITCHED = HERE / "switched.c"
RANKS = 8

STRATEGIES = {
    "dp4": "split batch:dp\n stage devices(0-3) mesh(dp:4)",
    "tp4": f"{SPLIT} hidden:tp\n stage devices(0-3) mesh(tp:4)",
    "twice": f"""{SPLIT} hidden:tp
      pipeline microbatches(3) rows(3)
        stage devices(0-1) mesh(tp:2) layers(0-2)
        stage devices(2-3) mesh(tp:2) layers(3-LAST)
      pipeline microbatches(REST) rows(1)
        stage devices(4-5) mesh(tp:2) layers(0-2)
        stage devices(6-7) mesh(tp:2) layers(3-LAST)""",
    "beside": f"""{SPLIT} hidden:tp
      pipeline microbatches(2) rows(3)
        stage devices(0-2) mesh(tp:3)
      pipeline microbatches(1) rows(3)
        stage devices(4,3) mesh(tp:2)
      pipeline microbatches(1) rows(REST)
        stage devices(5)""",
    "one": "stage devices(1)\n idle devices(0)",
    "zero1": "split batch:dp\n zero 1\n stage devices(0-4) mesh(dp:5)",
    "zero3": "split batch:dp\n zero 3\n stage devices(2-7) mesh(dp:6)\n idle devices(0-1)",
    "kept": f"""{SPLIT} hidden:tp
      optimizer zero3
      pipeline microbatches(3) rows(3)
        stage devices(0-2) mesh(tp:3) layers(0-2)
        stage devices(3) layers(3-LAST)
      pipeline microbatches(REST) rows(1)
        stage devices(4-5) mesh(tp:2) layers(0-2)
        stage devices(6-7) mesh(tp:2) layers(3-LAST)""",
    "half": f"{SPLIT} batch:dp hidden:tp\n stage devices(0-5) mesh(dp:2, tp:3)",
}


def strategy_files(bench, layers, batch, half):
    """Files with the strategies for a model of so many layers and rows; under `half` rows have so many tokens."""
    files = []
    for name, lines in STRATEGIES.items():
        lines = lines.replace("LAST", str(layers - 1)).replace("microbatches(REST)", f"microbatches({batch - 9})").replace("REST", str(batch - 9))
        shape = f" (seq = {half})" if name == "half" else ""
        files.append(bench.path(f"{layers}.{batch}.{name}.strategy"))
        files[-1].write_text(f"strategy {name}{shape}\n{lines}\nend strategy\n")
    return files


def walk(names):
    """A closed walk that takes every ordered pair of names once (Hierholzer); it begins with the first."""
    left = {a: [b for b in names if b != a] for a in names}
    path, trail = [names[0]], []
    while path:
        if left[path[-1]]:
            path.append(left[path[-1]].pop())
        else:
            trail.append(path.pop())
    return trail[::-1]


def build(bench, source, flags, layers, batch, half, names=tuple(STRATEGIES)):
    def make():
        out = bench.path(f"{source.stem}.switches{''.join(flags)}")
        chosen = [f"--strategy={file}" for file in strategy_files(bench, layers, batch, half) if file.name.split(".")[-2] in names]
        objects = bench.common() if source is not SWITCHED else []
        run([bench.hetucc, *chosen, "-O1", *harness.WARNINGS, *flags, source, *objects, "-o", out, "-lm"], timeout=300)
        return out
    return bench.once(("switches", source, flags, names), make)


# ---- what ranks hold ----

def held(folder):
    """{name: [(rank, shape, boxes, bytes)]} of a dump."""
    found = {}
    for path in sorted(folder.glob("*/*.boxes")):
        lines = [line.split() for line in path.read_text().splitlines()]
        boxes = [[tuple(map(int, bounds.split(":"))) for bounds in line] for line in lines[1:]]
        found.setdefault(path.stem, []).append((int(path.parent.name), [int(n) for n in lines[0]], boxes, path.with_suffix(".bin").read_bytes()))
    return found


def stretches(shape, box):
    """(first, count) of the elements of a box that lie together in the whole tensor, in order."""
    inner = len(shape)
    while inner and (inner == len(shape) or box[inner] == (0, shape[inner])):
        inner -= 1
    count = math.prod(hi - lo for lo, hi in box[inner:]) if shape else 1
    pitch = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    rows = [0]
    for d in range(inner):
        rows = [row + i * pitch[d] for row in rows for i in range(*box[d])]
    start = sum(box[d][0] * pitch[d] for d in range(inner, len(shape)))
    return [(row + start, count) for row in rows] if count else []


def whole(parts):
    """A tensor's bytes, put together; all holders of an element must have the same."""
    size = math.prod(parts[0][1])
    tensor, known = bytearray(4 * size), bytearray(size)
    for rank, shape, boxes, data in parts:
        at = 0
        for box in boxes:
            for first, count in stretches(shape, box):
                piece = data[at: at + 4 * count]
                if known.count(1, first, first + count) == count and tensor[4 * first: 4 * (first + count)] != piece:
                    raise Failure(f"rank {rank} holds other bits than a rank before it")
                tensor[4 * first: 4 * (first + count)] = piece
                known[first: first + count] = b"\1" * count
                at += 4 * count
    if known.count(1) != size:
        raise Failure(f"{size - known.count(1)} of {size} elements are on no rank")
    return bytes(tensor)


def owned(parts):
    """{rank: elements, as a bytearray of 0 and 1}."""
    found = {}
    for rank, shape, boxes, _ in parts:
        own = found.setdefault(rank, bytearray(math.prod(shape)))
        for box in boxes:
            for first, count in stretches(shape, box):
                own[first: first + count] = b"\1" * count
    return found


def lacking(before, after):
    """Bytes that ranks hold after a switch and not before: the least that they can receive."""
    total = 0
    for name in after:
        had = owned(before[name])
        for rank, own in owned(after[name]).items():
            old = had.get(rank, bytes(len(own)))
            total += 4 * bin(int.from_bytes(own, "big") & ~int.from_bytes(old, "big")).count("1")
    return total


def same_bits(folder, number):
    """Whether switch `number` has changed nothing but places; how many tensors were compared."""
    before, after = held(folder / f"step{number}"), held(folder / f"switch{number}")
    if set(before) != set(after):
        raise Failure(f"other tensors: {sorted(set(before) ^ set(after))}")
    for name in before:
        if whole(before[name]) != whole(after[name]):
            raise Failure(f"{name} has other bits after switch {number}")
    return len(before)


# ---- tests ----

def trained(bench, example, sizes, half, way, **environment):
    """The losses of an example that goes a way, by step the strategy, and those of one device."""
    source, flags = EXAMPLES / example / f"{example}.c", flags_of({**sizes, "PLACES": sizes["SEQ"] + 2})
    changes = [(step, name) for step, name in enumerate(way) if name != ([next(iter(STRATEGIES)), *way][step])]
    switches = [f"--switch={step}:{name}:{half if name == 'half' else sizes['SEQ']}" for step, name in changes]
    arguments = ("--steps", len(way), "--sample", 3, "--rate", "0.0003", *switches)
    name = f"{example}.{len(way)}.{way[0]}.{way[2]}"
    losses, plain = bench.path(f"{name}.losses"), bench.path(f"{name}.plain.losses")
    launch(build(bench, source, flags, sizes["LAYERS"], sizes["BATCH"], half), RANKS, *arguments, "--losses", losses, env=environment, timeout=300)
    launch(bench.plain(source, flags), 0, *arguments, "--losses", plain)
    return read_losses(losses), read_losses(plain)


def check_walk(bench, example, sizes, half):
    names = list(STRATEGIES)
    way = walk(names) if LONG else names + names[-3::-2] + names[1::3]
    return f"{len(way) - 1} switches, loss {compare_losses(*trained(bench, example, sizes, half, way), 1e-4):.2g}"


def check_stays(bench, example, sizes, half, a):
    """Two steps under a strategy, 28 under another, and 30 under the first again."""
    worst = {b: compare_losses(*trained(bench, example, sizes, half, [a] * 2 + [b] * 28 + [a] * 30), 1e-4) for b in STRATEGIES if b != a}
    return f"loss {max(worst.values()):.2g} at most, with {max(worst, key=worst.get)}"


def check_bits(bench, example, sizes, half):
    way, dumps = walk(list(STRATEGIES)) if LONG else [*STRATEGIES, "dp4"], bench.path(f"{example}.dumps")
    compare_losses(*trained(bench, example, sizes, half, way, HETU_DUMP=str(dumps)), 1e-4)
    count = sum(same_bits(dumps, number) for number in range(0, len(way) - 1, 1 if LONG else 3))
    return f"{len(way) - 1} switches, {count} tensors of the same bits"


def counted(bench, program, trips, a, b):
    """Bytes and messages that switches send, but for commands."""
    out = bench.path(f"{a}.{b}.{trips}.pmpi")
    launch(program, RANKS, "trips", trips, a, b, meets=False, preload=bench.build / "lib" / "pmpi.so", env={"PMPI_OUT": str(out), "PMPI_SMALL": "128", "HETU_CHECK": "0"})
    size = times = 0
    for path in out.parent.glob(out.name + ".*"):
        for line in path.read_text().splitlines():
            call, count, received = line.split("\t")
            if not call.endswith(" small") and float(received):
                size, times = size + float(received), times + int(count)
    return size, times


def check_traffic(bench, a, b):
    program, dumps = build(bench, SWITCHED, (), 6, 13, 4), bench.path(f"{a}.{b}.dumps")
    (bytes_1, times_1), (bytes_3, times_3) = counted(bench, program, 1, a, b), counted(bench, program, 3, a, b)
    launch(program, RANKS, "losses", a, b, a, env={"HETU_DUMP": str(dumps)})
    at = {name: held(dumps / f"step{number}") for number, name in ((1, a), (2, b))}
    wanted = lacking(at[a], at[b]) + lacking(at[b], at[a])
    if (bytes_3 - bytes_1) / 2 != wanted:
        raise Failure(f"{(bytes_3 - bytes_1) / 2:.0f} bytes there and back, not {wanted}")
    most = 2 * 2 * RANKS * (RANKS - 1)
    if (times_3 - times_1) / 2 > most:
        raise Failure(f"{(times_3 - times_1) / 2:.0f} messages there and back in one window each way, more than {most}")
    return f"{wanted} bytes, {(times_3 - times_1) / 2:.0f} messages there and back"


def compare_outputs(bench, program, flags, names, **environment):
    """Losses, and an output of ht_infer, which goes along, against one device's."""
    found = [float(x) for x in launch(program, RANKS, "losses", *names, env=environment).stdout.split()]
    wanted = [float(x) for x in launch(bench.plain(SWITCHED, flags), 0, "losses", *names).stdout.split()]
    worst = max(abs(f - w) for f, w in zip(found[1::2], wanted[1::2], strict=True))
    if worst > 1e-4:  # of numbers of about 1
        raise Failure(f"an output of ht_infer is {worst:.2g} off")
    return f"loss {compare_losses(found[::2], wanted[::2], 1e-4):.2g}, output {worst:.2g}"


def check_losses(bench):
    names = ["zero3", "half", "kept", "one", "twice", "zero1", "kept", "beside", "dp4", "tp4", "half", "zero3"]
    return compare_outputs(bench, build(bench, SWITCHED, (), 6, 13, 4), (), names)


def check_learnt(bench):
    """A state of the model's, groups with Muon and Adafactor, averages that ht_infer reads: the bits of all of it go along."""
    flags, used, dumps = ("-DLEARNT",), ("zero1", "zero3", "kept", "one"), bench.path("learnt.dumps")
    names = ["zero3", "kept", "one", "zero1", "kept", "zero3", "one", "kept", "zero1"]
    told = compare_outputs(bench, build(bench, SWITCHED, flags, 6, 13, 4, used), flags, names, HETU_DUMP=str(dumps))
    found = held(dumps / "switch1")
    if "mean" not in found or len(found) < 2 * 24:
        raise Failure(f"the dump has {sorted(found)}")
    count = sum(same_bits(dumps, number) for number in range(len(names)))
    return f"{told}, {count} tensors of the same bits"


def check_often(bench, a, b):
    printed = launch(build(bench, SWITCHED, (), 6, 13, 4), RANKS, "memory", 500, a, b, meets=False, env={"HETU_CHECK": "0"}, timeout=300).stdout
    (early, files), (late, more) = [(int(line.split()[2]), int(line.split()[4])) for line in printed.splitlines() if line.startswith("after")]
    if late - early > 1024 or more - files > 8:
        raise Failure(f"{early} KiB and {files} files after 20 switches, {late} KiB and {more} files after 1000")
    return f"{late - early} KiB more after 1000 switches than after 20"


WINDOW = 64 << 20  # migration.h


def check_memory(bench, a, b):
    """While it switches, a rank needs at most a window and 16 MB more than under the larger strategy; tensors are several windows."""
    program = build(bench, SWITCHED, ("-DWIDTH=700",), 6, 13, 4)
    worst, count = -math.inf, 0
    for line in launch(program, RANKS, "memory", 2, a, b, env={"HETU_CHECK": "0"}, timeout=300).stdout.splitlines():
        if line.startswith("switch"):
            most, before, after = (1024 * int(line.split()[i]) for i in (3, 7, 9))
            worst, count = max(worst, most - max(before, after)), count + 1
    if worst > WINDOW + 16e6 or count != 4:
        raise Failure(f"{worst / 1e6:.0f} MB more than under the larger strategy, in one of {count} switches")
    return f"{worst / 1e6:.0f} MB more than under the larger strategy"


SEVERAL = harness.ROOT / "test" / "run" / "Inputs" / "several.c"
SEVERAL_LINES = """strategy one
  stage devices(0)
end strategy
strategy dp
  split batch:dp
  zero 3
  stage devices(0-2) mesh(dp:3)
end strategy
strategy kept
  split batch:dp
  optimizer dp
  pipeline rows(1)
    stage devices(1)
  pipeline rows(3) (seq = 3)
    stage devices(2, 0) mesh(dp:2)
end strategy
"""


def check_several(bench):
    """Several programs of one model, of rules and averages, go along; states are kept under another strategy while rows are cut."""
    strategy, out = bench.path("several.strategy"), bench.path("several")
    strategy.write_text(SEVERAL_LINES)
    harness.run([bench.hetucc, *(f"--strategy={strategy}:{name}" for name in ("one", "dp", "kept")), SEVERAL, "-o", out], timeout=300)
    found, wanted = (launch(program, ranks).stdout.splitlines() for program, ranks in ((out, 3), (bench.plain(SEVERAL), 0)))
    worst = max(abs(float(a.split()[2]) - float(b.split()[2])) for a, b in zip(found, wanted))
    if len(found) != len(wanted) or not wanted or worst > 1e-5:
        raise Failure(f"{worst}\n{found}\n{wanted}")
    return f"{worst:.2g}"


def tests(bench, _):
    yield "switches.several", functools.partial(check_several, bench)
    for example, sizes in [("gpt", GPT), ("llama", LLAMA)] if LONG else [("gpt", GPT)]:
        yield f"switches.{example}", functools.partial(check_walk, bench, example, sizes, 5)
        yield f"switches.{example}.bits", functools.partial(check_bits, bench, example, sizes, 5), True  # switches.learnt has the like
        for a in STRATEGIES if LONG else ():
            yield f"switches.{example}.stays.{a}", functools.partial(check_stays, bench, example, sizes, 5, a)
    yield "switches.losses", functools.partial(check_losses, bench)
    yield "switches.learnt", functools.partial(check_learnt, bench)
    for a, b in ("dp4", "tp4"), ("twice", "beside"), ("one", "dp4"), ("zero3", "twice"), ("tp4", "zero1"):
        yield f"switches.traffic.{a}.{b}", functools.partial(check_traffic, bench, a, b), a not in ("twice", "zero3")
    for a, b in ("dp4", "twice"), ("one", "zero1"):
        yield f"switches.memory.{a}.{b}", functools.partial(check_memory, bench, a, b), a == "dp4"
    yield "switches.often", functools.partial(check_often, bench, "twice", "zero3")


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.switches", tests)
