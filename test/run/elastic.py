#!/usr/bin/env python3
"""Tests elastic runs (heturun): ranks are killed, slots go and come, heturun itself is killed. Every run reaches its last step with the losses of an undisturbed run, and each row counts once.

The test finds the processes to kill by their environments in /proc. Afterwards no process of the run is left, and nothing in shared memory.
"""
import functools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import harness
import switches
from harness import EXAMPLES, Failure
from pipelines import GPT, LLAMA, flags_of

STEP = r"^step +(\d+)"  # a step is made
SOURCE = harness.ROOT / "test" / "run" / "elastic.c"
WIDEST = 8


def strategy(ranks, name=None, lines="split batch:dp"):
    return f"strategy {name or f'dp{ranks}'}\n  {lines}\n  stage devices(0-{ranks - 1}) mesh(dp:{ranks})\nend strategy\n"


TP = "strategy tp3\n  split hidden:tp\n  stage devices(0-2) mesh(tp:3)\nend strategy\n"
STRATEGIES = {"1": strategy(8, lines="split batch:dp\n  zero 3"), "2": strategy(4), "3": TP, "4": strategy(2, lines="split batch:dp\n  zero 1"), "5": strategy(1)}


def folder_of(bench, names):
    def make():
        folder = bench.path("strategies" + "".join(names))
        folder.mkdir()
        for name in names:
            (folder / f"{name}.strategy").write_text(STRATEGIES[name])
        return folder
    return bench.once(("folder", tuple(names)), make)


def built(bench):
    """The program with all strategies; which of them a run may take is heturun's."""
    def make():
        out = bench.path("elastic")
        folder = folder_of(bench, list(STRATEGIES))
        harness.run([bench.hetucc, *[f"--strategy={folder / n}.strategy" for n in STRATEGIES], "-O1", *harness.WARNINGS, SOURCE, "-o", out, "-lm"], timeout=300)
        return out
    return bench.once("elastic", make)


def wanted(bench, steps):
    """The log of an undisturbed run on one device."""
    def make():
        log = bench.path(f"wanted{steps}.log")
        harness.run([bench.plain(SOURCE), bench.path(f"wanted{steps}"), steps, 0, 0, log])
        return log.read_text().splitlines()
    return bench.once(("wanted", steps), make)


class Run:
    """A program under heturun."""

    def __init__(self, bench, label, slots, steps, save=1, copy=0, nap=30, names="12345", switches=(), program=None, model=None, options=(), folder=None, **env):
        self.bench, self.steps, self.top, self.model = bench, steps, bench.path(f"run.{label}"), model
        self.top.mkdir()
        self.slots, self.log, self.tag, self.lines = self.top / "slots", self.top / "log", f"elastic-{os.getpid()}-{label}", []
        self.env = {**os.environ, "OMP_NUM_THREADS": "1", "TEST_ELASTIC": self.tag, "HETU_TIMEOUT": "60", **env}
        self.env.pop("HETU_CHECK", None)
        self.slots.write_text(slots)
        folder = folder or (model.folder(bench) if model else folder_of(bench, list(names)))
        words = model.words(self, save, copy) if model else [program or built(bench), self.top / "saved", steps, save, copy, self.log, nap, *switches]
        self.command = [str(c) for c in (bench.build / "bin" / "heturun", "--elastic", folder, "--slots", self.slots, *options, "--", *words)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read, args=(self.process,), daemon=True)
        self.reader.start()

    def read(self, process):
        for line in process.stdout:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def said(self):
        return "\n".join(line for _, line in self.lines)

    def processes(self):
        """{process: rank} of the run, heturun not among them."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                env = pathlib.Path(f"/proc/{entry}/environ").read_text(errors="replace").split("\0")
                if f"TEST_ELASTIC={self.tag}" in env and int(entry) != self.process.pid and pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(") ")[2][0] != "Z":
                    found[int(entry)] = next((int(v[10:]) for v in env if v.startswith("HETU_RANK=")), -1)
            except OSError:
                pass
        return found

    def wait(self, pattern, count=1, seconds=60):
        """Waits until so many lines match; when the last of them came."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            times = [at for at, line in list(self.lines) if re.search(pattern, line)]
            if len(times) >= count:
                return times[count - 1]
            if self.process.poll() is not None and not self.reader.is_alive():
                break
            time.sleep(0.005)
        raise Failure(f"no line {pattern!r} ({count})\n{self.said()[-3000:]}")

    def kill(self, *ranks):
        """Kills ranks; when."""
        for process, rank in self.processes().items():
            if rank in ranks:
                os.kill(process, signal.SIGKILL)
        return time.monotonic()

    def seconds_until_step(self, since):
        """From a moment to the end of the next step that a later start makes."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            lines, begun = list(self.lines), False
            for at, line in lines:
                begun = begun or (at >= since and line.startswith("heturun: start"))
                if begun and re.search(STEP, line):
                    return at - since
            if self.process.poll() is not None and not self.reader.is_alive():
                break
            time.sleep(0.01)
        raise Failure(f"no step\n{self.said()[-3000:]}")

    def finish(self, status=0):
        """Waits for the end: all steps are made, each counts once, and nothing is left."""
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure(f"not done\n{self.said()[-3000:]}") from None
        self.reader.join(5)
        time.sleep(0.05)
        left, shared = self.processes(), shared_memory(self.slots)
        for process in left:
            os.kill(process, signal.SIGKILL)
        if self.process.returncode != status or left or shared:
            raise Failure(f"exit {self.process.returncode}, left {left} {shared}\n{self.said()[-3000:]}")
        if not status and self.model:
            harness.compare_losses(harness.read_losses(self.log), self.model.wanted(self.bench, self.steps), 1e-4)
        elif not status:
            compare(self.log.read_text().splitlines(), wanted(self.bench, self.steps))
        return self.said()


def shared_memory(slots):
    """What a run on these slots has in shared memory."""
    value = 0xcbf29ce484222325
    for byte in str(slots.resolve()).encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return sorted(str(p) for p in pathlib.Path("/dev/shm").glob(f"hetu-copies-{os.geteuid()}-{value:016x}*"))


def compare(found, right):
    """Losses within 1e-4 of those of one device, rows as many."""
    if len(found) != len(right):
        raise Failure(f"{len(found)} lines, not {len(right)}")
    for mine, line in zip(found, right):
        (step, loss, rows), (step_right, loss_right, rows_right) = mine.split(), line.split()
        if step != step_right or rows != rows_right or abs(float(loss) - float(loss_right)) > 1e-4 * abs(float(loss_right)):
            raise Failure(f"{mine}, not {line}")


class Example:
    """An example of 8 layers with dropout, trained by AdamW, under strategies of switches.py for 8 ranks and fewer."""

    def __init__(self, name, sizes):
        self.source, self.sizes, self.names = EXAMPLES / name / f"{name}.c", {**sizes, "DROPOUT": "0.1f"}, ("twice", "beside", "zero1", "tp4", "one")

    def program(self, bench):
        """One after another, since the strategies' files are the same."""
        with BUILDING:
            return self.built(bench)

    def built(self, bench):
        return switches.build(bench, self.source, flags_of(self.sizes), 8, self.sizes["BATCH"], 5, self.names)

    def folder(self, bench):
        def make():
            self.program(bench)
            folder = bench.path("strategies.examples")
            folder.mkdir()
            files = {file.name.split(".")[-2]: file for file in switches.strategy_files(bench, 8, self.sizes["BATCH"], 5)}
            for number, name in enumerate(self.names):
                shutil.copy(files[name], folder / f"{number}.strategy")
            return folder
        return bench.once("strategies.examples", make)

    def words(self, run, save, copy):
        turns = [word for step in range(3, run.steps, 3) for word in ("--switch", f"{step}:{self.names[step // 3 % len(self.names)]}")]
        return [self.program(run.bench), "--steps", run.steps, "--sample", 0, "--every", 1, "--losses", run.log, "--checkpoints", run.top / "saved", "--save", save, "--copy", copy, *turns]

    def wanted(self, bench, steps):
        def make():
            losses = bench.path(f"{self.source.stem}.losses")
            harness.launch(bench.plain(self.source, flags_of(self.sizes)), 0, "--steps", steps, "--sample", 0, "--losses", losses)
            return harness.read_losses(losses)
        return bench.once(("losses", self.source, steps), make)


BUILDING = threading.Lock()
MODELS = (Example("gpt", GPT), Example("llama", LLAMA))


def ranks_of(said):
    """On how many ranks the starts were."""
    return [int(n) for n in re.findall(r"^heturun: start \d+: (\d+) rank", said, re.M)]


def check_killed(bench, label, slots, ranks, starts, seed, **more):
    """Ranks are killed one after another, each at a moment of its own."""
    run, draw = Run(bench, label, slots, 16, **more), random.Random(seed)
    for number, rank in enumerate(ranks):
        run.wait(STEP, 3 * (number + 1))
        time.sleep(draw.uniform(0, 0.03))
        seconds = run.seconds_until_step(run.kill(rank))
        if seconds > 10:
            raise Failure(f"{seconds:.1f} s until the next step")
    said = run.finish()
    if ranks_of(said) != starts:
        raise Failure(f"starts on {ranks_of(said)}\n{said}")
    return f"{seconds:.1f} s"


def resumed_at(said):
    return [int(n) for n in re.findall(r"^goes on behind step (\d+)$", said, re.M)]


def host_folder(run, host):
    """Where a host of the run has its copies; None: the whole machine."""
    folders = shared_memory(run.slots)
    return [pathlib.Path(f) for f in folders if host is None or f.endswith(f".{host}")]


def check_copies(bench, label, slots, every, dead, starts, lose=None, **more):
    """With copies in shared memory every few steps, and no checkpoint, so many steps are made again; also when a host is gone with its ranks and its memory (`lose`)."""
    run = Run(bench, label, slots, 16, save=0, copy=every, **more)
    run.wait(STEP, 7)
    run.kill(*dead) if lose is None else kill_host(run, lose)
    run.wait("^goes on ", 2)
    said = run.finish()
    again = steps_again(said)
    if again not in range(-1, every + 1) or ranks_of(said) != starts:
        raise Failure(f"{again} steps again, starts on {ranks_of(said)}\n{said}")
    return f"{again} steps again"


def flip(path):
    with open(path, "r+b") as file:
        file.seek(-5, 2)
        byte = file.read(1)
        file.seek(-5, 2)
        file.write(bytes([byte[0] ^ 1]))


def check_lost(bench, label, damage):
    """Copies that are damaged, or on a host that is gone without another: the newest checkpoint does."""
    run = Run(bench, label, "localhost slots=4", 16, save=5, copy=1)
    run.wait(STEP, 8)
    run.process.send_signal(signal.SIGSTOP)
    ranks = [process for process, rank in run.processes().items() if rank >= 0]
    run.kill(0, 1, 2, 3)
    while any(state_of(process) != "Z" for process in ranks):
        time.sleep(0.01)
    damage(run)
    run.slots.write_text("localhost slots=4\n")
    run.process.send_signal(signal.SIGCONT)
    if resumed_at(run.finish())[1] != 5:
        raise Failure(run.said())


KINDS = ("step", "switch", "checkpoint", "start", "again", "host", "launcher")
MARKS = {"step": STEP, "switch": "^switching", "checkpoint": "^saving", "start": "^heturun: start 1:", "again": STEP, "host": STEP, "launcher": STEP}
SPREAD = {"step": 0.03, "switch": 0.01, "checkpoint": 0.01, "start": 0.25, "again": 0.25, "host": 0.03, "launcher": 0.03}


def kill_one(run, draw):
    """Kills one of the ranks that there are, now and then rank 0."""
    living = {rank: process for process, rank in run.processes().items() if rank >= 0}
    rank = 0 if draw.random() < 0.3 and 0 in living else draw.choice(sorted(living or {0: 0}))
    return run.kill(rank)


def kill_host(run, host):
    """Kills all ranks of a host, and takes its shared memory."""
    run.kill(*[rank for process, rank in run.processes().items() if f"HETU_NODE={host}" in pathlib.Path(f"/proc/{process}/environ").read_text().split("\0")])
    for folder in host_folder(run, host):
        shutil.rmtree(folder)
    return time.monotonic()


def kill_launcher(run):
    """Kills heturun, and starts it again."""
    since = time.monotonic()
    run.process.kill()
    run.process.wait()
    run.start()
    return since


def steps_again(said):
    """Steps that are made again after the first start; -1 where a rank died between the copy of a step and the line that says it."""
    first, *others = re.split(r"^heturun: start \d+", said, flags=re.M)[1:]
    return max((int(n) for n in re.findall(STEP, first, re.M)), default=0) - (resumed_at("".join(others)) or [0])[0]


def check_moment(bench, seed, make):
    """A rank is killed at a moment that the seed draws: in a step, a switch, a checkpoint, a start, and a second one while the run recovers; or a host, or heturun, which is started again."""
    kind, draw = KINDS[seed % len(KINDS)], random.Random(seed)
    every = draw.choice((1, 1, 3))
    run = make(bench, f"moment{seed}", every, **({"HETU_HOSTS": "2"} if kind == "host" else {}))
    run.wait(STEP if run.model and kind != "start" else MARKS[kind], 1 if kind == "start" else draw.randrange(2, 7))
    time.sleep(draw.uniform(0, SPREAD[kind]))
    since = kill_host(run, draw.randrange(2)) if kind == "host" else kill_launcher(run) if kind == "launcher" else kill_one(run, draw)
    if kind == "again":
        run.wait("^heturun: start 2:")
        time.sleep(draw.uniform(0, SPREAD[kind]))
        since = kill_one(run, draw)
    seconds = run.seconds_until_step(since)
    said = run.finish()
    again = steps_again(said)
    if seconds > 10 or not -1 <= again <= every or len(ranks_of(said)) < 2:
        raise Failure(f"{seconds:.1f} s, {again} steps again\n{said}")
    return f"{kind}: {seconds:.2f} s, {again} steps again, ranks {ranks_of(said)}"


def small(bench, label, every, **env):
    return Run(bench, label, "localhost slots=8", 16, save=2, copy=every, switches=("tp3", "dp4", "dp2", "dp8"), **env)


def example(bench, label, every, **env):
    return Run(bench, label, "localhost slots=8", 20, save=2, copy=every, model=MODELS[int(label[len("moment"):]) // len(KINDS) % 2], **env)


def state_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return "Z"


def lose_memory(run):
    for folder in host_folder(run, None):
        shutil.rmtree(folder)


def flip_range(run):
    """A bit of one range in both copies."""
    for path in host_folder(run, None)[0].glob("*-2.?"):
        flip(path)


def check_older_copies(bench):
    """What another run has left is not used, nor does it stay."""
    run = Run(bench, "older", "localhost slots=2", 1000, save=0, copy=1)
    run.wait(STEP, 4)
    run.process.kill()
    run.process.wait()
    shutil.rmtree(run.top / "saved")
    run.steps, run.command[run.command.index("1000")], run.lines = 12, "12", []
    run.start()
    if resumed_at(run.finish()) != [0]:
        raise Failure(run.said())


def check_slots(bench):
    """The file takes slots and gives them back; what changes nothing of where ranks run is no reason to start."""
    run = Run(bench, "slots", "localhost slots=2\n# two more\nlocalhost slots=2", 80, names="245")
    run.wait(STEP, 3)
    run.slots.write_text("localhost slots=3\n")
    run.wait("^heturun: start 2: 2 ranks")
    run.wait(STEP, 6)
    run.slots.write_text("localhost slots=2\n")
    time.sleep(0.4)
    run.slots.write_text("")  # as a writer leaves it for a moment
    time.sleep(0.6)
    run.slots.write_text("localhost slots=two\n")
    run.wait(r"slots:1:11: error: expected slots=N behind the host, not \"slots=two\"")
    run.kill(1)
    run.wait("^heturun: start 3: 1 rank ")
    run.wait(STEP, 9)
    run.slots.write_text("localhost slots=4\n")
    run.wait("^heturun: start 4: 4 ranks")
    run.finish()


def check_waits(bench):
    """Where nothing fits, the file is waited for."""
    run = Run(bench, "waits", "localhost slots=2", 12, names="4")
    run.wait(STEP, 2)
    run.kill(0)
    run.wait("no strategy fits 1 slots, the smallest is for 2 devices")
    run.slots.write_text("localhost slots=2\n")
    if ranks_of(run.finish()) != [2, 2]:
        raise Failure(run.said())


def check_without(bench):
    """Strategies that the program was not compiled with are left out."""
    run = Run(bench, "without", "localhost slots=4", 6, names="245", program=bench.compiled(SOURCE, folder_of(bench, list(STRATEGIES)) / "4.strategy"))
    said = run.finish()
    if ranks_of(said) != [2] or len(re.findall('strategy "[^"]*" is left out: it was not compiled with it', said)) != 2 or "give hetucc --strategy=FILE for each" not in said:
        raise Failure(said)


def check_plain(bench):
    """What the plain compiler makes runs on one slot, and goes on from its own copies."""
    run = Run(bench, "plain", "localhost slots=3", 12, save=0, copy=1, names="5", program=bench.plain(SOURCE))
    run.wait(STEP, 4)
    run.kill(0)
    if ranks_of(run.finish()) != [1, 1] or resumed_at(run.said())[1] < 4:
        raise Failure(run.said())


def check_machines(bench):
    """Ranks on other machines, for which a script stands in that runs the command here, as a host of its own; one machine is lost with its memory."""
    shell = bench.path("shell")
    shell.write_text('#!/bin/sh\nhost=$1\nexport TEST_HOST=$host\nshift\nexec sh -c "$(echo "$*" | sed "s/\'HETU_COPIES=[^\']*/&.$host/; s/ env / env HETU_NODE=$host /")"\n')
    shell.chmod(0o755)
    run = Run(bench, "machines", "one slots=2\ntwo slots=2", 24, save=0, copy=1, names="245", options=("--shell", shell))
    run.wait(STEP, 5)
    kill_host(run, "two")
    run.wait("^heturun: start 2: 2 ranks")
    run.wait(STEP, 8)
    run.process.kill()
    run.process.wait()
    time.sleep(0.3)
    if run.processes():
        raise Failure(f"left: {run.processes()}")
    run.start()
    said = run.finish()
    if ranks_of(said) != [4, 2, 4] or len(resumed_at(said)) != 3 or resumed_at(said)[1] < 4 or resumed_at(said)[2] < 6:
        raise Failure(said)


def check_again(bench):
    """heturun is killed, and started again."""
    run = Run(bench, "again", "localhost slots=4", 50, names="245", save=0, copy=1)
    run.wait(STEP, 4)
    run.process.kill()
    run.process.wait()
    run.start()
    run.wait(STEP, 6)
    other = subprocess.run(run.command, env=run.env, capture_output=True, text=True, timeout=20)
    if other.returncode != 1 or "another heturun runs on the slots of" not in other.stderr:
        raise Failure(other.stderr)
    said = run.finish()
    if max(resumed_at(said)) < 4:
        raise Failure(said)


def check_fault(bench):
    """A program that ends with an error of its own is not started again."""
    run = Run(bench, "fault", "localhost slots=2", 5, names="4", program="/bin/false")
    if ranks_of(run.finish(1)) != [2]:
        raise Failure(run.said())


WRONG = {
    "--slots SLOTS -- true": "--elastic and --slots are needed",
    "--elastic ST --slots SLOTS": "there is no program; give it behind the options",
    "--elastic NONE --slots SLOTS -- true": "none cannot be read: No such file or directory",
    "--elastic EMPTY --slots SLOTS -- true": "empty has no files *.strategy",
    "--elastic TWICE --slots SLOTS -- true": 'there is another strategy "dp2" among them',
    "--elastic ST --slots NONE -- true": "none cannot be read: No such file or directory",
    "--elastic ST --slots BAD -- true": 'bad:2:6: error: expected slots=N behind the host, not "slots=-1"',
    "--elastic ST --slots ODD -- true": 'odd:1:14: error: expected the end of the line, not "more"',
    "--elastic ST --slots SLOTS -- ./nowhere": "./nowhere cannot be started: No such file or directory",
}


def built_with(bench, label, strategies, *options):
    out = bench.path(f"elastic-{label}")
    harness.run([bench.hetucc, *[f"--strategy={s}" for s in strategies], *options, "-O1", *harness.WARNINGS, SOURCE, "-o", out, "-lm"], timeout=300)
    return out


def check_arriving(bench):
    """Strategies that the program was not compiled with: it begins under them, too."""
    folder = folder_of(bench, list("1235"))
    program = built_with(bench, "arriving", [folder / "1.strategy", folder / "5.strategy"], "-DARRIVING")
    run = Run(bench, "arriving", "localhost slots=4", 24, names="1235", program=program, TEST_PREPARE=str(folder / "3.strategy"))
    run.wait(STEP, 8)
    run.kill(1)
    run.wait(STEP, 16)
    run.kill(2)
    said = run.finish()
    if ranks_of(said) != [4, 3, 1]:
        raise Failure(said)


def check_changed(bench):
    """A strategy whose file says something else than when the program was compiled is not mistaken for it."""
    folder = bench.path("changed")
    folder.mkdir()
    for name, text in (("4", STRATEGIES["4"].replace("zero 1", "zero 2")), ("5", STRATEGIES["5"].replace("dp1", "dp1 // the same"))):
        (folder / f"{name}.strategy").write_text(text)
    said = Run(bench, "changed", "localhost slots=2", 4, folder=folder).finish()
    if ranks_of(said) != [1] or 'strategy "dp2" is left out' not in said or "it was compiled with another one of this name" not in said:
        raise Failure(said)


def check_classes(bench):
    """Strategies of devices of classes: the same devices for hetucc and heturun, by one cluster file."""
    folder, cluster = bench.path("classes"), bench.path("classes.json")
    folder.mkdir()
    cluster.write_text(json.dumps({"classes": {"slow": {}, "fast": {}}, "devices": [{"class": c, "host": "h", "count": 2} for c in ("slow", "fast")],
                                   "links": {kind: {"latency": 1e-6, "bandwidth": 1e9} for kind in ("local", "remote")}}))
    for name, lines in (("both", "split batch:dp\nstage devices(fast: 0-1, slow: 0-1) mesh(dp:4)"), ("slow", "split batch:dp\nstage devices(slow: 0-1) mesh(dp:2)")):
        (folder / f"{name}.strategy").write_text(f"strategy {name}\n{lines}\nend strategy\n")
    program = built_with(bench, "classes", sorted(folder.glob("*.strategy")), f"--cluster={cluster}")
    run = Run(bench, "classes", "localhost slots=4", 12, program=program, folder=folder, options=("--cluster", cluster))
    run.wait(STEP, 4)
    run.kill(1)
    if ranks_of(run.finish()) != [4, 2]:
        raise Failure(run.said())


def check_wrong(bench):
    """What is wrong with the command line and the files."""
    top = bench.path("wrong")
    for folder, names in (("st", ("4",)), ("empty", ()), ("twice", ("4", "5"))):
        (top / folder).mkdir(parents=True)
        for name in names:
            (top / folder / f"{name}.strategy").write_text(STRATEGIES["4"])
    for name, text in (("slots", "localhost slots=2\n"), ("bad", "# two\nhost slots=-1\n"), ("odd", "host slots=2 more\n")):
        (top / name).write_text(text)
    for words, wanted_text in WRONG.items():
        done = subprocess.run([bench.build / "bin" / "heturun", *[word.lower() if word.isupper() else word for word in words.split()]], cwd=top, capture_output=True, text=True, timeout=20)
        if done.returncode == 0 or wanted_text not in done.stderr:
            raise Failure(f"{words}\nexit {done.returncode}\n{done.stderr}")


def check_interrupt(bench):
    run = Run(bench, "interrupt", "localhost slots=4", 1000, names="2")
    run.wait(STEP, 2)
    run.process.send_signal(signal.SIGINT)
    run.finish(130)


def check_switching(bench):
    """A strategy that the ranks are too few for: ht_switch says so, and training goes on."""
    run = Run(bench, "switching", "localhost slots=4", 16, switches=("dp2", "dp8", "tp3", "dp4"))
    run.wait(STEP, 9)
    run.kill(2)
    said = run.finish()
    if "ht_switch cannot go to strategy \"dp8\": it is for 8 devices, and 4 ranks run the program" not in said or ranks_of(said) != [4, 3]:
        raise Failure(said)


def tests(bench, _):
    case = functools.partial
    yield "killed8", case(check_killed, bench, "killed8", "localhost slots=8", (5,), [8, 4], 1)
    yield "killed4", case(check_killed, bench, "killed4", "localhost slots=4", (0, 2, 1), [4, 3, 2, 1], 2, save=2)
    yield "slots", case(check_slots, bench)
    yield "copies", case(check_copies, bench, "copies", "localhost slots=8", 1, (0,), [8, 4])
    yield "copies3", case(check_copies, bench, "copies3", "localhost slots=4", 3, (3,), [4, 3])
    yield "host", case(check_copies, bench, "host", "localhost slots=4", 1, (), [4, 2], lose=0, HETU_HOSTS="2")
    yield "thirds", case(check_copies, bench, "thirds", "localhost slots=8", 1, (), [8, 4], lose=1, HETU_HOSTS="3")
    yield "lost", case(check_lost, bench, "lost", lose_memory)
    yield "flipped", case(check_lost, bench, "flipped", flip_range)
    yield "older", case(check_older_copies, bench)
    for seed in range(60):
        yield f"moment{seed}", case(check_moment, bench, seed, small if seed < 10 else example), seed >= 10
    yield "waits", case(check_waits, bench)
    yield "without", case(check_without, bench)
    yield "plain", case(check_plain, bench)
    yield "machines", case(check_machines, bench)
    yield "again", case(check_again, bench)
    yield "arriving", case(check_arriving, bench)
    yield "changed", case(check_changed, bench)
    yield "classes", case(check_classes, bench)
    yield "wrong", case(check_wrong, bench)
    yield "fault", case(check_fault, bench)
    yield "interrupt", case(check_interrupt, bench)
    yield "switching", case(check_switching, bench)


if __name__ == "__main__":
    harness.main("run.elastic", tests)
