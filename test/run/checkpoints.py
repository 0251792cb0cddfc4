#!/usr/bin/env python3
"""Checkpoints (checkpoints.c): what one strategy saves, another goes on from, with the same bits, hetucc's and the plain compiler's alike; the file is as the format says; damaged ones are
refused with the reason, and the one before them is used.
"""
import functools
import json
import re
import shutil
import struct

import harness
from harness import Failure, launch

SOURCE = harness.ROOT / "test" / "run" / "checkpoints.c"
RANKS = {"plain": 0, "one": 1, "dp3": 3, "tp4": 4}


def built(bench, name):
    return bench.plain(SOURCE) if name == "plain" else bench.compiled(SOURCE, name)


def ran(bench, name, folder, steps, *more):
    """What a program prints that goes on from a folder until so many steps are made."""
    done = launch(built(bench, name), RANKS[name], folder, str(steps), *more)
    return done.stdout + done.stderr


def tensors(path):
    """{name: bytes} and the notes of a file, read as https://github.com/huggingface/safetensors#format has it."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, rest = json.loads(data[8:8 + length]), data[8 + length:]
    notes, found, end = header.pop("__metadata__"), {}, 0
    for name, entry in header.items():
        begin, stop = entry["data_offsets"]
        elements = 1
        for extent in entry["shape"]:
            elements *= extent
        if begin != end or stop - begin != 4 * elements or entry["dtype"] != "F32":
            raise Failure(f"{name}: {entry}")
        found[name], end = rest[begin:stop], stop
    if end != len(rest):
        raise Failure(f"{len(rest)} bytes of tensors, of which {end} are used")
    return found, notes


def first(bench):
    """A folder with checkpoints of 2 and 4 steps of the plain program."""
    def make():
        folder = bench.path("first")
        ran(bench, "plain", folder, 4)
        return folder
    return bench.once("first", make)


def copied(bench, label):
    folder = bench.path(label)
    shutil.copytree(first(bench), folder)
    return folder


def file_of(folder, step):
    return folder / f"step-{step:08d}.safetensors"


def check_any(bench, saver, loader):
    """What is loaded and saved again has the same bits; each rank writes an even part."""
    folder, again = copied(bench, f"{saver}.{loader}"), bench.path(f"{saver}.{loader}.again")
    ran(bench, saver, folder, 6)
    said = ran(bench, loader, folder, 6, again)
    if "resumed 6, note 600\n" not in said:
        raise Failure(said)
    wanted, found = tensors(file_of(folder, 6)), tensors(file_of(again, 6))
    if wanted != found or len(found[0]) != 6:
        raise Failure(f"{wanted[1]} and {found[1]}; other values of {[name for name in wanted[0] if wanted[0][name] != found[0].get(name)]}")
    lines = (again / "step-00000006.manifest").read_text().splitlines()[1:-1]
    parts, total = [int(line.split()[1]) for line in lines], sum(len(value) for value in found[0].values())
    if len(parts) != max(RANKS[loader], 1) or max(parts) > 1.1 * total / len(parts):
        raise Failure(f"parts of {parts} bytes")
    return f"{total} bytes"


def truncated(folder):
    data = file_of(folder, 4).read_bytes()
    file_of(folder, 4).write_bytes(data[:-3])


def flipped(folder):
    data = bytearray(file_of(folder, 4).read_bytes())
    data[-100] ^= 4
    file_of(folder, 4).write_bytes(data)


def without_manifest(folder):
    (folder / "step-00000004.manifest").unlink()


def half_manifest(folder):
    path = folder / "step-00000004.manifest"
    path.write_text(path.read_text()[:-4])


def other_model(folder):
    path = file_of(folder, 4)
    path.write_bytes(path.read_bytes().replace(b'"shape":[11]', b'"shape":[1 ]'))


DAMAGES = {
    truncated: "its tensors do not fill it",
    flipped: "its bytes are not those of its manifest",
    without_manifest: "it has no manifest",
    half_manifest: "its manifest is not whole",
    other_model: "its header is damaged",
}


def check_damage(bench, name, damage, reason):
    folder = copied(bench, f"{name}.{damage.__name__}")
    damage(folder)
    said = ran(bench, name, folder, 2)
    if "resumed 2, note 200\n" not in said or not re.search(rf"^hetu: the checkpoint \S*step-00000004.safetensors is not used: {reason}$", said, re.M):
        raise Failure(said)


def check_unwritable(bench, name):
    """A folder that cannot be made is said; training goes on."""
    path = bench.path(f"{name}.file")
    path.write_text("no folder")
    said = ran(bench, name, path, 4)
    if not re.search(r"^hetu: the checkpoint \S+/step-00000004 was not written: Not a directory$", said, re.M) or "\n3 0." not in said:
        raise Failure(said)


def tests(bench, _):
    case = functools.partial
    for saver, loader in (("plain", "tp4"), ("tp4", "dp3"), ("dp3", "plain"), ("one", "tp4")):
        yield f"{saver}.{loader}", case(check_any, bench, saver, loader)
    for number, (damage, reason) in enumerate(DAMAGES.items()):
        name = ("plain", "dp3")[number % 2]
        yield f"{damage.__name__}.{name}", case(check_damage, bench, name, damage, reason)
    yield "unwritable", case(check_unwritable, bench, "dp3")


if __name__ == "__main__":
    harness.main("run.checkpoints", tests)
