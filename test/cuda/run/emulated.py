#!/usr/bin/env python3
"""Trains programs that hetucc emitted for CUDA, compiled for the CPU (test/cuda/emulate), and compares with the one-device program.

The folder is built by its own Makefile with g++ in nvcc's place; ranks exchange through MPI and a stand-in for NCCL. Losses of AdamW are within 1e-4, of SGD within
1e-5, and parameters within 1e-4 of their change after SGD, as in test/run/train.py; those of programs in bf16 within 2e-2 of the f32 program's. What a GPU alone can
show (speed, races) is not shown here. A few strategies run always; with HETU_LONG=1 all
of them, each by both optimizers.
"""
import functools
import json
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "run"))
sys.path.insert(0, str(HERE.parent.parent / "operators"))
import harness
import pairs
import pytorch
import switches
import train
import zero
from harness import COMMON, EXAMPLES, Failure, ROOT, run

EMULATE = ROOT / "test" / "cuda" / "emulate"
SMALL = {"gpt": ["-DEMBED=32", "-DHEADS=2", "-DLAYERS=2", "-DBATCH=4", "-DSEQ=16"],
         "llama": ["-DEMBED=32", "-DLAYERS=1", "-DFFN=44", "-DBATCH=4", "-DSEQ=12"], "mlp": [], "custom": []}
ODD = ["-DEMBED=30", "-DHEADS=5", "-DVOCAB=257", "-DBATCH=6", "-DLAYERS=1", "-DSEQ=11", "-DDROPOUT=0.1f"]
SHORT = {"gpt": ["single", "dp2tp2"], "llama": ["dp2tp2"], "mlp": ["uneven"]}
train.STEPS = 6


class Bench(harness.Bench):
    """Its compiled programs are emulated ones of the CUDA backend."""

    def build_emulated(self, folder, out):
        """make, with g++ in nvcc's place and the runtime of the build tree."""
        library = self.build / "lib"
        run(["make", "-C", folder, f"PROGRAM={out}", "MPI=1", "NCCL=1", "CUDNN=0", "NVCC=g++", f"NVCCFLAGS=-x c++ -O1 -w -DHT_EMULATED -I{EMULATE}",
             "RUNTIME_OBJECTS=", "NCCL_HEADERS=", f"NCCL_LIBRARIES={library}/libhetu_nccl_stand_in.a {library}/libhetu_emulation.a",
             f"CUDA_LIBRARIES=-Wl,--whole-archive {library}/libhetu_emulated_cuda.a -Wl,--no-whole-archive"], timeout=600)

    def compiled(self, source, strategy, flags=()):
        def make():
            label = pathlib.Path(strategy).stem if strategy else "none"
            out = self.path(f"{source.stem}.{label}{''.join(flags)}")
            folder = out.with_name(out.name + ".folder")
            chosen = [f"--strategy={strategy}"] if strategy else []
            kernels = [source.with_suffix(".cu")] if source.with_suffix(".cu").exists() else []
            run([self.hetucc, "--backend=cuda", "--emit=c", *chosen, "-O1", *harness.WARNINGS, *flags, source, *kernels, *COMMON, "-o", folder, "-lm"])
            self.build_emulated(folder, out)
            shutil.rmtree(folder)
            return out
        return self.once(("emulated", source, str(strategy), tuple(flags)), make)


def cases(group):
    """(test name, example, strategy, flags, ranks) of a group."""
    if group == "odd":
        for name in ["single", "tp4", "uneven"]:
            yield f"gpt.odd.{name}", "gpt", name, ODD, 1 if name == "single" else 4
        for name in ("zero3", "turns", *(("micro", "zigzag") if harness.LONG else ())):
            yield f"gpt.odd.{name}", "gpt", str(HERE / "Inputs" / name), ODD, 2
    elif group == "custom":
        for name in ["sp4", "dp2tp2"]:
            yield f"custom.{name}", "custom", name, SMALL["custom"], 4
    else:
        for name in train.STRATEGIES if os.environ.get("HETU_LONG") else SHORT[group]:
            yield f"{group}.{name}", group, name, SMALL[group], 1 if name == "single" else 4


def check_half(bench, name, example, strategy, ranks):
    """A program in bf16 against the one-device program in f32."""
    source = EXAMPLES / example / f"{example}.c"
    losses = train.oracle(bench, source, SMALL[example], False)[0]
    found = train.trained(bench, name, program_half(bench, example, strategy), ranks, False)[0]
    return f"loss {harness.compare_losses(found, losses, 2e-2):.1g}"


def program_half(bench, example, strategy):
    return bench.compiled(EXAMPLES / example / f"{example}.c", train.strategy_of(example, strategy), tuple(SMALL[example] + ["-DDTYPE=HT_BF16"]))


def run_half(bench, ranks, strategy, **environment):
    """The losses of some steps of the GPT in bf16, and what was said on standard error."""
    losses = bench.path(f"choice.{ranks}.losses")
    p = harness.launch(program_half(bench, "gpt", strategy), ranks, "--steps", 4, "--sample", 0, "--losses", losses, env=environment)
    return harness.read_losses(losses), p.stderr


def read_ways(cache):
    """{kind: ways} of a file of HETU_CACHE."""
    heading, *lines = cache.read_text().splitlines()
    ways = {}
    for line in lines:
        place, key, way = line.split("\t")
        if place != "emulated device 0, cuBLASLt 130000":
            raise Failure(line)
        ways.setdefault(key.split()[0], []).append(int(way))
    if heading != "hetu: the fastest ways of products, 1" or set(ways) != {"algorithm", "epilogue"}:
        raise Failure(cache.read_text())
    return ways


def check_choices(bench, ranks, strategy):
    """The fastest algorithm is found in the first step and agreed on, and a later run takes it from the file without timing anything."""
    cache = bench.path(f"{strategy}.cache")
    environment = {"HETU_EMULATE_ALGORITHMS": "3:2", "HETU_CACHE": str(cache)}
    losses, said = run_half(bench, ranks, strategy, **environment)
    ways = read_ways(cache)
    if set(ways["algorithm"]) != {2} or said:
        raise Failure(f"{ways}, {said}")
    noted, known = cache.stat().st_mtime_ns, cache.read_text().splitlines()
    again, _ = run_half(bench, ranks, strategy, **environment)
    plain, _ = run_half(bench, ranks, strategy, HETU_TUNE="0")
    if cache.stat().st_mtime_ns != noted:
        raise Failure("\n".join(["what the file says was timed again:", *sorted(set(known) ^ set(cache.read_text().splitlines()))]))
    harness.compare_losses(again, losses, 2e-2)
    harness.compare_losses(plain, losses, 2e-2)
    return f"{len(ways['algorithm'])} products and {len(ways['epilogue'])} epilogues"


def check_pairs(bench, row, devices):
    """A program of several pipelines and stages; NCCL connects so many GPUs, and one serves all ranks through the host's memory."""
    os.environ["HETU_EMULATE_DEVICES"] = str(devices)
    return pairs.check(bench, row)


def check_switches(bench, names, ranks):
    """A program of several strategies that goes from one to another, without pipelines and with; losses, and an output of ht_infer. Products are tuned under each of them."""
    out, flags, source = bench.path(f"switched.{'.'.join(names)}"), ("-DWIDTH=32",), switches.SWITCHED
    folder = out.with_name(out.name + ".folder")
    chosen = [f"--strategy={file}" for file in switches.strategy_files(bench, 6, 13, 4) if file.suffixes[-2][1:] in names]
    run([bench.hetucc, "--backend=cuda", "--emit=c", *chosen, "-O1", *harness.WARNINGS, *flags, source, "-o", folder, "-lm"])
    bench.build_emulated(folder, out)
    shutil.rmtree(folder)
    way = [*names, *reversed(names)]
    cache, first = bench.path(f"{out.name}.cache"), bench.path(f"{out.name}.first.cache")
    tuning = {"HETU_EMULATE_ALGORITHMS": "3:2"}
    harness.launch(out, ranks, "losses", names[0], names[0], env={**tuning, "HETU_CACHE": str(first)})
    found = [float(word) for word in harness.launch(out, ranks, "losses", *way, env={**tuning, "HETU_CACHE": str(cache)}).stdout.split()]
    sizes, others = ({line.split("\t")[1] for line in path.read_text().splitlines()[1:]} for path in (first, cache))
    if not sizes < others:
        raise Failure(f"{names[0]} tunes {sorted(sizes)}, all strategies together {sorted(others)}")
    wanted = [float(word) for word in harness.launch(bench.plain(source, flags), 0, "losses", *way).stdout.split()]
    worst = max(abs(f - w) for f, w in zip(found[1::2], wanted[1::2], strict=True))
    if worst > 1e-4:  # of numbers of about 1
        raise Failure(f"an output of ht_infer is {worst:.2g} off")
    return f"loss {harness.compare_losses(found[::2], wanted[::2], 1e-4):.2g}, output {worst:.2g}"


# Launches of one device's step of the GPT in bf16, at most, as counted: those of a layer, 7 forward and 14 backward, and those of the norm of 28 gradients. Who makes them
# fewer lowers these.
LAUNCHES_A_LAYER, LAUNCHES_OF_NORM = 21, 1
# GPT-2 124M: what a layer of it may read and write in a step outside of products and attention, at a batch of 64, and the arena, at one of 144.
# Where the logits stand whole the arena is larger by most of them.
GPT2 = ["-DEMBED=768", "-DHEADS=12", "-DVOCAB=50257", "-DSEQ=1024", "-DDTYPE=HT_BF16"]
BYTES_A_LAYER, BYTES_OF_ARENA = 3.0e9, 47e9


def count_launches(bench, flags):
    """Launches of a step: nodes of its graph, which is the only one where nothing is sampled. Nothing is timed, which would choose epilogues by chance here."""
    program = bench.compiled(EXAMPLES / "gpt" / "gpt.c", train.strategy_of("gpt", "single"), tuple(flags))
    nodes = bench.path(f"{program.name}.nodes")
    harness.launch(program, 0, "--steps", 3, "--sample", 0, env={"HETU_EMULATE_NODES": str(nodes), "HETU_TUNE": "0"})
    count, = nodes.read_text().split()
    return int(count)


def check_launches(bench):
    """Launches a layer as the difference of two and three layers; those of the norm as the difference to a program that does not clip."""
    flags = SMALL["gpt"] + ["-DDTYPE=HT_BF16"]
    two = count_launches(bench, flags)
    layer = count_launches(bench, ["-DLAYERS=3" if flag == "-DLAYERS=2" else flag for flag in flags]) - two
    norm = two - count_launches(bench, flags + ["-DCLIP=0.0f"])
    if not 0 < layer <= LAUNCHES_A_LAYER or not 0 < norm <= LAUNCHES_OF_NORM:
        raise Failure(f"{two} launches, {layer} a layer, {norm} for the norm")
    return f"{two} launches, {layer} a layer, {norm} for the norm"


def step_costs(bench, layers, batch, *options):
    """What hetucc says that a training step of GPT-2 costs on one GPU."""
    out = bench.path(f"gpt2.{layers}.{batch}{''.join(options)}.json")
    run([bench.hetucc, "--backend=cuda", "--emit=cost-json", f"--strategy={train.strategy_of('gpt', 'single')}", *GPT2, f"-DLAYERS={layers}", f"-DBATCH={batch}", *options,
         EXAMPLES / "gpt" / "gpt.c", "-o", out])
    model, = (model for model in json.loads(out.read_text())["models"] if model["kind"] == "train")
    return model["roles"][0]


def light_bytes(costs):
    """Bytes that operators forward and backward touch, products and attention aside."""
    return sum(op["bytes"] for op in costs["operators"] if op["section"] != "update" and not op["product"] and "attention" not in op["operator"])


def arena_bytes(costs):
    return sum(bytes or 0 for kind, bytes in costs["memory"].items() if kind in ("gradients", "activations", "temporaries", "scratch", "gaps"))


def check_bytes(bench):
    """A layer reads and writes what the closed form says: two norms of sums forward and backward touch four tensors each, backward of GELU three of four times the size, and
    each number of a parameter is read in f32 and written in bf16. Slices of q, k, v and the row of their gradients cost nothing, and did."""
    three, two = (step_costs(bench, layers, 64) for layers in (3, 2))
    layer, tensor = light_bytes(three) - light_bytes(two), 64 * 1024 * 768 * 2
    closed = (2 * 4 + 2 * 4 + 3 * 4) * tensor + 12 * 768 * 768 * 6
    copied = light_bytes(step_costs(bench, 3, 64, "--no-views")) - light_bytes(step_costs(bench, 2, 64, "--no-views")) - layer
    arena, whole = arena_bytes(step_costs(bench, 12, 144)), arena_bytes(step_costs(bench, 12, 144, "--no-chunks"))
    logits = 144 * 1024 * 50257 * 2
    if abs(layer - closed) > 0.01 * closed or layer > BYTES_A_LAYER or abs(copied - 12 * tensor) > 0.01 * closed or arena > BYTES_OF_ARENA or whole - arena < 0.8 * logits:
        raise Failure(f"{layer / 1e9:.3f} GB a layer, {closed / 1e9:.3f} by the closed form; {copied / 1e9:.3f} GB of copies; arenas of {arena / 1e9:.2f} and {whole / 1e9:.2f} GB")
    return f"{layer / 1e9:.3f} GB a layer, {closed / 1e9:.3f} by the closed form, {copied / 1e9:.3f} more with copies; an arena of {arena / 1e9:.2f} GB at a batch of 144, \
{whole / 1e9:.2f} with whole logits"


# A model of GPT-2's shape, in which a tensor is some pages long.
SHAPE = {"EMBED": 128, "HEADS": 2, "VOCAB": 256, "SEQ": 256, "BATCH": 4}
SLACK = 0.05  # of what is counted: pages that tensors share, and a number a row of norms


def touched_bytes(bench, layers, *options):
    """Bytes that launches of the last step read and write forward and backward, products and attention aside, as the emulation sees them: whole pages."""
    gpt = EXAMPLES / "gpt" / "gpt.c"
    program = bench.compiled(gpt, train.strategy_of("gpt", "single"), (*(f"-D{name}={value}" for name, value in SHAPE.items()), f"-DLAYERS={layers}", "-DDTYPE=HT_BF16", *options))
    log = bench.path(f"{program.name}.log")
    harness.launch(program, 0, "--steps", 3, "--sample", 0, env={"HETU_EMULATE_LOG": str(log), "HETU_EMULATE_TRAFFIC": "1", "HETU_TUNE": "0", "HETU_CHECK": "0"})
    written, = [path for path in log.parent.glob(log.name + ".*") if "graph\t" in path.read_text()]
    lines = [line.split("\t") for line in written.read_text().splitlines()]
    attention = 1 + next(n for n, line in enumerate(gpt.read_text().splitlines()) if "ht_attention(" in line)
    total = 0
    for kind, _, _, _, _, place, what, *_ in lines[max(i for i, line in enumerate(lines) if line[0] == "graph") + 1:]:
        read, wrote, name = what.split()
        if place.startswith((" (forward)", " (backward)")) and name == "kernel" and not place.endswith(f"gpt.c:{attention}"):
            total += int(read) + int(wrote)
    return total


def check_touched(bench):
    """What launches touch is what the closed form of check_bytes says, which is at most BYTES_A_LAYER for GPT-2; without views copies come on top, of rows that share pages."""
    closed = lambda rows, width: 28 * rows * width * 2 + 12 * width * width * 6
    layer = touched_bytes(bench, 3) - touched_bytes(bench, 2)
    copied = touched_bytes(bench, 3, "--no-views") - touched_bytes(bench, 2, "--no-views") - layer
    rows, width = SHAPE["BATCH"] * SHAPE["SEQ"], SHAPE["EMBED"]
    wanted, copies = closed(rows, width), 12 * rows * width * 2
    if abs(layer - wanted) > SLACK * wanted or copied < copies or closed(64 * 1024, 768) > BYTES_A_LAYER:
        raise Failure(f"{layer} bytes a layer instead of {wanted}, {copied} of copies instead of {copies}; {closed(64 * 1024, 768)} for GPT-2")
    return f"{layer} bytes a layer, {wanted} by the closed form; {copied} more with copies; {closed(64 * 1024, 768) / 1e9:.2f} GB for GPT-2"


def check_switched_off(bench, flags):
    """The losses of the same model without views, or with every operator by itself."""
    source = EXAMPLES / "gpt" / "gpt.c"
    program = bench.compiled(source, train.strategy_of("gpt", "single"), tuple(SMALL["gpt"] + ["-DDTYPE=HT_BF16", *flags]))
    losses = bench.path(f"off{''.join(flags)}.losses")
    harness.launch(program, 0, "--steps", 4, "--sample", 0, "--losses", losses)
    wanted, _ = run_half(bench, 0, "single")
    return f"loss {harness.compare_losses(harness.read_losses(losses), wanted, 2e-2):.1g}"


def check_bad_cache(bench):
    cache = bench.path("bad.cache")
    cache.write_text("hetu: the fastest ways of products, 1\nsomething else\n")
    p = harness.launch(program_half(bench, "gpt", "single"), 0, "--steps", 1, "--sample", 0, env={"HETU_CACHE": str(cache)}, check=False)
    if p.returncode != 1 or "is no file of a program's choices; remove it, or name another" not in p.stderr:
        raise Failure(f"exit {p.returncode}: {p.stderr}")
    return p.stderr.strip()


def check_missing(bench):
    """Where cuBLASLt has no algorithm, a kernel computes products, and that is said once."""
    losses, said = run_half(bench, 0, "single", HETU_EMULATE_ALGORITHMS="0:0")
    wanted, _ = run_half(bench, 0, "single")
    harness.compare_losses(losses, wanted, 2e-2)
    if said.count("\n") != 1 or not said.startswith("hetu: cuBLASLt has no algorithm for a product with a result of "):
        raise Failure(said)
    return said.strip()


def run_attention(bench, example, flags, ranks, strategy, **environment):
    """The losses of some steps in bf16, what was said, and how often cuDNN served."""
    program = bench.compiled(EXAMPLES / example / f"{example}.c", train.strategy_of(example, strategy), tuple([*SMALL[example], "-DDTYPE=HT_BF16", *flags]))
    losses, runs = bench.path(f"{program.name}.losses"), bench.path(f"{program.name}.runs")
    runs.write_text("")
    p = harness.launch(program, ranks, "--steps", 4, "--sample", 0, "--losses", losses, env={"HETU_EMULATE_CUDNN_RUNS": str(runs), **environment})
    return harness.read_losses(losses), p.stderr, len(runs.read_text().splitlines())


def check_attention(bench, example, flags, ranks, strategy):
    """cuDNN's attention gives the losses of our kernels; it is the default where the compute capability is 9.0 or more."""
    own, _, none = run_attention(bench, example, flags, ranks, strategy, HETU_EMULATE_MAJOR="9", HETU_ATTENTION="own")
    for environment in ({"HETU_ATTENTION": "cudnn"}, {"HETU_EMULATE_MAJOR": "9"}):
        found, said, runs = run_attention(bench, example, flags, ranks, strategy, **environment)
        if none or not runs or said:
            raise Failure(f"{environment}: {none} runs of cuDNN with our kernels, {runs} without; {said}")
        worst = harness.compare_losses(found, own, 2e-3)
    return f"loss {worst:.1g}, {runs} runs"


def check_no_attention(bench):
    """Where cuDNN has no engine, our kernels compute attention, and that is said once."""
    own, _, _ = run_attention(bench, "gpt", (), 0, "single")
    found, said, runs = run_attention(bench, "gpt", (), 0, "single", HETU_ATTENTION="cudnn", HETU_EMULATE_CUDNN="none")
    if runs or found != own or said.count("\n") != 1 or not said.startswith("hetu: cuDNN does not serve attention here, and slower kernels do: no engine serves this graph"):
        raise Failure(f"{runs} runs, {said}")
    return said.strip()


def check_bad_attention(bench):
    p = harness.launch(program_half(bench, "gpt", "single"), 0, "--steps", 1, "--sample", 0, env={"HETU_ATTENTION": "fast"}, check=False)
    if p.returncode != 1 or "HETU_ATTENTION=fast: it is own or cudnn" not in p.stderr:
        raise Failure(f"exit {p.returncode}: {p.stderr}")
    return p.stderr.strip()


def check_lines(bench, name, lines):
    """A program of Inputs that prints so many lines: both back ends print the same."""
    source = HERE / "Inputs" / f"{name}.c"
    plain = bench.path(f"{name}.cpu")
    run([bench.hetucc, "-O1", *harness.WARNINGS, source, "-o", plain])
    found, wanted = run([bench.compiled(source, None)]).stdout, run([plain]).stdout
    if found != wanted or len(wanted.splitlines()) != lines:
        raise Failure(f"{found}\ninstead of\n{wanted}")
    return f"{lines} lines"


def check_extremes(bench, flags):
    """Operators at zeros, huge numbers, infinities and NaN, against the table of what PyTorch gives."""
    operators = ROOT / "test" / "operators"
    p = run([bench.compiled(operators / "extremes.c", None, flags), operators / "extremes.txt"], check=False)
    if p.returncode:
        raise Failure((p.stdout + p.stderr)[:3000])
    return p.stdout.splitlines()[-1]


def check_pytorch(bench, group):
    """Operators against PyTorch's numbers."""
    source = bench.path(f"{group}.c")
    cases = pytorch.cases_of(group)
    source.write_text(pytorch.program_text(cases, ""))
    return pytorch.compare(cases, run([bench.compiled(source, None)]).stdout, 1e-5)


def tests(bench, a):
    harness.MEETS = a.group != "gpt"  # which stays with MPI
    if a.group == "pytorch":
        for group in pytorch.GROUPS:
            yield group, functools.partial(check_pytorch, bench, group)
        return
    if a.group == "half":
        for example in ("gpt", "llama"):
            for strategy, ranks in (("single", 1), ("dp2tp2", 4)):
                name = f"{example}.half.{strategy}"
                yield name, functools.partial(check_half, bench, name, example, strategy, ranks), (example == "gpt") == (strategy == "dp2tp2")
        turns = str(HERE / "Inputs" / "turns")
        yield "gpt.half.turns", functools.partial(check_half, bench, "gpt.half.turns", "gpt", turns, 2)
        yield "gpt.half.zigzag", functools.partial(check_half, bench, "gpt.half.zigzag", "gpt", str(HERE / "Inputs" / "zigzag"), 2)
        for strategy, ranks in (("single", 1), ("dp2tp2", 4)):
            yield f"choices.{strategy}", functools.partial(check_choices, bench, ranks, strategy)
        yield "choices.bad-cache", functools.partial(check_bad_cache, bench)
        yield "launches", functools.partial(check_launches, bench)
        yield "bytes", functools.partial(check_bytes, bench)
        yield "touched", functools.partial(check_touched, bench), True
        yield "no-views", functools.partial(check_switched_off, bench, ("--no-views",))
        yield "no-fuse", functools.partial(check_switched_off, bench, ("--no-fuse",)), True
        yield "choices.missing", functools.partial(check_missing, bench)
        yield "attention.gpt", functools.partial(check_attention, bench, "gpt", (), 0, "single")
        yield "attention.gpt.dp2tp2", functools.partial(check_attention, bench, "gpt", (), 4, "dp2tp2"), True
        yield "attention.llama", functools.partial(check_attention, bench, "llama", (), 4, "dp2tp2")
        yield "attention.none", functools.partial(check_no_attention, bench)
        yield "attention.bad", functools.partial(check_bad_attention, bench)
        return
    if a.group == "switches":
        yield "copies", functools.partial(check_switches, bench, ("dp4", "one", "zero1"), 5)
        yield "stages", functools.partial(check_switches, bench, ("twice", "tp4", "zero3"), 8)
        return
    if a.group == "pipelines":
        for row, devices in zip(pairs.halves(), (1, 8, 1, 8, 1, 8)):
            if os.environ.get("HETU_LONG") or row.case == "a":
                yield row.name(), functools.partial(check_pairs, bench, row, devices)
            if os.environ.get("HETU_LONG"):
                yield f"{row.name()}.bf16", functools.partial(pairs.check_half, bench, row)
        return
    if a.group == "odd":
        yield "types", functools.partial(check_lines, bench, "types", 30)  # sums in every element type
        yield "session", functools.partial(check_lines, bench, "session", 6)
        yield "zero2", functools.partial(zero.check_corners, bench, 2, "data", ())
        yield "extremes", functools.partial(check_extremes, bench, ())
        yield "extremes.alone", functools.partial(check_extremes, bench, ("--no-fuse",))
    for name, *case in cases(a.group):
        both = os.environ.get("HETU_LONG") or case[1] == "single"
        for sgd in (False, True) if both else (False,):
            yield f"{name}.{'sgd' if sgd else 'adamw'}", functools.partial(train.check, bench, name, *case, sgd)


if __name__ == "__main__":
    harness.Bench = Bench
    harness.main(lambda a: f"cuda.{a.group}", tests, lambda a: a.add_argument("--group", default="gpt", help="gpt, llama, mlp, custom, odd, half, switches, pipelines or pytorch"))
