#!/usr/bin/env python3
"""Compares operators with PyTorch: results and gradients of the cases in pytorch_cases.py, whole and cut, in f32 and in bf16, on the CPU and on emulated GPUs.

A generated model has one function for each case. Operands are inputs minus parameters of zeros, so that a step of SGD at rate 1 leaves the gradient in the parameter. pytorch.txt
has PyTorch's numbers, computed in double, or in float for edge cases. `pytorch.py --print` writes that file where PyTorch is installed; the long tests check that it is up to date.
"""
import functools
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "run"))
import harness  # noqa: E402
from harness import Failure, ROOT, launch, run  # noqa: E402
from pytorch_cases import GROUPS, all_cases, cases_of, count  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "pytorch.txt"
LONG = harness.LONG


# ---- what is wanted ----

def weight(i):
    return (i * 7 % 5 - 1.5) * 0.4


def spelled(number):
    return "%.9g" % number if math.isfinite(number) else str(float(number))


def table_print():
    """The table: for each case the shape and the numbers of its result, and those of what flows back to each operand that has a gradient."""
    import torch
    scope = {"torch": torch, "F": torch.nn.functional, "math": math}
    for case in all_cases():
        operands, real = {}, torch.float32 if case.edge else torch.float64
        for name, o in case.operands.items():
            operands[name] = torch.tensor(list(o.numbers), dtype=torch.int64 if o.integer else real).reshape(o.shape).requires_grad_(not o.integer)
        y = eval(case.torch, {**scope, **operands}).to(real)
        row(f"{case.name}.y {'x'.join(map(str, y.shape))}", y)
        weights = torch.tensor([weight(i) for i in range(y.numel())], dtype=real).reshape(y.shape)
        if y.requires_grad:
            (y * weights).sum().backward()
        for name, o in operands.items():
            if not case.operands[name].integer:
                row(f"{case.name}.{name}", torch.zeros_like(o) if o.grad is None else o.grad)


def row(head, tensor):
    print(head + ":", *(spelled(n) for n in tensor.detach().reshape(-1).tolist()))


@functools.cache
def table():
    return parsed(TABLE.read_text())


def parsed(text):
    """{name: numbers}, and of results {name: shape}."""
    rows, shapes = {}, {}
    for line in text.splitlines():
        head, _, rest = line.partition(":")
        name, _, shape = head.partition(" ")
        rows[name] = [float(n) for n in rest.split()]
        shapes[name] = [int(n) for n in shape.split("x") if n]
    return rows, shapes


# ---- the program ----

PROGRAM = """#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static ht_tensor operand(const char *name, const char *back, ht_dims shape)
{
    return ht_sub_at(ht_input(name, HT_F32, shape), ht_param(shape, ht_zeros(), back));
}

static ht_tensor weighed(ht_tensor y, ht_dims wanted, const char *name, const char *weight)
{
    assert(ht_rank(y) == wanted.rank && "the rank is PyTorch's");
    for (int d = 0; d < wanted.rank; d++)
        assert(ht_extent(y, d) == wanted.extent[d] && "the shape is PyTorch's");
    y = ht_is_integer(y) ? ht_cast(y, HT_F32) : y;
    return ht_sum(ht_mul_at(ht_output(y, name), ht_input(weight, HT_F32, ht_dims_of(y))));
}

@CASES@
ht_tensor model(void)
{
    ht_tensor loss = ht_scalar(0);
@LOSS@    return loss;
}

static float *weights(int count)
{
    float *w = malloc(sizeof *w * (size_t)(count + 1));
    for (int i = 0; w && i < count; i++)
        w[i] = ((float)(i * 7 % 5) - 1.5f) * 0.4f;
    return w;
}

static void show(const char *name, const float *numbers, int count)
{
    printf("%s:", name);
    for (int i = 0; i < count; i++)
        printf(" %.9g", (double)numbers[i]);
    printf("\\n");
}

static void fetched(ht_program *program, const char *name, int count)
{
    float *y = malloc(sizeof *y * (size_t)(count + 1));
    ht_fetch(program, name, y);
    show(name, y, count);
    free(y);
}

static void flowed(ht_session *session, const char *name, const char *back, int count)
{
    float *dx = malloc(sizeof *dx * (size_t)(count + 1));
    ht_get_param(session, back, dx, (size_t)count);
    show(name, dx, count);
    free(dx);
}

@DATA@
int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, model, ht_sgd(.lr = 1)@OPTIONS@);
    ht_step(program@FEEDS@);
@SHOW@    return 0;
}
"""


def number(n):
    if math.isnan(n):
        return "NAN"
    return ("-" if n < 0 else "") + "INFINITY" if math.isinf(n) else "%.9gf" % n if "." in "%.9g" % n or "e" in "%.9g" % n else "%.9g.f" % n


def shape_text(shape):
    return f"ht_shape({', '.join(map(str, shape))})" if shape else "ht_scalar_shape()"


def case_text(case):
    """The C function of a case."""
    lines = [f"static ht_tensor {case.name}_case(void)\n{{\n"]
    for name, o in case.operands.items():
        shape = shape_text(o.shape)
        made = f'ht_input("{case.name}.{name}", HT_I32, {shape})' if o.integer else f'operand("{case.name}.{name}", "{case.name}.{name}.back", {shape})'
        lines.append(f"    ht_tensor {name} = {made};\n")
        if name in (case.dims or {}):
            lines.append(f"#pragma hspmd dims({name}: {case.dims[name]})\n")
    body = case.call if "return" in case.call else f"return {case.call};"
    return "".join(lines) + "    " + body + "\n}\n\n"


def program_text(cases, options):
    shapes, parts = table()[1], {k: [] for k in ("CASES", "LOSS", "DATA", "FEEDS", "SHOW")}
    for case in cases:
        name, size = case.name, count(shapes[case.name + ".y"])
        parts["CASES"].append(case_text(case))
        parts["LOSS"].append(f'    loss = ht_add_at(loss, weighed({name}_case(), {shape_text(shapes[name + ".y"])}, "{name}.y", "{name}.weight"));\n')
        parts["FEEDS"].append(f', ht_feed("{name}.weight", weights({size}))')
        parts["SHOW"].append(f'    fetched(program, "{name}.y", {size});\n')
        for k, o in case.operands.items():
            kind, spell = ("int", str) if o.integer else ("float", number)
            parts["DATA"].append(f"static const {kind} {name}_{k}[] = {{{', '.join(spell(n) for n in o.numbers)}}};\n")
            parts["FEEDS"].append(f', ht_feed("{name}.{k}", {name}_{k})')
            if not o.integer:
                parts["SHOW"].append(f'    flowed(session, "{name}.{k}", "{name}.{k}.back", {len(o.numbers)});\n')
    text = PROGRAM.replace("@OPTIONS@", options)
    for key, lines in parts.items():
        text = text.replace(f"@{key}@", "".join(lines))
    return text


def program_built(bench, name, cases, compiler, options="", flags=()):
    """The program of the cases, in a folder of that name; compiler: "cc", None for hetucc without a strategy, or a strategy file."""
    folder = bench.path(name)
    folder.mkdir()
    source, out = folder / "model.c", folder / "model"
    source.write_text(program_text(cases, options))
    if compiler == "cc":
        library = bench.build / "lib"
        run(["cc", "-std=gnu17", "-O0", *harness.WARNINGS, "-Wno-missing-braces", f"-I{ROOT}/include", source, "-o", out, f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    else:
        chosen = [f"--strategy={compiler}"] if compiler else []
        run([bench.hetucc, *chosen, harness.OPTIMISED, *harness.WARNINGS, "-Wno-missing-braces", *flags, source, "-o", out, "-lm"], timeout=300)
    return out


# ---- the comparison ----

def agrees(found, wanted, tolerance, size):
    if not math.isfinite(wanted) or not math.isfinite(found):
        return math.isnan(found) if math.isnan(wanted) else found == wanted
    return abs(found - wanted) <= tolerance * max(abs(wanted), size) + 1e-37


def compare(cases, printed, tolerance):
    """Raises Failure with each row of numbers that is not as wanted; errors are relative to the number, or to the row's usual size."""
    rows, wrong = table()[0], []
    found = {line.partition(":")[0]: [float(n) for n in line.partition(":")[2].split()] for line in printed.splitlines() if ":" in line}
    for case in cases:
        for name in [f"{case.name}.y", *(f"{case.name}.{k}" for k, o in case.operands.items() if not o.integer)]:
            wanted = rows[name]
            if len(found.get(name, ())) != len(wanted):
                wrong.append(f"wrong: {name}: not printed")
                continue
            usual = min(1.0, max((abs(w) for w in wanted if math.isfinite(w)), default=0))
            bad = [i for i, (f, w) in enumerate(zip(found[name], wanted)) if not agrees(f, w, tolerance, usual)]
            if bad:
                wrong.append(f"wrong: {name}: {len(bad)} of {len(wanted)}: element {bad[0]} is {found[name][bad[0]]!r}, not {wanted[bad[0]]!r}")
    if wrong:
        raise Failure("\n".join(wrong))
    return f"{len(cases)} cases"


def check(bench, name, cases, compiler, ranks, options="", flags=(), tolerance=1e-5):
    program = program_built(bench, name, cases, compiler, options, flags)
    p = launch(program, ranks, check=False)
    if p.returncode:
        raise Failure(f"exit {p.returncode}: {(p.stdout[-300:] + p.stderr)[-1500:]}")
    return compare(cases, p.stdout, tolerance)


def table_check(bench):
    """The table is what PyTorch gives; another version may round otherwise."""
    p = run([sys.executable, HERE / "pytorch.py", "--print"], timeout=600)
    now, then = parsed(p.stdout)[0], table()[0]
    differing = [n for n in {**now, **then} if len(now.get(n, ())) != len(then.get(n, ())) or not all(agrees(a, b, 1e-6, 1.0) for a, b in zip(now[n], then[n]))]
    if differing:
        raise Failure("pytorch.txt is not what this PyTorch gives: " + ", ".join(differing[:10]))


STRATEGIES = {
    "f0f2x4": (4, "split f0:x  f2:x", "mesh(x:4)"),
    "f1f3by5:1:2": (3, "split f1:x  f3:x", "mesh(x:3 by 5:1:2)"),
    "f0f1": (4, "split f0:x  f1:y", "mesh(x:2, y:2)"),
    "f1f2": (4, "split f1:x  f2:y", "mesh(x:2, y:2)"),
    "f3f0": (4, "split f3:x  f0:y", "mesh(x:2, y:2)"),
    "f2by1:5": (2, "split f2:x", "mesh(x:2 by 1:5)"),
}


def strategy_write(bench, file, name):
    ranks, split, mesh = STRATEGIES[name]
    path = bench.path(f"{file}.strategy")
    path.write_text(f"strategy s\n  {split}\n  pipeline\n    stage devices(0-{ranks - 1}) {mesh}\nend strategy\n")
    return path


def tests(bench, a):
    for number, group in enumerate(GROUPS):
        yield from group_tests(bench, group, number, [c for c in cases_of(group) if not a.case or re.search(a.case, c.name)])
    if LONG and subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0:
        yield "table", functools.partial(table_check, bench)


def group_tests(bench, group, number, cases):
    """Each group is tried on one of two cuts, and every second one in bf16; with HETU_LONG=1 on all cuts, and in bf16."""
    def test(kind, cases, *arguments, rare=False, **options):
        return f"{group}.{kind}", functools.partial(check, bench, f"{group}.{kind}", cases, *arguments, **options), rare

    yield test("cc", cases, "cc", 0)
    yield test("hetucc", cases, None, 1)
    yield test("bf16", [c for c in cases if not c.edge], None, 1, options=", .dtype = HT_BF16", tolerance=4e-2, rare=number % 2 > 0)
    yield test("hetucc.alone", cases, None, 1, flags=("--no-fuse",), rare=True)
    for i, (name, (ranks, _, _)) in enumerate(STRATEGIES.items()):
        yield test(name, cases, strategy_write(bench, f"{group}.{name}", name), ranks, rare=i != number % 2)


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        table_print()
    else:
        harness.main("operators.pytorch", tests, lambda a: a.add_argument("--case", help="the cases whose names match this pattern"))
