#!/usr/bin/env python3
"""Builds and runs everything in a folder that prepare.py made, on a machine with a GPU, and prints a table: what, found, wanted.

    check.sh [--only PATTERN] [--out FOLDER] [--build FOLDER] [--seconds N] [--no-torch] [--make VARIABLE=VALUE ...]

What matters most comes first: kernels against the CPU's, losses, speed, PyTorch's speed, several ranks, NCCL, the sanitizers. Needs nvcc, make, a C and C++ compiler
and Python; NCCL, MPI, compute-sanitizer and PyTorch are used where they are. What cannot be run, or what the time did not reach, is "not shown"; the exit status is 1 when
something is wrong. The output folder gets results.json, logs.tar.gz and sass.txt; objects go to the build folder, outside of the folder that was carried.
"""
import argparse
import contextlib
import glob
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
START = time.monotonic()
LEAST = 5     # seconds that must be left for a row to begin
STEADY = 10   # steps before a speed is measured
CLOSE = 50    # steps whose losses are compared one by one
LONG = 150    # seconds that a row may take unless it says otherwise
MEMORY_BOUND = {"adamw": 0.8, "layer_norm": 0.8, "rms_norm": 0.8}  # share of a copy's rate, by the beginning of the kernel's name
ATTENTION, PYTORCH = 0.5, 0.9                                       # shares of PyTorch's speed


class Skip(Exception):
    pass


class Wrong(Exception):
    pass


# ---- time, and processes that end with it ----

class Clock:
    """When all must have ended."""
    seconds = 540

    @classmethod
    def left(cls):
        return START + cls.seconds - time.monotonic()


def end_group(process):
    """Ends a process that began a session of its own, with all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait(process, limit):
    """Its exit status. After `limit` seconds, or when the time for all is up, the whole group is ended."""
    allowed = min(limit, Clock.left())
    try:
        return process.wait(timeout=max(allowed, 0.1))
    except subprocess.TimeoutExpired:
        if allowed < limit:
            raise Skip("the time was up") from None
        raise Wrong(f"did not end in {limit} s") from None
    finally:
        end_group(process)


# ---- the table ----

class Table:
    def __init__(self, out):
        self.rows, self.out, self.gpu = [], out, None

    def add(self, what, found, wanted, verdict, began=None):
        now = time.monotonic()
        self.rows.append({"what": what, "found": found, "wanted": wanted, "verdict": verdict, "seconds": round(now - (began or now), 1)})
        print(f"{now - START:5.0f} s  {verdict:9} {what:44} {found:34} {wanted}", flush=True)
        self.write()

    def test(self, what, wanted, function):
        """Runs function(): what it found, as text; Wrong and Skip are verdicts. Whatever goes wrong, the rest is run."""
        began = time.monotonic()
        try:
            if Clock.left() < LEAST:
                raise Skip("the time was up")
            self.add(what, function() or "", wanted, "ok", began)
        except Skip as e:
            self.add(what, str(e), wanted, "not shown", began)
        except Exception as e:  # noqa: BLE001
            name = "" if isinstance(e, Wrong) else f"{type(e).__name__}: "
            self.add(what, name + (str(e).splitlines() or [""])[0], wanted, "WRONG", began)

    def share(self, what, found, share, wanted):
        self.add(what, found, f">= {wanted}", "ok" if share >= wanted else "WRONG")

    def counts(self):
        return {v: sum(r["verdict"] == v for r in self.rows) for v in ("ok", "WRONG", "not shown")}

    def write(self):
        """All that is known so far; what ends this process takes nothing away."""
        result = {"gpu": self.gpu, "seconds": round(time.monotonic() - START, 1), **self.counts(), "rows": self.rows}
        fresh = self.out / "results.json.new"
        fresh.write_text(json.dumps(result, indent=1) + "\n")
        fresh.rename(self.out / "results.json")

    def close(self):
        count = self.counts()
        print(f"{count['ok']} ok, {count['WRONG']} wrong, {count['not shown']} not shown, in {time.monotonic() - START:.0f} s")
        return count["WRONG"] > 0


class Place:
    """Where things are: objects and programs, logs, results."""

    def __init__(self, a):
        self.build = pathlib.Path(a.build or pathlib.Path(tempfile.gettempdir()) / f"hetu-gpu-{hashlib.sha1(str(HERE).encode()).hexdigest()[:8]}").resolve()
        self.out = pathlib.Path(a.out or os.environ.get("OUT") or HERE / "out").resolve()
        self.log = self.build / "log"
        shutil.rmtree(self.log, ignore_errors=True)
        for folder in (self.build, self.out, self.log):
            folder.mkdir(parents=True, exist_ok=True)

    def program(self, name):
        """A program that was built."""
        path = self.build / name / "program" if (HERE / "programs" / name).exists() else self.build / name
        if not path.exists():
            raise Skip(f"{name} was not built")
        return path

    def pack(self):
        with tarfile.open(self.out / "logs.tar.gz", "w:gz") as tar:
            tar.add(self.log, "log")


def last_line(path):
    return (path.read_text(errors="replace").splitlines() or ["no output"])[-1]


def run(place, name, command, env=None, check=True, limit=LONG):
    """Runs a command; its output goes to log/NAME and comes back."""
    log = place.log / f"{name}.log"
    with open(log, "w") as out:
        status = wait(subprocess.Popen([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, cwd=HERE,
                                       start_new_session=True), limit)
    if check and status:
        raise Wrong(f"exit {status}: {last_line(log)} (log/{log.name})")
    return log.read_text(errors="replace")


def tool(name):
    """A tool of CUDA, which need not be in PATH; None: there is none."""
    places = [os.path.dirname(os.path.realpath(shutil.which("nvcc") or "")), *glob.glob("/usr/local/cuda*/bin"), *glob.glob("/usr/local/cuda*/compute-sanitizer")]
    return shutil.which(name) or next((found for place in places if (found := shutil.which(name, path=place))), None)


# ---- building ----

SASS = ["kernels", "attention", "attention_backward"]


def makefile(place, needs, specs):
    """One make builds what is needed, the runtime once. A program gets what those of several ranks need, so that they share the runtime's objects."""
    any_program = specs[0]["name"]
    runtime = f"RUNTIME_BUILD={place.build}/runtime"
    twins = sorted(place.build / n for n in needs if n.startswith("twins/"))
    nvcc = "$(NVCC) -std=c++20 -O3 $(if $(ARCH),-arch=$(firstword $(ARCH)),-arch=native) -Isources/include -Isources/runtime"
    rules = {"runtime": ("", f"+$(MAKE) -C programs/{any_program} {runtime} runtime")}
    for name in needs:
        if name == "steps":
            rules["steps.o"] = ("", f"{nvcc} -Isources/runtime/operators -c sources/test/cuda/exchange/steps.cu -o {place.build}/steps.o")
            rules[name] = ("runtime steps.o", f"+$(MAKE) -C programs/{any_program} {runtime} PROGRAM_OBJECTS={place.build}/steps.o PROGRAM={place.build}/steps")
        elif name == "sass":
            sources = [f"programs/{spec['name']}/{spec['example']}.kernels.cu" for spec in specs if spec["check"] == "speed"][:1]
            sources += [f"sources/runtime/cuda/{name}.cu" for name in SASS[1:]]
            for source, part in zip(sources, SASS):
                rules[f"sass-{part}"] = ("", f"{nvcc} -cubin {source} -o {place.build}/{part}.cubin")
            rules[name] = (" ".join(f"sass-{part}" for part in SASS), "")
        elif not name.startswith("twins/"):
            rules[name] = ("runtime", f"+$(MAKE) -C programs/{name} {runtime} BUILD={place.build}/{name} PROGRAM={place.build}/{name}/program")
    if twins:
        rules["twins"] = ("", "+$(MAKE) -C sources -f test/cuda/twins/twins.mk BUILD=%s/twins %s %s/twins/libcpu.so" % (place.build, " ".join(map(str, twins)), place.build))
    wanted = [*dict.fromkeys("twins" if n.startswith("twins/") else n for n in needs)]
    lines = ["NVCC ?= nvcc", f"all: {' '.join(wanted)}", f".PHONY: all {' '.join(rules)}"]
    lines += [f"{name}: {after}" + (f"\n\t{command}" if command else "") for name, (after, command) in rules.items()]
    return "\n".join(lines) + "\n"


def first_errors(text):
    """What compilers and linkers said first, once each."""
    said = [line.strip() for line in text.splitlines() if re.search(r"\berror\b|undefined reference|No such file|\*\*\*", line)]
    return [line for line in dict.fromkeys(said) if not re.match(r"make.*(Error \d|Waiting for)", line)][:3]


def build(place, needs, specs, variables):
    path = place.build / "Makefile"
    path.write_text(makefile(place, needs, specs))
    try:
        output = run(place, "build", ["make", "-k", f"-j{os.cpu_count()}", "-f", path, "RANKS=4", f"NVCC={tool('nvcc') or 'nvcc'}", *variables], {"MAKEFLAGS": ""}, limit=360)
    except Wrong as e:
        errors = first_errors((place.log / "build.log").read_text(errors="replace"))
        for line in errors:
            print("    " + line, flush=True)
        raise Wrong(errors[0] if errors else str(e)) from None
    parts = [part for part in ("MPI", "NCCL", "CUDNN") if f"-DHETU_{part}" in output]
    return f"{len(needs)} targets, with {', '.join(parts) or 'no MPI, NCCL or cuDNN'}"


# ---- kernels ----

def twins(place, name):
    output = run(place, name.replace("/", "-"), [place.program(name), place.build / "twins" / "libcpu.so"], {"HETU_ATTENTION": "own"})
    return output.splitlines()[-1]


def by_engine(place, name, engine, command):
    """What a program of attention says when our kernels (own) or cuDNN's (cudnn) serve it."""
    output = run(place, f"{name}-{engine}", command, {"HETU_ATTENTION": engine}, check=False)
    if "was built without cuDNN" in output:
        raise Skip("cuDNN was not found when it was built")
    refused = re.search(r"^hetu: cuDNN does not serve.*", output, re.M)
    if refused:
        raise Wrong(refused[0])
    return output


def sliced(place, engine):
    """Attention on slices of one tensor, against sums in double."""
    last = (by_engine(place, "attention", engine, [place.program("twins/attention"), "--fused"]).splitlines() or ["no output"])[-1]
    if not last.endswith(" 0 failed"):
        raise Wrong(f"{last} (log/attention-{engine}.log)")
    return last


def sass(place):
    """The machine code's figures; spills in the loops of attention, which would be slow, and conversions to bf16 by hand."""
    from sass import kernels
    lines, found = [], {}
    for part in SASS:
        if not (place.build / f"{part}.cubin").exists():
            raise Skip(f"{part} was not built")
        found[part] = kernels(place.build / f"{part}.cubin").values()
        lines += [k.line() for k in found[part]]
    (place.out / "sass.txt").write_text("\n".join(lines) + "\n")
    spills = sum(k.loop_spills for part in SASS[1:] for k in found[part])
    rounded = sum(k.roundings for k in found["kernels"])
    text = f"{len(lines)} kernels, {spills} spills in attention's loops, {rounded} roundings by hand"
    if spills or rounded:
        raise Wrong(text)
    return text


def kernel_speeds(table, place):
    """The rates of speed's lines; gives cuBLASLt's rate in bf16, in operations a second."""
    output = run(place, "speed", [place.program("twins/speed")], check=False)
    for line in output.splitlines():
        share = re.match(r"(.*?)\s+([\d.]+) GB/s\s+([\d.]+) of a copy", line)
        least = next((v for k, v in MEMORY_BOUND.items() if share and share[1].startswith(k)), None)
        if share and least:
            table.share(share[1], f"{share[2]} GB/s, {share[3]} of a copy", float(share[3]), least)
    rate = re.search(r"^cuBLASLt bf16.*?([\d.]+) TFLOP/s", output, re.M)
    if not rate:
        raise Wrong(f"no rate of cuBLASLt: {(output.splitlines() or ['no output'])[-1]}")
    return float(rate[1]) * 1e12


def attention_speeds(table, place, torch):
    """Our kernels' times, and cuDNN's where it was built in, beside PyTorch's."""
    theirs = re.findall(r"(\w+) forward ([\d.]+) backward ([\d.]+)", torch(["attention"]))
    for engine, by in (("own", ""), ("cudnn", " by cuDNN")):
        try:
            found = re.findall(r"(causal)?: forward ([\d.]+) ms.*?backward ([\d.]+) ms", by_engine(place, "attention_speed", engine, [place.program("twins/attention_speed")]))
        except Skip as e:
            table.add(f"attention{by}, 4096 x 128", str(e), "", "not shown")
            continue
        if len(found) != 2 or len(theirs) != 2:
            raise Wrong(f"{len(found)} times of ours and {len(theirs)} of PyTorch's, not 2 (log/attention_speed-{engine}.log, log/torch-attention.log)")
        for (causal, *mine), (_, *other) in zip(found, theirs):
            for way, m, o in zip(("forward", "backward"), mine, other):
                share = float(o) / float(m)
                table.share(f"attention {'causal' if causal else 'full'} {way}{by}, 4096 x 128", f"{m} ms, {share:.2f} of PyTorch", share, ATTENTION)
    return "4 rows of each"


# ---- programs ----

@contextlib.contextmanager
def started(place, spec, arguments, env=None, **options):
    """The processes of a program's ranks, which are ended at the end; they meet through a file where there are several."""
    program = place.program(spec["name"])
    meeting = place.log / f"{spec['name']}.meeting"
    meeting.unlink(missing_ok=True)
    ranks, children = spec.get("ranks", 1), []
    try:
        for rank in range(ranks):
            where = {} if ranks == 1 else {"HETU_RENDEZVOUS": str(meeting), "HETU_RANK": str(rank), "HETU_SIZE": str(ranks)}
            with open(place.log / f"{spec['name']}.{rank}.log", "w") as log:
                children.append(subprocess.Popen([str(program), "--data", str(HERE / "text"), "--sample", "0", *arguments], stderr=log, text=True, start_new_session=True,
                                                 env={**os.environ, "HETU_TIMEOUT": "120", **where, **(env or {})},
                                                 **{"stdout": log, **(options if rank == 0 else {})}))
        yield children
    finally:
        for child in children:
            end_group(child)


def finish(place, spec, children):
    for rank, child in enumerate(children):
        if status := wait(child, spec.get("limit", LONG)):
            raise Wrong(f"rank {rank}: exit {status}: {last_line(place.log / (spec['name'] + f'.{rank}.log'))}")


def read_losses(place, spec):
    """The losses of all steps, which are numbers."""
    found = [float(line) for line in (place.log / f"{spec['name']}.losses").read_text().split()]
    if len(found) != spec["steps"]:
        raise Wrong(f"{len(found)} losses, not {spec['steps']}")
    if not all(map(math.isfinite, found)):
        raise Wrong(f"the loss of step {1 + next(i for i, loss in enumerate(found) if not math.isfinite(loss))} is no finite number")
    return found


def losses(place, spec):
    with started(place, spec, ["--steps", str(spec["steps"]), "--losses", str(place.log / f"{spec['name']}.losses")], {"HETU_CHECK": "1"}) as children:
        finish(place, spec, children)
    found = read_losses(place, spec)
    wanted = [float(line) for line in (HERE / "expected" / spec["expected"]).read_text().split()][:spec["steps"]]
    off = max(abs(f - w) / w for f, w in zip(found[:CLOSE], wanted))
    # The last tenth as one: a single step's loss is that of one batch.
    last = abs(statistics.fmean(found[-len(found) // 10:]) / statistics.fmean(wanted[-len(wanted) // 10:]) - 1)
    text = f"{off:.1e} off, at the end {last:.1e}"
    if not off <= spec["tolerance"] or not last <= spec.get("last", math.inf):
        raise Wrong(text)
    return text


def one_rank(place):
    """Collectives of one rank through NCCL, from streams of their own and in a graph."""
    output = run(place, "steps", [place.program("steps")], {"HETU_NCCL": "1"})
    if "steps were issued 2 times" not in output:
        raise Wrong(last_line(place.log / "steps.log"))
    return output.splitlines()[-1]


def sanitizer(place, name, command, checker):
    """What the CUDA calls of a program return is its own to check, and it ends when one fails. cuDNN's kernels are not ours to check."""
    found = tool("compute-sanitizer")
    if not found:
        raise Skip("there is no compute-sanitizer")
    options = ["--report-api-errors", "no"] if checker == "memcheck" else []
    output = run(place, f"{name}-{checker}", [found, "--tool", checker, "--error-exitcode", "9", *options, *command], {"HETU_ATTENTION": "own"})
    return output.splitlines()[-1].strip("= ")


def read_steps(lines, seen):
    """Notes when a program says that a step is done."""
    for line in lines:
        step = re.match(r"step\s+(\d+)/", line)
        if step:
            seen[int(step[1])] = time.monotonic()


def speed(place, spec):
    """Tokens a second without the first steps, and the losses, which fall."""
    seen = {}
    with started(place, spec, ["--steps", str(spec["steps"]), "--every", str(STEADY), "--losses", str(place.log / f"{spec['name']}.losses")],
                 stdout=subprocess.PIPE) as children:
        reader = threading.Thread(target=read_steps, args=(children[0].stdout, seen), daemon=True)
        reader.start()
        finish(place, spec, children)
        reader.join(LEAST)
    if STEADY not in seen or spec["steps"] not in seen:
        raise Wrong(f"no times of the steps {STEADY} and {spec['steps']}")
    found = read_losses(place, spec)
    if statistics.fmean(found[-3:]) >= found[0]:
        raise Wrong(f"the loss does not fall: {found[0]:.3f} at first, {found[-1]:.3f} at last")
    return (spec["steps"] - STEADY) * spec["tokens"] / (seen[spec["steps"]] - seen[STEADY]), found[-1]


def program_speed(table, place, spec, rates):
    def alone():
        rates[spec["name"]], loss = speed(place, spec)
        found = rates[spec["name"]]
        if not rates.get("cuBLASLt"):
            raise Skip(f"{found:.0f} tokens/s, loss {loss:.3f}; there is no rate of cuBLASLt to compare with")
        share = found * spec["flops"] / rates["cuBLASLt"]
        text = f"{found:.0f} tokens/s, {share:.2f} of cuBLASLt, loss {loss:.3f}"
        if share < spec["share"]:
            raise Wrong(text)
        return text
    table.test(f"{spec['name']} in bf16", f">= {spec['share']}, the loss falls", alone)


def beside_torch(table, spec, rates, torch):
    def beside():
        output = torch(spec["torch"])
        theirs = re.search(r"([\d.]+) tokens/s(.*)", output)
        if not theirs:
            raise Wrong("PyTorch gave no rate")
        found = rates.get(spec["name"])
        if not found:
            raise Skip(f"PyTorch's {float(theirs[1]):.0f} tokens/s, and nothing to compare")
        text = f"{found / float(theirs[1]):.2f} of PyTorch's {float(theirs[1]):.0f}{theirs[2]}"
        if found < PYTORCH * float(theirs[1]):
            raise Wrong(text)
        return text
    table.test(f"{spec['name']} beside PyTorch", f">= {PYTORCH}", beside)


# ---- PyTorch ----

class Torch:
    """PyTorch's side. It is measured when nothing else is at work on the card, its compiler's time included in the row's."""

    def __init__(self, place, skip):
        self.place = place
        self.missing = "--no-torch" if skip else None
        if not skip and subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
            self.missing = "there is no PyTorch"

    def __call__(self, arguments):
        if self.missing:
            raise Skip(self.missing)
        return run(self.place, "torch-" + arguments[0], [sys.executable, str(HERE / "torch_models.py"), *arguments], limit=240)


# ---- all ----

def plan(specs):
    """The rows in the order of what matters: (name, what they need built, what runs them)."""
    one = [s for s in specs if s["check"] == "losses" and s.get("ranks", 1) == 1]
    several = [s for s in specs if s["check"] == "losses" and s.get("ranks", 1) > 1]
    fast, tiny = [s for s in specs if s["check"] == "speed"], [s for s in specs if s["check"] == "sanitizer"]
    rates = {}

    def losses_row(spec):
        ranks = f", {spec['ranks']} ranks share the card" if spec.get("ranks") else ""
        ends = f", at the end {spec['last']:g}" if "last" in spec else ""
        return lambda t, p, _: t.test(f"{spec['name']}: losses of {spec['steps']} steps{ranks}", f"within {spec['tolerance']:g}{ends}", lambda: losses(p, spec))

    def rate_row(table, place, _):
        def measured():
            rates["cuBLASLt"] = kernel_speeds(table, place)
            return f"{rates['cuBLASLt'] / 1e12:.0f} TFLOP/s"
        table.test("cuBLASLt bf16, 8192 x 8192 x 8192", "", measured)

    def sanitizer_rows(name, command):
        def rows(table, place, _):
            for checker in ("memcheck", "racecheck"):
                table.test(f"{name}: {checker}", "0 errors", lambda: sanitizer(place, name.replace("/", "-"), command(place), checker))
        return rows

    def tiny_command(spec):
        return lambda place: [place.program(spec["name"]), "--data", HERE / "text", "--steps", spec["steps"], "--sample", "0"]

    for name in ("twins/twins", "twins/attention"):
        yield name, [name], lambda t, p, _, name=name: t.test(f"kernels against the CPU's: {name[6:]}", "0 wrong", lambda: twins(p, name))
    for engine, words in (("own", "our kernels"), ("cudnn", "cuDNN's")):
        yield f"twins/attention {engine}", ["twins/attention"], lambda t, p, _, engine=engine, words=words: t.test(f"attention on slices: {words}", "0 failed", lambda: sliced(p, engine))
    yield "sass", ["sass"], lambda t, p, _: t.test("machine code", "no spills in loops, no roundings", lambda: sass(p))
    for spec in one:
        yield spec["name"], [spec["name"]], losses_row(spec)
    yield "speed", ["twins/speed"], rate_row
    for spec in fast:
        yield f"speed {spec['name']}", [spec["name"]], lambda t, p, _, spec=spec: program_speed(t, p, spec, rates)
    yield "speed attention", ["twins/attention_speed"], lambda t, p, torch: t.test("attention beside PyTorch", f">= {ATTENTION}", lambda: attention_speeds(t, p, torch))
    for spec in fast:
        yield f"speed torch {spec['name']}", [], lambda t, _, torch, spec=spec: beside_torch(t, spec, rates, torch)
    for spec in several:
        yield spec["name"], [spec["name"]], losses_row(spec)
    yield "nccl", ["steps"], lambda t, p, _: t.test("NCCL on one rank: two streams, a graph", "6 steps", lambda: one_rank(p))
    for spec in tiny:
        yield spec["name"], [spec["name"]], sanitizer_rows(spec["name"], tiny_command(spec))
    yield "twins/attention sanitized", ["twins/attention"], sanitizer_rows("twins/attention", lambda place: [place.program("twins/attention")])


def check(table, place, a):
    specs = json.loads((HERE / "programs.json").read_text())
    rows = [row for row in plan(specs) if re.search(a.only, row[0])]
    needs = [*dict.fromkeys(need for _, needed, _ in rows for need in needed)]
    gpu = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True) if shutil.which("nvidia-smi") else None
    table.gpu = gpu.stdout.splitlines()[0] if gpu and not gpu.returncode and gpu.stdout else None
    if needs:
        table.test("build", "no error", lambda: build(place, needs, specs, a.make + ([] if table.gpu else ["ARCH=sm_90"])))
    if not table.gpu:
        table.add("everything else", "there is no GPU on this machine", "", "not shown")
        return
    torch = Torch(place, a.no_torch)
    for _, _, work in rows:
        work(table, place, torch)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--only", default="", help="check, and build, what matches this pattern")
    a.add_argument("--out", help="where results go; else $OUT, or out/ in this folder")
    a.add_argument("--build", help="where objects and programs go; else a folder under the temporary one")
    a.add_argument("--seconds", type=float, default=Clock.seconds, help="after which all has ended")
    a.add_argument("--no-torch", action="store_true")
    a.add_argument("--make", action="append", default=[], help="a variable for make")
    a = a.parse_args()
    Clock.seconds = a.seconds
    sys.path.insert(0, str(HERE))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    place = Place(a)
    table = Table(place.out)
    try:
        check(table, place, a)
    finally:
        place.pack()
        table.write()
    sys.exit(table.close())


if __name__ == "__main__":
    main()
