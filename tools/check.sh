#!/bin/sh
# Installs missing packages (Debian), builds with warnings as errors, and runs every test. Then runs
# the compiler's tests under the address and undefined-behaviour sanitizers. The last lines give the
# reasons of skips and the counts: "N passed, N failed, N skipped".
#
#     tools/check.sh [--long]
#
# --long also runs the slow tests (label long) and, by HETU_LONG=1, more cases of the other tests.
# Build folders: build/check and build/check-sanitized.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh

choice='-LE ^long$'
case "${1:-}" in
--long) export HETU_LONG=1 choice= PACKAGES="$PACKAGES chromium csmith libcsmith-dev debootstrap git" ;;
'') ;;
*)
    echo "usage: tools/check.sh [--long]" >&2
    exit 2
    ;;
esac

# Tests on several hosts make them of namespaces, which only root can.
[ "$(id -u)" != 0 ] || PACKAGES="$PACKAGES bindfs iproute2 openssh-client openssh-server"
install_packages
allow_mpi
launcher=
command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache

# build FOLDER TARGET OPTIONS...: configures, and builds a target.
build()
{
    folder=$1 target=$2
    shift 2
    cmake -G Ninja -S . -B "$folder" $launcher -DHETU_WERROR=ON "$@" >"$folder.configure.log" 2>&1 || {
        cat "$folder.configure.log"
        exit 1
    }
    ninja -C "$folder" "$target"
}

# run_tests FOLDER OPTIONS...: runs ctest, adds its counts to `passed`, `failed` and `skipped`, and
# the lines that give reasons to `reasons`.
passed=0 failed=0 skipped=0 broken=0 reasons=
run_tests()
{
    folder=$1
    shift
    status=0
    ctest --test-dir "$folder" -j"$(nproc)" --output-on-failure "$@" >"$folder.log" 2>&1 || status=$?
    cat "$folder.log"
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$folder.log" | tail -n 1)
    counts=${counts:-0 passed, 1 failed, 0 skipped}
    passed=$((passed + $(echo "$counts" | cut -d' ' -f1)))
    failed=$((failed + $(echo "$counts" | cut -d' ' -f3)))
    skipped=$((skipped + $(echo "$counts" | cut -d' ' -f5)))
    reasons=$reasons$(grep -E '^[0-9]+ skipped: ' "$folder.log" | sed 's/$/\n/')
    [ $status = 0 ] || broken=1
}

mkdir -p build
build build/check all -DCMAKE_BUILD_TYPE=Release
# shellcheck disable=SC2086
run_tests build/check $choice
build build/check-sanitized sanitized_tests -DCMAKE_BUILD_TYPE=Debug -DHETU_SANITIZE=address,undefined
run_tests build/check-sanitized -R "^(unit\\.|lit\\.(${HETU_LONG:+driver|}emit|errors|ir|passes)\$)"

[ $broken = 0 ] || [ $failed != 0 ] || failed=1
printf '%b' "$reasons"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
