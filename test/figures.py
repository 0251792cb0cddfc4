"""Measures the sources: prints a figure and its limit for each measure, and fails when a figure passes
its limit. Comments and strings are removed; the rest is read token by token.

    figures.py ROOT [--list [FOLDER...]]

--list prints after each figure the places above its bound, only those in the FOLDERs if any are named.
"""
import collections
import os
import re
import sys

PARTS = ["compiler", "runtime", "include", "tools"]
SUFFIXES = (".c", ".h", ".cu", ".cuh")
# Headers that are tables: one declaration after another.
TABLES = {"include/hetu/ops.h"}
# Headers whose structs emitted programs fill in, or that stand for another project's.
IMAGES = {"include/hetu/image.h"}

HEADER_LINES, STRUCT_FIELDS, SMALL_FILE, PARAMETERS, COLUMNS = 200, 20, 30, 6, 100

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<directive>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)|(?P<word>\w+)|(?P<sign>[^\s\w])""",
    re.M | re.S,
)
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


def sources(root):
    """Paths of all sources below ROOT, relative to it."""
    for part in PARTS:
        for folder, _, files in os.walk(os.path.join(root, part)):
            for file in files:
                path = os.path.join(folder, file)
                if file.endswith(SUFFIXES) and not os.path.islink(path):
                    yield os.path.relpath(path, root)


def tokens(text):
    """The (token, line) pairs of a source without comments and directives; a string is one token."""
    found, line, at = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match.lastgroup in ("word", "sign"):
            found.append((match[0], line))
        elif match.lastgroup == "text":
            found.append(('""', line))
    return found


def closing(code, start):
    """The index of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i][0] in OPEN) - (code[i][0] in CLOSE)
        if depth == 0:
            return i
    return len(code) - 1


def split_commas(code):
    """How many pieces the top-level commas of some tokens make."""
    depth, pieces = 0, 1
    for token, _ in code:
        depth += (token in OPEN) - (token in CLOSE)
        pieces += token == "," and depth == 0
    return pieces if code else 0


def functions(code):
    """(name, line, parameters) of each function that is defined here, class members included."""
    i, start = 0, 0
    while i < len(code):
        token = code[i][0]
        if token == "(":
            end = closing(code, i)
            after = code[end + 1][0] if end + 1 < len(code) else ""
            name = code[i - 1][0] if i else ""
            if after == "{" and re.fullmatch(r"[A-Za-z_]\w*", name) and name != "__attribute__":
                inner = code[i + 1 : end]
                count = 0 if [t for t, _ in inner] in ([], ["void"]) else split_commas(inner)
                yield name, code[i - 1][1], count
                i = closing(code, end + 1)
            else:
                i = end
        elif token == "{":
            # only what holds declarations is entered: extern "C", namespaces, C++ structs
            words = [t for t, _ in code[start:i]]
            if not ("extern" in words and '""' in words or "namespace" in words):
                i = closing(code, i)
        elif token in (";", "}"):
            start = i + 1
        if i < len(code) and code[i][0] in ("}", ";"):
            start = i + 1
        i += 1


def count_fields(code):
    """How many fields a struct's tokens declare; members of a nested one without a name count, too."""
    count, i = 0, 0
    while i < len(code):
        end, depth = i, 0
        while end < len(code) and not (code[end][0] == ";" and depth == 0):
            depth += (code[end][0] in OPEN) - (code[end][0] in CLOSE)
            end += 1
        member = code[i:end]
        brace = next((k for k, (t, _) in enumerate(member) if t == "{"), None)
        if brace is not None and member[0][0] in ("struct", "union") and len(member) == closing(member, brace) + 1:
            count += count_fields(member[brace + 1 : -1])
        else:
            count += split_commas(member)
        i = end + 1
    return count


def structs(code):
    """(name, line, fields) of each struct with a body."""
    for i, (token, line) in enumerate(code):
        if token not in ("struct", "union") or i + 2 >= len(code):
            continue
        named = re.fullmatch(r"\w+", code[i + 1][0]) is not None
        brace = i + 2 if named else i + 1
        if code[brace][0] == "{":
            end = closing(code, brace)
            after = code[end + 1][0] if end + 1 < len(code) else ""
            name = code[i + 1][0] if named else after
            yield name, line, count_fields(code[brace + 1 : end])


class Includes:
    """The graph of includes of the project's own headers."""

    def __init__(self, root, texts):
        self.texts, self.depths = texts, {}

    def resolve(self, path, name):
        """The project's file that an include of `path` means, or None."""
        for folder in [os.path.dirname(path), "compiler", "runtime", "include", "tools"]:
            file = os.path.normpath(os.path.join(folder, name))
            if file in self.texts:
                return file
        return None

    def chain(self, path):
        """The longest chain of headers that `path` begins, as a list that starts with it."""
        if path not in self.depths:
            self.depths[path] = [path]  # an include of itself by a circle ends here
            longest = []
            for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', self.texts[path], re.M):
                file = self.resolve(path, name)
                if file:
                    longest = max(longest, self.chain(file), key=len)
            self.depths[path] = [path] + longest
        return self.depths[path]


def long_lines(path, text):
    """The lines of a source that end behind column 100. In what programs include, lines of comments
    alone, since the manual reads a prototype and the comment behind it from one line."""
    code = set()
    if path.startswith("include/"):
        for match in TOKEN.finditer(text):
            if match.lastgroup != "comment":
                first = text.count("\n", 0, match.start()) + 1
                code.update(range(first, first + match[0].count("\n") + 1))
    lines = enumerate(text.split("\n"), 1)
    return [(i, len(line)) for i, line in lines if len(line) > COLUMNS and i not in code]


def measure(root):
    """A dict of lists of (path, line, what), one for each measure, and the count of functions."""
    texts = {}
    for path in sorted(sources(root)):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts[path] = file.read()
    found, count, includes = collections.defaultdict(list), 0, Includes(root, texts)
    for path, text in texts.items():
        lines, code = text.count("\n"), tokens(text)
        if path.endswith((".h", ".cuh")) and lines > HEADER_LINES and path not in TABLES:
            found["headers"].append((path, 1, f"{lines} lines"))
        if lines < SMALL_FILE:
            found["small"].append((path, 1, f"{lines} lines"))
        for name, line, fields in structs(code):
            if fields > STRUCT_FIELDS and path not in IMAGES:
                found["structs"].append((path, line, f"{name}: {fields} fields"))
        for name, line, parameters in functions(code):
            count += 1
            if parameters >= PARAMETERS:
                found["parameters"].append((path, line, f"{name}: {parameters} parameters"))
        for line, columns in long_lines(path, text):
            found["columns"].append((path, line, f"{columns} columns"))
        if not path.endswith((".h", ".cuh")):
            found["depth"].append((path, len(includes.chain(path)) - 1, " > ".join(includes.chain(path)[1:])))
    return found, count, sum(t.count("\n") for p, t in texts.items() if p.startswith(("compiler/", "runtime/")))


def show(items, folders):
    for path, line, what in items:
        if not folders or any(path.startswith(folder.rstrip("/") + "/") for folder in folders):
            print(f"    {path}:{line}: {what}")


def main():
    root, listed, folders = sys.argv[1], "--list" in sys.argv, sys.argv[3:]
    found, functions_count, lines = measure(root)
    depth = max(found["depth"], key=lambda item: item[1])[1]
    deep = sorted((i for i in found["depth"] if i[1] > 10), key=lambda item: -item[1])
    # Each measure: its name, what was found, the most that is allowed, and the list.
    measures = [
        (f"headers over {HEADER_LINES} lines (tables aside)", len(found["headers"]), 0, found["headers"]),
        (f"structs of more than {STRUCT_FIELDS} fields", len(found["structs"]), 0, found["structs"]),
        (f"files under {SMALL_FILE} lines", len(found["small"]), 30, found["small"]),
        (f"functions of {PARAMETERS} and more parameters, percent of {functions_count}",
         round(100 * len(found["parameters"]) / functions_count, 2), 1.5, found["parameters"]),
        ("depth of includes", depth, 10, deep),
        (f"lines over {COLUMNS} columns", len(found["columns"]), 0, found["columns"]),
    ]
    passed = True
    for name, value, limit, items in measures:
        over = value > limit
        print(f"{value:8} {name} (at most {limit})")
        passed = passed and not over
        if listed or over:
            show(items, folders)
    print(f"{lines:8} lines of compiler and runtime together")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
