#!/usr/bin/env python3
"""Programs on several hosts (cluster.sh makes them of namespaces): how they start and end, what heturun --check says, faults of hosts and links, and bytes on shaped links.

Needs root, openssh-server and iproute2; elsewhere each case is skipped with the reason. A cluster ends with this process, however it ends.
"""
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, Skip

SCRIPT, SOURCE, STRATEGIES = HERE / "cluster.sh", HERE / "steps.c", HERE / "steps.strategies"
LOSSES = ["step 0 loss 0.40470", "step 1 loss 0.37534", "step 2 loss 0.34777"]
FLAT = r"^hetu: the ranks are on 2 hosts, but steps.c was compiled without --cluster"
TIMEOUT = 8  # of HETU_TIMEOUT, in seconds, where ranks wait for it


# Starts a command as ssh does, on a host whose clock is an hour late.
LATE = """#!/bin/sh
host=$1
shift
ssh "$host" "$*" | while IFS= read -r line; do
    case $line in
    clock*) seconds=${line#clock } && echo "clock $((${seconds%.*} - 3600)).${seconds#*.}" ;;
    *) echo "$line" ;;
    esac
done
"""


class Cluster:
    """Hosts n1 .. nN, each with two slots, and a folder that all of them see with heturun, libhetu and programs."""

    def __init__(self, bench, hosts):
        lacks = harness.run([SCRIPT, "needs"], check=False).stdout.split("\n")[:-1]
        if lacks:
            raise Skip(f"hosts of namespaces need {', '.join(lacks)}")
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hetu-hosts-", dir="/tmp"))
        self.env = {**os.environ, "HOSTS_BASE": str(self.base), "HOSTS_OWNER": str(os.getpid()), "HOSTS_SEEN": ""}
        self.shared = self.base / "shared"
        self.names = [f"n{k + 1}" for k in range(hosts)]
        self("up", hosts)
        shutil.copy(bench.build / "bin" / "heturun", self.shared)
        for library in (bench.build / "lib").glob("libhetu*.so*"):
            shutil.copy(library, self.shared, follow_symlinks=False)
        for name, options in PROGRAMS.items():
            shutil.copy(built(bench, name, options), self.shared / name)
        self.write("hosts", *(f"{name} slots=2" for name in self.names))

    def __call__(self, *words):
        return harness.run([SCRIPT, *words], env=self.env).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self("down")
        shutil.rmtree(self.base, ignore_errors=True)

    def write(self, name, *lines):
        (self.shared / name).write_text("".join(f"{line}\n" for line in lines))

    def start(self, host, command, **env):
        """Starts a shell's command on a host, in the shared folder."""
        words = {"OMP_NUM_THREADS": "1", "LD_LIBRARY_PATH": str(self.shared), "HETU_TIMEOUT": "60", **env}
        export = "export " + " ".join(f"{name}={value}" for name, value in words.items())
        return subprocess.Popen([SCRIPT, "on", host, f"{export} PATH={self.shared}:$PATH; cd {self.shared}; {command}"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, text=True)

    def run(self, host, command, status=0, seconds=60, **env):
        """What a command printed; with another exit status than `status` the case fails."""
        job = self.start(host, command, **env)
        return self.end(job, status, seconds)

    def end(self, job, status, seconds=60):
        try:
            said = job.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            job.kill()
            raise Failure(f"not done after {seconds} s") from None
        if job.returncode != status:
            raise Failure(f"exit {job.returncode}, not {status}\n{said[-2000:]}")
        return said

    def processes(self, word="steps", hosts=None):
        return [(name, int(line.split()[0]), line) for name in hosts or self.names for line in self("processes", name, word).splitlines()]

    def ranks(self, host):
        """The processes of the program on a host, heturun --hold and shells not among them."""
        return [process for _, process, line in self.processes(hosts=[host]) if re.match(r"\d+ \S*(steps|several) ", line)]

    def none_left(self, seconds, hosts=None):
        """Waits until no process of a run is left on any host."""
        end = time.monotonic() + seconds
        left = []
        while time.monotonic() < end:
            hosts_now = [name for name in hosts or self.names if (self.base / "run" / f"{name}.pid").exists()]
            left = [line for word in ("steps", "several", "linked", "heturun") for _, _, line in self.processes(word, hosts_now)]
            if not left:
                return
            time.sleep(0.2)
        raise Failure(f"left after {seconds} s: {left}")

    def hidden(self):
        """What a run has left in the shared folder."""
        return [path.name for path in self.shared.iterdir() if path.name.startswith(".")]


PROGRAMS = {"steps": [f"--strategy={STRATEGIES}:dp4"], "clustered": [f"--strategy={STRATEGIES}:dp4", f"--cluster={HERE / 'two.json'}"],
            "several": [f"--strategy={STRATEGIES}:{name}" for name in ("dp4", "dp2")]}


def built(bench, name, options):
    def make():
        out = bench.path(name)
        harness.run([bench.hetucc, *options, "-O0", *harness.WARNINGS, SOURCE, "-o", out, "-lm"], timeout=300)
        return out
    return bench.once(("hosts", name), make)


def expect(said, *patterns):
    for pattern in patterns:
        if not re.search(pattern, said, re.M):
            raise Failure(f"no {pattern!r} in\n{said[-3000:]}")


def read_until(job, pattern, seconds=30):
    """Reads a job's lines until one matches."""
    said, end = "", time.monotonic() + seconds
    while time.monotonic() < end and (line := job.stdout.readline()):
        said += line
        if re.search(pattern, line):
            return said
    raise Failure(f"no {pattern!r} in\n{said[-2000:]}")


# ---- starting ----

def check_page(cluster):
    said = cluster.run("n1", "heturun --check --hosts hosts ./steps")
    expect(said, r"^n1 +2  here .* ok +ok", r"^n2 +2  \d.\d\d s +[0-9a-f]{8} +ok +ok +[+-]0.00\d s +ok", "nothing lacks")


def check_start(cluster):
    """Ranks on two hosts, started from either: environment, folder and losses are those of one host."""
    cluster.write("turned", "# rank 0 is not where heturun is", "10.77.0.2 slots=2 max_slots=4", "n1 slots=2")
    for hosts, word in (("hosts", "plain"), ("turned", "two words's")):
        said = cluster.run("n1", f"heturun --hosts {hosts} -x TEST_WORD ./steps", TEST_WORD=f'"{word}"')
        if [line for line in said.splitlines() if line.startswith(("step", "word"))] != [f"word {word}", *LOSSES]:
            raise Failure(said)
        if len(re.findall(FLAT, said, re.M)) != 1:
            raise Failure(f"that sums are flat is not told once\n{said}")
    if re.search(FLAT, cluster.run("n1", "heturun --hosts hosts ./clustered"), re.M):
        raise Failure("that sums are flat is told of a program that knows its cluster")
    cluster.none_left(5)
    if cluster.hidden():
        raise Failure(f"left behind: {cluster.hidden()}")


def check_slurm(cluster):
    """The hosts of an allocation, whose commands are stand-ins here: SLURM_TASKS_PER_NODE gives the ranks of each, and srun starts them."""
    for name, lines in (("scontrol", ['[ "$1 $2 $3" = "show hostnames n[1-2]" ] && printf "n1\\nn2\\n"']),
                        ("srun", ["while [ $# -gt 3 ]; do case $1 in --nodelist=*) host=${1#*=} ;; esac; shift; done", '[ "$1 $2" = "sh -c" ] && exec ssh "$host" "$3"'])):
        cluster.write(name, "#!/bin/sh", *lines)
        (cluster.shared / name).chmod(0o755)
    allocation = {"SLURM_JOB_NODELIST": "'n[1-2]'", "SLURM_TASKS_PER_NODE": "'2(x2)'"}
    said = cluster.run("n1", "heturun --hosts slurm ./steps", **allocation)
    if [line for line in said.splitlines() if line.startswith("step")] != LOSSES or not re.search(FLAT, said, re.M):
        raise Failure(said)
    expect(cluster.run("n1", "heturun --check --hosts slurm ./steps", **allocation), r"^n2 +2  \d.\d\d s", "nothing lacks")
    expect(cluster.run("n1", "heturun --check --hosts slurm", **{**allocation, "SLURM_TASKS_PER_NODE": "3,1"}), r"^n1 +3  here", r"^n2 +1  \d.\d\d s")
    cluster.none_left(5)


def check_refused(cluster):
    for words, reason in (("--hosts hosts --slots hosts ./steps", "both say where ranks run"), ("--check ./steps", "looks at the hosts of --hosts"),
                          ("--hosts hosts -x TEST_NONE ./steps", "has no value; give it one"), ("--hosts hosts --cluster=c ./steps", "--cluster is for the strategies of --elastic"),
                          ("--elastic s --hosts slurm ./steps", "scontrol show hostnames"), ("--check --elastic s --hosts hosts", "starts no ranks")):
        expect(cluster.run("n1", f"heturun {words}", status=2), reason)
    expect(cluster.run("n1", "heturun --hosts hosts -n 5 ./steps", status=1), "more ranks than the 4 slots of hosts")
    expect(cluster.run("n1", "heturun --hosts slurm ./steps", status=1), "needs an allocation")


# ---- ends ----

def check_killed(cluster, what):
    """A process of the run is killed: nothing of it is left on any host."""
    job = cluster.start("n1", "heturun --hosts hosts ./steps 1000 50")
    read_until(job, "^step 3 ")
    if what == "rank":
        os.kill(cluster.ranks("n2")[0], signal.SIGKILL)
        expect(cluster.end(job, 128 + signal.SIGKILL, 20), r"rank [23] on n2 ended with signal 9")
    elif what == "heturun":
        os.kill(next(process for _, process, line in cluster.processes("--hosts", ["n1"]) if re.match(r"\d+ heturun ", line)), signal.SIGKILL)
    elif what == "ssh":
        os.kill(cluster.processes("ssh -o", ["n1"])[0][1], signal.SIGKILL)
        cluster.end(job, 128 + signal.SIGKILL, 20)
    cluster.none_left(10)
    job.kill()
    job.communicate()


def check_told(cluster):
    """SIGTERM to heturun reaches ranks on other hosts, which save and end."""
    job = cluster.start("n1", "exec heturun --hosts hosts ./steps 1000 50 told 5")
    read_until(job, "^step 6 ")
    os.kill(next(process for _, process, line in cluster.processes("--hosts", ["n1"]) if re.match(r"\d+ heturun ", line)), signal.SIGTERM)
    cluster.end(job, 128 + signal.SIGTERM, 30)
    cluster.none_left(5)
    said = cluster.run("n1", "heturun --hosts hosts ./steps 200 0 told 1000")
    if re.search("^step [0-5] ", said, re.M) or not re.search("^step 199 ", said, re.M):
        raise Failure(f"it does not go on\n{said}")


# ---- hosts that lack something ----

def check_lacks(cluster, what):
    where, program, patterns = cluster.shared, "./steps", []
    if what == "program":
        cluster.run("n1", "cp steps /tmp/only")
        program, patterns = "/tmp/only", [r"^n2: /tmp/only cannot be started: No such file"]
    elif what == "build":
        for host, name in (("n1", "steps"), ("n2", "several")):
            cluster.run(host, f"cp {name} /tmp/built")
        program, patterns = "/tmp/built", [r"^n2: /tmp/built is another build than on n1 \([0-9a-f]{8}, not [0-9a-f]{8}\); copy that one"]
    elif what == "folder":
        cluster.run("n1", "mkdir -p /tmp/here && cp steps /tmp/here")
        where, patterns = "/tmp/here", [r"^n2: the folder /tmp/here: No such file"]
    elif what == "ports":
        cluster.run("n2", "ip route add blackhole 10.77.0.3/32")
        patterns = [r"^n3: it does not reach n2; open all ports"]
    elif what == "clock":
        (cluster.shared / "late").write_text(LATE)
        (cluster.shared / "late").chmod(0o755)
        said = cluster.run("n1", "heturun --check --shell ./late --hosts hosts ./steps", status=1)
        expect(said, r"^n2: its clock is 3600\.\d s behind; set it", "not ready")
        return
    elif what == "link":
        cluster("link", "n2", "down")
        patterns = [r"^n2 +2  fails", r"^n2: no heturun answers there: ssh: connect to host n2"]
    try:
        said = cluster.run("n1", f"cd {where}; heturun --check --hosts {cluster.shared}/hosts {program}", status=1)
        expect(said, *patterns, "not ready")
        if what in ("program", "folder", "link"):
            begun = time.monotonic()
            said = cluster.run("n1", f"cd {where}; heturun --hosts {cluster.shared}/hosts {program}", status=255 if what == "link" else 127)
            expect(said, "rank [23] was not reached on n2" if what == "link" else "rank [23] cannot be started on n2")
            if time.monotonic() - begun > 13:
                raise Failure(f"{time.monotonic() - begun:.1f} s until it was known")
    finally:
        if what == "link":
            cluster("link", "n2", "up")
    cluster.none_left(10)


# ---- faults of hosts and links ----

def check_cable(cluster):
    """A cable is pulled for ever: behind HETU_TIMEOUT no process stays, on either side of it."""
    job = cluster.start("n1", "heturun --hosts hosts ./steps 100000 20", HETU_TIMEOUT=str(TIMEOUT))
    read_until(job, "^step 3 ")
    cluster("link", "n2", "down")
    try:
        begun = time.monotonic()
        job.communicate(timeout=TIMEOUT + 15)
        if not job.returncode:
            raise Failure("it succeeded")
        cluster.none_left(max(1, begun + TIMEOUT + 15 - time.monotonic()))
        return f"{time.monotonic() - begun:.1f} s"
    except subprocess.TimeoutExpired:
        raise Failure("heturun is not done") from None
    finally:
        job.kill()
        cluster("link", "n2", "up")


def check_cable_mpirun(cluster):
    """Under mpirun, too, no process stays, though its daemon beyond the pulled cable never answers."""
    words = "mpirun -x PATH -x LD_LIBRARY_PATH -x HETU_TIMEOUT -x OMP_NUM_THREADS --hostfile hosts -n 4"
    job = cluster.start("n1", f"{words} ./steps 100000 20", HETU_TIMEOUT=str(TIMEOUT), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    read_until(job, "^step 3 ")
    cluster("link", "n2", "down")
    begun = time.monotonic()
    try:
        said = job.communicate(timeout=TIMEOUT + 15)[0]
        expect(said, r"rank [23] has stopped.*: nothing was heard of its process for 8 s \(HETU_TIMEOUT\)")
        while left := [line for word in ("steps", "orted", "mpirun") for _, _, line in cluster.processes(word)]:
            if time.monotonic() > begun + TIMEOUT + 17:
                raise Failure(f"left: {left}")
        return f"{time.monotonic() - begun:.1f} s"
    except subprocess.TimeoutExpired:
        raise Failure("mpirun is not done") from None
    finally:
        job.kill()
        cluster("link", "n2", "up")


def check_blink(cluster):
    """A link is down for 3 s: the run goes on."""
    job = cluster.start("n1", "heturun --hosts hosts ./steps 60 20")
    read_until(job, "^step 3 ")
    cluster("link", "n2", "down")
    time.sleep(3)
    cluster("link", "n2", "up")
    expect(cluster.end(job, 0, 60), "^step 59 ")


def check_elastic(cluster, what):
    """A host dies, or lacks the program: the run goes on upon the other one."""
    program = "./several"
    if what == "lacks":
        cluster.run("n1", "cp several /tmp/several")
        program = "/tmp/several"
    cluster.write("slots", "n1 slots=2", "n2 slots=2")
    (cluster.shared / "strategies").mkdir(exist_ok=True)
    for number, name in enumerate(("dp4", "dp2")):
        text = re.search(rf"strategy {name}\n.*?end strategy\n", STRATEGIES.read_text(), re.S).group()
        cluster.write(f"strategies/{number}.strategy", text)
    begun = time.monotonic()
    job = cluster.start("n1", f"heturun --elastic strategies --hosts slots -- {program} 40 50 saved.{what} 1", HETU_TIMEOUT=str(TIMEOUT))
    if what == "dies":
        read_until(job, "^step 5 ")
        cluster("kill", "n2")
    said = cluster.end(job, 0, 90)
    expect(said, r"start 2: 2 ranks under strategy \"dp2\"", "^step 39 ")
    if what == "lacks":
        expect(said, "^heturun: n2 cannot run the program; its 2 slots are out")
        if time.monotonic() - begun > 15:
            raise Failure("it took too long to see that n2 lacks the program")
    cluster.none_left(10)


def check_unwritable(cluster, launcher):
    """Hosts that do not see the checkpoints' folder: rank 0 names all their ranks at once, and the end says that nothing was written."""
    job = cluster.start("n1", f"{launcher} ./steps 40 100 /tmp/own.{launcher.split()[0]} 10", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", HETU_TIMEOUT="600")
    said = read_until(job, r"step-00000010 was not written: ranks 2, 3: it does not find the file that rank 0 made; do all ranks see the folder\?")
    if re.search("^step 3[0-9] ", said, re.M):
        raise Failure(f"it was said late\n{said}")
    expect(cluster.end(job, 1), r"^hetu: the last checkpoints of this run, 4 in \S+, of steps 10 to 40, were not written; no checkpoint was written, and what was learnt")
    cluster.none_left(5)


# ---- shaped links ----

def sent(cluster):
    """Bytes that the hosts have sent to each other."""
    return sum(int(line.split()[1]) for line in cluster("bytes").splitlines())


def check_bytes(cluster):
    """A program that knows the cluster sends less between hosts."""
    bytes_sent = []
    for program in ("steps", "clustered"):
        before = sent(cluster)
        cluster.run("n1", f"heturun --hosts hosts ./{program} 40")
        bytes_sent.append(sent(cluster) - before)
    if not bytes_sent[1] < 0.75 * bytes_sent[0]:
        raise Failure(f"{bytes_sent} bytes")
    return f"{bytes_sent} bytes"


def check_shaped(cluster):
    """A slow link: losses are the same, and it is as slow as it is."""
    cluster("rate", "n2", "16mbit")
    before, begun = sent(cluster), time.monotonic()
    said = cluster.run("n1", "heturun --hosts hosts ./steps 20")
    seconds, bytes_sent = time.monotonic() - begun, sent(cluster) - before
    cluster("rate", "n2", "none")
    if [line for line in said.splitlines() if line.startswith("step")][:3] != LOSSES:
        raise Failure(said)
    least = bytes_sent / 2 / 2e6 * 0.7  # half of the bytes each way, at 2 MB/s; tbf's burst and buffers hold some
    if seconds < least:
        raise Failure(f"{bytes_sent} bytes in {seconds:.1f} s; a link of 16 Mbit/s needs {least:.1f} s")
    return f"{bytes_sent} bytes, {seconds:.1f} s"


# ---- links at run time ----

# Classes as sleeping.h has them at NAP nanoseconds an element; hosts of two ranks that share a card.
STRAINED = HERE.parent / "balance" / "strained.c"
WIDE = ["-DUNCALLED", "-DWIDTH=64", "-DHIDDEN=256"]


def two_ranks_each(hosts, nap, megabits, cut=()):
    """A cluster file. The cards of hosts in `cut` carry a tenth."""
    rate = megabits * 1e6 / 8
    return json.dumps({
        "classes": {"cpu": {"memory_bandwidth": 1e10, "arithmetic": 1e13 / max(nap, 1000), "start": 1e-6, "products": {"f32": [[1e6, 1e10]]}}},
        "devices": [{"class": "cpu", "host": f"n{h + 1}", "count": 2} for h in range(hosts)],
        "links": {"local": {"latency": 1e-5, "bandwidth": 1e9}, "remote": {"latency": 2e-4, "bandwidth": rate},
                  "uplinks": [{"of": f"n{h + 1}", "bandwidth": rate / (10 if f"n{h + 1}" in cut else 1)} for h in range(hosts)]}})


def linked(cluster, bench, name, text, *words):
    """A program that knows a cluster file; its source stays where hosts see it."""
    cluster.write(f"{name}.json", text)
    harness.run([bench.hetucc, f"--cluster={cluster.shared}/{name}.json", *words, *WIDE, "-O1", *harness.WARNINGS, STRAINED, "-o", cluster.shared / name, "-lm"], timeout=300)
    return name


def best_for(cluster, bench, text):
    """A program under the strategy that hetucc finds for a cluster file."""
    cluster.write("best.json", text)
    strategy = cluster.shared / "best.strategy"
    harness.run([bench.hetucc, "--plan", f"--cluster={cluster.shared}/best.json", *WIDE, STRAINED, "-o", strategy], timeout=300)
    return linked(cluster, bench, "linked.best", text, f"--strategy={strategy}")


def watched(cluster, job, changes, until):
    """[(step, line)] of a job, until a line matches. `changes` are (step, rate of n2): made as soon as the step is over."""
    lines, step, left = [], 0, list(changes)
    while line := job.stdout.readline():
        if found := re.match(r"step (\d+) ", line):
            step = int(found[1]) + 1
        lines.append((step, line.rstrip()))
        if left and step > left[0][0]:
            cluster("rate", "n2", left.pop(0)[1])
        if re.search(until, line):
            break
    return lines


def stopped(cluster, job):
    """Ends a run, if it has not ended, and shapes no link any more."""
    for _, process, line in [*cluster.processes("--hosts", ["n1"]), *cluster.processes("--hostfile", ["n1"])]:
        if re.match(r"\d+ (heturun|mpirun) ", line):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
    cluster("rate", "n2", "none")
    cluster.none_left(15)
    job.kill()
    job.communicate()


def step_of(lines, pattern, first, last):
    """The step of the only line with a pattern, which must be one of these."""
    steps = [step for step, line in lines if re.search(pattern, line)]
    if len(steps) != 1 or not first <= steps[0] <= last:
        raise Failure(f"{pattern!r} at steps {steps}, not once from {first} to {last}\n" + "\n".join(line for _, line in lines if not line.startswith("step")))
    return steps[0]


def took(lines, first, last):
    """The median seconds of steps from `first` to before `last`."""
    return statistics.median(float(found[2]) for _, line in lines if (found := re.match(r"step (\d+) seconds (\S+)", line)) and first <= int(found[1]) < last)


LOWERED = r"^hetu: links: step \d+: the link of n1 and n2 carries [\d.]+ MB/s; by the cluster file it is "
HEALED = r"^hetu: links: step \d+: the link of n1 and n2 carries [\d.]+ MB/s again$"


def check_named(cluster, bench):
    """A link that is cut to a tenth is named within 20 steps, without a call in the program."""
    name = linked(cluster, bench, "linked.named", two_ranks_each(2, 0, 400), f"--strategy={HERE}/links.strategies:dp4")
    cluster("rate", "n2", "400mbit")
    job = cluster.start("n1", f"heturun --hosts hosts -x NAP ./{name} 60", NAP="0")
    try:
        lines = watched(cluster, job, [(12, "40mbit")], "hetu: links|^step 59")
        return f"cut at step 13, named at {step_of(lines, LOWERED + '50 MB/s$', 13, 33)}"
    finally:
        stopped(cluster, job)


def check_planned(cluster, bench):
    """A link is cut to a tenth, and heals: another strategy is in force within 40 steps, as fast as the best for that link, and the first one again within 60."""
    nap, cut = 1000, 16
    name = linked(cluster, bench, "linked.planned", two_ranks_each(2, nap, 160), f"--strategy={HERE}/links.strategies:dp4")
    best = best_for(cluster, bench, two_ranks_each(2, nap, 160, ["n1", "n2"]))
    cluster("rate", "n2", "160mbit")
    job = cluster.start("n1", f"heturun --hosts hosts -x NAP ./{name} 200", NAP=str(nap), HETU_BALANCE="1")
    try:
        lines = watched(cluster, job, [(15, f"{cut}mbit"), (72, "160mbit")], r'under strategy "dp4" from here on|^step 199')
        named, away = step_of(lines, LOWERED + "20 MB/s$", 16, 36), step_of(lines, r'under strategy "balanced1" from here on', 16, 56)
        healed, back = step_of(lines, HEALED, 73, 133), step_of(lines, r'under strategy "dp4" from here on', 73, 133)
        stopped(cluster, job)
        cluster("rate", "n2", f"{cut}mbit")
        job = cluster.start("n1", f"heturun --hosts hosts -x NAP ./{best} 20", NAP=str(nap))
        whole, strained, least = took(lines, 2, 15), took(lines, away + 2, 72), took(watched(cluster, job, [], "^step 19"), 2, 20)
        note = (f"cut at step 16, named at {named}, in force at {away}; healed at step 73, seen at {healed}, back at {back}; a step takes {whole:.3f} s, {took(lines, 17, away):.3f} s on the cut link, "
                f"{strained:.3f} s under the new strategy, {least:.3f} s under the best")
        if strained > 1.15 * least:
            raise Failure(note)
        return note
    finally:
        stopped(cluster, job)


# Sends to 10.77.0.2 so many bytes a second, in bursts of a fifth of a second, and keeps their number in the file `traffic`; with 0 bytes receives them.
TRAFFIC = """import pathlib, socket, sys, time
rate, total = int(sys.argv[1]), 0
if not rate:
    peer = socket.create_server(("", 7788)).accept()[0]
    while peer.recv(1 << 16):
        pass
else:
    peer, begin = socket.create_connection(("10.77.0.2", 7788)), time.monotonic()
    while True:
        peer.sendall(bytes(rate // 5))
        total += rate // 5
        pathlib.Path("traffic").write_text(str(total))
        time.sleep(max(0, begin + total / rate - time.monotonic()))
"""


def check_steady(cluster, bench):
    """Beside other traffic that takes a tenth of the link, no link is named in 500 steps."""
    nap, rate = 1000, 160
    name = linked(cluster, bench, "linked.planned", two_ranks_each(2, nap, rate), f"--strategy={HERE}/links.strategies:dp4")
    cluster.write("traffic.py", TRAFFIC)
    cluster("rate", "n2", f"{rate}mbit")
    others = [cluster.start("n2", "exec /usr/bin/python3 traffic.py 0")]
    time.sleep(1)
    others.append(cluster.start("n1", f"exec /usr/bin/python3 traffic.py {rate * 100000 // 8}"))
    try:
        begun = time.monotonic()
        said = cluster.run("n1", f"heturun --hosts hosts -x NAP ./{name} 500", seconds=280, NAP=str(nap))
        seconds, sent = time.monotonic() - begun, int((cluster.shared / "traffic").read_text())
        if "hetu:" in said or not re.search("^step 499 ", said, re.M):
            raise Failure(said[-2000:])
        if sent < 0.8 * seconds * rate * 1e5 / 8:
            raise Failure(f"the other traffic was {sent / seconds / 1e6:.2f} MB/s alone")
        return f"{seconds:.0f} s, beside {sent / seconds / 1e6:.2f} MB/s"
    finally:
        for _, process, line in cluster.processes("traffic.py"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for job in others:
            job.communicate(timeout=10)
        cluster("rate", "n2", "none")


def check_four(cluster, bench, strategy, *words):
    """Four hosts under mpirun: the three links of one that is cut to a tenth are named, another strategy is in force within 40 steps, and the first one again within 60. Losses are those of a run on whole links."""
    nap, name = 2000, "linked.four"
    linked(cluster, bench, name, two_ranks_each(4, nap, 160), f"--strategy={HERE}/links.strategies:{strategy}", *words)
    start = "mpirun -x PATH -x LD_LIBRARY_PATH -x HETU_TIMEOUT -x OMP_NUM_THREADS -x NAP -x HETU_BALANCE -x HETU_CHECK --mca mpi_yield_when_idle 1 --hostfile hosts -n 8"
    env = {"NAP": str(nap), "HETU_CHECK": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    cluster("rate", "n2", "160mbit")
    losses = {}
    job = cluster.start("n1", f"{start} ./{name} 200", HETU_BALANCE="1", **env)
    try:
        lines = watched(cluster, job, [(15, "16mbit"), (72, "160mbit")], rf'under strategy "{strategy}" from here on|^step 199')
        named = {found[1] for _, line in lines if (found := re.match(r"hetu: links: step \d+: the link of (n\d and n\d) carries [\d.]+ MB/s; by", line))}
        away, back = step_of(lines, r'under strategy "balanced\d" from here on', 16, 56), step_of(lines, rf'under strategy "{strategy}" from here on', 73, 133)
        stopped(cluster, job)
        if named != {"n1 and n2", "n2 and n3", "n2 and n4"}:
            raise Failure(f"named: {named}")
        job = cluster.start("n1", f"{start} ./{name} {back}", HETU_BALANCE="0", **env)
        for run, of in (("cut", lines), ("whole", watched(cluster, job, [], f"^step {back - 1} "))):
            losses[run] = {int(found[1]): float(found[2]) for _, line in of if (found := re.match(r"step (\d+) .* loss (\S+)", line))}
        worst = max(abs(losses["cut"][step] - loss) / abs(loss) for step, loss in losses["whole"].items())
        note = f"cut at step 16, in force at {away}; healed at step 73, back at {back}; losses within {worst:.1g}"
        if len(losses["whole"]) != back or not worst <= 1e-4:
            raise Failure(note)
        return note
    finally:
        stopped(cluster, job)


def tests(bench, arguments):
    def on(hosts, check, *words):
        def test():
            if hosts == 2:
                return check(cluster_of(bench), *words)
            with Cluster(bench, hosts) as cluster:
                return check(cluster, *words)
        return test

    yield "check", on(2, check_page)
    yield "start", on(2, check_start)
    yield "killed.rank", on(2, check_killed, "rank")
    yield "shaped", on(2, check_shaped)
    yield "links.named", on(2, check_named, bench)
    yield "links.planned", on(2, check_planned, bench)
    yield "links.steady", on(2, check_steady, bench), True
    yield "links.four", on(4, check_four, bench, "dp8"), True
    yield "links.options", on(4, check_four, bench, "tp2dp4", "--no-overlap", "--no-views"), True
    yield "slurm", on(2, check_slurm), True
    yield "refused", on(2, check_refused), True
    yield "killed.heturun", on(2, check_killed, "heturun"), True
    yield "killed.ssh", on(2, check_killed, "ssh"), True
    yield "told", on(2, check_told), True
    for what in ("program", "build", "folder", "clock", "link"):
        yield f"lacks.{what}", on(2, check_lacks, what), True
    yield "lacks.ports", on(3, check_lacks, "ports"), True
    yield "blink", on(2, check_blink), True
    yield "cable", on(2, check_cable), True
    yield "cable.mpirun", on(2, check_cable_mpirun), True
    yield "bytes", on(2, check_bytes), True
    yield "unwritable.ssh", on(2, check_unwritable, "heturun --hosts hosts"), True
    yield "unwritable.mpirun", on(2, check_unwritable, "mpirun -x PATH -x LD_LIBRARY_PATH -x HETU_TIMEOUT -x OMP_NUM_THREADS --hostfile hosts -n 4"), True
    yield "elastic.lacks", on(2, check_elastic, "lacks"), True
    yield "elastic.dies", on(3, check_elastic, "dies"), True


def cluster_of(bench):
    """The two hosts that most cases share; they end with this process."""
    made = bench.once("cluster", lambda: try_cluster(bench))
    if isinstance(made, Skip):
        raise made
    return made


def try_cluster(bench):
    try:
        return Cluster(bench, 2)
    except Skip as reason:
        return reason


def main():
    found = {}

    def remember(bench, arguments):
        found["bench"] = bench
        return tests(bench, arguments)

    try:
        harness.main("hosts", remember, jobs=1)
    finally:
        slot = found["bench"].made.get("cluster", {}) if found else {}
        if isinstance(slot.get("value"), Cluster):
            slot["value"].__exit__()


if __name__ == "__main__":
    main()
