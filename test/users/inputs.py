#!/usr/bin/env python3
"""Inputs that are no files: a pipe that nobody writes to, a folder, a socket and a device as every input of every tool are named, with exit status 1, and nothing is waited for; pipes of a shell
are read, again and again. And a trace for which the disk has no room: the run is as it would be without."""
import functools
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, Skip

SMALL = harness.ROOT / "test" / "driver" / "Inputs" / "small.c"
KINDS = {"pipe": "it is a pipe", "folder": "it is a (folder|directory)|this is a folder", "socket": "it is a socket, and no file", "device": "it is a device, and no file"}
STRATEGIES = "strategy a\n  split rows:dp\n  stage devices(0-1) mesh(dp:2)\nend strategy\nstrategy b\n  split rows:dp\n  stage devices(0-2) mesh(dp:3)\nend strategy\n"
# By what the input is: the tool and its words, of which "{}" is the input.
INPUTS = {
    "strategy": ["hetucc", "--strategy={}", "-c", SMALL, "-o", "x.o"],
    "strategy.of": ["hetucc", "--strategy={}:a", "-c", SMALL, "-o", "x.o"],
    "cluster": ["hetucc", "--strategy=dp2", "--cluster={}", "-c", SMALL, "-o", "x.o"],
    "response": ["hetucc", "@{}", "--strategy=dp2", "-c", SMALL, "-o", "x.o"],
    "resume": ["hetucc", "--strategy=dp2", "--resume={}", "-c", SMALL, "-o", "x.o"],
    "plan": ["hetu-plan", "malleus", "{}"],
    "simulate": ["hetu-simulate", "--cluster={}", "--strategy=dp2", SMALL],
    "balance": ["hetu-balance", SMALL, "--strategy={}", "--rates=1,2", "-o", "x.strategy"],
    "reshard": ["hetu-reshard", "--cluster={}", "f32[8]: [0]{} -> [0]{}"],
    "elastic": ["heturun", "--elastic", "{}", "--slots", "slots", "--", "true"],
    "slots": ["heturun", "--elastic", "s.strategy", "--slots", "{}", "--", "true"],
}


def made(bench, kind):
    def make():
        path = bench.path(f"input.{kind}")
        with socket.socket(socket.AF_UNIX) as bound:
            {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "socket": lambda: bound.bind(str(path)), "device": lambda: path.symlink_to("/dev/zero")}[kind]()
        return path
    return bench.once(("kind", kind), make)


def prepared(bench):
    def make():
        folder = bench.path("inputs")
        folder.mkdir()
        (folder / "s.strategy").write_text(STRATEGIES)
        (folder / "slots").write_text("localhost slots=2\n")
        return folder
    return bench.once("inputs", make)


def words_of(bench, name, path):
    tool, *words = INPUTS[name]
    return [str(bench.build / "bin" / tool), *[str(w).replace("{}", str(path)) if str(w).count("{}") == 1 else str(w) for w in words]]


def no_files(bench, kind):
    """All tools at once, since each waits a second for a writer to come."""
    path, folder = made(bench, kind), prepared(bench)
    names = [name for name in INPUTS if (name, kind) != ("elastic", "folder")]  # a folder of strategies is an input there
    running = {name: subprocess.Popen(words_of(bench, name, path), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for name in names}
    wrong, end = [], time.time() + 20
    for name, process in running.items():
        try:
            said = process.communicate(timeout=max(0.1, end - time.time()))[0]
        except subprocess.TimeoutExpired:
            process.kill()
            said = f"not done\n{process.communicate()[0]}"
        if process.returncode != 1 or not re.search(KINDS[kind], said) or not (path.name in said or path.resolve().name in said):
            wrong.append(f"{name}: exit {process.returncode}\n{said}")
    if wrong:
        raise Failure("\n".join(wrong))


def shell(bench, script, status=0, **more):
    done = subprocess.run(["bash", "-c", script, "bash", str(bench.hetucc), str(SMALL)], cwd=prepared(bench), capture_output=True, text=True, timeout=60, **more)
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
    "object": ["hetucc", "--strategy=dp2", "-O0", "-c", SMALL, "-o", "{}"],
    "program": ["hetucc", "--strategy=dp2", "-O0", SMALL, SMALL.parent / "helper.c", "-o", "{}"],
    "cost": ["hetucc", "--strategy=dp2", "--emit=cost", SMALL, "-o", "{}"],
    "depends": ["hetucc", "--strategy=dp2", "-O0", "-MMD", "-MF", "{}", "-c", SMALL, "-o", "depends.o"],
    "trace": ["hetu-simulate", "--strategy=dp2", "--cluster=cluster.json", "--trace={}", SMALL],
}
CLUSTER = """{"classes": {"h": {"memory": 1e9, "memory_bandwidth": 1e10, "start": 1e-6, "arithmetic": 1e10, "products": {"f32": [[1e9, 1e10]]}}},
 "devices": [{"class": "h", "host": "a", "count": 2}], "links": {"local": {"latency": 1e-6, "bandwidth": 1e9}, "remote": {"latency": 1e-6, "bandwidth": 1e9}}}"""


def command_of(bench, name, path):
    (prepared(bench) / "cluster.json").write_text(CLUSTER)
    tool, *words = OUTPUTS[name]
    return [str(bench.build / "bin" / tool), *[str(w).replace("{}", str(path)) for w in words]]


def no_outputs(bench, kind):
    """An output that is a folder, or a pipe that nobody reads, is named, and nothing is waited for."""
    for name in OUTPUTS:
        done = subprocess.run(command_of(bench, name, made(bench, kind)), cwd=prepared(bench), capture_output=True, text=True, timeout=60)
        if done.returncode != 1 or ("it is a folder" if kind == "folder" else "it is a pipe that nobody reads") not in done.stderr:
            raise Failure(f"{name}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def read_outputs(bench):
    """A pipe that somebody reads gets all of it."""
    shell(bench, 'for turn in 1 2 3; do mkfifo out$turn; cat out$turn > read$turn & $1 --strategy=dp2 -O0 -c -MMD -MF out$turn $2 -o x.o || exit 1; wait; cmp read1 read$turn || exit 1; done; test -s read1')
    shell(bench, '$1 --strategy=dp2 -O0 --emit=cost $2 -o >(cat > cost1); $1 --strategy=dp2 -O0 --emit=cost $2 -o /dev/stdout > cost2; sleep 0.3; cmp cost1 cost2 && test -s cost1')


def full_outputs(bench):
    """On a disk without room an output is not there, and so is no part of it; one that was there is as it was."""
    folder = bench.path("full.outputs")
    folder.mkdir()
    for name in OUTPUTS:
        script = 'mount -t tmpfs -o size=16k tmpfs "$0" || exit 99; echo old > "$0/x"; head -c 9000 /dev/zero > "$0/room"; "$@"; status=$?; ls -A "$0"; cat "$0/x"; exit $status'
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder), *command_of(bench, name, folder / "x")], cwd=prepared(bench), capture_output=True,
                              text=True, timeout=60)
        if done.returncode == 99 or "unshare" in done.stderr:
            raise Skip("nothing can be mounted here")
        if done.returncode and (done.stdout != "room\nx\nold\n" or "No space left on device" not in done.stderr):
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
    found = [(f"none.{kind}", functools.partial(no_files, bench, kind)) for kind in KINDS]
    found += [("shells", functools.partial(shells, bench)), ("silent", functools.partial(silent, bench), True)]
    found += [(f"outputs.{kind}", functools.partial(no_outputs, bench, kind)) for kind in ("pipe", "folder")]
    found += [("outputs.read", functools.partial(read_outputs, bench)), ("outputs.full", functools.partial(full_outputs, bench))]
    return found + [("trace", functools.partial(full, bench)), ("trace.disk", functools.partial(full_disk, bench))]


if __name__ == "__main__":
    harness.main("users.inputs", tests)
