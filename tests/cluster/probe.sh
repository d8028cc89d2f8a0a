#!/bin/bash
# Does servet-probe --cluster find the nodes, the layers and the one slow cable of a cluster, under Open MPI and MPICH?
#
#     probe.sh openmpi|mpich
set -u
. "$(dirname "$0")/bed.sh"
mpi=$1
bed_need "mpirun.$mpi" python3

# 2 ms from node to node, 10 ms between node1 and node3: far above what a busy machine adds.
BED_SLOTS=1 bed_up 3 2000 1:3:10000 || exit 1
profile=$BED/cluster.json
case $mpi in
openmpi) run="mpirun.openmpi -np 3 --map-by node" ;;
mpich) run="mpirun.mpich -np 3 -ppn 1" ;; # one rank a node: with more, this UCX often hangs in MPI_Finalize
esac
# On a machine busy with other work a node may be silent for longer than the limit, and Debian's MPICH 4.0.2 over UCX loses
# the first messages of a node now and then: such a run has to end by itself and say which node is silent, and is tried again.
# At a load of 15 the whole test took 91 s: a run that only takes long is not to be ended from without, before it said a word.
tries=3
run_most_s=240
for ((try = 1; try <= tries; try++)); do
	# shellcheck disable=SC2086
	bed_run timeout $run_most_s $run "$SERVET_PROBE" --cluster --per-node --probes none -o "$profile" 2>"$BED/err"
	status=$?
	cat "$BED/err"
	[ $status != 0 ] || break
	# Its MPI_Finalize fails or hangs now and then as well, after our work is done: judged by the output.
	if [ "$mpi" = mpich ] && grep -q "profile written to $profile" "$BED/err"; then
		status=0
		break
	fi
	expect "a run that fails says why" grep -q "^servet-probe: .*\(heard\|answer\|nothing\|no message\)" "$BED/err"
	expect "and writes nothing" [ ! -e "$profile" ]
	for ((wait = 0; wait < 15; wait++)); do
		[ -n "$(bed_leftovers)" ] || break
		sleep 1
	done
	expect "and leaves no process" [ -z "$(bed_leftovers)" ]
done
if [ "$mpi" = mpich ] && [ $status != 0 ] && [ $failed = 0 ]; then
	bed_skip "MPICH lost the first messages of a node $tries times in a row"
fi
expect "servet-probe --cluster ends well" [ $status = 0 ]
expect "no process is left" [ -z "$(bed_leftovers)" ]

ask() { python3 -c "
import json, sys
p = json.load(open('$profile'))
network = p['network']['layers']
def layer(a, b):
    for i, l in enumerate(network):
        for g in l['members'].get('groups', []):
            low, *high = g.split('-')
            if int(low) <= a <= int((high or [low])[0]) and int(low) <= b <= int((high or [low])[0]):
                return i
        if [a, b] in l['members'].get('pairs', []):
            return i
sys.exit(0 if ($1) else 1)"; }

# One class, or those that differ are named: all nodes are measured at once, on the CPUs of this one machine.
expect "every node is of the usual class or named as an outlier" ask "sum(n['count'] for n in p['nodes']) == 3 and (
    len(p['node_classes']) == 1 or 'outlier' in p['measurement']['conditions'])"
# Nothing is said about how near the two quick links come to each other: nodes that wait for a PU of this one machine are
# milliseconds late, and may be so at each of a few batches. That near values share a layer is cluster-survey's to say.
expect "the slow cable has a layer of its own" ask "layer(0, 2) == len(network) - 1 > max(layer(0, 1), layer(1, 2))"
expect "the layers are milliseconds apart" \
	ask "all(2e-3 <= network[layer(*l)]['seconds'] < 10e-3 for l in ((0, 1), (1, 2))) and 10e-3 <= network[layer(0, 2)]['seconds']"
expect "every pair is marked as measured" ask "p['network']['measured']['groups'] == ['0-2']"
expect "a curve from 1 byte to 4 MiB" \
	ask "all(l['curve'][0]['bytes'] == 1 and l['curve'][-1]['bytes'] == 4194304 for l in network)"
expect "servet-show reads it" eval '"$SERVET_SHOW" "$profile" >/dev/null'

bed_down
exit $failed
