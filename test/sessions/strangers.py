#!/usr/bin/env python3
"""Another user of the machine guesses every name right: that user's links, pipes, folders and files lie where programs, hetucc and heturun put their own, and are swapped with these
during a run; sockets and locks are taken. None of that user's code runs, nothing is written through that user's links, and every program starts and ends. Meanwhile the system does
not protect links and pipes in sticky folders (fs.protected_symlinks, fs.protected_fifos). Needs root, to act as two users; without root, skips all tests with a message."""
import atexit
import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import elastic
import harness
from harness import Failure, Skip

VICTIM, STRANGER = 61001, 61002
SOURCE, LIMIT = harness.ROOT / "test" / "run" / "elastic.c", 60
LATE = "strategy late\nsplit hidden:tp\nstage devices(0-1) mesh(tp:2)\nend strategy\n"
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable  # one that other users may run
SWITCHES = [pathlib.Path(f"/proc/sys/fs/protected_{name}") for name in ("symlinks", "fifos", "regular", "hardlinks")]

# What lies in wait for names that appear: this user's folder is swapped, links are put into it, files are opened. Says what it could do.
RACER = """
import os, sys, time
victim, precious, evil, stop, *places = sys.argv[1:]
names = ["arrival0.so", "balance0.plan", "balance0.strategy", "lock", "ranks", "source0.o", "arriving.o"]
def attempt(what, *arguments):
    try:
        what(*arguments)
        print("done:", what.__name__, *arguments, flush=True)
    except OSError:
        pass
def plant(folder):
    for name in names:
        attempt(os.symlink, precious if name != "arrival0.so" else evil, f"{folder}/{name}")
seen = set()
print("ready", flush=True)
while not os.path.exists(stop):
    for place in places:
        for name in os.listdir(place):
            path = f"{place}/{name}"
            try:
                about = os.lstat(path)
            except OSError:
                continue
            if not name.startswith("hetu") or about.st_uid != int(victim):
                continue
            seen.add(name)
            plant(path)
            attempt(os.rename, path, path + ".stolen")
            attempt(os.unlink, path)
            attempt(os.open, path, os.O_WRONLY)
    time.sleep(0.001)
print("seen", len(seen), flush=True)
"""


def as_user(uid, work):
    """Does something as another user, in a process of its own."""
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.umask(0)
            work()
            status = 0
        os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise Failure("the stranger cannot prepare this")


def start(command, uid=VICTIM, **more):
    return subprocess.Popen([str(c) for c in command], user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)


class Place:
    """Where both users are: `home` is the victim's, all may write to `shared`, the stranger has `theirs`."""

    def __init__(self, label):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix=f"strangers-{label}-", dir="/tmp"))
        self.home, self.shared, self.theirs = self.top / "home", self.top / "shared", self.top / "theirs"
        for path, uid, mode in ((self.top, 0, 0o755), (self.home, VICTIM, 0o700), (self.shared, 0, 0o1777), (self.theirs, STRANGER, 0o777)):
            path.mkdir(exist_ok=True)
            os.chown(path, uid, uid)
            path.chmod(mode)
        self.precious, self.ran = self.home / "precious", self.theirs / "ran"
        self.precious.write_text("precious\n")
        os.chown(self.precious, VICTIM, VICTIM)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.top, ignore_errors=True)

    def env(self, **more):
        clean = {n: v for n, v in os.environ.items() if not n.startswith(("HETU", "OMPI", "SLURM", "CCACHE"))}
        return {**clean, "HOME": str(self.home), "TMPDIR": str(self.shared), "OMP_NUM_THREADS": "1", "HETU_TIMEOUT": "20", "TEST_PREPARE": str(self.top / "late.strategy"), **more}

    def check(self):
        if not self.precious.exists() or self.precious.read_text() != "precious\n":
            raise Failure("what a link names was written to")
        if self.ran.exists():
            raise Failure(f"the stranger's code ran: {self.ran.read_text()}")

    def words(self, program, *more, steps=4, save=2, saved=None, nap=0):
        return [program, saved or self.home / "saved", steps, save, 0, self.home / "log", nap, *more]


def program(bench):
    """Two ranks, and a strategy that arrives; in a place that all may read."""
    def make():
        folder = pathlib.Path(tempfile.mkdtemp(prefix="strangers-", dir="/tmp"))
        folder.chmod(0o755)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        (folder / "dp2.strategy").write_text(elastic.strategy(2))
        harness.run([bench.hetucc, f"--strategy={folder}/dp2.strategy", "-O0", "-DARRIVING", SOURCE, "-o", folder / "program", "-lm"], cwd=folder)
        harness.run(["cc", "-shared", "-fPIC", HERE / "Inputs" / "evil.c", "-o", folder / "evil.so"])
        return folder
    return bench.once("program", make)


def evil(bench, place):
    """The stranger's object, which says that it ran."""
    path = place.theirs / "evil.so"
    shutil.copy(program(bench) / "evil.so", path)
    os.chown(path, STRANGER, STRANGER)
    path.chmod(0o777)
    return path


def finish(processes, wanted=0, any_end=False):
    """What all print; each ends in time, and well, or with the status that is wanted; `any_end`: one of them does; None: as it likes."""
    said, end = "", time.time() + LIMIT
    try:
        for process in processes:
            said += process.communicate(timeout=max(0.1, end - time.time()))[0]
    except subprocess.TimeoutExpired:
        raise Failure(f"not done after {LIMIT} s: the start or the end is blocked\n{said}") from None
    finally:
        for process in processes:
            process.kill()
    wrong = [process.returncode != wanted for process in processes]
    if any_end is not None and (all(wrong) if any_end else any(wrong)):
        raise Failure(f"exit {[process.returncode for process in processes]}\n{said}")
    return said


@contextlib.contextmanager
def gate(words, **more):
    """Ranks that wait with their numbers of processes, which anybody sees, until they are let go."""
    yield [start(["sh", "-c", 'read go; exec "$@"', "sh", *words], stdin=subprocess.PIPE, **{**more, "env": {**more["env"], "HETU_RANK": str(r), "HETU_SIZE": "2"}}) for r in range(2)]


def two_ranks(place, words, plant=lambda pids: None, wanted=0, any_end=False, **env):
    """Two ranks, for which something is planted once their processes are there."""
    meeting = {} if "HETU_RENDEZVOUS" in env or "RANK" in env else {"HETU_RENDEZVOUS": str(place.home / "meeting")}
    with gate(words, env=place.env(**meeting, **env), cwd=place.home) as ranks:
        plant([r.pid for r in ranks])
        for rank in ranks:
            rank.stdin.write("go\n")
            rank.stdin.flush()
        said = finish(ranks, wanted, any_end)
    place.check()
    return said


def arrived(said):
    if "cannot go to strategy" in said or "step 4" not in said:
        raise Failure(f"the strategy did not arrive\n{said}")


@contextlib.contextmanager
def racing(bench, place, *places):
    """The stranger's process, which swaps what appears; it must have seen something, and must have done nothing."""
    stop = place.theirs / "stop"
    process = start([PYTHON, "-c", RACER, VICTIM, place.precious, evil(bench, place), stop, *places], uid=STRANGER)
    if process.stdout.readline() != "ready\n":
        raise Failure("the stranger is not ready")
    try:
        yield process
    finally:
        stop.touch()
        said = process.communicate(timeout=10)[0]
    if "done:" in said or "seen 0" in said:
        raise Failure(f"the stranger says: {said}")


# ---- what a program makes for itself ----

def planted_names(bench, kind):
    """At the names that a process of this number could take: a link to the user's file, the stranger's object, a pipe, a folder."""
    with Place(kind) as place:
        (place.top / "late.strategy").write_text(LATE)
        theirs = evil(bench, place)

        def plant(pids):
            def work():
                for pid in pids:
                    for name in ("arrival0.so", "balance0.plan", "balance0.strategy"):
                        path = place.shared / f"hetu.{pid}.{name}"
                        {"link": lambda: path.symlink_to(place.precious), "object": lambda: shutil.copy(theirs, path), "pipe": lambda: os.mkfifo(path, 0o666),
                         "device": lambda: path.symlink_to("/dev/null"), "folder": lambda: path.mkdir(mode=0o777)}[kind]()
            as_user(STRANGER, work)
        arrived(two_ranks(place, place.words(program(bench) / "program", "late", "dp2"), plant))


def balanced(bench):
    """At the names that plans of ht_balance could take: links to the user's file. A rank becomes slow, a plan is made, and the file is as it was."""
    with Place("balanced") as place:
        source = place.top / "arrivals.c"
        for name in ("arrivals.c", "sleeping.h"):
            shutil.copy(harness.ROOT / "test" / "run" / name, place.top)
        (place.top / "own.strategy").write_text("strategy own\n  split batch:dp\n  stage devices(0-1) mesh(dp:2)\nend strategy\n")
        harness.run([bench.hetucc, "--strategy=own.strategy", "-O0", source, "-o", "program", "-lm"], cwd=place.top)

        def plant(pids):
            def work():
                for pid in pids:
                    for name in ("arrival0.so", "balance0.plan", "balance0.strategy"):
                        with contextlib.suppress(FileExistsError):
                            (place.shared / f"hetu.{pid}.{name}").symlink_to(place.precious)
            as_user(STRANGER, work)
        for pause in (0, 0.5, 2):  # on a loaded machine the plan comes later
            words = ["steps=12", *[f"run=sleep {pause}", "steps=4"] * 6]
            said = two_ranks(place, [place.top / "program", "balance", *words], plant, NAP="40000", SLOW="1")
            if 'under strategy "balanced' in said:
                return
        raise Failure(f"nothing was planned\n{said}")


def raced(bench, sticky):
    """Folders that programs and hetucc make are swapped as they appear; in a TMPDIR that is not sticky, they take another."""
    with Place(f"raced{sticky}") as place:
        (place.top / "late.strategy").write_text(LATE)
        place.shared.chmod(0o1777 if sticky else 0o777)
        with racing(bench, place, place.shared, "/tmp", "/dev/shm"):
            arrived(two_ranks(place, place.words(program(bench) / "program", "late", "dp2")))


def open_memory(bench):
    """What a process has open, memory among it, and what an arrival was loaded from, another user cannot open."""
    with Place("memory") as place:
        (place.top / "late.strategy").write_text(LATE)
        opened = []

        def look(pids):
            def work():
                for pid in pids:
                    with contextlib.suppress(OSError):
                        os.listdir(f"/proc/{pid}/fd")
                        opened.append(pid)
                    with contextlib.suppress(OSError):
                        os.open(f"/proc/{pid}/mem", os.O_RDWR)
                        opened.append(pid)
                if opened:
                    raise OSError("opened")
            as_user(STRANGER, work)
        arrived(two_ranks(place, place.words(program(bench) / "program", "late", "dp2"), look))


# ---- what a user has a program write in a folder of all ----

def outputs(bench):
    """A trace, a dump and checkpoints where links and pipes of the stranger's lie under each name on the way."""
    with Place("outputs") as place:
        saved, dump, trace = place.shared / "saved", place.shared / "dump", place.shared / "t.json"

        def plant(pids):
            def work():
                saved.mkdir(mode=0o777)
                dump.mkdir(mode=0o777)
                for step in (2, 4):
                    for name in ("part", "safetensors", "manifest", "manifest.new", "part.0", "part.1", "part.0.new", "part.1.new"):
                        (saved / f"step-{step:08}.{name}").symlink_to(place.precious)
                (dump / "step0").mkdir(mode=0o777)
                for rank in range(2):  # a link to the user's own folder, in place of one that is emptied
                    (dump / "step0" / f"{rank}.part").symlink_to(place.home)
                    (dump / "step0" / str(rank)).symlink_to(place.home)
                for step in range(1, 4):
                    (dump / f"step{step}").mkdir(mode=0o777)
                    for rank in range(2):
                        (dump / f"step{step}" / f"{rank}.part").mkdir(mode=0o777)
                        for name in ("up", "down", "bias"):
                            (dump / f"step{step}" / f"{rank}.part" / f"{name}.bin").symlink_to(place.precious)
                for name in ("t.json", "t.json.partial"):
                    (place.shared / name).symlink_to(place.precious)
            as_user(STRANGER, work)
        two_ranks(place, place.words(program(bench) / "program", saved=saved), plant, HETU_DUMP=str(dump))
        said = two_ranks(place, place.words(program(bench) / "program", saved=place.home / "s"), HETU_TRACE=str(trace))
        if f"HETU_TRACE: {trace} was not written" not in said:
            raise Failure(said)
        if not (saved / "step-00000004.manifest").exists() or (saved / "step-00000004.safetensors").is_symlink():
            raise Failure(str(list(saved.iterdir())))


def hard_links(bench):
    """Hard links to the user's files under the names of a checkpoint's parts."""
    with Place("hard") as place:
        place.home.chmod(0o711)
        place.precious.chmod(0o666)
        saved = place.shared / "saved"

        def work():
            saved.mkdir(mode=0o777)
            for name in ("part", "part.0", "part.0.new", "part.1", "manifest.new"):
                os.link(place.precious, saved / f"step-00000002.{name}")
        as_user(STRANGER, work)
        two_ranks(place, place.words(program(bench) / "program", saved=saved))


def linked_folders(bench, kind):
    """A link of the stranger's in place of the folder of a dump, of its steps' folders, or of the checkpoints: where it leads nothing is written, and nothing goes."""
    with Place(f"linked{kind}") as place:
        named, other = place.shared / "named", place.home / "other"
        names = ["0/gold", "1/gold", *[f"step-{step:08}.{suffix}" for step in range(1, 6) for suffix in ("safetensors", "manifest")], "step-00000009.part"]
        for name in names:
            (other / name).parent.mkdir(parents=True, exist_ok=True)
            (other / name).write_text("gold")
        harness.run(["chown", "-R", VICTIM, other])

        def work():
            named.mkdir(mode=0o777) if kind == "steps" else named.symlink_to(other)
            for step in range(5 if kind == "steps" else 0):
                (named / f"step{step}").symlink_to(other)
        as_user(STRANGER, work)
        more = {"saved": named} if kind == "saved" else {}
        said = two_ranks(place, place.words(program(bench) / "program", **more), wanted=1, **{} if more else {"HETU_DUMP": str(named)}, any_end=True)
        if "another user's link leads there" not in said:
            raise Failure(said)
        found = {str(p.relative_to(other)): p.read_text(errors="replace") for p in other.rglob("*") if p.is_file()}
        if found != dict.fromkeys(names, "gold"):
            raise Failure(f"changed behind the link: {sorted(found)}")


def told_failure(bench, kind):
    """Another rank's folder of checkpoints leads elsewhere: rank 0 says at once which rank failed, and why."""
    with Place(f"told{kind}") as place:
        for rank in range(2):
            (place.shared / str(rank)).mkdir()
            (place.shared / str(rank)).chmod(0o1777)
            os.chown(place.shared / str(rank), VICTIM, VICTIM)
        if kind == "link":
            as_user(STRANGER, lambda: (place.shared / "1" / "saved").symlink_to(place.home))
        if kind == "file":
            as_user(STRANGER, lambda: (place.shared / "1" / "saved").write_text("a file"))
        words = ["sh", "-c", f'cd {place.shared}/$HETU_RANK && exec "$@"', "sh", *place.words(program(bench) / "program", saved="saved")]
        begin = time.time()
        said = two_ranks(place, words, wanted=1, any_end=True, HETU_TIMEOUT="600")
        why = {"link": "rank 1: another user's link leads there", "file": "rank 1: Not a directory", "apart": "rank 1: it does not find the file that rank 0 made"}[kind]
        if why not in said or time.time() - begin > 30:
            raise Failure(f"after {time.time() - begin:.1f} s\n{said}")


def foreign_sums(bench):
    """Checksums of the stranger's under the names of a rank's make no checkpoint whole."""
    with Place("sums") as place:
        saved = place.shared / "saved"
        saved.mkdir()
        saved.chmod(0o1777)

        def work():
            for step in (2, 4):
                (saved / f"step-{step:08}.part.1").write_text("0 4 00000000\n")
        as_user(STRANGER, work)
        said = two_ranks(place, place.words(program(bench) / "program", saved=saved), wanted=1, any_end=True)
        if "no checkpoint was written, and what was learnt since is lost" not in said or any("part.1" not in p.name for p in saved.iterdir()):
            raise Failure(f"{sorted(saved.iterdir())}\n{said}")


def resumed_pipes(bench):
    """Pipes under the names of what is read back hold nobody up."""
    with Place("pipes") as place:
        saved = place.shared / "saved"

        def work():
            saved.mkdir(mode=0o777)
            for name in ("copies", "step-00000009.safetensors", "step-00000009.manifest", "step-00000002.part.0", "step-00000002.part.1"):
                os.mkfifo(saved / name, 0o666)
        as_user(STRANGER, work)
        said = two_ranks(place, place.words(program(bench) / "program", saved=saved))
        if "step-00000009.safetensors is not used: it is a pipe, and no file" not in said:
            raise Failure(said)


# ---- where ranks meet ----

def met(bench, kind):
    """Something of the stranger's is at the place that HETU_RENDEZVOUS names: ranks meet beside it."""
    with Place(f"met{kind}") as place:
        path, own = place.shared / "meeting", place.home / "hetu"
        own.write_text("precious\n")
        place.home.chmod(0o711)
        os.chown(own, VICTIM, VICTIM)
        plants = {"pipe": lambda: os.mkfifo(path, 0o666), "file": lambda: path.write_bytes(b"hetu-at\0" + bytes(400)), "link": lambda: path.symlink_to(place.precious),
                  "dangling": lambda: path.symlink_to(place.home / "nothing"), "open": lambda: path.mkdir(0o777), "closed": lambda: path.mkdir(0o755),
                  "linked": lambda: path.symlink_to(place.home), "hard": lambda: os.link(place.precious, path)}
        try:
            as_user(STRANGER, plants[kind])
        except Failure:
            if kind == "hard":
                raise Skip("this kernel lets nobody link another user's files")
            raise
        two_ranks(place, place.words(program(bench) / "program"), HETU_RENDEZVOUS=str(path))
        if [p.name for p in place.shared.iterdir()] != ["meeting"] or (place.home / "nothing").exists() or own.read_text() != "precious\n":
            raise Failure(str(list(place.shared.iterdir())))
    return ""


def node():
    """The machine, as names of files have it (socket_node)."""
    value = 0xcbf29ce484222325
    for byte in pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes() + os.stat("/dev/shm").st_dev.to_bytes(8, "little"):
        value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return value


def met_foreseen(bench, kind):
    """At what rank 0 of such a process could call the file that it has not finished."""
    with Place(f"foreseen{kind}") as place:
        def plant(pids):
            def work():
                for pid in pids:
                    path = place.shared / f"meeting.{node():016x}.{pid}"
                    {"file": lambda: path.write_text("theirs"), "folder": path.mkdir, "link": lambda: path.symlink_to(place.precious)}[kind]()
            as_user(STRANGER, work)
        two_ranks(place, place.words(program(bench) / "program"), plant, HETU_RENDEZVOUS=str(place.shared / "meeting"))


FLICKER = """
import contextlib, os, sys
path, stop = sys.argv[1:]
print("ready", flush=True)
while not os.path.exists(stop):
    for make, remove in (lambda: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)), os.unlink), (lambda: os.mkdir(path), os.rmdir), (lambda: os.symlink("/nowhere", path), os.unlink):
        with contextlib.suppress(OSError):
            make()
            remove(path)
"""


def met_flicker(bench):
    """Files, folders and links of the stranger's come and go at the place, so that each look finds something else.

    In half of the turns the victim's process waits a moment after each look.
    """
    slow = program(bench) / "slow_look.so"
    harness.run(["cc", "-shared", "-fPIC", HERE / "Inputs" / "slow_look.c", "-o", slow, "-ldl"])
    for turn in range(16):
        with Place(f"flicker{turn}") as place:
            stop, path = place.theirs / "stop", place.shared / "meeting"
            process = start([PYTHON, "-c", FLICKER, path, stop], uid=STRANGER)
            process.stdout.readline()
            try:
                two_ranks(place, place.words(program(bench) / "program"), HETU_RENDEZVOUS=str(path), **({"LD_PRELOAD": str(slow)} if turn % 2 else {}))
            finally:
                stop.touch()
                process.communicate()


def met_private(bench):
    """Folders of the stranger's under names like those of private ones, with a rendezvous file in them, and garbage in every socket that listens."""
    with Place("private") as place:
        run, decoy = f"stranger-{os.getpid()}", pathlib.Path(f"/dev/shm/hetu-{VICTIM}-0123456789abcdef.1.stranger")

        def work():
            decoy.mkdir(mode=0o777)
            (decoy / f"meeting-{run}").write_bytes(b"hetu-at\0" + (2).to_bytes(4, "little") + bytes(400))
        shutil.rmtree(decoy, ignore_errors=True)
        as_user(STRANGER, work)
        knocker = start([PYTHON, HERE / "Inputs" / "knock.py"], uid=STRANGER)
        try:
            ranks = [start(place.words(program(bench) / "program"), cwd=place.home,
                           env=place.env(RANK=str(r), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_PORT=run)) for r in range(2)]
            finish(ranks)
        finally:
            knocker.kill()
            knocker.communicate()
            shutil.rmtree(decoy)
        place.check()


# ---- heturun ----

def heturun(bench):
    """Its socket of old, its lock, the ranks' meeting and the folder of copies are taken under every name: it starts, and ranks go on from copies."""
    with Place("heturun") as place:
        slots = place.shared / "slots"
        slots.write_text("localhost slots=2\n")
        value = f"{functools.reduce(lambda h, b: (h ^ b) * 0x100000001b3 % 2 ** 64, str(slots).encode(), 0xcbf29ce484222325):016x}"
        copies, lock = pathlib.Path(f"/dev/shm/hetu-copies-{VICTIM}-{value}"), pathlib.Path(f"/dev/shm/heturun-{VICTIM}-{value}.aaaaaa")
        holder = start([PYTHON, HERE / "Inputs" / "hold.py", f"heturun-{VICTIM}-{value}", lock, copies, f"{slots}.meeting"], uid=STRANGER)
        try:
            if holder.stdout.readline() != "held\n":
                raise Failure("the stranger holds nothing")
            command = [bench.build / "bin" / "heturun", "--elastic", program(bench) / "dp2.strategy", "--slots", slots, "--", *place.words(program(bench) / "program", steps=12, save=0, nap=60)]
            words = [str(w) for w in command]
            words[words.index("12") + 2] = "1"  # a copy each step
            process = start(words, env=place.env(TEST_STRANGER="1"), cwd=place.home)
            said = [line for line in iter(process.stdout.readline, "") if not kill_at(line, process, slots)]
            process.wait(LIMIT)
        finally:
            holder.kill()
            holder.communicate()
            for path in (copies, lock):
                shutil.rmtree(path, ignore_errors=True)
        text = "".join(said)
        behind = [int(n) for n in re.findall(r"goes on behind step (\d+)", text)]
        if process.returncode or "step 12" not in text or len(behind) != 2 or behind[1] < 3:
            raise Failure(f"exit {process.returncode}, {behind}\n{text}")
        left = [p.name for p in pathlib.Path("/dev/shm").glob(f"*{value}*")]
        if left:
            raise Failure(f"left in /dev/shm: {left}")
        place.check()


def kill_at(line, process, slots):
    """Kills a rank after its fifth step, once, and writes the slots anew."""
    if line != "step 5\n" or getattr(process, "killed", False):
        return False
    process.killed = True
    for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if b"HETU_RANK=1" in pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            os.kill(int(child), signal.SIGKILL)
            slots.write_text("localhost slots=2\n")
            time.sleep(0.3)
            os.utime(slots)
    return False


# ---- hetucc ----

def hetucc(bench):
    """Its temporary files are swapped as they appear; a folder in which that would work, and a cache of the stranger's, are refused."""
    with Place("hetucc") as place:
        source = harness.ROOT / "test" / "driver" / "Inputs" / "small.c"
        command = [bench.hetucc, "--strategy=dp2", "-O0", "-c", source, "-o", place.home / "x.o"]
        with racing(bench, place, place.shared, "/tmp"):
            finish([start(command, env=place.env())])
        place.shared.chmod(0o777)
        said = finish([start(command, env=place.env())], 1)
        if "all users may change what is made there (chmod +t); TMPDIR names another place" not in said:
            raise Failure(said)
        place.shared.chmod(0o1777)
        cache = place.shared / "cache"
        as_user(STRANGER, lambda: cache.mkdir(mode=0o777))
        said = finish([start([bench.hetucc, "--backend=cuda", "--strategy=dp2", source, "-o", place.home / "x"], env=place.env(HETU_RUNTIME_CACHE=str(cache), NVCC="true"))], 1)
        if f"cannot keep the runtime's objects in {cache}, which HETU_RUNTIME_CACHE names: it is another user's" not in said and "other users may write to it" not in said:
            raise Failure(said)
        place.check()


def tool_outputs(bench):
    """Under the names of hetucc's outputs lie links and pipes of the stranger's; a link to nothing may lead elsewhere by the time that is written."""
    with Place("tools") as place:
        source = harness.ROOT / "test" / "driver" / "Inputs" / "small.c"

        def work():
            (place.shared / "null.o").symlink_to("/dev/null")
            os.mkfifo(place.shared / "pipe.o", 0o666)
            for name in ("file.o", "file.d", "log.sarif"):
                (place.shared / name).symlink_to(place.precious)
        as_user(STRANGER, work)
        for name in ("null.o", "pipe.o"):
            said = finish([start([bench.hetucc, "--strategy=dp2", "-O0", "-c", source, "-o", place.shared / name], env=place.env())], 1)
            if "it is another user's" not in said:
                raise Failure(said)
        for more in (["-o", place.shared / "file.o"], ["-MMD", "-MF", place.shared / "file.d", "-o", place.home / "x.o"]):
            finish([start([bench.hetucc, "--strategy=dp2", "-O0", "-c", source, *more], env=place.env())], 1)
            place.check()
        finish([start([bench.hetucc, f"--diagnostics={place.shared}/log.sarif", "--strategy=dp2", "-O0", "-c", source, "-o", place.home / "x.o"], env=place.env())], any_end=None)
        place.check()


def temporary_parents(bench, kind):
    """A TMPDIR of the user's own in a folder that the stranger can change is refused, and programs take another."""
    with Place(f"parents{kind}") as place:
        parent = place.theirs if kind == "theirs" else place.top / "all"
        parent.mkdir(exist_ok=True)
        parent.chmod(0o755 if kind == "theirs" else 0o777)
        own = parent / "own"
        own.mkdir()
        os.chown(own, VICTIM, VICTIM)
        source = harness.ROOT / "test" / "driver" / "Inputs" / "small.c"
        said = finish([start([bench.hetucc, "--strategy=dp2", "-O0", "-c", source, "-o", place.home / "x.o"], env=place.env(TMPDIR=str(own)))], 1)
        if f"of {parent}, which it lies in: " not in said:
            raise Failure(said)


@contextlib.contextmanager
def unprotected():
    """The kernel's protection of links and pipes in sticky folders is off meanwhile, where it can be."""
    before = [(path, path.read_text()) for path in SWITCHES if path.exists()]
    for path, _ in before:
        with contextlib.suppress(OSError):
            path.write_text("0\n")
    try:
        yield
    finally:
        for path, text in before:
            with contextlib.suppress(OSError):
                path.write_text(text)


def possible(bench):
    """Why there cannot be two users; None: there can."""
    if os.geteuid():
        return "this is not root, and cannot be two users"
    seen = subprocess.run([str(bench.hetucc), "--version"], user=VICTIM, group=VICTIM, extra_groups=[], capture_output=True) if os.access(bench.hetucc, os.X_OK) else None
    return None if seen and not seen.returncode else "other users cannot reach the build tree"


def skipped(reason):
    raise Skip(reason)


def tests(bench, _):
    case = functools.partial
    try:
        reason = possible(bench)
    except OSError as error:
        reason = str(error)
    if reason:
        return [("all", case(skipped, f"strangers: {reason}"))]
    found = [(f"names.{kind}", case(planted_names, bench, kind)) for kind in ("link", "object", "pipe", "device", "folder")]
    found += [("balanced", case(balanced, bench)), ("raced.sticky", case(raced, bench, True)), ("raced.open", case(raced, bench, False)), ("memory", case(open_memory, bench))]
    found += [("outputs", case(outputs, bench)), ("hard", case(hard_links, bench)), ("pipes", case(resumed_pipes, bench))]
    found += [(f"linked.{kind}", case(linked_folders, bench, kind)) for kind in ("steps", "dump", "saved")] + [("sums", case(foreign_sums, bench))]
    found += [(f"told.{kind}", case(told_failure, bench, kind)) for kind in ("link", "file", "apart")]
    found += [(f"met.{kind}", case(met, bench, kind)) for kind in ("pipe", "file", "link", "dangling", "open", "closed", "linked", "hard")]
    found += [(f"foreseen.{kind}", case(met_foreseen, bench, kind)) for kind in ("file", "folder", "link")] + [("met.flicker", case(met_flicker, bench))]
    return found + [("met.private", case(met_private, bench)), ("heturun", case(heturun, bench)), ("hetucc", case(hetucc, bench)), ("hetucc.outputs", case(tool_outputs, bench)),
                    *[(f"parents.{kind}", case(temporary_parents, bench, kind)) for kind in ("theirs", "all")]]


if __name__ == "__main__":
    with unprotected():
        harness.main("strangers", tests)
