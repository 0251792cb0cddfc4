#!/usr/bin/env python3
"""Runs many resharding cases in one launch of hetu-reshard, and checks them as check_reshard.py does.

usage: batch.py TOOL CASES [--random N] [--seed S] [--real] [--mpirun 'mpirun ...'] [--ranks N] [--pmpi WRAPPER.so]

CASES is a file. With --random, leave it out: N new cases of each family are made, on at most --ranks devices. Cases that must be refused (lines that
begin with '!') run one by one, without mpirun: exit status 1, a message whose caret is where '# caret COLUMN' says, nothing printed and nothing dumped.
With --pmpi, the bytes that a preloaded profiling wrapper counts in the whole launch must be the sum of the bytes that the tool reports for each case.
"""
import argparse
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

import check_reshard as single
import families
import layout as hl


def prepare(text, folder, number, real):
    """Writes what the source devices of a case hold; (shape, source, target, values)."""
    shape, src, dst = hl.parse_case(text)
    draw = (lambda: random.uniform(-1, 1)) if real else (lambda: float(random.randint(-500, 500)))
    value, held = single.contents(src, shape, draw)
    fill = folder / "fill" / str(number)
    fill.mkdir(parents=True)
    for d, data in held.items():
        (fill / f"{d}.bin").write_bytes(data.tobytes())
    return shape, src, dst, value


def refused(tool, text, column):
    """Whether a case is refused as it must be; `column` is where the caret belongs, or None."""
    with tempfile.TemporaryDirectory() as folder:
        dump = pathlib.Path(folder) / "dump"
        p = subprocess.run([*shlex.split(tool), "--fill", folder, "--dump", str(dump), text], capture_output=True, text=True)
        found = re.match(r"case:1:(\d+): error: .*\n.*\| .*\n.*\|( *)\^\n", p.stderr)
        return p.returncode == 1 and not p.stdout and not dump.exists() and found and (column is None or int(found[1]) == column == len(found[2]))


def judge(case, folder, number, real):
    """(what is wrong or None, bytes received, lower bound, bytes allowed)"""
    shape, src, dst, value = case
    dump = folder / "dump" / str(number)
    wrong = single.compare(dst, shape, value, dump, real)
    if src.partial and dst.partial and src.regions(shape) != dst.regions(shape):
        return wrong, 0, 0, 0
    bound = 4 * hl.lower_bound(shape, src, dst)
    allowed = bound + 4 * hl.textbook_slack(shape, src, dst)
    return wrong, 0 if wrong else single.received(dump, None), bound, allowed


def read_cases(lines):
    """The cases to run, and (case, column of the caret or None) of those to be refused."""
    cases, refusals = [], []
    for line in lines:
        text, _, comment = line.partition("#")
        caret = re.match(r" caret (\d+)", comment)
        if text.startswith("!"):
            refusals.append((text.strip("! \n"), int(caret[1]) if caret else None))
        elif text.strip():
            cases.append(text.strip())
    return cases, refusals


def launch(a, folder, cases):
    """Runs all cases; what the profiling wrapper counted."""
    extra = ["-x", f"LD_PRELOAD={a.pmpi}", "-x", "PMPI_OUT"] if a.pmpi else []
    p = subprocess.run([*shlex.split(a.mpirun), *extra, "-np", str(a.ranks), *shlex.split(a.tool), "--fill", str(folder / "fill"), "--dump", str(folder / "dump"),
                        "--batch", str(cases)], capture_output=True, text=True, env={**os.environ, "PMPI_OUT": str(folder / "pmpi")})
    if p.returncode:
        sys.exit(f"mpirun ends with {p.returncode}\n{p.stderr}")
    return single.received(folder / "dump", a.pmpi) if a.pmpi else None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("tool")
    a.add_argument("cases", nargs="?")
    a.add_argument("--random", type=int)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--real", action="store_true")
    a.add_argument("--ranks", type=int, default=0)
    a.add_argument("--mpirun", default="mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --timeout 300")
    a.add_argument("--pmpi")
    a = a.parse_args()
    random.seed(a.seed)
    lines, refusals = read_cases(families.make(a.seed, a.random, a.ranks or 12) if a.random else open(a.cases))
    failed = [f"not refused as it must be: {text}" for text, column in refusals if not refused(a.tool, text, column)]
    moved = bound = over = 0
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        cases = [prepare(l, folder, i, a.real) for i, l in enumerate(lines)]
        a.ranks = a.ranks or max(max(c[1].devices + c[2].devices) for c in cases) + 1
        (folder / "cases").write_text("\n".join(lines) + "\n")
        counted = launch(a, folder, folder / "cases")
        for number, (text, case) in enumerate(zip(lines, cases)):
            wrong, m, b, most = judge(case, folder, number, a.real)
            if wrong:
                failed.append(f"{text}\n     {wrong}")
            elif m > most:
                over += 1
                print(f"over: {m} bytes, {b} are enough, {most} allowed: {text}")
            moved, bound = moved + m, bound + b
    for f in failed:
        print(f"FAIL {f}")
    if counted is not None and round(counted) != moved:
        over += 1
        print(f"over: the wrapper counts {counted} bytes, the tool {moved}")
    print(f"traffic {moved} bytes, lower bound {bound}, ratio {moved / bound if bound else 1:.3f}; {over} cases over what they may")
    print(f"reshard: {len(lines) + len(refusals) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed) or bool(over))


if __name__ == "__main__":
    main()
