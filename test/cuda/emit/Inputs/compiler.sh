#!/bin/sh
# Stands for nvcc and the linker: writes the file that -o names, a program that says so. FAIL=word: fails for command lines that have this word. LOG=file: notes them there.
[ -z "${LOG:-}" ] || echo "$*" >>"$LOG"
case "$*" in
*"${FAIL:-no such word}"*)
    echo "a compiler that fails" >&2
    exit 1
    ;;
esac
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then
        printf '#!/bin/sh\necho built\n' >"$2" && chmod +x "$2"
    fi
    shift
done
