#!/usr/bin/env python3
"""Layouts edited in the text after pass seed_layouts: pass deduce keeps them, and the program uses them and computes what the one-device program does.

Each case gives layouts to values of placed.c by name; hetucc --resume runs the remaining passes over the edited text.
"""
import functools
import re

import harness
from harness import Failure, compare_losses, launch, run

SOURCE = harness.ROOT / "test" / "run" / "placed.c"
ROWS, COLUMNS, WHOLE = "[0-3]{0:4}", "[0-3]{1:4}", "[0-3]{dup:4}"
NESTED, WEIGHTS = "split 0 by 3:1 ([0,1]{1:2} | [2,3]{dup:2})", "[0-3]{0:4 by 1:2:3:4}"
INNER = "split 0 inner ([0,1]{0:2} | [2,3]{dup:2})"

# The strategy, and layouts by a value's name or number: of `loop` with micro-batches, whose number is dimension 0; of `sgd` with an optimizer without states.
CASES = {
    "parameter-cut": ("plain", {"up": COLUMNS}),
    "parameter-replicated": ("plain", {"up": WHOLE, "down": WHOLE}),
    "parameter-unequal": ("plain", {"up": WEIGHTS, "down": "[3,1,2,0]{1:4 by 0:1:1:2}"}),
    "parameter-nested": ("plain", {"up": NESTED, "down": INNER}),
    "states": ("plain", {"up.0": ROWS, "up.1": ROWS, "down.0": NESTED, "down.1": NESTED}),
    "states-apart": ("plain", {"up.0": COLUMNS, "up.1": WEIGHTS}),
    "input-cut": ("plain", {"x": COLUMNS}),
    "input-unequal": ("plain", {"x": "[2,0,3,1]{0:4 by 5:0:1:2}"}),
    "input-nested": ("plain", {"x": INNER}),
    "between-cut": ("plain", {"h": ROWS, "g": COLUMNS}),
    "between-replicated": ("plain", {"h": WHOLE, "y": WHOLE}),
    "between-partial": ("plain", {"h": "[0-3]{0:2,sum:2}", "y": "[0-3]{max:4}", "error": "sum([0,1]{0:2} | [2,3]{1:2})"}),
    "between-nested": ("plain", {"h": NESTED, "g": INNER, "y": WEIGHTS}),
    "subset": ("plain", {"up": "[1,2]{0:2}", "x": "[3]{}", "g": "[0,2,1]{0:3}"}),
    "loop": ("loop", {"up": WEIGHTS, "x": "[0-3]{1:4}", "h": "[0-3]{0:4}", "y": "[0-3]{sum:2,1:2}"}),
    "loop-states": ("loop", {"up.0": COLUMNS, "up.1": COLUMNS, "total": "[0-3]{sum:4}"}),
    "gradient": ("plain", {"%21": ROWS, "%18": "[0-3]{sum:4}", "%24": "[0-3]{sum:4}"}),
    "no-states": ("sgd", {"up": COLUMNS, "x": COLUMNS}),
}


def number(text, name):
    """The number of the first value of this name, with its percent sign."""
    found = re.search(rf'^[^%\n]*(%\d+)\b.* "{re.escape(name)}"', text, re.M)
    if not found:
        raise Failure(f"no value {name} in:\n{text}")
    return found.group(1)


def line_of(text, value):
    """Where the value is made: all of the line."""
    return re.search(rf"^ *(?:(?:param|state|input) )?{value}\b.*$", text, re.M)


def give(text, value, layout):
    """The text with this layout on a value, in the place of the one that is there."""
    line = line_of(text, value)
    return text[:line.start()] + re.sub(r" layout<[^>]*>", "", line.group()) + f" layout<{layout}>" + text[line.end():]


def losses(program, ranks):
    return [float(line.split()[-1]) for line in launch(program, ranks).stdout.splitlines()]


def ir(bench, flags, strategy, after, *resume):
    return run([bench.hetucc, *flags, f"--strategy={strategy}", *resume, "--emit=ir", f"--stop-after={after}", SOURCE]).stdout


def check(bench, label):
    strategy, layouts = CASES[label]
    flags = ["-DSGD"] if strategy == "sgd" else []
    edited, program = bench.path(label + ".ir"), bench.path(label)
    text = bench.once(("seed_layouts", strategy), lambda: ir(bench, flags, strategy, "seed_layouts"))
    plain = bench.once(("losses", *flags), lambda: losses(bench.plain(SOURCE, flags), 0))
    wanted = {value if value.startswith("%") else number(text, value): layout for value, layout in layouts.items()}
    for value, layout in wanted.items():
        text = give(text, value, layout)
    edited.write_text(text)
    after = ir(bench, flags, strategy, "propagate_layouts", f"--resume={edited}")
    for value, layout in wanted.items():
        if f" layout<{layout}>" not in line_of(after, value).group():
            raise Failure(f"{value} has not kept {layout}:\n{after}")
    run([bench.hetucc, *flags, f"--strategy={strategy}", f"--resume={edited}", SOURCE, "-O0", "-o", program])
    return f"{compare_losses(losses(program, 4), plain, 1e-4):.1e}"


harness.MEETS = True
harness.main("run.placed", lambda bench, _: ((label, functools.partial(check, bench, label)) for label in CASES))
