#!/usr/bin/env python3
"""The machine code that nvcc makes of emitted kernels and of attention, for sm_80 and sm_90: how many instructions, conversions to bf16 by the hardware's instruction, spills.

Attention is compiled for sm_90, with HETU_LONG=1 for sm_80, too. Counts are compared with those of kernels that rounded to bf16 by integer arithmetic and called tanhf (BEFORE). Without nvcc the test is skipped (exit status 77) and says so.
"""
import functools
import os
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "run"))
import harness
import sass
import train
from harness import COMMON, EXAMPLES, Failure, ROOT, run

SKIPPED = 77
ARCHITECTURES = (80, 90)
GPT2 = ["-DVOCAB=50304", "-DEMBED=768", "-DHEADS=12", "-DLAYERS=2", "-DBATCH=64", "-DSEQ=1024", "-DDTYPE=HT_BF16"]
SHARE = 0.65  # of the instructions before, at most
# Of the program as it is, and of one in which nothing is fused: there gradients are added by an operator of their own.
BEFORE = {"": {"add_at_layer_norm_stats_[0-9]+_devicePtS_Pf": {80: 1214, 90: 1222}, "gelu_backward": {80: 343, 90: 351}},
          "--no-fuse": {"add_gradients_[0-9]+_devicePt": {80: 120, 90: 120}, "gelu_backward": {80: 343, 90: 351}}}
CAST_BEFORE = {80: 83 / 4, 90: 85 / 4}  # a kernel that converted 8 numbers; for 2, which one instruction converts now


def nvcc():
    return shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def compile_cubin(bench, source, sm, *headers):
    out = bench.path(f"{source.stem}.{sm}.cubin")
    run([nvcc(), "-std=c++20", "-O3", *[f"-I{h}" for h in headers], f"-gencode=arch=compute_{sm},code=sm_{sm}", "-Werror", "all-warnings", "-cubin", source, "-o", out],
        timeout=600)
    return sass.kernels(out)


def check_emitted(bench, option):
    folder = bench.path(f"gpt2{option}")
    source = EXAMPLES / "gpt" / "gpt.c"
    run([bench.hetucc, "--backend=cuda", "--emit=c", f"--strategy={train.strategy_of('gpt', 'single')}", *GPT2, *filter(None, [option]), source, *COMMON, "-o", folder, "-lm"])
    shares = []
    for sm in ARCHITECTURES:
        found = compile_cubin(bench, folder / "gpt.kernels.cu", sm, folder / "include")
        for kernel in found.values():
            if kernel.roundings or kernel.spills:
                raise Failure(f"sm_{sm}: {kernel.line()}")
        for pattern, before in BEFORE[option].items():
            kernels = [k for name, k in found.items() if re.search(pattern, name)]
            for kernel in kernels:
                if not kernel.conversions or kernel.count > SHARE * before[sm]:
                    raise Failure(f"sm_{sm}, {pattern}: {kernel.line()}; {before[sm]} instructions before")
                shares.append(kernel.count / before[sm])
            if not kernels:
                raise Failure(f"sm_{sm}: there is no kernel {pattern}")
    shutil.rmtree(folder)
    return f"{max(shares):.2f} of the instructions before at most, in {len(shares)} kernels"


def check_cast(bench):
    """The runtime's cast of many parameters by one launch, by the numbers that it converts."""
    shares = []
    for sm in ARCHITECTURES:
        kernel, = compile_cubin(bench, ROOT / "runtime" / "cuda" / "casts.cu", sm, ROOT / "include", ROOT / "runtime", bench.build / "share" / "hetu" / "runtime").values()
        shares.append(kernel.count / max(kernel.conversions, 1) / CAST_BEFORE[sm])
        if kernel.roundings or kernel.spills or shares[-1] > SHARE:
            raise Failure(f"sm_{sm}: {kernel.line()}")
    return f"{max(shares):.2f} of the instructions before for a number"


def check_attention(bench, sm):
    spills = 0
    for name in ("attention", "attention_backward"):
        found = compile_cubin(bench, ROOT / "runtime" / "cuda" / f"{name}.cu", sm, ROOT / "include", ROOT / "runtime", bench.build / "share" / "hetu" / "runtime")
        for kernel in found.values():
            spills += kernel.spills
            if kernel.loop_spills:
                raise Failure(kernel.line())
    return f"{spills} spills outside of loops"


def tests(bench, _):
    for option in BEFORE:
        yield f"emitted{option}", functools.partial(check_emitted, bench, option)
    yield "cast", functools.partial(check_cast, bench)
    for sm in ARCHITECTURES if os.environ.get("HETU_LONG") else ARCHITECTURES[-1:]:
        yield f"attention.sm_{sm}", functools.partial(check_attention, bench, sm)


if __name__ == "__main__":
    if not os.access(nvcc(), os.X_OK):
        print("cuda.machine-code: skipped: there is no nvcc on this machine")
        sys.exit(SKIPPED)
    harness.main("cuda.machine-code", tests, jobs=1)
