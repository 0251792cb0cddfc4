#!/usr/bin/env python3
"""Compares the bytes received in a step, which pmpi.c counts from the MPI calls, with textbook formulas.

Runs of different lengths give the bytes of a step without those of the start and the end. --fixed feeds the inputs once. Messages of at most 128 bytes (the loss,
commands to the ranks) are counted apart. Bytes are summed over the ranks: in an all-reduce of B bytes among n ranks, each receives 2(n-1)/n B, together 2(n-1) B.
"""
import functools

import harness
from harness import EXAMPLES, Failure, launch

GPT = EXAMPLES / "gpt" / "gpt.c"
EMBED, LAYERS, BATCH, SEQ, VOCAB, N = 64, 3, 6, 20, 250, 4
FLAGS = (f"-DEMBED={EMBED}", f"-DLAYERS={LAYERS}", f"-DBATCH={BATCH}", f"-DSEQ={SEQ}", f"-DVOCAB={VOCAB}", "-DCLIP=0")
ONE_SIDED = ("MPI_Put", "MPI_Get", "MPI_Win")


def parameters():
    """The number of the model's weights."""
    block = 12 * EMBED * EMBED + 13 * EMBED
    return VOCAB * EMBED + SEQ * EMBED + LAYERS * block + 2 * EMBED


def textbook(strategy):
    """Bytes that all ranks together receive in a step."""
    weights, activation, rows = 4 * parameters(), 4 * BATCH * SEQ * EMBED, 4 * BATCH * SEQ
    if strategy == "dp4":
        return 2 * (N - 1) * (weights + 4)  # all-reduce of the gradients, and of the loss, which goes with some of them
    if strategy == "zero4":
        return 2 * (N - 1) * weights  # reduce-scatter of the gradients and all-gather of the weights
    layers = 2 * 2 * LAYERS * activation   # Megatron: two all-reduces a layer and direction
    vocabulary = 2 * activation + 3 * rows  # the cut table's rows, the gradient at the head; the loss's maximum, sum and hit
    return 2 * (N - 1) * (layers + vocabulary)


def counted(bench, program, steps, label):
    """{call: bytes} over all ranks of a run; small messages left out."""
    out = bench.path(f"{label}.{steps}.pmpi")
    launch(program, N, "--steps", steps, "--fixed", "--sample", 0, "--rate", "0.001", meets=False, preload=bench.build / "lib" / "pmpi.so",
           env={"PMPI_OUT": str(out), "PMPI_SMALL": "128", "HETU_CHECK": "0"})
    found = {}
    for path in out.parent.glob(out.name + ".*"):
        for line in path.read_text().splitlines():
            call, _, size = line.split("\t")
            if call.startswith(ONE_SIDED):
                raise Failure(f"{call} was called")
            if not call.endswith(" small"):
                found[call] = found.get(call, 0) + float(size)
    return found


def step_bytes(bench, strategy):
    program = bench.compiled(GPT, EXAMPLES / "gpt" / "strategies" / f"{strategy}.strategy", (*FLAGS, "--bucket=100000"))
    short, long = counted(bench, program, 2, strategy), counted(bench, program, 7, strategy)
    return {call: (long[call] - short.get(call, 0)) / 5 for call in long}


def check(bench, strategy):
    found, wanted = step_bytes(bench, strategy), textbook(strategy)
    total = sum(found.values())
    if abs(total - wanted) > 1e-9 * wanted:
        raise Failure(f"{total:.0f} bytes a step, not {wanted}: {({c: round(b) for c, b in found.items() if b})}")
    return f"{total:.0f} bytes"


SMALL = ("-DEMBED=16", f"-DLAYERS={LAYERS}", "-DBATCH=8", f"-DSEQ={SEQ}", "-DCLIP=0")  # no tensor is so large that it is not packed


def messages(bench, bucket):
    """(sums of gradients, messages that all ranks receive) in a step of dp4."""
    strategy, flags = EXAMPLES / "gpt" / "strategies" / "dp4.strategy", (*SMALL, f"--bucket={bucket}")
    program, folder = bench.compiled(GPT, strategy, flags), bench.path(f"messages.{bucket}")
    harness.run([bench.hetucc, "--emit=c", f"--strategy={strategy}", *flags, GPT, "-o", folder])
    received = []
    for steps in 2, 7:
        out = bench.path(f"messages.{bucket}.{steps}.pmpi")
        launch(program, N, "--steps", steps, "--fixed", "--sample", 0, "--rate", "0.001", meets=False, preload=bench.build / "lib" / "pmpi.so", env={"PMPI_OUT": str(out), "HETU_CHECK": "0"})
        lines = [line.split("\t") for path in out.parent.glob(out.name + ".*") for line in path.read_text().splitlines()]
        received.append(sum(int(times) for call, times, _ in lines if call == "MPI_Irecv"))
    return (folder / "gpt.image.c").read_text().count("HT_QUEUE_GRADIENTS"), (received[1] - received[0]) / 5


def check_messages(bench):
    """A bucket takes the messages that one parameter takes by itself: in two rounds each rank gets one from each other rank. The loss alone goes to one rank and back."""
    (alone, each), (buckets, some), (whole, once) = (messages(bench, bucket) for bucket in (1, 10000, 1000000000))
    one, loss = 2 * N * (N - 1), 2 * (N - 1)
    if alone < 12 * LAYERS or not whole == 1 < buckets < alone / 4 or (each, some, once) != ((alone - 1) * one + loss, buckets * one, one):
        raise Failure(f"{each} messages for {alone} sums, {some} for {buckets}, {once} for {whole}")
    return f"{each:.0f} messages for {alone - 1} parameters and the loss, {some:.0f} in {buckets} buckets"


def tests(bench, _):
    yield "messages.dp4", functools.partial(check_messages, bench)
    for strategy in ("dp4", "tp4", "zero4"):
        yield f"traffic.{strategy}", functools.partial(check, bench, strategy)


if __name__ == "__main__":
    harness.main("run.traffic", tests)
