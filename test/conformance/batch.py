#!/usr/bin/env python3
"""Runs many resharding cases in one launch of hetu-reshard, and checks them as check_reshard.py does.

usage: batch.py TOOL CASES [--seed S] [--real] [--mpirun 'mpirun ...'] [--ranks N]

Refusals (lines after '!') are checked one by one, without mpirun.
"""
import argparse
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

import check_reshard as single
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


def refused(tool, text):
    p = subprocess.run([*shlex.split(tool), text.lstrip("! ")], capture_output=True, text=True)
    return p.returncode == 1 and "error:" in p.stderr and "^" in p.stderr and not p.stdout


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


def main():
    a = argparse.ArgumentParser()
    a.add_argument("tool")
    a.add_argument("cases")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--real", action="store_true")
    a.add_argument("--ranks", type=int, default=0)
    a.add_argument("--mpirun", default="mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -q")
    a = a.parse_args()
    random.seed(a.seed)
    lines = [l.split("#")[0].strip() for l in open(a.cases)]
    refusals = [l for l in lines if l.startswith("!")]
    lines = [l for l in lines if l and not l.startswith("!")]
    failed = [f"not refused: {l}" for l in refusals if not refused(a.tool, l)]
    moved = bound = over = 0
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        cases = [prepare(l, folder, i, a.real) for i, l in enumerate(lines)]
        (folder / "cases").write_text("\n".join(lines) + "\n")
        ranks = a.ranks or max(max(c[1].devices + c[2].devices) for c in cases) + 1
        p = subprocess.run([*shlex.split(a.mpirun), "-np", str(ranks), *shlex.split(a.tool), "--fill", str(folder / "fill"), "--dump", str(folder / "dump"),
                            "--batch", str(folder / "cases")], capture_output=True, text=True)
        if p.returncode:
            print(p.stderr, file=sys.stderr)
            sys.exit(1)
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
    print(f"traffic {moved} bytes, lower bound {bound}, ratio {moved / bound if bound else 1:.3f}; {over} cases over what they may")
    print(f"reshard: {len(lines) + len(refusals) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed) or bool(over))


if __name__ == "__main__":
    main()
