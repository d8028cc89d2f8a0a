# bash completion for the servet commands. Options are read from --help, so that none is missing or left over.

_servet_options() {
	"$1" --help 2>/dev/null | sed -n 's/^ \{2,6\}\(-[[:alnum:]?],\)\{0,1\} *\(--[a-z][a-z-]*\).*/\2/p'
}

# Options that have an argument, in both forms.
_servet_valued() {
	"$1" --help 2>/dev/null | sed -n 's/^ \{2,6\}\(\(-[[:alnum:]?]\),\)\{0,1\} *\(--[a-z][a-z-]*\)=.*/\2 \3/p'
}

# Words that an option's argument can be, one list per option that has one.
_servet_values() {
	case $1:$2 in
	servet-probe:--probes) echo "all cache sharing memory message device" ;;
	servet-probe:--message-data) echo "written unwritten" ;;
	servet-probe:--method) echo "default paper" ;;
	servet-probe:--progress) echo "bar json" ;;
	servet-probe:--backend) echo "threads mpi" ;;
	servet-map:--format) servet-map --format=help 2>/dev/null | sed -n 's/^ *\([a-z][a-z0-9-]*\).*/\1/p' ;;
	servet-map:--kind) echo "p e" ;;
	servet-spmd:--format) servet-spmd --format=help 2>/dev/null | sed -n 's/^ *\([a-z][a-z0-9-]*\).*/\1/p' ;;
	servet-pin:--membind) echo "fast capacity local interleave weighted none" ;;
	servet-spmd:--stencil) echo "1d3 2d5 2d9" ;;
	servet-bench:--comparators) servet-bench --list 2>/dev/null | sed -n 's/^ *\([a-z][a-z0-9-]*\).*/\1/p' ;;
	*) return 1 ;;
	esac
}

_servet_complete() {
	local command=${COMP_WORDS[0]##*/} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} values valued i
	COMPREPLY=()
	# servet-pin runs another command: behind the first word that is no option, that one is completed.
	if [[ $command == servet-pin ]]; then
		valued=" = $(_servet_valued "${COMP_WORDS[0]}" | tr '\n' ' ')"
		for ((i = 1; i < COMP_CWORD; i++)); do
			if [[ ${COMP_WORDS[i]} != [-=]* && $valued != *" ${COMP_WORDS[i - 1]} "* ]]; then
				mapfile -t COMPREPLY < <(compgen -f -- "$word")
				return
			fi
		done
		if [[ $word != [-=]* && $valued != *" $before "* ]]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
			return
		fi
	fi
	# bash cuts words at '=': "--probes = ca" has its option two words back.
	if [[ $word == = ]]; then
		word=
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $before == --* ]] && values=$(_servet_values "$command" "$before"); then
		mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_servet_options "${COMP_WORDS[0]}")" -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

complete -o filenames -F _servet_complete servet-probe servet-show servet-map servet-pin servet-spmd servet-bench
