#!/usr/bin/env python3
"""Programs of csmith that hetucc evaluates at compile time give gcc's values, or hetucc refuses them. Skipped, with a message, without csmith (packages csmith and libcsmith-dev).

Functions use no global variables, since a model may not change them. The value of the first function is the name of the model's parameter.
"""
import collections
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness

SKIPPED = 77
HEADERS = next(iter(sorted(pathlib.Path("/usr/include").glob("csmith*"))), None)
DRAWN = ["--no-global-variables", "--no-volatiles", "--no-volatile-pointers", "--no-argc", "--no-checksum", "--no-return-structs", "--no-return-unions", "--quiet", "--concise"]
SIZES = [["--max-funcs", "1"], ["--max-funcs", "3", "--max-block-depth", "3"], ["--max-funcs", "5", "--max-expr-complexity", "6"], ["--max-funcs", "2", "--no-packed-struct"]]
ENDING = """
#ifdef PLAIN
int main(void) { printf("v%lld\\n", (long long)func_1()); return 0; }
#else
static ht_tensor model(void)
{
    char name[40];
    snprintf(name, sizeof name, "v%lld", (long long)func_1());
    return ht_mean(ht_param(ht_shape(2), ht_ones(), name));
}
int main(int argc, char **argv) { ht_infer(ht_open(&argc, &argv), model); return 0; }
#endif
"""
refusals = collections.Counter()


def program(bench, seed):
    folder = bench.path(f"drawn{seed}")  # csmith leaves a file where it runs
    folder.mkdir(exist_ok=True)
    text = harness.run(["env", "-C", folder, "timeout", "20", "csmith", "--seed", str(seed), *DRAWN, *SIZES[seed % len(SIZES)]], check=False)
    if text.returncode:
        return None  # csmith's own assertions
    text = text.stdout
    return "#ifndef PLAIN\n#include <hetu/hetu.h>\n#endif\n#include <stdio.h>\n" + text[: text.index("int main (void)")] + ENDING


def check(bench, seed):
    path, binary = bench.path(f"csmith{seed}.c"), bench.path(f"csmith{seed}")
    text = program(bench, seed)
    if not text:
        return "csmith makes no program of this seed"
    path.write_text(text)
    # What C leaves open is refused, or is nobody's fault.
    harness.run(["gcc", "-w", "-O0", "-DPLAIN", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I", HEADERS, path, "-o", binary])
    ran = harness.run(["timeout", "5", binary], check=False)
    if ran.returncode == 124:
        return "does not end"
    done = harness.run([bench.hetucc, "--emit=ir", "--stop-after=frontend", "-I", HEADERS, path], check=False, timeout=120)
    if done.returncode not in (0, 1) or "internal error" in done.stderr or (done.returncode and not re.search(r":\d+:\d+: error: ", done.stderr)):
        raise harness.Failure(f"{path}: exit {done.returncode}\n{done.stderr[-2000:]}")
    if done.returncode:
        message = re.search(r": error: (.*)", done.stderr)[1]
        refusals[re.sub(r"\d+|\w+_\d+", "N", message)] += 1
        return f"refused: {message}"
    found = re.search(r'"(v-?\d+)"', done.stdout)[1]
    if ran.returncode:
        return f"{found}; gcc's ends with {ran.returncode}: C leaves it open"
    if found != ran.stdout.strip():
        raise harness.Failure(f"{path}: {found}, gcc has {ran.stdout.strip()}")
    return found


def enough(_bench):
    """Most programs are evaluated."""
    if sum(refusals.values()) > 0.4 * 500:
        raise harness.Failure(str(refusals))
    return str(refusals)


def tests(bench, _arguments):
    if not shutil.which("csmith") or not HEADERS:
        print("skipped: csmith is not installed (packages csmith and libcsmith-dev)")
        sys.exit(SKIPPED)
    return [*((f"seed{s}", lambda s=s: check(bench, s)) for s in range(500)), ("enough", lambda: enough(bench))]


if __name__ == "__main__":
    harness.main("csmith", tests)
