#!/usr/bin/env python3
"""Tests checkpoints (checkpoints.c): programs of hetucc and of the plain compiler resume, with the same bits, what another
strategy saved; the file is as its format says; damaged checkpoints are refused with the reason, and the one before them is used.
"""
import functools
import json
import re
import resource
import shutil
import struct
import subprocess
import time

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
    if "resumed 6, note 601.5\n" not in said:
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
    path.write_text("".join(path.read_text().splitlines(True)[:-1]))


def flipped_manifest(folder):
    """A bit that no number's value depends on."""
    path = folder / "step-00000004.manifest"
    path.write_text(path.read_text().replace("header ", "header0", 1))


def other_model(folder):
    path = file_of(folder, 4)
    path.write_bytes(path.read_bytes().replace(b'"shape":[11]', b'"shape":[1 ]'))


DAMAGES = {
    truncated: "its tensors do not fill it",
    flipped: "its bytes are not those of its manifest",
    without_manifest: "it has no manifest",
    half_manifest: "its manifest is not whole",
    flipped_manifest: "its manifest is damaged",
    other_model: "its header is damaged",
}


def check_damage(bench, name, damage, reason):
    folder = copied(bench, f"{name}.{damage.__name__}")
    damage(folder)
    said = ran(bench, name, folder, 2)
    if "resumed 2, note 200.5\n" not in said or not re.search(rf"^hetu: the checkpoint \S*step-00000004.safetensors is not used: {reason}$", said, re.M):
        raise Failure(said)


def lost(bench, name, folder, steps, *more, newest="no checkpoint was written", of="2 in {}, of steps 2 to 4, were", **others):
    """What a program prints whose last checkpoints are not written: it trains to its end, says so there, and exits with 1."""
    done = launch(built(bench, name), RANKS[name], folder, str(steps), *more, check=False, **others)
    said = done.stdout + done.stderr
    if not done.returncode or f"of this run, {of.format(folder)} not written; {newest}, and what was learnt since is lost" not in said:
        raise Failure(f"exit {done.returncode}\n{said}")
    return said


def check_unwritable(bench, name):
    """A folder that cannot be made is said; training goes on, and the end says what is lost."""
    path = "/proc/none"  # where nobody makes folders
    said = lost(bench, name, path, 4)
    if not re.search(r"^hetu: the checkpoint \S+/step-00000004 was not written: No such file or directory$", said, re.M) or "\n3 0." not in said:
        raise Failure(said)


def check_full(bench, rank):
    """A rank without space, which fails before the others begin: said, nothing is left of it, and training goes on at once, from the checkpoint before it when it begins again."""
    folder, began = copied(bench, f"full{rank}"), time.monotonic()
    said = lost(bench, "dp3", folder, 8, newest="its newest is of step 4", of="2 in {}, of steps 6 to 8, were",
                preload=bench.build / "lib" / "disk.so", env={"DISK_FULL": str(rank)})
    seconds = time.monotonic() - began
    if len(re.findall(r"step-0000000[68] was not written: No space left on device", said)) != 2 or "\n7 0." not in said or seconds > 30:
        raise Failure(f"{seconds:.0f} s\n{said}")
    if len(list(folder.iterdir())) != 4 or "resumed 4, note 401\n" not in ran(bench, "plain", folder, 4):
        raise Failure(str(sorted(folder.iterdir())))


def check_limit(bench):
    """A file that the process may not make so large (RLIMIT_FSIZE) does not end it."""
    folder = copied(bench, "limit")
    done = subprocess.run([built(bench, "plain"), folder, "6"], capture_output=True, text=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    if (done.returncode != 1 or not re.search(r"step-00000006 was not written: File too large$", done.stderr, re.M) or "\n5 0." not in done.stdout
            or "1 in " not in done.stderr or "its newest is of step 4" not in done.stderr):
        raise Failure(f"{done.returncode}\n{done.stdout}{done.stderr}")
    if "resumed 4, note 401\n" not in ran(bench, "plain", folder, 4):
        raise Failure("another checkpoint is used")


def check_slow(bench, name):
    """Where every fsync takes long, saving does not hold up a step; the newest checkpoint is written at last."""
    folder, seconds = bench.path(f"slow.{name}"), "3" if harness.LONG else "1"
    env = {"DISK_SYNC": seconds, **({} if RANKS[name] else {"LD_PRELOAD": str(bench.build / "lib" / "disk.so")})}
    said = launch(built(bench, name), RANKS[name], folder, "8", preload=bench.build / "lib" / "disk.so", env=env).stdout
    longest = float(re.search(r"^longest (\S+)$", said, re.M)[1])
    if longest > 0.3 or "resumed 8, note 802\n" not in ran(bench, "plain", folder, 8):
        raise Failure(f"{longest} s\n{said}")
    return f"{longest:.2f} s"


def check_torn_stay(bench):
    """A checkpoint without its manifest takes no good one's place among those that stay."""
    folder = copied(bench, "torn")
    for step in (20, 30, 40):
        shutil.copy(file_of(folder, 4), file_of(folder, step))
    said = ran(bench, "plain", folder, 6)
    if said.count("it has no manifest") != 3 or "resumed 6, note 601.5\n" not in ran(bench, "plain", folder, 6):
        raise Failure(said)


RESUMED = harness.ROOT / "test" / "run" / "Inputs" / "resumed.c"
OTHERS = {  # a program of other flags than the one that has saved, and what is said
    "-DLAYERS=1": 'it has a tensor "h1.w", and no program here does',
    "-DLAYERS=3": 'it has no tensor "h2.w"',
    "-DOPTIMIZER=ht_lion()": "it was trained by adamw, and here lion trains",
    "-DOPTIMIZER=ht_sgd(.momentum=0.9f)": "it was trained by adamw, and here sgd trains",
}


def resumed(bench, folder, words, ranks=0, flags=()):
    """What a program of resumed.c prints."""
    if not ranks:
        return launch(bench.plain(RESUMED, flags), 0, folder, words)
    strategy = bench.path("resumed.strategy")
    strategy.write_text("strategy two\nsplit batch:dp\nzero 1\nstage devices(0-1) mesh(dp:2)\nend strategy\n")
    return launch(bench.compiled(RESUMED, strategy, flags), ranks, folder, words)


def check_back(bench, ranks):
    """What was saved in a run is there for it, too; the number of the step is that of the program that trains."""
    whole = resumed(bench, bench.path("unused"), "tttttt").stdout.splitlines()
    said = resumed(bench, bench.path(f"back{ranks}"), "ttsttrttttsr", ranks).stdout.splitlines()
    wanted = [*whole[:4], "at 2", *whole[2:6], "at 6"]
    if len(said) != len(wanted) or any(a != b and abs(float(a) - float(b)) > 1e-5 for a, b in zip(said, wanted)):
        raise Failure(f"{said}, not {wanted}")
    again = resumed(bench, bench.path(f"back{ranks}"), "r", ranks, ("-DSCORES_FIRST",)).stdout.splitlines()
    if again != ["at 6"]:
        raise Failure(again)


def check_others(bench):
    """Checkpoints of another model or optimizer are refused with the reason."""
    folder = bench.path("others")
    resumed(bench, folder, "ts")
    for flags, reason in OTHERS.items():
        other = "LAYERS" in flags  # another model's folder is refused, since ht_save would overwrite what it holds
        done = launch(bench.plain(RESUMED, (flags,)), 0, folder, "r", check=False)
        if bool(done.returncode) != other or ("at 0" in done.stdout) == other or reason not in done.stderr or ("holds checkpoints of another model" in done.stderr) != other:
            raise Failure(f"{flags}: {done.stdout}{done.stderr}")
    early = harness.run([bench.plain(RESUMED, ("-DEARLY",)), folder, "t"], check=False)
    if not early.returncode or "ht_resume was called before there was a program" not in early.stderr:
        raise Failure(early.stderr)


def tests(bench, _):
    case = functools.partial
    for ranks in (0, 2):
        yield f"back{ranks}", case(check_back, bench, ranks)
    yield "others", case(check_others, bench)
    for saver, loader in (("plain", "tp4"), ("tp4", "dp3"), ("dp3", "plain"), ("one", "tp4")):
        yield f"{saver}.{loader}", case(check_any, bench, saver, loader)
    for number, (damage, reason) in enumerate(DAMAGES.items()):
        name = ("plain", "dp3")[number % 2]
        yield f"{damage.__name__}.{name}", case(check_damage, bench, name, damage, reason)
    for rank in (0, 2):
        yield f"full{rank}", case(check_full, bench, rank)
    yield "limit", case(check_limit, bench)
    yield "torn", case(check_torn_stay, bench)
    for name in ("plain", "dp3"):
        yield f"slow.{name}", case(check_slow, bench, name), name == "plain"
    yield "unwritable", case(check_unwritable, bench, "dp3")


if __name__ == "__main__":
    harness.main("run.checkpoints", tests)
