#!/bin/sh
# Installs missing packages (Debian), builds, and trains examples/gpt on real text, first as a C
# program on one device, then by hetucc on four ranks. Prints both losses side by side.
#
#     tools/demo.sh [STEPS [STRATEGY]]      default: 100 dp2tp2 (examples/gpt/strategies)
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
steps=${1:-100} strategy=${2:-dp2tp2}

install_packages
allow_mpi
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
launcher=
command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache

build=build/demo
echo "Building hetucc in $build ..."
mkdir -p $build
cmake -G Ninja -S . -B $build $launcher -DCMAKE_BUILD_TYPE=Release >$build/configure.log 2>&1 || {
    cat $build/configure.log
    exit 1
}
ninja -C $build --quiet hetucc hetu heturun manual

prefix=$PWD/$build
cd examples/gpt
run()
{
    echo "+ $*"
    "$@"
}

echo
echo "One device, the C compiler alone:"
run cc -O2 -I"$prefix/include" gpt.c ../common/*.c -o "$prefix/gpt-single" -L"$prefix/lib" -Wl,-rpath,"$prefix/lib" -lhetu -lm
run "$prefix/gpt-single" --steps "$steps" --every 10 --losses "$prefix/single.losses" --sample 0

echo
echo "Four ranks, strategy $strategy:"
cat "strategies/$strategy.strategy"
run "$prefix/bin/hetucc" -Rcomm --strategy="strategies/$strategy.strategy" gpt.c ../common/*.c -o "$prefix/gpt-$strategy" 2>"$prefix/conversions.txt" || {
    cat "$prefix/conversions.txt" >&2
    exit 1
}
echo "$(grep -c 'remark' "$prefix/conversions.txt" || true) conversions of layouts a step (listed in $build/conversions.txt)"
echo "+ $prefix/gpt-$strategy --steps $steps --every 10"
"$prefix/gpt-$strategy" --steps "$steps" --every 10 --losses "$prefix/four.losses" |
    awk -v single="$prefix/single.losses" '
        BEGIN { while ((getline line < single) > 0) loss[++count] = line }
        /^step/ { split($2, at, "/"); printf "%s   (one device: %.4f)\n", $0, loss[at[1]]; fflush(); next }
        { print; fflush() }'

echo
paste "$prefix/single.losses" "$prefix/four.losses" | awk '
    { d = ($1 - $2) / $1; d = d < 0 ? -d : d; worst = d > worst ? d : worst }
    END { printf "%d steps; the largest relative difference of the losses is %.1e\n", NR, worst; exit !(NR > 0 && worst < 1e-3) }'
