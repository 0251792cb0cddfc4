#!/usr/bin/env python3
"""A GPU fails under heturun: the run goes on without its slot, on the GPU of another one, and products are tuned there although the first step is not the run's first."""
import functools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent.parent / "run"))
import elastic
import emulated
import harness
from harness import Failure, run

STEPS, FAULT_AT = 8, 160  # the kernel with which GPU 0 fails, some steps later than the first


def built(bench):
    def make():
        out = bench.path("elastic.emulated")
        folder = out.with_name(out.name + ".folder")
        chosen = [f"--strategy={elastic.folder_of(bench, '5') / '5.strategy'}"]
        run([bench.hetucc, "--backend=cuda", "--emit=c", *chosen, "-O1", *harness.WARNINGS, elastic.SOURCE, "-o", folder, "-lm"])
        bench.build_emulated(folder, out)
        return out
    return bench.once("elastic.emulated", make)


def check(bench, code, ends):
    """Slot 0 fails. Where that is the device's fault, slot 1 goes on; where it is the program's, heturun ends with its status."""
    cache = bench.path(f"cache.{code}")
    own = elastic.Run(bench, f"fault{code}", "localhost slots=2\n", STEPS, nap=1, names="5", program=built(bench), HETU_EMULATE_DEVICES="2",
                      HETU_EMULATE_FAULT=f"{code}:{FAULT_AT}:0", HETU_EMULATE_ALGORITHMS="3:2", HETU_CACHE=str(cache))
    status = own.process.wait(timeout=60)
    own.reader.join()
    said = own.said()
    if status != ends:
        raise Failure(f"heturun ended with {status}:\n{said}")
    if ends:
        if "start 2" in said:
            raise Failure(f"an error of the program is tried again:\n{said}")
        return f"ended with {status}"
    if "heturun: rank 0 of start 1 has a fault of its device; slot 0 of localhost is out" not in said or "start 3" in said or "goes on behind step 0" not in said:
        raise Failure(said)
    begins = [int(step) for step in re.findall(r"goes on behind step (\d+)", said)]
    if len(begins) != 2 or not 0 < begins[1] < STEPS - 2:
        raise Failure(f"the run begins behind steps {begins}:\n{said}")
    found, wanted = own.log.read_text().splitlines(), elastic.wanted(bench, STEPS)
    worst = harness.compare_losses([float(l.split()[1]) for l in found], [float(l.split()[1]) for l in wanted], 1e-4)
    tuned = {line.split(",")[0] for line in cache.read_text().splitlines()[1:]}
    if tuned != {"emulated device 0", "emulated device 1"}:
        raise Failure(f"products are tuned on {tuned}")
    return f"{len(found)} steps, loss {worst:.1g} off"


def tests(bench, _):
    yield "device", functools.partial(check, bench, 214, 0)
    yield "program", functools.partial(check, bench, 700, 1)


if __name__ == "__main__":
    harness.Bench = emulated.Bench
    harness.main("cuda.faults", tests)
