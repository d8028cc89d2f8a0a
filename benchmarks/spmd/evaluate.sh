#!/bin/bash
# Does a plan pay, and is the model right? Heat transfer, Laplace's equation and the wave equation with and without the
# plan of servet-spmd, in turns: what each case printed, then one line for each.
#
#     evaluate.sh native BUILD           on this machine, by a profile measured first
#     evaluate.sh cluster BUILD [NODES]  on NODES (4) pretended nodes of it (root; tests/cluster/bed.sh), links of 0.3 ms
#
# The nodes share this machine's CPUs, so only two ranks compute at their full speed there; one rank on each of two nodes
# comes first, then one on every node. ROUNDS=N in the environment: rounds of each case (7).
set -u
here=$(cd "$(dirname "$0")" && pwd)
kind=${1:-} build=$(cd "${2:-/nonexistent}" 2>/dev/null && pwd) nodes=${3:-4}
[ -n "$build" ] && { [ "$kind" = native ] || [ "$kind" = cluster ]; } || {
	echo "expected: evaluate.sh native|cluster BUILD [NODES]" >&2
	exit 2
}
programs=$build/benchmarks/spmd
work=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

evaluate() { # title, application, problem, iterations, options of servet-spmd …
	local title=$1 plain="$programs/spmd_$2_plain --problem {problem} --grid {grid} --iterations {iterations}"
	local application=$2 problem=$3 iterations=$4
	shift 4
	echo "== $title: $application, $problem tasks"
	if ! $on "$build/mapper/servet-spmd" --profile "$work/profile.json" --problem "$problem" --iterations "$iterations" \
		--rounds "${ROUNDS:-7}" "$@" --characterise "$plain" --evaluate "$programs/spmd_$application --iterations {iterations}" \
		--against "$plain" >"$work/out" 2>&1; then
		cat "$work/out"
		printf '%-10s %-8s %-10s did not run\n' "$title" "$application" "$problem" >>"$work/summary"
		return
	fi
	cat "$work/out"
	awk -v name="$(printf '%-10s %-8s %-10s' "$title" "$application" "$problem")" '
		/^tile /             { tile = $2 $3 $4 }
		/^predicted /        { predicted = $2 }
		/^with the plan/     { planned = $4; efficiency = $6 }
		/^without the plan/  { plain = $4; before = $6 }
		/^with to without/   { ratio = $4; low = $5; high = $6; sub(",", "", high) }
		/^the model is off/  { off = $6 }
		/^with the time of/  { rest = $16 }
		END { printf "%s %11s %10s %10s %10s %6s %6s  %s %s %s %6s %% %7s %%\n", name, tile, predicted, planned, plain,
			efficiency, before, ratio, low, high, off, rest }' "$work/out" >>"$work/summary"
}

all() { # title, options …
	local title=$1
	shift
	evaluate "$title" heat 400x200 2000 "$@"
	evaluate "$title" heat 2000x1000 100 "$@"
	evaluate "$title" laplace 600x400 1000 "$@"
	evaluate "$title" laplace 2000x1000 100 "$@"
	evaluate "$title" wave 20000 5000 "$@"
	evaluate "$title" wave 200000 1000 "$@"
}

some() {
	local title=$1
	shift
	evaluate "$title" heat 1000x500 500 "$@"
	evaluate "$title" heat 2000x1000 100 "$@"
	evaluate "$title" laplace 1200x600 300 "$@"
	evaluate "$title" wave 1200000 300 "$@"
}

if [ "$kind" = native ]; then
	trap 'rm -rf "$work"' EXIT
	on=
	"$build/probes/servet-probe" -q -o "$work/profile.json" || exit 1
	all "here" --cores "$(nproc)"
else
	DELAY_SWITCH=$build/tests/cluster/delay_switch SERVET_PROBE=$build/probes/servet-probe
	. "$here/../../tests/cluster/bed.sh"
	bed_need
	BED_SLOTS=1 bed_up "$nodes" 300 || exit 1
	trap 'bed_down; rm -rf "$work"' EXIT
	# A CPU for each node while there are any, or all of them would start on the first one.
	cat >"$BED/rsh_cpu" <<-END
		#!/bin/sh
		for word; do case \$word in node[0-9]*) node=\${word#node}; break ;; esac; done
		exec taskset -c \$(((node - 1) % $(nproc))) $BED/rsh "\$@"
	END
	chmod +x "$BED/rsh_cpu"
	# Ranks that wait let those compute that share their CPU; the cluster does not know that it is one machine.
	on_node() {
		(bed_environment
			export OMPI_MCA_plm_rsh_agent="$BED/rsh_cpu" OMPI_MCA_mpi_yield_when_idle=1
			bed_on node1 taskset -c 0 "$@")
	}
	on=on_node
	pus=$(nproc) spread=0
	for ((k = 1; k < nodes; k++)); do spread=$spread,$((k * pus + k % pus)); done
	for count in 2 "$nodes"; do
		on_node timeout 100 mpirun.openmpi -np "$count" --map-by node "$build/probes/servet-probe" -q --cluster --per-node \
			--probes none -o "$work/profile.json" || exit 1
		some "$count nodes" --cpuset "$(cut -d, -f "1-$count" <<<"$spread")" --cores "$count"
	done
fi
echo
printf '%-10s %-8s %-10s %11s %10s %10s %10s %6s %6s  %-24s %8s %9s\n' case program problem tile "predicted" "planned" \
	"plain, s" eff. before "planned to plain" "model" "own task"
cat "$work/summary"
