#!/usr/bin/env python3
"""Rehearses the check of a GPU (check.py) without one: a folder like the one that prepare.py makes, in which programs, tools and PyTorch are stand-ins that do what a plan says.

FAIL in the environment of the check plants failures: "NAME=HOW,...", where HOW is hang (with a child that would outlive it), crash, nan, flat (the loss does not fall), off (other
losses), slow (half a second a step) or broken (it does not compile).
"""
import functools
import json
import os
import pathlib
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(HERE.parent.parent / "run"))
sys.path.insert(0, str(HERE.parent / "sass"))
sys.path.insert(0, str(HERE))
import harness
import sass
from harness import Failure

SPECS = [{"name": "gpt-f32", "example": "gpt", "check": "losses", "steps": 4, "tolerance": 1e-3, "expected": "gpt.losses"},
         {"name": "gpt-bf16", "example": "gpt", "check": "losses", "steps": 4, "tolerance": 2e-2, "last": 1e-2, "expected": "gpt.losses"},
         {"name": "gpt-2-ranks", "example": "gpt", "ranks": 2, "check": "losses", "steps": 4, "tolerance": 1e-3, "expected": "gpt.losses"},
         {"name": "gpt-sanitized", "example": "gpt", "check": "sanitizer", "steps": 3},
         {"name": "gpt2-124m", "example": "gpt", "check": "speed", "steps": 20, "tokens": 1000, "flops": 1e9, "share": 0.0001, "torch": ["gpt2"]}]

ROWS = ["build", "kernels against the CPU's: twins", "kernels against the CPU's: attention", "attention on slices: our kernels",
        "attention on slices: cuDNN's", "machine code", "gpt-f32: losses of 4 steps", "gpt-bf16: losses of 4 steps",
        "adamw f32", "cuBLASLt bf16, 8192 x 8192 x 8192", "gpt2-124m in bf16", "attention full forward, 4096 x 128", "attention full backward, 4096 x 128",
        "attention causal forward, 4096 x 128", "attention causal backward, 4096 x 128", "attention full forward by cuDNN, 4096 x 128", "attention full backward by cuDNN, 4096 x 128",
        "attention causal forward by cuDNN, 4096 x 128", "attention causal backward by cuDNN, 4096 x 128", "attention beside PyTorch", "gpt2-124m beside PyTorch",
        "gpt-2-ranks: losses of 4 steps, 2 ranks share the card", "NCCL on one rank: two streams, a graph", "gpt-sanitized: memcheck", "gpt-sanitized: racecheck",
        "twins/attention: memcheck", "twins/attention: racecheck"]

# What every stand-in for a program does.
STAND_IN = r'''#!%(python)s
import os, subprocess, sys, time
name = %(name)r
how = dict(part.split("=") for part in os.environ.get("FAIL", "").split(",") if part).get(name, "")
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if how == "hang":
    subprocess.Popen(["sleep", "600.%(mark)s"])
    time.sleep(600)
if how == "crash":
    sys.exit("planted: " + name)
fixed = {"twins": "12 checks, 0 wrong", "attention": "12 passed, 0 failed", "attention_speed": "full\n: forward 1.0 ms, backward 2.0 ms\ncausal: forward 1.0 ms, backward 2.0 ms",
         "speed": "adamw f32 900.0 GB/s 0.91 of a copy\ncuBLASLt bf16 700.0 TFLOP/s", "steps": "rank 0 of 1 is done, steps were issued 2 times"}
if os.environ.get("HETU_ATTENTION") == "cudnn" and how in ("without", "refused", "wrong"):
    sys.exit({"without": "hetu: HETU_ATTENTION=cudnn, but this program was built without cuDNN; build it with make CUDNN=1", "wrong": "11 passed, 1 failed",
              "refused": "hetu: cuDNN does not serve attention here, and slower kernels do: planted"}[how])
if name in fixed:
    print(fixed[name])
    sys.exit(name == "steps" and os.environ.get("HETU_NCCL") != "1")
steps = int(options["--steps"])
losses = [5 - 0.1 * i for i in range(steps)]
if how == "nan":
    losses[2] = float("nan")
if how == "flat":
    losses = [5.0] * steps
if how == "off":
    losses = [2 * x for x in losses]
for i in range(steps):
    time.sleep(0.5 if how == "slow" else 0.002)
    if (i + 1) %% 10 == 0:
        print(f"step {i + 1}/{steps} loss {losses[i]}", flush=True)
if "--losses" in options:
    open(options["--losses"], "w").write("".join(f"{x}\n" for x in losses))
'''


def put(path, text, executable=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if executable:
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def instruction(op, high=0):
    return struct.pack("<QQ", op | high << 32, 0)


def cubin(names):
    """An ELF file of sm_80 with a kernel a name: a conversion to bf16, a spill, a branch back to the first, a branch to itself, and two that are none."""
    back = struct.pack("<QQ", (-48 // 4 << 34) & (1 << 64) - 1 | sass.BRA, (1 << 18) - 1)
    itself = struct.pack("<QQ", (-16 // 4 << 34) & (1 << 64) - 1 | sass.BRA, (1 << 18) - 1)
    code = instruction(sass.F2FP) + instruction(sass.LDL) + back + itself + instruction(sass.NOP) * 2
    texts = ["", ".shstrtab", *(".text." + n for n in names)]
    strings = b"".join(t.encode() + b"\0" for t in texts)
    places = [sum(len(t) + 1 for t in texts[:i]) for i in range(len(texts))]
    contents = [b"", strings, *([code] * len(names))]
    body, heads = b"", b""
    for place, content, kind in zip(places, contents, [0, 3] + [1] * len(names)):
        heads += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, 64 + len(body), len(content), 0, 0, 0, 0)
        body += content
    head = b"\x7fELF\x02\x01\x01\x33\x08" + bytes(7) + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0x6005004, 64, 0, 0, 64, len(texts), 1)
    return head + body + heads


def make_folder(top, mark, limits):
    """What prepare.py would leave, with stand-ins; the tools are in bin, a PyTorch in python."""
    folder = top / "check"
    for name, source in (("check.py", HERE), ("sass.py", HERE.parent / "sass")):
        put(folder / name, (source / name).read_text())
    put(folder / "programs.json", json.dumps([{**spec, **({"limit": limits[spec["name"]]} if spec["name"] in limits else {})} for spec in SPECS]))
    put(folder / "text", "text")
    put(folder / "expected" / "gpt.losses", "".join(f"{5 - 0.1 * i}\n" for i in range(4)))
    names = [spec["name"] for spec in SPECS]
    for name in [*names, "twins", "attention", "speed", "attention_speed", "steps"]:
        put(folder / "fake" / name, STAND_IN % {"python": sys.executable, "name": name, "mark": mark}, True)
    for name in names:
        put(folder / "programs" / name / "Makefile", f"PROGRAM ?= none\nall: $(PROGRAM)\nruntime:\n\tmkdir -p $(RUNTIME_BUILD); echo runtime >>$(RUNTIME_BUILD)/made\n"
            f"$(PROGRAM): $(PROGRAM_OBJECTS)\n\t@mkdir -p $(@D)\n\t@case \"$$FAIL\" in *{name}=broken*) echo 'gpt.role0.cu(7): error: planted in {name}'; exit 1;; esac\n"
            f"\tcp {folder}/fake/$(if $(PROGRAM_OBJECTS),steps,{name}) $@\n")
        put(folder / "programs" / name / "gpt.kernels.cu", "")
    put(folder / "sources" / "test" / "cuda" / "twins" / "twins.mk", f"$(BUILD)/%:\n\tmkdir -p $(@D); cp {folder}/fake/$* $@\n$(BUILD)/libcpu.so:\n\ttouch $@\n")
    put(top / "bin" / "nvcc", f"#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && cp {top}/cubin $2; shift; done\n", True)
    put(top / "bin" / "nvidia-smi", "#!/bin/sh\necho 'GPU 0: a card'\n", True)
    put(top / "bin" / "compute-sanitizer", "#!/bin/sh\nwhile [ \"$1\" != \"${1#-}\" ]; do shift 2; done\n\"$@\" >/dev/null && echo '========= ERROR SUMMARY: 0 errors'\n", True)
    put(top / "python" / "torch.py", "")
    put(folder / "torch_models.py", "import sys\nprint('full forward 1.0 backward 2.0\\ncausal forward 1.0 backward 2.0' if sys.argv[1] == 'attention' else '1.0 tokens/s')\n")
    (top / "cubin").write_bytes(cubin(["kernel"]))
    return folder


class Run:
    """A run of check.py in a new folder."""

    def __init__(self, fail="", options=(), ended_after=None, limits=None):
        with tempfile.TemporaryDirectory() as text:
            top = pathlib.Path(text)
            mark = f"{os.getpid()}{time.monotonic_ns()}"
            folder = make_folder(top, mark, limits or {})
            before = {p for p in folder.rglob("*")}
            env = {**os.environ, "FAIL": fail, "PATH": f"{top}/bin:{os.environ['PATH']}", "PYTHONPATH": f"{top}/python", "PYTHONDONTWRITEBYTECODE": "1"}
            command = [sys.executable, str(folder / "check.py"), "--build", str(top / "build"), "--out", str(top / "out"), *options]
            began = time.monotonic()
            p = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if ended_after:
                time.sleep(ended_after)
                p.send_signal(signal.SIGTERM)
            self.said, self.status, self.seconds = p.communicate(timeout=120)[0], p.returncode, time.monotonic() - began
            self.survivors = subprocess.run(["pgrep", "-f", f"sleep 600.{mark}"], capture_output=True, text=True).stdout.split()
            self.result = json.loads((top / "out" / "results.json").read_text())
            self.rows = {row["what"]: row for row in self.result["rows"]}
            self.left = {p.relative_to(folder) for p in folder.rglob("*") if p not in before}
            self.logs = sorted(tarfile.open(top / "out" / "logs.tar.gz").getnames())
            self.sass = (top / "out" / "sass.txt").read_text() if (top / "out" / "sass.txt").exists() else ""
            self.built = {p.parent.name for p in (top / "build").glob("*/program")} | {p.name for p in (top / "build" / "twins").glob("*") if p.suffix != ".so"}
            self.runtimes = (top / "build" / "runtime" / "made").read_text().count("runtime") if (top / "build" / "runtime" / "made").exists() else 0

    def expect(self, condition, what):
        if not condition:
            raise Failure(f"{what}: exit {self.status}\n{self.said}")

    def verdicts(self, wanted):
        found = {what: row["verdict"] for what, row in self.rows.items()}
        for what, row in self.rows.items():
            self.expect(found[what] == wanted.get(what, "ok"), f"{what} is {found[what]}")
        self.expect(set(wanted) <= set(found), f"rows {set(wanted) - set(found)} are missing")
        counts = {v: list(found.values()).count(v) for v in ("ok", "WRONG", "not shown")}
        self.expect(all(self.result[v] == n for v, n in counts.items()), "counts differ")
        self.expect((self.status != 0) == (counts["WRONG"] > 0), "the exit status says something else")


# The stand-in's machine code has a spill in a loop of attention.
ALWAYS = {"machine code": "WRONG"}


def check_order(_):
    """All rows, in the order of what matters; the carried folder stays as it was, the runtime is made once."""
    run = Run()
    run.verdicts(ALWAYS)
    run.expect([row["what"] for row in run.result["rows"]] == ROWS, "another order")
    run.expect(not run.left, f"left in the carried folder: {run.left}")
    run.expect(run.runtimes == 1, f"the runtime was made {run.runtimes} times")
    run.expect(run.result["gpu"] == "GPU 0: a card", "another card")
    run.expect({"log/build.log", "log/gpt-f32.0.log", "log/gpt-2-ranks.1.log", "log/torch-gpt2.log"} <= set(run.logs), f"logs: {run.logs}")
    run.expect(run.rows["machine code"]["found"].startswith("3 kernels, 2 spills in attention's loops, 0 roundings"), "other figures")
    run.expect(run.sass.splitlines()[0].split(",")[0].strip() == "4 instructions", run.sass)
    return f"{len(ROWS)} rows in {run.seconds:.0f} s"


def check_failures(_):
    """Each is seen where it is, and takes nothing else along."""
    run = Run("gpt-f32=off,gpt-bf16=crash,gpt-2-ranks=nan,gpt-sanitized=broken,gpt2-124m=flat,twins=crash")
    run.verdicts({**ALWAYS, "build": "WRONG", "kernels against the CPU's: twins": "WRONG", "gpt-f32: losses of 4 steps": "WRONG", "gpt-bf16: losses of 4 steps": "WRONG",
                  "gpt2-124m in bf16": "WRONG", "gpt-2-ranks: losses of 4 steps, 2 ranks share the card": "WRONG", "gpt-sanitized: memcheck": "not shown",
                  "gpt-sanitized: racecheck": "not shown", "gpt2-124m beside PyTorch": "not shown"})
    for what, text in (("build", "gpt.role0.cu(7): error: planted in gpt-sanitized"), ("gpt-bf16: losses of 4 steps", "rank 0: exit 1: planted: gpt-bf16"),
                       ("gpt-2-ranks: losses of 4 steps, 2 ranks share the card", "the loss of step 3 is no finite number"), ("gpt2-124m in bf16", "the loss does not fall"),
                       ("gpt-sanitized: memcheck", "gpt-sanitized was not built"), ("kernels against the CPU's: twins", "planted: twins")):
        run.expect(text in run.rows[what]["found"], f"{what} does not say: {text}")
    run.expect("    gpt.role0.cu(7): error: planted in gpt-sanitized" in run.said, "the first errors are not shown")
    return f"{run.result['WRONG']} wrong"


def check_engines(_):
    """A program without cuDNN has not shown it, one whose cuDNN lacks a plan or is off is wrong; our kernels' rows stay."""
    run = Run("attention=without,attention_speed=without", ["--only", "build|attention"])
    run.verdicts({"attention on slices: cuDNN's": "not shown", "attention by cuDNN, 4096 x 128": "not shown"})
    run.expect("attention full forward, 4096 x 128" in run.rows, "our times are missing")
    refused = Run("attention=refused,attention_speed=refused", ["--only", "build|attention"])
    refused.verdicts({"attention on slices: cuDNN's": "WRONG", "attention beside PyTorch": "WRONG"})
    refused.expect(refused.rows["attention on slices: cuDNN's"]["found"].endswith("slower kernels do: planted"), "another reason")
    off = Run("attention=wrong", ["--only", "build|attention"])
    off.verdicts({"attention on slices: cuDNN's": "WRONG"})
    return off.rows["attention on slices: cuDNN's"]["found"]


def check_time(_):
    """What the time does not reach is not shown, and what runs then is ended with its children."""
    run = Run("gpt-bf16=hang", ["--seconds", "12"])
    late = ROWS[ROWS.index("gpt-bf16: losses of 4 steps"):]
    run.verdicts({**ALWAYS, **{what: "not shown" for what in late if what in run.rows}})
    run.expect(run.rows["gpt-bf16: losses of 4 steps"]["found"] == "the time was up", "something else ended it")
    run.expect(run.seconds < 20, f"{run.seconds:.0f} s")
    run.expect(not run.survivors, "children live on")
    return f"ended after {run.seconds:.0f} s"


def check_hang(_):
    """A program that hangs while there is time is wrong, and the rest goes on."""
    run = Run("gpt-bf16=hang", limits={"gpt-bf16": 2})
    run.verdicts({**ALWAYS, "gpt-bf16: losses of 4 steps": "WRONG"})
    run.expect(run.rows["gpt-bf16: losses of 4 steps"]["found"] == "did not end in 2 s", "something else ended it")
    run.expect(not run.survivors, "children live on")
    return run.rows["gpt-bf16: losses of 4 steps"]["found"]


def check_ended(_):
    """A check that is ended leaves what it knows."""
    run = Run("gpt-f32=hang", ended_after=6)
    run.expect("kernels against the CPU's: twins" in run.rows and run.rows["build"]["verdict"] == "ok", "rows are missing")
    run.expect(run.status != 0 and "log/build.log" in run.logs and not run.survivors, "not ended as it should")
    return f"{len(run.rows)} rows"


def check_only(_):
    """--only builds what it needs, and no more."""
    run = Run(options=["--only", "gpt-f32|twins/twins", "--no-torch"])
    run.verdicts({})
    run.expect(run.built == {"gpt-f32", "twins"}, f"built {run.built}")
    run.expect(list(run.rows) == ["build", "kernels against the CPU's: twins", "gpt-f32: losses of 4 steps"], f"rows {list(run.rows)}")
    return "2 targets"


def check_prepared(bench):
    """The folder that prepare.py makes has all that the check's makefile names."""
    folder = bench.path("prepared")
    p = harness.run([ROOT / "tools" / "gpu_check.sh", "--prepare", folder, "--build", bench.build], timeout=1500)
    out, build = bench.path("out"), bench.path("build")
    env = {**os.environ, "PATH": "/usr/bin:/bin"}
    p = subprocess.run([sys.executable, str(folder / "check.py"), "--out", str(out), "--build", str(build), "--only", "gpt-f32|nccl", "--make", "NVCC=false"], env=env,
                       capture_output=True, text=True, timeout=300)
    rows = json.loads((out / "results.json").read_text())["rows"]
    if [r["verdict"] for r in rows] != ["WRONG", "not shown"] or "runtime/cuda" not in (build / "log" / "build.log").read_text():
        raise Failure(p.stdout + p.stderr)
    specs = json.loads((folder / "programs.json").read_text())
    missing = [s["name"] for s in specs if not (folder / "programs" / s["name"] / "Makefile").exists() or ("expected" in s and not (folder / "expected" / s["expected"]).exists())]
    if missing or not {"gpt-bf16-sanitized", "llama-bf16-sanitized"} <= {s["name"] for s in specs}:
        raise Failure(f"missing: {missing}")
    return f"{len(specs)} programs"


def tests(bench, _):
    for name, check in (("order", check_order), ("failures", check_failures), ("engines", check_engines), ("time", check_time), ("hang", check_hang), ("ended", check_ended), ("only", check_only)):
        yield f"gpu-check.{name}", functools.partial(check, bench)
    if os.environ.get("HETU_LONG"):
        yield "gpu-check.prepared", functools.partial(check_prepared, bench)


if __name__ == "__main__":
    harness.main("cuda.gpu-check", tests)
