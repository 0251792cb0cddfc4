#!/bin/sh
# Tests on a GPU: runs emitted programs and kernels, and compares with the CPU's results, PyTorch and
# cuBLASLt. Runs in two steps, since a machine with a GPU need not have what hetucc needs:
#
#     tools/gpu_check.sh --prepare DIR [--build BUILD]     with hetucc: emits the programs into DIR
#     tools/gpu_check.sh DIR [OPTIONS]                     with nvcc and a GPU; or DIR/check.sh
#
# The check takes at most 9 minutes and prints a table, which it also writes to results.json next to
# the logs. OPTIONS are those of test/cuda/gpu/check.py.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
case "${1:-}" in
--prepare)
    [ $# -ge 2 ] || { echo "usage: tools/gpu_check.sh --prepare DIR [--build BUILD]" >&2; exit 2; }
    shift
    . "$here/tools/packages.sh"
    allow_mpi
    python3 "$here/test/cuda/gpu/prepare.py" "$@"
    printf '#!/bin/sh\nexec python3 "$(dirname "$0")/check.py" "$@"\n' >"$1/check.sh"
    chmod +x "$1/check.sh"
    ;;
'' | -*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
*)
    folder=$1
    shift
    exec python3 "$folder/check.py" "$@"
    ;;
esac
