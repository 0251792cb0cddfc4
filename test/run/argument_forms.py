#!/usr/bin/env python3
"""Compares numbers of pipelines with closed forms: the bytes that devices hold, keep for micro-batches, receive, and have resident.

The forms are derived here from the sizes of the models and the strategies alone. A stage of t devices takes M micro-batches of A bytes of activations through its layers. With tensor parallelism each
layer has two all-reduces of A bytes in forward and two in backward; the embedding and the head have one each; the cut vocabulary has three of one number a row (Megatron). Between stages each device
receives A bytes in forward and A bytes in backward, in one message where both stages have as many devices. A gradient to which k groups of devices contribute, and which N devices hold, is reduced
once: k - 1 contributions go to one place, and the sum to the N - 1 other devices. Where tensor parallelism cuts the parameter, this holds for each finest slice, of which every group has one holder.
Clipping is an all-reduce of one number; the loss is one number, which all devices get. ht_infer receives what its forward pass receives.

Where a stage's d devices are copies instead, each takes a part of a micro-batch's rows. All of them together then receive d - 1 times a parameter for each sum of its gradient: under ZeRO 2 and 3 once
a micro-batch. Under ZeRO 3 they receive as much for each gathering of the parameter: in forward, and in backward except for an embedding's table. Then one device of a group holds a finest slice.
"""
import collections
import functools
import json

import harness
from harness import EXAMPLES, ROOT, Failure, launch, run

SOURCE = ROOT / "test" / "run" / "argument_forms.c"
FLOAT = 4
GPT = {"EMBED": 24, "HEADS": 6, "VOCAB": 259, "BATCH": 19, "LAYERS": 8, "SEQ": 11}
LLAMA = {"EMBED": 24, "HEADS": 6, "KV_HEADS": 3, "VOCAB": 261, "BATCH": 19, "LAYERS": 8, "FFN": 37, "SEQ": 9}
LARGE = {"EMBED": 384, "HEADS": 6, "VOCAB": 2000, "BATCH": 22, "LAYERS": 8, "SEQ": 128}

# A pipeline has micro-batches, their rows, and stages; a stage has devices, by which tensor parallelism cuts, and layers.
Pipeline = collections.namedtuple("Pipeline", "microbatches rows stages")
Stage = collections.namedtuple("Stage", "devices layers")

PIPELINES = {
    "a": [Pipeline(5, 2, [Stage(2, 3), Stage(2, 5)]), Pipeline(3, 3, [Stage(2, 6), Stage(1, 2)])],
    "b": [Pipeline(3, 3, [Stage(3, 8)]), Pipeline(2, 4, [Stage(2, 8)]), Pipeline(2, 1, [Stage(1, 8)])],
    "three": [Pipeline(3, 5, [Stage(2, 2), Stage(2, 5), Stage(2, 1)]), Pipeline(4, 1, [Stage(1, 8)])],
    "copies": [Pipeline(4, 2, [Stage(2, 3), Stage(2, 5)]), Pipeline(3, 3, [Stage(3, 8)]), Pipeline(1, 2, [Stage(1, 8)])],
    "large": [Pipeline(5, 2, [Stage(2, 3), Stage(2, 5)]), Pipeline(4, 3, [Stage(2, 6), Stage(1, 2)])],
}


def layers_of(pipeline):
    """The ranges of layers of the stages."""
    ends = [sum(stage.layers for stage in pipeline.stages[:s + 1]) for s in range(len(pipeline.stages))]
    return [(end - stage.layers, end) for end, stage in zip(ends, pipeline.stages)]


def devices_of(pipelines):
    """(pipeline, number of the stage, position in it) of each device."""
    return [(p, s, i) for p in pipelines for s, stage in enumerate(p.stages) for i in range(stage.devices)]


def strategy_text(pipelines, lines="", split="heads:tp  ffn:tp  vocab:tp"):
    axis = split.split(":")[-1]
    text, first = ["strategy forms", f"split {split}", lines], 0
    for p in pipelines:
        text.append(f"pipeline microbatches({p.microbatches}) rows({p.rows})")
        for stage, (begin, end) in zip(p.stages, layers_of(p)):
            text.append(f"stage devices({first}-{first + stage.devices - 1}) mesh({axis}:{stage.devices}) layers({begin}-{end - 1})")
            first += stage.devices
    return "\n".join([*text, "end strategy", ""])


def strategy_file(bench, name, text):
    path = bench.path(f"{name}.strategy")
    path.write_text(text)
    return path


def source_flags(example, sizes):
    model = EXAMPLES / example / f"{example}.c"
    return (f'-DMODEL="{model}"', f"-DLOSS={example}_loss", f"-DNEXT={example}_next", *(f"-D{key}={value}" for key, value in sizes.items()))


def reported(bench, name, source, text, flags):
    """What --report says of the training program."""
    out = bench.path(f"{name}.json")
    run([bench.hetucc, f"--strategy={strategy_file(bench, name, text)}", "--emit=cost", "-o", "/dev/null", f"--report={out}", *flags, source])
    return next(model for model in json.loads(out.read_text())["models"] if model["kind"] == "train")


def numbers(text):
    """The devices of a list such as 0-2,5."""
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [device for end in ends for device in range(end[0], end[-1] + 1)]


# ---- the models ----

Parameter = collections.namedtuple("Parameter", "where extent elements")  # layer, or places; of the dimension that is cut, 1: none; a row's


def parameters(example, sizes):
    width, embed = sizes["EMBED"] // sizes["HEADS"], sizes["EMBED"]
    heads, vocabulary = sizes["HEADS"], sizes["VOCAB"]
    if example == "gpt":
        ends = [Parameter(("first", "last"), vocabulary, embed), Parameter(("first",), 1, sizes["SEQ"] * embed)] + [Parameter(("last",), 1, embed)] * 2
        layer = [(heads, 3 * width * embed), (heads, 3 * width), (heads, width * embed)] + [(4 * embed, embed)] * 2 + [(4 * embed, 1)] + [(1, embed)] * 6
    else:
        groups, ffn = sizes["KV_HEADS"], sizes["FFN"]
        ends = [Parameter(("first",), vocabulary, embed), Parameter(("last",), vocabulary, embed), Parameter(("last",), 1, embed)]
        layer = [(groups, heads // groups * width * embed)] * 2 + [(groups, width * embed)] * 2 + [(ffn, embed)] * 3 + [(1, embed)] * 2
    return ends + [Parameter((l,), extent, elements) for l in range(sizes["LAYERS"]) for extent, elements in layer]


def is_in(parameter, pipeline, stage):
    begin, end = layers_of(pipeline)[stage]
    places = {"first": stage == 0, "last": stage == len(pipeline.stages) - 1}
    return any(places[where] if where in places else begin <= where < end for where in parameter.where)


def held(parameter, pipelines):
    """By device: elements."""
    found = []
    for pipeline, stage, i in devices_of(pipelines):
        t = pipeline.stages[stage].devices if parameter.extent > 1 else 1
        piece = parameter.extent * (i + 1) // t - parameter.extent * i // t if t > 1 else parameter.extent
        found.append(piece * parameter.elements if is_in(parameter, pipeline, stage) else 0)
    return found


def gradient_elements(parameter, pipelines):
    """That all devices together receive for its sum, and its new values."""
    groups = [stage.devices for p in pipelines for s, stage in enumerate(p.stages) if is_in(parameter, p, s)]
    holders = len(groups) if parameter.extent > 1 else sum(groups)
    return (len(groups) + holders - 2) * parameter.extent * parameter.elements if len(groups) > 1 else 0


# ---- bytes received a step ----

def activation(sizes, rows):
    return FLOAT * rows * sizes["SEQ"] * sizes["EMBED"]


def reduced(sizes, pipeline, stage):
    """That a device of a stage receives in all-reduces for a micro-batch."""
    t, last = pipeline.stages[stage].devices, stage == len(pipeline.stages) - 1
    whole = 4 * pipeline.stages[stage].layers + (stage == 0) + last
    return 2 * (t - 1) / t * (whole * activation(sizes, pipeline.rows) + 3 * last * FLOAT * pipeline.rows * sizes["SEQ"])


def messages(pipeline, stage):
    """How often a device of a stage receives an activation or a gradient of one for a micro-batch."""
    return (stage > 0) + (stage < len(pipeline.stages) - 1)


def loss_received(pipelines):
    total, last = sum(stage.devices for p in pipelines for stage in p.stages), pipelines[0].stages[-1].devices
    return FLOAT * (total + len(pipelines) - 2 if len(pipelines) > 1 else total - last)


def counted(bench, program, ranks, label, *arguments):
    """By rank: {call: (times, bytes)}."""
    out = bench.path(f"{label}.{'.'.join(arguments)}.pmpi")
    launch(program, ranks, *arguments, preload=bench.build / "lib" / "pmpi.so", env={"PMPI_OUT": str(out), "PMPI_PEERS": "1", "PMPI_SMALL": str(FLOAT), "HETU_CHECK": "0"})
    found = []
    for rank in range(ranks):
        rows = [line.split("\t") for line in (out.parent / f"{out.name}.{rank}").read_text().splitlines()]
        found.append({call: (int(times), float(size)) for call, times, size in rows})
    return found


def less(a, b, times=1):
    """a - b, by rank and call, of each of so many."""
    return [{call: tuple((x - y) / times for x, y in zip(more.get(call, (0, 0)), rest.get(call, (0, 0)))) for call in {*more, *rest}}
            for more, rest in zip(a, b)]


def bytes_of(calls, which):
    return sum(size for call, (_, size) in calls.items() if call.startswith(which))


def expect(what, found, wanted):
    if abs(found - wanted) > 1e-6 * max(1, abs(wanted)):
        raise Failure(f"{what}: {found:.6g}, not {wanted:.6g}")


def check_messages(step, pipelines, sizes):
    """Bytes from the other stages, and messages where those have as many devices: one a micro-batch and direction."""
    devices = devices_of(pipelines)
    for d, (p, s, _) in enumerate(devices):
        others = [other for other, (q, t, _) in enumerate(devices) if q is p and t != s]
        calls = [step[d].get(f"MPI_Irecv from {other}", (0, 0)) for other in others]
        expect(f"device {d}: bytes from other stages", sum(size for _, size in calls), p.microbatches * messages(p, s) * activation(sizes, p.rows))
        if len({stage.devices for stage in p.stages}) == 1:
            expect(f"device {d}: messages from other stages", sum(times for times, _ in calls), p.microbatches * messages(p, s))


def check_step(step, example, sizes, pipelines):
    devices = devices_of(pipelines)
    for d, (p, s, _) in enumerate(devices):
        clipping = 2 * (len(devices) - 1) / len(devices) * FLOAT
        expect(f"device {d}: all-reduces", bytes_of(step[d], "MPI_Allreduce"), p.microbatches * reduced(sizes, p, s) + clipping)
    between = sum(p.microbatches * messages(p, s) * activation(sizes, p.rows) for p, s, _ in devices)
    gradients = FLOAT * sum(gradient_elements(parameter, pipelines) for parameter in parameters(example, sizes))
    total = sum(bytes_of(calls, "") - bytes_of(calls, ("MPI_Allreduce", "MPI_Bcast")) for calls in step)  # the latter are commands
    expect("messages of all devices", total, between + gradients + loss_received(pipelines))
    if example == "llama":  # whose stages share no parameter
        check_messages(step, pipelines, sizes)
    return between + gradients


def check_run(calls, sizes, pipelines):
    """Of ht_infer between two steps: a forward of one row on the first pipeline, and nothing of parameters."""
    for d, (p, s, _) in enumerate(devices_of(pipelines)):
        t, whole = p.stages[s].devices, activation(sizes, 1)
        runs = p is pipelines[0]
        expect(f"device {d}: all-reduces of a run", bytes_of(calls[d], "MPI_Allreduce"), runs * 2 * (t - 1) / t * (2 * p.stages[s].layers + (s == 0)) * whole)
        expect(f"device {d}: messages of a run", bytes_of(calls[d], "MPI_Irecv"), runs * (s > 0) * whole)


def check_bytes(bench, example, name, sizes, lines, infers):
    pipelines, flags, label = PIPELINES[name], source_flags(example, sizes), f"{example}.{name}"
    program = bench.compiled(SOURCE, strategy_file(bench, label, strategy_text(pipelines, lines)), flags)
    ranks = len(devices_of(pipelines))
    steps = less(counted(bench, program, ranks, label, "4", "0"), counted(bench, program, ranks, label, "2", "0"), 2)
    total = check_step(steps, example, sizes, pipelines)
    if infers:
        both = less(counted(bench, program, ranks, label, "4", "1"), counted(bench, program, ranks, label, "2", "1"), 2)
        check_run(less(both, steps), sizes, pipelines)
    return f"{total:.0f} bytes between stages and pipelines"


# ---- bytes received a step by copies ----

def copied_elements(parameter, pipelines, zero):
    """Of a parameter, that all devices together receive in a step."""
    holding = [(p.microbatches, stage.devices) for p in pipelines for s, stage in enumerate(p.stages) if is_in(parameter, p, s)]
    embedding = parameter.where == ("first",)
    times = 1 if zero == 2 else 2 if embedding else 3
    inside = sum(microbatches * times * (devices - 1) for microbatches, devices in holding)
    given = sum(devices for _, devices in holding) if zero == 2 else len(holding)
    return (inside + len(holding) + given - 2) * parameter.extent * parameter.elements


def check_copies(bench, zero):
    """llama's stages share no parameter, and of those in one place only the embedding's table is in the first stage."""
    pipelines, sizes, label = PIPELINES["copies"], dict(LLAMA, BATCH=19), f"copies.{zero}"
    text = strategy_text(pipelines, f"zero {zero}", "batch:dp")
    program = bench.compiled(SOURCE, strategy_file(bench, label, text), source_flags("llama", sizes))
    ranks = len(devices_of(pipelines))
    step = less(counted(bench, program, ranks, label, "4", "0"), counted(bench, program, ranks, label, "2", "0"), 2)
    between = sum(p.microbatches * messages(p, s) * activation(sizes, p.rows) / p.stages[s].devices for p, s, _ in devices_of(pipelines))
    copied = FLOAT * sum(copied_elements(parameter, pipelines, zero) for parameter in parameters("llama", sizes))
    numbers = 2 * (ranks - 1) + sum(p.stages[-1].devices - 1 for p in pipelines)  # clipping; the loss of a pipeline
    found = sum(bytes_of(calls, "") - bytes_of(calls, "MPI_Bcast") for calls in step)
    expect("bytes of all devices", found, between + copied + FLOAT * numbers + loss_received(pipelines))
    return f"{found:.0f} bytes"


# ---- what devices hold ----

def check_held(bench, example, name, sizes, zero):
    """Parameters as tensor parallelism cuts them. States twice as much; from zero 1 on each once, shared out evenly over all holders."""
    pipelines, source = PIPELINES[name], EXAMPLES / example / f"{example}.c"
    report = reported(bench, f"{example}.{name}.{zero}", source, strategy_text(pipelines, f"zero {zero}"), [f"-D{key}={value}" for key, value in sizes.items()])
    memory = {device: entry["bytes"] for entry in report["memory"] for device in numbers(entry["devices"])}
    model = parameters(example, sizes)
    pieces = [held(parameter, pipelines) for parameter in model]
    whole = sum(parameter.extent * parameter.elements for parameter in model)
    for d in memory:
        expect(f"device {d}: parameters", memory[d]["parameters"], FLOAT * sum(piece[d] for piece in pieces))
        if not zero:
            expect(f"device {d}: states", memory[d]["states"], 2 * FLOAT * sum(piece[d] for piece in pieces))
    if zero:
        expect("states of all devices", sum(entry["states"] for entry in memory.values()), 2 * FLOAT * whole)
    return f"{FLOAT * whole} bytes of parameters, states of {sum(entry['states'] for entry in memory.values())}"


# ---- slots ----

def table_text(schedule, stages, ranges, layers, microbatches, more=""):
    ends = [layers * k // (stages * ranges) for k in range(stages * ranges + 1)]
    text = ["strategy slots", f"schedule {schedule}", f"pipeline microbatches({microbatches}) rows(2)"]
    for s in range(stages):
        own = ", ".join(f"{ends[v * stages + s]}-{ends[v * stages + s + 1] - 1}" for v in range(ranges))
        text.append(f"stage devices({s}) layers({own}) {more}")
    return "\n".join([*text, "end strategy", ""])


def slots_wanted(schedule, stages, ranges, microbatches, s):
    return {"gpipe": microbatches, "1f1b": min(microbatches, stages - s),
            "interleaved": min(microbatches * ranges, 2 * (stages - s - 1) + (ranges - 1) * stages + 1)}[schedule]


def check_slots(bench, example, schedule, stages, ranges, layers, microbatches):
    flags = [f"-D{key}={value}" for key, value in {"EMBED": 16, "HEADS": 4, "BATCH": 2 * microbatches, "LAYERS": layers, "SEQ": 5}.items()]
    label = f"slots.{example}.{schedule}.{stages}.{ranges}.{microbatches}"
    report = reported(bench, label, EXAMPLES / example / f"{example}.c", table_text(schedule, stages, ranges, layers, microbatches), flags)
    found = [stage["slots"] for stage in report["pipelines"][0]["stages"]]
    used = [1 + max(row[3] for row in stage["rows"]) for stage in report["pipelines"][0]["stages"]]
    wanted = [slots_wanted(schedule, stages, ranges, microbatches, s) for s in range(stages)]
    if found != wanted or used != wanted:
        raise Failure(f"{found} slots, of which {used} are used, not {wanted}")
    return f"{found}"


def check_full(bench, example, schedule):
    """A slot has the inputs of the layers and of what follows them, and room for two messages; at the end, what follows and the message that comes in have one: A bytes each."""
    stages, layers = 4, 11
    sizes = {"EMBED": 32, "HEADS": 4, "BATCH": 10, "LAYERS": layers, "SEQ": 10}
    text = table_text(schedule, stages, 1, layers, 5, "recompute(full)")
    report = reported(bench, f"full.{example}.{schedule}", EXAMPLES / example / f"{example}.c", text, [f"-D{key}={value}" for key, value in sizes.items()])
    whole = activation(sizes, 2)
    ends = [layers * s // stages for s in range(stages + 1)]
    for s, entry in enumerate(sorted(report["memory"], key=lambda entry: numbers(entry["devices"]))):
        expect(f"stage {s}: bytes of a slot", entry["slot_bytes"], (ends[s + 1] - ends[s] + (1 if s == stages - 1 else 2)) * whole)
    return f"{whole} bytes a layer"


# ---- memory ----

def check_arena(report):
    """Arena and slots are at most 1.1 of the most bytes that are needed at one time."""
    worst = 1
    for entry in report["memory"]:
        needed = sum(entry["bytes"][kind] for kind in ("gradients", "activations", "temporaries", "scratch"))
        worst = max(worst, (needed + entry["bytes"]["gaps"]) / needed)
    if worst > 1.1:
        raise Failure(f"the arena is {worst:.3f} of what is needed at one time")
    return worst


def check_resident(bench, lines):
    """Memory that comes to be resident is the printed peak, within 10% and 16 MB."""
    pipelines, flags, label = PIPELINES["large"], source_flags("gpt", LARGE), f"large.{lines.replace(' ', '')}"
    text = strategy_text(pipelines, lines)
    program = bench.compiled(SOURCE, strategy_file(bench, label, text), flags)
    report = reported(bench, label, SOURCE, text, flags)
    out = bench.path(f"{label}.resident")
    launch(program, len(devices_of(pipelines)), "2", preload=bench.build / "lib" / "resident.so", env={"RESIDENT_OUT": str(out), "HETU_CHECK": "0"})
    peaks = {device: entry["peak"] for entry in report["memory"] for device in numbers(entry["devices"])}
    grown = {device: int((out.parent / f"{out.name}.{device}").read_text()) for device in peaks}
    for device, peak in peaks.items():
        if abs(grown[device] - peak) > 0.1 * peak + 16e6:
            raise Failure(f"device {device} has {grown[device] / 1e6:.1f} MB more, not {peak / 1e6:.1f}")
    worst = check_arena(report)
    return f"{min(peaks.values()) / 1e6:.0f} to {max(peaks.values()) / 1e6:.0f} MB, off by {max(abs(grown[d] - peaks[d]) for d in peaks) / 1e6:.1f}; arena {worst:.3f}"


def tests(bench, _):
    yield "bytes.gpt.a", functools.partial(check_bytes, bench, "gpt", "a", GPT, "", True)
    yield "bytes.llama.b", functools.partial(check_bytes, bench, "llama", "b", LLAMA, "zero 1", False)
    yield "bytes.llama.three", functools.partial(check_bytes, bench, "llama", "three", LLAMA, "schedule gpipe", False), True
    for zero in 2, 3:
        yield f"bytes.llama.copies.{zero}", functools.partial(check_copies, bench, zero), zero == 2
    for name in "a", "b", "three":
        for zero in 0, 1:
            yield f"held.gpt.{name}.{zero}", functools.partial(check_held, bench, "gpt", name, GPT, zero)
            yield f"held.llama.{name}.{zero}", functools.partial(check_held, bench, "llama", name, LLAMA, zero)
    for case in ("gpt", "gpipe", 3, 1, 4, 5), ("gpt", "1f1b", 4, 1, 6, 9), ("llama", "1f1b", 4, 1, 5, 3), ("gpt", "interleaved", 2, 3, 7, 5), ("llama", "interleaved", 3, 2, 6, 9):
        yield f"slots.{case[0]}.{case[1]}.{case[2]}.{case[3]}.{case[5]}", functools.partial(check_slots, bench, *case)
    yield "full.gpt", functools.partial(check_full, bench, "gpt", "1f1b")
    yield "full.llama", functools.partial(check_full, bench, "llama", "gpipe")
    yield "resident", functools.partial(check_resident, bench, "schedule gpipe")


if __name__ == "__main__":
    harness.main("run.forms", tests)
