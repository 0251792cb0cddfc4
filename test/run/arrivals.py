#!/usr/bin/env python3
"""Tests options that change a program with all ways in which a strategy arrives: each program goes on under the strategy with one device's losses, or says once why it cannot and what to do.

A strategy arrives by ht_prepare, by ht_balance, at the start (HETU_STRATEGY, heturun), or when training resumes from a checkpoint. A strategy that would always be refused is not tried again: hetucc runs at most once for it.
"""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import harness
from harness import Failure, compare_losses

sys.path.insert(0, str(harness.ROOT / "test" / "cuda" / "run"))
import emulated

SOURCE = harness.ROOT / "test" / "run" / "arrivals.c"
SLEEPING = SOURCE.with_name("sleeping.h").read_text()
RANKS, STEPS, BALANCED, NO_STRATEGY = 4, 4, 40, 121  # the last one is the status of a program that cannot begin under a strategy
LATE = """strategy late
  split batch:dp
  pipeline microbatches(4) rows(8)
    stage devices(0-1) mesh(dp:2) layers(0)
    stage devices(2-3) mesh(dp:2) layers(1)
end strategy
"""
OWN = "strategy own\n  split batch:dp\n  stage devices(0-3) mesh(dp:4)\nend strategy\n"
PAIR = OWN + "strategy tensor\n  split hidden:tp\n  stage devices(0-3) mesh(tp:4)\nend strategy\n"
CLUSTER = {"classes": {"c": {"arithmetic": 1e11, "memory_bandwidth": 1e10, "memory": 2 ** 30, "products": {"f32": [[1e6, 1e10]]}}}, "devices": [{"class": "c", "host": h, "count": 2} for h in "ab"],
           "links": {"local": {"latency": 1e-6, "bandwidth": 1e10}, "remote": {"latency": 2e-5, "bandwidth": 2.5e7}}}
LOSS = """#include <hetu/hetu.h>
ht_tensor loss_of(ht_tensor y, ht_tensor x);
ht_tensor loss_of(ht_tensor y, ht_tensor x)
{
    ht_tensor error = ht_sub(y, ht_mul(x, x));
    return ht_mean(ht_mul(error, error));
}
"""
NAMED, FILE = "--strategy=named", "--strategy=own.strategy"

# What compiles the program in a folder that has arrivals.c, loss.c, sizes.h below headers, cluster.json and the strategies: commands, words of hetucc, {"run": words} or {"shell": line}.
OPTIONS = {
    "plain": [[NAMED, "arrivals.c"]],
    "file": [[FILE, "arrivals.c"]],
    "cluster": [[FILE, "--cluster=cluster.json", "arrivals.c"]],
    "cluster.remarks": [[NAMED, "--cluster=cluster.json", "-Rcomm", "-Rmemory", "-Rsharding", "-Wimplicit-reshard", "arrivals.c"]],
    "cluster.apart": [["-c", FILE, "--cluster=cluster.json", "arrivals.c"], ["arrivals.o"]],
    "remarks": [[FILE, "-Rcomm", "-Rswitch", "arrivals.c"]],
    "implicit": [[FILE, "-Wimplicit-reshard", "arrivals.c"]],
    "bf16": [["-DELEMENTS=HT_BF16", FILE, "arrivals.c"]],
    "bf16.cluster": [["-D", "ELEMENTS=HT_BF16", FILE, "--cluster", "cluster.json", "arrivals.c"]],
    "define": [["-DWIDTH=10", NAMED, "arrivals.c"]],
    "header": [["-DSIZES", "-Iheaders", FILE, "arrivals.c"]],
    "include": [["-DSIZES", "-include", "headers/sizes.h", "-iquote", "headers", FILE, "arrivals.c"]],
    "several": [["--strategy=pair.strategy:own", "--strategy=pair.strategy:tensor", "arrivals.c"]],
    "several.named": [["--strategy=pair.strategy:tensor", NAMED, FILE, "arrivals.c"]],
    "planned": [["--plan", "--memory=1G", "--cluster=cluster.json", "arrivals.c", "-o", "plan.strategy"],
                ["--strategy=plan.strategy", "--cluster=cluster.json", "arrivals.c"]],
    "apart": [["-c", FILE, "arrivals.c"], ["arrivals.o"]],
    "waits": [["-c", "-DAPART", FILE, "arrivals.c"], ["-c", "loss.c"], ["arrivals.o", "loss.o"]],
    "waits.cluster": [["-c", "-DAPART", "arrivals.c"], ["-c", "loss.c"], [FILE, "--cluster=cluster.json", "-Rcomm", "arrivals.o", "loss.o"]],
    "archive": [["-c", "-DAPART", FILE, "arrivals.c"], ["-c", "loss.c"], {"run": ["ar", "rcs", "libloss.a", "loss.o"]}, ["arrivals.o", "-L.", "-lloss"]],
    "sources": [["-DAPART", FILE, "--cluster=cluster.json", "arrivals.c", "loss.c"]],
    "code": [["-O3", "-g", "-march=native", "-std=gnu11", "-ffunction-sections", "-Wl,--gc-sections", FILE, "arrivals.c"]],
    "passes": [["--no-fuse", "--no-views", "--no-chunks", FILE, "arrivals.c"]],
    "sizes": [["--chunk=64", "--bucket=64", "--no-overlap", FILE, "arrivals.c"]],
    "kept": [["--report=report.json", "--diagnostics=log.sarif", "-MMD", FILE, "arrivals.c"]],
    "response": [["@words", "arrivals.c"]],
    "moved": [["-DSIZES", "-Iheaders", FILE, "--cluster=cluster.json", "arrivals.c"]],
    "hidden": [["-fvisibility=hidden", FILE, "arrivals.c"]],
    "linked": [["-c", FILE, "arrivals.c"], {"link": ["arrivals.o"]}],
    "input": [["-x", "c", "-", FILE]],
    "edited": [["--emit=ir", "--stop-after=seed_layouts", FILE, "arrivals.c", "-o", "edited.ir"], ["--resume=edited.ir", FILE, "arrivals.c"]],
    "paths": [{"shell": 'CPATH=headers "$HETUCC" -O0 -DSIZES --strategy=own.strategy arrivals.c -o program'}],
    "paths.apart": [{"shell": 'C_INCLUDE_PATH=/nowhere:headers "$HETUCC" -O0 -c -DSIZES --strategy=own.strategy arrivals.c'}, ["arrivals.o"]],
    "piped": [{"shell": '"$HETUCC" -O0 --strategy=<(cat own.strategy) arrivals.c -o program'}],
    "piped.named": [{"shell": '"$HETUCC" -O0 --strategy=<(cat pair.strategy):own arrivals.c -o program'}],
    "piped.cluster": [{"shell": '"$HETUCC" -O0 --strategy=named --cluster=<(cat cluster.json) arrivals.c -o program'}],
    "piped.stdin": [{"shell": '"$HETUCC" -O0 --strategy=/dev/stdin arrivals.c -o program < own.strategy'}],
    "alone": [["arrivals.c"]],
    "emulated": [["-DFAST", "--backend=cuda", "--emit=c", FILE, "arrivals.c", "-o", "folder"], {"emulated": "folder"}],
}
# What is refused, whatever arrives: a part of the message, which says what to do.
REFUSED = {
    "hidden": "link the program by hetucc, or with -rdynamic, and do not hide its functions (-fvisibility)",
    "linked": "link the program by hetucc, or with -rdynamic, and do not hide its functions (-fvisibility)",
    "input": "the program was compiled from standard input, which is gone; give hetucc a file",
    "emulated": "a program for GPUs has no strategies made while it runs; give hetucc --strategy=FILE for each",
    "piped": "the program was compiled with --strategy=/dev/fd/",
    "piped.named": "the program was compiled with --strategy=/dev/fd/",
    "piped.cluster": "the program was compiled with --cluster=/dev/fd/",
    "piped.stdin": "the program was compiled with --strategy=/dev/stdin, a pipe or standard input, which is gone; give hetucc a file",
    "edited": "the program was compiled with --resume, and another strategy cannot be made of that text; compile it from its sources alone",
}
# What the ordinary run tries; the others with HETU_LONG=1.
USUAL = {"cluster": ["prepare", "balance", "start", "resume"], "waits.cluster": ["prepare"], "remarks": ["prepare"], "linked": ["prepare"], "paths": ["prepare"], "piped": ["prepare", "start"], "piped.cluster": ["balance"], "piped.stdin": ["prepare"]}


def folder_of(bench, option):
    """A folder with the program that an option makes of the source."""
    def make():
        top = bench.path(f"arrivals.{option}")
        (top / "headers").mkdir(parents=True)
        for name, text in {"arrivals.c": SOURCE.read_text(), "sleeping.h": SLEEPING, "loss.c": LOSS, "headers/sizes.h": "#define HIDDEN 24\n", "cluster.json": json.dumps(CLUSTER), "late.strategy": LATE,
                           "own.strategy": OWN, "pair.strategy": PAIR, "words": "--strategy=own.strategy --cluster=cluster.json -DWIDTH=14"}.items():
            (top / name).write_text(text)
        for words in OPTIONS[option]:
            if isinstance(words, dict) and "link" in words:
                library = bench.build / "lib"
                harness.run(["cc", *words["link"], "-o", "program", f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"], cwd=top)
            elif isinstance(words, dict) and "emulated" in words:
                emulated.Bench.build_emulated(bench, top / words["emulated"], top / "program")
            elif isinstance(words, dict):
                harness.run(words["run"] if "run" in words else ["bash", "-c", words["shell"]], cwd=top, env={"HETUCC": str(bench.hetucc)})
            else:
                made = "-c" in words or "-o" in words
                source = (top / "arrivals.c").open() if "-" in words else None
                command = [str(bench.hetucc), "-O0", *words, *([] if made else ["-o", "program"])]
                p = subprocess.run(command, capture_output=True, text=True, cwd=top, stdin=source, timeout=300)
                if p.returncode:
                    raise Failure(f"{' '.join(command)}\nexit {p.returncode}\n{p.stderr[-3000:]}")
        return top
    return bench.once(("arrivals", option), make)


def flags_of(option):
    """The options with which plain C is the same model."""
    joined = " ".join(w for words in OPTIONS[option] for w in (words if isinstance(words, list) else [words.get("shell", "")])) + (" -DWIDTH=14" if option == "response" else "")
    return tuple(f"-D{m}" for m in re.findall(r"-D ?(WIDTH=\d+|ELEMENTS=\w+|SIZES|FAST)", joined))


def wanted(bench, option, steps):
    """One device's losses."""
    flags = flags_of(option)

    def make():
        out, library, headers = bench.path("plain" + "".join(flags)), bench.build / "lib", folder_of(bench, option) / "headers"
        harness.run(["cc", "-std=gnu17", "-O1", *harness.WARNINGS, *flags, f"-I{headers}", f"-I{harness.ROOT}/include", SOURCE, "-o", out, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
        return losses(harness.run([out, f"steps={BALANCED}"]).stdout)
    return bench.once(("one device", flags), make)[:steps]


def losses(text):
    return [float(x) for x in re.findall(r"^loss \d+ (\S+)$", text, re.M)]


def trained(bench, option, words, steps, first=0, cwd=None, may=0, **env):
    """Runs the program; its output, once its losses are one device's."""
    top = folder_of(bench, option)
    p = subprocess.run(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", str(RANKS), str(top / "program"), *words], capture_output=True, text=True,
                               timeout=300, cwd=cwd or top, env={**os.environ, **harness.MPI, "OMP_NUM_THREADS": "1", **env})
    if p.returncode not in (0, may):
        raise Failure(f"{' '.join(words)}: exit {p.returncode}\n{p.stdout}{p.stderr[-3000:]}")
    if not p.returncode:
        compare_losses(losses(p.stdout), wanted(bench, option, first + steps)[first:], 2e-2 if "bf16" in option else 1e-4)
    return p


def elsewhere(option):
    """The folder in which the program runs, and the strategy's file."""
    return "/" if option == "moved" else None


def late(bench, option):
    return str(folder_of(bench, option) / "late.strategy")


def check(option, p, done):
    """The switch was made, or it was refused once, with what to do."""
    refused = REFUSED.get(option)
    said = [l for l in p.stderr.splitlines() if l.startswith("hetu:")]
    if refused:
        if done or sum(refused in l for l in said) != 1 or p.stderr.count("is being made") > 1:
            raise Failure(f"not refused once by {refused!r}\n{p.stdout}{p.stderr[-3000:]}")
        return "refused"
    if not done or [l for l in said if "balance: step" not in l]:
        raise Failure(f"no switch\n{p.stdout[-500:]}{p.stderr[-3000:]}")
    return ""


def prepare(bench, option):
    """ht_prepare; once more, for what was refused is not made again."""
    word = late(bench, option)
    p = trained(bench, option, [f"steps={STEPS}", f"prepare={word}", f"to={word}", f"steps={STEPS}"], 2 * STEPS, cwd=elsewhere(option))
    return check(option, p, "switch 1" in p.stdout)


def slowed(bench, option, **more):
    """ht_balance, and a rank becomes slow. On a loaded machine the strategy is there too late, and the same steps are made again, with pauses."""
    pauses = [["run=sleep %g" % seconds, "steps=2"] * (BALANCED // 4) for seconds in (0.5, 4)]
    for words in [f"steps={BALANCED}"], *([f"steps={BALANCED // 2}", *pause] for pause in pauses):
        p = trained(bench, option, ["balance", *words], BALANCED, NAP="40000", SLOW="2", **more)
        if option in REFUSED or 'under strategy "balanced' in p.stderr:
            break
    return check(option, p, 'under strategy "balanced' in p.stderr)


def balance(bench, option):
    return slowed(bench, option, cwd=elsewhere(option))


def start(bench, option):
    """A program that begins under the strategy."""
    p = trained(bench, option, [f"steps={STEPS}"], STEPS, cwd=elsewhere(option), may=NO_STRATEGY, HETU_STRATEGY=late(bench, option))
    return check(option, p, not p.returncode)


def elastic(bench, option):
    """heturun begins with the strategy, and leaves out one that the program cannot have."""
    top = folder_of(bench, option)
    (top / "slots").write_text("localhost slots=4\n")
    p = harness.run([bench.build / "bin" / "heturun", "--elastic", top / "late.strategy", "--slots", top / "slots", "--", top / "program", f"steps={STEPS}"], check=False, cwd=elsewhere(option) or top,
                    env={"OMP_NUM_THREADS": "1", "HETU_TIMEOUT": "2"})
    if not p.returncode:
        compare_losses(losses(p.stdout), wanted(bench, option, STEPS), 2e-2 if "bf16" in option else 1e-4)
    refused = REFUSED.get(option)
    if refused and (not p.returncode or p.stderr.count(refused) != 1):
        raise Failure(f"not refused once by {refused!r}\n{p.stdout}{p.stderr[-3000:]}")
    if not refused and (p.returncode or "left out" in p.stderr):
        raise Failure(f"exit {p.returncode}\n{p.stdout[-500:]}{p.stderr[-3000:]}")
    return "refused" if refused else ""


def resume(bench, option):
    """Training goes on from a checkpoint under the strategy."""
    saved = folder_of(bench, option) / "saved"
    trained(bench, option, [f"steps={STEPS}", f"save={saved}"], STEPS)
    word = late(bench, option)
    p = trained(bench, option, [f"prepare={word}", f"resume={saved}", f"to={word}", f"steps={STEPS}"], STEPS, STEPS, cwd=elsewhere(option))
    return check(option, p, "switch 1" in p.stdout)


def counted(bench, name):
    """A folder with a program whose C compiler notes each of its runs in the file `calls`."""
    top = bench.path(f"arrivals.{name}")
    top.mkdir()
    (top / "cc.sh").write_text(f"#!/bin/sh\necho call >> {top}/calls\nexec cc \"$@\"\n")
    (top / "cc.sh").chmod(0o755)
    for file, text in {"arrivals.c": SOURCE.read_text(), "sleeping.h": SLEEPING, "own.strategy": OWN, "late.strategy": LATE, "later.strategy": LATE.replace("late", "later"), "bad.strategy": LATE.replace("dp:2", "tp:2").replace("late", "bad")}.items():
        (top / file).write_text(text)
    harness.run([bench.hetucc, "-O0", FILE, "arrivals.c", "-o", "program"], cwd=top, env={"CC": str(top / "cc.sh")})
    (top / "calls").write_text("")
    return top


def said_by(top, words, **env):
    p = harness.run(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", RANKS, top / "program", *words], cwd=top, env={**harness.MPI, "OMP_NUM_THREADS": "1", **env})
    return p.stdout, p.stderr, len((top / "calls").read_text().splitlines())


def changed(bench):
    """A source that is another by now: the program takes no strategy of it, and has none made again."""
    top = counted(bench, "changed")
    (top / "arrivals.c").write_text(SOURCE.read_text().replace("0.2f", "0.3f"))
    once = said_by(top, ["steps=1", "prepare=late.strategy", "to=late", "steps=1"])
    (top / "calls").write_text("")
    twice = said_by(top, ["steps=1", "prepare=late.strategy", "to=late.strategy", "prepare=late.strategy", "to=late.strategy", "prepare=later.strategy", "to=later.strategy", "steps=1"])
    if not once[2] or twice[2] != once[2] or twice[0].count("switch 0") != 3 or twice[1].count("have changed since it was compiled: compile it again") != 3:
        raise Failure(f"the C compiler ran {once[2]} and {twice[2]} times\n{twice[0]}{twice[1][-2000:]}")
    _, said, _ = said_by(top, ["balance", f"steps={BALANCED}"], NAP="40000", SLOW="2")
    if said.count("is being made") != 1 or said.count("nothing more is planned") != 1 or said.count("compile it again") != 1:
        raise Failure(f"ht_balance tried again\n{said[-3000:]}")


def mended(bench):
    """A strategy that hetucc refuses is made again when it was written anew, and not before."""
    top = counted(bench, "mended")
    p = said_by(top, ["steps=1", *["prepare=bad.strategy", "to=bad.strategy"] * 3, "run=sed s/late/bad/ late.strategy > bad.strategy", "prepare=bad.strategy", "to=bad.strategy", "steps=1"])
    if p[1].count("warning: no stage") != 1 or "error:" in p[1] or p[0].count("switch 0") != 3 or p[0].count("switch 1") != 1:
        raise Failure(f"{p[0]}{p[1][-3000:]}")


def tests(bench, _):
    yield "again.changed", functools.partial(changed, bench)
    yield "again.mended", functools.partial(mended, bench)
    for option in OPTIONS:
        for way in prepare, balance, start, elastic, resume:
            if option == "emulated" and way == balance:  # what is measured there is said to be measured on CPUs alone
                continue
            yield f"{option}.{way.__name__}", functools.partial(way, bench, option), way.__name__ not in USUAL.get(option, [])


if __name__ == "__main__":
    harness.main("arrivals", tests)
