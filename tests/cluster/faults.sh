#!/bin/bash
# When a rank is killed or a node vanishes during probing: a clear error within 30 s, the old profile as it was, and no
# process left?
set -u
. "$(dirname "$0")/bed.sh"
bed_need
command -v mpirun.openmpi >/dev/null || bed_skip "no mpirun.openmpi"

failed=0
expect() { # what, command …
	local what=$1
	shift
	if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}

# Slow links, so that the network takes long to measure.
start() {
	BED_SLOTS=1 bed_up 3 20000 || exit 1
	echo "the old profile" >"$BED/profile.json"
	bed_run timeout 100 mpirun.openmpi -np 3 --map-by node "$SERVET_PROBE" --cluster --per-node --probes none \
		-o "$BED/profile.json" >"$BED/out" 2>"$BED/err" &
	job=$!
	local i
	for ((i = 0; i < 300; i++)); do # until there are ranks, and a second longer: then they exchange messages
		[ -n "$(bed_processes node3 | xargs -r ps -o args= -p 2>/dev/null | grep probe)" ] && break
		sleep 0.1
	done
	sleep 1.5
	began=$SECONDS
}

finish() { # what happened, what the error must name
	wait $job
	local status=$?
	expect "$1: it fails" [ $status != 0 ]
	expect "$1: it is not the test's own limit" [ $status != 124 ]
	expect "$1: within 30 s" [ $((SECONDS - began)) -le 30 ]
	expect "$1: the error names $2" grep -q "$2" "$BED/err"
	expect "$1: the old profile is untouched" [ "$(cat "$BED/profile.json")" = "the old profile" ]
	sleep 1
	expect "$1: no process is left" [ -z "$(bed_leftovers)" ]
	[ $failed = 0 ] || { cat "$BED/err"; bed_leftovers; }
	bed_down
}

start
kill -9 "$(bed_processes node3 | xargs ps -o pid=,args= -p | awk '/servet-probe/ { print $1 }' | head -n 1)"
finish "a killed rank" node3

start
bed_power_cut node3
finish "a vanished node" node3

# Two versions, ranks without a place, no launcher.
bed_up 2 0 || exit 1
BED_SLOTS=1
bed_run timeout 60 mpirun.openmpi -np 4 --oversubscribe "$SERVET_PROBE" --cluster --per-node -o "$BED/p" 2>"$BED/err"
expect "two ranks on a node are refused" grep -q "^servet-probe.*one rank on each node" "$BED/err"
"$SERVET_PROBE" --cluster 2>"$BED/err"
expect "no launcher is bad usage" [ $? = 2 ]
expect "and says so" grep -q "mpirun" "$BED/err"
expect "no profile is written" [ ! -e "$BED/p" ]
bed_down
exit $failed
