# fish completion for the servet commands. Options are read from --help, so that none is missing or left over.

function __servet_options --argument-names command
	$command --help 2>/dev/null | string match -r '^ {2,6}(?:-\S, *)?--[a-z].*' |
		string replace -r '^ *(?:-\S, *)?(--[a-z][a-z-]*)(?:\[?=\S*)? *' '$1\t'
end

# Does the option have an argument?
function __servet_is_valued --argument-names command option
	contains -- $option ($command --help 2>/dev/null | string match -r '^ {2,6}(?:-\S, *)?--[a-z][a-z-]*=' | string match -ra -- '-[-\w?]+')
end

# Values of an option, one list per option that has one.
function __servet_list --argument-names command option
	switch $command:$option
	case servet-probe:--probes
		printf '%s\n' all cache sharing memory message device
	case servet-probe:--message-data
		printf '%s\n' written unwritten
	case servet-probe:--method
		printf '%s\n' default paper
	case servet-probe:--progress
		printf '%s\n' bar json
	case servet-probe:--backend
		printf '%s\n' threads mpi
	case 'servet-map:--format' 'servet-spmd:--format'
		$command --format=help 2>/dev/null | string replace -r '^(\S+) +' '$1\t'
	case servet-map:--kind
		printf '%s\n' p e
	case servet-pin:--membind
		printf '%s\n' fast capacity local interleave weighted none
	case servet-spmd:--stencil
		printf '%s\n' 1d3 2d5 2d9
	case servet-bench:--comparators
		servet-bench --list 2>/dev/null | string replace -rf '^ *([a-z][a-z0-9-]*).*' '$1'
	case '*'
		return 1
	end
end

# Those of the option before the word, or of that in the word (--format=ra).
function __servet_values --argument-names command
	set -l words (commandline -opc)
	set -l option (string match -r -- '^--[a-z-]+(?==)' (commandline -ct))
	if test -n "$option"
		set -l list (__servet_list $command $option); or return 1
		printf '%s\n' $option=$list
	else
		__servet_list $command $words[-1]
	end
end

# servet-pin runs another command: behind the first word that is no option, that one is completed.
function __servet_pin_is_behind
	set -l words (commandline -opc)[2..-1]
	while set -q words[1]
		if __servet_is_valued servet-pin $words[1]
			set -e words[1]
		else if not string match -q -- '-*' $words[1]
			return 0
		end
		set -e words[1]
	end
	return 1
end

for command in servet-probe servet-show servet-map servet-spmd servet-bench
	complete -c $command -e
	complete -c $command -n 'string match -q -- "-*" (commandline -ct)' -a "(__servet_options $command)"
	complete -c $command -n "__servet_values $command >/dev/null" -f -a "(__servet_values $command)"
end
complete -c servet-pin -e
complete -c servet-pin -n '__servet_values servet-pin >/dev/null' -f -a '(__servet_values servet-pin)'
complete -c servet-pin -n __servet_pin_is_behind -a '(__fish_complete_subcommand)'
complete -c servet-pin -n 'not __servet_pin_is_behind; and string match -q -- "-*" (commandline -ct)' -a '(__servet_options servet-pin)'
complete -c servet-pin -n 'not __servet_pin_is_behind; and not __servet_is_valued servet-pin (commandline -opc)[-1]; and not string match -q -- "-*" (commandline -ct)' -f -a '(__fish_complete_command)'
