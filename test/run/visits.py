#!/usr/bin/env python3
"""Stages of several ranges of layers: a range passes values to other ranges of its stage; V-shaped pipelines; losses of visits.c as on one device.
"""
import functools

import harness
from harness import compare_losses, launch

SOURCE = harness.ROOT / "test" / "run" / "visits.c"
COUNTED = harness.ROOT / "test" / "run" / "visits_counted.c"
BETWEEN = harness.ROOT / "test" / "run" / "visits_between.c"

# name: ranks and lines
STRATEGIES = {
    "interleaved": (2, """pipeline microbatches(5) rows(3)
        stage devices(0) layers(0,2,4)
        stage devices(1) layers(1,3,5)"""),
    "zero_bubble": (5, """split hidden:tp
      schedule zero_bubble
      pipeline microbatches(5) rows(2)
        stage devices(0-1) mesh(tp:2) layers(0,3)
        stage devices(2) layers(1,4)
        stage devices(3) layers(2,5)
      pipeline microbatches(1) rows(5)
        stage devices(4)"""),
    "v": (3, """schedule gpipe
      pipeline microbatches(5) rows(3)
        stage devices(0) layers(0,5)
        stage devices(1) layers(1,4) recompute(full)
        stage devices(2) layers(2-3)"""),
    "zero_2": (6, """split batch:dp
      zero 2
      pipeline microbatches(2) rows(6)
        stage devices(0-2) mesh(dp:3) layers(0,3)
        stage devices(3,4) mesh(dp:2) layers(1-2,4-5)
      pipeline microbatches(1) rows(3)
        stage devices(5)"""),
    "zero_3": (7, """split batch:dp hidden:tp
      zero 3
      pipeline microbatches(2) rows(6)
        stage devices(0-2) mesh(dp:3) layers(0,3) recompute(full)
        stage devices(3,4) mesh(dp:2) layers(1-2,4-5)
      pipeline microbatches(1) rows(3)
        stage devices(5-6) mesh(tp:2)"""),
    "v_1f1b": (4, """split hidden:tp
      schedule 1f1b
      zero 1
      pipeline microbatches(3) rows(5)
        stage devices(0,2) mesh(tp:2) layers(0,4-5)
        stage devices(3) layers(1-2)
        stage devices(1) layers(3)"""),
}

COUNTED_STRATEGIES = {
    f"counted_{schedule}": (2, f"""schedule {schedule}
      pipeline microbatches(3) rows(4)
        stage devices(0) layers(0,2,head)
        stage devices(1) layers(1)""") for schedule in ("gpipe", "1f1b")
}

# By case of visits_between.c: schedules, micro-batches and rows, and the layers of each stage
BETWEEN_STRATEGIES = {
    1: (["zero_bubble", "1f1b"], 3, 2, ["0, 2", "1"]),
    2: (["1f1b", "zero_bubble"], 6, 1, ["0, 4", "1, 3", "2"]),
    3: (["1f1b", "gpipe"], 2, 3, ["0, 4, head", "1-2, 3"]),
}


def between(case):
    """(name, ranks, lines) of the strategies of a case of visits_between.c."""
    schedules, microbatches, rows, stages = BETWEEN_STRATEGIES[case]
    lines = "\n".join([f"pipeline microbatches({microbatches}) rows({rows})"] + [f"stage devices({s}) layers({layers})" for s, layers in enumerate(stages)])
    return [(f"between{case}_{schedule}", len(stages), f"schedule {schedule}\n{lines}") for schedule in schedules]


def losses(program, ranks):
    return [float(line.split()[-1]) for line in launch(program, ranks).stdout.splitlines()]


def check(bench, source, name, ranks, lines, flags=()):
    path = bench.path(f"{name}.strategy")
    path.write_text(f"strategy {name}\n{lines}\nend strategy\n")
    wanted = bench.once(f"wanted {source.name} {flags}", lambda: losses(bench.plain(source, flags), 0))
    return f"loss {compare_losses(losses(bench.compiled(source, path, flags), ranks), wanted, 1e-6):.2g}"


def tests(bench, a):
    for source, strategies in ((SOURCE, STRATEGIES), (COUNTED, COUNTED_STRATEGIES)):
        for name, (ranks, lines) in strategies.items():
            yield name, functools.partial(check, bench, source, name, ranks, lines)
    for case in BETWEEN_STRATEGIES:
        for name, ranks, lines in between(case):
            yield name, functools.partial(check, bench, BETWEEN, name, ranks, lines, (f"-DCASE={case}",))


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.visits", tests)
