#!/bin/sh
# Renames every operator in a copy of the project (headers, kernels, one-device library, examples) and checks that nothing but names changes:
# what hetucc emits is the same once the names are mapped back, and the end-to-end tests still pass.
#
#     rename.sh ROOT BUILD [PATTERN]     PATTERN selects tests of train.py (default: one strategy of each example)
#
# A name keeps its length (letters turn by 13), so that lines break where they did.
set -eu
root=$(realpath "$1") build=$(realpath "$2") pattern=${3:-'dp2tp2(sp)?[.]sgd|custom.sp4'}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy=$work/copy
mkdir "$copy" "$work"/before "$work"/after
(cd "$root" && tar cf - CMakeLists.txt common compiler include runtime tools examples test) | tar xf - -C "$copy"

# Every name that ops.h declares: those of its text that model.h and kernel.h lack.
words() { cat "$@" | grep -oE '\bht_[a-z0-9_]+\b' | sort -u; }
words "$root"/include/hetu/ops.h > "$work"/ops
words "$root"/include/hetu/model.h "$root"/include/hetu/kernel.h > "$work"/known
comm -23 "$work"/ops "$work"/known > "$work"/names
while read -r name; do
    bare=${name#ht_} turned=$(echo "${name#ht_}" | tr a-z n-za-m)
    printf 's/\\b%s\\b/ht_%s/g\n' "$name" "$turned" >> "$work"/rename
    printf '%03d s/(^|[^a-z0-9])%s($|[^a-z0-9])/\\1%s\\2/g\n' ${#bare} "$turned" "$bare" >> "$work"/lengths
done < "$work"/names
sort -rn "$work"/lengths | cut -d' ' -f2- > "$work"/restore # longer names first: one may begin with another
echo "$(wc -l < "$work"/names) names"
find "$copy"/include "$copy"/runtime "$copy"/examples -type f -name '*.[ch]' -exec sed -E -i -f "$work"/rename {} +
if words "$copy"/include/hetu/ops.h | grep -qxFf "$work"/names; then
    echo "a name is left" >&2
    exit 1
fi

cmake -S "$copy" -B "$copy"/build -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release > "$work"/log 2>&1 || { cat "$work"/log >&2; exit 1; }
make -C "$copy"/build -j2 hetu >> "$work"/log 2>&1 || { tail -40 "$work"/log >&2; exit 1; }
mkdir -p "$copy"/build/bin
cp "$build"/bin/hetucc "$copy"/build/bin/

emit() { # ROOT BUILD OUT: what is emitted for each example
    for example in gpt llama mlp custom; do
        strategy=dp2tp2
        [ $example = gpt ] && strategy=$1/examples/gpt/strategies/dp2tp2sp.strategy
        (cd "$1"/examples/$example && "$2"/bin/hetucc --strategy="$strategy" --emit=c $example.c -o "$3"/$example)
    done
}
emit "$root" "$build" "$work"/before
emit "$copy" "$copy"/build "$work"/after
find "$work"/after -type f -exec sed -E -i -f "$work"/restore -e "s#$copy#$root#g" {} +
# The fingerprint hashes the names, too.
find "$work"/before "$work"/after -name '*.main.c' -exec sed -E -i '/_fingerprint\[\] = /s/[0-9a-f]{16}//' {} +
diff -r "$work"/before "$work"/after
echo "emitted text is the same"
for group in gpt llama mlp custom; do
    python3 "$copy"/test/run/train.py --build "$copy"/build --group $group --only "$pattern"
done
