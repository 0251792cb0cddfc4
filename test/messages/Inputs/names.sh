# names.sh FILES MODEL STANDIN: programs of sources with odd names in an odd folder; STANDIN takes the place of nvcc and the linker.
set -e
files=$1 model=$2 standin=$3
odd="$files/w é \"dir\" \$x #1 %d 'q' back\\slash"
strategy='--strategy=s tr#$é"q".strategy:dp2' cluster='--cluster=clü ster$#"q".json' source='mö del$ #%"x".c'
mkdir -p "$odd/tmp" "$odd/in ner \"q\""
cd "$odd"
cp "$files/two" 's tr#$é"q".strategy'
cp "$files/cluster" 'clü ster$#"q".json'
cp "$model" "$source"
cp "$files/helper.h" 'in ner "q"/'
cp "$files/helper.c" 'in ner "q"/hel per$.c'
touch 'k er#nel.cu'
start() { mpirun --oversubscribe -n 2 "$1"; }
kept() { [ -z "$(ls -A tmp)" ]; }
export TMPDIR="$PWD/tmp"

hetucc "$cluster" "$strategy" -MD "$source" -o 'pro gram$#"é'
kept
grep -qF 'clü\ ster$$\#"q".json' ./*.d
TMPDIR=/tmp start './pro gram$#"é'
hetucc "$strategy" "$PWD/$source" --save-temps -c -o x.o
hetucc x.o -o x
TMPDIR=/tmp start ./x
hetucc "$strategy" --emit=c "$source" -o 'c é"$#'

export NVCC="$standin" LINK="$standin" ARCH=sm_80
set -- '-DTEXT="$HOME \\ # '\'' \\# `x` %"' '-DBARE=$x' -O1 "$source" 'in ner "q"/hel per$.c' 'k er#nel.cu'
hetucc --backend=cuda --emit=c "$@" -o 'fol der"$#é'
hetucc --backend=cuda "$@" -o 'cu da"$#é'
kept
'./cu da"$#é'
cd 'fol der"$#é'
make -s
./m*_x_
