#!/usr/bin/env python3
"""Tests attacks by another user of the machine, as strangers.py does: on folders in which programs are built, caches behind links, files that the C compiler writes anew,
missing sources, full shared memory, and by harmful checkpoints. None of that user's code runs, nothing is written through that user's links, and every program starts."""
import contextlib
import functools
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import strangers
import harness
import elastic
from harness import Failure, Skip
from strangers import LATE, LIMIT, PYTHON, STRANGER, VICTIM, Place, as_user, finish, program, start, two_ranks, unprotected

SMALL = harness.ROOT / "test" / "driver" / "Inputs" / "small.c"

# Swaps a folder of the stranger's and a link as fast as that goes.
SWAPPER = """
import os, sys
folder, link, stop = sys.argv[1:]
print("ready", flush=True)
while not os.path.exists(stop):
    try:
        os.rename(folder, folder + ".away")
        os.rename(link, folder)
        os.rename(folder, link)
        os.rename(folder + ".away", folder)
    except OSError:
        pass
"""


def precious_tree(place, *names):
    """Files of the user's that must stay as they are; gives the folder, and a check."""
    other = place.home / "other"
    for name in names:
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("gold")
    other.mkdir(exist_ok=True)
    harness.run(["chown", "-R", VICTIM, other])

    def check():
        found = {str(p.relative_to(other)): p.read_text(errors="replace") for p in other.rglob("*") if p.is_file()}
        if found != dict.fromkeys(names, "gold"):
            raise Failure(f"changed behind the link: {sorted(found)}")
        place.check()
    return other, check


def hetucc(bench, place, *words, wanted=0, cwd=None, **env):
    """Runs hetucc as the victim in the folder of all."""
    return finish([start([bench.hetucc, *words], env=place.env(**env), cwd=cwd or place.shared)], wanted, None if wanted is None else False)


def expect(said, text):
    if text not in said:
        raise Failure(f"not said: {text}\n{said}")


# ---- folders in which programs are built ----

CUDA = ["--backend=cuda", "--strategy=dp2"]


def fake_nvcc(place, body):
    """A compiler for GPUs that only does what a test needs."""
    path = place.top / "nvcc"
    path.write_text(f"#!/bin/sh\n{body}\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def built_folder(bench, kind):
    """The folder in which --save-temps builds is the stranger's already, or a link of theirs."""
    with Place(f"built{kind}") as place:
        folder, (other, check) = place.shared / "x.cuda", precious_tree(place, "Makefile", "runtime/program.mk")

        def work():
            if kind == "link":
                folder.symlink_to(other)
                return
            folder.mkdir(mode=0o777)
            (folder / "GNUmakefile").write_text(f"all runtime:\n\t@touch {place.ran}\n")
        as_user(STRANGER, work)
        said = hetucc(bench, place, *CUDA, "--save-temps", SMALL, "-o", "x", wanted=1, HETU_RUNTIME_CACHE="0", NVCC="true")
        check()
        expect(said, "cannot make the folder x.cuda: it is another user's")


def emitted_folder(bench, kind):
    """--emit=c into a folder of the stranger's, or by their link."""
    with Place(f"emitted{kind}") as place:
        other, check = precious_tree(place, "Makefile", "sub/Makefile")
        name = {"folder": "out", "link": "out", "way": "way/sub", "slash": "out/"}[kind]

        def work():
            (place.shared / "out").mkdir(mode=0o777) if kind == "folder" else (place.shared / name.split("/")[0]).symlink_to(other)
        as_user(STRANGER, work)
        said = hetucc(bench, place, *CUDA, "--emit=c", SMALL, "-o", name, wanted=1)
        check()
        expect(said, "it is another user's")


def saved_files(bench):
    """--save-temps writes C files beside where links and files of the stranger's have their names: none is written through, or compiled."""
    with Place("saved") as place:
        hetucc(bench, place, "--strategy=dp2", "-O0", "--save-temps", "-c", SMALL, "-o", "x.o", cwd=place.home)
        names = [p.name for p in place.home.iterdir() if p.suffix == ".c"]
        if not names:
            raise Failure("--save-temps leaves nothing")

        def work():
            for name in names:
                (place.shared / name).symlink_to(place.precious)
        as_user(STRANGER, work)
        expect(hetucc(bench, place, "--strategy=dp2", "-O0", "--save-temps", "-c", SMALL, "-o", place.home / "y.o", wanted=1), "cannot write")
        place.check()


def compiler_temporaries(bench):
    """What nvcc calls its temporary files can be foreseen: they do not lie in the folder of all."""
    with Place("nvcc") as place:
        as_user(STRANGER, lambda: (place.shared / "tmpxft_00000001.c").symlink_to(place.precious))
        nvcc = fake_nvcc(place, 'echo spoilt > "${TMPDIR:-/tmp}/tmpxft_00000001.c"')
        hetucc(bench, place, *CUDA, SMALL, "-o", place.home / "x", wanted=None, HETU_RUNTIME_CACHE="0", NVCC=nvcc)
        place.check()
        left = [p.name for p in place.shared.iterdir() if p.name.startswith("hetucc")]
        if left:
            raise Failure(f"left: {left}")


# ---- the cache of the runtime's objects ----

def cache(bench, kind):
    """HETU_RUNTIME_CACHE leads by a link of the stranger's, or lies in a folder in which they can put another one in its place."""
    with Place(f"cache{kind}") as place:
        other, check = precious_tree(place, "gold")
        named = {"link": place.shared / "cache", "way": place.shared / "way" / "cache", "parent": place.theirs / "cache", "own": place.home / "led"}[kind]

        def work():
            if kind == "link":
                named.symlink_to(other)
            elif kind in ("way", "own"):
                (place.shared / "way").symlink_to(other)
        as_user(STRANGER, work)
        if kind == "own":  # the user's own link to the stranger's
            named.symlink_to(place.shared / "way")
            os.lchown(named, VICTIM, VICTIM)
        if kind == "parent":
            named.mkdir(mode=0o700)
            os.chown(named, VICTIM, VICTIM)
        said = hetucc(bench, place, *CUDA, SMALL, "-o", place.home / "x", wanted=1, HETU_RUNTIME_CACHE=str(named), NVCC="false")
        check()
        if [p.name for p in other.iterdir()] != ["gold"]:
            raise Failure(f"made behind the link: {sorted(other.iterdir())}")
        expect(said, f"cannot keep the runtime's objects in {named}, which HETU_RUNTIME_CACHE names: " + ("of " if kind == "parent" else "another user's link leads there"))


# ---- outputs ----

# Puts a link where a file whose name begins so vanishes.
REPLACER = """
import os, sys
folder, head, precious, stop = sys.argv[1:]
seen = set()
print("ready", flush=True)
while not os.path.exists(stop):
    now = {n for n in os.listdir(folder) if n.startswith(head)}
    for name in seen - now:
        try:
            os.symlink(precious, f"{folder}/{name}")
        except OSError:
            pass
    seen |= now
"""


def compiler_output(bench, kind):
    """Linkers and assemblers remove their output before they make it; a link of the stranger's lies there in between."""
    with Place(f"output{kind}") as place:
        slow = place.top / "cc"  # the C compiler, whose removal is seen for sure
        slow.write_text('#!/bin/sh\nlast=\nfor word; do\ntest "$last" != -o || case $word in *.x*) rm -f "$word"; sleep 0.3;; esac\nlast=$word\ndone\nexec cc "$@"\n')
        slow.chmod(0o755)
        stop = place.theirs / "stop"
        replacer = start([PYTHON, "-c", REPLACER, place.shared, ".x", place.precious, stop], uid=STRANGER)
        replacer.stdout.readline()
        words = {"object": ["-c", SMALL, "-o", "x.o"], "program": [SMALL, place.top / "helper.c", "-o", "x"], "known": ["--known=1", f"--strategy={place.top}/late.strategy", SMALL, "-o", "x.so"],
                 "report": ["--report=x.html", "-c", SMALL, "-o", place.home / "y.o"]}[kind]
        (place.top / "helper.c").write_text("int helper(void) { return 0; }\n")
        (place.top / "late.strategy").write_text("strategy late\nsplit width:tp\nstage devices(0-1) mesh(tp:2)\nend strategy\n")
        try:
            hetucc(bench, place, "--strategy=dp2", "-O0", *words, CC=str(slow))
        finally:
            stop.touch()
            replacer.communicate(timeout=10)
        place.check()


# Puts links in the place of unfinished outputs.
OVERTAKER = """
import os, sys
folder, head, precious, stop = sys.argv[1:]
print("ready", flush=True)
while not os.path.exists(stop):
    for name in os.listdir(folder):
        if name.startswith(head) and not os.path.islink(f"{folder}/{name}"):
            try:
                os.rename(f"{folder}/{name}", f"{folder}/gone")
                os.symlink(precious, f"{folder}/{name}")
            except OSError:
                pass
"""


def overtaken_output(bench):
    """In a folder of the stranger's, unfinished outputs become links to the user's file."""
    with Place("overtaken") as place:
        place.precious.chmod(0o600)
        stop = place.theirs.parent / "shared" / "stop"
        overtaker = start([PYTHON, "-c", OVERTAKER, place.theirs, ".x", place.precious, stop], uid=STRANGER)
        overtaker.stdout.readline()
        try:
            for words in (["-c", SMALL, "-o", "x.o"], ["--emit=ir", SMALL, "-o", "x.ir"], ["--report=x.html", "-c", SMALL, "-o", place.home / "y.o"]):
                hetucc(bench, place, "--strategy=dp2", "-O0", *words, cwd=place.theirs, wanted=None)
                place.check()
        finally:
            stop.touch()
            overtaker.communicate(timeout=10)
        if place.precious.stat().st_mode & 0o777 != 0o600:
            raise Failure("the user's file has other permissions")


def swapped_output(bench):
    """A folder of the stranger's, which an output is written to, and a link to the user's own are swapped all the time."""
    with Place("swappedoutput") as place:
        named, link, stop, (other, check) = place.shared / "named", place.shared / "link", place.theirs / "stop", precious_tree(place, "x.o", "x.ir", "x.sarif")

        def work():
            named.mkdir(mode=0o777)
            link.symlink_to(other)
        as_user(STRANGER, work)
        swapper = start([PYTHON, "-c", SWAPPER, named, link, stop], uid=STRANGER)
        swapper.stdout.readline()
        try:
            for turn in range(12):
                hetucc(bench, place, "--strategy=dp2", "--diagnostics=named/x.sarif", "--emit=ir", SMALL, "-o", "named/x.ir", wanted=None)
            hetucc(bench, place, "--strategy=dp2", "-O0", "-c", SMALL, "-o", "named/x.o", wanted=None)
        finally:
            stop.touch()
            swapper.communicate(timeout=10)
        check()


def led_outputs(bench):
    """A link of the stranger's lies on the way to what hetucc and the tools are to write."""
    with Place("led") as place:
        other, check = precious_tree(place, "x.o", "x", "x.d", "x.json", "x.html", "x.sarif", "x.strategy", "x.ir")
        as_user(STRANGER, lambda: (place.shared / "way").symlink_to(other))
        good = place.home / "y.o"
        for words in (["-c", SMALL, "-o", "way/x.o"], [SMALL, "-o", "way/x"], ["-c", SMALL, "-MMD", "-MF", "way/x.d", "-o", good], ["--report=way/x.html", "-c", SMALL, "-o", good],
                      ["--diagnostics=way/x.sarif", "-c", SMALL, "-o", good], ["--emit=ir", SMALL, "-o", "way/x.ir"], ["--emit=cost-json", SMALL, "-o", "way/x.json"]):
            said = hetucc(bench, place, "--strategy=dp2", "-O0", *words, wanted=None)
            check()
            if "another user's link leads there" not in said:
                raise Failure(f"{words}: {said}")
        cluster = harness.ROOT / "test" / "simulate" / "Inputs" / "cluster.json"
        for option in ("--trace=way/x.json", "--report=way/x.html"):
            said = finish([start([bench.build / "bin" / "hetu-simulate", SMALL, "--strategy=dp2", f"--cluster={cluster}", option], env=place.env(), cwd=place.shared)], any_end=None)
            check()
            expect(said, "another user's link leads there")


def planted_strategy(bench, kind):
    """Where the source has the strategy, a file of the stranger's of its name stands in nobody's way."""
    with Place(f"strategy{kind}") as place:
        path = place.shared / "dp2"
        as_user(STRANGER, {"pipe": lambda: os.mkfifo(path, 0o666), "folder": lambda: path.mkdir(0o777), "file": lambda: path.write_text("strategy dp2\nstage devices(0) mesh(dp:1)\nend strategy\n")}[kind])
        hetucc(bench, place, "--strategy=dp2", "-O0", "-c", SMALL, "-o", place.home / "x.o")


def dumped_conversion(bench, kind):
    """hetu-reshard --dump where links of the stranger's have the names of its files, or its folder's."""
    with Place(f"reshard{kind}") as place:
        names = ("0.boxes", "0.bin", "1.boxes", "1.bin", "traffic.tsv")
        dump, fill, (other, check) = place.shared / "dump", place.home / "fill", precious_tree(place, *names)

        def work():
            if kind == "link":
                dump.symlink_to(other)
                return
            dump.mkdir(mode=0o777)
            for name in names:
                (dump / name).symlink_to(other / name)
        as_user(STRANGER, work)
        fill.mkdir()
        for rank in range(2):
            (fill / f"{rank}.bin").write_bytes(bytes(4 * 8))
        harness.run(["chown", "-R", VICTIM, fill])
        case = "f32[4,4]: [0,1]{0:2} -> [0,1]{1:2}"
        words = [bench.build / "bin" / "hetu-reshard", "--fill", fill, "--dump", dump, case]
        two_ranks(place, words, any_end=None)
        check()


# ---- what programs are made of again ----

def tool_copy(bench, place):
    """A hetucc of the user's own in the folder of all."""
    tool = place.shared / "tool"
    (tool / "bin").mkdir(parents=True)
    shutil.copy(bench.hetucc, tool / "bin")
    for path in bench.build.iterdir():
        if path.name != "bin":
            (tool / path.name).symlink_to(path)
    harness.run(["chown", "-R", "-h", VICTIM, tool])
    return tool


def gone_sources(bench, kind):
    """The folder in which a program was compiled, or hetucc's, is gone, and the stranger has made one of its name: nothing there runs, or is compiled into the program."""
    with Place(f"gone{kind}") as place:
        (place.top / "late.strategy").write_text(LATE)
        work, run = place.shared / "work", place.home / "program"
        (place.top / "dp2.strategy").write_text(elastic.strategy(2))
        work.mkdir()
        for name in ("elastic.c", "log.h"):
            shutil.copy(strangers.SOURCE.parent / name, work / name)
        harness.run(["chown", "-R", VICTIM, work])
        tool = tool_copy(bench, place)
        finish([start([tool / "bin" / "hetucc", f"--strategy={place.top}/dp2.strategy", "-O0", "-DARRIVING", "elastic.c", "-o", run, "-lm"], env=place.env(), cwd=work)])
        text = (work / "elastic.c").read_text()
        shutil.rmtree(tool if kind == "hetucc" else work)

        def plant():
            if kind == "hetucc":
                (tool / "bin").mkdir(parents=True)
                (tool / "bin" / "hetucc").write_text(f"#!/bin/sh\ntouch {place.ran}\n")
                (tool / "bin" / "hetucc").chmod(0o755)
                return
            theirs = place.theirs / "work" if kind == "link" else work
            theirs.mkdir(mode=0o777)
            shutil.copy(strangers.SOURCE.parent / "log.h", theirs / "log.h")
            (theirs / "elastic.c").write_text(text + f'\n__attribute__((constructor)) static void evil(void) {{ fclose(fopen("{place.ran}", "w")); }}\n')
            if kind == "link":
                work.symlink_to(theirs)
        as_user(STRANGER, plant)
        said = two_ranks(place, place.words(run, "late", "dp2"), LD_LIBRARY_PATH=str(bench.build / "lib"))
        expect(said, "is gone, or another user has put it there")
        expect(said, "step 4")


# ---- shared memory ----

def small_memory(place, words, mount, fill, **env):
    """Runs something as the victim where /dev/shm is small, after the stranger has filled it."""
    script = f'mount -t tmpfs -o mode=1777,{mount} shm /dev/shm || exit 77\nsetpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups sh -c "$FILL"\n' \
             f'unset FILL\nexec setpriv --reuid={VICTIM} --regid={VICTIM} --clear-groups "$@"'
    process = subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh", *map(str, words)], env=place.env(FILL=fill, **env), cwd=place.home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace")
    said = finish([process], any_end=None)
    if process.returncode in (1, 77) and ("unshare" in said or "mount:" in said):
        raise Skip(f"/dev/shm cannot be made small here: {said.splitlines()[0]}")
    if process.returncode:
        raise Failure(f"exit {process.returncode}\n{said}")
    place.check()
    return said


FULL = {"blocks": ("size=64k", "head -c 1000000 /dev/zero > /dev/shm/full; true"), "files": ("size=1m,nr_inodes=20", "i=0; while : > /dev/shm/f$i; do i=$((i+1)); done 2>/dev/null; true"),
        "both": ("size=64k,nr_inodes=20", "head -c 1000000 /dev/zero > /dev/shm/full; i=0; while : > /dev/shm/f$i; do i=$((i+1)); done 2>/dev/null; true")}


def full_memory(bench, kind, launcher):
    """/dev/shm is full: ranks meet elsewhere; copies are not made, and nothing else is lost."""
    with Place(f"full{kind}{launcher}") as place:
        slots = place.home / "slots"
        slots.write_text("localhost slots=2\n")
        words = [str(w) for w in place.words(program(bench) / "program")]
        words[4] = "1"  # a copy each step
        if launcher == "heturun":
            command = [bench.build / "bin" / "heturun", "--elastic", program(bench) / "dp2.strategy", "--slots", slots, "--", *words]
            said = small_memory(place, command, *FULL[kind])
        else:
            both = 'for rank in 0 1; do RANK=$rank "$@" & all="$all $!"; done; for one in $all; do wait $one || exit; done'
            said = small_memory(place, ["sh", "-c", both, "sh", *words], *FULL[kind], WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_PORT=f"full{os.getpid()}")
        expect(said, "step 4")
        left = [p.name for p in place.shared.iterdir()]
        if left:
            raise Failure(f"left: {left}")


def two_heturun(bench):
    """A second heturun on the same slots finds the first one, which has its lock elsewhere since /dev/shm is full."""
    with Place("twofull") as place:
        slots = place.home / "slots"
        slots.write_text("localhost slots=2\n")
        words = place.words(program(bench) / "program", steps=40, nap=100)
        command = [bench.build / "bin" / "heturun", "--elastic", program(bench) / "dp2.strategy", "--slots", slots, "--", *words]
        both = 'TMPDIR=$TMPDIR/. "$@" & sleep 2; "$@" && exit 3; kill $!; wait $!; exit 0'
        expect(small_memory(place, ["sh", "-c", both, "sh", *command], *FULL["blocks"]), "another heturun runs on the slots")


def flooded_memory(bench):
    """Thousands of names like those of private folders."""
    with Place("flood") as place:
        slots = place.home / "slots"
        slots.write_text("localhost slots=2\n")
        value = f"{functools.reduce(lambda h, b: (h ^ b) * 0x100000001b3 % 2 ** 64, str(slots).encode(), 0xcbf29ce484222325):016x}"
        fill = f"cd /dev/shm; i=0; while test $i -lt 3000; do mkdir heturun-{VICTIM}-{value}.$i; mkfifo hetu-{VICTIM}-{strangers.node():016x}.$i.x hetu-copies-{VICTIM}-{value}+.$i; i=$((i+1)); done"
        command = [bench.build / "bin" / "heturun", "--elastic", program(bench) / "dp2.strategy", "--slots", slots, "--", *place.words(program(bench) / "program")]
        expect(small_memory(place, command, "size=64m", fill), "step 4")


# ---- checkpoints and meeting places ----

def swapped(bench, kind):
    """A folder of the stranger's, in which checkpoints or a dump are written, and a link to the user's own are swapped all the time."""
    with Place(f"swapped{kind}") as place:
        names = ["0/gold", "1/gold", *[f"step{step}/{rank}/gold" for step in range(4) for rank in range(2)], *[f"step-{step:08}.{suffix}" for step in range(1, 9) for suffix in ("safetensors", "manifest")]]
        named, link, stop, (other, check) = place.shared / "named", place.shared / "link", place.theirs / "stop", precious_tree(place, *names)

        def work():
            named.mkdir(mode=0o777)
            link.symlink_to(other)
        as_user(STRANGER, work)
        swapper = start([PYTHON, "-c", SWAPPER, named, link, stop], uid=STRANGER)
        swapper.stdout.readline()
        try:
            for _ in range(3):
                two_ranks(place, place.words(program(bench) / "program", steps=8, save=1, saved=named if kind == "saved" else None), any_end=None, **({} if kind == "saved" else {"HETU_DUMP": str(named)}))
        finally:
            stop.touch()
            swapper.communicate(timeout=10)
        check()


def harmful(kind):
    """A file of tensors that was made to harm whoever reads it."""
    def framed(head, size=None, more=b""):
        return struct.pack("<Q", len(head) if size is None else size) + head + more
    about = lambda **more: json.dumps({"up": {"dtype": "F32", "shape": [53, 37], "data_offsets": [0, 7844], **more}}).encode()
    return {"empty": b"", "long": framed(b"{}", 1 << 40), "most": framed(b"{}", 2 ** 64 - 1), "deep": framed(b"[" * 2000000), "deeper": framed(b'{"a":' * 1000000), "huge": framed(about(shape=[2 ** 62, 8])),
            "negative": framed(about(data_offsets=[-8, 7836]), more=bytes(7844)), "wide": framed(about(data_offsets=[0, 2 ** 63 - 1])), "many": framed(about(shape=[1] * 5000)),
            "name": framed(json.dumps({"u" * 3000000: {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}).encode(), more=bytes(4)), "nul": framed(b'{"\\u0000":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', more=bytes(4)),
            "type": framed(about(dtype="F" * 100000)), "number": framed(b'{"up":{"dtype":"F32","shape":[1e400],"data_offsets":[0,4]}}', more=bytes(4))}[kind]


HARMFUL = ("empty", "long", "most", "deep", "deeper", "huge", "negative", "wide", "many", "name", "nul", "type", "number")


def harmful_files(bench, kind):
    """Checkpoints and notes of the stranger's in a folder of all harm nobody who goes on from there: they are not used."""
    with Place(f"harmful{kind}") as place:
        saved = place.shared / "saved"
        saved.mkdir()
        saved.chmod(0o1777)

        def work():
            stem = saved / "step-00000009"
            if kind == "sparse":
                for name in ("step-00000009.safetensors", "step-00000009.manifest", "copies", "step-00000002.part.0x"):
                    with (saved / name).open("wb") as file:
                        file.write(struct.pack("<Q", 1 << 30))
                        file.truncate(1 << 40)
                return
            stem.with_suffix(".safetensors").write_bytes(harmful(kind))
            stem.with_suffix(".manifest").write_bytes(b"0 4 00000000\n" * 4)
            (saved / "copies").write_bytes(b" " * 1000000)
        as_user(STRANGER, work)
        said = two_ranks(place, place.words(program(bench) / "program", saved=saved), any_end=None)
        expect(said, "goes on behind step 0")
        expect(said, "step 4")


def met_socket(bench):
    """A socket of the stranger's listens at the place that HETU_RENDEZVOUS names."""
    with Place("socket") as place:
        path = place.shared / "meeting"

        def work():
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
        as_user(STRANGER, work)
        two_ranks(place, place.words(program(bench) / "program"), HETU_RENDEZVOUS=str(path))


def led_trace(bench):
    """A trace whose folder is behind a link of the stranger's."""
    with Place("trace") as place:
        other, check = precious_tree(place, "t.json")
        as_user(STRANGER, lambda: (place.shared / "way").symlink_to(other))
        said = two_ranks(place, place.words(program(bench) / "program"), HETU_TRACE=str(place.shared / "way" / "t.json"), wanted=1, any_end=True)
        check()
        expect(said, "another user's link leads there")


def raced_heturun(bench):
    """Folders that heturun and its ranks make are swapped as they appear."""
    with Place("racedheturun") as place:
        slots = place.home / "slots"
        slots.write_text("localhost slots=2\n")
        words = [str(w) for w in place.words(program(bench) / "program", nap=100)]
        words[4] = "1"
        with strangers.racing(bench, place, place.shared, "/tmp", "/dev/shm"):
            said = finish([start([bench.build / "bin" / "heturun", "--elastic", program(bench) / "dp2.strategy", "--slots", slots, "--", *words], env=place.env(), cwd=place.home)])
        expect(said, "step 4")
        place.check()


def tests(bench, _):
    case = functools.partial
    try:
        reason = strangers.possible(bench)
    except OSError as error:
        reason = str(error)
    if reason:
        return [("all", case(strangers.skipped, f"intruders: {reason}"))]
    found = [(f"built.{kind}", case(built_folder, bench, kind)) for kind in ("folder", "link")]
    found += [(f"emitted.{kind}", case(emitted_folder, bench, kind)) for kind in ("folder", "link", "way", "slash")]
    found += [("saved", case(saved_files, bench)), ("nvcc", case(compiler_temporaries, bench))]
    found += [(f"cache.{kind}", case(cache, bench, kind)) for kind in ("link", "way", "parent", "own")]
    found += [(f"output.{kind}", case(compiler_output, bench, kind)) for kind in ("object", "program", "known", "report")] + [("led", case(led_outputs, bench))]
    found += [("overtaken", case(overtaken_output, bench)), ("swapped.output", case(swapped_output, bench))]
    found += [(f"strategy.{kind}", case(planted_strategy, bench, kind)) for kind in ("pipe", "folder", "file")]
    found += [(f"reshard.{kind}", case(dumped_conversion, bench, kind)) for kind in ("names", "link")]
    found += [(f"gone.{kind}", case(gone_sources, bench, kind)) for kind in ("folder", "link", "hetucc")]
    found += [(f"full.{kind}.{launcher}", case(full_memory, bench, kind, launcher)) for kind in FULL for launcher in ("heturun", "torchrun")]
    found += [("full.two", case(two_heturun, bench)), ("flood", case(flooded_memory, bench))]
    found += [(f"swapped.{kind}", case(swapped, bench, kind)) for kind in ("saved", "dump")]
    found += [(f"harmful.{kind}", case(harmful_files, bench, kind)) for kind in (*HARMFUL, "sparse")]
    return found + [("socket", case(met_socket, bench)), ("trace", case(led_trace, bench)), ("heturun", case(raced_heturun, bench))]


if __name__ == "__main__":
    with unprotected():
        harness.main("intruders", tests)
