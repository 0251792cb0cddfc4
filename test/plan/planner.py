"""Runs hetu-plan for the tests of planners: PLANNER is its path, the first argument of each test program."""
import json
import subprocess
import sys
import tempfile
import time

PLANNER = sys.argv[1]


def run(kind, case, *options):
    """(exit status, standard output, standard error without the input's folder, seconds) of a run."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/input.json"
        with open(path, "w") as file:
            json.dump(case, file)
        begin = time.monotonic()
        ran = subprocess.run([PLANNER, *options, kind, path], capture_output=True, text=True, timeout=120)
        return ran.returncode, ran.stdout, ran.stderr.replace(folder + "/", ""), time.monotonic() - begin


def answer(kind, case, *options):
    """The JSON that a run prints."""
    status, out, errors, _ = run(kind, case, *options)
    assert status == 0 and not errors, (kind, status, errors)
    return json.loads(out)


def once(items, count):
    """Every one of 0 .. count - 1 stands in items exactly once."""
    assert sorted(items) == list(range(count)), sorted(items)


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
