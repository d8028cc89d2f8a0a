#!/bin/bash
# Do Open MPI and MPICH understand what servet-map prints for them, and put the ranks on those nodes and PUs?
set -u
. "$(dirname "$0")/bed.sh"
bed_need mpirun.openmpi

expect_same() { # what; $BED/expected and $BED/found are compared
	if [ -s "$BED/expected" ] && cmp -s "$BED/expected" "$BED/found"; then
		echo "ok: $1"
		return
	fi
	echo "FAILED: $1, expected:"
	cat "$BED/expected"
	echo "found:"
	cat "$BED/found" "$BED/err"
	failed=1
}

map() { "$SERVET_MAP" --profile "$BED/profile.json" "$@" 2>/dev/null; }

# "RANK NODE" of each rank, in order.
ask() { # variable with the rank, launcher and its options …
	local rank=$1
	shift
	bed_run timeout 60 "$@" sh -c "echo \$$rank \$(hostname)" 2>"$BED/err" | sort -n >"$BED/found"
}

# The nodes in an order that is not that of their names, and mpirun's own node last: no order of a launcher's own is
# that of the mapping.
BED_SLOTS=4 bed_up 3 || exit 1
sed -e 's/{"names": "node\[1-2\]", "count": 2,\(.*\)}/{"names": "node3", "count": 1,\1}, {"names": "node2", "count": 1,\1}, {"names": "node1", "count": 1,\1}/' \
	-e 's/"groups": \["0-1"\]/"groups": ["0-2"]/' "$CLUSTER_PROFILE" >"$BED/profile.json"

check_nodes() { # ranks, options of servet-map …
	local ranks=$1
	shift
	set -- -n "$ranks" "$@"
	map "$@" --format rankfile | sed 's/rank \(.*\)=\(.*\) slot=.*/\1 \2/' >"$BED/expected"
	# shellcheck disable=SC2046 # several options
	ask OMPI_COMM_WORLD_RANK mpirun.openmpi $(map "$@" --format host) -np "$ranks"
	expect_same "$*: Open MPI, host"
	map "$@" --format hostfile >"$BED/hosts"
	ask OMPI_COMM_WORLD_RANK mpirun.openmpi --map-by seq --hostfile "$BED/hosts" -np "$ranks"
	expect_same "$*: Open MPI, hostfile"
	command -v mpirun.mpich >/dev/null || { echo "not checked: MPICH, no mpirun.mpich"; return; }
	# shellcheck disable=SC2046
	ask PMI_RANK mpirun.mpich $(map "$@" --format hydra-hosts) -n "$ranks"
	expect_same "$*: MPICH, hydra-hosts"
}

# Several ranks to a node, all ranks of a node in a row; and ranks that return to a node that had some before.
check_nodes 5 --comm-prior
check_nodes 9 --comm-prior
check_nodes 9 --mem-prior

# Ranks with threads: each rank may use all PUs of its line, and no other. Real nodes have the PUs of this machine.
if taskset -c 0,1 true 2>/dev/null && [ "$(taskset -c 0,1 nproc)" = 2 ]; then
	sed -i -e 's/"pus": "0-7"/"pus": "0-1"/' -e '/"packages"/d' -e '/"numa": \[/,/\],/d' \
		-e 's/"sharing": {"groups": [^}]*}/"sharing": {"groups": ["0-1"]}/' \
		-e 's/"groups": \["0,2,4,6", "1,3,5,7"\]/"groups": ["0-1"]/' -e 's/"groups": \["0-7"\]/"groups": ["0-1"]/' \
		"$BED/profile.json"
	map -r 3 -t 2 --format rankfile >"$BED/ranks"
	sed 's/ slot=/ /; s/rank \(.*\)=/\1 /' "$BED/ranks" | tr ',' '-' >"$BED/expected"
	# shellcheck disable=SC2016 # the inner shell is the rank
	bed_ranks "$BED/ranks" 'echo "$OMPI_COMM_WORLD_RANK $(hostname) $PUS"' | sort -n >"$BED/found"
	expect_same "-r 3 -t 2: Open MPI, rankfile"
else
	echo "not checked: ranks with threads, PUs 0 and 1 may not both be used"
fi
bed_down
exit $failed
