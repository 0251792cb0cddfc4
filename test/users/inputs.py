#!/usr/bin/env python3
"""Inputs of every tool and of the runtime that are no regular files: a pipe that nobody writes to, a folder, a socket, a device, /dev/null, an empty file, an unreadable file, a missing file. Each is named with the reason
and exit status 1; nothing waits, and nothing is left behind. Also: files that become shorter while they are read; pipes of a shell that are read repeatedly; a trace without space on the disk, which must not disturb the run."""
import functools
import itertools
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, Skip

SMALL = harness.ROOT / "test" / "driver" / "Inputs" / "small.c"
READER = HERE / "inputs.c"
STRATEGIES = "strategy a\n  split rows:dp\n  stage devices(0-1) mesh(dp:2)\nend strategy\nstrategy b\n  split rows:dp\n  stage devices(0-2) mesh(dp:3)\nend strategy\n"
# By kind: what is said of it.
KINDS = {"pipe": "it is a pipe", "folder": "it is a (folder|directory)|this is a folder", "socket": "it is a socket, and no file", "device": "it is a device, and no file",
         "null": "it is a device, and no file", "empty": "is empty|there is no strategy here|'\\[' or '{' expected|expected a module|too short for a header|the file has no case|is shorter than", "closed": "Permission denied", "missing": "No such file or directory"}
WORKS, ALLOWED = "", None  # what is expected instead of a message: exit status 0, or nothing that is looked at
EMPTY = {"null": KINDS["empty"]}  # /dev/null is an empty file
HEADER = {"null": WORKS, "empty": WORKS, "missing": "file not found"}
NOTHING = {"null": WORKS, "empty": WORKS}
FOLDER = {**{kind: "cannot read the folder .*: Not a directory" for kind in ("pipe", "socket", "device", "null", "empty")}, "folder": WORKS, "missing": WORKS}
INPUT = {"pipe": ALLOWED, "folder": "cannot read standard input: Is a directory", "socket": ALLOWED, "device": "cannot read standard input: it has more than 64 MiB", "closed": ALLOWED, "missing": ALLOWED, **NOTHING}
# By what the input is: its ending, what is expected other than KINDS, the program and its words, of which "{}" is the input.
INPUTS = {
    "source": (".c", NOTHING, ["hetucc", "--strategy=own", "-O0", "-c", "{}", "-o", "x.o"]),
    "source.language": (".x", NOTHING, ["hetucc", "--strategy=own", "-O0", "-c", "-x", "c", "{}", "-o", "x.o"]),
    "source.input": ("", INPUT, ["hetucc", "--strategy=own", "-O0", "-c", "-x", "c", "-", "-o", "x.o"]),  # the input is standard input
    "source.second": (".c", NOTHING, ["hetucc", "--strategy=own", "-O0", READER, "{}", "-o", "x"]),
    "object": (".o", NOTHING, ["hetucc", "--strategy=own", "-O0", READER, "{}", "-o", "x"]),
    "archive": (".a", NOTHING, ["hetucc", "--strategy=own", "-O0", READER, "{}", "-o", "x"]),
    "header": (".h", HEADER, ["hetucc", "--strategy=own", "-O0", "-include", "{}", "-c", READER, "-o", "x.o"]),
    "macros": (".h", HEADER, ["hetucc", "--strategy=own", "-O0", "-imacros", "{}", "-c", READER, "-o", "x.o"]),
    "strategy": (".strategy", EMPTY, ["hetucc", "--strategy={}", "-c", SMALL, "-o", "x.o"]),
    "strategy.of": (".strategy", EMPTY, ["hetucc", "--strategy={}:a", "-c", SMALL, "-o", "x.o"]),
    "cluster": (".json", EMPTY, ["hetucc", "--strategy=dp2", "--cluster={}", "-c", SMALL, "-o", "x.o"]),
    "response": ("", NOTHING, ["hetucc", "@{}", "--strategy=dp2", "-O0", "-c", SMALL, "-o", "x.o"]),
    "resume": (".ir", EMPTY, ["hetucc", "--strategy=dp2", "--resume={}", "-c", SMALL, "-o", "x.o"]),
    "plan.cluster": (".json", EMPTY, ["hetucc", "--plan", "--cluster={}", SMALL, "-o", "x.strategy"]),
    "opt": (".ir", EMPTY, ["hetu-opt", "{}"]),
    "plan": (".json", EMPTY, ["hetu-plan", "malleus", "{}"]),
    "simulate": (".json", EMPTY, ["hetu-simulate", "--cluster={}", "--strategy=dp2", SMALL]),
    "simulate.strategy": (".strategy", EMPTY, ["hetu-simulate", "--cluster=cluster.json", "--strategy={}", SMALL]),
    "simulate.events": (".json", EMPTY, ["hetu-simulate", "--cluster=cluster.json", "--strategy=dp2", "--events={}", SMALL]),
    "simulate.source": (".c", EMPTY, ["hetu-simulate", "--cluster=cluster.json", "--strategy=own", "{}"]),
    "balance": (".strategy", EMPTY, ["hetu-balance", SMALL, "--strategy={}", "--rates=1,2", "-o", "x.strategy"]),
    "balance.cluster": (".json", EMPTY, ["hetu-balance", SMALL, "--strategy=dp2", "--cluster={}", "--rates=1,2", "-o", "x.strategy"]),
    "balance.source": (".c", EMPTY, ["hetu-balance", "{}", "--strategy=own", "--rates=1,2", "-o", "x.strategy"]),
    "reshard": (".json", EMPTY, ["hetu-reshard", "--cluster={}", "f32[8]: [0]{} -> [0]{}"]),
    "reshard.batch": ("", EMPTY, ["hetu-reshard", "--together", "--batch={}"]),
    "reshard.fill": ("/0.bin", {}, ["hetu-reshard", "--fill={folder}", "--dump=.", "f32[8]: [0]{} -> [0]{}"]),
    "operators": (".h", NOTHING, ["hetu-operators", "{}", "x.c", "x1.h", "x2.h"]),
    "operators.reference": (".h", {"empty": WORKS}, ["hetu-operators", "--reference", "{}"]),
    "elastic": (".strategy", {"folder": "has no files \\*.strategy"}, ["heturun", "--elastic", "{}", "--slots", "slots", "--", "true"]),
    "slots": ("", {"empty": ALLOWED}, ["heturun", "--elastic", "s.strategy", "--slots", "{}", "--", "true"]),  # it waits for lines in an empty one
    "data": (".bin", {}, ["READER", "data={}"]),
    "load": (".safetensors", {"folder": "there is no file \\*.safetensors in it"}, ["READER", "load={}"]),
    "checkpoints": ("", FOLDER, ["READER", "resume={}"]),
}
SECONDS = 30  # in which all ends on a machine that is loaded; 5 on one that is not


def made(bench, kind, ending="", name="input"):
    """Something of a kind, with a name and an ending. `closed` is a folder where there is no ending, since a folder is asked for."""
    def make():
        path = bench.path(f"{name}.{kind}{ending}")
        if ending.startswith("/"):
            path = bench.path(f"folder.{kind}") / ending[1:]
            path.parent.mkdir(exist_ok=True)
        with socket.socket(socket.AF_UNIX) as bound:
            {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "socket": lambda: bound.bind(str(path)), "device": lambda: path.symlink_to("/dev/zero"), "null": lambda: path.symlink_to("/dev/null"),
             "empty": path.touch, "closed": path.touch if ending else path.mkdir, "missing": lambda: None}[kind]()
        if kind == "closed":
            path.chmod(0)
        return path
    return bench.once(("kind", name, kind, ending), make)


def prepared(bench):
    def make():
        folder = bench.path("inputs")
        folder.mkdir()
        (folder / "s.strategy").write_text(STRATEGIES)
        (folder / "slots").write_text("localhost slots=2\n")
        (folder / "cluster.json").write_text(CLUSTER)
        return folder
    return bench.once("inputs", make)


def private(bench, name):
    """A copy of the prepared folder for one test: what one makes there is not found by another."""
    folder = bench.path(f"inputs.{name}")
    shutil.copytree(prepared(bench), folder)
    return folder


def bound(words):
    """Words that run a program without root's right to read all files."""
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *words] if os.geteuid() == 0 else words


def words_of(bench, words, path):
    tool = str(bench.plain(READER)) if words[0] == "READER" else str(bench.build / "bin" / words[0])
    return [tool, *[str(w).replace("{folder}", str(path.parent)).replace("{}", str(path)) if str(w).count("{}") < 2 else str(w) for w in words[1:]]]


def ended(words, cwd, **more):
    """(what was said, exit status) of a program; it is killed with what it has started when it does not end."""
    process = subprocess.Popen(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True, **{"stdin": subprocess.DEVNULL, **more})
    try:
        return process.communicate(timeout=SECONDS)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return f"not done after {SECONDS} s\n{process.communicate()[0]}", None


def no_file(bench, name, kind):
    """One input of a kind. Outputs are named x, x.o, ...: after an error there are none, and nothing that was to become one."""
    ending, expected, words = INPUTS[name]
    path, wanted = made(bench, kind, ending), expected.get(kind, KINDS[kind])
    if wanted is ALLOWED:
        return
    folder = private(bench, f"{name}.{kind}")
    before = set(os.listdir(folder))
    command = words_of(bench, words, path)
    stdin = os.open(path if name == "source.input" else "/dev/null", os.O_RDONLY)
    said, status = ended(bound(command) if kind == "closed" else command, folder, stdin=stdin)
    os.close(stdin)
    left = set(os.listdir(folder)) - before
    named = path.name in said or path.resolve().name in said or name == "source.input"
    if (status != 0) if wanted == WORKS else (status != 1 or not re.search(wanted, said) or not named or left):
        return f"{name} {kind}: exit {status}, left {sorted(left)}\n{said}"


def no_files(bench, kind):
    wrong, longest = [], (0, "")
    for name in INPUTS:
        begin, text = time.time(), no_file(bench, name, kind)
        longest = max(longest, (time.time() - begin, name))
        wrong += [text] if text else []
    if wrong:
        raise Failure("\n".join(wrong))
    return f"{len(INPUTS)} inputs, {longest[0]:.1f} s at most ({longest[1]})"


def checkpoint_parts(bench, kind):
    """The newest checkpoint's file, or its manifest, is of a kind: that is said, and the one before is taken."""
    for part in ("safetensors", "manifest"):
        folder = bench.path(f"parts.{part}.{kind}")
        harness.run([bench.plain(READER), "step", f"save={folder}", "step", f"save={folder}"])
        path = folder / f"step-00000002.{part}"
        path.unlink()
        if kind != "missing":
            made(bench, kind, ".part")
            os.symlink(bench.path(f"input.{kind}.part"), path)
        command = [str(bench.plain(READER)), f"resume={folder}"]
        said, status = ended(bound(command) if kind == "closed" else command, folder)
        whole = "resumed 1\n" in said and (kind == "missing" and part == "safetensors" or re.search(f"the checkpoint .*step-00000002.safetensors is not used: .*({KINDS[kind]}|there is no file|it has no manifest|its manifest is not whole)", said))
        if status != 0 or not whole:
            raise Failure(f"{part}: exit {status}\n{said}")


ARRIVING = {"empty": "there is no strategy here"}


def arriving(bench, kind):
    """A strategy for ht_prepare and HETU_STRATEGY: refused once, with its name; the program goes on, or does not begin."""
    path = made(bench, kind, ".strategy")
    program, ranks = bench.compiled(READER, "own", ("-g",)), ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", "2"]
    for words, env, status in ((["step", f"prepare={path}", f"prepare={path}", "step"], {}, 0), (["step"], {"HETU_STRATEGY": str(path)}, 121)):
        command = [*ranks, *(bound([str(program)]) if kind == "closed" else [str(program)]), *words]
        said, got = ended(command, private(bench, f"arriving.{kind}.{status}"), env={**os.environ, **harness.MPI, "OMP_NUM_THREADS": "1", **env})
        if got != status or len(re.findall(f"{KINDS[kind]}|there is no strategy here", said)) != 1 or not (path.name in said or path.resolve().name in said) or ("prepare" in words[-2:][0] and said.count("switch 0") != 2):
            raise Failure(f"{words} {env}: exit {got}\n{said}")


# ---- files that change ----

def shrinks(bench):
    """A file that another process makes shorter and whole again, all the time: what reads it ends well or with an error, by no signal."""
    folder = bench.path("shrinks")
    folder.mkdir()
    harness.run([bench.hetucc, "--strategy=own", "-O0", "-c", READER, "-o", "x.o"], cwd=folder)
    harness.run(["ar", "rcs", "x.a", "x.o"], cwd=folder)
    harness.run([bench.plain(READER), "step", f"save={folder}/saved"])
    for name, text in {"x.strategy": STRATEGIES, "x.json": CLUSTER, "x.ir": harness.run([bench.hetucc, "--strategy=own", "--emit=ir", READER, "-o", "-"]).stdout, "x.words": "-O0 -c", "x.c": READER.read_text()}.items():
        (folder / name).write_text(text)
    for path, times, words in (("x.o", 10, ["hetucc", "-O0", "{}", "-o", "out"]), ("x.a", 10, ["hetucc", "-O0", "{}", "-o", "out"]), ("x.c", 3, ["hetucc", "--strategy=own", "-O0", "-c", "{}", "-o", "out"]),
                               ("x.strategy", 3, ["hetucc", "--strategy={}:a", "-O0", "-c", SMALL, "-o", "out"]), ("x.json", 3, ["hetucc", "--strategy=dp2", "--cluster={}", "--emit=cost", SMALL, "-o", "out"]),
                               ("x.ir", 10, ["hetu-opt", "{}"]), ("x.words", 3, ["hetucc", "@{}", "--strategy=dp2", SMALL, "-o", "out"]), ("saved/step-00000001.safetensors", 20, ["READER", "load={}"]),
                               ("saved/step-00000001.manifest", 20, ["READER", f"resume={folder}/saved"])):
        whole, done = (folder / path).read_bytes(), threading.Event()

        def change(file=folder / path, whole=whole, done=done):
            with open(file, "r+b", buffering=0) as stream:
                while not done.is_set():
                    stream.truncate(0)
                    os.pwrite(stream.fileno(), whole, 0)
                    time.sleep(2e-5)
        changer = threading.Thread(target=change)
        changer.start()
        try:
            for _ in range(times):
                said, status = ended(words_of(bench, words, folder / path), folder)
                own = re.sub("^(collect2|.*/ld): .*$", "", said, flags=re.MULTILINE)  # the linker's words for an object that changes are its own; Debian 13's may crash
                if status not in (0, 1) or "signal" in own or "internal" in own:
                    raise Failure(f"{path}: exit {status}\n{said}")
        finally:
            done.set()
            changer.join()


SHELLS = itertools.count()


def shell(bench, script, status=0, **more):
    done = subprocess.run(["bash", "-c", script, "bash", str(bench.hetucc), str(SMALL)], cwd=private(bench, f"shell{next(SHELLS)}"), capture_output=True, text=True, timeout=60, **more)
    if done.returncode != status:
        raise Failure(f"{script}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def shells(bench):
    """What a shell gives instead of a file is read: slowly, several times, with carets in messages; and a named pipe to which somebody writes."""
    shell(bench, '$1 --strategy=<(sleep 0.3; cat s.strategy):a -O0 -c $2 -o one.o')
    shell(bench, 'exec 7< <(cat s.strategy); $1 --strategy=/dev/fd/7:a --strategy=/dev/fd/7:b -O0 -c $2 -o two.o')
    shell(bench, '$1 @<(echo --strategy=dp2 -O0 -c) $2 -o three.o')
    shell(bench, 'mkfifo named; (sleep 0.3; cat s.strategy) > named & $1 --strategy=named:a -O0 -c $2 -o four.o')
    said = shell(bench, '$1 --strategy=<(sed s/split/splt/ s.strategy):a -c $2 -o five.o', 1)
    if not re.search(r'/dev/fd/\d+:2:3: error: "splt" begins no statement of a strategy\n +2 \|   splt rows:dp\n +\|   \^', said):
        raise Failure(said)
    said = shell(bench, '$1 -c <(cat $2) -o six.o', 1)
    if "it is a pipe, and no file; the C compiler reads it once more" not in said:
        raise Failure(said)


def silent(bench):
    """A named pipe whose writer says nothing is an error after some time."""
    said = shell(bench, 'mkfifo mute; sleep 60 3<> mute & writer=$!; $1 --strategy=mute -c $2 -o x.o; status=$?; kill $writer; exit $status', 1)
    if "it is a pipe through which nothing has come for 10 s" not in said:
        raise Failure(said)


# ---- outputs ----

# By what the output is: the tool and its words, of which "{}" is the output.
OUTPUTS = {
    "object": (".o", ["hetucc", "--strategy=dp2", "-O0", "-c", SMALL, "-o", "{}"]),
    "program": ("", ["hetucc", "--strategy=own", "-O0", READER, "-o", "{}"]),
    "cost": ("", ["hetucc", "--strategy=dp2", "--emit=cost", SMALL, "-o", "{}"]),
    "ir": (".ir", ["hetucc", "--strategy=dp2", "--emit=ir", SMALL, "-o", "{}"]),
    "depends": (".d", ["hetucc", "--strategy=dp2", "-O0", "-MMD", "-MF", "{}", "-c", SMALL, "-o", "depends.o"]),
    "report": (".json", ["hetucc", "--strategy=dp2", "-O0", "--cluster=cluster.json", "--report={}", "-c", SMALL, "-o", "report.o"]),
    "page": (".html", ["hetucc", "--strategy=dp2", "-O0", "--cluster=cluster.json", "--report={}", "-c", SMALL, "-o", "page.o"]),
    "diagnostics": (".sarif", ["hetucc", "--strategy=dp2", "-O0", "--diagnostics={}", "-c", SMALL, "-o", "diagnostics.o"]),
    "plan": (".strategy", ["hetucc", "--plan", "--cluster=cluster.json", READER, "-o", "{}"]),
    "balance": (".strategy", ["hetu-balance", READER, "--strategy=own", "--rates=1,4", "-o", "{}"]),
    "trace": (".json", ["hetu-simulate", "--strategy=dp2", "--cluster=cluster.json", "--trace={}", SMALL]),
}
CLUSTER = """{"classes": {"h": {"memory": 1e9, "memory_bandwidth": 1e10, "start": 1e-6, "arithmetic": 1e10, "products": {"f32": [[1e9, 1e10]]}}},
 "devices": [{"class": "h", "host": "a", "count": 2}], "links": {"local": {"latency": 1e-6, "bandwidth": 1e9}, "remote": {"latency": 1e-6, "bandwidth": 1e9}}}"""


def command_of(bench, name, path):
    tool, *words = OUTPUTS[name][1]
    return [str(bench.build / "bin" / tool), *[str(w).replace("{}", str(path)) for w in words]]


def no_outputs(bench, kind):
    """An output that is a folder, a socket, or a pipe that nobody reads, is named, and nothing is waited for."""
    wrong, folder = [], private(bench, f"outputs.{kind}")
    for name, (ending, _) in OUTPUTS.items():
        said, status = ended(command_of(bench, name, made(bench, kind, ending, "output")), folder)
        if status != 1 or {"pipe": "it is a pipe that nobody reads", "folder": "it is a folder", "socket": "it is a socket"}[kind] not in said or f"output.{kind}{ending}" not in said:
            wrong.append(f"{name}: exit {status}\n{said}")
    if wrong:
        raise Failure("\n".join(wrong))


def read_outputs(bench):
    """A pipe that somebody reads gets all of it."""
    shell(bench, 'for turn in 1 2 3; do mkfifo out$turn; cat out$turn > read$turn & $1 --strategy=dp2 -O0 -c -MMD -MF out$turn $2 -o x.o || exit 1; wait; cmp read1 read$turn || exit 1; done; test -s read1')
    shell(bench, '$1 --strategy=dp2 -O0 --emit=cost $2 -o >(cat > cost1); $1 --strategy=dp2 -O0 --emit=cost $2 -o /dev/stdout > cost2; sleep 0.3; cmp cost1 cost2 && test -s cost1')


def full_outputs(bench):
    """On a disk without room an output is not there, and so is no part of it; one that was there is as it was."""
    folder, place = bench.path("full.outputs"), private(bench, "full.place")
    folder.mkdir()
    for name in OUTPUTS:
        script = 'mount -t tmpfs -o size=16k tmpfs "$0" || exit 99; echo old > "$0/$X"; head -c 9000 /dev/zero > "$0/room"; "$@"; status=$?; ls -A "$0"; cat "$0/$X"; exit $status'
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder), *command_of(bench, name, folder / f"x{OUTPUTS[name][0]}")], cwd=place, capture_output=True,
                              text=True, timeout=60, env={**os.environ, "X": f"x{OUTPUTS[name][0]}"})
        if done.returncode == 99 or "unshare" in done.stderr:
            raise Skip("nothing can be mounted here")
        if done.returncode and (done.stdout != f"room\nx{OUTPUTS[name][0]}\nold\n" or "No space left on device" not in done.stderr):
            raise Failure(f"{name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return ""


# ---- traces ----

WINDOWS = HERE / "windows.c"


def full(bench):
    """A file may not become so large: the run ends well, says so, and leaves nothing."""
    path, limit = bench.path("full") / "trace.json", 8192
    path.parent.mkdir()
    program = bench.plain(WINDOWS, ("-g",))
    right = harness.run([program]).stdout
    done = subprocess.run([program], env={**os.environ, "HETU_TRACE": str(path), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    if done.returncode or done.stdout != right or f"hetu: HETU_TRACE: {path} was not written: File too large; the run itself is" not in done.stderr or list(path.parent.iterdir()):
        raise Failure(f"exit {done.returncode}\n{done.stdout}{done.stderr}{list(path.parent.iterdir())}")


def full_disk(bench):
    """The same of four ranks on a disk that is full, where one can be mounted."""
    folder = bench.path("disk")
    folder.mkdir()
    program = bench.compiled(WINDOWS, "mesh")
    script = 'mount -t tmpfs -o size=32k tmpfs "$1" || exit 99; for r in 0 1 2 3; do HETU_RANK=$r "$2" & all="$all $!"; done; status=0; for p in $all; do wait $p || status=$?; done; ls -A "$1"; exit $status'
    env = {**os.environ, "HETU_TRACE": str(folder / "trace.json"), "OMP_NUM_THREADS": "1", "HETU_SIZE": "4", "HETU_RENDEZVOUS": str(bench.path("disk.meeting"))}
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(folder), str(program)], env=env, capture_output=True, text=True, timeout=60)
    if done.returncode == 99 or "unshare" in done.stderr:
        raise Skip("nothing can be mounted here")
    if done.returncode or "trace.json was not written: No space left on device" not in done.stderr or "trace" in done.stdout:
        raise Failure(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    return ""


def tests(bench, _):
    found = [(f"none.{kind}", functools.partial(no_files, bench, kind), kind in ("null", "closed", "missing")) for kind in KINDS]
    found += [(f"parts.{kind}", functools.partial(checkpoint_parts, bench, kind), kind in ("socket", "device", "null")) for kind in KINDS]
    found += [(f"arriving.{kind}", functools.partial(arriving, bench, kind), kind not in ("pipe", "missing")) for kind in KINDS]
    found += [("shrinks", functools.partial(shrinks, bench))]
    found += [("shells", functools.partial(shells, bench)), ("silent", functools.partial(silent, bench), True)]
    found += [(f"outputs.{kind}", functools.partial(no_outputs, bench, kind)) for kind in ("pipe", "folder", "socket")]
    found += [("outputs.read", functools.partial(read_outputs, bench)), ("outputs.full", functools.partial(full_outputs, bench))]
    return found + [("trace", functools.partial(full, bench)), ("trace.disk", functools.partial(full_disk, bench))]


if __name__ == "__main__":
    harness.main("users.inputs", tests)
