# Completion for bash: the options that each tool itself prints, strategies and files.
_hetucc()
{
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} help=--help
    [ "$current" = "=" ] && current=
    if [ "$before" = "=" ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    case "${COMP_WORDS[0]##*/}" in hetucc) help=--help-all ;; esac
    case "$before $current" in
    "--backend "*) COMPREPLY=($(compgen -W "cpu cuda" -- "$current")) ;;
    "--diagnostics "*) COMPREPLY=($(compgen -W "text sarif" -- "$current")) ;;
    "--emit "*) COMPREPLY=($(compgen -W "exe c ir cost cost-json" -- "$current")) ;;
    *" -"*) COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" $help 2>/dev/null | grep -oE -- '(^|[ ,|(])--?[A-Za-z#][A-Za-z#-]*=?' | tr -d ' ,|(' | sort -u)" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
    esac
}
complete -o filenames -o nospace -F _hetucc hetucc hetu-plan hetu-simulate hetu-balance hetu-profile hetu-reshard heturun
