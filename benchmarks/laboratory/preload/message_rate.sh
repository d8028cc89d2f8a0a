#!/bin/bash
# What tracing costs a program that does nothing but send small messages:
#     message_rate.sh MPIRUN PROGRAM SERVET_PIN [ROUNDS [SECONDS]]
#
# Two ranks on one node, as in osu_mbw_mr, run in turn, the order turned from round to round: under servet-pin; under
# servet-pin --trace; the same with the time of every call (what SERVET_AUTO takes). Each round gives ratios to its own
# untraced run, of which the median and the quartiles are printed; last the ratio of the best rates of all, for other
# work on the machine only ever slows a run down.
#
# Where valgrind is, also the instructions of a message that one rank sends to itself (MPI_Irecv, MPI_Isend and its part
# of MPI_Waitall): the same at every run, whatever else the machine does.
set -eu
mpirun=$1 program=$2 pin=$3 rounds=${4:-31} seconds=${5:-0.3}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

names=("under servet-pin" "traced" "traced, with times")
arguments() { # kind: 0, 1, 2
	unset SERVET_TRACE_TIMES
	[ "$1" != 2 ] || export SERVET_TRACE_TIMES=1
	if [ "$1" = 0 ]; then set --; else set -- --trace "$work/matrix"; fi
	under=("$pin" "$@" --)
}
for ((round = 0; round < rounds; round++)); do
	rates=()
	for ((i = 0; i < 3; i++)); do
		kind=$(((i + round) % 3))
		arguments $kind
		rates[kind]=$("$mpirun" -n 2 "${under[@]}" "$program" "$seconds")
	done
	echo "${rates[*]}" >>"$work/rates"
done

echo "messages of 8 bytes between two ranks, $rounds interleaved runs of $seconds s"
echo "                         median rate   ratio: median (quartiles)      best rate   ratio"
quantile() { sort -g | awk -v q="$1" '{ v[NR] = $1 } END { print v[int(1 + q * (NR - 1) + 0.5)] }'; }
rate() { awk -v c="$1" '{ print $c }' "$work/rates"; }
ratio() { awk -v c="$1" '{ print $c / $1 }' "$work/rates"; }
for c in 1 2 3; do
	printf '  %-20s %13.0f   %.3f (%.3f %.3f) %18.0f   %s\n' "${names[c - 1]}" "$(rate $c | quantile 0.5)" \
		"$(ratio $c | quantile 0.5)" "$(ratio $c | quantile 0.25)" "$(ratio $c | quantile 0.75)" "$(rate $c | quantile 1)" \
		"$(echo "$(rate $c | quantile 1) $(rate 1 | quantile 1)" | awk '{ printf "%.3f", $1 / $2 }')"
done

command -v callgrind_annotate >/dev/null || exit 0
echo "instructions of a message to oneself"
counted() { # windows
	"${under[@]}" valgrind --tool=callgrind --toggle-collect=exchange_alone --callgrind-out-file="$work/callgrind" \
		"$program" alone "$1" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
	awk '/^(summary|totals):/ { n = $2 } END { print n }' "$work/callgrind"
}
for kind in 0 1 2; do
	arguments $kind
	few=$(counted 100) many=$(counted 300) # the difference: without the first calls, which look for functions
	[ $kind != 0 ] || { plain_few=$few plain_many=$many; }
	echo "$few $many $plain_few $plain_many" |
		awk -v name="${names[kind]}" '{ m = ($2 - $1) / 12800; printf "  %-20s %13.1f   %+.1f\n", name, m, m - ($4 - $3) / 12800 }'
done
