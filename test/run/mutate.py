#!/usr/bin/env python3
"""Tests seeded mutations of the examples' pragmas and strategies: a token is deleted, doubled, or swapped with the next one.

hetucc must not crash or hang: it accepts the program, or ends with exit status 1 and an error. A syntax error's caret is
within one token of the mutation; any other error, or a note to it, is on the mutated line.
"""
import functools
import os
import random
import re

import harness
from harness import EXAMPLES, Failure, run

SOURCES = {"gpt": ["dp2tp2sp"], "llama": ["tp4", "dp2tp2"], "mlp": ["uneven", "zero4"], "custom": ["sp4", "dp2tp2"]}
TOKEN = re.compile(r"[A-Za-z_]\w*|\d+\.?\w*|\.\.|[^\s\w]")
PRAGMA = re.compile(r"^\s*#\s*pragma\s+hspmd\b")
SYNTAX = re.compile(r"expected|unexpected|syntax", re.I)


def pragma_tokens(lines):
    """(line, [(start, end)...]) of every line with tokens to mutate: pragmas with their continuation lines, or all lines of a strategy file."""
    found, inside = [], False
    for i, line in enumerate(lines):
        start = PRAGMA.match(line)
        if not (start or inside):
            continue
        inside = line.rstrip().endswith("\\")
        tokens = [(m.start(), m.end()) for m in TOKEN.finditer(line.rstrip("\\"), start.end() if start else 0)]
        if tokens:
            found.append((i, tokens))
    return found


def strategy_tokens(lines):
    found = []
    for i, line in enumerate(lines):
        tokens = [(m.start(), m.end()) for m in TOKEN.finditer(line.split("//")[0])]
        if tokens:
            found.append((i, tokens))
    return found


def mutate(draw, lines, places):
    """(new lines, line number, first and last column that a syntax error may name, what was done)"""
    i, tokens = draw.choice(places)
    k = draw.randrange(len(tokens))
    kind = draw.choice(["delete", "double", "swap"] if k + 1 < len(tokens) else ["delete", "double"])
    line, (lo, hi) = lines[i], tokens[k]
    if kind == "delete":
        new = line[:lo] + line[hi:]
    elif kind == "double":
        new = line[:hi] + " " + line[lo:]
    else:
        next_lo, next_hi = tokens[k + 1]
        new = line[:lo] + line[next_lo:next_hi] + line[hi:next_lo] + line[lo:hi] + line[next_hi:]
    first = tokens[max(k - 1, 0)][0]
    last = tokens[min(k + 2, len(tokens) - 1)][1] + (hi - lo) + 1
    return lines[:i] + [new] + lines[i + 1:], i + 1, first + 1, last + 1, f"{kind} '{line[lo:hi]}'"


def case_make(draw, bench, number):
    """A mutated source or strategy file: (command's arguments, mutated file, line, columns, label)."""
    example = draw.choice(sorted(SOURCES))
    strategy = draw.choice(SOURCES[example])
    source = EXAMPLES / example / f"{example}.c"
    folder = bench.path(f"mutation{number}") / example
    folder.mkdir(parents=True)
    strategy_file = EXAMPLES / "gpt" / "strategies" / f"{strategy}.strategy"
    original = strategy_file if example == "gpt" and draw.random() < 0.4 else source
    lines = original.read_text().split("\n")
    places = strategy_tokens(lines) if original == strategy_file else pragma_tokens(lines)
    new, line, first, last, what = mutate(draw, lines, places)
    mutated = folder / original.name
    mutated.write_text("\n".join(new).replace('"../common/', f'"{EXAMPLES}/common/'))
    chosen = mutated if original == strategy_file else strategy_file if example == "gpt" else strategy
    return ["--emit=ir", f"--strategy={chosen}", mutated if original == source else source], mutated, line, first, last, f"{original.name}:{line}: {what}"


def judge(p, mutated, line, first, last):
    """What is wrong with hetucc's answer, or None."""
    said = p.stderr
    if p.returncode == 0:
        return None
    if p.returncode != 1:
        return f"exit status {p.returncode}"
    places = [(kind, int(l), int(c), text) for l, c, kind, text in
              re.findall(rf"{re.escape(mutated.name)}:(\d+):(\d+): (error|note|warning): (.*)", said)]
    if "error:" not in said:
        return "no error"
    on_line = [x for x in places if x[1] == line]
    if not on_line:
        return "neither an error nor a note on the mutated line"
    syntax = [x for x in places if x[0] == "error" and SYNTAX.search(x[3])]
    if syntax and not any(x[1] == line and first <= x[2] <= last for x in syntax):
        return f"the caret is not in columns {first} to {last}"
    return None


def check(bench, arguments, mutated, line, first, last):
    p = run([bench.hetucc, *arguments], timeout=30, check=False)
    wrong = judge(p, mutated, line, first, last)
    if wrong:
        raise Failure(f"{wrong}\n{mutated.read_text().splitlines()[line - 1]}\n{p.stderr[-1500:]}")
    return "accepted" if p.returncode == 0 else "refused"


def tests(bench, a):
    draw = random.Random(a.seed)
    for number in range(a.count):
        *case, label = case_make(draw, bench, number)
        yield f"mutate.{number} {label}", functools.partial(check, bench, *case)


def options(a):
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=300 if os.environ.get("HETU_LONG") else 150)


harness.main("run.mutate", tests, options)
