#!/bin/bash
# From the profile of a cluster to a run: do the ranks sit where servet-map planned them?
set -u
. "$(dirname "$0")/bed.sh"
bed_need mpirun.openmpi
[ "$(nproc)" -ge 2 ] || bed_skip "one PU: there is nothing to choose"

BED_SLOTS=2 bed_up 3 2000 || exit 1
# Tried again where the machine is so busy with other work that a node was given up (probe.sh asks how that ends).
for ((try = 0; try < 3; try++)); do
	bed_run timeout 150 mpirun.openmpi -np 3 --map-by node "$SERVET_PROBE" --cluster --per-node --probes none \
		--quiet -o "$BED/profile.json"
	[ ! -s "$BED/profile.json" ] || break
	sleep 5
done
expect "a profile of three nodes" [ -s "$BED/profile.json" ]
expect "messages inside the nodes are measured too" grep -q '"origin": "measured"' \
	<(sed -n '/"communication"/,/"nodes"/p' "$BED/profile.json")
printf 'node1 slots=2\nnode3 slots=2\n' >"$BED/job"

check_run() { # priority
	local rank where host pu
	"$SERVET_MAP" --profile "$BED/profile.json" -n 3 --cluster --nodes "$BED/job" "$1" --format rankfile >"$BED/ranks"
	expect "$1: a rankfile of three ranks" [ "$(wc -l <"$BED/ranks")" = 3 ]
	expect "$1: nodes of the job only" [ -z "$(grep node2 "$BED/ranks")" ]
	# shellcheck disable=SC2016 # the inner shell is the rank
	bed_ranks "$BED/ranks" 'echo "rank $OMPI_COMM_WORLD_RANK=$(hostname) slot=$PUS"' >"$BED/where" || cat "$BED/err"
	sort "$BED/where" >"$BED/sorted"
	expect "$1: every rank sits where the rankfile says" cmp "$BED/ranks" "$BED/sorted"
	[ $failed = 0 ] || cat "$BED/ranks" "$BED/sorted"
}

check_run --comm-prior
expect "communication priority fills a node first" [ "$(grep -c =node1 "$BED/ranks")" = 2 ]
check_run --mem-prior
expect "memory priority takes both nodes" grep -q =node3 "$BED/ranks"
bed_down
exit $failed
