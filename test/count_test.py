"""A case that skips inside a suite is counted as skipped, not as passed, and its reason is printed."""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SUITE = """
import harness, sys

def passes():
    return "fine"

def skips():
    raise harness.Skip("there is no moon")

def fails():
    raise harness.Failure("wrong")

harness.main("suite", lambda bench, _: [("a", passes), ("b", skips), ("c", fails), ("d", skips)])
"""

with tempfile.TemporaryDirectory() as build:
    environment = {**os.environ, "PYTHONPATH": str(HERE / "run")}
    suite = subprocess.run([sys.executable, "-c", SUITE, "--build", build], env=environment, capture_output=True, text=True)
    count = subprocess.run([sys.executable, HERE / "count.py", build], capture_output=True, text=True)
    said = [suite.stdout.splitlines()[-1], *count.stdout.splitlines()[-2:]]
    wanted = ["suite: 1 passed, 1 failed, 2 skipped", "2 skipped: there is no moon", "1 passed, 1 failed, 2 skipped"]
    if said != wanted or suite.returncode != 1:
        sys.exit(f"{said}, not {wanted}\n{suite.stderr}{count.stderr}")
