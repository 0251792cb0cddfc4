#!/usr/bin/env python3
"""cuDNN itself, without a GPU: it takes the graphs of attention, and has a plan for each on sm_90; with HETU_LONG=1 more graphs, on newer GPUs, too.

The kernels of the plans are compiled here and loaded nowhere (Inputs/driver.c). Without g++, CUDA's headers or cuDNN 9.16 the test is skipped (exit status 77) and says so.
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
LEAST = (9, 16)


def skip(reason):
    print(f"cuda.cudnn-plans: skipped: {reason}, so cuDNN was not asked for plans")
    sys.exit(77)


def find(file, places):
    """The first of the folders that have a file."""
    return next((pathlib.Path(place) for pattern in places for place in sorted(glob.glob(str(pattern))) if (pathlib.Path(place) / file).exists()), None)


def version_of(home):
    text = (home / "include" / "cudnn_version.h").read_text()
    return tuple(int(re.search(rf"define CUDNN_{part} (\d+)", text)[1]) for part in ("MAJOR", "MINOR"))


def build(work, cuda, cudnn):
    run = lambda *command: subprocess.run([str(word) for word in command], check=True)
    run("gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", HERE / "Inputs" / "driver.c", "-o", work / "libcuda.so.1")
    run("g++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/runtime", "-isystem", cudnn / "include", "-isystem", cuda / "include", "-x", "c++", HERE / "plans.cpp",
        ROOT / "runtime/cuda/cudnn_graph.cu", ROOT / "runtime/cuda/cudnn_attention.cu", "-x", "none", f"-L{cudnn}/lib", "-l:libcudnn.so.9", "-o", work / "plans")


def main():
    packages = [path + "/nvidia/*" for path in sys.path]
    cuda = find("include/cuda_runtime_api.h", [os.environ.get("CUDA_HOME", "/usr/local/cuda"), "/usr/local/cuda*"])
    cudnn = find("include/cudnn_graph.h", [os.environ.get("CUDNN_HOME", cuda or "/usr"), "/usr", "/usr/local", *packages])
    if not cuda or not cudnn or not (cudnn / "lib" / "libcudnn.so.9").exists():
        skip("there are no headers of CUDA" if not cuda else "there is no cuDNN")
    if version_of(cudnn) < LEAST:
        skip(f"{cudnn} is older than 9.16")
    with tempfile.TemporaryDirectory() as top:
        build(pathlib.Path(top), cuda, cudnn)
        libraries = [top, cudnn / "lib", cuda / "lib64", cuda / "lib", *[place for path in packages for place in glob.glob(path + "/lib")]]
        p = subprocess.run([f"{top}/plans", *(["--all", "900", "1000", "1200"] if os.environ.get("HETU_LONG") else ["900"])], capture_output=True, text=True, timeout=300,
                           env={**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))})
    print(p.stdout + p.stderr, end="")
    plans = re.findall(r": (\d+) bytes$", p.stdout, re.M)
    if p.returncode or not plans:
        print("cuda.cudnn-plans: cuDNN lacks a plan")
        return 1
    print(f"cuda.cudnn-plans: {len(plans)} plans")
    return 0


if __name__ == "__main__":
    sys.exit(main())
