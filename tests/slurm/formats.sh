#!/bin/bash
# Does srun understand what servet-map prints for it, and put the tasks there?
#
# Runs below `bed` with BED_NODES=2. $SERVET_MAP is the command. Two nodes need a slurmd that may run several times on
# one machine, as Debian's.
set -u
[ "$(nproc)" -ge 2 ] || { echo "skipped: one PU: there is nothing to choose"; exit 77; }
export XDG_CONFIG_HOME=/nonexistent # no profile: the topology
unset SERVET_PROFILE

# shellcheck source=tests/slurm/report.sh
. "$(dirname "$0")/report.sh"

map() { "$SERVET_MAP" "$@" 2>/dev/null; }

# "TASK: VALUE" of each task, in order.
tasks() { timeout 60 srun --label "$@" 2>"$files/err" | sort -n >"$files/found"; }

# The same in a step that has all PUs of one node: Slurm refuses to bind to others.
tasks_of_node() {
	local count
	count=$(wc -l <"$files/expected")
	tasks --nodes=1 --ntasks="$count" --cpus-per-task="$(($(nproc) / count))" "$@"
}

# One PU of each task: those that --format list names, one after the other.
check_map() { # options of servet-map
	local options
	map "$@" --format list | tr , '\n' | awk '{ print NR - 1 ": Cpus_allowed_list:\t" $1 }' >"$files/expected"
	options=$(map "$@" --format slurm-map)
	tasks_of_node "$options" grep Cpus_allowed_list: /proc/self/status
	report "servet-map $*: srun $options"
}

# All PUs of each task, as the kernel prints the mask: of 32 bits a group, so a machine of at most 32 PUs is compared.
check_mask() { # options of servet-map
	local options
	map "$@" --format list | awk '{
		n = split($0, pu, ",")
		mask = 0
		split("", seen)
		for (i = 1; i <= n; i++)
			if (!seen[pu[i]]++)
				mask += 2 ^ pu[i]
		printf "%d: %x\n", NR - 1, mask
	}' >"$files/expected"
	options=$(map "$@" --format slurm-mask)
	# shellcheck disable=SC2016 # the inner shell is the task
	tasks_of_node "$options" \
		sh -c 'printf "%x\n" "0x$(sed -n "s/^Cpus_allowed:[[:space:]]*//p" /proc/self/status | tail -c 9)"'
	report "servet-map $*: srun $options"
}

check_map -n 2
check_map -n 2 --comm-prior
check_map -n 1 --cpuset 1
if [ "$(nproc --all)" -le 32 ]; then
	check_mask -r 1 -t 2
	check_mask -r 2 -t 1
	check_mask -r 1 -t 2 --cpuset 1
else
	echo "not checked: slurm-mask, more than 32 PUs"
fi

# A cluster whose first node is not the first by name, so that no order of Slurm's own is that of the mapping.
sed 's/{"names": "node\[1-2\]", "count": 2,\(.*\)}/{"names": "node2", "count": 1,\1}, {"names": "node1", "count": 1,\1}/' \
	"$CLUSTER_PROFILE" >"$files/cluster.json"

# Tasks over nodes in the order of the mapping.
check_nodes() { # options of servet-map
	local options
	map --profile "$files/cluster.json" "$@" --format hostfile | awk '{ print NR - 1 ": " $1 }' >"$files/expected"
	options=$(map --profile "$files/cluster.json" "$@" --format slurm-hosts)
	# shellcheck disable=SC2086 # several options
	tasks --overcommit $options printenv SLURMD_NODENAME
	report "servet-map $*: srun $options"
	# The same order from a file.
	map --profile "$files/cluster.json" "$@" --format hostfile >"$files/hosts"
	SLURM_HOSTFILE=$files/hosts tasks --overcommit --distribution=arbitrary \
		--ntasks="$(wc -l <"$files/hosts")" printenv SLURMD_NODENAME
	report "servet-map $*: srun with SLURM_HOSTFILE"
}

check_nodes -n 2 --mem-prior
check_nodes -n 2 --comm-prior
check_nodes -n 6 --mem-prior
exit $failed
