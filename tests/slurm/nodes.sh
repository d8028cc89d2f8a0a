#!/bin/bash
# Does the plugin place the tasks of a step over several nodes, on each of them as the mapper says for its own tasks?
#
# Runs below `bed` with BED_NODES=2, which has task/affinity on. $SERVET_MAP and $SERVET_PROBE are the commands, $SHIM and
# $PLUGIN what was built, $WORKER a program whose threads say where they sit.
set -u
# Slurm gives a step as many cores as it has tasks; the mapper's choice is known where those are all.
[ "$(nproc)" -eq 2 ] || { echo "skipped: $(nproc) PUs: two tasks would not have all of a node"; exit 77; }
echo "required $PLUGIN shim=$SHIM" >"$BED_PLUGSTACK"

# shellcheck source=tests/slurm/report.sh
. "$(dirname "$0")/report.sh"

# A profile of this machine in which the last PU is the better one: Slurm's own binding would begin with the first.
last=$(($(nproc) - 1))
"$SERVET_PROBE" -q --probes cache --largest 64K --budget 0.001 -o "$files/measured.json" || exit 1
kinds="\"kinds\": [{\"efficiency\": 0, \"pus\": \"0-$((last - 1))\"}, {\"efficiency\": 1, \"pus\": \"$last\"}],"
sed "s/^ *\"packages\":/$kinds&/" "$files/measured.json" >"$files/uneven.json"
export SERVET_PROFILE="$files/uneven.json"

# step NAME SRUN-OPTION...: two tasks of two threads on each node; "NODE TASK-OF-NODE THREAD PUS" of each
step() {
	# shellcheck disable=SC2016 # the inner shell is the task
	timeout 100 srun --nodes=2 --ntasks=4 --ntasks-per-node=2 "${@:2}" sh -c \
		'"$1" 1 | while read -r _ _ thread pus _; do echo "$SLURMD_NODENAME $SLURM_LOCALID $thread $pus"; done' \
		- "$WORKER" 2>"$files/err" | sort >"$files/found"
	report "$1"
}

# lines PU PU: what tasks 0 and 1 of each node say that sit there with both their threads
lines() {
	for node in node1 node2; do
		for task in 0 1; do
			for thread in 0 1; do
				echo "$node $task $thread $(eval echo "\${$((task + 1))}")"
			done
		done
	done >"$files/expected"
}

for priority in mem comm; do
	map=$("$SERVET_MAP" -n 2 "--$priority-prior" --format list)
	# shellcheck disable=SC2046 # two words
	lines $(echo "$map" | tr , ' ')
	step "both nodes' tasks by --servet=$priority" "--servet=$priority"
done
# One task a node, whose number of threads nobody has said: they come one by one, and the better PU is first.
[ "$("$SERVET_MAP" -n 1 --format list)" = "$last" ] || { echo "FAILED: the profile does not make PU $last the better"; failed=1; }
for node in node1 node2; do
	printf '%s\n' "$node 0 0 $last" "$node 0 1 0"
done >"$files/expected"
step "one task on each node" --servet=mem --ntasks=2 --ntasks-per-node=1 --cpus-per-task=2
lines 1 0
step "a binding of the user's stays on both nodes" --servet=mem --cpu-bind=map_cpu:1,0

exit $failed
