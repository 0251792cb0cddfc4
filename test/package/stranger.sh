#!/bin/sh
# stranger.sh ROOT BUILD WORK: installs hetucc, and builds a stranger's project with it: CMake, a C++ main, pkg-config; completion in bash. Prints what programs print.
set -eu
root=$1 build=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cp -r "$root/test/package/Inputs/stranger" "$work/stranger"
cmake --install "$build" --prefix "$work/there" > "$work/install.log"
cd "$work/stranger"
cmake -G Ninja -B build -DCMAKE_PREFIX_PATH="$work/there" -DCMAKE_INSTALL_PREFIX="$work/own" > "$work/configure.log"
cmake --build build > "$work/build.log" || { cat "$work/build.log"; exit 1; }
echo "one"
build/one
echo "many"
mpirun -n 2 --oversubscribe build/many
cmake --build build | grep -c "no work to do"
sed -i 's/batch:dp/batch:dp  out:dp/' two.strategy
cmake --build build | grep -o "hetucc model.c"
touch include/model.h
cmake --build build | grep -o "hetucc model.c"
touch include/layers.h
cmake --build build | grep -o "hetucc layers.c"
cmake --install build > /dev/null
echo "installed"
mpirun -n 2 --oversubscribe "$work/own/bin/many" | tail -n 1
echo "pkg-config"
PKG_CONFIG_PATH=$work/there/lib/pkgconfig
export PKG_CONFIG_PATH
cc -DWIDTH=6 -Iinclude $(pkg-config --cflags hetu) -c model.c layers.c
c++ -Iinclude main.cpp model.o layers.o $(pkg-config --libs hetu) -o plain
./plain | tail -n 1
echo "tools"
for tool in hetucc heturun hetu-balance hetu-plan hetu-profile hetu-reshard hetu-simulate; do env -u LD_LIBRARY_PATH "$work/there/bin/$tool" --version; done
echo "completion"
PATH=$work/there/bin:$PATH bash -c '. "$1"/there/share/bash-completion/completions/hetucc; COMP_WORDS=(hetucc --str) COMP_CWORD=1; _hetucc; echo "${COMPREPLY[@]}"
    COMP_WORDS=(hetucc --backend = c) COMP_CWORD=3; _hetucc; echo "${COMPREPLY[@]}"; COMP_WORDS=(hetucc -R) COMP_CWORD=1; _hetucc; echo "${COMPREPLY[@]}"
    COMP_WORDS=(heturun --el) COMP_CWORD=1; _hetucc; echo "${COMPREPLY[@]}"' bash "$work"
ls "$work/there/share/bash-completion/completions" | tr '\n' ' '
echo
ls "$work/there/bin" | tr '\n' ' '

echo
echo "manual"
for page in hetucc hspmd heturun hetu-balance hetu-plan hetu-profile hetu-reshard hetu-simulate; do
    man -M "$work/there/share/man" -w $page | xargs basename
done
find "$work/there/share/man" ! -type d ! -name "*.[17]" | sed "s/^/no page: /"
