#!/usr/bin/env python3
"""Converts sets of tensors of several types on real ranks, each set by one plan, and checks every element and the traffic.

usage: together.py TOOL [--sets N] [--seed S] [--ranks R] [--real] [--mpirun 'mpirun ...'] [--pmpi WRAPPER.so]

A set has up to 12 cases of the families of test/conformance; a third of them resemble an earlier case. Values are whole numbers whose sums every type holds exactly,
or with --real numbers that f32 and f64 round. A set may receive at most the bytes that its cases may receive alone. With --pmpi, a wrapper counts the bytes, too.
"""
import argparse
import array
import json
import os
import pathlib
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
import check_reshard as single
import families
import layout as hl

TYPES = {"f32": "f", "f64": "d", "i32": "i", "i64": "q", "bf16": None}
SIZES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "bf16": 2}
MOST_CASES = 12
LARGEST = 500       # of whole numbers
LARGEST_BF16 = 3    # so that sums of 25 contributions are exact in 8 bits


# ---- elements ----

def encode(dtype, data):
    if dtype == "bf16":
        return b"".join(struct.pack("<f", x)[2:] for x in data)
    return array.array(TYPES[dtype], (int(x) if dtype.startswith("i") else x for x in data)).tobytes()


def decode(dtype, data):
    if dtype == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    return array.array(TYPES[dtype], data)


def to_floats(dtype, dump):
    """Writes the dumped elements as float32, which the checks of test/conformance read."""
    for f in dump.glob("*.bin"):
        f.write_bytes(array.array("f", decode(dtype, f.read_bytes())).tobytes())


# ---- sets ----

class Tensor:
    def __init__(self, text, dtype, real):
        self.line, self.text, self.dtype = text, text.replace("f32", dtype, 1), dtype
        self.real = real and dtype in ("f32", "f64")
        self.shape, self.src, self.dst = hl.parse_case(text)

    def fill(self, folder):
        most = LARGEST_BF16 if self.dtype == "bf16" else LARGEST
        draw = (lambda: random.uniform(-1, 1)) if self.real else (lambda: float(random.randint(-most, most)))
        self.value, held = single.contents(self.src, self.shape, draw)
        folder.mkdir(parents=True)
        for d, data in held.items():
            (folder / f"{d}.bin").write_bytes(encode(self.dtype, data))

    def free(self):
        """Whether no bound on the traffic is claimed: between different partial layouts."""
        return self.src.partial and self.dst.partial and self.src.regions(self.shape) != self.dst.regions(self.shape)

    def allowed(self):
        return SIZES[self.dtype] * (hl.lower_bound(self.shape, self.src, self.dst) + hl.textbook_slack(self.shape, self.src, self.dst))

    def judge(self, dump):
        to_floats(self.dtype, dump)
        return single.compare(self.dst, self.shape, self.value, dump, self.real)


def random_set(lines, real):
    tensors = []
    for _ in range(random.randint(1, MOST_CASES)):
        like = random.choice(tensors) if tensors and random.random() < 1 / 3 else None
        tensors.append(Tensor(like.line, like.dtype, real) if like else Tensor(random.choice(lines), random.choice(list(TYPES)), real))
    return tensors


# ---- checks ----

def check_plan(a, cases):
    """What is wrong with the plan as the tool prints it, or None."""
    p = subprocess.run([*shlex.split(a.tool), "--batch", str(cases), "--together", "--json"], capture_output=True, text=True)
    if p.returncode:
        return p.stderr
    for step in json.loads(p.stdout)["steps"]:
        pairs = [(m["from"], m["to"]) for m in step["messages"]]
        if len(pairs) != len(set(pairs)):
            return "several messages of one sender and receiver in a step"
    return None


def run(a, folder, cases):
    extra = ["-x", f"LD_PRELOAD={a.pmpi}", "-x", "PMPI_OUT"] if a.pmpi else []
    return subprocess.run([*shlex.split(a.mpirun), *extra, "-np", str(a.ranks), *shlex.split(a.tool), "--fill", str(folder / "fill"), "--dump", str(folder / "dump"),
                           "--batch", str(cases), "--together"], capture_output=True, text=True, env={**os.environ, "PMPI_OUT": str(folder / "pmpi")})


def check_set(a, tensors, folder):
    """(what is wrong or None, bytes received)"""
    cases = folder / "cases"
    cases.write_text("".join(t.text + "\n" for t in tensors))
    for i, t in enumerate(tensors):
        t.fill(folder / "fill" / str(i))
    wrong = check_plan(a, cases)
    if wrong:
        return wrong, 0
    p = run(a, folder, cases)
    if p.returncode:
        return p.stderr, 0
    for i, t in enumerate(tensors):
        wrong = t.judge(folder / "dump" / str(i))
        if wrong:
            return f"{t.text}\n     {wrong}", 0
    moved = single.received(folder / "dump", None)
    allowed = sum(t.allowed() for t in tensors)
    if moved > allowed and not any(t.free() for t in tensors):
        return f"{moved} bytes are received, {allowed} allowed", moved
    counted = round(single.received(folder / "dump", a.pmpi)) if a.pmpi else moved
    return None if counted == moved else f"the wrapper counts {counted} bytes, the tool {moved}", moved


def main():
    a = argparse.ArgumentParser()
    a.add_argument("tool")
    a.add_argument("--sets", type=int, default=12)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--ranks", type=int, default=6)
    a.add_argument("--real", action="store_true")
    a.add_argument("--mpirun", default="mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -q")
    a.add_argument("--pmpi")
    a = a.parse_args()
    random.seed(a.seed)
    names = [n for n in families.FAMILIES if n != "refused" and (n != "three_axes" or a.ranks >= 8)]
    lines = [re.sub(r" *#.*", "", l) for l in families.make(a.seed, 12, a.ranks, names)]
    failed, moved, count = [], 0, 0
    for _ in range(a.sets):
        tensors = random_set(lines, a.real)
        count += len(tensors)
        with tempfile.TemporaryDirectory() as top:
            wrong, bytes_moved = check_set(a, tensors, pathlib.Path(top))
        moved += bytes_moved
        if wrong:
            failed.append("\n".join(["FAIL", *(t.text for t in tensors), f"     {wrong}"]))
    print("\n".join(failed))
    print(f"{count} tensors, traffic {moved} bytes")
    print(f"together: {a.sets - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
