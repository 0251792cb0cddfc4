#!/bin/sh
# The floors. Fails when a file includes what does not stand below its floor, when libclang is included outside frontend/clang, or when a floor is missing here.
#
#     structure.sh ROOT          checks the tree
#     structure.sh ROOT --plant  plants every forbidden include in a copy, and fails when one is not seen
root=${1:-.}
failed=0

# What each floor may include beside itself; `operators` is what the build writes from the operators' rules.
floors()
{
    cat <<'END'
compiler binding
compiler support
compiler planner/kinds     support
compiler syntax   support
compiler layout   syntax support
compiler cluster  layout syntax support binding
compiler reshard  cluster layout syntax support
compiler rule     syntax support binding
compiler strategy cluster layout syntax support
compiler schedule strategy cluster layout syntax support
compiler ir       rule schedule strategy reshard cluster layout syntax support binding
compiler cost     ir rule schedule strategy reshard cluster layout syntax support
compiler frontend ir rule schedule strategy reshard cluster layout syntax support
compiler passes   cost ir rule schedule strategy reshard cluster layout syntax support
compiler migration ir rule schedule strategy reshard cluster layout syntax support
compiler emit     migration cost ir rule schedule strategy reshard cluster layout syntax support
compiler planner/report   cost ir rule schedule strategy reshard cluster layout syntax support
compiler planner/simulate planner/report planner/kinds cost ir rule schedule strategy reshard cluster layout syntax support
compiler planner/rebalance  planner/kinds cost ir rule schedule strategy reshard cluster layout syntax support
compiler planner/search   planner/simulate frontend passes planner/report planner/kinds cost ir rule schedule strategy reshard cluster layout syntax support
compiler driver   planner/search frontend passes emit planner/report migration cost ir rule schedule strategy reshard cluster layout syntax support
runtime  base
runtime  start
runtime  transport base
runtime  exchange transport base
runtime  device   exchange transport base
runtime  cpu      operators device exchange transport base
runtime  cuda     operators device exchange transport base
runtime  checkpoint base
runtime  session  checkpoint device exchange transport base
runtime  eager    binding operators session checkpoint cpu device exchange transport base
END
}

# complain WHAT LINES: reports lines that were found; nothing when there are none.
complain()
{
    if [ -n "$2" ]; then
        printf '%s:\n%s\n' "$1" "$2"
        failed=1
    fi
}

# Lines that include, in whatever file: "FILE:LINE:TEXT".
includes() { grep -rnIE '^[[:space:]]*(#|%:)[[:space:]]*(include|import)\>' "$@"; }

# check_floor PART FLOOR ALLOWED...: what files of a floor include. What stands in angle brackets is another library's, unless it leads to a floor.
check_floor()
{
    part=$1 floor=$2
    shift 2
    allowed=$(printf '%s|' "$floor" "$@" hetu)
    every=$(floors | awk '{printf "%s/|", $2}')
    complain "$part/$floor may include nothing of these" \
        "$(includes "$root/$part/$floor" | grep -E "(include|import)[^\"<]*(\"|<(${every}compiler/|runtime/|.*\.\./))" | grep -vE "include[^\"<]*\"(${allowed%|})/[^.]")"
}

# check_tree: every floor, and every folder that is none.
check_tree()
{
    while read -r part floor allowed; do
        check_floor "$part" "$floor" $allowed
    done <<END
$(floors)
END
    for folder in "$root"/compiler/*/ "$root"/compiler/planner/*/ "$root"/runtime/*/; do
        floor=${folder#"$root"/} part=${floor%%/*} floor=${floor#*/} floor=${floor%/}
        [ "$floor" = planner ] || floors | grep -qE "^$part +$floor( |\$)" || complain "no floor of $part" "$floor"
    done
    complain "what programs include must not include these" "$(includes "$root/include" | grep -E "include[^\"<]*[\"<](\.|$(floors | awk '{printf "%s/|", $2}')compiler/|runtime/|.*\.\./)")"
    complain "sources that stand in no floor" "$(find "$root/compiler" "$root/runtime" -maxdepth 1 -name '*.[ch]')"
    complain "links that lead out of the tree" "$(find "$root/compiler" "$root/runtime" "$root/include" "$root/tools" -type l)"
    complain "characters are made tokens by syntax/lex.c alone" \
        "$(grep -rnE --include='*.[ch]' '\b(isalnum|isalpha|isspace|strtok)\b' $(for floor in layout cluster reshard rule strategy ir passes frontend/pragma frontend/eval; do echo "$root/compiler/$floor"; done))"
    complain "what a program reads and says is in no language of main's: base/c_locale.h has these" \
        "$(grep -rnE --include='*.c' --include='*.cu' '\b(strtod|strtof|atof|strerror|strsignal)\(' "$root/runtime" | grep -v 'base/c_locale\.c:')"
    complain "libclang outside frontend/clang" \
        "$(grep -rlE --include='*.[ch]' '# *include *<clang-c/' "$root/compiler" "$root/tools" "$root/runtime" | grep -v 'frontend/clang/')"
}

# plant PART FLOOR ALLOWED...: a file with an include of every other floor, spelled in several ways; prints how many.
plant()
{
    part=$1 floor=$2
    shift 2
    for other in $(floors | awk '{print $2}'); do
        case " $floor $* " in *" $other "*) ;; *) printf '#include "%s/planted.h"\n\t#\tinclude <%s/planted.h>\n#include "../%s/planted.h"\n#include "'"$floor"'/../%s/planted.h"\n' "$other" "$other" "$other" "$other" ;; esac
    done >"$root/$part/$floor/planted.c"
    grep -c . "$root/$part/$floor/planted.c"
}

# check_planted: every forbidden include of a copy of the tree is reported, one a line.
check_planted()
{
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    cp -r "$root/compiler" "$root/runtime" "$root/include" "$root/tools" "$copy"
    root=$copy
    planted=$(floors | while read -r part floor allowed; do plant "$part" "$floor" $allowed; done | awk '{n += $1} END {print n}')
    seen=$(check_tree | grep -c 'planted\.c:')
    [ "$planted" -gt 0 ] && [ "$planted" = "$seen" ] || complain "includes that were planted, and those that were seen" "$planted $seen"
}

if [ "$2" = --plant ]; then
    check_planted
else
    check_tree
fi
exit $failed
