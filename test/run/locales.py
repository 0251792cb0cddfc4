#!/usr/bin/env python3
"""Under a locale with a decimal comma, programs store, trace and plan numbers of the C locale. Skipped, with a message, where no locale can be made."""
import json
import os
import re
import shutil
import sys

import arrivals
import checkpoints
import harness
import localed
from harness import Failure


def under(bench, locale):
    more = localed.environment(bench.build, locale)
    if not more:
        print(f"skipped: {locale} cannot be made; localedef and the sources of the package locales are needed")
        sys.exit(localed.SKIPPED)
    return more


def traced(bench, locale):
    """A trace is JSON."""
    path = bench.path(f"trace.{locale}.json")
    arrivals.trained(bench, "plain", ["steps=2"], 2, HETU_TRACE=str(path), **under(bench, locale))
    if not json.loads(path.read_text())["traceEvents"]:
        raise Failure("the trace is empty")


def balanced(bench, locale):
    """Rates with fractions reach the planner, one a rank: a hetu-balance between notes its words."""
    tool, words = bench.path(f"tool.{locale}"), bench.path(f"words.{locale}")
    (tool / "bin").mkdir(parents=True)
    for path in bench.build.iterdir():
        if path.name != "bin":
            (tool / path.name).symlink_to(path)
    shutil.copy(bench.hetucc, tool / "bin")
    (tool / "bin" / "hetu-balance").write_text(f'#!/bin/sh\necho "$@" >> {words}\nexec {bench.build}/bin/hetu-balance "$@"\n')
    (tool / "bin" / "hetu-balance").chmod(0o755)
    said = arrivals.slowed(harness.Bench(tool, bench.path(f"work.{locale}")), "plain", **under(bench, locale))
    rates = re.findall(r"--rates=(\S+)", words.read_text())
    if not rates or any(len(r.split(",")) != arrivals.RANKS for r in rates) or "." not in "".join(rates):
        raise Failure(f"rates of {arrivals.RANKS} ranks: {rates}")
    return said


def noted(bench, locale):
    """A note with a fraction is read as it was written, each in another locale than the other."""
    for writes, reads in ({}, under(bench, locale)), (under(bench, locale), {}):
        folder = bench.path(f"noted.{locale}{len(writes)}")
        harness.run([checkpoints.built(bench, "plain"), folder, 2], env=writes)
        said = harness.run([checkpoints.built(bench, "plain"), folder, 2], env=reads).stdout
        if "resumed 2, note 200.5\n" not in said or checkpoints.tensors(checkpoints.file_of(folder, 2))[1].get("number.tokens") != "200.5":
            raise Failure(f"{said}{checkpoints.tensors(checkpoints.file_of(folder, 2))[1]}")


def tests(bench, _):
    for locale in localed.LOCALES:
        yield f"trace.{locale}", lambda locale=locale: traced(bench, locale)
        yield f"note.{locale}", lambda locale=locale: noted(bench, locale)
        yield f"balance.{locale}", lambda locale=locale: balanced(bench, locale)


if __name__ == "__main__":
    if not localed.environment(os.path.join(harness.ROOT, "build", "release") if "--build" not in sys.argv else sys.argv[sys.argv.index("--build") + 1], localed.LOCALES[0]):
        print("skipped: localedef and the sources of the package locales are needed")
        sys.exit(localed.SKIPPED)
    harness.main("locales", tests)
