"""Compares predicted with measured seconds of conversions, after measuring the links of this machine.

    measured.py HETU_RESHARD

On 4 ranks, from 16 KiB to 16 MiB, the ratio must be at most 1.5 either way. Both numbers come from timings of a machine that also does other things. So a
try does not count if hetu-reshard says that the machine was disturbed, or differs from the measured one. Cases that miss the bound are tried again, at most
TRIES times and each time with new measurements of the links, until the median of an odd number of tries meets it; the bound does not change. If no try was
calm, the test is skipped. A file in which everything takes ten times as long must fail in nearly all cases, which shows that the bound means something.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

BOUND, TRIES, SKIPPED = 1.5, 7, 77

PATTERNS = (
    # one collective of all
    "[0-3]{sum:4} -> [0-3]{dup:4}",
    "[0-3]{sum:4} -> [0-3]{0:4}",
    "[0-3]{0:4} -> [0-3]{dup:4}",
    "[0-3]{0:4} -> [0-3]{1:4}",
    "[0]{} -> [0-3]{dup:4}",
    "[0-3]{sum:4} -> [0]{}",
    # one of some, and two at once
    "[0-1]{sum:2} -> [0-1]{dup:2}",
    "[0-3]{0:2,sum:2} -> [0-3]{0:2,dup:2}",
    "[0-3]{sum:2,0:2} -> [0-3]{dup:2,0:2}",
    # messages to and fro, one way, from one and to one, on processors that are shared and that are not
    "[0-3]{0:4} -> [1,2,3,0]{0:4}",
    "[0]{} -> [3]{}",
    "[0,2]{0:2} -> [1,3]{0:2}",
    "[0,2]{0:2} -> [2,0]{0:2}",
    "[0]{} -> [0-3]{0:4}",
    "[0-3]{0:4} -> [0]{}",
    # uneven ones, others than these, and several steps
    "[0-2]{0:3} -> [0-3]{1:4}",
    "[0-1]{sum:2} -> [2-3]{0:2}",
    "split 0 ([0-1]{1:2} | [2-3]{0:2}) -> [0-3]{1:4}",
    # copies in a device's own memory, and what is combined behind messages and in several groups
    "[0-3]{dup:4} -> [0-3]{1:4}",
    "[0-3]{dup:2,sum:2} -> [0-3]{1:4}",
    "sum([0-2]{0:3} | [3]{}) -> dup([0-2]{0:3} | [3]{})",
)

SIDES = (64, 256, 1024, 2048)  # of f32[n,n]: 16 KiB, 256 KiB, 4 MiB, 16 MiB


def launch(tool, *arguments):
    """What hetu-reshard prints on 4 ranks, and whether it says nothing of a disturbed machine."""
    command = ["mpirun", "-n", "4", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", tool, *arguments]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, timeout=240)
    print(done.stderr, end="", flush=True)
    return done.stdout, "the ranks exchange in" not in done.stderr


def times(tool, cluster, folder, cases):
    """{case: seconds predicted and measured}, and whether the machine was calm."""
    batch = os.path.join(folder, "cases")
    with open(batch, "w") as file:
        file.write("".join(case + "\n" for case in cases))
    found = {}
    printed, calm = launch(tool, f"--cluster={cluster}", "--time", f"--batch={batch}")
    for line in printed.splitlines():
        predicted, measured, case = line.split("\t")
        found[case] = float(predicted), float(measured)
    assert set(found) == set(cases)
    return found, calm


def misses(ratios):
    return [case for case, found in ratios.items() if not 1 / BOUND <= statistics.median(found) <= BOUND]


def slow_down(cluster, factor):
    """Makes everything that a conversion needs take so many times as long."""
    for kind in cluster["classes"].values():
        kind["copy"] *= factor
        for key in "memory_bandwidth", "row_bandwidth", "page_bandwidth":
            kind[key] = [[size, rate / factor] for size, rate in kind[key]]
        for key in "sums", "maxima":
            kind[key] = {dtype: rate / factor for dtype, rate in kind[key].items()}
    for link in (cluster["links"]["local"], cluster["links"]["remote"]):
        link["latency"] *= factor
        link["bandwidth"] /= factor
        for measured in link["measured"]:
            measured["seconds"] = [[size, seconds * factor] for size, seconds in measured["seconds"]]


def try_once(tool, cluster, folder, ratios, cases):
    """Measures the links and adds the cases' ratios; whether the machine was calm."""
    new = cluster + ".new"
    _, calm = launch(tool, f"--measure={new}")
    found, still = times(tool, new, folder, cases) if calm else ({}, False)
    if not still:
        return False
    os.replace(new, cluster)
    for case, (predicted, measured) in found.items():
        ratios[case].append(predicted / measured)
        print(f"{len(ratios[case])}: {predicted / measured:.2f}  {predicted:.3g} s predicted, {measured:.3g} s measured  {case}", flush=True)
    return True


def main():
    tool = sys.argv[1]
    cases = [f"f32[{n},{n}]: {pattern}" for n in SIDES for pattern in PATTERNS]
    ratios, missing, calm = {case: [] for case in cases}, cases, 0
    with tempfile.TemporaryDirectory() as folder:
        cluster, false = os.path.join(folder, "cluster.json"), os.path.join(folder, "false.json")
        for _ in range(TRIES):
            calm += try_once(tool, cluster, folder, ratios, missing)
            # a case that missed is judged by an odd number of tries
            missing = misses(ratios) if calm % 2 else missing
            if not missing:
                break
        if not calm:
            print(f"skipped: the machine was disturbed in each of {TRIES} tries, so that times mean nothing")
            sys.exit(SKIPPED)
        with open(cluster) as read, open(false, "w") as write:
            described = json.load(read)
            slow_down(described, 10)
            json.dump(described, write)
        tried = cases[::5]
        slow = {case: [predicted / measured] for case, (predicted, measured) in times(tool, false, folder, tried)[0].items()}
        held = len(tried) - len(misses(slow))
    print(f"{len(cases)} run, {len(missing)} wrong; by a file that is wrong {held} of {len(tried)} hold")
    sys.exit(bool(missing) or held > len(tried) // 4)


main()
