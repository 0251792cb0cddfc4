#!/usr/bin/env python3
"""Measures how long training pauses when the strategy changes.

    switching.py BUILD

12 layers with AdamW on 8 ranks of this machine (switching.c). Changes go between strategies of the
binary, to a strategy that is compiled while the program runs, and, for comparison, through a
checkpoint and a restart. The same program with few parameters shows the time without the transfer.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RANKS, TIMES = 8, 5
WIDTHS = {"thin": 8, "wide": 256}  # EMBED of the program; `thin` has almost nothing to move
PAIRS = (("tp8", "dp8"), ("dp8", "pipes"), ("pipes", "tp8"))
NEW = """strategy {name}
  split heads:tp  ffn:tp
  pipeline microbatches(4) rows(1)
    stage devices(0-2) mesh(tp:3) layers(0-{last})
    stage devices(3) layers({next}-11)
  pipeline microbatches(2) rows(2)
    stage devices(4-7) mesh(tp:4)
end strategy
"""
BESIDE, READY, COMPILES, STANDS = 0.1, 5.0, 0.5, 0.2  # limits in seconds


def run(*command, **environment):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    if p.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit {p.returncode}\n{(p.stdout + p.stderr)[-2000:]}")
    return p.stdout


def launch(program, *arguments, **environment):
    """Returns {word: number} from the output of the ranks."""
    said = run("mpirun", "-n", RANKS, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", program, *arguments, OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1", **environment)
    return {word: float(number) for word, number in re.findall(r"([a-z]+) ([0-9.]+)", said)}


def build_programs(hetucc, work):
    built = {}
    for label, width in WIDTHS.items():
        built[label] = work / label
        run(hetucc, *(f"--strategy={name}" for name in ("tp8", "dp8", "pipes")), "-O2", f"-DEMBED={width}", HERE / "switching.c", "-o", built[label], "-lm")
    return built


def new_strategy(work, name, last):
    file = work / f"{name}.strategy"
    file.write_text(NEW.format(name=name, last=last, next=last + 1))
    return file


def compile_seconds(hetucc, file, work):
    """Returns hetucc's processor time, without the C compiler, for a new strategy."""
    child = subprocess.Popen([str(hetucc), *(f"--strategy={name}" for name in ("tp8", "dp8", "pipes")), f"--strategy={file}", "--known=3", "--emit=c", "-O2",
                              f"-DEMBED={WIDTHS['wide']}", str(HERE / "switching.c"), "-o", str(work / "arrived")], stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"hetucc: {said}")
    return usage.ru_utime + usage.ru_stime


def restart_seconds(program, work, strategy):
    """Returns the seconds from the end of a step to the end of the next, through a checkpoint."""
    folder = work / f"saved.{strategy}"
    begun = launch(program, "save", folder, HETU_STRATEGY="tp8")["begun"]
    return launch(program, "resume", folder, HETU_STRATEGY=strategy)["on"] - begun


def rows(hetucc):
    """Returns table rows: subject, method, value, limit, and whether the limit holds."""
    table = []

    def add(what, told, value, limit=None):
        table.append((what, told, value, "" if limit is None else f"<= {limit}", limit is None or value <= limit))

    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        programs = build_programs(hetucc, work)
        for a, b in PAIRS:
            found = {label: launch(program, "between", a, b, TIMES) for label, program in programs.items()}
            for way, to in ("there", b), ("back", a):
                add("a switch beside its transfer, seconds", f"{b if to == a else a} to {to}", found["thin"][way], BESIDE)
                add("a switch, seconds", f"{b if to == a else a} to {to}, 9.4 M parameters", found["wide"][way])
        add("a checkpoint and a new start, seconds", "tp8 to dp8, 9.4 M parameters", restart_seconds(programs["wide"], work, "dp8"))
        add("hetucc for a strategy that arrives, seconds", "without the C compiler", compile_seconds(hetucc, new_strategy(work, "timed", 5), work), COMPILES)
        waited = launch(programs["wide"], "wait", new_strategy(work, "waited", 6))
        add("a new strategy in force, seconds", "after ht_prepare, transfer included", waited["call"] + waited["switch"], READY)
        beside = launch(programs["thin"], "beside", new_strategy(work, "ready", 7))
        add("training stands still for one, seconds", "beside the transfer", beside["call"] + beside["switch"], STANDS)
    return table


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    found = rows(build / "bin" / "hetucc")
    for what, told, value, wanted, good in found:
        print(f"{what:44} {told:36} {value:7.3f} {wanted:>8}  {'' if good else 'missed'}")
    sys.exit(not all(row[-1] for row in found))


if __name__ == "__main__":
    main()
