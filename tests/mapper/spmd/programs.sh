#!/bin/sh
# Do the applications compute the same with a plan as without, to the last bit, on any grid? Does servet-spmd measure a
# task and an iteration with them? Is a plan for other processes refused in one line?
#     programs.sh SERVET_SPMD MPIRUN FIXTURES FOLDER_OF_PROGRAMS
set -u
spmd=$1 mpirun=$2 profile=$3/nehalem-2-nodes.json programs=$4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
# In a build with sanitizers: Open MPI never frees everything, and the trace is preloaded before their runtime.
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
bash -c ': >/dev/udp/127.0.0.1/9' 2>/dev/null || { echo "skipped: no loopback, by which MPI starts ranks"; exit 77; }
command -v "$mpirun" >/dev/null || { echo "no $mpirun here"; exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

checksum() {
    sed -n 's/.*checksum //p' "$1"
}

# application problem tile ranks; more iterations than those in which servet_spmd.h looks for the better order
same_result() {
    "$mpirun" -np 1 "$programs/spmd_$1_plain" --problem "$2" --iterations 41 >"$work/one" || fail "$1 on one process"
    "$mpirun" -np "$4" "$programs/spmd_$1_plain" --problem "$2" --iterations 41 >"$work/plain" || fail "$1 plain"
    "$spmd" --profile "$profile" --problem "$2" --comp 1e-8 --tile "$3" --plan "$work/plan" >/dev/null || fail "$1 plan"
    SERVET_SPMD_PLAN=$work/plan "$mpirun" -np "$4" "$programs/spmd_$1" --iterations 41 >"$work/planned" ||
        fail "$1 planned"
    sum=$(checksum "$work/one")
    [ -n "$sum" ] || fail "$1: no result"
    [ "$sum" = "$(checksum "$work/plain")" ] || fail "$1 $2: $4 processes differ from one"
    [ "$sum" = "$(checksum "$work/planned")" ] || fail "$1 $2 by tiles $3: the plan changes the result"
}

same_result heat 120x90 60x30 6
same_result heat 64x48 16x48 4
same_result heat 64x48 64x12 4
same_result wave 3000 1000 3

# other iterations, another checksum: the sums above do depend on what is computed
"$mpirun" -np 1 "$programs/spmd_heat_plain" --problem 120x90 --iterations 29 >"$work/a"
"$mpirun" -np 1 "$programs/spmd_heat_plain" --problem 120x90 --iterations 30 >"$work/b"
[ "$(checksum "$work/a")" != "$(checksum "$work/b")" ] || fail "the checksum does not see an iteration"

# a plan for 2 processes on 3
"$spmd" --profile "$profile" --problem 600 --comp 1e-8 --cores 2 --plan "$work/plan" >/dev/null
SERVET_SPMD_PLAN=$work/plan "$mpirun" -np 3 "$programs/spmd_wave" >"$work/out" 2>"$work/err" && fail "wrong plan accepted"
grep -q "a plan for 2 x 1 processes, expected one for the 3 that run" "$work/err" || fail "wrong plan: $(cat "$work/err")"
"$mpirun" -np 2 "$programs/spmd_wave" >"$work/out" 2>"$work/err" && fail "no plan accepted"
grep -q "SERVET_SPMD_PLAN: not set" "$work/err" || fail "no plan: $(cat "$work/err")"

# Characterisation (figures are not judged here): of a program without a plan, and of one that runs by it.
for program in "spmd_heat_plain --problem {problem} --grid {grid}" spmd_heat; do
    "$spmd" --profile "$profile" --problem 400x300 --iterations 20 --cores 2 --cpuset 0-1 --rounds 2 \
        --characterise "$programs/$program --iterations {iterations}" >"$work/out" 2>"$work/err" ||
        fail "characterisation: $(cat "$work/err")"
    tile=$(sed -n 's/^tile  *\(.*\) tasks/\1/p' "$work/out")
    grep -q "8 bytes for an edge task (2 runs of .* iterations, tiles of $tile on 2 cores)" "$work/out" ||
        fail "$program: another tile was measured: $(cat "$work/out")"
    grep -q "^measured .* an iteration: the model is off by" "$work/out" || fail "$program: $(cat "$work/out")"
done
exit $failed
