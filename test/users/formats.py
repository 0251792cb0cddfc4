#!/usr/bin/env python3
"""The tables of tools/manual/formats.md name each key of the JSON that programs write in exactly one place,
and no other key. The keys are collected from runs with models and inputs that make every key appear."""
import collections
import functools
import json
import pathlib
import random
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "run"), str(HERE.parent / "plan")]
import families
import harness
from harness import Failure, ROOT, launch, run

harness.MEETS = True

REPORT = HERE.parent / "report" / "Inputs"
NAMES = "the operators' names"  # the keys of an object that are no fixed words


def listed():
    """By heading: how often each (object, key) stands there; "" is the file itself."""
    tables, heading, path = collections.defaultdict(collections.Counter), None, None
    for line in (ROOT / "tools" / "manual" / "formats.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if line.startswith("## "):
            heading, path = line[3:], None
        elif cells[:1] == ["object"]:
            path = ""
        elif path is not None and len(cells) == 2 and not cells[0].startswith("---"):
            path = "" if cells[0] == "the file" else cells[0].strip("`") or path
            keys = re.findall(r"`([^`]+)`", re.sub(r"\([^)]*\)", "", cells[1]))
            tables[heading].update((path, key) for key in keys or [cells[1]])
        else:
            path = None if not line.startswith("|") else path
    return tables


def written(value, path=""):
    """The (object, key) of all objects in a JSON value; lists lie between an object and its key."""
    if isinstance(value, list):
        return set().union(*(written(item, path) for item in value))
    if not isinstance(value, dict):
        return set()
    inner = [written(item, f"{path}.{key}" if path else key) for key, item in value.items()]
    return {(path, key) for key in value}.union(*inner)


def compare(heading, found):
    stands = listed()[heading]
    names = {path for path, key in stands if key == NAMES}
    found = {(path, NAMES if path in names else key) for path, key in found}
    lost, unknown = sorted(set(stands) - found), sorted(found - set(stands))
    twice = sorted(entry for entry, count in stands.items() if count > 1)
    if lost or unknown or twice or not found:
        raise Failure(f"{heading}: nothing writes {lost}; not in the table {unknown}; twice {twice}")
    return f"{len(found)} keys"


def chain(strategy, *words):
    """The words of a command on the model of test/report; its strategies are `four` and `whole`."""
    return [*words, f"--strategy={REPORT / 'chains.strategy'}:{strategy}", REPORT / "chain.c"]


def check_cost(bench):
    costs = [json.loads(run(chain(strategy, bench.hetucc, "--emit=cost-json", "-o", "-")).stdout) for strategy in ("four", "whole")]
    return compare("hetucc --emit=cost-json", written(costs))


def check_report(bench):
    found = set()
    for strategy in ("four", "whole"):
        path = bench.path(f"{strategy}.json")
        run(chain(strategy, bench.hetucc, f"--report={path}", "--emit=ir", "-o", "/dev/null"))
        found |= written(json.loads(path.read_text()))
    return compare("hetucc --report=FILE.json", found)


def simulated(bench, *words):
    return run(chain("four", bench.build / "bin" / "hetu-simulate", f"--cluster={REPORT / 'cluster.json'}", *words)).stdout


def check_simulate(bench):
    return compare("hetu-simulate --json", written(json.loads(simulated(bench, "--json"))))


def check_traces(bench):
    paths = [bench.path("simulated.trace"), bench.path("run.trace")]
    simulated(bench, f"--trace={paths[0]}")
    launch(bench.compiled(HERE / "windows.c", "stages"), 6, env={"HETU_TRACE": str(paths[1])})
    return compare("Traces", set().union(*(written(json.loads(path.read_text())) for path in paths)))


def check_plans(bench):
    inputs = {kind: getattr(families, kind)(random.Random(7)) for kind in ("malleus", "hydraulis", "flexsp", "galvatron", "spindle")}
    inputs["hydraulis"] = {**inputs["hydraulis"][0], "lengths": inputs["hydraulis"][0]["lengths"][:128]}
    answers = {}

    def answer(kind, given):
        path = bench.path(f"{kind}.json")
        path.write_text(json.dumps(given))
        for words in ((kind,), (kind, "--certify")):
            answers[" ".join(words)] = json.loads(run([bench.build / "bin" / "hetu-plan", "--effort=0.1", *words, path]).stdout)

    for kind, given in inputs.items():
        answer(kind, given)
    answer("hydraulis-batch", {"schemes": inputs["hydraulis"]["schemes"], "strategies": answers["hydraulis"]["strategies"], "lengths": inputs["hydraulis"]["lengths"][:64]})
    return compare("hetu-plan", set().union(*(written(plan, name) for name, plan in answers.items())))


def check_reshard(bench):
    cases = ("f32[8,12]: [0-3]{0:4} -> [0-3]{1:4}", "f32[8,12]: [0-3]{1:4} -> [0-3]{0:4}")
    answers = [json.loads(run([bench.build / "bin" / "hetu-reshard", "--json", *cases[:count]]).stdout) for count in (1, 2)]
    return compare("hetu-reshard --json", written(answers))


if __name__ == "__main__":
    CHECKS = {"cost": check_cost, "report": check_report, "simulate": check_simulate, "traces": check_traces, "plan": check_plans, "reshard": check_reshard}
    harness.main("users.formats", lambda bench, _: [(name, functools.partial(check, bench)) for name, check in CHECKS.items()])
