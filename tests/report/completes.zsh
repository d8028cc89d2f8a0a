#!/usr/bin/env zsh
# Does completion in a zsh that somebody types into offer the options of the commands, and behind servet-pin the command
# that it runs? usage: completes.zsh FOLDER-OF-_servet FOLDER-OF-COMMAND…
# A second zsh runs on a terminal of its own (zsh/zpty); keys are sent to it, and what it shows is read.
emulate -L zsh
setopt no_unset
zmodload zsh/zpty 2>/dev/null || { print 'SKIP: zsh without zsh/zpty'; exit 77 }
completion=$1
shift
path=($@ $path)
integer failed=0

work=$(mktemp -d) || exit 1
trap 'rm -rf $work' EXIT
# Every candidate is listed at once, without questions and without colours.
cat >$work/.zshrc <<-END
	PROMPT='> ' RPROMPT= LISTMAX=100000
	unsetopt prompt_sp zle_bracketed_paste 2>/dev/null
	fpath=(${(q)completion} \$fpath)
	autoload -Uz compinit
	compinit -u -d $work/dump
	zstyle ':completion:*' list-prompt ''
	stty -echo cols 200 rows 2000
	print ready
END

# reads TEXT: what the shell shows until the text is in it
reads() {
	local part=
	integer waited=0
	seen=
	while [[ $seen != *$1* ]] && (( waited++ < 600 )); do
		if zpty -r shell part; then seen+=$part; else sleep 0.05; fi
	done
	[[ $seen == *$1* ]]
}

# shows EXPECTED KEYS: what appears after the keys and two tabs holds the expected text; Control-U empties the line again
shows() {
	local seen=
	zpty -w -n shell "$2"$'\t\t'
	if ! reads $1; then
		print -r -- "FAIL: '$2' and two tabs do not show '$1', but: ${(V)seen}"
		failed=1
	fi
	zpty -w -n shell $'\x15'
}

zpty -b shell "ZDOTDIR=$work TERM=dumb zsh -i"
seen=
reads ready || { print -r -- "FAIL: no shell, but: ${(V)seen}"; exit 1 }
shows --html 'servet-show --ht'
shows --explain 'servet-map --exp'
shows --budget 'servet-probe --bud'
shows --problem 'servet-spmd --prob'
shows --force 'servet-pin --f'
shows taskset 'servet-pin --mem-prior -- tasks'
(( ! $+commands[servet-bench] )) || shows --comparators 'servet-bench --comp'
zpty -d shell

# The other commands' options are read from --help; those of servet-pin stand in the script.
for option in $(servet-pin --usage | grep -o -- '--[a-z][a-z-]*' | sort -u); do
	if ! grep -qE -- "[^a-z-]${option}[^a-z-]" $completion/_servet; then
		print -r -- "FAIL: servet-pin has $option, which $completion/_servet does not know"
		failed=1
	fi
done
for line in ${(f)"$(${0:A:h}/option_values servet-pin)"}; do
	if ! grep -qF -- "(${line#* * })" $completion/_servet; then
		print -r -- "FAIL: $completion/_servet does not have the values of $line"
		failed=1
	fi
done
exit $failed
