"""Prints how many tests the last ctest run had, from the XML files that lit and cmocka leave in BUILD/test/results and from ctest's own log for the rest.

    count.py BUILD
"""
import glob
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def xml_counts(path):
    """(run, failed) of one results file; a file that cannot be read counts as one failure."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError:
        return 1, 1
    run = failed = 0
    for case in root.iter("testcase"):
        if case.find("skipped") is None:
            run += 1
            failed += case.find("failure") is not None or case.find("error") is not None
    return run, failed


def ctest_counts(build, counted):
    """(run, failed) of the ctest tests outside `counted`, and how many of those inside failed without any XML failure to show for it."""
    log = os.path.join(build, "Testing", "Temporary", "LastTest.log.tmp")  # ctest renames it after this has run
    if not os.path.exists(log):
        log = log.removesuffix(".tmp")
    run = failed = 0
    text = open(log, errors="replace").read() if os.path.exists(log) else ""
    for block in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]:
        name = block.split("\n", 1)[0].strip()
        passed = re.search(r"^Test Passed\.$", block, flags=re.M) is not None
        if counted.get(name) is None or (not passed and counted[name][1] == 0):
            run += 1
            failed += not passed
    return run, failed


def main():
    build = sys.argv[1]
    counted = {}
    for path in sorted(glob.glob(os.path.join(build, "test", "results", "*.xml"))):
        name = os.path.basename(path)[: -len(".xml")]
        name = ".".join(name.split(".")[:2])
        run, failed = xml_counts(path)
        before = counted.get(name, (0, 0))
        counted[name] = (before[0] + run, before[1] + failed)
    for name, (run, failed) in sorted(counted.items()):
        print(f"{name:32} {run:5} run {failed:5} failed")
    run, failed = ctest_counts(build, counted)
    run += sum(counts[0] for counts in counted.values())
    failed += sum(counts[1] for counts in counted.values())
    print(f"{run - failed} passed, {failed} failed")


if __name__ == "__main__":
    main()
