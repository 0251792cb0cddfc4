#!/usr/bin/env python3
"""--diagnostics=sarif: hetucc's messages as a log of SARIF 2.1.0, with the same files, lines, columns and texts
as without the option. Objects have the properties that the standard requires, and only properties that it knows."""
import functools
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure

GOOD = """#include <hetu/hetu.h>
#pragma hspmd strategy two
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 3));
    ht_tensor w = ht_param(ht_shape(3, 3), ht_normal(1), "w");
#pragma hspmd dims(x: batch, _)
    return ht_mean(ht_linear(x, w, HT_NONE));
}
int main(int argc, char **argv)
{
    static float rows[12];
    ht_program *program = ht_train(ht_open(&argc, &argv), loss, ht_sgd(.lr = 1));
    return ht_step(program, ht_feed("x", rows)) > 1;
}
"""
# A letter of two bytes in front of the mistake, and a note; several errors; a file whose name is no URI; what the C compiler warns of.
SOURCES = {"good.c": GOOD,
           "wrong.c": GOOD.replace("split batch:dp", "split /* é */ batch:dq"),
           "dims.c": GOOD.replace("dims(x: batch, _)", "dims(x, y, z: batch, _, _)"),
           "a b%.c": GOOD.replace("dims(x", "dimz(x"),
           "warned.c": GOOD.replace("static float", "int unused; static float")}

# Of an object: the properties that SARIF 2.1.0 requires, and others that it has and hetucc writes.
SCHEMA = {
    "log": ({"version": "2.1.0", "runs": ["run"]}, {"$schema": str}),
    "run": ({"tool": "tool"}, {"results": ["result"], "invocations": ["invocation"], "columnKind": ("utf16CodeUnits", "unicodeCodePoints")}),
    "tool": ({"driver": "component"}, {}),
    "component": ({"name": str}, {"version": str}),
    "invocation": ({"executionSuccessful": bool}, {"exitCode": int}),
    "result": ({"message": "message"}, {"level": ("none", "note", "warning", "error"), "kind": ("informational",), "locations": ["location"], "relatedLocations": ["location"]}),
    "message": ({"text": str}, {}),
    "location": ({}, {"physicalLocation": "place", "message": "message"}),
    "place": ({"artifactLocation": "artifact"}, {"region": "region", "contextRegion": "region"}),
    "artifact": ({}, {"uri": str}),
    "region": ({"startLine": int}, {"startColumn": int, "snippet": "content"}),
    "content": ({}, {"text": str}),
}


def validate(value, kind, where="log"):
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise Failure(f"{where} is no array")
        for i, member in enumerate(value):
            validate(member, kind[0], f"{where}[{i}]")
    elif isinstance(kind, tuple):
        if value not in kind:
            raise Failure(f"{where} is {value!r}")
    elif kind in SCHEMA:
        required, further = SCHEMA[kind]
        lost, unknown = required.keys() - value.keys(), value.keys() - required.keys() - further.keys()
        if lost or unknown:
            raise Failure(f"{where} lacks {lost or 'nothing'} and has {unknown or 'nothing'} that is not known")
        for name, member in value.items():
            validate(member, {**required, **further}[name], f"{where}.{name}")
    elif isinstance(kind, str):
        if value != kind:
            raise Failure(f"{where} is {value!r}, not {kind!r}")
    elif type(value) is not kind or (kind is int and value < 0):
        raise Failure(f"{where} is {value!r}")


def folder(bench):
    """Where the sources are."""
    def make():
        for name, text in SOURCES.items():
            (bench.work / name).write_text(text)
        return bench.work
    return bench.once("sources", make)


def hetucc(bench, *words):
    return subprocess.run([bench.hetucc, *words], cwd=folder(bench), capture_output=True, text=True)


def log_of(done, text=None):
    """The one run of the log that is all of standard error, or `text`."""
    log = json.loads(done.stderr if text is None else text)
    validate(log, "log")
    if len(log["runs"]) != 1 or log["runs"][0]["invocations"] != [{"executionSuccessful": not done.returncode, "exitCode": done.returncode}]:
        raise Failure(f"the log has {len(log['runs'])} runs, of {log['runs'][0]['invocations']}; hetucc ended with {done.returncode}")
    return log["runs"][0]


def findings(run):
    """(file, line, column, kind, message) of results with places, and of their notes."""
    found = []
    for result in run["results"]:
        for location, kind, message in ([(l, "remark" if result["level"] == "note" else result["level"], result["message"]) for l in result["locations"]]
                                        + [(l, "note", l["message"]) for l in result.get("relatedLocations", []) if "physicalLocation" in l]):
            place = location["physicalLocation"]
            found.append((urllib.parse.unquote(place["artifactLocation"]["uri"]), place["region"]["startLine"], place["region"].get("startColumn"), kind, message["text"]))
    return found


def findings_in_text(text):
    """The same of text, whose columns count bytes."""
    found = []
    for file, line, column, kind, message in re.findall(r"^(.*\.c):(\d+):(\d+): (error|warning|remark|note): (.*)$", text, re.MULTILINE):
        found.append((file, int(line), int(column), kind, message))
    return found


def in_letters(bench, finding):
    file, line, column, kind, message = finding
    start = (folder(bench) / file).read_bytes().splitlines()[line - 1][:column - 1]
    return file, line, len(start.decode()) + 1, kind, message


def check_same(bench, *words, least=1):
    """The log has what the text has, in its order."""
    wanted = [in_letters(bench, finding) for finding in findings_in_text(hetucc(bench, *words).stderr)]
    found = findings(log_of(hetucc(bench, "--diagnostics=sarif", *words)))
    if found != wanted or len(found) < least:
        raise Failure(f"{found}, not {wanted}")
    return f"{len(found)} findings"


def check_file(bench):
    """A named file has the log, and standard error the text; the option may stand behind others, and an older log goes."""
    path = folder(bench) / "kept.sarif"
    path.write_text("old")
    done = hetucc(bench, "wrong.c", "-o", "never", "--diagnostics", "kept.sarif")
    if findings(log_of(done, path.read_text())) != [in_letters(bench, f) for f in findings_in_text(done.stderr)] or done.returncode != 1:
        raise Failure("the log in the file has not what the text has")
    return f"{path.stat().st_size} bytes"


def check_levels(bench, words, level, pattern, status=1):
    """A result without a place."""
    done = hetucc(bench, "--diagnostics=sarif", *words)
    found = [r for r in log_of(done)["results"] if r["level"] == level and re.search(pattern, r["message"]["text"])]
    if len(found) != 1 or found[0]["locations"] or done.returncode != status:
        raise Failure(f"{len(found)} results of level {level}; status {done.returncode}: {done.stderr[:300]}")
    return found[0]["message"]["text"].splitlines()[0]


def check_silent(bench):
    """What is well makes a program and a log without results; text is as it was."""
    done = hetucc(bench, "good.c", "-o", "good", "--diagnostics=sarif")
    if log_of(done)["results"] or not (folder(bench) / "good").exists() or hetucc(bench, "good.c", "-fsyntax-only", "--diagnostics=text").stderr:
        raise Failure(done.stderr[:300])
    return "no results"


def check_refused(bench):
    for words, pattern in ((["--diagnostics=xml"], "--diagnostics is text, sarif or"), (["--diagnostics=sarif", "--diagnostics=a.sarif"], "given twice")):
        done = hetucc(bench, *words, "good.c")
        if done.returncode != 2 or not re.search(pattern, done.stderr):
            raise Failure(done.stderr)
    return "2 mistakes"


def tests(bench, arguments):
    check = functools.partial
    return [("errors", check(check_same, bench, "wrong.c", least=2)), ("several", check(check_same, bench, "dims.c", least=2)), ("uri", check(check_same, bench, "a b%.c")),
            ("remarks", check(check_same, bench, "good.c", "-Rcomm", "-fsyntax-only")),
            ("table", check(check_levels, bench, ["good.c", "-Rsharding", "-fsyntax-only"], "none", r"\bw\b", 0)),
            ("compiler", check(check_levels, bench, ["-Wall", "warned.c", "-o", "warned"], "warning", "unused", 0)),
            ("missing", check(check_levels, bench, ["nowhere.c"], "error", "cannot read nowhere.c")),
            ("option", check(check_levels, bench, ["--emti=c", "good.c"], "error", "did you mean --emit", 2)),
            ("file", check(check_file, bench)), ("silent", check(check_silent, bench)), ("refused", check(check_refused, bench))]


if __name__ == "__main__":
    harness.main("users.diagnostics", tests)
