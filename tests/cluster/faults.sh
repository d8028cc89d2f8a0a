#!/bin/bash
# When a rank is killed or a node vanishes during probing: a clear error within 30 s, the old profile as it was, and no
# process left? What of two versions, a full disk, nodes with fewer cores, a budget that is too small?
set -u
. "$(dirname "$0")/bed.sh"
bed_need mpirun.openmpi

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

# Ranks without a place, no launcher.
bed_up 2 0 || exit 1
BED_SLOTS=1
bed_run timeout 60 mpirun.openmpi -np 4 --oversubscribe "$SERVET_PROBE" --cluster --per-node -o "$BED/p" 2>"$BED/err"
expect "two ranks on a node are refused" grep -q "^servet-probe.*one rank on each node" "$BED/err"
"$SERVET_PROBE" --cluster 2>"$BED/err"
expect "no launcher is bad usage" [ $? = 2 ]
expect "and says so" grep -q "mpirun" "$BED/err"
expect "no profile is written" [ ! -e "$BED/p" ]
bed_down

BED_SLOTS=1 bed_up 3 10000 || exit 1
cluster=("$SERVET_PROBE" --cluster --per-node --probes none)
probe() { # nodes, arguments … : a rank on each node
	bed_run timeout 100 mpirun.openmpi -np "$1" --map-by node "${cluster[@]}" "${@:2}" 2>"$BED/err"
}

# The rank of node3 is of another release.
bed_run timeout 60 mpirun.openmpi --map-by node -np 2 "${cluster[@]}" -o "$BED/p" : \
	-np 1 "$OTHER_VERSION" "${cluster[@]:1}" -o "$BED/p" 2>"$BED/err"
expect "two versions: bad usage" [ $? = 2 ]
expect "two versions: one line names them" \
	[ "$(grep -c "^servet-probe: node3 runs servet 0.0.0-other and node1 runs servet .*: expected one version" "$BED/err")" = 1 ]
expect "two versions: no profile is written" [ ! -e "$BED/p" ]

# A link of 10 ms is asked some hundred times for each pair. Two ranks, which need not share the PUs of most machines.
probe 2 --budget 1 -o "$BED/p"
expect "a small budget: it ends well" [ $? = 0 ]
expect "a small budget: it says so" grep -q "^servet-probe.*the budget of 1 s" "$BED/err"
expect "a small budget: the profile is marked" grep -q '"budget": *"time was over after 1 s' "$BED/p"
expect "a small budget: servet-show reads it" eval '"$SERVET_SHOW" "$BED/p" >/dev/null'

# Room for the old profile and no more where the new one is to go, on node1 alone.
mkdir "$BED/full"
nsenter -t "$(bed_pid node1)" -m sh -c "mount -t tmpfs -o size=16k tmpfs $BED/full && echo 'the old profile' >$BED/full/p
	dd if=/dev/zero of=$BED/full/rest bs=4k 2>/dev/null"
probe 2 --budget 1 -o "$BED/full/p"
status=$?
expect "a full disk: it fails" [ $status = 1 ]
expect "a full disk: one line names it" [ "$(grep -c "^servet-probe: .*full/p.*No space left" "$BED/err")" = 1 ]
expect "a full disk: the old profile is untouched" [ "$(bed_on node1 cat "$BED/full/p")" = "the old profile" ]
expect "a full disk: nothing else is left there" [ "$(bed_on node1 ls -A "$BED/full" | tr '\n' ' ')" = "p rest " ]
[ $failed = 0 ] || cat "$BED/err"

# One core fewer on node2.
if [ "$(nproc)" -ge 2 ] && bed_cpuset node2 0; then
	probe 3 --budget 1 -o "$BED/q"
	expect "fewer cores on a node: it ends well" [ $? = 0 ]
	expect "fewer cores on a node: it is of a class of its own" [ "$(grep -o '"pus": *"0"' "$BED/q" | wc -l)" -ge 1 ]
	expect "fewer cores on a node: it is named" grep -q "outlier: node2" "$BED/err"
else
	echo "not checked: cores of a node cannot be taken away here"
fi
[ $failed = 0 ] || cat "$BED/err"
bed_down
exit $failed
