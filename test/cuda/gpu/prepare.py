#!/usr/bin/env python3
"""Prepares a folder that a machine with a GPU needs nothing else for: tools/gpu_check.sh --prepare DIR calls this where hetucc is built.

DIR gets the emitted programs, the sources of the kernels' tests, a text to train on, the losses of the CPU's programs, and the script that checks all (check.py).
"""
import argparse
import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "test" / "run"))
import harness
from harness import COMMON, EXAMPLES, launch, run

HALF = ["-DDTYPE=HT_BF16"]
GPT2_BATCH, LLAMA_BATCH = 96, 20  # 51 and 59 GB: a card of 80 GB has them, too
GPT2 = ["-DVOCAB=50304", "-DEMBED=768", "-DHEADS=12", "-DLAYERS=12", f"-DBATCH={GPT2_BATCH}", "-DSEQ=1024", *HALF]
LLAMA = ["-DVOCAB=32000", "-DEMBED=2048", "-DHEADS=16", "-DKV_HEADS=16", "-DLAYERS=24", "-DFFN=5504", f"-DBATCH={LLAMA_BATCH}", "-DSEQ=1024", *HALF]
TINY = {"gpt": ["-DEMBED=64", "-DHEADS=2", "-DLAYERS=2", "-DBATCH=2", "-DSEQ=48"], "llama": ["-DEMBED=64", "-DLAYERS=2", "-DFFN=80", "-DBATCH=2", "-DSEQ=40"],
        "mlp": [], "custom": []}
STEPS, HALF_STEPS = 50, 200
WRITTEN = {"one": "stage devices(0)", "two": "split batch:dp  heads:tp  ffn:tp  vocab:tp\n  stage devices(0-1) mesh(dp:1, tp:2)"}


def programs():
    """What is emitted: the name, the example, its strategy, flags, ranks, and how it is checked."""
    for example in ("gpt", "llama"):
        yield {"name": f"{example}-f32", "example": example, "check": "losses", "steps": STEPS, "tolerance": 1e-3}
        yield {"name": f"{example}-bf16", "example": example, "flags": HALF, "check": "losses", "steps": HALF_STEPS, "tolerance": 2e-2, "last": 1e-2}
    yield {"name": "gpt-2-ranks", "example": "gpt", "strategy": "two", "ranks": 2, "check": "losses", "steps": STEPS, "tolerance": 1e-3}
    yield {"name": "gpt-4-ranks", "example": "gpt", "strategy": "dp2tp2", "ranks": 4, "check": "losses", "steps": STEPS, "tolerance": 1e-3}
    for example, flags in TINY.items():
        yield {"name": f"{example}-sanitized", "example": example, "flags": flags, "check": "sanitizer", "steps": 3}
    for example in ("gpt", "llama"):  # on tensor cores
        yield {"name": f"{example}-bf16-sanitized", "example": example, "flags": [*TINY[example], *HALF], "check": "sanitizer", "steps": 3}
    yield {"name": "gpt2-124m", "example": "gpt", "flags": GPT2, "check": "speed", "steps": 30, "tokens": GPT2_BATCH * 1024,
           "flops": flops(layers=12, width=768, products=12 * 12 * 768 * 768 + 50304 * 768, seq=1024), "share": 0.45,
           "torch": ["gpt2", "--batch", str(GPT2_BATCH)]}
    yield {"name": "llama-1.3b", "example": "llama", "flags": LLAMA, "check": "speed", "steps": 20, "tokens": LLAMA_BATCH * 1024,
           "flops": flops(layers=24, width=2048, products=24 * (4 * 2048 * 2048 + 3 * 2048 * 5504) + 32000 * 2048, seq=1024), "share": 0.55,
           "torch": ["llama", "--batch", str(LLAMA_BATCH)]}


def flops(layers, width, products, seq):
    """Operations of a token in a step: 6 for each weight of a product, and 6 seq width a layer for causal attention forward and backward."""
    return 6 * products + 6 * layers * seq * width


def strategy_of(spec, folder):
    """The option for a strategy: one of WRITTEN, or of the example."""
    example = spec["example"]
    name = spec.get("strategy", "one" if example == "custom" else "single")
    if name in WRITTEN:
        path = folder / f"{name}.strategy"
        path.write_text(f"strategy {name}\n  {WRITTEN[name]}\nend strategy\n")
        return f"--strategy={path}"
    return f"--strategy={EXAMPLES}/gpt/strategies/{name}.strategy" if example == "gpt" else f"--strategy={name}"


def emit(bench, spec, folder):
    source = EXAMPLES / spec["example"] / f"{spec['example']}.c"
    kernels = [source.with_suffix(".cu")] if source.with_suffix(".cu").exists() else []
    run([bench.hetucc, "--backend=cuda", "--emit=c", strategy_of(spec, bench.work), *spec.get("flags", []), source, *kernels, *COMMON,
         "-o", folder / "programs" / spec["name"], "-lm"])


def record(bench, spec, folder):
    """The losses of the CPU's one-device program in f32, at the sizes of the program."""
    def make():
        source = EXAMPLES / spec["example"] / f"{spec['example']}.c"
        losses = folder / "expected" / f"{spec['example']}.losses"
        program = bench.plain(source)
        launch(program, 0, "--steps", HALF_STEPS, "--sample", 0, "--data", folder / "text", "--losses", losses, timeout=1800, env={"OMP_WAIT_POLICY": "passive"})
        return losses.name
    return bench.once(("expected", spec["example"]), make)


def copy_sources(folder, build):
    """The sources that the kernels' tests are built from."""
    for part in ["include", "runtime/base", "runtime/transport", "runtime/exchange", "runtime/device", "runtime/cuda", "runtime/cpu", "test/cuda/twins", "test/cuda/attention"]:
        shutil.copytree(ROOT / part, folder / "sources" / part, dirs_exist_ok=True)
    for name in ["program.mk", "cuda.mk"]:
        shutil.copy(ROOT / "runtime" / name, folder / "sources" / "runtime")
    shutil.copytree(build / "share" / "hetu" / "runtime" / "operators", folder / "sources" / "runtime" / "operators", dirs_exist_ok=True)
    (folder / "sources" / "test" / "cuda" / "exchange").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "test" / "cuda" / "exchange" / "steps.cu", folder / "sources" / "test" / "cuda" / "exchange")
    for name in ["gpu/check.py", "gpu/torch_models.py", "sass/sass.py"]:
        shutil.copy(ROOT / "test" / "cuda" / name, folder)


def write_text(folder):
    texts = [p for p in sorted(pathlib.Path("/usr/share/common-licenses").glob("*")) if p.is_file() and not p.is_symlink()]
    (folder / "text").write_bytes(b"".join(p.read_bytes() for p in texts))


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--build", default=ROOT / "build" / "release", help="the build tree")
    a = a.parse_args()
    if a.folder.exists() and any(a.folder.iterdir()):
        sys.exit(f"{a.folder} is not empty")
    folder = a.folder.resolve()
    for part in ["programs", "expected", "work"]:
        (folder / part).mkdir(parents=True, exist_ok=True)
    bench = harness.Bench(a.build, folder / "work")
    copy_sources(folder, bench.build)
    write_text(folder)
    specs = list(programs())
    for spec in specs:
        print(f"{spec['name']}: emitted" + (", with the CPU's losses" if spec["check"] == "losses" else ""), flush=True)
        emit(bench, spec, folder)
        if spec["check"] == "losses":
            spec["expected"] = record(bench, spec, folder)
    (folder / "programs.json").write_text(json.dumps(specs, indent=1) + "\n")
    shutil.rmtree(folder / "work")
    print(f"run {folder}/check.sh there (or tools/gpu_check.sh with the folder's name)")


if __name__ == "__main__":
    try:
        main()
    except harness.Failure as e:
        sys.exit(str(e))
