#!/usr/bin/env python3
"""Each pair of a schedule, ZeRO 0 to 3, recomputation, and unequal pipelines occurs in a program that gives what one device gives.

Cases: (a) stages of 2 + 2 devices with 3 + 5 layers and 5 micro-batches of 2 rows, beside 2 + 1 devices with 6 + 2 layers and 3 micro-batches of 3 rows; (b) pipelines of one stage, of 3, 2 and 1 devices; (c) stages of 2, 2, 2,
2 devices beside 2, 2, 2, 1, 1; (d) four pipelines on 16 ranks; (e) two towers, and values that are read three stages later; (f) gpt's tied table on 4 and 3 devices; (g) the sequence cut 4 ways: gathered; by heads (Ulysses), by
weights; as ring attention, zigzag; 2 x 2 of the last two; some with packed sequences. Under `interleaved` most stages have two ranges of layers. gpt and llama alternate, as do AdamW (losses) and SGD (losses and parameters);
HETU_LONG trains each program by both, otherwise one program of each case is trained. As in pipelines.py all holders of a parameter hold the same bits after every step. (a), (b) and each kind of (g) are trained in bf16, too.
"""
import dataclasses
import functools
import itertools
import re

import harness
import pipelines
from harness import Failure, compare_losses, compare_parameters
from pipelines import GPT, LLAMA, LONG

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero_bubble")
ZEROS = (0, 1, 2, 3)
RECOMPUTES = ("none", "selective", "full")
OPTIMIZERS = ("AdamW", "SGD")
TENSOR = "split heads:tp  ffn:tp  vocab:tp"
SOURCES = {**{model: pipelines.source_of(model) for model in ("gpt", "llama", "towers")}, "packed": pipelines.HERE / "Inputs" / "packed.c"}
SIZES = {"gpt": GPT, "llama": LLAMA, "towers": {}, "packed": {"LAYERS": 8}}
STEPS = 3
LOSSES = {"AdamW": 1e-5, "SGD": 1e-6}  # relative; AdamW makes the first gradients' rounding errors large: one device's own losses differ by 2e-6 from one BLAS kernel to another


def stage(devices, mesh, layers, ranges=None):
    """A stage: its layers, and what an interleaved schedule has in their place."""
    return devices, f"mesh({mesh})" if mesh else "", layers, ranges or layers


def tensor(first, count):
    return f"{first}-{first + count - 1}" if count > 1 else f"{first}", f"tp:{count}" if count > 1 else ""


# Pipelines of (micro-batches, rows, stages).
A = [(5, 2, [stage(*tensor(0, 2), "0-2", "0-1, 4"), stage(*tensor(2, 2), "3-7", "2-3, 5-7")]),
     (3, 3, [stage(*tensor(4, 2), "0-5", "0-2, 6"), stage(*tensor(6, 1), "6-7", "3-5, 7")])]
B = [(3, 3, [stage(*tensor(0, 3), "0-7")]), (2, 4, [stage("3, 5", "tp:2", "0-7")]), (2, 1, [stage("4", "", "0-7")])]
C = [(3, 3, [stage(*tensor(2 * s, 2), f"{2 * s}-{2 * s + 1}", f"{s}, {s + 4}") for s in range(4)]),
     (5, 2, [stage(*tensor(8, 2), "0-2", "0, 5"), stage(*tensor(10, 2), "3-4", "1-2, 6"), stage(*tensor(12, 2), "5", "3"), stage(*tensor(14, 1), "6", "4"), stage(*tensor(15, 1), "7")])]
D = [(2, 3, [stage(*tensor(0, 4), "0-3", "0-1, 4-5"), stage(*tensor(4, 3), "4-7", "2-3, 6-7")]),
     (3, 2, [stage(*tensor(7, 2), "0-6"), stage(*tensor(9, 1), "7")]),
     (5, 1, [stage(*tensor(10, 1), "0-1", "0-1, 6"), stage(*tensor(11, 1), "2-5", "2-3, 7"), stage(*tensor(12, 1), "6-7", "4-5")]),
     (1, 2, [stage(*tensor(13, 3), "0-7")])]
E = [(4, 3, [stage(*tensor(0, 1), "vision: 0-2"), stage(*tensor(1, 1), "text: 0-2"), stage(*tensor(2, 2), "0-1"), stage(*tensor(4, 1), "2"), stage(*tensor(5, 1), "plain, head")]),
     (7, 1, [stage(*tensor(6, 3), "vision: 0-2, text: 0-2, 0", "vision: 0-2, text: 0-2, 1"), stage(*tensor(9, 1), "1-2, plain, head", "0, 2, plain, head")])]
F = [(19, 1, [stage(*tensor(0, 4), "0-3", "0-1, 4-5"), stage(*tensor(4, 3), "4-7", "2-3, 6-7")])]


def sequences(mesh, other):
    """A pipeline of two stages, of which the first cuts the sequence 4 ways, beside one device."""
    return [(3, 2, [stage("0-3", mesh, "0-4", "0-2, 5-6"), stage("4-5", other, "5-7", "3-4, 7")]), (1, 1, [stage("6", "", "0-7")])]


@dataclasses.dataclass
class Case:
    lines: str
    pipelines: list
    models: tuple = ("gpt", "llama")


CASES = {
    "a": [Case(TENSOR, A)],
    "b": [Case(TENSOR, B)],
    "c": [Case(TENSOR, C)],
    "d": [Case(TENSOR + "  seq:tp", D)],
    "e": [Case(TENSOR, E, ("towers",))],
    "f": [Case(TENSOR + "\n idle devices(7)", F, ("gpt",))],
    "g": [Case("split seq:cp", sequences("cp:4", "cp:2"), ("gpt", "packed")),
          Case("split seq:cp  heads:cp", sequences("cp:4 by 3:1:2:1", "cp:2"), ("llama", "packed")),
          Case("split seq:cp zigzag\n turns seq:cp", sequences("cp:4", "cp:2 by 2:1"), ("packed", "gpt")),
          Case("split seq:cp*up zigzag  heads:up  ffn:up  vocab:up\n turns seq:cp", sequences("cp:2 by 3:2, up:2", "up:2"), ("gpt", "llama"))],
}


@dataclasses.dataclass
class Row:
    case: str
    kind: int  # of the case's
    schedule: str
    zero: int
    recompute: str
    optimizer: str
    model: str

    def name(self):
        return f"{self.case}{self.kind or ''}.{self.model}.{self.schedule}.zero{self.zero}.{self.recompute}"


def rows():
    """Each case with each schedule; what else varies is shifted from case to case, so that all pairs occur (check_pairs)."""
    found = []
    for c, (case, kinds) in enumerate(CASES.items()):
        for s, schedule in enumerate(SCHEDULES):
            kind = s % len(kinds)
            models = kinds[kind].models
            found.append(Row(case, kind, schedule, ZEROS[(s + c) % 4], RECOMPUTES[(s + c // 3) % 3], OPTIMIZERS[(s + c + s // 2) % 2], models[(s + c) % len(models)]))
    return found


def lines_of(row):
    case, text = CASES[row.case][row.kind], []
    for microbatches, batch_rows, stages in case.pipelines:
        text.append(f"pipeline microbatches({microbatches}) rows({batch_rows})")
        for devices, mesh, layers, ranges in stages:
            again = "" if row.recompute == "none" else f"recompute({row.recompute})"
            text.append(f"  stage devices({devices}) {mesh} layers({ranges if row.schedule == 'interleaved' else layers}) {again}")
    return "\n".join([case.lines, f"zero {row.zero}" if row.zero else "", f"schedule {row.schedule}", *text])


def check_pairs():
    """Whether the rows have each pair of what varies, and which rows those are."""
    values = {"case": list(CASES), "schedule": SCHEDULES, "zero": ZEROS, "recompute": RECOMPUTES, "optimizer": OPTIMIZERS}
    missing, count = [], 0
    for one, other in itertools.combinations(values, 2):
        found = {(getattr(row, one), getattr(row, other)) for row in rows()}
        pairs = set(itertools.product(values[one], values[other]))
        missing += sorted(map(str, pairs - found))
        count += len(pairs)
    kinds = {(row.case, row.kind) for row in rows()}
    if missing or kinds != {(case, kind) for case in CASES for kind in range(len(CASES[case]))}:
        raise Failure(f"not in any row: {', '.join(missing)}")
    return f"{count} pairs in {len(rows())} programs"


# ---- programs ----

def flags_of(row, *more):
    sizes = {**SIZES[row.model], **({"BATCH": 7} if row.case == "g" else {})}
    return pipelines.flags_of(sizes, more)


def ranks_of(row):
    return 1 + max(int(number) for devices in re.findall(r"devices\(([^)]*)\)", lines_of(row)) for number in re.findall(r"\d+", devices))


def check_trained(bench, row, optimizer):
    """The losses of a program, and after SGD its parameters."""
    source, flags = SOURCES[row.model], flags_of(row, *(harness.SGD if optimizer == "SGD" else ()))
    losses, parameters = pipelines.found(bench, source, row.name(), ranks_of(row), lines_of(row), flags, STEPS)
    wanted, after = pipelines.wanted(bench, source, flags, STEPS)
    said = f"loss {compare_losses(losses, wanted, LOSSES[optimizer]):.2g}"
    if optimizer != "SGD":
        return said
    return said + f", parameters {compare_parameters(parameters, after, pipelines.wanted(bench, source, flags, 0)[1], 1e-4):.2g}"


def check(bench, row):
    return "; ".join(check_trained(bench, row, optimizer) for optimizer in (OPTIMIZERS if LONG else (row.optimizer,)))


def check_half(bench, row):
    """A program in bf16 against the f32 program of one device."""
    losses = pipelines.found(bench, SOURCES[row.model], row.name(), ranks_of(row), lines_of(row), flags_of(row, "-DDTYPE=HT_BF16"), STEPS)[0]
    return f"loss {compare_losses(losses, pipelines.wanted(bench, SOURCES[row.model], flags_of(row), STEPS)[0], 2e-2):.2g}"


def halves():
    """Of (a), (b) and each kind of (g) the first row."""
    first = {}
    for row in rows():
        if row.case in "abg":
            first.setdefault((row.case, row.kind), row)
    return first.values()


def tests(bench, a):
    yield "pairs", check_pairs
    for i, row in enumerate(rows()):
        yield row.name(), functools.partial(check, bench, row), i % 5 != i // 5 % 5
    for row in halves():
        yield f"{row.name()}.bf16", functools.partial(check_half, bench, row), row.kind != 3


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.pairs", tests)
