#!/usr/bin/env python3
"""Compares random rules (rule_text.py) and their gradients, whole and cut, with sums and central differences in double.

    rules.py --build BUILD --seed 1 --count 2        two programs of 50 rules each, from seed 1 on
    rules.py --build BUILD --seed 7 --keep /tmp/x    one program; its source stays in /tmp/x
    rules.py --build BUILD --seed 0                  not random: every function of math.h that rules may call, under sums

A program is one source with a model of all its rules. It is built by the plain compiler, by hetucc without a strategy, and by hetucc
with a strategy. It compares the results with its own reference (check.h). With --cuda it is built for CUDA and run in emulation instead.
"""
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness  # noqa: E402
from harness import Failure, ROOT, launch, run  # noqa: E402
import rule_text  # noqa: E402

RULES = 50
STRATEGIES = [(2, "split a:x\n  pipeline\n    stage devices(0-1) mesh(x:2)"), (2, "split b:x\n  pipeline\n    stage devices(0-1) mesh(x:2)"),
              (2, "split c:x\n  pipeline\n    stage devices(0-1) mesh(x:2 by 3:1)"), (3, "split b:x\n  pipeline\n    stage devices(0-2) mesh(x:3 by 5:1:2)"),
              (4, "split a:x  b:y\n  pipeline\n    stage devices(0-3) mesh(x:2, y:2)"), (4, "split c:x  b:y\n  pipeline\n    stage devices(0-3) mesh(x:2, y:2)"),
              (4, "split c:x  a:y\n  pipeline\n    stage devices(0-3) mesh(x:2, y:2)")]


def bits(factors):
    return sum(1 << "abc".index(f) for f in factors)


def operator(rule):
    """The operator of a rule: pragma, function, and the terms for the reference."""
    given = rule.given()
    params = ", ".join([f"ht_tensor {o.name}" for o in rule.operands] + ["float f"])
    lines = [f"#pragma hspmd op {rule.text()}", f"ht_tensor rule{rule.index}({params})", "{", "    (void)f;",
             *[f"    (void){o.name};" for o in rule.operands if o.absent],
             f"    return rule_apply({rule.index}, (ht_tensor[]){{{', '.join(o.name for o in given)}}});", "}"]
    for t, (_, e, left_out) in enumerate(rule.terms):
        if not left_out:
            lines.append(f"static double term{rule.index}_{t}(const double *v) {{ return {e.c}; }}")
    return "\n".join(lines)


def table_row(rule):
    half = rule.kind in ("half", "wide")
    operands = [f"{{{bits(o.factors)}, {int(o.integer)}, {int(half and not o.integer)}, {o.low}, {o.high}}}" for o in rule.given()]
    terms = [f"{{term{rule.index}_{t}, {bits(e.factors | set(rule.result))}, {sign}1}}" for t, (sign, e, left_out) in enumerate(rule.terms) if not left_out]
    text = f"[{rule.kind or 'f32'}] {rule.text()}"
    return (f'    {{"{text}", {bits(rule.result)}, {int(rule.kind in ("half", "narrow"))}, {len(operands)}, {len(terms)},\n'
            f"     {{{', '.join(operands)}}}, {{{', '.join(terms)}}}}},")


def build(rule):
    """The rule's part of the model, with the names that strategies cut."""
    given = rule.given()
    lines = [f"static ht_tensor build{rule.index}(void)", "{"]
    lines += [f"    ht_tensor x{i} = operand({rule.index}, {i});" for i in range(len(given))]
    lines += [f"#pragma hspmd dims(x{i}: {', '.join(o.factors)})" for i, o in enumerate(given)]
    arguments = [f"x{given.index(o)}" if o in given else "HT_NONE" for o in rule.operands] + [f"{rule_text.SCALE}f"]
    return "\n".join([*lines, f"    return weighed({rule.index}, rule{rule.index}({', '.join(arguments)}));", "}"])


def source(rules):
    total = "".join(f"    loss = ht_add(loss, build{r.index}());\n" for r in rules[1:])
    return "\n".join([f"enum {{ RULES = {len(rules)} }};", f'#include "{HERE}/check.h"', "", *[operator(r) for r in rules], "",
                      "static const Rule rules[RULES] = {", *[table_row(r) for r in rules], "};", "", *[build(r) for r in rules], "",
                      "static ht_tensor loss(void)", "{", f"    ht_tensor loss = build{rules[0].index}();", total + "    return loss;", "}", ""])


def finished(p):
    wrong = [line for line in p.stdout.splitlines() if line.startswith("wrong:")]
    if p.returncode or not p.stdout:
        raise Failure("\n".join(wrong[:20]) or f"exit {p.returncode}: {(p.stdout + p.stderr)[-1500:]}")
    return p.stdout.split()[-1]


def check(bench, seed, a):
    folder = bench.path(f"rules{seed}")
    folder.mkdir(parents=True, exist_ok=True)
    program, library = folder / f"rules{seed}.c", bench.build / "lib"
    program.write_text(source(rule_text.rules(seed, a.rules)))
    flags = ["-std=gnu17", harness.OPTIMISED, *harness.WARNINGS]
    ranks, lines = random.Random(seed).choice(STRATEGIES)
    strategy = folder / "cut.strategy"
    strategy.write_text(f"strategy cut\n  {lines}\nend strategy\n")
    if a.cuda:
        return "worst " + finished(launch(bench.compiled(program, strategy), ranks, check=False, timeout=300))
    run(["cc", *flags, f"-I{ROOT}/include", program, "-o", folder / "plain", f"-L{library}", f"-Wl,-rpath,{library}", "-lhetu", "-lm"])
    worst = [finished(launch(folder / "plain", 0, check=False))]
    run([bench.hetucc, *flags, program, "-o", folder / "whole", "-lm"], timeout=300)
    worst.append(finished(launch(folder / "whole", 0, check=False)))
    run([bench.hetucc, *flags, f"--strategy={strategy}", program, "-o", folder / "cut", "-lm"], timeout=300)
    worst.append(finished(launch(folder / "cut", ranks, check=False)))
    return f"{ranks} ranks, worst {' '.join(worst)}"


def tests(bench, a):
    harness.MEETS = True
    for seed in range(a.seed, a.seed + a.count):
        yield f"seed{seed}", lambda seed=seed: check(bench, seed, a)


def options(a):
    a.add_argument("--seed", type=int, default=1, help="the first seed")
    a.add_argument("--count", type=int, default=1, help="how many programs")
    a.add_argument("--rules", type=int, default=RULES, help="rules a program")
    a.add_argument("--cuda", action="store_true", help="for CUDA, in emulation")


if __name__ == "__main__":
    if "--cuda" in sys.argv:
        sys.path.insert(0, str(HERE.parent / "cuda" / "run"))
        import emulated
        harness.Bench = emulated.Bench
    harness.main(lambda a: "cuda.rules" if a.cuda else "run.rules", tests, options)
