#!/bin/sh
# Prints a table of measurements (tools/bench): training speed, compile time, memory; conversions of
# layouts, compared with plain MPI, and their planning; compiling for thousands of devices; changes
# of strategy, compared with a restart; published results, compared with planned and simulated ones.
# Without BUILD, makes a release build in build/bench.
#
#     tools/bench.sh [BUILD]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-}
if [ -z "$build" ]; then
    build=$root/build/bench
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release > /dev/null
    cmake --build "$build" -j"$(nproc)" > /dev/null
fi
exec python3 "$root/tools/bench/bench.py" "$build"
