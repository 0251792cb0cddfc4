#!/usr/bin/env python3
"""Tests the observers HETU_TRACE, HETU_PROFILE and HETU_NAN of programs of hetucc and of the one-device program. Traces are read as JSON and say where each rank's
time went; the model's operators and their costs are known (windows.c). The bytes of -Rmemory are those that ranks allocate, which a preloaded library counts.

The time that observers cost, and clocks that differ, are tested only with HETU_LONG=1 or --only."""
import functools
import html.parser
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
sys.path.insert(0, str(HERE.parent / "cuda" / "run"))
import emulated
import harness
from harness import Failure, Skip, launch, run

harness.MEETS = True

SOURCE = HERE / "windows.c"
LINES = SOURCE.read_text().splitlines()
ROWS, WIDTH, LAYERS, STEPS, BAD = 16, 96, 4, 6, 13
RANKS = {"mesh": 4, "stages": 6, None: 0}
COVERED = 0.95


def line_of(text):
    """The number of the line of the model that has a text."""
    return next(i + 1 for i, line in enumerate(LINES) if text in line)


def program(bench, strategy, *flags):
    """The program for a strategy; None: the one-device program with debugging information."""
    return bench.compiled(SOURCE, strategy, flags) if strategy else bench.plain(SOURCE, ("-g", *flags))


def looked(bench, strategy, *arguments, flags=(), check=True, **env):
    return launch(program(bench, strategy, *flags), RANKS[strategy], *arguments, env=env, check=check)


def traced(bench, strategy, **env):
    """The complete events of a run's trace, by rank, and what the run printed."""
    path = bench.path(f"trace.{strategy}.{'.'.join(env)}.json")
    done = looked(bench, strategy, HETU_TRACE=str(path), **env)
    events = json.loads(path.read_text())["traceEvents"]
    named = {e["pid"] for e in events if e["name"] == "process_name"}
    if named != set(range(max(1, RANKS[strategy]))):
        raise Failure(f"the trace has processes {sorted(named)}")
    return {r: [e for e in events if e["ph"] == "X" and e["pid"] == r] for r in sorted(named)}, done.stdout


def covered(events):
    """The share of the time between the first and the last event that events of the rank have."""
    first, last = min(e["ts"] for e in events), max(e["ts"] + e["dur"] for e in events)
    spans, end, sum_of = sorted((e["ts"], e["ts"] + e["dur"]) for e in events), first, 0
    for begin, stop in spans:
        sum_of += max(0, stop - max(begin, end))
        end = max(end, stop)
    return sum_of / (last - first)


def check_covered(ranks):
    worst = min(covered(events) for events in ranks.values())
    if worst < COVERED:
        raise Failure(f"events have {worst:.3f} of a rank's time")
    return worst


def runs_of(events, name):
    """How often each line ran an operator forward in a step: {step: [lines]}."""
    found = {}
    for e in events:
        if name in e["name"] and e["args"].get("phase", "").startswith("forward"):
            found.setdefault(e["args"]["step"], []).append(e["args"]["line"])
    return found


def check_trace(bench, strategy):
    ranks, printed = traced(bench, strategy)
    if printed != looked(bench, strategy).stdout:
        raise Failure("the losses are others under HETU_TRACE")
    share, linear = check_covered(ranks), line_of("ht_linear(")
    for rank, events in ranks.items():
        layers = {None: 4, "mesh": 4, "stages": [4, 4, 4, 4, 8, 0][rank] if strategy == "stages" else 0}[strategy]
        found = runs_of(events, "ht_linear")
        if sorted(found) != (list(range(STEPS)) if layers else []):
            raise Failure(f"rank {rank} has ht_linear in steps {sorted(found)}")
        for step, lines in found.items():
            if len(lines) != layers or any(not re.match(rf"windows\.c:{linear}\b", line) for line in lines):
                raise Failure(f"step {step} of rank {rank} has ht_linear {len(lines)} times, at {set(lines)}, not {layers} times at line {linear}")
        scopes = {e["args"].get("scope", "").split(".")[0] for e in events if "ht_linear" in e["name"]}
        if layers and not scopes <= {f"h{l}" for l in range(LAYERS)}:
            raise Failure(f"scopes {scopes}")
    return f"{share:.4f} of each rank's time, {sum(map(len, ranks.values()))} events"


def exchanges(events, category):
    """The events of a category in their order."""
    return sorted((e for e in events if e["cat"] == category), key=lambda e: e["ts"])


def check_exchanges(bench, strategy="stages"):
    """Messages and sums are there; ranks that receive are not done before those that send have begun."""
    ranks, _ = traced(bench, strategy)
    for category, who in (("messages", (0, 1, 2, 3)), ("sums", (0, 1, 2, 3, 4))):
        for rank in who:
            if not exchanges(ranks[rank], category):
                raise Failure(f"rank {rank} has no {category}")
    if not any(e["cat"] == "waiting" for e in ranks[5]) or any(e["cat"] == "computing" for e in ranks[5]):
        raise Failure("rank 5, which is idle, computes or does not wait")
    return check_together(ranks, "sums", (0, 1, 2, 3, 4))


def check_together(ranks, category, who):
    """The nth exchange of a line, a sum over all of these ranks, is under way on all of them at once somewhere."""
    checked = 0
    lines = set.intersection(*({(e["name"], e["args"].get("line")) for e in exchanges(ranks[r], category)} for r in who))
    for key in lines:
        each = [[e for e in exchanges(ranks[r], category) if (e["name"], e["args"].get("line")) == key] for r in who]
        for events in zip(*each):
            if max(e["ts"] for e in events) > min(e["ts"] + e["dur"] for e in events) + 1:
                raise Failure(f"{key}: a rank is done before another has begun")
            checked += 1
    return f"{checked} exchanges of all ranks"


def check_steps(bench, strategy):
    ranks, _ = traced(bench, strategy, HETU_TRACE_STEPS="2-3")
    steps = {e["args"]["step"] for events in ranks.values() for e in events if e["cat"] == "computing"}
    if steps != {2, 3}:
        raise Failure(f"steps {sorted(steps)} are traced")
    return f"{sum(map(len, ranks.values()))} events"


def check_clocks(bench):
    """Rank 1 lives in a namespace of times whose clock is 5000 seconds ahead."""
    if os.geteuid() or not shutil.which("unshare") or run(["unshare", "--time", "--monotonic=5000", "true"], check=False).returncode:
        raise Skip("this process may not make a namespace of times")
    path, script = bench.path("clocks.json"), bench.path("apart.sh")
    script.write_text('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec unshare --time --monotonic=5000 "$@"\nexec "$@"\n')
    script.chmod(0o755)
    launch(script, RANKS["mesh"], program(bench, "mesh"), env={"HETU_TRACE": str(path), "OMPI_MCA_btl": "tcp,self"}, meets=False)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    ranks = {r: [e for e in events if e["pid"] == r] for r in range(RANKS["mesh"])}
    ends = [max(e["ts"] for e in ranks[r]) for r in ranks]
    if max(ends) - min(ends) > 1e6:
        raise Failure(f"the ranks end {max(ends) - min(ends)} us apart")
    return f"ranks end {max(ends) - min(ends):.0f} us apart"


def profile_rows(text):
    """{name: (calls, seconds, operations)} of the table of operators, and of that of layers."""
    tables, rows = [], None
    for line in text.splitlines():
        words = re.split(r"\s{2,}|(?<=%)\s+", line.strip())
        if words[0] in ("operator", "layer"):
            rows = {}
            tables.append(rows)
        elif rows is not None and len(words) >= 5:
            number = lambda word: float(word) if re.match(r"[\d.]", word) else 0.0
            rows[words[0]] = (int(words[1]), number(words[2]), number(words[4]))
    return tables


def check_profile(bench, strategy):
    done = looked(bench, strategy, HETU_PROFILE="1")
    operators, layers = profile_rows(done.stderr)
    ranks = max(1, RANKS[strategy])
    seconds = float(re.search(r"profile of (\d+) ranks?, ([\d.]+) s", done.stderr)[2])
    for name, table in (("operators", operators), ("layers", layers)):
        if not 0 < sum(row[1] for row in table.values()) <= seconds * 1.001 + 1e-4 * len(table):
            raise Failure(f"the {name} take {sum(row[1] for row in table.values())} s of {seconds}")
    if not strategy:
        wanted = STEPS * LAYERS * 2.0 * ROWS * WIDTH * WIDTH
        if not abs(operators["ht_linear"][2] / wanted - 1) < 1e-3:
            raise Failure(f"ht_linear has {operators['ht_linear'][2]} operations, not {wanted}")
    else:
        wanted = STEPS * LAYERS * 3 * 2.0 * ROWS * WIDTH * WIDTH - STEPS * 2.0 * ROWS * WIDTH * WIDTH
        products = sum(row[2] for name, row in operators.items() if "ht_linear" in name)
        if not abs(products / wanted - 1) < 2e-3:
            raise Failure(f"products have {products} operations, not {wanted}")
    products = r"\d" if isinstance(bench, emulated.Bench) else r"[1-9]"
    if not re.search(rf"the machine, all ranks at once: {products}[\d.e+]* operations/s of products, [1-9][\d.e+]* bytes/s of copies", done.stderr):
        raise Failure(f"no rates of the machine:\n{done.stderr}")
    if "cached" in done.stderr or any(float(share) > 100 for share in re.findall(r"([\d.]+)%", done.stderr)):
        raise Failure(f"a call is faster than the machine:\n{done.stderr}")
    return f"{len(operators)} operators, {len(layers)} layers, {ranks} ranks"


def check_nan(bench, strategy):
    """The run ends at the logarithm in layer 2, on a rank that has the row."""
    done = looked(bench, strategy, "negative", check=False, HETU_NAN="1")
    says = [line for line in done.stderr.splitlines() if "(HETU_NAN)" in line]
    holders = {"mesh": "[23]", "stages": "4"}.get(strategy)
    rank = rf"rank {holders}: " if holders else ""
    layer = r", layer 2" if strategy else ""
    if not done.returncode or not says:
        raise Failure(f"exit {done.returncode}\n{done.stderr}")
    pattern = rf"hetu: {rank}\S*log\S*( of \w+)? makes a NaN, element \d+ of \d+.*{layer} in step 3 \(HETU_NAN\) \(at windows\.c:{line_of('ht_log(')}\b"
    for line in says:
        if not re.match(pattern, line):
            raise Failure(f"{line}\ndoes not match {pattern}")
    if len(done.stdout.split()) > 3:
        raise Failure("steps are made behind the NaN")
    if strategy == "stages" and not harness.LONG:
        return says[0]
    if "(HETU_NAN)" in looked(bench, strategy, flags=("-DMASKED",), HETU_NAN="1").stderr:
        raise Failure("a run with masks alone is ended")
    done = looked(bench, strategy, flags=("-DMASKED", "-DENDLESS"), check=False, HETU_NAN="1")
    if not done.returncode or not re.search(rf"makes an infinity, element .* in step 0 \(HETU_NAN\) \(at windows\.c:{line_of('ht_div(')}", done.stderr):
        raise Failure(f"exit {done.returncode}: {done.stderr}")
    return says[0]


def check_found(bench, strategy):
    """HETU_NAN of a program for GPUs: the logarithm, of all that was made in four steps."""
    done = looked(bench, strategy, "negative", check=False, HETU_NAN="1")
    says = [line for line in done.stderr.splitlines() if "(HETU_NAN)" in line]
    pattern = rf"hetu: rank [23]: \S*log\S*( of \w+)? makes a NaN, element \d+ of \d+.*, layer 2 in step 3 \(HETU_NAN\) \(at windows\.c:{line_of('ht_log(')}\b"
    if not done.returncode or not says or not all(re.match(pattern, line) for line in says) or len(done.stdout.split()) > 3:
        raise Failure(f"exit {done.returncode}: {says}, not {pattern}; {done.stdout}")
    return says[0]


def check_ranges(bench, strategy):
    """HETU_NVTX: one range a call and none in another; operators of the model have their lines."""
    path = bench.path("ranges")
    printed = looked(bench, strategy, HETU_NVTX="1", HETU_EMULATE_RANGES=str(path)).stdout
    files = sorted(path.parent.glob("ranges.*"))
    if len(files) != RANKS[strategy] or printed != looked(bench, strategy).stdout:
        raise Failure(f"{len(files)} ranks have ranges")
    for file in files:
        lines = file.read_text().splitlines()
        if any(not line.startswith("0 ") for line in lines) or any((line == "0 end") != (i % 2 == 1) for i, line in enumerate(lines)):
            raise Failure(f"ranges do not end one after the other: {lines[:8]}")
        linear = [line for line in lines if re.match(rf"0 \S*ht_linear.* windows\.c:{line_of('ht_linear(')}( .*)? h\d$", line)]
        if len(linear) < STEPS * LAYERS:
            raise Failure(f"ht_linear has {len(linear)} ranges: {sorted(set(lines))[:20]}")
    return f"{len(lines) // 2} ranges a rank"


def check_loss(bench, strategy):
    """Without HETU_NAN a loss that is no number is said once."""
    done = looked(bench, strategy, "negative")
    said = [line for line in done.stderr.splitlines() if "loss" in line]
    if said != ["hetu: the loss of step 3 is NaN; HETU_NAN=1 ends the run at the first operator that makes a NaN or an infinity"]:
        raise Failure(f"said: {said}")
    if len(done.stdout.split()) != STEPS:
        raise Failure("the run ends")


# ---- what hetucc says ----


def remarks(bench, strategy, *flags, source=SOURCE):
    """What hetucc prints on standard error."""
    return run([bench.hetucc, f"--strategy={strategy}", *flags, source, "--emit=cost", "-o", bench.path("remarks.txt")]).stderr


def device_list(text):
    """[0-2,5] as numbers."""
    numbers = []
    for item in text.split(","):
        first, _, last = item.strip().partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def memory_tables(text):
    """Of each program {device: (bytes, {kind: bytes}, [(bytes of one of the largest, kind, line and name)])}."""
    programs, kinds, largest = [], {}, None
    for line in text.splitlines():
        head, row = re.match(r"devices? ([\d,-]+): (\d+) bytes", line), re.match(r"  +(\d+)  (\S+)(.*)", line)
        if line.endswith(": memory"):
            programs.append({})
        elif head:
            kinds, listed, largest = {}, [], None
            programs[-1].update({d: (int(head[2]), kinds, listed) for d in device_list(head[1])})
        elif line.startswith("  the largest"):
            largest = listed
        elif row and largest is not None:
            largest.append((int(row[1]), row[2], row[3].strip()))
        elif row:
            kinds[row[2]] = int(row[1])
    return programs


def shim(bench):
    def make():
        out = bench.path("allocated.so")
        run(["cc", "-shared", "-fPIC", "-O1", *harness.WARNINGS, HERE / "allocated.c", "-o", out, "-ldl"])
        return out
    return bench.once("shim", make)


def session_bytes(text):
    """What -Rmemory says of a session with all programs: {device: bytes}."""
    said = re.findall(r"a session with all \d+ programs keeps (\d+) bytes on (?:each of devices|device) ([\d,-]+)", text)
    return {d: int(count) for count, devices in said for d in device_list(devices)}


def check_memory(bench, source, strategy, ranks, arguments=()):
    """The bytes of -Rmemory are those that each rank asks its device for, and kinds add up to them. Programs share parameters that lie alike."""
    text, path = remarks(bench, strategy, "-Rmemory", source=source), bench.path(f"allocated.{source.stem}.{pathlib.Path(strategy).stem}")
    programs, session = memory_tables(text), session_bytes(text)
    launch(bench.compiled(source, strategy), ranks, *arguments, env={"ALLOCATED": str(path)}, preload=shim(bench))
    for device in programs[0]:
        allocated, said = int(pathlib.Path(f"{path}.{device}").read_text()), 0
        for program in programs:
            total, kinds, largest = program[device]
            said += total - (kinds["parameters"] if said else 0)
            if sum(kinds.values()) != total:
                raise Failure(f"device {device}: the kinds of {total} bytes are {sum(kinds.values())}: {kinds}")
            if not 0 < len(largest) <= 10 or [row[0] for row in largest] != sorted((row[0] for row in largest), reverse=True):
                raise Failure(f"the largest of device {device}: {largest}")
            if not all(re.match(rf"\w+\.[ch]:\d+ ", row[2]) for row in largest):
                raise Failure(f"a large value without a line: {largest}")
        if said != allocated or session.get(device, said) != allocated:
            raise Failure(f"device {device}: -Rmemory says {said}, {session.get(device)} in one session, and the runtime allocates {allocated}")
    if (len(programs) > 1) != bool(session):
        raise Failure(f"{len(programs)} programs, and of the session with all of them: {session}")
    return f"{len(programs[0])} devices, {sorted({p[d][0] for p in programs for d in p})} bytes"


def check_parameters(bench, strategy="mesh"):
    """-Rmemory of parameters by a closed form, and -Rsharding of them."""
    kinds = memory_tables(remarks(bench, strategy, "-Rmemory"))[0][0][1]
    if kinds["parameters"] != 4 * LAYERS * WIDTH * WIDTH // 2 or kinds["states"] != 2 * kinds["parameters"]:
        raise Failure(f"{kinds}")
    table = remarks(bench, strategy, "-Rsharding")
    for l in range(LAYERS):
        if not re.search(rf"^  parameter +h{l}\.w +f32\[{WIDTH},{WIDTH}\] +\[0-3\]\{{dup:2, ?0:2\}} +windows\.c:{line_of('ht_param(')}$", table, re.M):
            raise Failure(f"h{l}.w is not in the table\n{table}")
    if not re.search(rf"^  input +gate +f32\[{ROWS},{WIDTH}\] +\[0-3\]\{{0:2,1:2\}}", table, re.M) or not re.search(r"^  value +h0\.y ", table, re.M):
        raise Failure(table)
    return f"{len(table.splitlines())} rows"


def check_comm(bench, strategy):
    """-Rcomm: each conversion has bytes, gradients have the line of their parameter, and sums are those of the report."""
    text, report = remarks(bench, strategy, "-Rcomm"), bench.path(f"report.{strategy}.json")
    run([bench.hetucc, f"--strategy={strategy}", f"--report={report}", "--emit=cost", "-o", bench.path("cost.txt"), SOURCE])
    wanted = sum(row["bytes"] for row in json.loads(report.read_text())["models"][0]["conversions"])
    rows = [(int(m[3]), m[1].strip(), m[2].strip()) for m in re.finditer(r"^  (.{16}) (.{44}) +\d+ times +(\d+) bytes received$", text, re.M)]
    total = int(re.search(r"in all (\d+) bytes received", text)[1])
    if total != wanted or sum(row[0] for row in rows) != total:
        raise Failure(f"in all {total}, rows {sum(row[0] for row in rows)}, the report {wanted}")
    if re.search(r": 0 bytes received", text):
        raise Failure("conversions without bytes")
    gradients = re.findall(r"windows\.c:(\d+):\d+: remark: .* of the gradient of h\d\.w", text)
    if not gradients or set(gradients) != {str(line_of("ht_param("))}:
        raise Failure(f"gradients at lines {gradients}\n{text}")
    return f"{total} bytes in {len(rows)} rows, {len(gradients)} gradients"


# ---- the page ----


class Page(html.parser.HTMLParser):
    """Elements of a page as a browser has made it: (id, class, title, text with that of what is inside), and the cells of tables by id."""

    VOID = {"meta", "input", "br", "link", "hr", "img"}

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.tables = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append({"tag": tag, "text": "", **dict(attributes)})

    def handle_data(self, data):
        for item in self.open:
            item["text"] += data

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        item = self.open.pop()
        self.found.append(item)
        table = next((o["id"] for o in reversed(self.open) if o["tag"] == "table"), None)
        if item["tag"] == "tr" and table:
            self.tables.setdefault(table, []).append([])
        if item["tag"] == "td" and table:
            self.tables.setdefault(table, [])
            self.cells = getattr(self, "cells", []) + [item["text"]]
        if item["tag"] == "tr" and table:
            self.tables[table][-1], self.cells = getattr(self, "cells", []), []

    def of_class(self, name):
        return [item for item in self.found if name in (item.get("class") or "").split()]

    def of_id(self, name):
        return next(item for item in self.found if item.get("id") == name)


def shown_bytes(number):
    """As the page writes them: three digits and a unit."""
    unit = 0
    while number >= 1024:
        number, unit = number / 1024, unit + 1
    text = str(round(number)) if not unit or number >= 1000 else f"{number:.3g}" if number >= 100 else f"{number:#.3g}"
    return f"{text} {['B', 'KiB', 'MiB', 'GiB'][unit]}"


def browser():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def opened(bench, path, look=""):
    """The page as a headless browser has it, when its script has run."""
    return Page(run([browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={bench.path('browser')}", "--virtual-time-budget=4000", "--dump-dom",
                     f"file://{path.resolve()}#{look}"], timeout=60).stdout)


def check_data(path, memory, received):
    """The numbers that the page holds."""
    model = json.loads(re.search(r'<script id="plan" type="application/json">(.*?)</script>', path.read_text(), re.S)[1])["models"][0]
    if {d: row["peak"] for row in model["memory"] for d in device_list(row["devices"])} != {d: memory[d][0] for d in memory}:
        raise Failure("the page has other bytes than -Rmemory")
    if sum(row["bytes"] for row in model["conversions"]) != received or model["lines"] != LINES:
        raise Failure("the page has other bytes received, or another source")
    weight = next(value for value in model["values"] if value["kind"] == "parameter" and value["name"] == "h0.w")
    if weight["pieces"] != [["0,2", 0, [[[0, WIDTH // 2], [0, WIDTH]]]], ["1,3", 0, [[[WIDTH // 2, WIDTH], [0, WIDTH]]]]]:
        raise Failure(f"h0.w is {weight}")
    return model


def check_page(bench, strategy="mesh"):
    """A headless browser shows the numbers of -Rmemory and -Rcomm, layouts as grids, and conversions on the source; where there is none, the page's data is looked at."""
    path, memory = bench.path(f"page.{strategy}.html"), memory_tables(remarks(bench, strategy, "-Rmemory"))[0]
    received = int(re.search(r"in all (\d+) bytes received", remarks(bench, strategy, "-Rcomm"))[1])
    run([bench.hetucc, f"--strategy={strategy}", f"--report={path}", "--emit=cost", "-o", bench.path("cost.txt"), SOURCE])
    model = check_data(path, memory, received)
    if not browser():
        return "the page's data alone: there is no chromium"
    page = opened(bench, path)
    rows = {d: row for row in page.tables["memory"] if row for d in device_list(row[0])}
    for device, (total, _, _) in memory.items():
        if rows[device][4] != shown_bytes(total):
            raise Failure(f"device {device}: {rows[device]}, not {shown_bytes(total)}")
    if shown_bytes(received) not in page.of_id("facts")["text"]:
        raise Failure(f"{page.of_id('facts')['text']!r} lacks {shown_bytes(received)}")
    if len(page.of_class("grid")) != len(model["values"]):
        raise Failure(f"{len(page.of_class('grid'))} layouts of {len(model['values'])}")
    titles = [item.get("title") for item in page.found if item["tag"] == "i"]
    for devices, lo, hi in (("0,2", 0, WIDTH // 2), ("1,3", WIDTH // 2, WIDTH)):
        if titles.count(f"devices {devices}: {lo} to {hi} x 0 to {WIDTH}") < LAYERS:
            raise Failure(f"no piece of devices {devices}: {titles}")
    moves = {item["id"] for item in page.of_class("moves")}
    if f"line{line_of('ht_softmax(')}" not in moves or "line1" in moves or len([i for i in page.found if (i.get("id") or "").startswith("line")]) != len(LINES):
        raise Failure(f"lines with conversions: {moves}")
    return f"{len(page.of_class('grid'))} layouts, {len(moves)} lines with conversions; " + check_search(bench, path, model)


def check_search(bench, path, model):
    """What is looked for stays."""
    page = opened(bench, path, "h3.")
    wanted = sum("h3." in value["name"] for value in model["values"])
    if len(page.of_class("grid")) != wanted or not 0 < len(page.tables["conversions"]) - 1 < len(model["conversions"]):
        raise Failure(f"{len(page.of_class('grid'))} layouts and {len(page.tables['conversions'])} rows are left, not {wanted}")
    return f"{wanted} layouts found"


# ---- norms and progress ----

PROGRESS = HERE / "progress.c"


def progress_program(bench, strategy, *flags):
    return bench.compiled(PROGRESS, strategy, flags) if strategy else bench.plain(PROGRESS, flags)


def check_norm(bench, strategy, ranks, clip=0):
    """ht_grad_norm is what SGD changes parameters by over the rate; behind clipping that is the least of it and the bound."""
    flags = (f"-DCLIP={clip}f",) if clip else ()
    rows = [[float(word) for word in line.split()] for line in launch(progress_program(bench, strategy, *flags), ranks).stdout.splitlines()]
    for norm, change in rows:
        wanted = min(norm, clip) if clip else norm
        if not abs(change - wanted) < 1e-4 * wanted + 1e-6:
            raise Failure(f"the norm {norm}, and parameters change by {change}")
    if len(rows) != 60 or not rows[0][0] > 2 * rows[-1][0] > 0 and not clip:
        raise Failure(f"{len(rows)} norms from {rows[0][0]} to {rows[-1][0]}")
    return f"{rows[0][0]:.6g} to {rows[-1][0]:.6g}"


def check_frozen(bench, strategy, ranks):
    """Where nothing is trained, ht_grad_norm is 0."""
    for clip in "0", "0.5f":
        lines = launch(progress_program(bench, strategy, "-DFROZEN=true", f"-DCLIP={clip}"), ranks).stdout.splitlines()
        if lines != ["0 0"] * 60:
            raise Failure(f"norms and changes {sorted(set(lines))}")
    return "0"


LINE = r"step (\d+) of 60  loss \d\.\d{4}  rate 0\.5(  ([\d.]+[kMGT]?) tokens/s  \d+:\d\d:\d\d left)?"


def check_progress(bench, strategy, ranks):
    """About twenty lines where there is no terminal, the first and the last among them."""
    lines = [line for line in launch(progress_program(bench, strategy), ranks).stderr.splitlines() if line.startswith("step ")]
    steps = [int(re.fullmatch(LINE, line)[1]) for line in lines]
    if steps[0] != 1 or steps[-1] != 60 or steps != sorted(set(steps)) or not 20 <= len(steps) <= 22:
        raise Failure(f"lines behind steps {steps}")
    if any(not re.fullmatch(LINE, line)[2] for line in lines[1:]):
        raise Failure(f"{lines[1]}")
    return lines[-1]


def check_terminal(bench):
    """On a terminal one line is written over itself, and ends at the last step."""
    control, terminal = pty.openpty()
    done = subprocess.Popen([progress_program(bench, None)], stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    text = b""
    try:
        while piece := os.read(control, 65536):
            text += piece
    except OSError:
        pass  # the terminal's other end is closed
    os.close(control)
    if done.wait() or not re.fullmatch(rf"(\r\x1b\[K{LINE})+\r?\n", text.decode()):
        raise Failure(f"{text!r}")
    return f"{text.count(b'step ')} times"


def check_refused(bench, variables, pattern):
    done = looked(bench, None, check=False, **variables)
    if not done.returncode or not re.search(pattern, done.stderr):
        raise Failure(f"exit {done.returncode}: {done.stderr}")


def processor_seconds(command, env):
    """What a process that is no test's beside it needs of the processor."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1", **env})
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise Failure(f"{command} ends with {status}")
    return used.ru_utime + used.ru_stime


def check_cost(bench):
    """HETU_TRACE makes a program at most 2% slower: the least of several runs each, in turns."""
    program = bench.compiled(harness.EXAMPLES / "gpt" / "gpt.c", harness.EXAMPLES / "gpt" / "strategies" / "single.strategy")
    times = {"": [], "trace": []}
    for _ in range(8):
        for name in times:
            times[name].append(processor_seconds([program, "--steps", "30"], {"HETU_TRACE": str(bench.path("cost.json"))} if name else {}))
    ratio = min(times["trace"]) / min(times[""])
    if ratio > 1.02:
        raise Failure(f"{ratio:.4f} times as long: {times}")
    return f"{ratio:.4f} times as long as {min(times['']):.3f} s"


def tests(bench, arguments):
    found = []
    for strategy in RANKS:
        label = strategy or "plain"
        found += [(f"trace.{label}", functools.partial(check_trace, bench, strategy)),
                  (f"profile.{label}", functools.partial(check_profile, bench, strategy), strategy == "stages"),
                  (f"nan.{label}", functools.partial(check_nan, bench, strategy)),
                  (f"loss.{label}", functools.partial(check_loss, bench, strategy), strategy == "stages"),
                  (f"steps.{label}", functools.partial(check_steps, bench, strategy), strategy != "mesh")]
        if strategy:
            found += [(f"memory.{label}", functools.partial(check_memory, bench, SOURCE, strategy, RANKS[strategy])),
                      (f"comm.{label}", functools.partial(check_comm, bench, strategy))]
    gpt = harness.EXAMPLES / "gpt"
    found += [(f"memory.gpt.{strategy.stem}", functools.partial(check_memory, bench, gpt / "gpt.c", strategy, 4, ["--steps", "2"]), True)
              for strategy in sorted((gpt / "strategies").glob("*4*.strategy"))]
    for strategy, ranks in (("mesh", 4), ("stages", 5), (None, 0)):
        found.append((f"norm.{strategy or 'plain'}", functools.partial(check_norm, bench, strategy, ranks), strategy == "mesh"))
        found.append((f"norm.frozen.{strategy or 'plain'}", functools.partial(check_frozen, bench, strategy, ranks), strategy == "mesh"))
    gpus = emulated.Bench(bench.build, bench.path("emulated"))
    gpus.work.mkdir(exist_ok=True)
    found += [("cuda.trace", functools.partial(check_trace, gpus, "mesh")), ("cuda.profile", functools.partial(check_profile, gpus, "mesh")),
              ("cuda.ranges", functools.partial(check_ranges, gpus, "mesh")), ("cuda.nan", functools.partial(check_found, gpus, "mesh")),
              ("cuda.stages", functools.partial(check_trace, gpus, "stages"), True), ("cuda.nan.masks", functools.partial(check_nan, gpus, "mesh"), True)]
    return found + [("norm.clipped", functools.partial(check_norm, bench, "stages", 5, 0.01), True),
                    ("progress", functools.partial(check_progress, bench, "mesh", 4)),
                    ("terminal", functools.partial(check_terminal, bench)),
                    ("page", functools.partial(check_page, bench)),
                    ("parameters", functools.partial(check_parameters, bench)),
                    ("exchanges", functools.partial(check_exchanges, bench)),
                    ("clocks", functools.partial(check_clocks, bench), True),
                    ("cost", functools.partial(check_cost, bench), True),
                    ("refused.folder", functools.partial(check_refused, bench, {"HETU_TRACE": str(bench.path("missing") / "t.json")},
                                                         "hetu: HETU_TRACE=.*/missing/t.json: cannot write this file: No such file")),
                    ("refused.ranges", functools.partial(check_refused, bench, {"HETU_NVTX": "1"}, "hetu: HETU_NVTX names work for profilers of GPUs")),
                    ("refused.steps", functools.partial(check_refused, bench, {"HETU_TRACE": str(bench.path("t.json")), "HETU_TRACE_STEPS": "9-3"},
                                                        "HETU_TRACE_STEPS=9-3: steps are two numbers, 10-19, or one"))]


if __name__ == "__main__":
    harness.main("users.windows", tests)
