#!/usr/bin/env python3
"""Logits that never stand whole: what reads them is computed by chunks of rows, forward and backward, on the CPU and on emulated GPUs.

Losses, and parameters after SGD, are those of the one-device program, as in test/run/train.py; in bf16 losses are within 2e-2 of it. The intermediate representation has no value of
the logits' size, and with --no-chunks it has.
"""
import functools
import os
import re
import subprocess

import emulated
import harness
import train
from harness import EXAMPLES, Failure, run

CHUNK = 9000  # bytes; the logits of a device take more in every case
BENCH = {"cpu": harness.Bench, "cuda": emulated.Bench}
FLAGS = {"gpt": ["-DEMBED=32", "-DHEADS=2", "-DLAYERS=2", "-DBATCH=12", "-DSEQ=16"], "llama": ["-DEMBED=32", "-DLAYERS=1", "-DFFN=44", "-DBATCH=8", "-DSEQ=12"]}
CLASSES = emulated.HERE / "Inputs" / "classes.c"
SMALL = 4000  # bytes, where its logits have 24768


def strategy_of(example, name):
    return emulated.HERE / "Inputs" / f"{name}.strategy" if name in ("micro", "zero3", "turns", "zigzag") else train.strategy_of(example, name)


def compiled(bench, backend, source, strategy, flags):
    return BENCH[backend].compiled(bench, source, strategy, (*flags, f"-DON_{backend}"))


def representation(bench, source, flags, strategy):
    chosen = [f"--strategy={strategy}"] if strategy else []
    out = bench.path("chunks." + re.sub(r"\W+", "", "".join(map(str, [source.stem, strategy, *flags]))) + ".ir")
    run([bench.hetucc, "--emit=ir", "--stop-after=chunk", *chosen, *flags, source, *harness.COMMON, "-o", out])
    return out.read_text()


def largest(text):
    """Elements of the largest value that an operator of the program that trains makes, and how many chunks there are."""
    text = text[text.index(" train "):]
    text = text[:text.index("\nmodule ")] if "\nmodule " in text else text
    most = 0
    for line in text.splitlines():
        if re.match(r"  %\d+.* = ", line):
            for extents in re.findall(r"\b(?:f32|bf16)\[([\d, ]*)\]", line):
                elements = 1
                for extent in filter(None, extents.split(", ")):
                    elements *= int(extent)
                most = max(most, elements)
    return most, max((int(number) for number in re.findall(r" chunk (\d+)(?: |$)", text)), default=0)


def check(bench, backend, name, example, strategy, ranks, sgd, flags=()):
    source, file, flags = EXAMPLES / example / f"{example}.c", strategy_of(example, strategy), [*FLAGS[example], *flags]
    most, chunks = largest(representation(bench, source, (*flags, f"--chunk={CHUNK}"), file))
    whole, none = largest(representation(bench, source, (*flags, "--no-chunks", f"--chunk={CHUNK}"), file))
    if chunks < 2 or none or most >= whole:
        raise Failure(f"{chunks} chunks, values of {most} elements instead of {whole}; without them {none}")
    losses, parameters, initial = train.oracle(bench, source, flags, sgd)
    program = compiled(bench, backend, source, file, (*flags, *train.optimizer_flags(sgd), f"--chunk={CHUNK}"))
    found, after = train.trained(bench, f"chunks.{name}", program, ranks, sgd)
    loss = harness.compare_losses(found, losses, 1e-5 if sgd else 1e-4)
    error = harness.compare_parameters(after, parameters, initial, 1e-4) if sgd else 0
    return f"{chunks} chunks, loss {loss:.1g}, parameters {error:.1g}"


def check_half(bench, example, strategy, ranks, flags):
    """bf16 on an emulated GPU, beside the f32 program on one device."""
    source = EXAMPLES / example / f"{example}.c"
    wanted = train.oracle(bench, source, FLAGS[example], False)[0]
    program = bench.compiled(source, strategy_of(example, strategy), tuple([*FLAGS[example], "-DDTYPE=HT_BF16", f"--chunk={CHUNK}", *flags]))
    found, _ = train.trained(bench, f"chunks.half.{example}.{strategy}{''.join(flags)}", program, ranks, False)
    return f"loss {harness.compare_losses(found, wanted, 2e-2):.1g}"


def check_classes(bench, backend, strategy):
    """A loss of many operators on rows; what hetucc's program prints is what the one-device program does."""
    file = bench.path(f"classes.{strategy.replace(':', '')}.strategy")
    file.write_text(strategy)
    program = compiled(bench, backend, CLASSES, file, (f"--chunk={SMALL}",))
    ranks = 1 if "devices(0)" in strategy else 2
    found = [float(line) for line in harness.launch(program, ranks).stdout.split()]
    wanted = [float(line) for line in harness.launch(bench.plain(CLASSES, ()), 0).stdout.split()]
    most, chunks = largest(representation(bench, CLASSES, (f"--chunk={SMALL}",), file))
    if chunks < 2 or len(found) != 8 or most >= 4 * 12 * 129:
        raise Failure(f"{chunks} chunks, values of {most} elements, {found}")
    return f"{chunks} chunks, loss {harness.compare_losses(found, wanted, 1e-5):.1g}"


def measured(program):
    """(seconds of the processor, peak bytes) of two steps on one thread."""
    with subprocess.Popen([program, "--steps", "2", "--fixed", "--sample", "0"], stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}) as p:
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise Failure(f"{program}: exit {p.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def check_speed(bench):
    """Logits of 1.6 GB on the CPU, by chunks unless options say otherwise: as fast as whole ones, and with less memory by most of a half. Runs alternate; least times count."""
    harness.OPTIMISED = "-O2"
    flags = ("-DVOCAB=50304", "-DEMBED=64", "-DHEADS=2", "-DLAYERS=1", "-DBATCH=64", "-DSEQ=128")
    programs = [compiled(bench, "cpu", EXAMPLES / "gpt" / "gpt.c", train.strategy_of("gpt", "single"), (*flags, *own)) for own in ((), ("--no-chunks",))]
    found = [[measured(program) for program in programs] for _ in range(3)]
    seconds = [min(run[i][0] for run in found) for i in (0, 1)]
    memory = [max(run[i][1] for run in found) for i in (0, 1)]
    logits = 64 * 128 * 50304 * 4
    if seconds[0] > 1.05 * seconds[1] or memory[1] - memory[0] < 0.4 * logits:
        raise Failure(f"{seconds[0]:.2f} s and {memory[0] / 1e9:.2f} GB instead of {seconds[1]:.2f} s and {memory[1] / 1e9:.2f} GB")
    return f"{seconds[0]:.2f} s and {memory[0] / 1e9:.2f} GB instead of {seconds[1]:.2f} s and {memory[1] / 1e9:.2f} GB"


def check_wrong_target(bench):
    """A target that is no class is named by its place among all rows."""
    source = bench.path("wrong.c")
    source.write_text(CLASSES.read_text().replace("ht_feed(\"x\", x)", "(target[41] = 199, ht_feed(\"x\", x))"))
    said = []
    for program in bench.plain(source, ()), compiled(bench, "cpu", source, None, (f"--chunk={SMALL}",)):
        p = harness.launch(program, 0, check=False)
        said.append(re.findall(r"target 199 at element \d+ is outside the 129 classes", p.stderr))
    if not said[0] or said[0] != said[1]:
        raise Failure(f"{said}")
    return said[0][0]


def check_none(bench, strategy):
    """Where devices cut the sequence and micro-batches the batch, nothing is left that could be."""
    most, chunks = largest(representation(bench, EXAMPLES / "gpt" / "gpt.c", (*FLAGS["gpt"], f"--chunk={CHUNK}"), strategy_of("gpt", strategy)))
    if chunks:
        raise Failure(f"{chunks} chunks")
    return f"values of {most} elements"


def check_resumed(bench):
    """What is read back from text knows its places, too: the same C is emitted."""
    source, strategy, flags = EXAMPLES / "gpt" / "gpt.c", strategy_of("gpt", "dp2tp2"), [*FLAGS["gpt"], f"--chunk={CHUNK}"]
    text, folders = bench.path("resumed.ir"), [bench.path("resumed"), bench.path("whole")]
    command = [bench.hetucc, f"--strategy={strategy}", *flags, source, *harness.COMMON, "-lm"]
    run([*command, "--emit=ir", "--stop-after=propagate_layouts", "-o", text])
    for folder, more in zip(folders, ([f"--resume={text}"], [])):
        run([*command, "--emit=c", *more, "-o", folder])
    tables = [re.findall(r"piece_\w+\[\] = .*", (folder / "gpt.image.c").read_text()) for folder in folders]
    if tables[0] != tables[1] or not tables[0]:
        raise Failure(f"{tables[0]}\ninstead of\n{tables[1]}")
    return f"{len(tables[0])} tables of places"


# With two heads on four devices some have none: what they have in common they compute alike all the same.
CASES = [("gpt", "single", 1), ("gpt", "dp4", 4), ("gpt", "tp4", 4), ("gpt", "dp2tp2", 4), ("gpt", "dp2tp2sp", 4), ("gpt", "zero4", 4), ("gpt", "uneven", 4), ("gpt", "micro", 2),
         ("gpt", "zero3", 2), ("llama", "single", 1), ("llama", "tp4", 4), ("llama", "dp2tp2sp", 4)]
ALWAYS = {("cuda", "gpt", "tp4", True), ("cpu", "gpt", "micro", True)}


def tests(bench, _):
    case = functools.partial
    for backend in BENCH:
        for example, strategy, ranks in CASES:
            for sgd in False, True:
                name = f"{backend}.{example}.{strategy}.{'sgd' if sgd else 'adamw'}"
                yield name, case(check, bench, backend, name, example, strategy, ranks, sgd), (backend, example, strategy, sgd) not in ALWAYS
    for backend in BENCH:
        yield f"{backend}.classes", case(check_classes, bench, backend, "stage devices(0)\n"), backend == "cuda"
        yield f"{backend}.classes.dp2", case(check_classes, bench, backend, "split batch:dp\nstage devices(0,1) mesh(dp:2)\n"), True
        yield f"{backend}.classes.tp2", case(check_classes, bench, backend, "split vocab:tp\nstage devices(0,1) mesh(tp:2)\n"), True
    for strategy in "turns", "zigzag":
        yield f"none.{strategy}", case(check_none, bench, strategy), strategy == "zigzag"
    yield "target", case(check_wrong_target, bench)
    yield "resumed", case(check_resumed, bench)
    yield "speed", case(check_speed, bench), True
    for flags in (), ("--no-views",), ("--no-fuse",), ("--no-overlap",):
        yield f"half.single{''.join(flags)}", case(check_half, bench, "gpt", "single", 0, flags), bool(flags)
        yield f"half.dp2tp2{''.join(flags)}", case(check_half, bench, "gpt", "dp2tp2", 4, flags), True


if __name__ == "__main__":
    harness.Bench = emulated.Bench
    harness.MEETS = True
    harness.main("cuda.chunks", tests, jobs=1)
