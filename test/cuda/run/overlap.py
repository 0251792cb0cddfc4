#!/usr/bin/env python3
"""Sums of gradients beside backward, and gathers of parameters a layer ahead, on GPUs, as the stand-in for NCCL and the emulated streams see them (HETU_EMULATE_LOG).

Programs run with a GPU a rank. Of the last step, which a graph runs, each rank's list says what went to which stream when. Streams 1 and 2 are those that compute and
that exchange what the next operator waits for; sums of gradients have one of their own. With a delay on each reduction, hidden is what of the delays passes while the
rank computes.
"""
import functools
import math
import pathlib
import re

import emulated
import harness
import train
from harness import EXAMPLES, Failure

GPT = EXAMPLES / "gpt" / "gpt.c"
EMBED, LAYERS, BATCH, SEQ, VOCAB, RANKS = 32, 8, 8, 16, 256, 4
FLAGS = (f"-DEMBED={EMBED}", "-DHEADS=4", f"-DLAYERS={LAYERS}", f"-DBATCH={BATCH}", f"-DSEQ={SEQ}", f"-DVOCAB={VOCAB}")
PACE = 4  # milliseconds that a kernel takes at least: backward takes longer than all delays
GATHERS = emulated.HERE / "Inputs" / "gathers.strategy"
COMPUTES, EXCHANGES = 1, 2
BUCKET = 40000
DELAY = 20  # milliseconds
HIDDEN = 0.7


def parameters():
    """The number of the model's weights; those of the places aside, whose gradient is summed before it is put into the table."""
    return VOCAB * EMBED + LAYERS * (12 * EMBED * EMBED + 13 * EMBED) + 2 * EMBED


class Line:
    """What ran on a stream from `began` to `ended`, in milliseconds; of an exchange also when all members of a reduction had come, and what it says."""

    def __init__(self, text):
        self.kind, stream, began, ended, issued, self.place, self.what, *calls = text.split("\t")
        self.stream, self.began, self.ended, self.issued = int(stream), float(began), float(ended), int(issued)
        self.met, self.calls = float(self.what or 0), calls[0] if calls else ""

    def elements(self):
        """How many each device brings to reductions."""
        found = re.findall(r"(all-reduce|reduce-scatter|reduce) of (\d+)", self.calls)
        return sum(int(count) * (RANKS if verb == "reduce-scatter" else 1) for verb, count in found)

    def sums(self):
        """Whether it is a sum of gradients."""
        return self.kind == "exchange" and self.stream > EXCHANGES and self.place.startswith(" (backward") and self.elements() > 0


def last_step(text):
    lines = [Line(line) for line in text.splitlines()]
    first = max(i for i, line in enumerate(lines) if line.kind == "graph")
    return lines[first + 1:]


def run_logged(bench, strategy, flags, steps=4, **environment):
    """(lines of each rank's last step, losses) of a run."""
    program = bench.compiled(GPT, GATHERS if strategy == "gathers" else train.strategy_of("gpt", strategy), (*FLAGS, *flags))
    label = "".join([strategy, *flags, *environment.values()])
    log, losses = bench.path(f"overlap.{label}.log"), bench.path(f"overlap.{label}.losses")
    harness.launch(program, RANKS, "--steps", steps, "--sample", 0, "--losses", losses,
                   env={"HETU_EMULATE_DEVICES": str(RANKS), "HETU_EMULATE_LOG": str(log), "HETU_CHECK": "0", "HETU_TUNE": "0", **environment})
    ranks = [last_step(path.read_text()) for path in sorted(log.parent.glob(log.name + ".*")) if "graph\t" in path.read_text()]
    if len(ranks) != RANKS:
        raise Failure(f"{len(ranks)} ranks have run a graph")
    return ranks, harness.read_losses(losses)


def part(line, name):
    return line.kind == "kernel" and line.stream == COMPUTES and line.place.startswith(f" ({name}")


def check_begins(ranks):
    """The first bucket begins before half of backward's launches, and there are at most ceil(bytes / bucket) of them a step, the same on all ranks in one order."""
    shown = []
    for lines in ranks:
        sums = [line for line in lines if line.sums()]
        if not sums or len({line.stream for line in sums}) != 1:
            raise Failure(f"sums of gradients on streams {sorted({line.stream for line in sums})}")
        backward = [line for line in lines if part(line, "backward")]
        before = sum(line.began < sums[0].began for line in backward)
        elements = sum(line.elements() for line in sums)
        if 2 * before >= len(backward) or len(sums) > math.ceil(4 * parameters() / BUCKET) or len(sums) < 2 or not parameters() <= elements <= parameters() + SEQ * EMBED + 1:
            raise Failure(f"{len(sums)} sums of {elements} of {parameters()} elements; the first begins behind {before} of {len(backward)} launches")
        shown.append((before, len(backward), [re.sub(r" on the .*", "", line.calls) for line in sums]))
    if any(own != shown[0] for own in shown):
        raise Failure(f"ranks differ: {shown}")
    return f"{len(shown[0][2])} sums, the first behind {shown[0][0]} of {shown[0][1]} launches"


def covered(begin, end, works):
    """How much of [begin, end] passes while some of `works`, which follow one another, runs."""
    return sum(max(0.0, min(end, work.ended) - max(begin, work.began)) for work in works)


def check_hidden(ranks):
    """Of the delays that every sum has, so much passes while the rank computes."""
    shares = []
    for lines in ranks:
        works = [line for line in lines if line.kind == "kernel" and line.stream == COMPUTES]
        sums = [line for line in lines if line.sums()]
        if any(line.ended - line.met < DELAY for line in sums):
            raise Failure(f"{[line.ended - line.met for line in sums]} ms of {len(sums)} sums")
        shares.append(sum(covered(line.met, line.met + DELAY, works) for line in sums) / (DELAY * len(sums)))
    if min(shares) < HIDDEN:
        raise Failure(f"hidden: {', '.join(f'{share:.2f}' for share in shares)}")
    return f"hidden {min(shares):.2f}"


def check_sums(bench, strategy):
    ranks, _ = run_logged(bench, strategy, (f"--bucket={BUCKET}",), 3, HETU_STAND_IN_DELAY=str(DELAY), HETU_EMULATE_PACE=str(PACE))
    return f"{check_begins(ranks)}, {check_hidden(ranks)}"


def check_nothing(bench, strategy):
    """Where every device has gradients of its own, none is summed."""
    ranks, _ = run_logged(bench, strategy, ())
    calls = [[line.calls for line in lines if line.kind == "exchange"] for lines in ranks]
    if any(line.sums() for lines in ranks for line in lines) or not calls[0] or any(own != calls[0] for own in calls):
        raise Failure(f"{calls}")
    return f"{len(calls[0])} exchanges, the same on all ranks"


def check_notes(bench):
    """No kernel is launched for an exchange that moves nothing: what notes it is a copy."""
    ranks, _ = run_logged(bench, "dp4", ("--bucket=1",))
    for lines in ranks:
        beside = [line for line in lines if line.stream != COMPUTES]
        kernels, copies, sums = ([line for line in beside if line.kind == kind] for kind in ("kernel", "copy", "exchange"))
        if kernels or len(copies) != len(sums) or len(sums) < 12 * LAYERS:
            raise Failure(f"{len(sums)} exchanges, {len(copies)} copies, {len(kernels)} kernels")
    return f"{len(sums)} exchanges"


def gathers_of(lines, name, layer):
    """The gathers of a layer's parameters in a part."""
    return [line for line in lines if line.kind == "exchange" and "all-gather" in line.calls and re.match(rf" \({name}\) at \S+ h{layer}\.", line.place)]


def attention_of(lines, name):
    """When the attention of each layer is issued in a part, in its order."""
    where = f" ({name}) at gpt.c:{1 + next(n for n, line in enumerate(GPT.read_text().splitlines()) if 'ht_attention(' in line)}"
    kernels = [line for line in lines if part(line, name) and line.place.startswith(where)]
    return [kernels[i].issued for i in range(0, len(kernels), len(kernels) // LAYERS)]


def check_ahead(bench):
    """The parameters of a layer are sent for before the attention of the one before it is issued, forward and backward, on a stream of their own; without overlap never."""
    ranks, _ = run_logged(bench, "gathers", ())
    for lines in ranks:
        for name, way in ("forward", 1), ("backward", -1):
            order = list(range(LAYERS))[::way]
            for before, layer, attention in zip(order, order[1:], attention_of(lines, name)):
                gathers = gathers_of(lines, name, layer)
                if len(gathers) < (8 if name == "forward" else 4) or any(line.stream <= EXCHANGES or line.issued > attention for line in gathers):
                    raise Failure(f"{name}: {len(gathers)} gathers of layer {layer}, of which some are not sent for before the attention of layer {before}")
    plain, _ = run_logged(bench, "gathers", ("--no-overlap",))
    beside = [line for lines in plain for line in lines if line.kind == "exchange" and line.stream > EXCHANGES]
    if beside:
        raise Failure(f"--no-overlap: {beside[0].place}: {beside[0].calls}")
    return f"{len(gathers_of(ranks[0], 'forward', 1))} gathers a layer forward, {len(gathers_of(ranks[0], 'backward', 1))} backward"


def check_losses(bench, strategy, flags, half, **environment):
    """Losses are those of one device, with buckets of any size, views and fusion switched on and off."""
    flags = (*flags, *(["-DDTYPE=HT_BF16"] if half else []))
    _, found = run_logged(bench, strategy, flags, train.STEPS, HETU_CHECK="1", **environment)
    wanted = bench.once(("losses",), lambda: plain_losses(bench))
    return f"loss {harness.compare_losses(found, wanted, 2e-2 if half else 1e-4):.1g}"


def plain_losses(bench):
    out = bench.path("plain.losses")
    harness.launch(bench.plain(GPT, FLAGS), 0, "--steps", train.STEPS, "--sample", 0, "--losses", out)
    return harness.read_losses(out)


SWITCHES = {"plain": (), "each": ("--bucket=1",), "buckets": (f"--bucket={BUCKET}",), "one": ("--bucket=1000000000",), "no-views": ("--no-views",), "no-fuse": ("--no-fuse",),
            "no-overlap": ("--no-overlap",), "chunks": ("--chunk=9000",), "no-chunks": ("--no-chunks",), "none": ("--no-views", "--no-fuse", "--no-overlap", "--no-chunks", "--bucket=1")}


def tests(bench, _):
    case = functools.partial
    yield "sums.dp4", case(check_sums, bench, "dp4")
    yield "sums.zero4", case(check_sums, bench, "zero4"), True
    yield "sums.tp4", case(check_nothing, bench, "tp4"), True
    yield "notes", case(check_notes, bench), True
    yield "ahead", case(check_ahead, bench), True
    for strategy in "dp4", "zero4", "gathers":
        for name, flags in SWITCHES.items():
            for half in False, True:
                rare = (strategy, name, half) != ("gathers", "buckets", False)
                yield f"losses.{strategy}.{name}{'.bf16' if half else ''}", case(check_losses, bench, strategy, flags, half), rare
        for half in False, True:
            for name in "buckets", "chunks", "no-overlap":
                late = case(check_losses, bench, strategy, SWITCHES[name], half, HETU_EMULATE_ORDER="late")
                yield f"losses.{strategy}.{name}.late{'.bf16' if half else ''}", late, True


if __name__ == "__main__":
    harness.Bench = emulated.Bench
    harness.main("cuda.overlap", tests, jobs=1)
