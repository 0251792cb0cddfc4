"""Configures lit, which runs the tests: `lit --param build=BUILD test/FOLDER`; ctest runs lit for every folder.

Substitutions: %hetucc, %hetu-opt, %hetu-plan, %hetu-reshard, %hetu-simulate, %cc (the C compiler), %flags (how plain cc finds hetu.h and libhetu), %root (the source
tree), %build, %mpirun N (Open MPI on this machine, which allows more ranks than cores), %python, and lit's own %s %S %t %T. FileCheck, not and split-file are on the PATH.
"""
import os
import shutil
import subprocess

import lit.formats

params = lit_config.params
build = os.path.abspath(params.get("build", "build"))
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

config.name = "hetucc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test", ".c", ".ir"]
config.excludes = ["Inputs", "unit"]
config.test_source_root = os.path.join(root, "test")
config.test_exec_root = os.path.join(build, "test")

environment = config.environment
tools = os.path.dirname(params.get("tools", "/usr/lib/llvm-19/bin/FileCheck"))
environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), tools, os.environ.get("PATH", "")])
environment["LC_ALL"] = "C.UTF-8"
environment["OMP_NUM_THREADS"] = "1"
environment["HETU_RUNTIME_CACHE"] = "0"  # compilers that stand for others make no objects to keep
for name in ["CC", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "CCACHE_DIR"]:
    if name in os.environ:
        environment[name] = os.environ[name]
environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
environment["OMPI_MCA_mpi_yield_when_idle"] = "1"
environment["OMPI_MCA_pml"], environment["OMPI_MCA_btl"] = "ob1", "self,vader"  # ranks share a machine: nothing else is looked for
environment["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
if hasattr(os, "geteuid") and os.geteuid() == 0:
    environment["OMPI_ALLOW_RUN_AS_ROOT"] = environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"

cc = params.get("cc", "cc")
config.substitutions += [
    ("%hetucc", os.path.join(build, "bin", "hetucc")),
    ("%hetu-opt", os.path.join(build, "bin", "hetu-opt")),
    ("%hetu-plan", os.path.join(build, "bin", "hetu-plan")),
    ("%hetu-reshard", os.path.join(build, "bin", "hetu-reshard")),
    ("%hetu-simulate", os.path.join(build, "bin", "hetu-simulate")),
    ("%cc", cc),
    ("%flags", f"-I{root}/include -L{build}/lib -Wl,-rpath,{build}/lib -lhetu -lm"),
    ("%root", root),
    ("%build", build),
    ("%mpirun", "mpirun --oversubscribe -n"),
    ("%python", params.get("python", "python3")),
]
if params.get("sanitize"):
    config.available_features.add("sanitizers")


def clang_links():
    """Whether there is a clang with its OpenMP library."""
    if not shutil.which("clang"):
        return False
    command = ["clang", "-fopenmp", "-x", "c", "-", "-o", os.devnull]
    return subprocess.run(command, input=b"int main(void) { return 0; }", capture_output=True).returncode == 0


if clang_links():
    config.available_features.add("clang")


def small_disks():
    """Whether a process may make a file system of its own, for a disk that is full."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


if small_disks():
    config.available_features.add("small-disks")
