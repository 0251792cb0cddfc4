#!/usr/bin/env python3
"""Measures hetucc, without the C compiler, for a GPT of 96 layers on many devices.

    scale.py HETUCC [DEVICES...]           checks processor time, memory and the size of tables
    scale.py --bytes HETUCC [DEVICES...]   checks memory and tables only, equal on every machine
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPT = ROOT / "examples" / "gpt" / "gpt.c"
SIZES = dict(EMBED=12288, HEADS=96, LAYERS=96, SEQ=2048, VOCAB=51200)
DEVICES = (64, 1024, 4096)
SECONDS, MEMORY, TABLES, GROWTH = 3.0, 1e9, 4e6, 1.5  # limits: seconds, bytes, bytes of tables;
                                                      # seconds on 4,096 devices over 1,024
TRIES = 5


def stages(first, count, copies, tensor):
    """Returns stages of equal numbers of layers, each on `copies` x `tensor` devices from `first` on."""
    layers, size = SIZES["LAYERS"] // count, copies * tensor
    for s in range(count):
        yield (f"    stage devices({first + s * size}-{first + (s + 1) * size - 1}) mesh(dp:{copies}, tp:{tensor}) "
               f"layers({s * layers}-{(s + 1) * layers - 1})")


def one_kind(devices):
    """Returns lines of 8-way tensor parallelism, 8 stages and n copies, and the batch's rows."""
    copies = devices // 64
    return ["  pipeline microbatches(16)", *stages(0, 8, copies, 8)], 16 * copies


def two_kinds(devices):
    """Returns lines of pipelines of 4 stages x 8 devices and as many of 8 x 4; the batch's rows."""
    lines = []
    for first in range(0, devices, 64):
        lines += ["  pipeline microbatches(16) rows(1)", *stages(first, 4, 1, 8), "  pipeline microbatches(8) rows(2)", *stages(first + 32, 8, 1, 4)]
    return lines, devices // 2


def wide_kinds(devices):
    """Returns lines of pipelines of 4 stages x 8 devices, twice as many of 8 x 2; the batch's rows.

    Tensors' pieces on devices of the second kind are four times as large as on the others.
    """
    lines = []
    for first in range(0, devices, 64):
        lines += ["  pipeline microbatches(16) rows(1)", *stages(first, 4, 1, 8)]
        for second in first + 32, first + 48:
            lines += ["  pipeline microbatches(4) rows(2)", *stages(second, 8, 1, 2)]
    return lines, devices // 2


STRATEGIES = {"8 x 8 x n": (0, one_kind), "two kinds of pipelines": (0, two_kinds), "8 beside 2 ways": (0, wide_kinds), "8 x 8 x n, zero 1": (1, one_kind), "two kinds, zero 1": (1, two_kinds)}


def compile_gpt(hetucc, work, zero, lines, batch):
    """Returns seconds of processor time, peak bytes, and bytes of tables of one compilation."""
    strategy, out = work / "scale.strategy", work / "scale"
    strategy.write_text("\n".join(["strategy scale", "  split batch:dp  heads:tp  ffn:tp  vocab:tp", "  schedule 1f1b", f"  zero {zero}", *lines, "end strategy", ""]))
    defines = [f"-D{name}={value}" for name, value in {**SIZES, "BATCH": batch}.items()]
    child = subprocess.Popen([str(hetucc), f"--strategy={strategy}", "--emit=c", *defines, str(GPT), "-o", str(out)])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"hetucc: exit {child.returncode}")
    return usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss, (out / "gpt.image.c").stat().st_size


def measure(hetucc, devices=DEVICES, tries=1):
    """Returns {(strategy, devices): (seconds, peak bytes, bytes of tables)}.

    Each is the least of several alternating tries, since disturbances only add time.
    """
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(tries):
            for name, (zero, make) in STRATEGIES.items():
                for n in devices:
                    taken = compile_gpt(hetucc, pathlib.Path(folder), zero, *make(n))
                    found[name, n] = tuple(map(min, found.get((name, n), taken), taken))
    return found


def rows(hetucc):
    """Returns the rows for the table of bench.py."""
    measured, table = measure(hetucc, tries=TRIES), []
    for (name, n), (seconds, memory, tables) in measured.items():
        what = f"hetucc, 96 layers, {n} devices"
        table += [(f"{what}, s", name, seconds, "<= 3", seconds <= SECONDS), (f"{what}, GB", name, memory / 1e9, "<= 1", memory <= MEMORY),
                  (f"{what}, MB of tables", name, tables / 1e6, "<= 4", tables <= TABLES)]
    for name in STRATEGIES:
        ratio = measured[name, 4096][0] / measured[name, 1024][0]
        table.append(("hetucc, 96 layers, 4096 over 1024 devices", name, ratio, "<= 1.5", ratio <= GROWTH))
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("hetucc")
    parser.add_argument("devices", type=int, nargs="*", default=DEVICES)
    options = parser.parse_args()
    over = False
    for (name, n), (seconds, memory, tables) in measure(options.hetucc, options.devices).items():
        print(f"{name:24} {n:5} devices {seconds:6.2f} s {memory / 1e6:7.0f} MB {tables / 1e6:7.2f} MB of tables")
        over = over or memory > MEMORY or tables > TABLES or (seconds > SECONDS and not options.bytes)
    sys.exit(over)


if __name__ == "__main__":
    main()
