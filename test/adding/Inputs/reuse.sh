#!/bin/sh
# reuse.sh BUILD LIST COMMAND...: runs a compiler, unless LIST names the object that it would write: then the build tree BUILD has it.
build=$1 list=$2
shift 2
for word in "$@"; do
    case $before in
    -o) out=$word ;;
    -MF) needs=$word ;;
    esac
    before=$word
done
if grep -qxF -- "$out" "$list"; then
    cp "$build/$out" "$out" && echo "$out:" >"$needs"
else
    exec "$@"
fi
