#!/bin/sh
# The floors: driver -> {frontend, passes, emit} -> ir -> layout -> support. Fails when an include goes upwards or sideways, when the compiler includes
# something of the runtime or the other way round, or when a file outside frontend/clang*.[ch] includes libclang.
#
#     structure.sh ROOT
root=${1:-.}
failed=0

# complain WHAT LINES...: reports lines that were found; nothing when there are none.
complain()
{
    if [ -n "$2" ]; then
        printf '%s:\n%s\n' "$1" "$2"
        failed=1
    fi
}

# forbid FOLDER PATTERN: no file under FOLDER may include what the pattern begins with.
forbid()
{
    [ -d "$root/$1" ] && complain "$1 must not include these" "$(grep -rnE --include='*.[ch]' "^ *# *include *[\"<]($2)" "$root/$1")"
}

forbid compiler/support  '(layout|ir|frontend|passes|emit|driver)/'
forbid compiler/layout   '(ir|frontend|passes|emit|driver)/'
forbid compiler/ir       '(frontend|passes|emit|driver)/'
forbid compiler/frontend '(passes|emit|driver)/'
forbid compiler/passes   '(frontend|emit|driver)/'
forbid compiler/emit     '(frontend|passes|driver)/'
forbid compiler          '([./]*runtime/|core/|comm/|cpu/|eager/)'
forbid runtime           '([./]*compiler/|support/|layout/|ir/|frontend/|passes/|emit/|driver/)'
forbid include           '([./]*(compiler|runtime)/|support/|layout/|ir/|core/|comm/)'
complain "libclang outside frontend/clang*" \
    "$(grep -rlE --include='*.[ch]' '# *include *<clang-c/' "$root/compiler" "$root/tools" "$root/runtime" | grep -v 'frontend/clang[^/]*$')"
complain "files of more than 500 lines" \
    "$(find "$root/compiler" "$root/runtime" "$root/tools" -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 500 {print $2 ": " $1}')"
exit $failed
