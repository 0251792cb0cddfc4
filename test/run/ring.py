#!/usr/bin/env python3
"""Ring attention, and any operator that runs once a piece (`turns`), gives what one device gives and receives no more than gathering would; devices hold two pieces of keys and values at a time.

gpt and llama, in the sizes of pipelines.py: losses with AdamW, parameters with SGD. A user's operators (ring.c): all numbers. The bytes of a step are those of the MPI calls (traffic.py).
"""
import functools
import json

import harness
from harness import EXAMPLES, Failure, launch, run
from pipelines import GPT, LLAMA, LONG, check_lines, strategy_file
from traffic import BATCH, EMBED, FLAGS, GPT as SOURCE, LAYERS, N, SEQ, counted, parameters

ATTENTION = harness.ROOT / "test" / "run" / "Inputs" / "attention_memory.c"
USER = harness.ROOT / "test" / "run" / "ring.c"

SHALLOW = {"LAYERS": 3}

# name: ranks, lines, sizes that are other than those of pipelines.py
STRATEGIES = {
    "two": (2, "turns seq:cp\n stage devices(0-1) mesh(cp:2)", {**SHALLOW, "SEQ": 12}),
    "uneven": (4, "turns seq:cp\n zero 1\n pipeline microbatches(19)\n stage devices(2,0,3,1) mesh(cp:4 by 3:1:2:1) recompute(full)", SHALLOW),
    "empty": (5, "split seq:cp\n turns seq:cp\n pipeline microbatches(1)\n stage devices(0-4) mesh(cp:5)", {**SHALLOW, "SEQ": 3}),
    "heads": (4, "split seq:cp*up heads:up ffn:up vocab:up\n turns seq:cp\n stage devices(0-3) mesh(cp:2, up:2)", SHALLOW),
    "both": (8, "split batch:dp\n turns seq:a*b\n zero 2\n stage devices(0-7) mesh(dp:2, a:2, b:2)", {**SHALLOW, "BATCH": 4}),
    "stages": (7, """turns seq:cp
      pipeline microbatches(5) rows(2)
        stage devices(0-2) mesh(cp:3) layers(0-2)
        stage devices(3-4) mesh(cp:2) layers(3-7) recompute(selective)
      pipeline microbatches(9) rows(1)
        stage devices(5-6) mesh(cp:2)""", {}),
}
# Of a user's operators: ranks, lines, flags.
USERS = {
    "three": (3, "turns seq:cp\n stage devices(0-2) mesh(cp:3)", ()),
    "empty": (4, "turns seq:cp\n stage devices(0-3) mesh(cp:4)", ("-DSEQ=3",)),
    "wide": (4, "split width:tp\n turns seq:cp\n pipeline microbatches(2) rows(3)\n stage devices(0-3) mesh(cp:2, tp:2)", ()),
}


def numbers(text):
    return [float(word) for word in text.split()]


def check_user(bench, name):
    ranks, lines, flags = USERS[name]
    wanted = bench.once(("user", flags), lambda: numbers(run([bench.plain(USER, flags)]).stdout))
    found = numbers(launch(bench.compiled(USER, strategy_file(bench, f"user.{name}", lines), flags), ranks).stdout)
    worst = max(abs(f - w) / max(abs(w), 1e-2) for f, w in zip(found, wanted, strict=True))
    if not worst <= 1e-5:
        raise Failure(f"{found}\ninstead of\n{wanted}")
    return f"{len(found)} numbers within {worst:.1g}"


def step_bytes(bench, name):
    lines = "split seq:cp" if name == "gathered" else "turns seq:cp"
    program = bench.compiled(SOURCE, strategy_file(bench, name, f"{lines}\nstage devices(0-{N - 1}) mesh(cp:{N})"), (*FLAGS, "--bucket=100000"))  # no message is as small as a command
    short, long = counted(bench, program, 2, name), counted(bench, program, 5, name)
    return sum(long[call] - short.get(call, 0) for call in long) / 3


def check_bytes(bench):
    """In each layer and micro-batch every device receives the other pieces of k and v forward and backward, and the others' parts of its piece of their
    gradients: what gathering and reduce-scattering would. Weights' gradients are all-reduced, and the loss with some of them."""
    turns, gathered = step_bytes(bench, "turns"), step_bytes(bench, "gathered")
    wanted = 4 * (N - 1) * (6 * LAYERS * BATCH * SEQ * EMBED + 2 * (parameters() + 1))
    if turns != wanted or gathered != wanted:
        raise Failure(f"{turns:.0f} bytes a step, and gathering {gathered:.0f}, not {wanted}")
    return f"{turns:.0f} bytes"


def check_held(bench, devices):
    """However many turns: two pieces each of keys and of values, the queries, and results so far and of a turn."""
    strategy = strategy_file(bench, f"held{devices}", f"turns seq:cp\nstage devices(0-{devices - 1}) mesh(cp:{devices})")
    report = json.loads(run([bench.hetucc, f"--strategy={strategy}", "--emit=cost-json", ATTENTION]).stdout)
    length, heads, width = 4096, 2, 16
    rows = 4 * length * heads // devices
    wanted = (2 + 2 + 1 + 2) * rows * width + 2 * rows
    for role in report["models"][0]["roles"]:
        found = role["memory"]["activations"] + role["memory"]["temporaries"]
        if found != wanted:
            raise Failure(f"{found} bytes, not {wanted}")
    return f"{wanted} bytes"


def tests(bench, _):
    for name, (ranks, lines, sizes) in STRATEGIES.items():
        yield f"gpt.{name}", functools.partial(check_lines, bench, "gpt", f"turns.{name}", ranks, lines, {**GPT, **sizes}), name in ("two", "both", "uneven", "heads")
        yield f"llama.{name}", functools.partial(check_lines, bench, "llama", f"turns.{name}", ranks, lines, {**LLAMA, **sizes}), name != "uneven"
    for name in USERS:
        yield f"user.{name}", functools.partial(check_user, bench, name)
    for devices in (4, 8):
        yield f"held.{devices}", functools.partial(check_held, bench, devices)
    yield "bytes", functools.partial(check_bytes, bench)


if __name__ == "__main__":
    harness.MEETS = True
    harness.main("run.turns", tests)
