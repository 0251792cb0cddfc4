"""Functions that the end-to-end tests share: they build an example with hetucc or cc, run it, read the files that it wrote, and report results.

A suite is a list of (name, function). The function raises Failure with what is wrong, or Skip with the reason why it cannot run here. `main` runs the suite,
two tests at a time, prints a line for each test and writes BUILD/test/results/SUITE.xml for the closing count. Python's standard library is all that is needed.
"""
import argparse
import array
import concurrent.futures
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import xml.sax.saxutils

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
COMMON = [EXAMPLES / "common" / f"{n}.c" for n in ("options", "progress", "text")]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}  # ranks share a machine: nothing else is looked for
LONG = os.environ.get("HETU_LONG")  # the tests take their time
# How gpt and llama train where parameters are compared. The examples' own small weights have
# gradients so small that f32 stores the changes too coarsely (resolve_parameters).
SGD = ("-DSGD", "-DDEVIATION=0.2f")


class Failure(Exception):
    pass


class Skip(Exception):
    """What a test needs is not on this machine; the closing count has it as skipped."""


def preloaded(library):
    """LD_PRELOAD with a library in front of what it has."""
    return ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))


def run(command, timeout=120, env=None, check=True, cwd=None):
    """Runs a command to its end and gives it back with its output; a failure shows the command and the end of what it printed."""
    command = [str(c) for c in command]
    try:
        p = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, env={**os.environ, **(env or {})}, cwd=cwd)
    except subprocess.TimeoutExpired:
        raise Failure(f"{shlex.join(command)}\nnot done after {timeout} s") from None
    if check and p.returncode:
        raise Failure(f"{shlex.join(command)}\nexit {p.returncode}\n{(p.stdout + p.stderr)[-3000:]}")
    return p


class Bench:
    """A build tree, a folder to work in, and what was built there."""

    def __init__(self, build, work):
        self.build, self.work = pathlib.Path(build).resolve(), pathlib.Path(work)
        self.hetucc = self.build / "bin" / "hetucc"
        self.lock, self.made = threading.Lock(), {}

    def once(self, key, make):
        """make(), once for each key, also when two tests ask at the same time."""
        with self.lock:
            slot = self.made.setdefault(key, {"lock": threading.Lock()})
        with slot["lock"]:
            if "value" not in slot:
                slot["value"] = make()
            return slot["value"]

    def path(self, name):
        return self.work / re.sub(r"[^A-Za-z0-9_.]+", "_", name)

    def common(self):
        """The examples' shared objects, built by the plain compiler."""
        def make():
            objects = []
            for source in COMMON:
                objects.append(self.work / (source.stem + ".o"))
                run(["cc", "-std=gnu17", "-O1", *WARNINGS, f"-I{ROOT}/include", "-c", source, "-o", objects[-1]])
            return objects
        return self.once("common", make)

    def plain(self, source, flags=()):
        """The one-device program: the plain compiler and libhetu."""
        def make():
            out = self.path(f"{source.stem}.plain{''.join(flags)}")
            library = self.build / "lib"
            run(["cc", "-std=gnu17", "-O1", *WARNINGS, *flags, f"-I{ROOT}/include", source, *self.common(), "-o", out, f"-L{library}", f"-Wl,-rpath,{library}",
                 "-lhetu", "-lm"])
            return out
        return self.once(("plain", source, tuple(flags)), make)

    def compiled(self, source, strategy, flags=()):
        """The program that hetucc makes for a strategy (a name, or a file); None: no strategy."""
        def make():
            label = pathlib.Path(strategy).stem if strategy else "none"
            out = self.path(f"{source.stem}.{label}{''.join(flags)}")
            chosen = [f"--strategy={strategy}"] if strategy else []
            run([self.hetucc, *chosen, OPTIMISED, *WARNINGS, *flags, source, *self.common(), "-o", out, "-lm"], timeout=300)
            return out
        return self.once(("hetucc", source, str(strategy), tuple(flags)), make)


# How hetucc and the C compiler behind it optimise. Without it emitted code is compiled in a quarter of the time, and most programs here run for a moment; suites that
# take times, and a few that are to see the optimiser's warnings, say another.
OPTIMISED = "-O0"
# Whether `launch` starts ranks by itself, which meet in a folder, instead of by mpirun: a suite of many small programs is done much sooner, and leaves MPI to others.
MEETS = False


def meet(program, ranks, *arguments, env, timeout, check):
    """Runs a program on ranks that meet in a folder; what they print, that of rank 0 first."""
    with tempfile.TemporaryDirectory() as folder:
        ends = [(open(f"{folder}/{r}.out", "w+b"), open(f"{folder}/{r}.err", "w+b")) for r in range(ranks)]
        command = [str(program), *map(str, arguments)]
        started = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                    env={**os.environ, **env, "HETU_RENDEZVOUS": folder, "HETU_RANK": str(r), "HETU_SIZE": str(ranks)}) for r, (out, err) in enumerate(ends)]
        end, late = time.time() + timeout, False
        for rank in started:
            try:
                rank.wait(max(0.1, end - time.time()))
            except subprocess.TimeoutExpired:
                late = True
        for rank in started:
            rank.kill()
            rank.wait()
        texts = []
        for k in (0, 1):
            [file[k].seek(0) for file in ends]
            texts.append("".join(file[k].read().decode(errors="replace") for file in ends))
            [file[k].close() for file in ends]
    if late:
        raise Failure(f"{shlex.join(command)} on {ranks} ranks\nnot done after {timeout} s")
    done = subprocess.CompletedProcess(command, next((rank.returncode for rank in started if rank.returncode), 0), *texts)
    if check and done.returncode:
        raise Failure(f"{shlex.join(command)} on {ranks} ranks\nexit {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done


def launch(program, ranks, *arguments, env=None, timeout=120, check=True, preload=None, meets=None):
    """Runs a program on so many ranks (0: without mpirun)."""
    env = {"OMP_NUM_THREADS": "1", "HETU_CHECK": "1", **MPI, **(env or {})}
    if not ranks:
        return run([program, *arguments], timeout, env, check)
    if MEETS if meets is None else meets:
        return meet(program, ranks, *arguments, env={**env, **({"LD_PRELOAD": preloaded(preload)} if preload else {})}, timeout=timeout, check=check)
    extra = ["-x", f"LD_PRELOAD={preloaded(preload)}"] if preload else []
    return run(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", *extra, "-np", ranks, program, *arguments], timeout, env, check)


def read_losses(path):
    return [float(line) for line in pathlib.Path(path).read_text().split()]


def read_parameters(path):
    """{name: array of floats} from a file that an example wrote with --dump."""
    data, at, found = pathlib.Path(path).read_bytes(), 0, {}
    while at < len(data):
        end = data.index(b"\n", at)
        name, count = data[at:end].decode().rsplit(" ", 1)
        at = end + 1 + 4 * int(count)
        found[name] = array.array("f", data[end + 1: at])
    return found


def distance(a, b):
    return math.sqrt(math.fsum((x - y) * (x - y) for x, y in zip(a, b)))


def compare_losses(found, wanted, tolerance):
    if len(found) != len(wanted):
        raise Failure(f"{len(found)} losses, not {len(wanted)}")
    worst = max((abs(f - w) / abs(w) if math.isfinite(f) and math.isfinite(w) else math.inf, i) for i, (f, w) in enumerate(zip(found, wanted)))
    if worst[0] > tolerance:
        raise Failure(f"loss of step {worst[1]} is {found[worst[1]]:.9g}, not {wanted[worst[1]]:.9g}: {worst[0]:.2g} off, {tolerance:g} allowed")
    return worst[0]


def compare_parameters(found, wanted, initial, tolerance):
    """Each tensor's error, at most `tolerance` of its own change, which f32 must store that finely (resolve_parameters); tensors that hardly change are left aside."""
    if set(found) != set(wanted):
        raise Failure(f"other parameters: {sorted(set(found) ^ set(wanted))}")
    resolve_parameters(wanted, initial, tolerance)
    change = {n: distance(wanted[n], initial[n]) for n in wanted}
    least, worst = 1e-6 * max(change.values()), 0
    for n in wanted:
        if change[n] < least or len(wanted[n]) == 0:
            continue
        error = distance(found[n], wanted[n]) / change[n]
        worst = max(worst, error if error == error else math.inf)
        if not error <= tolerance:
            raise Failure(f"parameter {n} is off by {error:.2g} of its change, {tolerance:g} allowed")
    return worst


def unit_of(values):
    """The unit in the last place of the largest of f32 numbers."""
    return 2.0 ** (math.frexp(max(map(abs, values)))[1] - 24)


SPARE = 4


def resolve_parameters(wanted, initial, tolerance):
    """Refuses a run whose changes f32 cannot store to the tolerance, in a tensor that compare_parameters looks at; gives the coarsest unit, in changes.

    A parameter is rounded after each step, and runs whose gradients are equal but for rounding now and then round an element of it to neighbours. Where the change of a tensor is few units in the
    last place, its error is that of storing, whatever its gradient is worth: such a run needs a larger rate, not a larger tolerance. SPARE^2 elements may be stored one unit off.
    """
    change = {n: distance(wanted[n], initial[n]) for n in wanted}
    least, coarsest = 1e-6 * max(change.values()), 0
    for n in wanted:
        if change[n] < least or len(wanted[n]) == 0:
            continue
        units = change[n] / unit_of([*wanted[n], *initial[n]]) if change[n] else 0
        if not units * tolerance >= SPARE:
            raise Failure(f"parameter {n} changes by {units:.3g} units in the last place, too few to be compared within {tolerance:g}: a larger rate is needed")
        coarsest = max(coarsest, 1 / units)
    return coarsest


def report_write(path, suite, results):
    escape = xml.sax.saxutils.quoteattr
    lines = [f'<testsuite name="{suite}" tests="{len(results)}" failures="{sum(bool(r[1]) for r in results)}" skipped="{sum(bool(r[2]) for r in results)}">']
    for name, wrong, reason, seconds in results:
        failure = f"<failure message={escape(wrong[:2000])}/>" if wrong else f"<skipped message={escape(reason)}/>" if reason else ""
        lines.append(f'<testcase classname="{suite}" name={escape(name)} time="{seconds:.2f}">{failure}</testcase>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, "</testsuite>", ""]))


def run_one(name, test):
    """(name, what is wrong, why it was skipped, seconds) of a test; of the middle two one at most says anything."""
    start, wrong, reason, note = time.time(), "", "", ""
    try:
        note = test() or ""
    except Skip as e:
        reason = note = str(e)
    except Failure as e:
        wrong = str(e)
    except (OSError, ValueError, KeyError, IndexError) as e:
        wrong = f"{type(e).__name__}: {e}"
    seconds = time.time() - start
    print(f"{'FAIL' if wrong else 'skip' if reason else 'pass'} {name} ({seconds:.1f} s) {note}", *(["\n     " + wrong.replace("\n", "\n     ")] if wrong else []), flush=True)
    return name, wrong, reason, seconds


def main(suite, tests, extend=None, jobs=2):
    """The command line of a suite; tests(bench, arguments) gives its tests as (name, function), or (name, function, True) of one that runs with HETU_LONG=1 or --only alone.

    So many jobs run at a time unless --jobs says otherwise: suites that measure time say 1.
    """
    a = argparse.ArgumentParser(description=f"The tests {suite}.")
    a.add_argument("--build", default=ROOT / "build", help="the build tree")
    a.add_argument("--only", help="run the tests whose name matches this pattern")
    a.add_argument("--keep", help="work in this folder, and keep it")
    a.add_argument("--list", action="store_true")
    a.add_argument("--jobs", type=int, default=jobs, help="tests that run at a time")
    if extend:
        extend(a)
    a = a.parse_args()
    with tempfile.TemporaryDirectory() as work:
        if a.keep:
            pathlib.Path(a.keep).mkdir(parents=True, exist_ok=True)
        bench = Bench(a.build, a.keep or work)
        name = suite if isinstance(suite, str) else suite(a)
        name += f"-{os.environ['TEST_LOCALE']}" if "TEST_LOCALE" in os.environ else ""
        known = [(n, t, any(rare)) for n, t, *rare in tests(bench, a) if not a.only or re.search(a.only, n)]
        chosen = [(n, t) for n, t, rare in known if not rare or a.only or LONG]
        if a.list:
            print("\n".join(n for n, _ in chosen))
            return
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            results = list(pool.map(lambda t: run_one(*t), chosen))
    report_write(bench.build / "test" / "results" / f"{name}.xml", name, results)
    failed, skipped = (sum(bool(r[k]) for r in results) for k in (1, 2))
    left = f"; {len(known) - len(chosen)} more with HETU_LONG=1" if len(known) > len(chosen) else ""
    print(f"{name}: {len(results) - failed - skipped} passed, {failed} failed{f', {skipped} skipped' if skipped else ''}{left}")
    sys.exit(failed > 0)
