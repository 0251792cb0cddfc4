#!/usr/bin/env python3
"""Adds two operators and a pass to a copy of the sources, as CONTRIBUTING.md says under "Adding things": an elementwise operator by its declaration in ops.h; an operator with a kernel
by its declaration and one kernel file for each backend; the pass common_subexpressions by its file and a line in the list of pass_manager.h. No other file is changed. The copy is
built. A model with both operators runs on one device, on four ranks, and on four emulated GPUs; its values and gradients are compared with closed forms. The pass runs alone on IR text.

The compiler launcher reuse.sh takes object files that do not depend on these changes from the build tree. CMake and the emitted Makefiles build the same as everywhere else.
"""
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness  # noqa: E402
from harness import Failure, ROOT, launch, run  # noqa: E402

INPUTS = HERE / "Inputs"
EMULATE = ROOT / "test" / "cuda" / "emulate"
ADDED = {"runtime/cpu/running_sum.c", "runtime/cuda/running_sum.cu", "compiler/passes/common_subexpressions.c"}
OPERATORS, PASSES = "include/hetu/ops.h", "compiler/passes/pass_manager.h"
CHANGED = {OPERATORS, PASSES}
BREAKS = """    if (getenv("TEST_BREAKS")) module->ops.at[module->ops.count - 1] = module->ops.at[0];
"""  # the pass with a mistake: one operator twice


def insert(path, before, text):
    """Inserts text into a file, in front of the first `before`."""
    old = path.read_text()
    place = old.index(before)
    path.write_text(old[:place] + text + old[place:])


def copy_sources(root):
    """The sources with the two operators and the pass."""
    shutil.copytree(ROOT, root, symlinks=True, ignore=lambda folder, names: {".git", "__pycache__"} | ({"build"} if pathlib.Path(folder) == ROOT else set()))
    insert(root / OPERATORS, "/* ---- optimizers ---- */", (INPUTS / "declarations.h").read_text())
    insert(root / PASSES, "    PASS(differentiate,", "    PASS(common_subexpressions, MODEL, FACTORED, MODEL) \\\n")
    for name in ADDED:
        shutil.copy(INPUTS / pathlib.Path(name).name, root / name)
    insert(root / "compiler/passes/common_subexpressions.c", "#include <string.h>", "#include <stdlib.h>\n")
    insert(root / "compiler/passes/common_subexpressions.c", "    for (int i = 0; i < module->ops.count; i++) {\n        const Op *equal", BREAKS)


def reusable(build):
    """The objects of a build tree that need nothing that is changed, and nothing that the build itself writes."""
    found, objects = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True), []
    for entry in found.stdout.split("\n\n"):
        name, *needs = entry.splitlines() or [""]
        out = name.split(":")[0]
        needs = [pathlib.Path(build, line.strip()) for line in needs]
        if "VALID" not in name or not (build / out).exists():
            continue
        written = any(p.is_relative_to(build) and not p.is_relative_to(build / "include") for p in needs)
        changed = any(p.resolve() in {ROOT / name for name in CHANGED} or p.stat().st_mtime > (build / out).stat().st_mtime for p in needs if p.exists())
        if not written and not changed:
            objects.append(out)
    return objects


def cached(build, *names):
    """-D options that repeat what a build tree was configured with."""
    cache = (build / "CMakeCache.txt").read_text()
    return [f"-D{name}={value}" for name in names for value in re.findall(rf"^{name}:\w+=(.*)$", cache, flags=re.M)]


def built(bench):
    """The build tree of the copy."""
    def make():
        root, objects = bench.path("copy"), bench.path("reusable")
        copy_sources(root)
        objects.write_text("\n".join(reusable(bench.build)) + "\n")
        launcher = f"-DCMAKE_C_COMPILER_LAUNCHER=sh;{INPUTS / 'reuse.sh'};{bench.build};{objects}"
        run(["cmake", "-G", "Ninja", "-S", root, "-B", root / "build", launcher,
             *cached(bench.build, "CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER", "HETU_WERROR", "HETU_SANITIZE")], timeout=300)
        run(["ninja", "-C", root / "build", "-j2", "hetu", "hetucc", "hetu-opt"], timeout=500)
        return root / "build"
    return bench.once("built", make)


def check(p):
    if "all is right" not in p.stdout:
        raise Failure(p.stdout + p.stderr)


def one_device(bench):
    build = built(bench)
    run(["cc", "-std=gnu17", *harness.WARNINGS, f"-I{build}/include", INPUTS / "model.c", "-o", bench.path("plain"), f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lhetu", "-lm"])
    check(launch(bench.path("plain"), 0, check=False))


def four_ranks(bench):
    run([built(bench) / "bin" / "hetucc", "-O1", *harness.WARNINGS, INPUTS / "model.c", "-o", bench.path("four"), "-lm"])
    check(launch(bench.path("four"), 4, check=False))


def emulated(bench):
    """The emitted folder is built by its own Makefile, with g++ in nvcc's place; of the runtime it builds the added kernel and what knows the operators by name, and has the rest from the
    build tree."""
    folder, library, archive = bench.path("folder"), bench.build / "lib", bench.path("libruntime.a")
    run([built(bench) / "bin" / "hetucc", "--backend=cuda", "--emit=c", "-O1", *harness.WARNINGS, INPUTS / "model.c", "-o", folder, "-lm"])
    shutil.copy(library / "libhetu_emulated_cuda.a", archive)
    run(["ar", "d", archive, "models.c.o"])
    run(["make", "-C", folder, "-j2", f"PROGRAM={bench.path('emulated')}", "MPI=1", "NCCL=1", "CUDNN=0", "NVCC=g++", f"NVCCFLAGS=-x c++ -O1 -w -DHT_EMULATED -I{EMULATE}",
         "RUNTIME_OBJECTS=build/runtime/cuda/running_sum.cu.o build/runtime/cuda/models.c.o", "NCCL_HEADERS=",
         f"NCCL_LIBRARIES={library}/libhetu_nccl_stand_in.a {library}/libhetu_emulation.a", f"CUDA_LIBRARIES=-Wl,--whole-archive {archive} -Wl,--no-whole-archive"], timeout=300)
    check(launch(bench.path("emulated"), 4, check=False))


def added_pass(bench):
    """The pass computes an expression once that the text has twice, and runs in its place when all passes do."""
    opt, text = built(bench) / "bin" / "hetu-opt", (INPUTS / "common_subexpressions.ir").read_text()
    lines = run([opt, "common_subexpressions", INPUTS / "common_subexpressions.ir"]).stdout
    if text.count("= exp(") != 2 or lines.count("= exp(") != 1 or "multiply(%3, %3)" not in lines:
        raise Failure(lines)
    order = run([built(bench) / "bin" / "hetucc", "--emit=ir", "--print-after=all", INPUTS / "model.c"])
    names = re.findall(r"^// \w+ after (\w+)$", order.stdout + order.stderr, flags=re.M)
    if names[:3] != ["precision", "common_subexpressions", "differentiate"]:
        raise Failure(f"the passes ran in the order {names}")


def verified(bench):
    """What a pass leaves malformed ends hetucc: every compile is verified, without an option."""
    p = run([built(bench) / "bin" / "hetucc", INPUTS / "model.c", "-o", bench.path("broken"), "-lm"], env={"TEST_BREAKS": "1"}, check=False)
    if p.returncode != 2 or "pass common_subexpressions left" not in p.stderr or bench.path("broken").exists():
        raise Failure(f"exit {p.returncode}\n{p.stdout}{p.stderr}")


def untouched(bench):
    """Nothing but the two lists and the added files differs from the sources."""
    built(bench)
    root = bench.path("copy")
    files = {p.relative_to(root) for p in root.rglob("*") if p.is_file() and not p.is_relative_to(root / "build")}
    differ = {str(p) for p in files if not (ROOT / p).is_file() or (ROOT / p).read_bytes() != (root / p).read_bytes()}
    if differ != ADDED | CHANGED:
        raise Failure(f"these differ: {sorted(differ)}")


def tests(bench, a):
    yield "one_device", lambda: one_device(bench)
    yield "four_ranks", lambda: four_ranks(bench)
    if (bench.build / "lib" / "libhetu_emulated_cuda.a").exists():
        yield "emulated", lambda: emulated(bench)
    yield "added_pass", lambda: added_pass(bench)
    yield "verified", lambda: verified(bench)
    yield "untouched", lambda: untouched(bench)


harness.MEETS = True
harness.main("adding", tests)
