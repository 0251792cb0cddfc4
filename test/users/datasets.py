#!/usr/bin/env python3
"""Tests rows of files (ht_dataset): each row comes once an epoch, in one order for the one-device program and every strategy;
checkpoints and switches keep positions; files are NumPy's, llm.c's or of no format; each bad file gives one line that names it."""
import array
import functools
import os
import pathlib
import re
import socket
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, launch, run

harness.MEETS = True

SOURCE = HERE / "datasets.c"
STRATEGIES = ["mesh", "uneven", "stages"]
WIDE, BATCH, ROWS = 5, 6, 20
CODES = {"u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "i8": "q", "f4": "f", "f8": "d"}


def packed(code, values):
    return array.array(CODES[code], values).tobytes()


def npy(code, shape, values, version=1, order="False", endian="<"):
    header = f"{{'descr': '{endian}{code}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    wide = 2 if version == 1 else 4
    header += b" " * (-(6 + 2 + wide + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(wide, "little") + header + packed(code, values)


def bin_of(values, magic=20240520, version=1, code="u2", count=None):
    values = list(values)
    return struct.pack("<3i", magic, version, len(values) if count is None else count) + bytes(4 * 253) + packed(code, values)


def numbers(rows=ROWS, more=1):
    """The elements of so many rows, and some more for what a shift reaches."""
    return range(rows * WIDE + more)


def written(bench, name, content):
    path = bench.path(name)
    path.write_bytes(content)
    return path


def tokens(bench):
    return bench.once("tokens", lambda: written(bench, "tokens.bin", bin_of(numbers())))


def program(bench, strategy, flags=()):
    if not strategy:
        return bench.plain(SOURCE, flags), 0
    return bench.compiled(SOURCE, strategy, flags), 4


def steps(bench, strategy, words, flags=(), check=True):
    """For each step the loss, the position, the rows, and what the other input has of them."""
    built, ranks = program(bench, strategy, flags)
    p = launch(built, ranks, *words, check=check)
    if not check:
        return p
    found = []
    for line in p.stdout.splitlines():
        if not line.startswith("resumed"):
            loss, position, *row = line.split()
            row = [float(word) for word in row]
            found.append((float(loss), int(position), row[:BATCH], row[BATCH:]))
    return found


def same(found, wanted):
    if len(found) != len(wanted):
        raise Failure(f"{len(found)} steps, not {len(wanted)}")
    for f, w in zip(found, wanted):
        near = abs(f[0] - w[0]) <= 2e-6 * abs(w[0]) + 1e-9
        rows = all(abs(a - b) <= 1e-4 * (1 + abs(b)) for a, b in zip(f[2] + f[3], w[2] + w[3]))
        if not near or f[1] != w[1] or not rows:
            raise Failure(f"{f}, not {w}")


def plain(bench, count):
    return bench.once(("plain", count), lambda: steps(bench, None, [f"path={tokens(bench)}", *["step"] * count]))


def epochs(bench):
    """Each row comes once in an epoch of 20, in another order in the next; the shift gives what is one element later."""
    found = plain(bench, 10)
    order = [round(row / WIDE) for _, _, rows, _ in found for row in rows]
    if [round(x) for _, _, rows, _ in found for x in rows] != [WIDE * r for r in order]:
        raise Failure("rows do not begin where rows of the file begin")
    for epoch in (order[:ROWS], order[ROWS:2 * ROWS], order[2 * ROWS:3 * ROWS]):
        if sorted(epoch) != list(range(ROWS)):
            raise Failure(f"an epoch has the rows {epoch}")
    if order[:ROWS] == order[ROWS:2 * ROWS] or order[:ROWS] == list(range(ROWS)):
        raise Failure("rows are not shuffled")
    if any(abs(later - row - 1) > 1e-3 for _, _, rows, wanted in found for row, later in zip(rows, wanted)):
        raise Failure("the shift is not one element")
    if [position for _, position, _, _ in found] != [BATCH * (i + 1) for i in range(10)]:
        raise Failure("positions do not count rows")


def rows(bench, strategy):
    same(steps(bench, strategy, [f"path={tokens(bench)}", *["step"] * 10]), plain(bench, 10))


def resumed(bench, first, then):
    """What was saved under one strategy goes on under another with the rows that come next."""
    words = [f"path={tokens(bench)}", f"folder={bench.path('saved.' + str(first) + str(then))}"]
    steps(bench, first, [*words, *["step"] * 4, "save"])
    same(steps(bench, then, [*words, "resume", *["step"] * 3]), plain(bench, 10)[4:7])


def switched(bench):
    built = bench.path("switched")
    run([bench.hetucc, "--strategy=mesh", "--strategy=uneven", SOURCE, "-o", built])
    p = launch(built, 4, f"path={tokens(bench)}", *["step"] * 3, "switch=uneven", *["step"] * 3)
    found = [line.split() for line in p.stdout.splitlines()]
    wanted = plain(bench, 10)[:6]
    same([(float(f[0]), int(f[1]), [float(x) for x in f[2:2 + BATCH]], [float(x) for x in f[2 + BATCH:]]) for f in found], wanted)
    again = steps(bench, "mesh", [f"path={tokens(bench)}", *["step"] * 2, "seek=0", "step", "seek=24", "step"])
    if again[2][2] != again[0][2] or again[3][1] != 30:
        raise Failure("ht_dataset_seek does not lead back")


# Files by name: their bytes, words, and the types of inputs that take them.
FILES = {
    "u1.npy": (npy("u1", f"({ROWS * WIDE + 1},)", numbers()), ["HT_F32", "HT_I32", "HT_I64"]),
    "i2.npy": (npy("i2", f"({ROWS * WIDE + 1},)", numbers(), version=2), ["HT_F32", "HT_I32"]),
    "i4.npy": (npy("i4", f"({ROWS * WIDE + 1},)", numbers(), version=3), ["HT_I32", "HT_I64"]),
    "i8.npy": (npy("i8", f"({ROWS * WIDE + 1},)", numbers()), ["HT_I64"]),
    "f4.npy": (npy("f4", f"({ROWS * WIDE + 1},)", numbers()), ["HT_F32"]),
    "llama3.bin": (bin_of(numbers(), 20240801, 7, "u4"), ["HT_I64"]),
    "raw.data": (packed("f4", numbers()), ["HT_F32"]),
    "raw.int": (packed("i4", numbers()), ["HT_I32"]),
    "raw.tokens": (packed("u2", numbers()), ["HT_F32", "HT_I32"]),
}


def formats(bench):
    """The same elements in any file, for inputs of any type that has them, give the same rows."""
    for name, (content, types) in FILES.items():
        path = written(bench, name, content)
        for kind in types:
            words = [f"path={path}", *(["element=uint16"] if name == "raw.tokens" else []), *["step"] * 4]
            same(steps(bench, None, words, [] if kind == "HT_F32" else [f"-DTYPE={kind}"]), plain(bench, 10)[:4])
    shaped = written(bench, "shaped.npy", npy("f4", f"({ROWS}, 1, {WIDE})", range(ROWS * WIDE)))
    later = written(bench, "later.npy", npy("f8", f"({ROWS}, {WIDE})", range(1, ROWS * WIDE + 1)))
    doubles = written(bench, "doubles.npy", npy("f4", f"({ROWS}, {WIDE})", range(1, ROWS * WIDE + 1)))
    for strategy in (None, "mesh"):
        same(steps(bench, strategy, [f"path={shaped}", f"other={doubles}", *["step"] * 4]), plain(bench, 10)[:4])
    refused(bench, None, [f"path={shaped}", f"other={later}"], later, "float64, and HT_F32 does not have all values")


def refused(bench, strategy, words, path, reason):
    p = steps(bench, strategy, [*words, "step"], check=False)
    lines = [line for line in (p.stdout + p.stderr).splitlines() if str(path) in line]
    if not p.returncode or len(lines) != 1 or not re.search(reason, lines[0]):
        raise Failure(f"exit {p.returncode}, not one line with {path}: {reason}\n{p.stdout}{p.stderr}")


WRONG = {
    "missing.bin": (None, "No such file"),
    "empty.bin": (b"", "it is empty"),
    "short.npy": (b"\x93NUMPY\x01\x00", "none of .npy"),
    "text.npy": (b"hello, this is a text", "it is no .npy file"),
    "cut.npy": (npy("f4", "(21, 5)", numbers()), "says 105 elements of float32, and it has 404 bytes"),
    "fortran.npy": (npy("f4", "(20, 5)", range(100), order="True"), "Fortran's order"),
    "big.npy": (npy("f4", "(20, 5)", range(100), endian=">"), "NumPy's type >f4"),
    "half.npy": (npy("f4", "(20, 5)", range(100)).replace(b"<f4", b"<f2"), "NumPy's type <f2"),
    "rows.npy": (npy("f4", "(10, 10)", range(100)), "rows have 10 elements, and those of the input 5"),
    "shift.npy": (npy("f4", "(20, 5)", range(100)), "rows of its own"),
    "wide.npy": (npy("i4", "(101,)", numbers()), "int32, and HT_F32 does not have all values"),
    "version.bin": (bin_of(numbers(), version=3), "version 3 of llm.c's tokens"),
    "count.bin": (bin_of(numbers(), count=1000), "says 1000 elements of uint16"),
    "begun.bin": (struct.pack("<3i", 20240520, 1, 100) + bytes(80), "its header is cut off"),
    "odd.bin": (b"12345", "no whole number of elements"),
    "few.npy": (npy("f4", "(3,)", range(3)), "3 elements are no row of 5"),
}


def mistakes(bench, strategy):
    """One line with the file and the reason, on one device and on four ranks."""
    for name, (content, reason) in WRONG.items():
        if strategy and name not in ("missing.bin", "cut.npy", "shift.npy"):
            continue
        path = bench.path(name) if content is None else written(bench, f"{strategy}.{name}", content)
        refused(bench, strategy, [f"path={path}"], path, reason)
    if strategy:
        return
    refused(bench, None, [f"path={written(bench, 'x.raw', bytes(400))}", "element=int7"], "x.raw", "\"int7\" is no type of elements")
    refused(bench, None, [f"path={written(bench, 'said.npy', npy('f4', '(20, 5)', range(100)))}", "element=float64"], "said.npy", 'its header says elements of float32, and the dataset "float64"; leave')
    other = written(bench, "other.npy", npy("f4", "(19, 5)", range(95)))
    shaped = written(bench, "twenty.npy", npy("f4", "(20, 5)", range(100)))
    refused(bench, None, [f"path={shaped}", f"other={other}"], other, "has 20 rows in .*, and 19 in")


def shrunk(bench, strategy):
    """A file that becomes shorter while the program trains ends it, with its name; one that is put in its place does not. Not a byte is read that is not there."""
    whole = bin_of(numbers())
    for kept in (1024, 1024 + 2 * WIDE * ROWS - 40, 10):
        path = written(bench, f"shrunk.{strategy}.{kept}.bin", whole)
        p = steps(bench, strategy, [f"path={path}", "step", f"cut={kept}", *["step"] * 4], check=False)
        if p.returncode != 1 or f"the data set {path} has become shorter while the program runs: it had {len(whole)} bytes, and ends at byte {kept} now; put a new" not in p.stderr:
            raise Failure(f"exit {p.returncode}\n{p.stdout}{p.stderr}")


def no_files(bench, strategy):
    """What is no file is said to be, and holds nobody up."""
    for kind, said in (("pipe", "it is a pipe, and no file"), ("folder", "it is a folder, and no file"), ("socket", "it is a socket, and no file"), ("device", "it is a device, and no file")):
        path = bench.path(f"{strategy}.{kind}")
        with socket.socket(socket.AF_UNIX) as bound:
            {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "socket": lambda: bound.bind(str(path)), "device": lambda: path.symlink_to("/dev/zero")}[kind]()
        refused(bench, strategy, [f"path={path}"], path, said)


LENGTHS = [8, 2, 3, 6, 1, 5, 3, 2, 7, 6, 8, 4]


def lengths(bench):
    """Padded rows go to pipelines that read all of them, the same rows a step as on one device and of all inputs alike; a step whose rows find no room is refused."""
    values = [(r * 7 + p) % 5 + 1 if p // 2 < length else 0 for r, length in enumerate(LENGTHS) for p in range(16)]
    x, number = written(bench, "x.npy", npy("f4", "(12, 8, 2)", values)), written(bench, "id.npy", npy("i8", "(12,)", range(12)))
    source = HERE / "padded.c"
    cut = launch(bench.compiled(source, "lengths"), 4, x, number, 12, check=False)
    wanted, found = ([line.split() for line in text.splitlines()] for text in (launch(bench.plain(source), 0, x, number, 3).stdout, cut.stdout))
    if len(found) < 3 or found[0][1:] == wanted[0][1:]:
        raise Failure(f"{found}: too few steps, or no row had to go elsewhere\n{cut.stderr}")
    for f, w in zip(found, wanted):
        if sorted(f[1:]) != sorted(w[1:]) or abs(float(f[0]) - float(w[0])) > 2e-6 * float(w[0]):
            raise Failure(f"a step has {f}, not {w}")
        if any(LENGTHS[int(row)] > read for row, read in zip(f[1:], (3, 3, 6, 6, 8, 8))):
            raise Failure(f"pipelines do not read all of the rows {f[1:]}")
    if not re.search(r'the dataset "train" gives a step row \d+ of .*x.npy, and no pipeline that has room', cut.stderr):
        raise Failure(f"a step that finds no room is not refused: {cut.stderr}")


def tests(bench, arguments):
    found = [("epochs", functools.partial(epochs, bench)), ("formats", functools.partial(formats, bench)), ("switched", functools.partial(switched, bench)), ("lengths", functools.partial(lengths, bench))]
    found += [(f"rows.{s}", functools.partial(rows, bench, s), s == "uneven") for s in STRATEGIES]
    found += [(f"resumed.{a}.{b}", functools.partial(resumed, bench, a, b), b == "uneven") for a, b in (("mesh", "uneven"), (None, "mesh"), ("stages", None))]
    found += [(f"{test.__name__}.{s or 'plain'}", functools.partial(test, bench, s)) for test in (shrunk, no_files) for s in (None, "mesh")]
    return found + [(f"mistakes.{s or 'plain'}", functools.partial(mistakes, bench, s)) for s in (None, "mesh")]


if __name__ == "__main__":
    harness.main("users.datasets", tests)
