#!/usr/bin/env python3
"""How ranks meet without MPI, how they exchange and how they end: programs of the runtime for CUDA under emulation, and hetu-reshard on the host.

Ranks are started here one by one, as a launcher would, or by mpirun where the stand-in for NCCL connects them.
"""
import array
import functools
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "run"))
import harness
from harness import Failure, launch

CASE = "f32[12]: [0-3]{sum:4} -> [0-3]{0:4}"


def clean_environment():
    """This environment without what a launcher may have put there."""
    prefixes = ("HETU_", "SLURM_", "OMPI_", "PMI", "TORCHELASTIC", "MASTER_")
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    return {n: v for n, v in os.environ.items() if not n.startswith(prefixes) and n not in names} | {"OMP_NUM_THREADS": "1", "HETU_EMULATE_POISON": "1"}


def by_hetu(rank, size, folder):
    return {"HETU_RENDEZVOUS": str(folder), "HETU_RANK": str(rank), "HETU_SIZE": str(size)}


def by_torchrun(rank, size, folder):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size), "MASTER_PORT": "29500",
            "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": f"t{os.getpid()}", "TORCHELASTIC_RESTART_COUNT": "0"}


def by_srun(rank, size, folder):
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(size), "SLURM_LOCALID": str(rank), "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0",
            "SLURM_STEP_NUM_NODES": "1"}


def by_older_srun(rank, size, folder):
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), "SLURM_LOCALID": str(rank), "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "1",
            "SLURM_NNODES": "1"}


class Ranks:
    """Processes that were started together."""

    def __init__(self, command, environments):
        self.processes = [subprocess.Popen([str(c) for c in command], env=clean_environment() | e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                          for e in environments]

    def finish(self, timeout=60):
        """(status, output, errors) of every rank; nothing is left running."""
        end, results = time.time() + timeout, []
        try:
            for p in self.processes:
                out, err = p.communicate(timeout=max(1, end - time.time()))
                results.append((p.returncode, out, err))
        except subprocess.TimeoutExpired:
            raise Failure(f"not done after {timeout} s; before it: {results}") from None
        finally:
            for p in self.processes:
                p.kill()
        return results


def expect_done(results):
    for rank, (status, out, err) in enumerate(results):
        if status or err:
            raise Failure(f"rank {rank}: exit {status}\n{out}{err}")


def expect_failure(results, *texts):
    """All ranks failed, and together they said every text."""
    said = "".join(err for _, _, err in results)
    if not all(status for status, _, _ in results):
        raise Failure(f"some rank did not fail: {results}")
    for text in texts:
        if text not in said:
            raise Failure(f"nobody said: {text}\n{said}")


def expect_empty(folder, names="*"):
    left = list(folder.glob(names))
    if left:
        raise Failure(f"left behind: {left}")


class Programs:
    def __init__(self, build):
        built = build / "test" / "cuda" / "exchange"
        self.steps, self.cuda_reshard, self.reshard = built / "cuda_steps", built / "cuda_reshard", build / "bin" / "hetu-reshard"


# ---- meeting ----

def meet(programs, size, environment, file=None):
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        expect_done(Ranks([programs.steps], [environment(r, size, folder) for r in range(size)]).finish())
        expect_empty(folder)
        if file:
            expect_empty(pathlib.Path("/dev/shm"), f"hetu-*/meeting{file}")


def meet_at_file(programs):
    with tempfile.TemporaryDirectory() as top:
        path = pathlib.Path(top) / "meeting"
        expect_done(Ranks([programs.steps], [by_hetu(r, 3, path) for r in range(3)]).finish())
        expect_empty(path.parent)


def meet_twice(programs):
    """Two launches after another in one folder."""
    with tempfile.TemporaryDirectory() as top:
        for _ in range(2):
            expect_done(Ranks([programs.steps], [by_hetu(r, 2, top) for r in range(2)]).finish())


def meet_after_crash(programs):
    """Rank 0 of an earlier launch was killed while it waited, and its file is still there; the others come first."""
    with tempfile.TemporaryDirectory() as top:
        first = Ranks([programs.steps], [by_hetu(0, 2, top)])
        file = pathlib.Path(top) / "hetu"
        end = time.time() + 20
        while not file.exists() and time.time() < end:
            time.sleep(0.01)
        first.processes[0].kill()
        first.finish()
        if not file.exists():
            raise Failure("the first launch left no file")
        later = Ranks([programs.steps], [by_hetu(1, 2, top)])
        time.sleep(0.5)
        zero = Ranks([programs.steps], [by_hetu(0, 2, top)])
        expect_done(later.finish() + zero.finish())


def meet_over_garbage(programs):
    with tempfile.TemporaryDirectory() as top:
        (pathlib.Path(top) / "hetu").write_bytes(b"hetu-at\0" + bytes(1000))
        expect_failure(Ranks([programs.steps], [by_hetu(r, 2, top) for r in range(2)]).finish(), "is no file of a meeting of this user's")


# ---- not meeting ----

def missing_rank(programs):
    with tempfile.TemporaryDirectory() as top:
        results = Ranks([programs.steps], [by_hetu(r, 4, top) | {"HETU_TIMEOUT": "2"} for r in (0, 1)]).finish(20)
        expect_failure(results, "2 of 4 ranks did not come", "HETU_TIMEOUT: 2, 3")
        expect_empty(pathlib.Path(top))


def missing_zero(programs):
    with tempfile.TemporaryDirectory() as top:
        expect_failure(Ranks([programs.steps], [by_hetu(1, 2, top) | {"HETU_TIMEOUT": "1"}]).finish(20), "rank 0 did not come", "(this is rank 1)")


def other_size(programs):
    with tempfile.TemporaryDirectory() as top:
        results = Ranks([programs.steps], [by_hetu(0, 2, top), by_hetu(1, 3, top)]).finish(20)
        expect_failure(results, "rank 1 was told that there are 3 ranks, rank 0 that there are 2")


def same_rank(programs):
    with tempfile.TemporaryDirectory() as top:
        results = Ranks([programs.steps], [by_hetu(r, 3, top) | {"HETU_TIMEOUT": "2"} for r in (0, 1, 1)]).finish(20)
        expect_failure(results, "another process is rank 1, too")


def alone(programs, environment, text):
    expect_failure(Ranks([programs.steps], [environment]).finish(20), text)


# ---- exchanging and ending ----

def reshard(program, names, extra=()):
    """A conversion on four ranks, checked element by element."""
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        (folder / "fill").mkdir(), (folder / "meet").mkdir()
        for d in range(4):
            array.array("f", [d + i for i in range(12)]).tofile(open(folder / "fill" / f"{d}.bin", "wb"))
        environments = [by_hetu(r, 4, folder / "meet") | dict(e) for r, e in zip(range(4), names)]
        expect_done(Ranks([program, "--fill", folder / "fill", "--dump", folder / "dump", CASE], [e | dict(extra) for e in environments]).finish())
        for d in range(4):
            found = array.array("f", (folder / "dump" / f"{d}.bin").read_bytes())
            if list(found) != [6.0 + 4 * i for i in range(3 * d, 3 * d + 3)]:
                raise Failure(f"device {d} holds {list(found)}")


def killed(programs):
    """A rank dies in a step: the others end soon, and say who was gone."""
    with tempfile.TemporaryDirectory() as top:
        ranks = Ranks([programs.steps, "late"], [by_hetu(r, 3, top) for r in range(3)])
        time.sleep(2)
        ranks.processes[0].send_signal(signal.SIGKILL)
        expect_failure(ranks.finish(20), "rank 0 has ended")


def stalled(programs):
    with tempfile.TemporaryDirectory() as top:
        ranks = Ranks([programs.steps, "late"], [by_hetu(r, 2, top) | {"HETU_TIMEOUT": "3"} for r in range(2)])
        status, _, err = (ranks.processes[1].wait(30), *ranks.processes[1].communicate())
        ranks.processes[0].kill()
        if status != 1 or "HETU_TIMEOUT" not in err or "steps.c:30 sum" not in err:
            raise Failure(f"exit {status}: {err}")


def steps(programs, size, mode="", check=True, **environment):
    return launch(programs.steps, size, *([mode] if mode else []), env=clean_environment() | environment, check=check)


def every_type(programs, environment):
    """Sums over micro-batches and fills."""
    steps(programs, 0, "types", **environment)


def every_step(programs, size, environment, issued):
    """All six steps on `size` ranks that mpirun starts; 0: one process without it. A graph makes those after the second without issuing them again."""
    out = steps(programs, size, **environment).stdout
    if out.count(f"is done, steps were issued {issued} times") != max(size, 1):
        raise Failure(out)


def nccl_after_rendezvous(programs):
    """The ranks meet through a file; MPI is there for the stand-in alone."""
    with tempfile.TemporaryDirectory() as top:
        every_step(programs, 3, {"HETU_RENDEZVOUS": top, "HETU_EMULATE_DEVICES": "3"}, 2)
        expect_empty(pathlib.Path(top))


def one_rank(programs, environment):
    """With HETU_NCCL=1 one rank takes NCCL, too: its collectives run from a stream of their own, and the graph repeats them."""
    with tempfile.TemporaryDirectory() as top:
        every_step(programs, 0, environment | {"HETU_NCCL": "1", "HETU_STAND_IN_LOG": f"{top}/log"}, 2)
        lines = (pathlib.Path(top) / "log.0").read_text().splitlines()
    if lines != ["all-reduce of 1000 float32 (sum) on the communicator of ranks 0"] * 12:
        raise Failure(f"{lines}")


def shared_parts(programs):
    """Groups share what the communicator of all ranks has."""
    with tempfile.TemporaryDirectory() as top:
        launch(programs.cuda_reshard, 4, "--time", "f32[12]: [0-3]{dup:2,sum:2} -> [0-3]{dup:4}",
               env=clean_environment() | {"HETU_EMULATE_DEVICES": "4", "HETU_STAND_IN_LOG": f"{top}/log"})
        for rank in range(4):
            lines = (pathlib.Path(top) / f"log.{rank}").read_text().splitlines()
            first = next((line for line in lines if line.startswith("split off")), "nobody split off")
            if first != f"split off: the communicator of ranks {rank // 2 * 2}, {rank // 2 * 2 + 1}, shares":
                raise Failure(first)


def replays(programs):
    """From the third step on a graph runs, which makes the calls of the second again: as many calls of NCCL with graphs as without."""
    counts = []
    for graph in "10":
        with tempfile.TemporaryDirectory() as top:
            steps(programs, 2, HETU_EMULATE_DEVICES="2", HETU_GRAPH=graph, HETU_STAND_IN_LOG=f"{top}/log")
            counts.append((pathlib.Path(top) / "log.0").read_text().splitlines())
    if counts[0] != counts[1] or len(counts[0]) != 12:
        raise Failure(f"{counts}")


DEVICE_FAULT, EXCHANGE_FAULT = 122, 123  # exit statuses (runtime/base/fail.h)


def fails(programs, size, mode, environment, *texts, status=1):
    p = steps(programs, size, mode, check=False, **environment)
    if p.returncode != status:
        raise Failure(f"ended with {p.returncode}, not {status}: {p.stdout}{p.stderr}")
    for text in texts:
        if text not in p.stderr:
            raise Failure(f"nobody said: {text}\n{p.stderr}")


def no_device(programs, size):
    p = steps(programs, size, check=False, HETU_EMULATE_DEVICES="0")
    lines = [l for l in p.stderr.splitlines() if "hetu:" in l]
    if p.returncode != 1 or not lines or "no CUDA device was found (no CUDA-capable device is detected)" not in lines[0] or (size == 0 and len(lines) > 1):
        raise Failure(f"exit {p.returncode}: {p.stderr}")


def tests(bench, _):
    programs = Programs(bench.build)
    case = functools.partial
    for size in range(1, 5):
        yield f"meet.{size}", case(meet, programs, size, by_hetu)
    for environment, file in (by_torchrun, "-29500-t{}-0"), (by_srun, "-{}-0"), (by_older_srun, "-{}-1"):
        yield f"meet.{environment.__name__}", case(meet, programs, 3, environment, file.format(os.getpid()))
    yield "meet.file", case(meet_at_file, programs)
    yield "meet.twice", case(meet_twice, programs)
    yield "meet.after-crash", case(meet_after_crash, programs)
    yield "meet.over-garbage", case(meet_over_garbage, programs)
    yield "miss.rank", case(missing_rank, programs)
    yield "miss.zero", case(missing_zero, programs)
    yield "miss.size", case(other_size, programs)
    yield "miss.same-rank", case(same_rank, programs)
    yield "miss.no-rank", case(alone, programs, {"HETU_RENDEZVOUS": "/tmp"}, "set HETU_RANK and HETU_SIZE")
    yield "miss.no-place", case(alone, programs, {"HETU_RANK": "0", "HETU_SIZE": "2"}, "set HETU_RENDEZVOUS to a folder that all of them see")
    yield "miss.bad-rank", case(alone, programs, by_hetu(2, 2, "/tmp"), "HETU_RANK=2, but there are 2 ranks")
    yield "miss.bad-number", case(alone, programs, by_hetu("x", 2, "/tmp"), "HETU_RANK=x is no number of a rank")
    yield "miss.bad-timeout", case(alone, programs, by_hetu(0, 2, "/tmp") | {"HETU_TIMEOUT": "soon"}, "HETU_TIMEOUT=soon is no number of seconds")
    one, two, four = [{}] * 4, [{"HETU_NODE": str(r // 2)} for r in range(4)], [{"HETU_NODE": str(r)} for r in range(4)]
    for name, program in ("host", programs.reshard), ("cuda", programs.cuda_reshard):
        yield f"reshard.{name}.one-machine", case(reshard, program, one)
        yield f"reshard.{name}.two-machines", case(reshard, program, two)
        yield f"reshard.{name}.four-machines", case(reshard, program, four)
    yield "end.killed", case(killed, programs)
    yield "end.stalled", case(stalled, programs)
    for order in "issue", "late":
        at = {"HETU_EMULATE_ORDER": order, "HETU_EMULATE_PROTECT": "1"}
        yield f"steps.alone.{order}", case(every_step, programs, 0, at, 2)
        yield f"steps.nccl.one.{order}", case(one_rank, programs, at)
        yield f"steps.types.{order}", case(every_type, programs, at)
        yield f"steps.nccl.{order}", case(every_step, programs, 3, at | {"HETU_EMULATE_DEVICES": "3"}, 2)
        yield f"steps.nccl.no-graph.{order}", case(every_step, programs, 2, at | {"HETU_EMULATE_DEVICES": "2", "HETU_GRAPH": "0"}, 6)
        yield f"steps.staged.{order}", case(every_step, programs, 3, at, 6)
    yield "steps.nccl.rendezvous", case(nccl_after_rendezvous, programs)
    yield "steps.nccl.shared-parts", case(shared_parts, programs)
    yield "steps.replays", case(replays, programs)
    yield "fault.alone", case(fails, programs, 0, "fault", {}, "hetu: step 3 found element 7 wrong (at steps.c:20 begin)")
    yield "fault.nccl", case(fails, programs, 2, "fault", {"HETU_EMULATE_DEVICES": "2"}, "hetu: rank 1: step 3 found element 7 wrong (at steps.c:20 begin)")
    yield "fault.staged", case(fails, programs, 2, "fault", {}, "hetu: rank 1: step 3 found element 7 wrong (at steps.c:20 begin)")
    yield "nccl.error", case(fails, programs, 2, "", {"HETU_EMULATE_DEVICES": "2", "HETU_STAND_IN_FAIL": "5"}, "NCCL failed: remote process exited",
                             "the device last began all-reduce of steps.c:30: all-reduce", status=EXCHANGE_FAULT)
    for code, status in (214, DEVICE_FAULT), (999, DEVICE_FAULT), (700, 1), (719, 1):
        yield f"fault.device-{code}", case(fails, programs, 0, "", {"HETU_EMULATE_FAULT": f"{code}:4:0"}, "CUDA failed at", status=status)
    yield "fault.device.nccl", case(fails, programs, 2, "", {"HETU_EMULATE_DEVICES": "2", "HETU_EMULATE_FAULT": "214:4:1"}, "hetu: rank 1: GPU 1 is at fault: uncorrectable ECC error",
                                    status=DEVICE_FAULT)
    yield "nccl.late", case(fails, programs, 2, "late", {"HETU_EMULATE_DEVICES": "2", "HETU_TIMEOUT": "3"},
                            "hetu: rank 1 ends in step 3", "rank 0 keeps rank 1 waiting for 3 s (HETU_TIMEOUT)", "its device last began all-reduce of steps.c:30: all-reduce")
    yield "no-device.alone", case(no_device, programs, 0)


if __name__ == "__main__":
    harness.main("cuda.exchange", tests)
