#!/usr/bin/env python3
"""A loop of 10,000 layers: hetucc and the C compiler together take at most 60 s and 4 GB, and the program runs."""
import functools
import os
import pathlib
import subprocess
import time

import harness
from harness import Failure, launch, run

SOURCE = pathlib.Path(__file__).resolve().parent / "Inputs" / "deep.c"
SECONDS, BYTES = 60, 4 << 30


def compiled(bench, strategy, out):
    """Compiles within the limits; gives (seconds, bytes). The peak is that of hetucc or of the largest process that it started."""
    start = time.monotonic()
    child = subprocess.Popen([bench.hetucc, *strategy, SOURCE, "-o", out], stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failure(f"exit {child.returncode}: {said[-1000:]}")
    return time.monotonic() - start, 1024 * usage.ru_maxrss


def plain_program(bench):
    out, library = bench.path("deep.plain"), bench.build / "lib"
    run(["cc", f"-I{harness.ROOT}/include", SOURCE, "-o", out, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    return out


def check(bench, ranks):
    text = f"strategy dp\n  split batch:dp\n  pipeline\n    stage devices(0-{ranks - 1}) mesh(dp:{ranks})\nend strategy\n"
    path, out = bench.path(f"deep{ranks}.strategy"), bench.path(f"deep{ranks}")
    path.write_text(text)
    seconds, size = compiled(bench, [f"--strategy={path}"] if ranks > 1 else [], out)
    plain = bench.once("plain", lambda: plain_program(bench))
    found, wanted = launch(out, ranks if ranks > 1 else 0).stdout.split(), launch(plain, 0).stdout.split()
    harness.compare_losses([float(x) for x in found], [float(x) for x in wanted], 1e-4)
    if seconds > SECONDS or size > BYTES:
        raise Failure(f"{seconds:.1f} s and {size >> 20} MB to compile")
    return f"{seconds:.1f} s and {size >> 20} MB to compile"


def tests(bench, _):
    yield "deep.one", functools.partial(check, bench, 1)
    yield "deep.dp4", functools.partial(check, bench, 4)


harness.MEETS = True
harness.main("run.deep", tests)
