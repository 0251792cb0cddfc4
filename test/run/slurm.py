#!/usr/bin/env python3
"""Tests programs that Slurm starts and tells to end: srun with PMIx and without MPI, scancel with and without a signal, and srun with PMI-2, which gives a message.

The suite sets up its own Slurm of one node, in a folder of its own, and stops it at the end. Where Slurm is not installed (Debian: slurmctld slurmd slurm-client
munge) the suite is skipped, which ctest reports.
"""
import atexit
import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import ended
import harness
from ended import STEP, Job
from harness import Failure

NEEDED = ("munged", "slurmctld", "slurmd", "srun", "scancel", "squeue", "sinfo")
SKIPPED = 77
KILL = 20  # seconds from SIGTERM to SIGKILL
SETTINGS = """ClusterName=hetu
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={top}/munge.socket
CredType=cred/munge
StateSaveLocation={top}/state
SlurmdSpoolDir={top}/spool
SlurmctldPidFile={top}/slurmctld.pid
SlurmdPidFile={top}/slurmd.pid
SlurmctldLogFile={top}/slurmctld.log
SlurmdLogFile={top}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
ReturnToService=2
KillWait={kill}
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """A Slurm of one node."""

    def __init__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="hetu-slurm-"))
        self.top.chmod(0o755)
        self.env = {"SLURM_CONF": str(self.top / "slurm.conf"), "PATH": search_path()}
        self.daemons = []
        atexit.register(self.stop)
        host = socket.gethostname().split(".")[0]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        (self.top / "slurm.conf").write_text(SETTINGS.format(host=host, user=user, ports=free_ports(2), top=self.top, kill=KILL))
        for folder in ("state", "spool"):
            (self.top / folder).mkdir()
        (self.top / "munge.key").write_bytes(os.urandom(1024))
        (self.top / "munge.key").chmod(0o400)
        paths = [f"--{name}={self.top}/munge.{end}" for name, end in (("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))]
        self.begin("munged", "-F", "-f", *paths)
        self.await_(lambda: (self.top / "munge.socket").exists())
        self.begin("slurmctld", "-D")
        self.begin("slurmd", "-D", "-N", host)
        self.await_(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T").stdout)

    def begin(self, *command):
        with open(self.top / f"{command[0]}.said", "w") as said:
            self.daemons.append(subprocess.Popen(command, env={**os.environ, **self.env}, stdout=said, stderr=subprocess.STDOUT))

    def run(self, *command):
        return subprocess.run(command, env={**os.environ, **self.env}, capture_output=True, text=True, timeout=30)

    def await_(self, done, seconds=30):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end or any(d.poll() is not None for d in self.daemons):
                raise Failure("Slurm does not start\n" + "\n".join(f.read_text(errors="replace")[-1500:] for f in sorted(self.top.glob("*.[sl][ao][ig]*"))))
            time.sleep(0.05)

    def job(self, name):
        """The number of the job of a name."""
        found = self.run("squeue", "-h", "-o", "%A", "-n", name).stdout.split()
        if len(found) != 1:
            raise Failure(f"jobs of the name {name}: {found}")
        return found[0]

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
        shutil.rmtree(self.top, ignore_errors=True)


def slurm(bench):
    return bench.once("slurm", Slurm)


def srun(bench, label, mpi, *words):
    name = re.sub(r"\W", "", label)
    return Job(bench.path(f"ended.{label}"), ["srun", f"--mpi={mpi}", "-n", 4, "--overcommit", "--job-name", name, *words], **slurm(bench).env), name


def words_of(bench, label, mode, steps, nap):
    folder = bench.path(f"ended.{label}")
    return ended.built(bench, 4), mode, folder / "saved", steps, 3, nap, folder / "log"


def check_cancelled(bench, mpi, mode, *how):
    """scancel: SIGTERM, and SIGKILL after KillWait, or the signal alone that it is given."""
    label = f"slurm.{mpi}.{mode}.{''.join(how)}"
    job, name = srun(bench, label, mpi, *words_of(bench, label, mode, 1000, 20))
    job.wait(STEP, 5)
    since = time.monotonic()
    slurm(bench).run("scancel", *how, slurm(bench).job(name))
    codes, status = job.finish(since, ended.MOST), 128 + (getattr(signal, how[0].partition("=")[2]) if how else signal.SIGTERM)
    made = ended.last_step(job)
    if codes != [9 if "a" in mode else status] or ("a" not in mode and f"behind step {made}, which is saved" not in job.said()):
        raise Failure(f"{codes}\n{job.said()}")
    job, _ = srun(bench, label, mpi, *words_of(bench, label, mode, made + 4, 0))
    if any(job.finish()) or ended.resumed_at(job) != made:
        raise Failure(job.said())
    ended.compare(ended.log_of(bench, label), ended.undisturbed(bench, "", made + 4))


def check_pmi2(bench):
    """Open MPI of Debian does not speak PMI-2."""
    job, _ = srun(bench, "slurm.pmi2", "pmi2", *words_of(bench, "slurm.pmi2", "x", 2, 0))
    codes = job.finish()
    text = "hetu: rank 0: srun has started the ranks by PMI-1 or PMI-2 (--mpi=pmi2), by which this MPI cannot connect them; start them by srun --mpi=pmix, or by srun --mpi=none"
    if not any(codes) or job.said().count(text) != 1 or "MPI_Init" in job.said():
        raise Failure(f"{codes}\n{job.said()}")


def tests(bench, a):
    case = functools.partial
    for mpi in ("pmix", "none"):
        yield f"{mpi}.saves", case(check_cancelled, bench, mpi, "s")
        yield f"{mpi}.asks", case(check_cancelled, bench, mpi, "asc", "--signal=SIGUSR1" if mpi == "none" else "--signal=SIGTERM")
    yield "pmix.saves.USR2", case(check_cancelled, bench, "pmix", "sn", "--signal=SIGUSR2"), True
    yield "pmi2", case(check_pmi2, bench)


if __name__ == "__main__":
    missing = [name for name in NEEDED if not shutil.which(name, path=search_path())]
    if missing:
        print(f"slurm: skipped: Slurm is not installed (Debian: slurmctld slurmd slurm-client munge): there is no {', '.join(missing)}")
        sys.exit(SKIPPED)
    os.environ["PATH"] = search_path()
    harness.main("slurm", tests)
