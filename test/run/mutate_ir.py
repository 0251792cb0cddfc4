#!/usr/bin/env python3
"""Tests seeded mutations of the IR's text after each pass: bytes, tokens, lines and mostly numbers are deleted, doubled, swapped or changed. Then the next pass, or any pass, runs.

hetu-opt must not crash or hang: it accepts the text, or ends with exit status 1 and an error that names the line.
"""
import functools
import os
import random
import re

import harness
from harness import EXAMPLES, Failure, run

PASSES = ["frontend", "precision", "differentiate", "concat_slice_gradients", "join_products", "factor_dims", "microbatch", "recompute", "seed_layouts", "propagate_layouts", "rematerialize", "fuse", "specialize", "memory"]
SMALL = ("-DEMBED=32", "-DLAYERS=1", "-DSEQ=16", "-DBATCH=4")
GPT = EXAMPLES / "gpt" / "strategies"
MODELS = {"gpt": (f"--strategy={GPT}/dp2tp2sp.strategy", *SMALL), "mlp": ("--strategy=uneven",), "custom": ("--strategy=dp2tp2",),
          "llama": ("--strategy=dp2tp2", *SMALL)}
TOKEN = re.compile(r"[A-Za-z_][\w.]*|\d+|\"[^\"]*\"|[^\s\w]")
NUMBERS = ["0", "1", "-1", "2", "3", "7", "100", "2147483648", "9223372036854775807", "99999999999999999999"]


def text_of(bench, model, after):
    source = EXAMPLES / model / f"{model}.c"
    return run([bench.hetucc, *MODELS[model], f"--stop-after={after}", "--emit=ir", source]).stdout


def change_byte(draw, text):
    k = draw.randrange(len(text))
    return text[:k] + draw.choice(["", text[k] * 2, chr(draw.randrange(1, 127)), "%", '"', "(", "]", "<", "\n"]) + text[k + 1:]


def change_line(draw, text):
    lines = text.split("\n")
    k, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.choice(["delete", "double", "swap"])
    if kind == "delete":
        del lines[k]
    elif kind == "double":
        lines.insert(other, lines[k])
    else:
        lines[k], lines[other] = lines[other], lines[k]
    return "\n".join(lines)


def change_token(draw, text, pattern=TOKEN):
    lines = text.split("\n")
    k = draw.randrange(len(lines))
    tokens = [m.span() for m in pattern.finditer(lines[k])]
    if not tokens:
        return text
    (a, b), (c, d) = draw.choice(tokens), draw.choice(tokens)
    line, word = lines[k], lines[k][a:b]
    new = draw.choice(["", word + " " + word, line[c:d]] if pattern is TOKEN else NUMBERS + [str(int(word) + 1), str(int(word) - 1)])
    lines[k] = line[:a] + new + line[b:]
    return "\n".join(lines)


def change_number(draw, text):
    return change_token(draw, text, re.compile(r"\d+"))


def mutate(draw, text):
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        text = draw.choice([change_byte, change_line, change_token, change_number, change_number])(draw, text)
    return text


def judge(p):
    """What is wrong with hetu-opt's answer, or None."""
    if p.returncode == 0:
        return None
    if p.returncode != 1:
        return f"exit status {p.returncode}"
    return None if re.search(r":\d+:\d+: error: ", p.stderr) else "no place"


def check(bench, file, following):
    p = run([bench.build / "bin" / "hetu-opt", following, file], timeout=30, check=False)
    wrong = judge(p)
    if wrong:
        raise Failure(f"{wrong}: hetu-opt {following} {file}\n{p.stderr[-1500:]}")
    return "accepted" if p.returncode == 0 else "refused"


def case_make(draw, bench, texts, number):
    model, after = draw.choice(sorted(MODELS)), draw.randrange(len(PASSES))
    if (model, after) not in texts:
        texts[model, after] = text_of(bench, model, PASSES[after])
    file = bench.path(f"mutation{number}.ir")
    out_of_order = draw.random() < 0.3
    file.write_text(texts[model, after] if out_of_order and draw.random() < 0.3 else mutate(draw, texts[model, after]))
    following = draw.choice(PASSES[1:]) if out_of_order else PASSES[min(after + 1, len(PASSES) - 1)]
    return file, following, f"{model} after {PASSES[after]}, {following}"


def tests(bench, a):
    draw = random.Random(a.seed)
    texts = {}
    for number in range(a.count):
        *case, label = case_make(draw, bench, texts, number)
        yield f"mutate_ir.{number} {label}", functools.partial(check, bench, *case)


def options(a):
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=20000 if os.environ.get("HETU_LONG") else 200)


if __name__ == "__main__":
    harness.main("run.mutate_ir", tests, options)
