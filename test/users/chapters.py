#!/usr/bin/env python3
"""README.md and the chapters of tools/manual: lines, paragraphs and sentences keep to their lengths, links lead somewhere, and every block that shows commands prints what it shows.

A block ```console has commands behind "$ ", each followed by what it prints; numbers may be others, and a line "..." stands for any lines. A block ```c NAME.c is the file NAME.c.
A chapter may use the files of "Getting started".
"""
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, ROOT, run

MANUAL = ROOT / "tools" / "manual"
FIRST = MANUAL / "getting-started.md"
COLUMNS, LINES, PARAGRAPH, SENTENCE, AVERAGE = 100, {"README.md": 200}, 5, 40, 18
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
        sentences += [len(sentence.split()) for sentence in re.split(r"(?<=[.:;?])\s", text) if sentence.strip()]
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


def run_blocks(bench, path, folder):
    """Runs the blocks of a file; gives how many commands there were."""
    count = 0
    for kind, lines in blocks_of(path):
        words = kind.split()
        if len(words) == 2 and words[0] == "c":
            (folder / words[1]).write_text("\n".join([*lines, ""]))
        if words[:1] != ["console"]:
            continue
        for command, shown in commands_of(lines):
            at = ROOT if command.startswith("tools/") else folder
            if at == ROOT and not harness.LONG:
                continue  # it builds hetucc anew
            done = run(["sh", "-c", f"exec 2>&1\n{command}"], timeout=1200, env=environment(bench), cwd=at)
            printed = done.stdout.splitlines()
            if shown and not agrees(shown, printed):
                raise Failure(f"{path.name}: {command}\nprints\n" + "\n".join(printed[:20]) + "\nand not\n" + "\n".join(shown))
            count += 1
    return count


def first_files(bench):
    """A folder with the files of "Getting started"."""
    folder = bench.work / "first"
    folder.mkdir()
    for kind, lines in blocks_of(FIRST):
        if len(kind.split()) == 2:
            (folder / kind.split()[1]).write_text("\n".join([*lines, ""]))
    return folder


def check_blocks(bench, path):
    with tempfile.TemporaryDirectory() as folder:
        if path not in (FIRST, ROOT / "README.md"):
            shutil.copytree(bench.once("first", functools.partial(first_files, bench)), folder, dirs_exist_ok=True)
        count = run_blocks(bench, path, pathlib.Path(folder))
    return f"{count} commands"


def tests(bench, arguments):
    pages = sorted(MANUAL.glob("*.md"))
    yield "chapters", functools.partial(check_named, pages)
    for path in [ROOT / "README.md", *pages]:
        yield f"text.{path.stem}", functools.partial(check_text, path)
        yield f"links.{path.stem}", functools.partial(check_links, path)
        if any(kind.startswith("console") for kind, _ in blocks_of(path)):
            yield f"blocks.{path.stem}", functools.partial(check_blocks, bench, path), path not in (FIRST, ROOT / "README.md")


if __name__ == "__main__":
    harness.main("users.chapters", tests)
