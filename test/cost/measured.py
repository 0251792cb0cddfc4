"""Predicted seconds of conversions against measured ones, after the links of this machine were measured.

    measured.py HETU_RESHARD

Ratios of at most 1.5 either way are asked for on 4 ranks, from 16 KiB to 16 MiB. Whatever else the machine does in between makes times differ: a case that misses is measured
again, with the links, up to TRIES times; the bound stays.
"""
import os
import subprocess
import sys
import tempfile

BOUND, TRIES = 1.5, 6

PATTERNS = (
    "[0-3]{sum:4} -> [0-3]{dup:4}",
    "[0-3]{sum:4} -> [0-3]{0:4}",
    "[0-3]{0:4} -> [0-3]{dup:4}",
    "[0-3]{0:4} -> [0-3]{1:4}",
    "[0]{} -> [0-3]{dup:4}",
    "[0-3]{0:4} -> [1,2,3,0]{0:4}",
)

SIDES = (64, 256, 1024, 2048)  # of f32[n,n]: 16 KiB, 256 KiB, 4 MiB, 16 MiB


def launch(tool, *arguments):
    command = ["mpirun", "-n", "4", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", tool, *arguments]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, timeout=240).stdout


def ratios(tool, folder, cases):
    """case: (predicted over measured, predicted, measured)."""
    cluster, batch = os.path.join(folder, "cluster.json"), os.path.join(folder, "cases")
    with open(batch, "w") as file:
        file.write("".join(case + "\n" for case in cases))
    launch(tool, f"--measure={cluster}")
    found = {}
    for line in launch(tool, f"--cluster={cluster}", "--time", f"--batch={batch}").splitlines():
        predicted, measured, case = line.split("\t")
        found[case] = float(predicted) / float(measured), predicted, measured
    assert set(found) == set(cases)
    return found


def main():
    cases = [f"f32[{n},{n}]: {pattern}" for n in SIDES for pattern in PATTERNS]
    missing, count = list(cases), len(cases)
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(TRIES):
            found = ratios(sys.argv[1], folder, missing)
            for case, (ratio, predicted, measured) in found.items():
                print(f"{attempt}: {ratio:.2f}  {predicted} s predicted, {measured} s measured  {case}")
            missing = [case for case, (ratio, _, _) in found.items() if not 1 / BOUND <= ratio <= BOUND]
            if not missing:
                break
    print(f"{count} run, {len(missing)} wrong")
    sys.exit(bool(missing))


main()
