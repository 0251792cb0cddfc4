#!/usr/bin/env python3
"""Tests programs that a signal tells to end: the ranks save their state and end together within seconds, and the next start goes on after the last completed step, as if there had been no signal.

SIGTERM, SIGUSR1 and SIGUSR2 come to the job, to rank 0 and to another rank; in a step, a switch, a checkpoint and a start; to programs that ask ht_told_to_end and to programs that only save;
under heturun, under mpirun, and on one device.
"""
import functools
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

import harness
from elastic import compare
from harness import EXAMPLES, Failure

SOURCE = harness.ROOT / "test" / "run" / "ended.c"
STEP = r"^step +(\d+)"
MOST = 5  # seconds until all have ended
STRATEGIES = """strategy dp4
  split batch:dp
  stage devices(0-3) mesh(dp:4)
end strategy
strategy tp4
  split hidden:tp
  stage devices(0-3) mesh(tp:4)
end strategy
strategy dp2
  split batch:dp
  stage devices(0-1) mesh(dp:2)
end strategy
"""


def strategies(bench):
    def make():
        file = bench.path("ended.strategy")
        file.write_text(STRATEGIES)
        return file
    return bench.once("ended.strategy", make)


def built(bench, ranks):
    """The program for so many ranks; 0: by the plain compiler."""
    def make():
        out, file = bench.path(f"ended{ranks}"), strategies(bench)
        names = ("dp4", "tp4") if ranks == 4 else ("dp2",)
        harness.run([bench.hetucc, *[f"--strategy={file}:{n}" for n in names], "-O0", *harness.WARNINGS, SOURCE, "-o", out, "-lm"], timeout=300)
        return out
    return bench.once(("ended", ranks), make) if ranks else bench.plain(SOURCE)


class Job:
    """Ranks of a program that find each other by a file; or one process, or what a launcher's command starts."""

    def __init__(self, folder, command, ranks=1, **env):
        folder.mkdir(exist_ok=True)
        self.lines, self.processes, self.readers = [], [], []
        for rank in range(ranks):
            own = {**os.environ, **harness.MPI, "OMP_NUM_THREADS": "1", "HETU_TIMEOUT": "60", **env}
            if ranks > 1:
                own.update(HETU_RANK=str(rank), HETU_SIZE=str(ranks), HETU_RENDEZVOUS=str(folder / "meeting"))
            self.processes.append(subprocess.Popen([str(c) for c in command], env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"))
        for process in self.processes:
            self.readers.append(threading.Thread(target=self.read, args=(process,), daemon=True))
            self.readers[-1].start()

    def read(self, process):
        for line in process.stdout:
            self.lines.append(line.rstrip("\n"))

    def said(self):
        return "\n".join(self.lines)

    def wait(self, pattern, count=1, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if sum(bool(re.search(pattern, line)) for line in list(self.lines)) >= count:
                return
            if all(p.poll() is not None for p in self.processes) and not any(r.is_alive() for r in self.readers):
                break
            time.sleep(0.002)
        raise Failure(f"no line {pattern!r} ({count})\n{self.said()[-3000:]}")

    def tell(self, number, who="job"):
        for process in self.processes if who == "job" else [self.processes[who]]:
            if process.poll() is None:
                process.send_signal(number)
        return time.monotonic()

    def finish(self, since=None, most=60):
        """Waits for the end: what each process ended with. None may need longer than `most` seconds."""
        end = (since or time.monotonic()) + most
        try:
            for process in self.processes:
                process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            for process in self.processes:
                process.kill()
            raise Failure(f"not done after {most} s\n{self.said()[-3000:]}") from None
        for reader in self.readers:
            reader.join(5)
        return [p.returncode for p in self.processes]


def arriving(bench):
    """The program for four ranks and a strategy that arrives, by a C compiler that takes its time while the file TEST_SLOW is there; and the strategy's file."""
    def make():
        out, compiler, late = (bench.path(f"ended.{name}") for name in ("arriving", "cc", "late.strategy"))
        compiler.write_text('#!/bin/sh\ntest ! -e "$TEST_SLOW" || exec sleep 60\nexec cc "$@"\n')
        compiler.chmod(0o755)
        late.write_text("strategy late\n  split batch:dp  hidden:tp\n  stage devices(0-3) mesh(dp:2, tp:2)\nend strategy\n")
        harness.run([bench.hetucc, f"--strategy={strategies(bench)}:dp4", "-O0", "-DARRIVING", *harness.WARNINGS, SOURCE, "-o", out, "-lm"], timeout=300, env={"CC": str(compiler)})
        return out, late
    return bench.once("ended.arriving", make)


def start(bench, ranks, label, mode, steps, every=3, nap=20, switches=(), prefix=(), program=None, **env):
    folder = bench.path(f"ended.{label}")
    command = [*prefix, program or built(bench, ranks), mode, folder / "saved", steps, every, nap, folder / "log", *switches]
    folder.mkdir(exist_ok=True)
    (folder / "meeting").unlink(missing_ok=True)
    return Job(folder, command, 1 if prefix else ranks or 1, **env)


def last_step(job):
    return max((int(n) for n in re.findall(STEP, job.said(), re.M)), default=0)


def resumed_at(job):
    return int(re.search(r"^goes on behind step (\d+)$", job.said(), re.M)[1])


def log_of(bench, label):
    return (bench.path(f"ended.{label}") / "log").read_text().splitlines()


def undisturbed(bench, mode, steps):
    def make():
        label = f"wanted{mode}{steps}"
        start(bench, 0, label, f"x{mode}", steps, nap=0).finish()
        return log_of(bench, label)
    return bench.once(("undisturbed", mode, steps), make)


def goes_on(bench, ranks, label, mode, steps, finished, **more):
    """The next start goes on behind the last step, and ends as if nothing had been."""
    job = start(bench, ranks, label, mode, steps, nap=0, **more)
    if any(job.finish()):
        raise Failure(job.said())
    if not finished <= resumed_at(job) <= finished + 1:
        raise Failure(f"step {finished} was made\n{job.said()}")
    compare(log_of(bench, label), undisturbed(bench, "2" if "2" in mode else "", steps))
    return job


MOMENTS = {"step": STEP, "switch": "^switching", "checkpoint": "^saving", "start": None}
MODES = ("asc", "s", "sn", "asnc")


def check_moment(bench, seed, steps=24):
    """Everything but the kind of the moment is drawn: two times, and then the rest."""
    draw = random.Random(seed)
    moment, mode = list(MOMENTS)[seed % 4], MODES[seed // 4 % 4]
    ranks, label, made = (0 if seed % 5 == 4 else 4), f"moment{seed}", 0
    switches = ("tp4", "dp4") if ranks else ("one",)
    for turn in range(2):
        job = start(bench, ranks, label, mode, 1000, switches=switches)
        who = draw.choice(("job", 0, draw.randrange(1, 4))) if ranks else "job"
        if moment != "start":
            job.wait(MOMENTS[moment], draw.randrange(2, 4))
            job.wait(STEP, 1 if "c" in mode else 4)  # there is something to save
        elif who != "job":
            job.wait("^goes on")  # a rank that dies before that is the launcher's
        time.sleep(draw.uniform(0, 0.5 if moment == "start" else 0.03))
        number = draw.choice((signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2))
        since = job.tell(number, who)
        codes = job.finish(since, MOST)
        saved = re.search(r"^hetu: told to end by (SIG\w+) behind step (\d+), which is saved in", job.said(), re.M)
        # One that has saved nothing so far, and does not ask, has no place to save to; in its first ht_save it has one at some moment.
        placeless = not made and "a" not in mode and not saved and not re.search("^saved", job.said(), re.M)
        before, made = made, 0 if placeless else max(made, last_step(job))
        right = codes[0] == 9 if "a" in mode else codes[0] == 128 + number and saved and saved[1] == number.name
        # One that had not begun to train has nothing to save, and ends at once.
        early = placeless or (last_step(job) <= before and (moment == "start" or not made))
        if not early and (not right or any(codes[1:])):
            raise Failure(f"{moment} {mode}: {codes} at {number.name}\n{job.said()}")
    goes_on(bench, ranks, label, mode, max(made + 3, steps), made, switches=switches)
    return f"{moment}, {mode}, {ranks} ranks: {made} steps"


def check_arriving(bench, mode, who):
    """A switch to a strategy that hetucc still compiles waits no longer."""
    program, late = arriving(bench)
    label, slow = f"arriving{mode}{who}", bench.path(f"ended.slow{mode}{who}")
    more = {"switches": ("dp4", "late"), "program": program, "TEST_PREPARE": str(late), "TEST_SLOW": str(slow)}
    slow.touch()
    job = start(bench, 4, label, mode, 1000, every=1, **more)
    job.wait("^switching", 2)
    time.sleep(0.3)
    codes = job.finish(job.tell(signal.SIGTERM, who), MOST)
    slow.unlink()
    if codes != [9 if "a" in mode else 143, 0, 0, 0] or "hetucc still compiles it, and the program is told to end" not in job.said() and "a" in mode:
        raise Failure(f"{codes}\n{job.said()}")
    goes_on(bench, 4, label, mode, 9, last_step(job), **more)


def check_orphans(bench, number):
    """hetucc, and the C compiler that it runs, end with the program that has begun them, whatever ends that."""
    program, late = arriving(bench)
    label, slow = f"orphans{number}", bench.path(f"ended.slow.orphans{number}")
    slow.touch()
    job = start(bench, 4, label, "x", 1000, program=program, TEST_PREPARE=str(late), TEST_SLOW=str(slow))
    job.wait(STEP, 1)
    mark, end = f"TEST_SLOW={slow}".encode(), time.monotonic() + 20
    while len(with_mark(mark)) < 6 and time.monotonic() < end:  # four ranks, hetucc and the compiler
        time.sleep(0.02)
    job.finish(job.tell(number), MOST)
    end = time.monotonic() + 2
    while with_mark(mark) and time.monotonic() < end:
        time.sleep(0.02)
    left = with_mark(mark)
    for process in left:
        os.kill(process, signal.SIGKILL)
    if left:
        raise Failure(f"left: {left}\n{job.said()}")


def with_mark(mark):
    """The processes that have something in their environment."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                found.append(int(process))
        except OSError:
            pass
    return found


def check_launched(bench, number):
    """mpirun hands SIGUSR1 on to all ranks."""
    label = f"mpirun{number}"
    job = start(bench, 4, label, "s", 1000, prefix=("mpirun", "-n", "4", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"))
    job.wait(STEP, 4)
    codes = job.finish(job.tell(number), MOST)
    if codes != [128 + number]:
        raise Failure(f"{codes}\n{job.said()}")
    goes_on(bench, 4, label, "s", 12 + last_step(job), last_step(job))


def check_killed(bench):
    """mpirun kills ranks a second behind SIGTERM: they do not wait so long for numbers that main alone knows."""
    label = "mpirun15"
    job = start(bench, 4, label, "sn", 1000, every=20, nap=100, prefix=("mpirun", "-n", "4", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"))
    job.wait(STEP, 21)
    job.finish(job.tell(signal.SIGTERM), MOST)
    made = len(log_of(bench, label))
    goes_on(bench, 4, label, "s", made + 3, made)


def check_handler(bench, mode, number, who, ranks=4):
    """main's own handler is called, wherever the signal comes, and no rank dies of it."""
    job = start(bench, ranks, f"handler{mode}{who}{ranks}", mode, 1000)
    job.wait(STEP, 3)
    if "l" in mode:
        time.sleep(0.3)  # until the others know of it
    codes = job.finish(job.tell(number, who), MOST)
    called = job.said().count("handler of main")
    if codes != [9] + [0] * (max(ranks, 1) - 1) or called != 1 or "told to end" in job.said():
        raise Failure(f"{codes}, called {called} times\n{job.said()}")


def check_foreign(bench):
    """A handler of main's for SIGUSR1 means what main wants; SIGTERM still ends the program."""
    job = start(bench, 0, "foreign", "asul", 1000)
    job.wait(STEP, 2)
    since = job.tell(signal.SIGTERM)
    if job.finish(since, MOST) != [9] or "handler of main" in job.said():
        raise Failure(job.said())


def check_unsaved(bench, ranks, who):
    """Where nothing could be saved, the ranks end at once, and say so."""
    job = start(bench, ranks, f"unsaved{ranks}{who}", "x", 1000)
    job.wait(STEP, 3)
    codes = job.finish(job.tell(signal.SIGTERM, who), MOST)
    if codes[0 if who == "job" else who] != -signal.SIGTERM or not all(codes) or "was ended by SIGTERM" not in job.said():
        raise Failure(f"{codes}\n{job.said()}")
    if who != 1 and "nothing is saved: main has called neither ht_save nor ht_told_to_end so far" not in job.said():
        raise Failure(job.said())


def check_first_save(bench, ranks):
    """Before its first ht_save has begun, a program is one that has never saved, whatever main has said."""
    job = start(bench, ranks, f"first{ranks}", "sw", 1000)
    job.wait("^saving")
    codes = job.finish(job.tell(signal.SIGTERM), MOST)
    if codes[0] != -signal.SIGTERM or not all(codes) or "nothing is saved" not in job.said() or "saved 2" in job.said():
        raise Failure(f"{codes}\n{job.said()}")
    goes_on(bench, ranks, f"first{ranks}", "s", 4, 0)


def check_second(bench):
    """Launchers send SIGTERM twice at once; that is no second one."""
    job = start(bench, 0, "second", "s", 1000, every=1, nap=200)
    job.wait(STEP, 1)
    job.tell(signal.SIGSTOP)
    job.tell(signal.SIGTERM)
    job.tell(signal.SIGCONT)
    job.tell(signal.SIGTERM)
    if job.finish(None, MOST) != [128 + signal.SIGTERM]:
        raise Failure(job.said())


def check_hung(bench):
    """A main that never comes to its next step is ended by the second SIGTERM."""
    job = start(bench, 4, "hung", "as", 1000, nap=999)
    job.wait(STEP, 1)
    job.tell(signal.SIGSTOP, 1)  # rank 1 keeps the others waiting
    job.tell(signal.SIGTERM, 0)
    time.sleep(2.2)
    if job.processes[0].poll() is not None:
        raise Failure(f"rank 0 ended at once\n{job.said()}")
    since = job.tell(signal.SIGTERM, 0)
    job.tell(signal.SIGKILL, 1)
    codes = job.finish(since, MOST)
    if codes[0] != -signal.SIGTERM:
        raise Failure(f"{codes}\n{job.said()}")


def check_stale(bench):
    """Numbers of main's that are older than the rest are said, when they are saved and when they are read."""
    job = start(bench, 0, "stale", "sn", 1000, every=200, nap=60)
    job.wait(STEP, 2)
    job.finish(job.tell(signal.SIGTERM), MOST)
    if job.processes[0].returncode != -signal.SIGTERM:
        raise Failure(job.said())
    job = start(bench, 0, "stale", "sn", 6, every=3, nap=0)
    job.finish()
    job = start(bench, 0, "stale", "sn", 1000, every=100, nap=60)
    job.wait(STEP, 3)
    codes = job.finish(job.tell(signal.SIGTERM), MOST)
    made = last_step(job)
    if codes != [143] or not re.search(rf'main\'s numbers \("rows", ...\) in the checkpoint of step {made} are those of step 6; a main that calls ht_told_to_end', job.said()):
        raise Failure(f"{codes}\n{job.said()}")
    job = start(bench, 0, "stale", "sn", made, nap=0)
    job.finish()
    if "main's numbers in the checkpoint are those of step 6" not in job.said() or resumed_at(job) != made:
        raise Failure(job.said())


def check_constant(bench):
    """Numbers of main's that are the same at each save stay right: nothing waits for them, and nothing is said."""
    job = start(bench, 0, "constant", "sk", 1000, every=20, nap=30)
    job.wait(STEP, 42)  # two saves
    codes = job.finish(job.tell(signal.SIGTERM), MOST)
    if codes != [143] or "main's numbers" in job.said() or last_step(job) > 55:  # the third save is behind step 59 or 60
        raise Failure(f"{codes}\n{job.said()}")


def check_pair(bench, seed):
    """Two models that train in turns: no checkpoint has half of a turn."""
    draw, label = random.Random(seed), f"pair{seed}"
    job = start(bench, 0, label, "s2", 1000, nap=15)
    job.wait("^saving", 2)
    time.sleep(draw.uniform(0, 0.06))
    codes = job.finish(job.tell(signal.SIGTERM), MOST)
    if codes != [143]:
        raise Failure(f"{codes}\n{job.said()}")
    goes_on(bench, 0, label, "s2", last_step(job) + 3, last_step(job))


def heturun(bench, label, mode, *options, nap=20, shell=False):
    folder = bench.path(f"ended.{label}")
    folder.mkdir(exist_ok=True)
    (folder / "slots").write_text("there slots=2\n" if shell else "localhost slots=2\n")
    (folder / "dp2.strategy").write_text(STRATEGIES[STRATEGIES.index("strategy dp2"):])
    if shell:
        (folder / "shell").write_text("#!/bin/sh\nshift\nexec sh -c \"$*\"\n")
        (folder / "shell").chmod(0o755)
        options = (*options, "--shell", folder / "shell")
    return Job(folder, [bench.build / "bin" / "heturun", "--elastic", folder / "dp2.strategy", "--slots", folder / "slots", *options, "--", built(bench, 2), mode,
                        folder / "saved", 1000, 3, nap, folder / "log"])


def check_heturun(bench, number, mode, shell=False):
    label = f"heturun{number}{mode}{shell}"
    job = heturun(bench, label, mode, shell=shell)
    job.wait(STEP, 4)
    codes = job.finish(job.tell(number), MOST)
    if codes != [9 if "a" in mode else 128 + number] or job.said().count("heturun: start") != 1:
        raise Failure(f"{codes}\n{job.said()}")
    if "s" in mode:
        goes_on(bench, 2, label, mode, last_step(job) + 3, last_step(job))


def check_rank_told(bench, number, rank):
    """A signal that tells a rank to end before there is anything to save tells all; no slot is lost."""
    job = heturun(bench, f"told{number}{rank}", "x")
    job.wait(STEP, 2)
    since = time.monotonic()
    os.kill(of_rank(job, rank), number)
    codes = job.finish(since, MOST)
    if codes != [128 + number] or f"rank {rank} of start 1 was told to end by signal {int(number)}; all ranks end" not in job.said():
        raise Failure(f"{codes}\n{job.said()}")


def of_rank(job, rank):
    return next(p for p in stopped(job) if f"HETU_RANK={rank}".encode() in pathlib.Path(f"/proc/{p}/environ").read_bytes().split(b"\0"))


def check_grace(bench):
    """Ranks that do not end are killed when their time is over."""
    job = heturun(bench, "grace", "x", "--grace=1", nap=20)
    job.wait(STEP, 2)
    for process in stopped(job):
        os.kill(process, signal.SIGSTOP)
    since = job.tell(signal.SIGTERM)
    codes, took = job.finish(since, MOST), time.monotonic() - since
    if codes != [143] or not 0.9 < took < 3 or "did not end by themselves in time (--grace)" not in job.said():
        raise Failure(f"{codes} after {took:.1f} s\n{job.said()}")
    wrong = subprocess.run([bench.build / "bin" / "heturun", "--grace=soon", "--", "true"], capture_output=True, text=True)
    if wrong.returncode != 2 or "--grace=soon is no number of seconds from 0 to" not in wrong.stderr:
        raise Failure(wrong.stderr)


def stopped(job):
    """The ranks of a heturun."""
    children = pathlib.Path(f"/proc/{job.processes[0].pid}/task/{job.processes[0].pid}/children").read_text()
    return [int(c) for c in children.split()]


def check_example(bench, name, ranks, flags=()):
    """An example with checkpoints ends in time, and goes on with the batches that would have come."""
    source, folder = EXAMPLES / name / f"{name}.c", bench.path(f"ended.{name}{ranks}")
    folder.mkdir()
    (folder / "dp.strategy").write_text("strategy dp\n  split batch:dp\n  stage devices(0-2) mesh(dp:3)\nend strategy\n")
    program = bench.compiled(source, folder / "dp.strategy", flags) if ranks else bench.plain(source, flags)
    words = [program, "--steps", 100000, "--sample", 0, "--every", 1, "--checkpoints", folder / "saved", "--save", 1000]
    job = Job(folder, [*words, "--losses", folder / "losses"], ranks or 1)
    job.wait(STEP, 5)
    codes = job.finish(job.tell(signal.SIGTERM, ranks - 1 if ranks else "job"), MOST)
    made = last_step(job)
    if any(codes) or f"told to end behind step {made}" not in job.said():
        raise Failure(f"{codes}\n{job.said()}")
    (folder / "meeting").unlink(missing_ok=True)
    words[2] = made + 5
    job = Job(folder, [*words, "--losses", folder / "losses"], ranks or 1)
    if any(job.finish()) or resumed_at(job) != made:
        raise Failure(job.said())
    harness.run([bench.plain(source, flags), "--steps", made + 5, "--sample", 0, "--losses", folder / "wanted"], env={"OMP_NUM_THREADS": "1"})
    harness.compare_losses(harness.read_losses(folder / "losses"), harness.read_losses(folder / "wanted"), 1e-4)


def tests(bench, a):
    case = functools.partial
    for seed in range(60):
        yield f"moment.{seed}", case(check_moment, bench, seed), seed >= 30
    yield "mpirun", case(check_launched, bench, signal.SIGUSR1)
    yield "mpirun.killed", case(check_killed, bench)
    for mode, number in (("lx", signal.SIGTERM), ("bx", signal.SIGTERM), ("bux", signal.SIGUSR1)):
        for who in ("job", 0, 2):
            yield f"handler.{mode}.{who}", case(check_handler, bench, mode, number, who), (mode, who) not in {("lx", 2), ("bx", "job")}
        yield f"handler.{mode}.alone", case(check_handler, bench, mode, number, "job", 0), mode == "bux"
    yield "handler.foreign", case(check_foreign, bench)
    for ranks, who in ((0, "job"), (4, "job"), (4, 1)):
        yield f"unsaved.{ranks}.{who}", case(check_unsaved, bench, ranks, who), ranks == 4 and who == "job"
    for ranks in (0, 4):
        yield f"first.{ranks}", case(check_first_save, bench, ranks)
    yield "second", case(check_second, bench)
    yield "hung", case(check_hung, bench)
    yield "stale", case(check_stale, bench)
    yield "constant", case(check_constant, bench)
    for seed in range(6):
        yield f"pair.{seed}", case(check_pair, bench, seed), seed > 1
    for number, mode, shell in ((signal.SIGTERM, "s", False), (signal.SIGTERM, "asn", True), (signal.SIGUSR1, "s", False), (signal.SIGTERM, "x", False)):
        yield f"heturun.{number.name}.{mode}{'.shell' if shell else ''}", case(check_heturun, bench, number, mode, shell)
    for number, rank in ((signal.SIGTERM, 0), (signal.SIGTERM, 1), (signal.SIGUSR1, 1)):
        yield f"heturun.told.{number.name}.{rank}", case(check_rank_told, bench, number, rank)
    for mode, who in (("s", "job"), ("as", 2), ("sn", 0)):
        yield f"arriving.{mode}.{who}", case(check_arriving, bench, mode, who), mode == "sn"
    for number in (signal.SIGTERM, signal.SIGKILL):
        yield f"orphans.{number.name}", case(check_orphans, bench, number)
    yield "heturun.grace", case(check_grace, bench)
    yield "example.mlp", case(check_example, bench, "mlp", 3)
    yield "example.mlp.alone", case(check_example, bench, "mlp", 0)
    yield "example.gpt", case(check_example, bench, "gpt", 3), True
    yield "example.custom", case(check_example, bench, "custom", 0), True
    yield "example.llama", case(check_example, bench, "llama", 3), True


if __name__ == "__main__":
    harness.main("ended", tests)
