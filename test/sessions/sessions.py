#!/usr/bin/env python3
"""Sessions of several ranks that must not start, or must end: ranks with different programs, stopped and killed ranks, meeting
places that are taken. Each is tried with mpirun and without; afterwards no process, no shared memory and no file is left."""
import functools
import itertools
import multiprocessing
import os
import pathlib
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure

MODEL, LIMIT = HERE / "Inputs" / "model.c", 2
MPIRUN = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
LAUNCHERS = ("HETU_", "SLURM_", "OMPI_", "PMI", "TORCHELASTIC", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_")


RUNS = itertools.count()


def new_run():
    """What tells a start from others, as torchrun's port does."""
    return f"{os.getpid()}-{next(RUNS)}"


def environment(**more):
    """This environment without what a launcher may have put there."""
    clean = {n: v for n, v in os.environ.items() if not n.startswith(LAUNCHERS)}
    return clean | {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | more


def by_rank(programs):
    """The words in front of the arguments, with which mpirun starts each rank's program. (Debian's Open MPI 5.0.7 crashes when `:` parts several programs.)"""
    if len(set(programs)) == 1:
        return [str(programs[0])]
    return ["sh", "-c", "case $OMPI_COMM_WORLD_RANK in " + " ".join(f"{r}) exec {shlex.quote(str(p))} \"$@\" ;;" for r, p in enumerate(programs)) + " esac", "sh"]


def state_of(process):
    """The letter that /proc has for what a process does."""
    return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]


class Stalls:
    """How long this machine has stood still, which no program can help: a process that only sleeps sees it. Other processes that compute do not delay it."""

    def __init__(self):
        self.seconds = multiprocessing.Value("d", 0, lock=False)
        multiprocessing.Process(target=self.look, daemon=True).start()

    def look(self, nap=0.01, noise=0.1):
        while True:
            start = time.monotonic()
            time.sleep(nap)
            late = time.monotonic() - start - nap
            self.seconds.value += late if late > noise else 0


class Job:
    """Ranks that run `programs`, from rank `first` on, of `size`; started by mpirun or one by one. They meet in `folder`, or with `private` where torchrun's
    ranks do."""

    def __init__(self, programs, arguments=(), mpi=True, first=0, size=0, folder=None, private="", **more):
        self.mpi, self.top, self.private, size = mpi, tempfile.TemporaryDirectory(), private, size or len(programs)
        self.tag, arguments = f"job{id(self)}-{time.time()}", [str(a) for a in arguments]
        self.folder = pathlib.Path(self.top.name)
        common = environment(TEST_JOB=self.tag, TMPDIR=self.top.name, **more)
        meet = {"RANK": "{}", "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "MASTER_PORT": private} if private else {
            "HETU_RENDEZVOUS": str(folder or self.folder), "HETU_RANK": "{}", "HETU_SIZE": str(size)}
        starts = [(MPIRUN + ["-n", str(len(programs)), *by_rank(programs), *arguments], common)] if mpi else [
            ([str(p), *arguments], common | {n: v.format(r) for n, v in (more | meet).items()}) for r, p in enumerate(programs, first)]
        self.processes = [subprocess.Popen(c, env=e, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") for c, e in starts]

    def ranks(self):
        """{rank: process} of those that run."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                values = dict(v.split("=", 1) for v in pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0") if "=" in v)
                if values.get("TEST_JOB") == self.tag and ("OMPI_COMM_WORLD_RANK" in values or not self.mpi):
                    found[int(values.get("OMPI_COMM_WORLD_RANK", values.get("HETU_RANK", values.get("RANK"))))] = int(pid)
                    self.namespace = values.get("PMIX_NAMESPACE", "")
            except OSError:
                pass
        return found

    def signal(self, rank, number, moment):
        """Sends a signal to a rank, `moment` seconds after its process was seen."""
        end = time.time() + 20
        while rank not in self.ranks() and time.time() < end:
            time.sleep(0.005)
        time.sleep(moment)
        os.kill(self.ranks()[rank], number)

    def await_stop(self, rank):
        """Waits until a rank has stopped itself."""
        end = time.time() + 20
        while time.time() < end and not any(state_of(p) == "T" for r, p in self.ranks().items() if r == rank):
            time.sleep(0.01)

    def files(self):
        """What the ranks have made and not removed."""
        job = "%x" % int(self.namespace) if getattr(self, "namespace", "").isdigit() else "none"
        found = [p.name for p in pathlib.Path("/dev/shm").iterdir() if f".{job}." in p.name]
        found += [str(p) for process in self.processes for p in pathlib.Path("/dev/shm").glob(f"hetu-*.{process.pid}.*")]
        return found + [p.name for p in self.folder.iterdir() if not p.name.startswith(("ompi.", "prterun."))]

    def finish(self, seconds):
        """(exit statuses, all that was printed, seconds that the machine ran); nothing may be left."""
        start, still, outs, wrong = time.time(), stalls.seconds.value, [], []
        for p in self.processes:
            try:
                outs.append(p.communicate(timeout=max(0.1, start + seconds - time.time()))[0])
            except subprocess.TimeoutExpired:
                wrong.append(f"not done after {seconds} s")
                break
        dying = time.time() + 1  # mpirun does not wait for those that it kills
        while self.ranks() and time.time() < dying:
            time.sleep(0.01)
        took, left = time.time() - start - (stalls.seconds.value - still), self.ranks()
        for pid in left.values():
            os.kill(pid, signal.SIGKILL)
        for p in self.processes:
            p.kill()
            p.wait()
        said = "".join(outs)
        files = self.files()
        wrong += [f"processes are left: {left}"] * bool(left) + [f"files are left: {files}"] * bool(files)
        if wrong:
            raise Failure(f"{'; '.join(wrong)}\n{said[-2000:]}")
        return [p.returncode for p in self.processes], said, took


def expect(said, *texts):
    for text in texts:
        if text not in said:
            raise Failure(f"nobody said: {text}\n{said[-3000:]}")


# ---- different programs ----

class Programs:
    """What the mixes are made of, by name."""

    def __init__(self, bench):
        self.bench = bench

    def make(self, name, flags=(), strategy="dp4", source=MODEL):
        def build():
            out = self.bench.path(f"session.{name}")
            harness.run([self.bench.hetucc, f"--strategy={strategy}", harness.OPTIMISED, *flags, source, "-o", out, "-lm"])
            return out
        return self.bench.once(("session", name), build)

    def make_plain(self):
        def build():
            out, library = self.bench.path("session.plain"), self.bench.build / "lib"
            harness.run(["cc", "-O1", "-Wno-unknown-pragmas", f"-I{harness.ROOT}/include", MODEL, "-o", out, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
            return out
        return self.bench.once(("session", "plain"), build)

    def make_edited(self, name, *edits):
        """The model with some texts replaced."""
        def build():
            text = MODEL.read_text()
            for old, new in edits:
                if old not in text:
                    raise Failure(f"no {old} in the model")
                text = text.replace(old, new, 1)
            folder = self.bench.path(f"edited.{name}")
            folder.mkdir()
            (folder / "model.c").write_text(text)
            return self.make(name, source=folder / "model.c")
        return self.bench.once(("session", "edited", name), build)

    def make_foreign(self, name, old, new):
        """The program with some bytes replaced by as many others, as another version of hetucc would have written them."""
        def build():
            data, out = self.make("dp4").read_bytes(), self.bench.path(f"session.{name}")
            if old not in data or len(old) != len(new):
                raise Failure(f"no {old} in the program")
            out.write_bytes(data.replace(old, new))
            out.chmod(0o755)
            return out
        return self.bench.once(("session", name), build)

    def get(self, name):
        makers = {
            "dp4": functools.partial(self.make, "dp4"),
            "tensor": functools.partial(self.make, "tensor", strategy="dp2tp2"),
            "two": functools.partial(self.make, "two", strategy="dp2"),
            "plain": self.make_plain,
            "wide": functools.partial(self.make, "wide", flags=["-DHIDDEN=48"]),
            "unfused": functools.partial(self.make, "unfused", flags=["--no-fuse"]),
            "fast": functools.partial(self.make, "fast", flags=["-ffast-math"]),
            "kernel": functools.partial(self.make_edited, "kernel", ("x[5] += 1", "x[5] += 2")),
            "bf16": functools.partial(self.make_edited, "bf16", ("ht_sgd(.lr = 0.1f)", "ht_sgd(.lr = 0.1f), .dtype = HT_BF16")),
            "adamw": functools.partial(self.make_edited, "adamw", ("ht_sgd(.lr = 0.1f)", "ht_adamw(.lr = 0.1f)")),
            "several": functools.partial(self.make_edited, "several", ("int main(", SECOND + "int main("), ("    puts(", "    ht_infer(session, second);\n    puts(")),
            "version": functools.partial(self.make_foreign, "version", b", hetucc 0", b", hetucc 9"),
        }
        return makers[name]()


SECOND = 'static ht_tensor second(void) { return ht_output(ht_scale(ht_input("x", HT_F32, ht_shape(8, 16)), 2), "y"); }\n\n'

# Programs of ranks 0 to 3, and what the fingerprints of two of them say.
MIXES = {
    "strategy": ("dp4 tensor dp4 dp4", "strategy dp4 on 4 devices", "strategy dp2tp2 on 4 devices"),
    "plain": ("dp4 dp4 plain dp4", "strategy dp4 on 4 devices", "session.plain, not compiled by hetucc"),
    "model": ("dp4 dp4 dp4 wide", "hetucc", "-DHIDDEN=48"),
    "devices": ("dp4 two dp4 two", "on 4 devices", "strategy dp2 on 2 devices"),
    "zero": ("plain dp4 dp4 dp4", "not compiled by hetucc", "strategy dp4 on 4 devices"),
    "fusion": ("dp4 dp4 unfused dp4", "strategy dp4", "strategy dp4"),
    "options": ("dp4 fast fast fast", "strategy dp4", "-ffast-math"),
    "kernel": ("kernel dp4 dp4 dp4", "strategy dp4", "strategy dp4"),
    "dtype": ("dp4 bf16 dp4 dp4", "on 4 devices, cpu", "on 4 devices, bf16, cpu"),
    "optimizer": ("dp4 dp4 dp4 adamw", "strategy dp4", "strategy dp4"),
    "several": ("several dp4 several several", "strategy dp4", "strategy dp4"),
    "version": ("dp4 version tensor plain", "hetucc 0", "hetucc 9"),
}


def mix(programs, mpi, names, *texts):
    job = Job([programs.get(n) for n in names.split()], mpi=mpi)
    codes, said, took = job.finish(30)
    expect(said, "run different programs", "hetu:   rank 0: ", *texts)
    if not all(codes) or "done" in said:
        raise Failure(f"exit {codes}\n{said}")
    if took > 5:
        raise Failure(f"refused after {took:.1f} s only")


def odd_build(programs):
    """HETU_CHECK sees an executable that differs in a byte that no fingerprint covers."""
    other = programs.bench.path("session.other")
    if not other.exists():
        shutil.copy(programs.get("dp4"), other)
        other.write_bytes(other.read_bytes() + b"\0")
    three = [programs.get("dp4")] * 3
    codes, said, _ = Job([*three, other], mpi=False, HETU_CHECK="1").finish(60)
    expect(said, "rank 0 and rank 3 run different builds of one program (HETU_CHECK)")
    if not all(codes):
        raise Failure(f"exit {codes}\n{said}")


def planted(programs, mpi, rank):
    """HETU_CHECK sees a parameter that one rank has changed."""
    codes, said, _ = Job([programs.get("dp4")] * 4, mpi=mpi, HETU_CHECK="1", TEST_ODD=str(rank)).finish(60)
    expect(said, "down", f"rank {rank}" if rank else "rank 1")
    if not all(codes) or "done" in said:
        raise Failure(f"exit {codes}\n{said}")


# ---- ranks that stop, die, or are busy ----

def see_end(job, rank, failed=all):
    """A job of which a rank was just stopped ends in time with its name, and all or any of its processes with an error; what it said."""
    codes, said, took = job.finish(60)
    if not failed(codes):
        raise Failure(f"exit {codes}\n{said}")
    if not any(text in said for text in (f"rank {rank} has stopped", f"rank {rank} (process", f"rank {rank} keeps")):
        raise Failure(f"nobody named rank {rank}\n{said[-3000:]}")
    if took > LIMIT + 2:
        raise Failure(f"ended after {took:.1f} s only\n{said[-2000:]}")
    return said


def stopped(programs, mpi, rank, mode, steps, moment, ranks=4):
    job = Job([programs.get("dp4" if ranks == 4 else "two")] * ranks, [mode, steps], mpi=mpi, HETU_TIMEOUT=str(LIMIT))
    job.signal(rank, signal.SIGSTOP, moment)
    see_end(job, rank)


def no_lock(programs, rank):
    """A rank that would end where it holds a lock that mpirun shares holds none."""
    codes, said, _ = Job([programs.get("dp4")] * 4, **halt(programs, rank, "lock", 1, signal.SIGKILL)).finish(60)
    if any(codes) or "done" not in said:
        raise Failure(f"exit {codes}\n{said}")


def stopped_at_exit(programs, mpi, rank):
    """A rank stops when its session is over, but its process is not."""
    job = Job([programs.get("dp4")] * 4, mpi=mpi, HETU_TIMEOUT=str(LIMIT), TEST_STOP=str(rank))
    job.await_stop(rank)
    expect(see_end(job, rank, any), "done")


def killed(programs, rank, moment):
    job = Job([programs.get("dp4")] * 4, ["", 10000000], mpi=False, HETU_TIMEOUT=str(LIMIT))
    job.signal(rank, signal.SIGKILL, moment)
    codes, said, _ = job.finish(60)
    if not all(codes):
        raise Failure(f"exit {codes}\n{said}")


def busy(programs, mpi):
    """A main that takes longer than HETU_TIMEOUT is not stopped."""
    codes, said, _ = Job([programs.get("dp4")] * 4, ["busy", 1], mpi=mpi, HETU_TIMEOUT=str(LIMIT)).finish(60)
    if any(codes) or "done" not in said:
        raise Failure(f"exit {codes}\n{said}")


def forked(programs, mpi):
    """Children of main come and go."""
    codes, said, _ = Job([programs.get("dp4")] * 4, ["fork", 3], mpi=mpi).finish(60)
    if any(codes) or said.count("done") != 1:
        raise Failure(f"exit {codes}\n{said}")


def no_number(programs, mpi):
    for text in "soon", "", "5s", "-1":
        codes, said, _ = Job([programs.get("dp4")] * 4, mpi=mpi, HETU_TIMEOUT=text).finish(30)
        expect(said, f"HETU_TIMEOUT={text} is no number of seconds")
        if not all(codes):
            raise Failure(f"exit {codes}\n{said}")


# ---- meeting places ----

def listening(process):
    """[(address, port)] where a process listens."""
    sockets = set()
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except OSError:
            pass
    rows = [line.split() for line in pathlib.Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    places = [r[1].split(":") for r in rows if r[3] == "0A" and f"socket:[{r[9]}]" in sockets]
    return [(socket.inet_ntoa(bytes.fromhex(a)[::-1]), int(p, 16)) for a, p in places]


def silent(programs):
    """Strangers that say nothing hold nobody up, and only the loopback is open."""
    first = Job([programs.get("dp4")] * 3, mpi=False, size=4, HETU_TIMEOUT="60")
    zero, end = first.processes[0].pid, time.time() + 20
    while not listening(zero) and time.time() < end:
        time.sleep(0.01)
    places = listening(zero)
    strangers = [socket.create_connection(place) for place in places for _ in range(6)]
    later = Job([programs.get("dp4")], mpi=False, first=3, size=4, folder=first.folder)
    codes, said, took = first.finish(60)
    later.finish(20)
    for stranger in strangers:
        stranger.close()
    if any(codes) or [a for a, _ in places] != ["127.0.0.1"] or took > 5:
        raise Failure(f"exit {codes} after {took:.1f} s; listened at {places}\n{said}")


def private(programs):
    """Whatever is in shared memory under names like those of the ranks' private folder, they meet; and a start that fails leaves nothing there."""
    names = [pathlib.Path(f"/dev/shm/hetu-{os.geteuid()}-{kind}{os.getpid()}") for kind in ("fifo", "link", "open", "file")]
    run = new_run()
    try:
        os.mkfifo(names[0])
        names[1].symlink_to("/nowhere")
        names[2].mkdir(mode=0o777)
        names[2].chmod(0o777)
        os.mkfifo(names[2] / f"meeting-{run}")
        names[3].write_text("of another user's")
        codes, said, _ = Job([programs.get("dp4")] * 4, mpi=False, private=run).finish(60)
    finally:
        if names[2].exists():
            shutil.rmtree(names[2])
        for name in names[:2] + names[3:]:
            name.unlink(missing_ok=True)
    if any(codes):
        raise Failure(f"exit {codes}\n{said}")


def private_killed(programs, number):
    """Rank 0 ends while it waits for the others: by a signal that it cannot see, or one that it can."""
    job = Job([programs.get("dp4")] * 3, mpi=False, size=4, private=new_run(), HETU_TIMEOUT=str(LIMIT))
    job.signal(0, number, 0.3)
    codes, said, _ = job.finish(60)
    if not all(codes):
        raise Failure(f"exit {codes}\n{said}")


def half_started(programs, count, private, **more):
    """`count` of four ranks."""
    return Job([programs.get("dp4")] * count, mpi=False, size=4, private=new_run() if private else "", HETU_TIMEOUT=str(LIMIT), **more)


def end_all(jobs):
    for job in jobs:
        codes, said, _ = job.finish(60)
        if not all(codes):
            raise Failure(f"exit {codes}\n{said}")


def halt(programs, rank, doing, times, number):
    """The environment in which a rank sends itself a signal when it has done something so many times."""
    library = programs.bench.path("halt.so")
    programs.bench.once("halt", lambda: harness.run(["cc", "-O1", "-shared", "-fPIC", HERE / "Inputs" / "halt.c", "-o", library]))
    return {"LD_PRELOAD": str(library), "TEST_HALT": f"{rank} {doing} {times} {int(number)}"}


def halted(programs, number):
    """Rank 0 gets a signal after each of the changes that it makes to folders while the ranks meet: 3 where the user says, 5 in private."""
    end_all([half_started(programs, 4, i % 2, **halt(programs, 0, "change", i // 2 + 1, number)) for i in range(10) if i not in (6, 8)])


def storm(programs, number, count):
    """Rank 0 gets a signal at any moment of its first tenth of a second."""
    for begin in range(0, count, 10):
        jobs = []
        for i in range(begin, begin + 10):
            jobs.append(half_started(programs, 3, i % 2))
            time.sleep(random.random() / 10)
            jobs[-1].processes[0].send_signal(number)
        end_all(jobs)


def restarted(programs, count):
    """All ranks are killed at any moment of their first tenth of a second: the next start in their place removes what they left."""
    for i in range(count):
        job = half_started(programs, 3, i % 2)
        time.sleep(random.random() / 10)
        for process in job.processes:
            process.kill()
            process.wait()
        codes, said, _ = Job([programs.get("dp4")] * 4, mpi=False, private=job.private, folder=job.folder).finish(60)
        if any(codes) or job.files():
            raise Failure(f"exit {codes}; files are left: {job.files()}\n{said}")


def others_of(programs, folder, count=3, **more):
    """Ranks 1 to `count` of four, which meet in `folder`."""
    return Job([programs.get("dp4")] * count, mpi=False, first=1, size=4, folder=folder, **more)


def await_meeting(folder):
    """The file where ranks meet, when rank 0 has written it."""
    meeting, end = pathlib.Path(folder) / "hetu", time.time() + 20
    while not meeting.exists() and time.time() < end:
        time.sleep(0.005)
    return meeting


def all_good(*jobs, seconds=30):
    for job in jobs:
        codes, said, _ = job.finish(seconds)
        if any(codes):
            raise Failure(f"exit {codes}\n{said}")


def appears(programs):
    """The file where the ranks meet appears just after they found none: it is read at the next look."""
    library = programs.bench.path("late.so")
    harness.run(["cc", "-O1", "-shared", "-fPIC", HERE / "Inputs" / "late.c", "-o", library])
    with tempfile.TemporaryDirectory() as top:
        others = others_of(programs, top, LD_PRELOAD=str(library), TEST_LATE=f"{top}/hetu")
        time.sleep(0.5)
        all_good(Job([programs.get("dp4")], mpi=False, size=4, folder=top), others)


def removed(programs):
    """The file where the ranks meet is removed before all have come: rank 0 writes it again."""
    with tempfile.TemporaryDirectory() as top:
        first = Job([programs.get("dp4")], mpi=False, size=4, folder=top)
        for _ in range(3):
            await_meeting(top).unlink()
        all_good(others_of(programs, top), first)


def replaced(programs):
    """Rank 0 of an earlier start ends late: it leaves alone what a later start has put in its place."""
    with tempfile.TemporaryDirectory() as top:
        early = Job([programs.get("dp4")], mpi=False, size=4, folder=top)
        old = await_meeting(top).stat().st_ino
        first, end = Job([programs.get("dp4")], mpi=False, size=4, folder=top), time.time() + 20
        while await_meeting(top).stat().st_ino == old and time.time() < end:
            time.sleep(0.005)
        new = await_meeting(top).stat().st_ino
        early.processes[0].terminate()
        early.finish(20)
        if not (pathlib.Path(top) / "hetu").exists() or await_meeting(top).stat().st_ino != new:
            raise Failure("the later start's file is gone")
        all_good(others_of(programs, top), first)


def flooded(programs, files):
    """Strangers take every place where the ranks listen, again and again, and a process may open few files."""
    with tempfile.TemporaryDirectory() as top:
        few = pathlib.Path(top) / "few"
        few.write_text(f'#!/bin/sh\nulimit -n {files}\nexec {programs.get("dp4")} "$@"\n')
        few.chmod(0o755)
        first = Job([few] * 3, mpi=False, size=4, folder=top, HETU_TIMEOUT="60")
        end = time.time() + 20
        while not all(listening(p.pid) for p in first.processes) and time.time() < end:
            time.sleep(0.01)
        places = [place for p in first.processes for place in listening(p.pid)]
        knocking = [subprocess.Popen([sys.executable, HERE / "Inputs" / "flood.py", str(port)]) for _, port in places]
        try:
            time.sleep(1)
            all_good(Job([few], mpi=False, first=3, size=4, folder=top, HETU_TIMEOUT="60"), first)
        finally:
            for process in knocking:
                process.kill()
                process.wait()


def taken(programs, make, *texts):
    """Something else is where the ranks are to meet: all refuse, and it stays."""
    with tempfile.TemporaryDirectory() as top:
        path = pathlib.Path(top) / "meeting"
        make(path)
        codes, said, took = Job([programs.get("dp4")] * 2, mpi=False, folder=path, HETU_TIMEOUT="20").finish(60)
        expect(said, *texts)
        if not all(c == 1 for c in codes) or took > 10 or not path.is_symlink() and not path.exists():
            raise Failure(f"exit {codes} after {took:.1f} s\n{said}")


def tests(bench, a):
    programs, case = Programs(bench), functools.partial
    long = bool(os.environ.get("HETU_LONG"))
    for number, (name, (names, *texts)) in enumerate(MIXES.items()):
        for mpi in (True, False):
            if long or number < 4 and mpi == (number % 2 == 0) or name == "version" and not mpi:
                yield f"mix.{name}.{'mpi' if mpi else 'alone'}", case(mix, programs, mpi, names, *texts)
    yield "mix.build", case(odd_build, programs)
    yield "check.planted", case(planted, programs, False, 2)
    if long:
        yield "check.planted.mpi", case(planted, programs, True, 3)
        yield "check.planted.zero", case(planted, programs, True, 0)
    moments = [("", 10**8, t) for t in (0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.5, 1.5)] + [("early", 10**8, 0.2), ("busy", 100, 1.5)]
    few = {("mpi", 1, 0), ("mpi", 0, 7), ("mpi", 2, 9), ("alone", 2, 0), ("alone", 0, 6), ("alone", 3, 9)}
    for kind in "mpi", "alone":
        for rank in range(4):
            for number, (mode, steps, moment) in enumerate(moments):
                if long or (kind, rank, number) in few:
                    yield f"stop.{kind}.{rank}.{mode or 'run'}-{moment}", case(stopped, programs, kind == "mpi", rank, mode, steps, moment)
    yield "stop.mpi.no-lock", case(no_lock, programs, 1)
    for rank in (0, 1) if long else ():
        yield f"stop.mpi.{rank}.two", case(stopped, programs, True, rank, "", 10**8, 0.03, 2)
    for kind, rank in (("mpi", 1), ("alone", 3)):
        yield f"stop.{kind}.{rank}.exit", case(stopped_at_exit, programs, kind == "mpi", rank)
    for rank in range(4) if long else (0,):
        for moment in (0, 0.01, 0.02, 0.05, 0.5) if long else (0.01,):
            yield f"kill.{rank}.{moment}", case(killed, programs, rank, moment)
    for mpi in (True, False) if long else (True,):
        label = "mpi" if mpi else "alone"
        yield f"busy.{label}", case(busy, programs, mpi)
        yield f"fork.{label}", case(forked, programs, mpi)
    yield "timeout.no-number", case(no_number, programs, False)
    yield "meet.silent", case(silent, programs)
    yield "meet.appears", case(appears, programs)
    yield "meet.removed", case(removed, programs)
    yield "meet.replaced", case(replaced, programs)
    for files in 32, 64, 256:
        yield f"meet.flooded.{files}", case(flooded, programs, files)
    yield "meet.private", case(private, programs)
    for number in signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP:
        yield f"meet.private.{number.name}", case(private_killed, programs, number)
    for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM) if long else (signal.SIGSTOP,):
        yield f"meet.halted.{number.name}", case(halted, programs, number)
    for number in signal.SIGSTOP, signal.SIGKILL:
        yield f"meet.storm.{number.name}", case(storm, programs, number, 200 if long else 10)
    yield "meet.restarted", case(restarted, programs, 100 if long else 4)
    elsewhere = "is no file of a meeting of this user's"
    yield "taken.fifo", case(taken, programs, os.mkfifo, elsewhere)
    yield "taken.link", case(taken, programs, lambda p: p.symlink_to("/etc/hostname"), elsewhere)
    yield "taken.garbage", case(taken, programs, lambda p: p.write_bytes(b"hetu-at\0" + bytes(1000)), elsewhere)


if __name__ == "__main__":
    stalls = Stalls()
    harness.main("sessions", tests)
