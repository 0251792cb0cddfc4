#!/usr/bin/env python3
"""Compiles random models by the plain C compiler and by hetucc: both accept the same models, with equal
results, and refuse the same models, because of the same operator. front_doors_text.py writes the models.

    front_doors.py --build BUILD --seed 1 --count 1 --models 40      `count` groups of models from seed 1 on
    front_doors.py --build BUILD --seed 7 --models 40 --model 13      one model, whose text is shown
"""
import math
import re

import front_doors_text
import harness
from harness import Failure, run

harness.OPTIMISED = "-O1"

CLOSE = 3e-5
PARTS = ("ht_mass", "ht_nll", "ht_row_max")  # of ht_cross_entropy


def errors(bench, models, source):
    """By model: the first error that hetucc has in it, for as many errors as it shows."""
    source.write_text(front_doors_text.program_text(models))
    p = run([bench.hetucc, "--stop-after=frontend", source], timeout=120, check=False)
    starts = []
    for number, text in enumerate(source.read_text().splitlines(), 1):
        start = re.match(r"static ht_tensor model(\d+)", text)
        if start:
            starts.append((number, int(start.group(1))))
    first = {}
    for line, message in re.findall(r"^\S+?\.c:(\d+):\d+: error: (.*)$", p.stderr, re.M):
        first.setdefault([m for at, m in starts if at <= int(line)][-1], message)
    if p.returncode != bool(first):
        raise Failure(f"hetucc {source}: exit {p.returncode}\n{p.stderr[-2000:]}")
    return first


def refusals(bench, models, source):
    """By model: the first error that hetucc has in it."""
    refused, more = {}, True
    while more:
        more = errors(bench, [m for m in models if m.index not in refused], source)
        refused.update(more)
    source.write_text(front_doors_text.program_text(models))
    return refused


def read(text):
    found = {}
    for line in text.splitlines():
        words = line.split(" ")
        found[words[0], words[1]] = [float(v) for v in words[2:]]
    return found


def compare(found, wanted):
    if set(found) != set(wanted):
        return f"other values: {sorted(set(found) ^ set(wanted))}"
    for key, want in wanted.items():
        for have, should in zip(found[key], want):
            same = have == should or (math.isnan(have) and math.isnan(should))
            if not same and not abs(have - should) <= CLOSE * (1 + abs(should)):
                return f"{' '.join(key)}: {found[key][:4]} by hetucc, {want[:4]} as plain C"
    return ""


def subject(message):
    """What a refusal is about: an operator without the ending of its inner form, or the whole kind of thing."""
    operator = re.search(r"\bht_\w+", message)
    if operator:
        name = re.sub(r"(_at|_stats|_positions)$", "", operator.group(0))
        return "ht_cross_entropy" if name in PARTS else name
    for word in ("parameter", "input", "output", "shape", "dimension"):
        if word in message:
            return word
    return "assertion" if "ssert" in message else message


def check_group(bench, seed, a):
    folder = bench.path(f"seed{seed}")
    folder.mkdir(parents=True, exist_ok=True)
    models = [front_doors_text.Model(seed, i, i % 2 == 1) for i in range(a.models)]
    if a.model is not None:
        models = [m for m in models if m.index == a.model]
        print(models[0].text())
    refused = refusals(bench, models, folder / "all.c")
    library = bench.build / "lib"
    run(["cc", "-std=gnu17", "-O0", "-w", f"-I{harness.ROOT}/include", folder / "all.c", "-o", folder / "plain", f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    plain = {m.index: run([folder / "plain", m.index], check=False, timeout=30, env={"OMP_NUM_THREADS": "1"}) for m in models}
    taken = [m for m in models if m.index not in refused]
    (folder / "taken.c").write_text(front_doors_text.program_text(taken))
    run([bench.hetucc, "-O0", "-w", folder / "taken.c", "-o", folder / "one", "-lm"], timeout=300)
    wrong = []
    for m in models:
        p = plain[m.index]
        message = (p.stderr.strip().splitlines() or ["no message"])[-1]
        if m.index in refused:
            if p.returncode == 0:
                wrong.append(f"model {m.index}: hetucc alone refuses it: {refused[m.index]}")
            elif p.returncode != 1 and "ssert" not in message:
                wrong.append(f"model {m.index}: plain C ends with {p.returncode}: {message}")
            elif subject(message) != subject(refused[m.index]) and "ssert" not in message:
                wrong.append(f"model {m.index}: hetucc says \"{refused[m.index]}\", plain C \"{message}\"")
            continue
        q = run([folder / "one", m.index], check=False, timeout=30, env={"OMP_NUM_THREADS": "1"})
        if p.returncode or q.returncode:
            if not (p.returncode == q.returncode == 1):
                wrong.append(f"model {m.index}: plain C ends with {p.returncode}, hetucc's with {q.returncode}: {message} / {q.stderr.strip()[-300:]}")
            continue
        difference = compare(read(q.stdout), read(p.stdout))
        if difference:
            wrong.append(f"model {m.index}: {difference}")
    if wrong:
        raise Failure("\n".join(wrong))
    return f"{len(taken)} taken, {len(refused)} refused"


def tests(bench, a):
    for seed in range(a.seed, a.seed + a.count):
        yield f"seed{seed}", lambda seed=seed: check_group(bench, seed, a)


def options(a):
    a.add_argument("--seed", type=int, default=1, help="the first seed")
    a.add_argument("--count", type=int, default=1, help="how many groups")
    a.add_argument("--models", type=int, default=40, help="models a group; every second has a mistake")
    a.add_argument("--model", type=int, help="this model alone")


harness.main("run.doors", tests, options)
