#!/usr/bin/env python3
"""The code that hetucc emits for every example and strategy has the same bytes in two runs, and compiles without a warning."""
import functools
import filecmp
import re

import harness
from harness import EXAMPLES, Failure, ROOT, run

harness.OPTIMISED = "-O1"

NAMED = {"llama": ["single", "dp4", "tp4", "dp2tp2", "dp2tp2sp", "zero4", "uneven"], "mlp": ["dp4", "tp4", "dp2tp2", "dp2tp2sp", "zero4", "uneven"],
         "custom": ["dp4", "sp4", "dp2tp2"]}


def strategies():
    for path in sorted((EXAMPLES / "gpt" / "strategies").glob("*.strategy")):
        yield "gpt", path.stem, path
    for example, names in NAMED.items():
        for name in names:
            yield example, name, name


def emit(bench, source, strategy, out):
    run([bench.hetucc, f"--strategy={strategy}", "--emit=c", source, "-o", out])
    return sorted(p for p in out.iterdir() if p.is_file())


def check(bench, example, name, strategy):
    source = EXAMPLES / example / f"{example}.c"
    first, second = (emit(bench, source, strategy, bench.path(f"{example}.{name}.{i}")) for i in (1, 2))
    if [p.name for p in first] != [p.name for p in second]:
        raise Failure(f"files {[p.name for p in first]}, then {[p.name for p in second]}")
    for a, b in zip(first, second):
        if not filecmp.cmp(a, b, shallow=False):
            raise Failure(f"{a.name} differs the second time")
        if re.search(r"0x[0-9a-f]{9,}", a.read_text()):
            raise Failure(f"{a.name} shows a pointer")
        if a.suffix == ".c":
            run(["cc", "-std=gnu17", "-O1", *harness.WARNINGS, "-fopenmp", "-D_HSPMD=202611", f"-I{ROOT}/include", f"-iquote{source.parent}", "-c", a, "-o", a.with_suffix(".o")],
                cwd=source.parent)
    return f"{len(first)} files, {sum(p.stat().st_size for p in second)} bytes"


def tests(bench, _):
    for example, name, strategy in strategies():
        yield f"emitted.{example}.{name}", functools.partial(check, bench, example, name, strategy)


harness.main("run.emitted", tests)
