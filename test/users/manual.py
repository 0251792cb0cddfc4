#!/usr/bin/env python3
"""Checks the manual pages hetucc(1), hspmd(7) and those of the tools: roff reports nothing, and the pages have all that the sources have:
options, directives of pragmas, lines of strategies, clauses of rules, operators, environment variables; and no variable that nothing reads."""
import functools
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, ROOT, run

TOOLS = ("heturun", "hetu-plan", "hetu-simulate", "hetu-reshard", "hetu-profile", "hetu-balance")
PAGES = {"hetucc": 1, "hspmd": 7, **{tool: 1 for tool in TOOLS}}


def path_of(bench, page):
    return bench.build / "share" / "man" / f"man{PAGES[page]}" / f"{page}.{PAGES[page]}"


def shown(bench, page):
    """What a reader sees of a page, and what roff complains of."""
    done = subprocess.run(["groff", "-man", "-t", "-K", "utf8", "-T", "utf8", "-ww", "-rLL=160n", str(path_of(bench, page))], capture_output=True, text=True,
                          env={**os.environ, "GROFF_NO_SGR": "1"})
    return re.sub(r".\x08", "", done.stdout), done.stderr


def text_of(bench, page):
    return bench.once(("manual", page), lambda: shown(bench, page)[0])


def check_roff(bench, page):
    text, complaints = shown(bench, page)
    if complaints:
        raise Failure(complaints[:400])
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"):
        if not re.search(rf"^{section}$", text, re.MULTILINE):
            raise Failure(f"there is no section {section}")
    if re.search(r"\|---|```|\]\(", text, re.MULTILINE):
        raise Failure("Markdown is left in the page")
    return f"{len(text.splitlines())} lines"


def check_man(bench, page):
    """man finds the page where it is installed, and has nothing to warn of."""
    for width in "80", "160":
        done = run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path_of(bench, page)], env={"MANWIDTH": width})
        if done.stderr:
            raise Failure(f"at {width} columns: {done.stderr[:400]}")
    return "no warnings"


def source(path):
    return (ROOT / path).read_text()


def words_of(path, table):
    """The words of a table of C strings."""
    body = re.search(rf"{table}[^=;]*=\s*\{{(.*?)\}};", source(path), re.DOTALL)
    return re.findall(r'"([a-z_]+)"', body.group(1))


def missing(words, text):
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]


def check_has(bench, page, words):
    lost = missing(words, text_of(bench, page))
    if lost or not words:
        raise Failure(f"the page lacks {', '.join(lost)}")
    return f"{len(words)} of them"


def options_known(bench):
    """The options that hetucc itself lists: those of two dashes by their names, others by a letter; and -R and -W, which it writes as C compilers do."""
    listed = run([bench.build / "bin" / "hetucc", "--help-all"]).stdout
    as_written = {"--include": "-include", "--std": "-std", "--Wimplicit-reshard": "-Wimplicit-reshard"}
    names = [as_written.get(name, name) for name in re.findall(r"(?<![\w-])(--[A-Za-z][\w-]*)", listed)]
    return sorted({name for name in names if name not in ("--usage", "--known")} | {f"-R{word}" for word in words_of("compiler/driver/options.c", "remark_words")})


def variables_read():
    files = [f for folder in ("runtime", "compiler", "common", "tools") for f in (ROOT / folder).rglob("*.[ch]*") if f.is_file()]
    found = {name for f in files for name in re.findall(r'(?:getenv|setenv)\("(HETU_[A-Z_]+)"', f.read_text(errors="replace"))}
    return sorted(found - {"HETU_STRATEGY_DIGEST"})  # heturun's own, for the ranks that it starts


def check_variables(bench, page):
    """What is there is read, and all that programs and tools read is in hetucc(1)."""
    said = set(re.findall(r"\bHETU_[A-Z_]+\b", text_of(bench, page)))
    every = "".join(f.read_text(errors="replace") for folder in ("runtime", "compiler", "common", "tools", "include") for f in (ROOT / folder).rglob("*.*")
                    if f.is_file() and f.suffix != ".md")
    unread = [name for name in said if name not in every]
    if unread:
        raise Failure(f"nothing reads {', '.join(sorted(unread))}")
    return check_has(bench, page, variables_read() if page == "hetucc" else said)


def operators_known():
    """The operators that have a rule, but for the forms behind friendlier ones."""
    rules = re.findall(r"^#pragma hspmd op .*\nht_tensor (ht_\w+)\(", re.sub(r"\\\n", "", source("include/hetu/ops.h")), re.MULTILINE)
    return [name for name in rules if not re.search(r"_(at|over|with|stats|backward|gradient|merge|update|rule)$", name)]


def tool_options(bench, tool):
    """The long options that a tool lists, but for those that every tool has."""
    listed = run([bench.build / "bin" / tool, "--help"]).stdout
    return sorted(set(re.findall(r"(?:^|[ ,])(--[a-z][a-z-]*)", listed, re.MULTILINE)) - {"--help", "--usage", "--version"})


# ---- one place of reference for each thing ----

def entries(header):
    """The words in code that the first cells of tables have, in all chapters, of tables whose first heading begins with `header`; None: those that list entries define."""
    for page in sorted((ROOT / "tools" / "manual").glob("*.md")):
        inside = False
        for line in page.read_text().splitlines():
            if header is None:
                head = re.match(r"- (`[^`]+`(?:, `[^`]+`)*)", line)
                yield from re.findall(r"`([^`]+)`", head.group(1)) if head else ()
            elif line.startswith("|"):
                cell = re.sub(r"\\\|", "/", line).split("|")[1].strip()
                inside = inside or cell.startswith(header)
                yield from re.findall(r"`([^`]+)`", cell) if inside and not cell.startswith(header) else ()
            else:
                inside = False


def begins(word):
    """The name that an entry such as `--emit=c`, `split NAME:AXIS` or `ht_feed("x", array)` is of."""
    return re.match(r"-{0,3}[A-Za-z#][\w-]*|-###", word).group() if re.match(r"-{0,3}[A-Za-z#]", word) else word


def functions_known():
    """The functions of hetu.h that are neither operators nor the forms behind friendlier ones."""
    text = "".join(re.sub(r"/\*.*?\*/", "", source(f"include/hetu/{name}.h"), flags=re.DOTALL) for name in ("session", "model", "checkpoints", "strategies"))
    names = set(re.findall(r"^(?:#define |[a-z][\w ]*?[ *])(ht_[a-z_0-9]+)\(", text, re.MULTILINE))
    return sorted(name for name in names if not re.search(r"_with$|^ht_scope_|^ht_parameter$", name))


def keys_known():
    """The keys of cluster files: those that the reader compares others with; a key of two objects twice."""
    text = source("compiler/cluster/cluster.c")
    return sorted(key for keys in re.findall(r"KEYS\(([^)]*)\)", text) for key in re.findall(r'"([a-z_]+)"', keys))


REFERENCE = {
    "options": (lambda bench: [name for name in options_known(bench) if name.startswith("-")], (None,)),
    "variables": (lambda bench: variables_read(), (None, "set")),
    "directives": (lambda bench: words_of("compiler/frontend/pragma/pragma.c", r"names\[\]"), ("`#pragma hspmd`",)),
    "lines": (lambda bench: words_of("compiler/strategy/parse.c", r"statements\[\]"), ("line",)),
    "stages": (lambda bench: words_of("compiler/strategy/parse_stage.c", r"stage_clauses\[\]"), ("word of",)),
    "clauses": (lambda bench: words_of("compiler/rule/clause.c", r"clauses\[\]"), ("clause",)),
    "keys": (lambda bench: keys_known(), ("key of",)),
    "functions": (lambda bench: functions_known(), ("function",)),
    **{tool: ((lambda tool: lambda bench: tool_options(bench, tool))(tool), (f"option of `{tool}`",)) for tool in TOOLS if tool != "hetu-profile"},
}


def check_reference(bench, kind):
    """Each thing has exactly one entry in the chapters; a key has one for each object that has it."""
    known, headers = REFERENCE[kind]
    found = [begins(word) for header in headers for word in entries(header)]
    wanted = known(bench)
    wrong = [f"{name} {found.count(name)} times" for name in wanted if found.count(name) != wanted.count(name)]
    if wrong or not wanted:
        raise Failure(f"not once in the reference: {', '.join(wrong)}")
    return f"{len(wanted)} of them"


# Of each kind of thing some names that a reader looks for, so that a list which is cut short is seen.
LOOKED_FOR = ("ht_add ht_sum ht_linear ht_softmax ht_cross_entropy_loss ht_conv2d ht_einsum ht_topk ht_sort ht_batch_norm ht_adamw ht_muon ht_adafactor ht_masked_attention "
              "ht_scatter_add ht_upsample_bilinear ht_kl_div ht_warmup_cosine ht_averaged ht_cumsum").split()


def tests(bench, arguments):
    found = [(f"{page}.{name}", functools.partial(check, bench, page)) for page in PAGES for name, check in (("roff", check_roff), ("man", check_man))]
    found += [("hetucc.options", lambda: check_has(bench, "hetucc", options_known(bench))),
              ("hspmd.directives", lambda: check_has(bench, "hspmd", words_of("compiler/frontend/pragma/pragma.c", r"names\[\]"))),
              ("hspmd.strategies", lambda: check_has(bench, "hspmd", words_of("compiler/strategy/parse.c", r"statements\[\]")
                                                     + words_of("compiler/strategy/parse_stage.c", r"stage_clauses\[\]"))),
              ("hspmd.clauses", lambda: check_has(bench, "hspmd", words_of("compiler/rule/clause.c", r"clauses\[\]"))),
              ("hspmd.operators", lambda: check_has(bench, "hspmd", sorted({*operators_known(), *LOOKED_FOR})))]
    found += [(f"{tool}.options", lambda tool=tool: check_has(bench, tool, [*tool_options(bench, tool), tool])) for tool in TOOLS]
    found += [(f"reference.{kind}", functools.partial(check_reference, bench, kind)) for kind in REFERENCE]
    return found + [(f"{page}.variables", functools.partial(check_variables, bench, page)) for page in ("hetucc", "hspmd")]


if __name__ == "__main__":
    harness.main("users.manual", tests)
