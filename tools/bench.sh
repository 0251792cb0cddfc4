#!/bin/sh
# Prints a table of measurements (tools/bench): training speed, compile time, memory; conversions of
# layouts, compared with plain MPI, and their planning; compiling for thousands of devices; changes
# of strategy, compared with a restart; published results, compared with planned and simulated ones.
# Without BUILD, makes a release build in build/bench.
#
#     tools/bench.sh [BUILD [PYTHON]]
#
# Where PYTHON (default: python3) has torch, also prints the models of tools/bench/models beside
# PyTorch, in f32 and in bf16.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-}
if [ -z "$build" ]; then
    build=$root/build/bench
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release > /dev/null
    cmake --build "$build" -j"$(nproc)" > /dev/null
fi
failed=0
python3 "$root/tools/bench/bench.py" "$build" || failed=1
python=${2:-python3}
if "$python" -c 'import torch' 2> /dev/null; then
    python3 "$root/tools/bench/models.py" "$build" --python "$python" || failed=1
    python3 "$root/tools/bench/models.py" "$build" --python "$python" --bf16 || failed=1
fi
exit $failed
