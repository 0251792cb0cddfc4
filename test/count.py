"""Prints how many tests the last ctest run had, and why it skipped some: from the XML files that
lit and cmocka leave in BUILD/test/results, and from ctest's own log for the rest. A test that skips
prints a line "NAME: skipped: REASON".

    count.py BUILD
"""
import collections
import glob
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def xml_counts(path, skipped):
    """(run, failed) of one results file, and reasons in `skipped`; a file that cannot be read counts
    as one failure."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError:
        return 1, 1
    run = failed = 0
    for case in root.iter("testcase"):
        skip = case.find("skipped")
        if skip is None:
            run += 1
            failed += case.find("failure") is not None or case.find("error") is not None
        else:
            skipped[skip.get("message") or (skip.text or "").strip() or "no reason given"] += 1
    return run, failed


def ctest_counts(build, counted, skipped):
    """(run, failed) of the ctest tests outside `counted`, and how many of those inside failed without
    any XML failure to show for it; reasons of skips go to `skipped`. ctest calls a skip passed."""
    # ctest renames the log after this has run
    log = os.path.join(build, "Testing", "Temporary", "LastTest.log.tmp")
    if not os.path.exists(log):
        log = log.removesuffix(".tmp")
    run = failed = 0
    text = open(log, errors="replace").read() if os.path.exists(log) else ""
    for block in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]:
        name = block.split("\n", 1)[0].strip()
        passed = re.search(r"^Test Passed\.$", block, flags=re.M) is not None
        reason = re.search(r"^(?:[\w.-]+: )?skipped: (.+)$", block, flags=re.M)
        if passed and reason and name not in counted:
            skipped[reason[1]] += 1
        elif counted.get(name) is None or (not passed and counted[name][1] == 0):
            run += 1
            failed += not passed
    return run, failed


def main():
    build = sys.argv[1]
    counted, skipped = {}, collections.Counter()
    for path in sorted(glob.glob(os.path.join(build, "test", "results", "*.xml"))):
        name = os.path.basename(path)[: -len(".xml")]
        name = ".".join(name.split(".")[:2])
        run, failed = xml_counts(path, skipped)
        before = counted.get(name, (0, 0))
        counted[name] = (before[0] + run, before[1] + failed)
    for name, (run, failed) in sorted(counted.items()):
        print(f"{name:32} {run:5} run {failed:5} failed")
    run, failed = ctest_counts(build, counted, skipped)
    run += sum(counts[0] for counts in counted.values())
    failed += sum(counts[1] for counts in counted.values())
    for reason, count in sorted(skipped.items()):
        print(f"{count} skipped: {reason}")
    print(f"{run - failed} passed, {failed} failed, {sum(skipped.values())} skipped")


if __name__ == "__main__":
    main()
