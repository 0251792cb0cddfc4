"""status.py HETUCC INPUTS: every pair of hetucc's options on a good source is taken, or refused with status 2 as a mistake in the command line; prints the pairs that are refused, by their first option,
and what differs from that. Nothing is compiled (-###). An error of a source or a file has status 1 under every option that reads it."""
import collections
import itertools
import os
import re
import subprocess
import sys
import tempfile

HETUCC, INPUTS = sys.argv[1:]
OPTIONS = ["-o x.out", "-c", "--strategy=dp2", "--cluster=c.json", "--plan", "--memory=1G", "--strategies", "--emit=ir", "--emit=c", "--report=r.json", "--known=1", "--resume=small.ir",
           "--print-after=frontend", "--stop-after=frontend", "--backend=cuda", "--init=new", "-E", "-S", "-fsyntax-only"]
CLUSTER = ('{"classes": {"a": {"memory_bandwidth": 1e10, "start": 1e-6, "arithmetic": 1e10, "products": {"f32": [[1, 1e10]]}}}, "devices": [{"class": "a", "host": "h", "count": 2}],'
           ' "links": {"local": {"latency": 1e-6, "bandwidth": 1e10}, "remote": {"latency": 1e-6, "bandwidth": 1e10}}}')
# What is seen in the source alone: a model does not become assembly, and no strategy is left to make.
CONTENT = {"-S", "--known=1"}


def run(words, files=("small.c",)):
    said = subprocess.run([HETUCC, *words, *files], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return said.returncode, said.stderr


def single(words, files=("small.c",), status=1):
    got, said = run(words, files)
    if got != status or "error: " not in said:
        print(f"{' '.join((*words, *files))}: {got}, not {status}: {said.strip()[:200]}")


with tempfile.TemporaryDirectory() as folder:
    for name in "small.c", "helper.c":
        with open(f"{INPUTS}/{name}") as source, open(f"{folder}/{name}", "w") as copy:
            copy.write(source.read())
    os.chdir(folder)
    with open("c.json", "w") as file:
        file.write(CLUSTER)
    with open("wrong.c", "w") as file:
        file.write("#include <hetu/hetu.h>\n#pragma hspmd nonsense\n")
    run(["--strategy=dp2", "--emit=ir", "--stop-after=frontend", "-o", "small.ir"])
    # Pairs.
    refused = collections.defaultdict(list)
    for one, other in itertools.combinations(OPTIONS, 2):
        words = ["-###", *one.split(), *other.split()]
        status, said = run(words, () if "--init=new" in words else ("small.c",))
        if status == 2 and re.match("hetucc: error: ", said):
            refused[one].append(other)
        elif status and not (status == 1 and CONTENT & {one, other}):
            print(f"{one} {other}: {status}: {said.strip()[:200]}")
    for one, others in refused.items():
        print(f"{one}: {' '.join(others)}")
    # Mistakes of a word, and what is no mistake of the command line.
    for words, files in ((["--init=new"], ("small.c",)), (["-c", "-o", "x"], ("small.c", "helper.c")), (["-o", "small.c"], ("small.c",)), (["-MD", "-MF", "small.c"], ("small.c",)),
                         (["--report=r.json", "-o", "r.json"], ("small.c",)), ([], ("x.cu",)), (["--emit=ir"], ("x.o",)), (["--emit=ir"], ()), (["--memory=x"], ("small.c",)),
                         (["--cluster="], ("small.c",)), (["-o", ""], ("small.c",)), (["--resume="], ("small.c",)), (["--init="], ()),
                         (["--backend=tpu"], ("small.c",)), (["-Rnone"], ("small.c",)), (["--report=x"], ("small.c",)), (["--stop-after=x"], ("small.c",)), (["--plan"], ("small.c",))):
        open("x.o", "w").close()
        open("x.cu", "w").close()
        single(words, files, 2)
    for words in (["-o"], ["-D"], ["-I"], ["-R"], ["-include"], ["-isystem"], ["-x"], ["--strategy"], ["--emit"], ["--plan=3"], ["--version=3"], ["--nonsense-that-cc-has-not=", "--stratgy=x"]):
        single(("small.c", *words), (), 2)
    single(("small.c", "two.strategy"), (), 2)
    for words, files in (([], ("none.c",)), ([], ("wrong.c",)), (["-c"], ("wrong.c",)), (["--emit=ir"], ("wrong.c",)), (["--strategies"], ("wrong.c",)), (["--cluster=none.json"], ("small.c",)),
                         (["--strategy=none"], ("small.c",)), (["--plan", "--cluster=none.json"], ("small.c",)), (["--resume=none.ir"], ("small.c",)), (["--strategies"], ("helper.c",)),
                         (["--report=r.json"], ("helper.c",)), (["--emit=ir", "-o", "none/x"], ("small.c",)), (["-fsyntax-only"], ("wrong.c",)), (["--init=none/deep"], ())):
        single(words, files)
