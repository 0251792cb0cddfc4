"""Tests a table of C code written by hand, one file a theme in `probes`. At compile time each probe has gcc's value, or is refused where the table says so.

    = "%d", 1 << 5                                  a value: the text that this format and its arguments give
    = int a[2] = {1, 2}; P("%d", a[1]);             a value: the text that P appends in these statements; lines that begin with a blank continue them
    ! this overflows | int a = 2147483647; a++;     code that is refused, with these words in the message
    % -funsigned-char                               a line of options: the probes of the file are checked with each such line
    # anything                                      a comment; every other line is C at file scope

A file is one program. Each probe is a model whose parameter has the probe's value as its name. gcc gives the same value with and without optimisation, or
the probe is wrong.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness

HEAD = """#ifndef PLAIN
#include <hetu/hetu.h>
#endif
#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define P(...) (void)snprintf(o + strlen(o), 400 - strlen(o), __VA_ARGS__)
static void spell(char *to, const char *from) /* names of parameters have letters, digits and a few marks */
{
    static const char digits[] = "0123456789abcdef";
    for (; *from; from++)
        *to++ = digits[(unsigned char)*from >> 4], *to++ = digits[*from & 15];
    *to = 0;
}
"""


class Probe:
    def __init__(self, line, text):
        self.line, self.refusal = line, None
        if text[0] == "!":
            self.refusal, text = text[1:].split(" | ", 1)
            self.refusal = self.refusal.strip()
        else:
            text = text[1:]
        self.body = f"P({text.strip()});" if text.strip().startswith('"') else text

    def function(self):
        return f"static void case{self.line}(char *o)\n{{\n{self.body}\n}}\n"


def read(path):
    """The options under which a file is checked, what stands at file scope, and the probes, each behind what stands in front of it."""
    options, parts, probes = [], [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line[:2] in ("= ", "! "):
            probes.append(Probe(number, line))
            parts.append(probes[-1])
        elif line.startswith(" ") and parts and isinstance(parts[-1], Probe):
            parts[-1].body += "\n" + line
        elif line.startswith("% "):
            options.append(tuple(line[2:].split()))
        elif line and not line.startswith("# "):
            parts.append(line + "\n")
    return options or [()], parts, probes


def source(parts, probes):
    """The program of some of the probes."""
    text = HEAD + "".join(p if isinstance(p, str) else p.function() if p in probes else "" for p in parts)
    models = "".join(f"static ht_tensor model{p.line}(void) {{ char t[400] = \"\", n[840] = \"v{p.line}_\"; case{p.line}(t); "
                     f"spell(n + strlen(n), t); return ht_mean(ht_param(ht_shape(2), ht_ones(), n)); }}\n" for p in probes)
    starts = "".join(f"    ht_infer(s, model{p.line});\n" for p in probes)
    plain = "".join(f'    {{ char t[400] = ""; case{p.line}(t); printf("{p.line}:%s%c", t, 0); }}\n' for p in probes)
    return text + f"#ifdef PLAIN\nint main(void)\n{{\n{plain}    return 0;\n}}\n#else\n{models}int main(int argc, char **argv)\n{{\n" \
                  f"    ht_session *s = ht_open(&argc, &argv);\n{starts}    return 0;\n}}\n#endif\n"


def gcc_values(bench, path, options):
    """What each probe gives under gcc."""
    found = []
    for level in ("-O0", "-O2"):
        binary = path.with_suffix(f".{level[1:]}")
        harness.run(["gcc", "-w", level, "-DPLAIN", *options, path, "-o", binary, "-lm"])
        found.append(dict(t.split(":", 1) for t in harness.run([binary]).stdout.split("\0") if t))
    unsteady = [f"{n}: {found[0][n]!r} and {found[1][n]!r}" for n in found[0] if found[0][n] != found[1][n]]
    if unsteady:
        raise harness.Failure("gcc has other values when it optimises: " + "; ".join(unsteady))
    return found[0]


def hetucc(bench, path, options, text):
    path.write_text(text)
    done = harness.run([bench.hetucc, "--emit=ir", "--stop-after=frontend", *options, path], check=False)
    if done.returncode not in (0, 1) or "internal error" in done.stderr:
        raise harness.Failure(f"{path}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done


def refusals(stderr):
    """Messages by the probes that they are about."""
    found = {}
    for text in re.split(r"^(?=\S+:\d+:\d+: error: )", stderr, flags=re.M):
        case, message = re.findall(r"(?:in the call of case|the model model)(\d+)", text), re.search(r" error: (.*)", text)
        if message:
            found[case[-1] if case else message[0]] = message[1]
    return found


def evaluated(bench, path, options, parts, probes):
    """What hetucc says of the probes that it evaluates, and the messages about the others; it shows a few at a time."""
    refused = {}
    while True:
        left = [p for p in probes if str(p.line) not in refused]
        done = hetucc(bench, path, options, source(parts, left))
        found = refusals(done.stderr)
        refused.update(found)
        if not any(str(p.line) in found for p in left):
            return done, refused


def check_values(bench, name, options, parts, probes):
    path = bench.path(f"{name}{''.join(options)}.c")
    path.write_text(source(parts, probes))
    wanted, wrong = gcc_values(bench, path, options), {}
    done, refused = evaluated(bench, path, options, parts, probes)
    if done.returncode:
        raise harness.Failure(f"{path}: refused as a whole\n{done.stderr[-2000:]}")
    wrong = {n: f"refused: {message}" for n, message in refused.items()}
    found = {n: bytes.fromhex(t).decode(errors="replace") for n, t in re.findall(r'"v(\d+)_([0-9a-f]*)"', done.stdout)}
    wrong.update({n: f"{found.get(n)!r}, gcc has {wanted[n]!r}" for n in wanted if n not in wrong and found.get(n) != wanted[n]})
    return wrong


def check_refusals(bench, name, options, parts, probes):
    path = bench.path(f"{name}{''.join(options)}_refused.c")
    (_, found), wrong = evaluated(bench, path, options, parts, probes), {}
    for p in probes:
        message = found.get(str(p.line))
        if message is None or p.refusal not in message:
            wrong[str(p.line)] = f"{'evaluated' if message is None else message!r}, but the table says it is refused with {p.refusal!r}"
    return wrong


def check(bench, path, options):
    _, parts, probes = read(path)
    values, refused = [p for p in probes if not p.refusal], [p for p in probes if p.refusal]
    wrong = check_values(bench, path.stem, options, parts, values)
    if refused:
        wrong.update(check_refusals(bench, path.stem, options, parts, refused))
    if wrong:
        raise harness.Failure("\n".join(f"{path.name}:{n}: {text}" for n, text in wrong.items()))
    return f"{len(values)} values, {len(refused)} refusals"


def tests(_bench, _arguments):
    paths = sorted((HERE / "probes").glob("*.probes"))
    return [(f"{p.stem}{''.join(options)}", lambda p=p, o=options: check(_bench, p, o)) for p in paths for options in read(p)[0]]


if __name__ == "__main__":
    harness.main("probes", tests)
