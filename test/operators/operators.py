#!/usr/bin/env python3
"""Runs operators.c and optimizers.c whole (by plain cc, and by hetucc without a strategy) and with every named factor cut over 2 to 4 devices,
evenly and unevenly. Operators are fused with the operators that weigh their results; the runs called "alone" compute every operator separately.

When the program of all cases does not compile or stops early, the cases run one by one, so that the report names those at fault.
"""
import functools
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "run"))
import dtypes  # noqa: E402
import harness  # noqa: E402
from harness import Failure, ROOT, launch, run  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CASES = re.findall(r"^    X\((\w+),", (HERE / "cases.h").read_text(), flags=re.M)
FACTORS = ["f0", "f1", "f2", "f3"]
ALONE = ("--no-fuse",)


class Wrong(Failure):
    """The program ran to its end and names the cases at fault itself."""


def strategies(factors):
    """{name: (devices, text)}: each factor over 4 devices, with HETU_LONG=1 also over 2 and 3, unevenly over 3, and pairs of factors over 4."""
    found = {}
    for n in (2, 3, 4) if os.environ.get("HETU_LONG") else (4,):
        for f in factors:
            found[f"{f}x{n}"] = n, f"  split {f}:x\n  pipeline\n    stage devices(0-{n - 1}) mesh(x:{n})\n"
    for f in factors:
        found[f"{f}by5:1:2"] = 3, f"  split {f}:x\n  pipeline\n    stage devices(0-2) mesh(x:3 by 5:1:2)\n"
    for i, f in enumerate(factors):
        g = factors[(i + 1) % len(factors)]
        if f != g:
            found[f"{f}{g}"] = 4, f"  split {f}:x  {g}:y\n  pipeline\n    stage devices(0-3) mesh(x:2, y:2)\n"
    return found


def strategy_write(bench, name, text):
    path = bench.path(f"{name}.strategy")
    path.write_text(f"strategy {re.sub('[^a-z0-9]', '_', name)}\n{text}end strategy\n")
    return path


def reference(bench):
    def make():
        out = bench.work / "reference.o"
        run(["cc", "-std=gnu17", "-O1", *harness.WARNINGS, "-c", HERE / "reference.c", "-o", out])
        return out
    return bench.once("reference", make)


def built(bench, source, strategy, flags=()):
    """The program of a strategy file; "cc": of the plain compiler; None: of hetucc without a strategy."""
    out = bench.path(f"{source.stem}.{strategy.stem if isinstance(strategy, pathlib.Path) else strategy}{''.join(flags)}")
    objects = [reference(bench)] if source.stem == "operators" else []
    if strategy == "cc":
        library = bench.build / "lib"
        run(["cc", "-std=gnu17", harness.OPTIMISED, *harness.WARNINGS, *flags, f"-I{ROOT}/include", source, *objects, "-o", out, f"-L{library}", f"-Wl,-rpath,{library}",
             "-lhetu", "-lm"])
    else:
        chosen = [f"--strategy={strategy}"] if strategy else []
        run([bench.hetucc, *chosen, harness.OPTIMISED, *harness.WARNINGS, *flags, source, *objects, "-o", out, "-lm"], timeout=300)
    return out


def output_check(p):
    """The program's mask lines; a Failure with what it found wrong."""
    wrong = [line for line in p.stdout.splitlines() if line.startswith("wrong:")]
    if wrong or p.returncode:
        raise (Wrong if wrong else Failure)("\n".join(wrong[:20]) or f"exit {p.returncode}: {(p.stdout + p.stderr)[-1500:]}")
    return re.findall(r"^mask (\w+)$", p.stdout, flags=re.M)


def one_by_one(bench, source, strategy, ranks, flags):
    """The cases that fail alone, with the first line of what they say."""
    failed = []
    for bit, name in enumerate(CASES):
        try:
            output_check(launch(built(bench, source, strategy, (*flags, f"-DCASES=({1 << bit}ull)")), ranks, check=False))
        except Failure as e:
            text = str(e)
            said = re.search(r"^.*(?:error|wrong|BUG|internal).*$", text, flags=re.M | re.I)
            failed.append(f"{name}: {said[0] if said else text[-200:]}")
    return failed


def extremes(bench, strategy, ranks, flags=()):
    """What operators give at zeros, huge numbers, infinities and NaN, against the table of what PyTorch gives."""
    output_check(launch(built(bench, HERE / "extremes.c", strategy, flags), ranks, HERE / "extremes.txt", check=False))


def types(bench):
    """Both front doors take the same element types, and give the same."""
    library, folder = bench.build / "lib", bench.path("types")
    folder.mkdir()

    def plain(path):
        run(["cc", "-std=gnu17", "-O0", "-w", f"-I{ROOT}/include", path, "-o", folder / "plain", f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
        return folder / "plain"

    def compiled(path):
        p = run([bench.hetucc, "-O1", "-w", path, "-o", folder / "compiled", "-lm"], check=False)
        return None if p.returncode else folder / "compiled", p.stderr

    wrong, accepted = dtypes.compare(folder / "types.c", plain, compiled, lambda program, *a: launch(program, 0, *a, check=False))
    if wrong:
        raise Failure("\n".join(wrong[:20]))
    return f"{accepted} combinations"


def check(bench, source, strategy, ranks, flags=()):
    try:
        masks = output_check(launch(built(bench, source, strategy, flags), ranks, check=False))
    except Wrong:
        raise
    except Failure as e:
        if source.stem != "operators":
            raise
        failed = one_by_one(bench, source, strategy, ranks, flags)
        raise Failure("\n".join([*failed, "all together: " + str(e)[-1500:]])) from None
    if masks:
        first = bench.once("mask", lambda: masks)
        if first != masks:
            raise Failure(f"dropout's mask {masks} is not {first} as elsewhere")


def tests(bench, a):
    for source, factors in ((HERE / "operators.c", FACTORS), (HERE / "optimizers.c", FACTORS[:2])):
        yield f"{source.stem}.cc", functools.partial(check, bench, source, "cc", 0)
        yield f"{source.stem}.hetucc", functools.partial(check, bench, source, None, 1)
        yield f"{source.stem}.hetucc.alone", functools.partial(check, bench, source, None, 1, ALONE)
        for name, (ranks, text) in strategies(factors).items():
            path = strategy_write(bench, f"{source.stem}.{name}", text)
            yield f"{source.stem}.{name}", functools.partial(check, bench, source, path, ranks), name in ("f1f2", "f3f0", "f1x4", "f0by5:1:2")
            if ":" in name:
                yield f"{source.stem}.{name}.alone", functools.partial(check, bench, source, path, ranks, ALONE), not name.startswith("f0")


    yield "types", functools.partial(types, bench)
    yield "mends.cc", functools.partial(check, bench, HERE / "mends.c", "cc", 0)
    yield "mends.hetucc", functools.partial(check, bench, HERE / "mends.c", None, 1)
    yield "mends.hetucc.alone", functools.partial(check, bench, HERE / "mends.c", None, 1, ALONE)
    yield "extremes.cc", functools.partial(extremes, bench, "cc", 0)
    yield "extremes.hetucc", functools.partial(extremes, bench, None, 1)
    yield "extremes.hetucc.alone", functools.partial(extremes, bench, None, 1, ALONE)
    for name, (ranks, text) in strategies(FACTORS[:2]).items():
        if ranks == 3 or name == "f0f1":
            path = strategy_write(bench, f"extremes.{name}", text)
            yield f"extremes.{name}", functools.partial(extremes, bench, path, ranks), name.startswith("f0by")
            yield f"mends.{name}", functools.partial(check, bench, HERE / "mends.c", path, ranks), name.startswith("f1by")


harness.MEETS = True
harness.main("operators.all", tests)
