#!/bin/sh
# What tracing costs a program that does nothing but send small messages:
#     message_rate.sh MPIRUN PROGRAM SERVET_PIN [ROUNDS [SECONDS]]
# Runs in turn, round by round: under servet-pin; under servet-pin --trace; the same with the time of every call
# (what SERVET_AUTO takes). Prints median and best rates: other work on the
# machine only ever slows a run down, so the ratio of the best ones is the one to trust.
set -eu
mpirun=$1 program=$2 pin=$3 rounds=${4:-15} seconds=${5:-0.5}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { "$mpirun" -n 2 "$@" "$program" "$seconds"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
round=0
while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1))
	plain=$(run "$pin" --)
	traced=$(run "$pin" --trace "$work/matrix" --)
	timed=$(SERVET_TRACE_TIMES=1 run "$pin" --trace "$work/matrix" --)
	echo "$plain $traced $timed" >>"$work/rates"
done
best() { sort -g | tail -1; }
echo "messages of 8 bytes per second between two ranks (median and best of $rounds interleaved runs)"
column=1
for name in "under servet-pin" "traced" "traced, with times"; do
	for of in median best; do awk -v c=$column '{ print $c }' "$work/rates" | $of >"$work/$of$column"; done
	paste "$work/median$column" "$work/median1" "$work/best$column" "$work/best1" |
		awk -v name="$name" '{ printf "  %-24s %12.0f  x %.3f %12.0f  x %.3f\n", name, $1, $1 / $2, $3, $3 / $4 }'
	column=$((column + 1))
done
