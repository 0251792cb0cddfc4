#!/usr/bin/env python3
"""A folder of --emit=c -o stands alone: elsewhere, by its own make or by plain cc, it gives the bits of hetucc's program."""
import functools
import os
import shutil

import harness
from harness import COMMON, EXAMPLES, Failure, launch, run

STEPS = 12
PROGRAMS = [("gpt", "dp2tp2", 4), ("gpt", "uneven", 4), ("llama", "zero4", 4), ("mlp", "dp4", 4)]


def strategy_of(example, name):
    path = EXAMPLES / example / "strategies" / f"{name}.strategy"
    return path if path.exists() else name


def emit(bench, example, strategy, out, *flags, check=True):
    return run([bench.hetucc, "-O2", f"--strategy={strategy_of(example, strategy)}", *flags, "--emit=c", EXAMPLES / example / f"{example}.c", *COMMON, "-o", out], check=check).stderr


def losses(program, ranks, file):
    launch(program, ranks, "--steps", STEPS, "--sample", 0, "--losses", file, meets=True, timeout=300)
    return file.read_text()


def reference(bench, example, strategy, ranks):
    """The losses of the program that hetucc makes."""
    def make():
        program = bench.path(f"{example}.{strategy}.program")
        run([bench.hetucc, "-O2", f"--strategy={strategy_of(example, strategy)}", EXAMPLES / example / f"{example}.c", *COMMON, "-o", program], timeout=300)
        return losses(program, ranks, bench.path(f"{example}.{strategy}.wanted"))
    return bench.once(("reference", example, strategy), make)


def moved(bench, example, strategy, label):
    """A folder, emitted and moved elsewhere, so that nothing in it may say where it was."""
    first, then = bench.path(f"{example}.{strategy}.{label}.emitted"), bench.path(f"{example}.{strategy}.{label}.moved")
    emit(bench, example, strategy, first)
    shutil.move(first, then)
    return then


def make(folder, bench):
    return run(["make", "-s", "-C", folder, f"RUNTIME_CACHE={bench.path('runtime')}"], timeout=580)


def check_make(bench, example, strategy, ranks):
    folder = moved(bench, example, strategy, "make")
    bench.once("runtime", lambda: make(folder, bench))
    make(folder, bench)
    named = [p for p in folder.rglob("*") if p.suffix in {".c", ".h", ".mk"} and str(bench.work) in p.read_text()]
    if named:
        raise Failure(f"{named} say where they were emitted")
    found = losses(folder / example, ranks, bench.path(f"{example}.{strategy}.made"))
    if found != reference(bench, example, strategy, ranks):
        raise Failure(f"losses differ:\n{found}")


def plain(bench, folder, program, *flags, check=True):
    sources = [*folder.glob("*.c"), *(folder / "source").rglob("common/*.c")]
    library = bench.build / "lib"
    return run(["cc", *flags, "-fopenmp", "-D_HSPMD=202611", f"-I{folder}/include", *sources, "-o", program, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"],
               timeout=300, check=check).stderr


def check_flags(bench, example, strategy, ranks):
    """The obvious command, whose options would let products and sums be contracted."""
    folder = moved(bench, example, strategy, "plain")
    for flags in (["-O3", "-march=native"], ["-O2"]):
        program = bench.path(f"{example}.{strategy}.{flags[0]}")
        plain(bench, folder, program, *flags)
        found = losses(program, ranks, bench.path(f"{example}.{strategy}.{flags[0]}.found"))
        if found != reference(bench, example, strategy, ranks):
            raise Failure(f"losses under {flags} differ:\n{found}")
    said = plain(bench, folder, program, "-O3", "-ffast-math", check=False)
    if "give other results under -ffast-math" not in said:
        raise Failure(f"-ffast-math is not refused:\n{said}")


def check_fast_math(bench):
    """hetucc -ffast-math compiles the user's code so, and kernels as they are written."""
    example, strategy, ranks = PROGRAMS[0]
    program = bench.path("fast")
    run([bench.hetucc, "-O2", "-ffast-math", f"--strategy={strategy_of(example, strategy)}", EXAMPLES / example / f"{example}.c", *COMMON, "-o", program], timeout=300)
    if losses(program, ranks, bench.path("fast.found")) != reference(bench, example, strategy, ranks):
        raise Failure("-ffast-math changes losses")


def names(folder):
    return sorted(p.name for p in folder.glob("gpt.*.c"))


def check_leftovers(bench):
    folder, alone = bench.path("twice"), bench.path("once")
    emit(bench, "gpt", "uneven", folder)
    emit(bench, "gpt", "uneven", folder)
    before = names(folder)
    with open(folder / "gpt.role2.c", "a") as file:
        file.write("/* mine */\n")
    (folder / "notes.txt").write_text("mine")
    said = emit(bench, "gpt", "single", folder)
    emit(bench, "gpt", "single", alone)
    if "gpt.role3.c" not in before or names(folder) != sorted([*names(alone), "gpt.role2.c"]) or not (folder / "notes.txt").exists():
        raise Failure(f"{before}, then {names(folder)}")
    if "gpt.role2.c stays" not in said:
        raise Failure(f"nothing is said of a changed file:\n{said}")
    wrong = [p for p in folder.rglob("*") if p.is_file() and p.name not in {"gpt.role2.c", "notes.txt"} and p.read_bytes() != (alone / p.relative_to(folder)).read_bytes()]
    if wrong:
        raise Failure(f"{wrong} differ from those of a new folder")


def check_foreign(bench):
    folder = bench.path("foreign")
    folder.mkdir()
    (folder / "Makefile").write_text("all:\n\ttrue\n")
    said = emit(bench, "gpt", "single", folder, check=False)
    if "Makefile would be replaced" not in said or os.listdir(folder) != ["Makefile"]:
        raise Failure(f"{os.listdir(folder)}:\n{said}")


def tests(bench, _):
    for number, (example, strategy, ranks) in enumerate(PROGRAMS):
        yield f"folders.make.{example}.{strategy}", functools.partial(check_make, bench, example, strategy, ranks)
        yield f"folders.flags.{example}.{strategy}", functools.partial(check_flags, bench, example, strategy, ranks), number > 0
    yield "folders.fast-math", functools.partial(check_fast_math, bench)
    yield "folders.leftovers", functools.partial(check_leftovers, bench)
    yield "folders.foreign", functools.partial(check_foreign, bench)


harness.main("run.folders", tests)
