#!/usr/bin/env python3
"""If no strategy fits, hetucc names the least memory of any strategy: one needs so much, and none less:  min_memory.py HETUCC..."""
import os
import re
import subprocess
import sys

HETUCC = sys.argv[1:]
OUT = "least.strategy"
held = 0


def plan(memory, *words):
    if os.path.exists(OUT):
        os.remove(OUT)
    return subprocess.run([*HETUCC, "--plan", f"--memory={memory}", "--cluster=cluster.json", *words, "layers.c", "-o", OUT], capture_output=True, text=True)


for words in ((), ("-DLAYERS=5",), ("-DROWS=7", "-DCOUNT=130"), ("-DLAYERS=3", "-DROWS=48")):
    refused = plan("1K", *words)
    assert refused.returncode == 1 and not os.path.exists(OUT), refused
    least = int(re.search(r"with \S+ \S+ \((\d+) bytes\) a device one would", refused.stderr).group(1))
    fits = plan(least, *words)
    assert fits.returncode == 0 and os.path.exists(OUT), f"{words}: {fits.stderr}"
    assert int(re.search(r"\((\d+) bytes\) of \S+ \S+ on device", fits.stdout).group(1)) <= least, fits.stdout
    less = plan(least - 1, *words)
    assert less.returncode == 1 and not os.path.exists(OUT), f"{words}: with {least - 1} bytes: {less.stdout}{less.stderr}"
    held += 1
print(f"min_memory: {held} cases held")
