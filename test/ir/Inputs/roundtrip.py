"""Print, parse, print is the identity after every pass, and passes run one by one over the text give what they give in one run.

    roundtrip.py HETUCC HETU-OPT ROOT EXAMPLE...
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

hetucc, opt, root = sys.argv[1:4]


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[:2000]}")
    return done.stdout


def dump(source, strategy, name, stop):
    """The texts after a pass, or after each one (name "all"), by pass."""
    text = run(hetucc, str(source), f"-I{root}/include", f"--strategy={strategy}", f"--stop-after={stop}", f"--print-after={name}")
    texts, after = collections.defaultdict(str), name
    for line in text.splitlines():
        heading = re.match(r"// \S+ after (\w+)$", line)
        after = heading[1] if heading else after
        texts[after] += "" if line.startswith("//") else line + "\n"
    return texts


def passes():
    text = pathlib.Path(root, "compiler/passes/pass_manager.h").read_text()
    return re.findall(r"^    PASS\((\w+),", text, re.M) or sys.exit("no passes are found")


def strategies(folder, source):
    found = re.findall(r"^#pragma hspmd strategy (\w+)", source.read_text(), re.M)
    return found + sorted(str(path) for path in folder.glob("strategies/*.strategy"))


def without_places(text):
    """The text without the places of `split` rules: the text of a strategy has none, and so they are those in the text itself."""
    return re.sub(r'^(split .*) @\S+$', r"\1", text, flags=re.M)


def check(source, strategy):
    text, after = dump(source, strategy, "frontend", "frontend")["frontend"], dump(source, strategy, "all", passes()[-1])
    for name in passes():
        text = run(opt, name, "-", text=text)
        if without_places(text) != without_places(after[name]):
            sys.exit(f"{source} {strategy}: {name} over the text gives something else")
        if text != run(opt, "-", text=text):
            sys.exit(f"{source} {strategy}: the text after {name} does not parse back to itself")


def examples():
    for example in sys.argv[4:]:
        folder = pathlib.Path(root, "examples", example)
        source = folder / f"{example}.c"
        yield from ((source, strategy) for strategy in strategies(folder, source))


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    checked = list(pool.map(lambda pair: check(*pair), examples()))
print(f"{len(checked)} strategies round-trip")
