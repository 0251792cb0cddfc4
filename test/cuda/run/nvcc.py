#!/usr/bin/env python3
"""What hetucc emits for CUDA compiles with nvcc for sm_80 and sm_90 without a warning: the emitted files and the user's of a short list of programs. With HETU_LONG=1 every
example with every strategy, and the runtime (once for all, which takes minutes), link to programs.

Without nvcc the test is skipped (exit status 77) and says so.
"""
import functools
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "run"))
import harness
import train
from harness import COMMON, EXAMPLES, Failure, run

SKIPPED = 77
SHORT = [("gpt", "dp2tp2", 4, []), ("llama", "single", 1, ["-DDTYPE=HT_BF16"]), ("custom", "sp4", 4, [])]


def programs():
    if not os.environ.get("HETU_LONG"):
        yield from SHORT
        return
    for example in ("gpt", "llama", "mlp", "custom"):
        for name in ["dp4", "sp4", "dp2tp2"] if example == "custom" else train.STRATEGIES:
            for flags in [[], ["-DDTYPE=HT_BF16"]] if example in ("gpt", "llama") else [[]]:
                yield example, name, 1 if name == "single" else 4, flags


def make(bench, folder, targets=()):
    return run(["make", "-C", folder, "-j2", "WERROR=1", "ARCH=sm_80 sm_90", f"RUNTIME_BUILD={bench.work}/runtime", *targets], timeout=900, env={"MAKEFLAGS": ""})


def check_objects(bench, folder):
    """Compiles the folder's CUDA files, save those of the runtime."""
    sources = [*folder.glob("*.cu"), *folder.glob("source/*.cu")]
    objects = [f"build/{source.relative_to(folder)}.o" for source in sources]
    p = make(bench, folder, objects)
    missing = [name for name in objects if not (folder / name).exists()]
    if missing or len(sources) < 2:
        raise Failure(f"make did not build {missing or 'enough'}:\n{p.stdout[-2000:]}")
    return f"{len(objects)} files"


def check_program(bench, folder, name):
    p = make(bench, folder)
    program = folder / name
    if not program.exists():
        raise Failure(f"make built no program:\n{p.stdout[-2000:]}")
    return f"{program.stat().st_size >> 10} KB"


def check(bench, example, name, flags):
    source = EXAMPLES / example / f"{example}.c"
    folder = bench.path(f"{example}.{name}{''.join(flags)}")
    kernels = [source.with_suffix(".cu")] if source.with_suffix(".cu").exists() else []
    run([bench.hetucc, "--backend=cuda", "--emit=c", f"--strategy={train.strategy_of(example, name)}", *flags, source, *kernels, *COMMON, "-o", folder, "-lm"])
    said = check_program(bench, folder, example) if os.environ.get("HETU_LONG") else check_objects(bench, folder)
    shutil.rmtree(folder)
    return said


def without_device(bench):
    """Where there is no GPU, the program says so in one line."""
    source = EXAMPLES / "mlp" / "mlp.c"
    out = bench.path("mlp.exe")
    run([bench.hetucc, "--backend=cuda", "--strategy=single", source, *COMMON, "-o", out, "-lm"], timeout=900)
    p = run([out, "--steps", 1], check=False)
    if p.returncode == 0 and not p.stderr:
        return "there is a GPU"
    if p.returncode != 1 or len(p.stderr.splitlines()) != 1 or "device" not in p.stderr:
        raise Failure(f"exit {p.returncode}: {p.stderr}")
    return p.stderr.strip()


def tests(bench, _):
    for example, name, ranks, flags in programs():
        yield f"nvcc.{example}.{name}{''.join(flags)}", functools.partial(check, bench, example, name, flags)
    if os.environ.get("HETU_LONG"):
        yield "nvcc.without-device", functools.partial(without_device, bench)


if __name__ == "__main__":
    if not shutil.which("nvcc") and not os.access("/usr/local/cuda/bin/nvcc", os.X_OK):
        print("cuda.nvcc: skipped: there is no nvcc on this machine, so what is emitted for CUDA was not compiled by it")
        sys.exit(SKIPPED)
    harness.main("cuda.nvcc", tests, jobs=1)
