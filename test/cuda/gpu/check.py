#!/usr/bin/env python3
"""Builds and runs everything in a folder that prepare.py made, on a machine with a GPU, and prints a table: what, found, wanted.

    check.sh [--only PATTERN] [--no-torch] [--make VARIABLE=VALUE ...]

Needs nvcc, make, a C and C++ compiler and Python; NCCL, MPI, compute-sanitizer and PyTorch are used where they are. What cannot be run is said, and counts as not shown. The
exit status is 1 when something is wrong. Logs are in log/.
"""
import argparse
import contextlib
import glob
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
START, SECONDS = time.monotonic(), 470  # all of it
STEADY = 10    # steps before a speed is measured
CLOSE = 50     # steps whose losses are compared one by one
WARM = 150     # seconds that PyTorch's compiler may still take when its turn comes
MEMORY_BOUND = {"adamw": 0.8, "layer_norm": 0.8, "rms_norm": 0.8}  # share of a copy's rate, by the beginning of the kernel's name
ATTENTION, PYTORCH = 0.5, 0.9                                       # shares of PyTorch's speed


class Skip(Exception):
    pass


class Wrong(Exception):
    pass


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, found, wanted, verdict):
        self.rows.append((what, found, wanted, verdict))
        print(f"{time.monotonic() - START:5.0f} s  {verdict:9} {what:44} {found:34} {wanted}", flush=True)

    def test(self, what, wanted, function):
        """Runs function(): what it found, as text; Wrong and Skip are verdicts. Whatever goes wrong, the rest is run."""
        try:
            self.add(what, function() or "", wanted, "ok")
        except Skip as e:
            self.add(what, str(e), wanted, "not shown")
        except subprocess.TimeoutExpired:
            self.add(what, "did not end in time", wanted, "WRONG")
        except Exception as e:  # noqa: BLE001
            name = "" if isinstance(e, Wrong) else f"{type(e).__name__}: "
            self.add(what, name + (str(e).splitlines() or [""])[0], wanted, "WRONG")

    def share(self, what, found, share, wanted):
        self.add(what, found, f">= {wanted}", "ok" if share >= wanted else "WRONG")

    def close(self):
        count = {v: sum(r[3] == v for r in self.rows) for v in ("ok", "WRONG", "not shown")}
        print(f"{count['ok']} ok, {count['WRONG']} wrong, {count['not shown']} not shown, in {time.monotonic() - START:.0f} s")
        return count["WRONG"] > 0


def left():
    """Seconds until all must have ended; a few at least, so that what is quick still runs."""
    return max(START + SECONDS - time.monotonic(), 5)


def run(name, command, env=None, check=True, timeout=SECONDS, cwd=HERE):
    """Runs a command; its output goes to log/NAME and comes back."""
    log = HERE / "log" / f"{name}.log"
    with open(log, "w") as out:
        status = subprocess.run([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                                timeout=min(timeout, left()), cwd=cwd).returncode
    text = log.read_text(errors="replace")
    if check and status:
        last = [line for line in text.splitlines() if line.strip()]
        raise Wrong(f"exit {status}: {last[-1] if last else ''} ({log.relative_to(HERE)})")
    return text


def tool(name):
    """A tool of CUDA, which need not be in PATH; None: there is none."""
    places = [os.path.dirname(os.path.realpath(shutil.which("nvcc") or "")), *glob.glob("/usr/local/cuda*/bin"), *glob.glob("/usr/local/cuda*/compute-sanitizer")]
    return shutil.which(name) or next((found for place in places if (found := shutil.which(name, path=place))), None)


# ---- building ----

def write_makefile(specs):
    """One make builds everything, the runtime once."""
    names = [s["name"] for s in specs]
    lines = [f"all: twins {' '.join(names)}",
             f".PHONY: all runtime twins {' '.join(names)}",
             f"runtime:\n\t+$(MAKE) -C programs/{names[0]} RUNTIME_BUILD={HERE}/build runtime",
             *(f"{n}: runtime\n\t+$(MAKE) -C programs/{n} RUNTIME_BUILD={HERE}/build PROGRAM=program" for n in names),
             f"twins:\n\t+$(MAKE) -C sources -f test/cuda/twins/twins.mk BUILD={HERE}/build/twins"]
    (HERE / "Makefile").write_text("\n".join(lines) + "\n")


def build(specs, variables):
    """All programs get what those of several ranks need, so that they share the runtime's objects."""
    write_makefile(specs)
    output = run("build", ["make", "-k", f"-j{os.cpu_count()}", "RANKS=4", *variables], env={"MAKEFLAGS": ""})
    parts = [part for part in ("MPI", "NCCL") if f"-DHETU_{part}" in output]
    return f"{len(specs)} programs, with {' and '.join(parts) or 'neither MPI nor NCCL'}"


# ---- kernels ----

def twins(program):
    output = run(program, [HERE / "build" / "twins" / program, HERE / "build" / "twins" / "libcpu.so"])
    return output.splitlines()[-1]


def kernel_speeds(table):
    """The rates of speed's lines; gives cuBLASLt's rate in bf16, in operations a second."""
    output = run("speed", [HERE / "build" / "twins" / "speed"], check=False)
    for line in output.splitlines():
        share = re.match(r"(.*?)\s+([\d.]+) GB/s\s+([\d.]+) of a copy", line)
        least = next((v for k, v in MEMORY_BOUND.items() if share and share[1].startswith(k)), None)
        if share and least:
            table.share(share[1], f"{share[2]} GB/s, {share[3]} of a copy", float(share[3]), least)
    rate = re.search(r"^cuBLASLt bf16.*?([\d.]+) TFLOP/s", output, re.M)
    if not rate:
        raise Wrong(f"no rate of cuBLASLt: {(output.splitlines() or ['no output'])[-1]}")
    return float(rate[1]) * 1e12


def attention_speeds(table, torch):
    found = re.findall(r"(causal)?: forward ([\d.]+) ms.*?backward ([\d.]+) ms", run("attention_speed", [HERE / "build" / "twins" / "attention_speed"]))
    theirs = re.findall(r"(\w+) forward ([\d.]+) backward ([\d.]+)", torch(["attention"]))
    if len(found) != 2 or len(theirs) != 2:
        raise Wrong(f"{len(found)} times of ours and {len(theirs)} of PyTorch's, not 2 (log/attention_speed.log, log/torch-attention.log)")
    for (causal, *mine), (_, *other) in zip(found, theirs):
        for way, m, o in zip(("forward", "backward"), mine, other):
            share = float(o) / float(m)
            table.share(f"attention {'causal' if causal else 'full'} {way}, 4096 x 128", f"{m} ms, {share:.2f} of PyTorch", share, ATTENTION)
    return "4 rows"


# ---- programs ----

@contextlib.contextmanager
def started(spec, arguments, env=None, **options):
    """The processes of a program's ranks, which are ended at the end; they meet through a file where there are several."""
    program = HERE / "programs" / spec["name"] / "program"
    meeting = HERE / "log" / f"{spec['name']}.meeting"
    meeting.unlink(missing_ok=True)
    ranks, children = spec.get("ranks", 1), []
    try:
        for rank in range(ranks):
            place = {} if ranks == 1 else {"HETU_RENDEZVOUS": str(meeting), "HETU_RANK": str(rank), "HETU_SIZE": str(ranks)}
            with open(HERE / "log" / f"{spec['name']}.{rank}.log", "w") as log:
                children.append(subprocess.Popen([str(program), "--data", str(HERE / "text"), "--sample", "0", *arguments], stderr=log, text=True,
                                                 env={**os.environ, "HETU_TIMEOUT": "120", **place, **(env or {})},
                                                 **{"stdout": log, **(options if rank == 0 else {})}))
        yield children
    finally:
        for child in children:
            child.kill()
            child.wait()


def finish(spec, children):
    for rank, child in enumerate(children):
        if child.wait(timeout=left()):
            log = HERE / "log" / f"{spec['name']}.{rank}.log"
            raise Wrong(f"rank {rank}: exit {child.returncode}: {(log.read_text(errors='replace').splitlines() or ['no output'])[-1]}")


def mean(numbers):
    return math.fsum(numbers) / len(numbers)


def losses(spec):
    path = HERE / "log" / f"{spec['name']}.losses"
    with started(spec, ["--steps", str(spec["steps"]), "--losses", str(path)], {"HETU_CHECK": "1"}) as children:
        finish(spec, children)
    found = [float(line) for line in path.read_text().split()]
    wanted = [float(line) for line in (HERE / "expected" / spec["expected"]).read_text().split()][:spec["steps"]]
    if len(found) != len(wanted):
        raise Wrong(f"{len(found)} losses, not {len(wanted)}")
    off = max(abs(f - w) / w if f == f else math.inf for f, w in zip(found[:CLOSE], wanted))
    # The last tenth as one: a single step's loss is that of one batch.
    last = abs(mean(found[-len(found) // 10:]) / mean(wanted[-len(wanted) // 10:]) - 1)
    text = f"{off:.1e} off, at the end {last:.1e}"
    if not off <= spec["tolerance"] or not last <= spec.get("last", math.inf):
        raise Wrong(text)
    return text


def sanitizer(spec, name):
    """What the CUDA calls of a program return is its own to check, and it ends when one fails."""
    found = tool("compute-sanitizer")
    if not found:
        raise Skip("there is no compute-sanitizer")
    options = ["--report-api-errors", "no"] if name == "memcheck" else []
    output = run(f"{spec['name']}-{name}", [found, "--tool", name, "--error-exitcode", "9", *options, HERE / "programs" / spec["name"] / "program", "--data",
                                            HERE / "text", "--steps", spec["steps"], "--sample", "0"], timeout=90)
    return output.splitlines()[-1].strip("= ")


def speed(spec):
    """Tokens a second, without the first steps."""
    seen = {}
    with started(spec, ["--steps", str(spec["steps"]), "--every", str(STEADY)], stdout=subprocess.PIPE) as children:
        for line in children[0].stdout:
            step = re.match(r"step\s+(\d+)/", line)
            if step:
                seen[int(step[1])] = time.monotonic()
        finish(spec, children)
    if STEADY not in seen or spec["steps"] not in seen:
        raise Wrong(f"no times of the steps {STEADY} and {spec['steps']}")
    return (spec["steps"] - STEADY) * spec["tokens"] / (seen[spec["steps"]] - seen[STEADY])


def program_speed(table, spec, rate, torch):
    found = 0

    def alone():
        nonlocal found
        found = speed(spec)
        if not rate:
            raise Wrong(f"{found:.0f} tokens/s; there is no rate to compare with")
        share = found * spec["flops"] / rate
        text = f"{found:.0f} tokens/s, {share:.2f} of cuBLASLt"
        if share < spec["share"]:
            raise Wrong(text)
        return text

    def beside():
        output = torch(spec["torch"])
        theirs = re.search(r"([\d.]+) tokens/s(.*)", output)
        if not theirs or not found:
            raise Wrong("there is nothing to compare")
        text = f"{found / float(theirs[1]):.2f} of PyTorch's {float(theirs[1]):.0f}{theirs[2]}"
        if found < PYTORCH * float(theirs[1]):
            raise Wrong(text)
        return text
    table.test(f"{spec['name']} in bf16", f">= {spec['share']}", alone)
    table.test(f"{spec['name']} beside PyTorch", f">= {PYTORCH}", beside)


# ---- PyTorch ----

class Torch:
    """PyTorch's side: its compiler works while other things are tested, and fills its caches; the measurements come later."""

    def __init__(self, skip):
        self.missing = "--no-torch" if skip else None
        self.warming = None
        if not skip and subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
            self.missing = "there is no PyTorch"

    def command(self, arguments):
        return [sys.executable, str(HERE / "torch_models.py"), *arguments]

    def warm(self, models):
        if self.missing or not models:
            return
        script = " ; ".join(" ".join(self.command([*model, "--steps", "1"])) for model in models)
        with open(HERE / "log" / "torch-warm.log", "w") as log:
            self.warming = subprocess.Popen(["sh", "-c", script], stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self):
        """Until the compiler is done, or takes too long; nothing else is at work on the GPU then."""
        if not self.warming:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.warming.wait(timeout=max(left() - WARM, 1))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.warming.pid, 9)
        self.warming.wait()
        self.warming = None

    def __call__(self, arguments):
        if self.missing:
            raise Skip(self.missing)
        return run("torch-" + arguments[0], self.command(arguments))


# ---- all ----

def check_programs(table, specs, chosen):
    for spec in (s for s in specs if chosen(s["name"])):
        ranks = f", {spec['ranks']} ranks share the card" if spec.get("ranks") else ""
        if spec["check"] == "losses":
            ends = f", at the end {spec['last']:g}" if "last" in spec else ""
            table.test(f"{spec['name']}: losses of {spec['steps']} steps{ranks}", f"within {spec['tolerance']:g}{ends}", lambda: losses(spec))
        if spec["check"] == "sanitizer":
            for name in ("memcheck", "racecheck"):
                table.test(f"{spec['name']}: {name}", "0 errors", lambda: sanitizer(spec, name))


def check_speeds(table, specs, torch):
    rate = 0

    def kernels():
        nonlocal rate
        rate = kernel_speeds(table)
        return f"{rate / 1e12:.0f} TFLOP/s"
    table.test("cuBLASLt bf16, 8192 x 8192 x 8192", "", kernels)
    table.test("attention beside PyTorch", f">= {ATTENTION}", lambda: attention_speeds(table, torch))
    for spec in specs:
        program_speed(table, spec, rate, torch)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--only", default="", help="check what matches this pattern")
    a.add_argument("--no-torch", action="store_true")
    a.add_argument("--make", action="append", default=[], help="a variable for make")
    a = a.parse_args()
    (HERE / "log").mkdir(exist_ok=True)
    specs = json.loads((HERE / "programs.json").read_text())
    table = Table()
    chosen = lambda name: re.search(a.only, name)  # noqa: E731
    gpu = not subprocess.run("nvidia-smi -L", shell=True, capture_output=True).returncode
    table.test("build", "no error", lambda: build(specs, a.make + ([] if gpu else ["ARCH=sm_90"])))
    if not gpu:
        table.add("everything else", "there is no GPU on this machine", "", "not shown")
        sys.exit(table.close())
    torch, fast = Torch(a.no_torch), [s for s in specs if s["check"] == "speed" and chosen("speed")]
    torch.warm([s["torch"] for s in fast])
    for program in ("twins", "attention"):
        if chosen(program):
            table.test(f"kernels against the CPU's: {program}", "0 wrong", lambda: twins(program))
    check_programs(table, specs, chosen)
    torch.wait()
    if fast:
        check_speeds(table, fast, torch)
    sys.exit(table.close())


if __name__ == "__main__":
    main()
