#!/usr/bin/env python3
"""Builds and runs everything in a folder that prepare.py made, on a machine with a GPU, and prints a table: what, found, wanted.

    check.sh [--only PATTERN] [--no-torch] [--make VARIABLE=VALUE ...]

Needs nvcc, make, a C and C++ compiler and Python; NCCL, MPI, compute-sanitizer and PyTorch are used where they are. What cannot be run is said, and counts as not shown. The
exit status is 1 when something is wrong. Logs are in log/.
"""
import argparse
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
SECONDS = 480  # all of it
STEADY = 10    # steps before a speed is measured
MEMORY_BOUND = {"adamw": 0.8, "layer_norm": 0.8, "rms_norm": 0.8}  # share of a copy's rate, by the beginning of the kernel's name
ATTENTION, PYTORCH = 0.5, 0.9                                       # shares of PyTorch's speed


class Skip(Exception):
    pass


class Wrong(Exception):
    pass


class Table:
    def __init__(self):
        self.rows, self.start = [], time.monotonic()

    def add(self, what, found, wanted, verdict):
        self.rows.append((what, found, wanted, verdict))
        print(f"{time.monotonic() - self.start:5.0f} s  {verdict:9} {what:44} {found:34} {wanted}", flush=True)

    def test(self, what, wanted, function):
        """Runs function(): what it found, as text; Wrong and Skip are verdicts."""
        try:
            self.add(what, function() or "", wanted, "ok")
        except Skip as e:
            self.add(what, str(e), wanted, "not shown")
        except (Wrong, OSError, subprocess.SubprocessError, ValueError, IndexError) as e:
            self.add(what, str(e).splitlines()[0] if str(e) else type(e).__name__, wanted, "WRONG")

    def close(self):
        count = {v: sum(r[3] == v for r in self.rows) for v in ("ok", "WRONG", "not shown")}
        seconds = time.monotonic() - self.start
        print(f"{count['ok']} ok, {count['WRONG']} wrong, {count['not shown']} not shown, in {seconds:.0f} s")
        return count["WRONG"] > 0


def run(name, command, env=None, check=True, timeout=SECONDS, cwd=HERE):
    """Runs a command; its output goes to log/NAME and comes back."""
    log = HERE / "log" / f"{name}.log"
    p = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                       env={**os.environ, **(env or {})}, timeout=timeout, cwd=cwd)
    log.write_text(p.stdout)
    if check and p.returncode:
        last = [line for line in p.stdout.splitlines() if line.strip()]
        raise Wrong(f"exit {p.returncode}: {last[-1] if last else ''} ({log.relative_to(HERE)})")
    return p.stdout


# ---- building ----

def write_makefile(specs):
    """One make builds everything, the runtime once."""
    names = [s["name"] for s in specs]
    lines = [f"all: {' '.join(names)} twins attention_speed",
             f".PHONY: all runtime twins {' '.join(names)}",
             f"runtime:\n\t+$(MAKE) -C programs/{names[0]} RUNTIME_BUILD={HERE}/build runtime",
             *(f"{n}: runtime\n\t+$(MAKE) -C programs/{n} RUNTIME_BUILD={HERE}/build PROGRAM=program" for n in names),
             f"twins:\n\t+$(MAKE) -C sources -f test/cuda/twins/twins.mk BUILD={HERE}/build/twins",
             "attention_speed: twins\n\tcd sources && $(or $(NVCC),nvcc) -std=c++20 -O3 -arch=$(or $(ARCH),native) -Iinclude -Iruntime -o "
             f"{HERE}/build/attention_speed test/cuda/attention/attention_speed.cu "
             f"{HERE}/build/twins/runtime/cuda/attention.cu.o {HERE}/build/twins/runtime/cuda/attention_backward.cu.o"]
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
    output = run("speed", [HERE / "build" / "twins" / "speed"])
    rate = 0
    for line in output.splitlines():
        share = re.match(r"(.*?)\s+([\d.]+) GB/s\s+([\d.]+) of a copy", line)
        product = re.match(r"cuBLASLt bf16.*?([\d.]+) TFLOP/s", line)
        rate = float(product[1]) * 1e12 if product else rate
        least = next((v for k, v in MEMORY_BOUND.items() if share and share[1].startswith(k)), None)
        if share and least:
            table.add(share[1], f"{share[2]} GB/s, {share[3]} of a copy", f">= {least}", "ok" if float(share[3]) >= least else "WRONG")
    return rate


def attention_speeds(table, torch):
    found = re.findall(r"(causal)?: forward ([\d.]+) ms.*?backward ([\d.]+) ms", run("attention_speed", [HERE / "build" / "attention_speed"]))
    theirs = re.findall(r"(\w+) forward ([\d.]+) backward ([\d.]+)", torch(["attention"]))
    for (causal, *mine), (_, *other) in zip(found, theirs):
        for way, m, o in zip(("forward", "backward"), mine, other):
            share = float(o) / float(m)
            table.add(f"attention {'causal' if causal else 'full'} {way}, 4096 x 128", f"{m} ms, {share:.2f} of PyTorch", f">= {ATTENTION}",
                      "ok" if share >= ATTENTION else "WRONG")


# ---- programs ----

def start(spec, arguments, env=None, **options):
    """The processes of a program's ranks; they meet through a file where there are several."""
    program = HERE / "programs" / spec["name"] / "program"
    ranks, children = spec.get("ranks", 1), []
    for rank in range(ranks):
        place = {} if ranks == 1 else {"HETU_RENDEZVOUS": str(HERE / "log" / f"{spec['name']}.meeting"), "HETU_RANK": str(rank), "HETU_SIZE": str(ranks)}
        log = open(HERE / "log" / f"{spec['name']}.{rank}.log", "w")
        children.append(subprocess.Popen([str(program), "--data", str(HERE / "text"), "--sample", "0", *arguments], stderr=subprocess.STDOUT, text=True,
                                         env={**os.environ, "HETU_TIMEOUT": "120", **place, **(env or {})},
                                         **{"stdout": log, **(options if rank == 0 else {})}))
    return children


def finish(spec, children):
    for rank, child in enumerate(children):
        if child.wait(timeout=SECONDS):
            log = HERE / "log" / f"{spec['name']}.{rank}.log"
            for other in children:
                other.kill()
            raise Wrong(f"rank {rank}: exit {child.returncode}: {(log.read_text().splitlines() or ['no output'])[-1]}")


def mean(numbers):
    return math.fsum(numbers) / len(numbers)


def losses(spec):
    path = HERE / "log" / f"{spec['name']}.losses"
    finish(spec, start(spec, ["--steps", str(spec["steps"]), "--losses", str(path)], {"HETU_CHECK": "1"}))
    found = [float(line) for line in path.read_text().split()]
    wanted = [float(line) for line in (HERE / "expected" / spec["expected"]).read_text().split()][:spec["steps"]]
    if len(found) != len(wanted):
        raise Wrong(f"{len(found)} losses, not {len(wanted)}")
    off = [abs(f - w) / w if f == f else math.inf for f, w in zip(found, wanted)]
    # The last tenth as one: a single step's loss is that of one batch.
    last = abs(mean(found[-len(found) // 10:]) / mean(wanted[-len(wanted) // 10:]) - 1)
    text = f"{max(off):.1e} off, at the end {last:.1e}"
    if max(off) > spec["tolerance"] or last > spec.get("last", math.inf):
        raise Wrong(text)
    return text


def sanitizer(spec, tool):
    if not shutil.which("compute-sanitizer"):
        raise Skip("there is no compute-sanitizer")
    output = run(f"{spec['name']}-{tool}", ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", HERE / "programs" / spec["name"] / "program", "--data",
                                            HERE / "text", "--steps", spec["steps"], "--sample", "0"])
    return output.splitlines()[-1].strip("= ")


def speed(spec):
    """Tokens a second, without the first steps."""
    children = start(spec, ["--steps", str(spec["steps"]), "--every", str(STEADY)], stdout=subprocess.PIPE)
    seen = {}
    for line in children[0].stdout:
        step = re.match(r"step\s+(\d+)/", line)
        if step:
            seen[int(step[1])] = time.monotonic()
    finish(spec, children)
    return (spec["steps"] - STEADY) * spec["tokens"] / (seen[spec["steps"]] - seen[STEADY])


def program_speed(table, spec, rate, torch):
    try:
        found = speed(spec)
    except (Wrong, OSError, KeyError) as e:
        table.add(f"{spec['name']} in bf16", str(e), "", "WRONG")
        return
    share = found * spec["flops"] / rate if rate else 0
    table.add(f"{spec['name']} in bf16", f"{found:.0f} tokens/s, {share:.2f} of cuBLASLt", f">= {spec['share']}", "ok" if share >= spec["share"] else "WRONG")

    def compare():
        theirs = float(re.search(r"([\d.]+) tokens/s", torch(spec["torch"]))[1])
        if found / theirs < PYTORCH:
            raise Wrong(f"{found / theirs:.2f} of PyTorch's {theirs:.0f}")
        return f"{found / theirs:.2f} of PyTorch's {theirs:.0f}"
    table.test(f"{spec['name']} beside PyTorch", f">= {PYTORCH}", compare)


# ---- all ----

def torch_runner(skip):
    def torch(arguments):
        if skip:
            raise Skip("--no-torch")
        if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
            raise Skip("there is no PyTorch")
        return run("torch-" + arguments[0], [sys.executable, HERE / "torch_models.py", *arguments])
    return torch


def check_programs(table, specs, chosen):
    for spec in (s for s in specs if chosen(s["name"])):
        ranks = f", {spec['ranks']} ranks share the card" if spec.get("ranks") else ""
        if spec["check"] == "losses":
            ends = f", at the end {spec['last']:g}" if "last" in spec else ""
            table.test(f"{spec['name']}: losses of {spec['steps']} steps{ranks}", f"within {spec['tolerance']:g}{ends}", lambda: losses(spec))
        if spec["check"] == "sanitizer":
            for tool in ("memcheck", "racecheck"):
                table.test(f"{spec['name']}: {tool}", "0 errors", lambda: sanitizer(spec, tool))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--only", default="", help="check what matches this pattern")
    a.add_argument("--no-torch", action="store_true")
    a.add_argument("--make", action="append", default=[], help="a variable for make")
    a = a.parse_args()
    (HERE / "log").mkdir(exist_ok=True)
    specs = json.loads((HERE / "programs.json").read_text())
    table, torch = Table(), torch_runner(a.no_torch)
    chosen = lambda name: re.search(a.only, name)  # noqa: E731
    gpu = not subprocess.run("nvidia-smi -L", shell=True, capture_output=True).returncode
    table.test("build", "no error", lambda: build(specs, a.make + ([] if gpu else ["ARCH=sm_90"])))
    if not gpu:
        table.add("everything else", "there is no GPU on this machine", "", "not shown")
        sys.exit(table.close())
    for program in ("twins", "attention"):
        if chosen(program):
            table.test(f"kernels against the CPU's: {program}", "0 wrong", lambda: twins(program))
    check_programs(table, specs, chosen)
    rate = 0
    if chosen("speed"):
        try:
            rate = kernel_speeds(table)
            attention_speeds(table, torch)
        except Skip as e:
            table.add("attention beside PyTorch", str(e), f">= {ATTENTION}", "not shown")
        except (Wrong, OSError) as e:
            table.add("speed of kernels", str(e), "", "WRONG")
        for spec in (s for s in specs if s["check"] == "speed"):
            program_speed(table, spec, rate, torch)
    sys.exit(table.close())


if __name__ == "__main__":
    main()
