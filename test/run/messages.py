#!/usr/bin/env python3
"""What a user sees when a run goes wrong: each program ends with exit status 1 (mpirun with its own) and a message that names the cause."""
import functools
import re

import harness
from harness import EXAMPLES, Failure, launch

FLAGS = ("-DEMBED=32", "-DLAYERS=1", "-DSEQ=16", "-DBATCH=4")


def strategy(name):
    return EXAMPLES / "gpt" / "strategies" / f"{name}.strategy"


def expect(p, *patterns):
    text = p.stdout + p.stderr
    if p.returncode == 0:
        raise Failure(f"exit status 0: {text[-500:]}")
    for pattern in patterns:
        if not re.search(pattern, text):
            raise Failure(f"no '{pattern}' in: {text[-1500:]}")


def data_check(bench, ranks, program_of, data, *patterns):
    p = launch(program_of(), ranks, "--steps", 2, "--sample", 0, "--data", data, check=False, timeout=60)
    expect(p, *patterns)


def option_check(bench, ranks, program_of, options, *patterns):
    expect(launch(program_of(), ranks, "--steps", 2, "--sample", 0, *options, check=False, timeout=60), *patterns)


def tests(bench, _):
    short = bench.path("short.txt")
    short.write_bytes(b"sixteen bytes...")
    high = bench.path("high.txt")
    high.write_bytes(bytes([200]) * 1000)
    gpt = EXAMPLES / "gpt" / "gpt.c"
    small = FLAGS + ("-DVOCAB=128",)
    for label, ranks, make in (("cc", 0, bench.plain), ("dp4", 4, functools.partial(bench.compiled, strategy=strategy("dp4"))),
                               ("tp4", 4, functools.partial(bench.compiled, strategy=strategy("tp4")))):
        program, narrow = functools.partial(make, gpt, flags=FLAGS), functools.partial(make, gpt, flags=small)
        yield f"truncated.{label}", functools.partial(data_check, bench, ranks, program, short, r"short\.txt", "holds 16 bytes")
        yield f"absent.{label}", functools.partial(data_check, bench, ranks, program, "/nowhere", "/nowhere: No such file")
        yield f"token.{label}", functools.partial(data_check, bench, ranks, narrow, high, r"token 200 ", r"128 rows")
        yield f"option.{label}", functools.partial(option_check, bench, ranks, program, ["--stps", "3"], "unrecognized option")
        yield f"unwritable.{label}", functools.partial(option_check, bench, ranks, program, ["--losses", "/nowhere/x"], "cannot write /nowhere/x")
        yield f"full.{label}", functools.partial(option_check, bench, ranks, program, ["--dump", "/dev/full"], "cannot write /dev/full", "No space")
        if ranks:
            yield f"ranks.{label}", functools.partial(option_check, bench, 2, program, [], r"heturun -n 4 ")


harness.main("run.messages", tests)
