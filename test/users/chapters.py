#!/usr/bin/env python3
"""Checks README.md and the chapters of tools/manual: lines, paragraphs and sentences are not too long, links lead somewhere, and every block of commands prints what it shows.

A block ```console has commands after "$ " (continued after "> "), each followed by all that it prints; numbers may differ, and a line "..." stands for any lines. A block
```console (REASON) cannot run here: the test prints the reason, as for a skipped test. A block ```KIND NAME is the file NAME. The first block of a chapter is a command with
its output, and works in an empty folder; later blocks may use the files of "Getting started" and "Strategies".
"""
import functools
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, ROOT, run

MANUAL = ROOT / "tools" / "manual"
FIRST = MANUAL / "getting-started.md"
FILES = (FIRST, MANUAL / "strategies.md")  # whose files other chapters may use
COMMANDS = ("apt", "cc", "cmake", "cpack", "ctest", "dnf", "gcc", "hetu-", "hetucc", "heturun", "make", "man", "mpirun", "ninja", "pacman", "sbatch", "srun", "sudo", "tools/", "torchrun",
            "./")
COLUMNS, LINES, PARAGRAPH, SENTENCE, AVERAGE = 100, {"README.md": 200}, 5, 30, 18
MOST_LINES = 300


def blocks_of(path):
    """The fenced blocks of a file: (what stands behind the fence, lines)."""
    found, inside = [], None
    for line in path.read_text().splitlines():
        if line.startswith("```"):
            if inside is None:
                inside = (line[3:].strip(), [])
            else:
                found.append(inside)
                inside = None
        elif inside is not None:
            inside[1].append(line)
    if inside is not None:
        raise Failure(f"{path.name}: a block has no end")
    return found


def paragraphs_of(path):
    """Paragraphs and entries of lists, as lists of lines; tables, headings and code left out."""
    paragraph, fenced = [], False
    for line in [*path.read_text().splitlines(), ""]:
        fenced ^= line.startswith("```")
        plain = not fenced and line.strip() and not line.startswith(("    ", "|", "#", "```"))
        if paragraph and (not plain or line.startswith("- ")):
            yield paragraph
            paragraph = []
        if plain:
            paragraph.append(line)


def check_text(path):
    lines = path.read_text().splitlines()
    wide = [number for number, line in enumerate(lines, 1) if len(line) > COLUMNS]
    if wide:
        raise Failure(f"{path.name}: lines over {COLUMNS} columns: {wide}")
    if len(lines) > LINES.get(path.name, MOST_LINES):
        raise Failure(f"{path.name} has {len(lines)} lines")
    sentences = []
    for paragraph in paragraphs_of(path):
        if len(paragraph) > PARAGRAPH:
            raise Failure(f"{path.name}: a paragraph of {len(paragraph)} lines: {paragraph[0]}")
        text = re.sub(r"`[^`]*`", "code", " ".join(paragraph))
        sentences += [len(sentence.split()) for sentence in re.split(r"(?<=[.?!])\s", text) if sentence.strip()]
    average = sum(sentences) / max(1, len(sentences))
    if average > AVERAGE or max(sentences, default=0) > SENTENCE:
        raise Failure(f"{path.name}: {average:.1f} words a sentence, at most {max(sentences)}")
    return f"{len(lines)} lines, {average:.1f} words a sentence"


def check_links(path):
    targets = [target for target in re.findall(r"\]\(([^)#]+)", path.read_text()) if "://" not in target]
    lost = [target for target in targets if not (path.parent / target).exists()]
    if lost:
        raise Failure(f"{path.name}: links that lead nowhere: {', '.join(lost)}")
    return f"{len(targets)} links"


def check_html(bench, page):
    """The HTML page's links lead to pages that are there, and to headings that these have."""
    folder = bench.build / "share" / "doc" / "hetu"
    targets = re.findall(r'(?:href|src)="([^"]+)"', (folder / f"{page.stem}.html").read_text())
    lost = []
    for target in targets:
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        file = folder / (file or f"{page.stem}.html")
        if not file.exists() or heading and f'id="{heading}"' not in file.read_text():
            lost.append(target)
    if lost:
        raise Failure(f"{page.stem}.html: links that lead nowhere: {', '.join(lost)}")
    return f"{len(targets)} links"


def check_first(page):
    """A chapter begins with a command and what it prints."""
    blocks = blocks_of(page)
    kind, lines = blocks[0] if blocks else ("", [])
    if kind != "console" or not any(line.strip() not in ("", "...") for _, shown in commands_of(lines) for line in shown):
        raise Failure(f"{page.name} does not begin with a command and what it prints")
    return commands_of(lines)[0][0].splitlines()[0]


def check_fenced(path):
    """Commands stand in blocks that are run; an indented block has none."""
    fenced, wrong = False, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("    ") and line.strip().startswith(COMMANDS):
            wrong.append(f"{number}: {line.strip()}")
    wrong += [f"```{kind}: {lines[0]}" for kind, lines in blocks_of(path) if not kind.startswith("console") and len(kind.split()) != 2 and lines and lines[0].startswith(COMMANDS)]
    if wrong:
        raise Failure(f"{path.name}: commands outside of console blocks:\n" + "\n".join(wrong))
    return ""


def check_named(pages):
    """README leads to every chapter."""
    readme = (ROOT / "README.md").read_text()
    lost = [page.name for page in pages if f"({page.relative_to(ROOT)})" not in readme]
    if lost:
        raise Failure(f"README.md does not lead to {', '.join(lost)}")
    return f"{len(pages)} chapters"


# ---- blocks of commands ----

def without_numbers(line):
    return " ".join(re.sub(r"[+-]?\d[\d.]*(?:e[+-]?\d+)?", "#", line).split())


def agrees(shown, printed):
    """Whether lines are those that a block shows."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(agrees(shown[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and without_numbers(shown[0]) == without_numbers(printed[0]) and agrees(shown[1:], printed[1:])


def commands_of(lines):
    """(command, lines that it prints) of a block."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        elif found:
            found[-1][1].append(line)
        else:
            raise Failure(f"a block of commands begins with \"{line}\"")
    return found


def environment(bench):
    """hetucc on the path, and libhetu where the C compiler looks, as after an installation."""
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**harness.MPI, "PATH": f"{bench.build / 'bin'}:{os.environ['PATH']}", "CPATH": str(bench.build / "include"), "LIBRARY_PATH": str(bench.build / "lib"),
            "LD_LIBRARY_PATH": ":".join(filter(None, [str(bench.build / "lib"), before])), "OMP_NUM_THREADS": "1"}


def write_file(folder, kind, lines):
    """Writes the file that a block is, if it is one."""
    if len(kind.split()) == 2 and not kind.startswith("console"):
        (folder / kind.split()[1]).write_text("\n".join([*lines, ""]))


def run_block(bench, path, lines, folder):
    """Runs the commands of a block; gives how many there were, and the folder that they end in."""
    count = 0
    for command, shown in commands_of(lines):
        if command.startswith("tools/") and not harness.LONG:
            continue  # it builds hetucc anew
        at = ROOT if command.startswith("tools/") else folder
        done = run(["sh", "-c", f"exec 2>&1\n{command}\nstatus=$?; pwd >\"$WHERE\"; exit $status"], timeout=1200, env={**environment(bench), "WHERE": str(folder / ".where")}, cwd=at)
        printed = done.stdout.splitlines()
        if not agrees(shown, printed):
            raise Failure(f"{path.name}: {command}\nprints\n" + "\n".join(printed[:40]) + "\nand not\n" + "\n".join(shown))
        folder = pathlib.Path((folder / ".where").read_text().strip()) if at != ROOT else folder
        count += 1
    return count, folder


def check_blocks(bench, path):
    """Runs the blocks of a file: the first one in an empty folder, the others beside the files of FILES."""
    total, ran = 0, False
    with tempfile.TemporaryDirectory() as folder:
        top = at = pathlib.Path(folder)
        for kind, lines in blocks_of(path):
            write_file(top, kind, lines)
            if kind != "console":
                continue
            count, at = run_block(bench, path, lines, at)
            if not ran and path.parent == MANUAL:
                at = top
                for other in FILES:
                    for kind, text in blocks_of(other) if other != path else ():
                        write_file(top, kind, text)
            total, ran = total + count, True
    return f"{total} commands"


def skipped(reason):
    raise harness.Skip(reason)


def skipped_blocks(path):
    """(name of a test, reason) of each block that cannot run here."""
    reasons = [kind.partition(" ")[2].strip("()") for kind, _ in blocks_of(path) if kind.startswith("console ")]
    return [(f"block.{path.stem}.{number}", reason) for number, reason in enumerate(reasons, 1)]


def tests(bench, arguments):
    pages = sorted(MANUAL.glob("*.md"))
    yield "chapters", functools.partial(check_named, pages)
    for path in [ROOT / "README.md", *pages]:
        yield f"text.{path.stem}", functools.partial(check_text, path)
        yield f"links.{path.stem}", functools.partial(check_links, path)
        yield f"fenced.{path.stem}", functools.partial(check_fenced, path)
        if path in pages:
            yield f"first.{path.stem}", functools.partial(check_first, path)
        yield f"html.{path.stem}", functools.partial(check_html, bench, path)
        rare = path not in (FIRST, ROOT / "README.md")
        yield f"blocks.{path.stem}", functools.partial(check_blocks, bench, path), rare
        for name, reason in skipped_blocks(path):
            yield name, functools.partial(skipped, reason), rare


if __name__ == "__main__":
    harness.main("users.chapters", tests)
