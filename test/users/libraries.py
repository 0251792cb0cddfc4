#!/usr/bin/env python3
"""Models in several files: a library of layers in three files, compiled by one command, by make, as an archive, from other folders, with plain C
and a C++ main. Each program's losses are those of the same files compiled by cc for one device. Missing parts are reported where they are used."""
import functools
import os
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "run"))
import harness
from harness import Failure, ROOT, compare_losses, launch, run

LIBRARY = HERE / "Inputs" / "library"
LAYERS = ["dense.c", "blocks.c", "squash.c"]
RANKS = {"two": 2, "four": 4}
FLAGS = ["-O1", "-Wall", "-Wextra", "-Werror"]


def folder(bench, name):
    """A copy of the library's files of its own."""
    place = bench.path(name)
    shutil.copytree(LIBRARY, place)
    return place


def main_object(bench):
    def make():
        out = bench.path("main.o")
        run(["g++", "-c", LIBRARY / "main.cpp", "-o", out])
        return out
    return bench.once("main", make)


def library_flags(bench):
    return [f"-L{bench.build}/lib", f"-Wl,-rpath,{bench.build}/lib", "-lhetu", "-lm", "-lstdc++"]


def losses(program, ranks=0):
    found = [float(line) for line in launch(program, ranks).stdout.split()]
    if len(found) != 6 or not found[-1] < found[0]:
        raise Failure(f"these are no losses of a model that learns: {found}")
    return found


def plain_losses(bench, flags=()):
    """Those of one device."""
    def make():
        out = bench.path("plain" + "".join(flags))
        sources = [LIBRARY / name for name in ["model.c", "data.c", *LAYERS]]
        run(["cc", *FLAGS, *flags, f"-I{ROOT}/include", *sources, main_object(bench), "-o", out, *library_flags(bench)])
        return losses(out)
    return bench.once(("plain", tuple(flags)), make)


def same(bench, program, strategy, flags=()):
    worst = compare_losses(losses(program, RANKS[strategy]), plain_losses(bench, flags), 2e-6)
    return f"{worst:.1g} off at most"


def one_go(bench, strategy):
    out = bench.path("one." + strategy)
    sources = [LIBRARY / name for name in ["model.c", "data.c", *LAYERS]]
    run([bench.hetucc, *FLAGS, f"--strategy={strategy}", *sources, main_object(bench), "-lstdc++", "-o", out])
    return same(bench, out, strategy)


def make_in(bench, place, strategy, compiler=None):
    words = [f"CC={compiler or bench.hetucc}", f"LINK={bench.hetucc}", f"STRATEGY=--strategy={strategy}"]
    return run(["make", "-C", place, *words], cwd=place).stdout


def by_make(bench):
    """Make builds the library's archive and the program; a header that changes makes again what includes it, and nothing else."""
    place = folder(bench, "make")
    make_in(bench, place, "four")
    note = same(bench, place / "model", "four")
    if "up to date" not in make_in(bench, place, "four"):
        raise Failure("make makes again what has not changed")
    header = place / "layers.h"
    header.write_text(header.read_text().replace("#define GAIN 0.5", "#define GAIN 0.75"))
    os.utime(header, (os.stat(place / "model").st_mtime + 2,) * 2)
    again = make_in(bench, place, "four")
    for name in [*LAYERS, "model.c"]:
        if f"-c {name}" not in again:
            raise Failure(f"make does not compile {name} again:\n{again}")
    if "-c data.c" in again:
        raise Failure("make compiles data.c again")
    wanted = bench.path("gain.plain")
    run(["cc", *FLAGS, f"-I{ROOT}/include", *[place / n for n in ["model.c", "data.c", *LAYERS]], main_object(bench), "-o", wanted, *library_flags(bench)])
    changed = losses(wanted)
    if changed == plain_losses(bench):
        raise Failure("the header has no effect")
    compare_losses(losses(place / "model", 4), changed, 2e-6)
    return note


def elsewhere(bench):
    """Objects made in folders of their own, linked from a third when their sources have changed or are gone."""
    layers, model, link = folder(bench, "layers"), folder(bench, "model"), bench.path("link")
    link.mkdir()
    for name in LAYERS:
        run([bench.hetucc, *FLAGS, "-c", name], cwd=layers)
    run([bench.hetucc, *FLAGS, "-c", "model.c", "data.c"], cwd=model)
    for source in layers.iterdir():
        if source.suffix in (".c", ".h", ".inc"):
            source.unlink()
    (model / "model.c").write_text("#error this is not what was compiled\n")
    objects = ["../model/model.o", "../model/data.o", *["../layers/" + name.replace(".c", ".o") for name in LAYERS]]
    run([bench.hetucc, "--strategy=two", *objects, main_object(bench), "-lstdc++", "-o", "model"], cwd=link)
    return same(bench, link / "model", "two")


def thin(bench):
    """A thin archive, and the layers joined to one object."""
    place = folder(bench, "thin")
    run([bench.hetucc, *FLAGS, "-c", *LAYERS, "model.c", "data.c"], cwd=place)
    run(["ar", "rcsT", "libthin.a", *[name.replace(".c", ".o") for name in LAYERS]], cwd=place)
    run(["ld", "-r", *[name.replace(".c", ".o") for name in LAYERS], "-o", "joined.o"], cwd=place)
    for name, words in (("thin", ["-L.", "-l:libthin.a"]), ("joined", ["joined.o"])):
        run([bench.hetucc, "--strategy=two", "model.o", "data.o", main_object(bench), *words, "-lstdc++", "-o", name], cwd=place)
        note = same(bench, place / name, "two")
    return note


def prepared(bench):
    """A strategy is made while the program runs of what its objects keep."""
    place = folder(bench, "prepared")
    run([bench.hetucc, *FLAGS, "-DPREPARED", "--strategy=four", "-c", *LAYERS, "model.c", "data.c"], cwd=place)
    run(["ar", "rcs", "liblayers.a", *[name.replace(".c", ".o") for name in LAYERS]], cwd=place)
    run([bench.hetucc, "model.o", "data.o", main_object(bench), "liblayers.a", "-lstdc++", "-o", "model"], cwd=place)
    return same(bench, place / "model", "four")


def emulated(bench):
    """The sources of the library in a folder for CUDA."""
    place, out = folder(bench, "cuda"), bench.path("cuda.made")
    header = place / "layers.h"
    header.write_text(re.sub("= squash.*", "= tanhf(x[i..])", header.read_text()))
    run([bench.hetucc, "--backend=cuda", "--strategy=two", "--emit=c", *["model.c", "data.c", *LAYERS], "-o", out], cwd=place)
    user = next(line for line in (out / "Makefile").read_text().splitlines() if line.startswith("USER ="))
    if user != "USER = source/data.c source/dense.c source/blocks.c source/squash.c":
        raise Failure(f"the folder does not build the layers: {user}")
    if "tanhf" not in (out / "model.kernels.cu").read_text():
        raise Failure("no kernel has what the layers compute")


HELPER = """#include <hetu/hetu.h>
extern const int wide;
ht_tensor block(ht_tensor x);
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    return ht_mean(USES);
}
int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
}
"""


def refused(command, pattern, cwd=None):
    p = run(command, check=False, cwd=cwd)
    if not p.returncode or not re.search(pattern, p.stderr, re.S):
        raise Failure(f"exit {p.returncode}, not: {pattern}\n{p.stderr}")


def mistakes(bench):
    """What is missing, or not the same everywhere, is said with its place and what to do."""
    place = bench.path("mistakes")
    place.mkdir()
    (place / "model.c").write_text(HELPER)
    (place / "layers.c").write_text("#include <hetu/hetu.h>\nextern const int wide;\nconst int wide = 6;\nht_tensor block(ht_tensor x, int twice) { return twice ? x : x; }\n")
    (place / "plain.c").write_text("const int wide = 6;\n")
    hetucc = bench.hetucc
    body = r"model.c:7:20: error: block has no body in what hetucc is given.*   7 \|     return ht_mean\(USES\);\n +\| +\^\n.*model.c:3:11: note: it is declared here; give hetucc the file"
    refused([hetucc, "-DUSES=block(x)", "model.c", "-o", "x"], body, place)
    run([hetucc, "-DUSES=block(x)", "-c", "model.c"], cwd=place)
    refused([hetucc, "model.o", "-o", "x"], body, place)
    if (place / "x").exists():
        raise Failure("a program is there after an error")
    refused([hetucc, "-DUSES=block(x)", "model.c", "layers.c", "-o", "x"], r"layers.c:4:11: error: block is defined here as .*, and declared elsewhere as .*model.c:3:11: note", place)
    refused([hetucc, "-DUSES=ht_reshape(x, ht_shape(wide, 4))", "model.c", "plain.c", "-o", "x"],
            r"model.c:7:\d+: error: wide is defined in nothing that hetucc is given.*model.c:2:18: note: it is declared here; give hetucc the file", place)
    (place / "wide.c").write_text("#include <hetu/hetu.h>\nextern const int wide;\nconst int wide = 6;\n")
    run([hetucc, "-DUSES=ht_reshape(x, ht_shape(wide, 4))", "model.c", "wide.c", "-o", "x"], cwd=place)
    (place / "x").unlink()
    refused(["cc", "model.o", "-o", "x", *library_flags(bench)], "undefined reference to .hetucc_links_this_program", place)
    (place / "wrong.c").write_text('#include <hetu/hetu.h>\nht_tensor block(ht_tensor x)\n{\n    return ht_linear(x, ht_param(ht_shape(3, 5), ht_zeros(), "w"), HT_NONE);\n}\n')
    run([hetucc, "-c", "wrong.c"], cwd=place)
    (place / "wrong.c").write_text("\n")
    refused([hetucc, "model.o", "wrong.o", "-o", "x"], r"wrong.c:4:12: error: ht_linear: .*\n +4 \|     return ht_linear\(x, .*\n +\| +\^\n(.*\n)*.*model.c:7:\d+: note: in the call of block", place)


BLOCK = '#include <hetu/hetu.h>\n%sht_tensor block(ht_tensor x)\n{\n    return ht_linear(x, ht_param(ht_shape(6, 6), ht_normal(0.1f), "w"), HT_NONE);\n}\n'


def elsewhere_mistakes(bench):
    """Bodies that a linker may replace, and --emit of objects, are refused, each with what to do."""
    place, hetucc = bench.path("elsewhere_mistakes"), bench.hetucc
    place.mkdir()
    (place / "model.c").write_text(HELPER.replace("USES", "block(x)"))
    (place / "block.c").write_text(BLOCK % "")
    (place / "weak.c").write_text("#define WEAK __attribute__((__weak__))\n" + BLOCK % "WEAK ")
    weak = r"model.c:7:20: error: block is weak, so that the linker may take another body .*weak.c:3:16: note: leave out `weak` here"
    refused([hetucc, "model.c", "weak.c", "block.c", "-o", "x"], weak, place)
    for line, at in (("#pragma weak block\n", 14), ('_Pragma("weak block")\n', 1)):
        (place / "pragma.c").write_text(BLOCK % "" + line)
        refused([hetucc, "model.c", "pragma.c", "-o", "x"], rf"model.c:7:20: error: block is weak, .*pragma.c:6:{at}: note: leave out `weak` here", place)
    (place / "pragma.c").write_text(BLOCK % "" + "#if 0\n#pragma weak block\n#endif\n")
    run([hetucc, "-O0", "model.c", "pragma.c", "-o", "x"], cwd=place)
    run([hetucc, "-O0", "-c", "model.c", "weak.c", "block.c"], cwd=place)
    refused([hetucc, "model.o", "weak.o", "block.o", "-o", "x"], weak, place)
    run([hetucc, "-O0", "model.o", "block.o", "weak.o", "-o", "x"], cwd=place)
    refused([hetucc, "--emit=cost", "model.o", "block.o"], "error: model.o has models, and what --emit and --stop-after write is made of sources: give it model.c instead", place)
    refused([hetucc, "--emit=cost", "block.o"], "error: --emit and --stop-after need sources", place)


LOOP = HERE / "Inputs" / "loop"


CLUSTER = """{"classes": {"a": {"memory": 1e9, "memory_bandwidth": 1e10, "start": 1e-9, "arithmetic": 1e6, "products": {"f32": [[1e3, 1e6], [1e9, 1e6]]}}},
 "devices": [{"class": "a", "host": "h", "count": 2}], "links": {"local": {"latency": 1e-7, "bandwidth": 1e12}, "remote": {"latency": 1e-7, "bandwidth": 1e12}}}"""


def planned_of_objects(bench, place, sources, wanted):
    """--plan finds the same strategy for objects, and for an archive, as for their sources; objects without a model are refused."""
    (place / "cluster.json").write_text(CLUSTER)
    objects = [name.replace(".c", ".o") for name in sources]
    run(["ar", "rcs", "rest.a", *objects[1:]], cwd=place)
    plans = [run([bench.hetucc, '-DMINE="my_rule"', "--plan", "--cluster=cluster.json", *words, "-o", "-"], cwd=place).stdout for words in (sources, objects, [objects[0], "rest.a"])]
    if len(set(plans)) != 1 or "devices(0-1)" not in plans[0]:
        raise Failure(f"other plans for objects: {plans}")
    run([bench.hetucc, "--plan", "--cluster=cluster.json", *objects], cwd=place)
    run([bench.hetucc, "-O0", "--strategy=main.strategy", *objects, "-o", "planned"], cwd=place)
    found = [float(word) for word in launch(place / "planned", 2).stdout.split()]
    if max(abs(f - w) for f, w in zip(found, wanted, strict=True)) > 1e-6:
        raise Failure("the planned program computes something else")
    refused([bench.hetucc, "--plan", "--cluster=cluster.json", *objects[1:]], "error: nothing that --plan is given trains or runs a model", place)


def training_loop(bench):
    """The loop in one file, the model with its strategy in another, the optimizer, which has rules, in a third: in one go, and from objects."""
    place, sources = bench.path("loop"), ["main.c", "model.c", "layers.c", "optim.c"]
    shutil.copytree(LOOP, place)
    worst = 0
    for flags in ([], ['-DMINE="my_rule"']):
        run(["cc", *FLAGS, *flags, f"-I{ROOT}/include", *sources, "-o", "plain", *library_flags(bench)], cwd=place)
        wanted = [float(word) for word in launch(place / "plain", 0).stdout.split()]
        run([bench.hetucc, *FLAGS, *flags, *sources, "-o", "one"], cwd=place)
        run([bench.hetucc, *FLAGS, *flags, "--strategy=four", "-c", *sources], cwd=place)
        run([bench.hetucc, *[name.replace(".c", ".o") for name in sources], "-o", "linked"], cwd=place)
        for name in ("one", "linked"):
            found = [float(word) for word in launch(place / name, 4).stdout.split()]
            worst = max([worst, *(abs(f - w) for f, w in zip(found, wanted, strict=True))])
    if worst > 1e-6:
        raise Failure(f"{worst:.2g} off")
    planned_of_objects(bench, place, sources, wanted)
    refused([bench.hetucc, "-DMINE=0", *sources, "-o", "x"],
            r"main.c:16:49: error: the optimizer has a rule, my_rule, that is static in another file than this one, and has no name\n"
            r'.*\n.*\^\noptim.c:4:18: note: it is defined here; leave out `static`, .* or name it in the optimizer: .rule_name = "my_rule"', place)
    refused([bench.hetucc, "--strategy=fuor", *sources, "-o", "x"], 'no strategy "fuor", .*did you mean "four"', place)
    return f"{worst:.1g} off at most"


def responses(bench):
    """Words of @FILE are words of the command line, models among them; a file that is not there is the C compiler's to report."""
    place = folder(bench, "responses")
    (place / "inner words").write_text("blocks.c 'squash.c'\n")
    (place / "all").write_text(f'-O0 "--strategy=two"\n\tmodel.c data.c dense.c @inner\\ words {main_object(bench)} -lstdc++ -o model')
    run([bench.hetucc, "@all"], cwd=place)
    note = same(bench, place / "model", "two")
    (place / "self").write_text("model.c @self")
    refused([bench.hetucc, "@self"], "error: @self names itself", place)
    refused([bench.hetucc, "@nowhere"], "nowhere", place)
    return note


def tests(bench, arguments):
    found = [(f"one_go.{s}", functools.partial(one_go, bench, s), s == "two") for s in RANKS]
    return found + [(test.__name__, functools.partial(test, bench), test in (thin, prepared)) for test in (by_make, elsewhere, thin, prepared, emulated, mistakes, elsewhere_mistakes, training_loop, responses)]


if __name__ == "__main__":
    harness.main("users.libraries", tests)
