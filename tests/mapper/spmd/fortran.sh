#!/bin/sh
# Does servet-spmd --characterise measure programs in Fortran as it does those in C, whatever their interface to MPI?
#     fortran.sh SERVET_SPMD MPIRUN FIXTURES PROGRAM ...
set -u
spmd=$1 mpirun=$2 profile=$3/nehalem-2-nodes.json
shift 3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 # see programs.sh
[ $# -gt 0 ] || { echo "skipped: no Fortran for $mpirun"; exit 77; }
bash -c ': >/dev/udp/127.0.0.1/9' 2>/dev/null || { echo "skipped: no loopback, by which MPI starts ranks"; exit 77; }
command -v "$mpirun" >/dev/null || { echo "skipped: no $mpirun here"; exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failed=0
for program in "$@"; do
    "$spmd" --profile "$profile" --problem 200x150 --iterations 20 --cores 2 --cpuset 0-1 --rounds 1 \
        --characterise "$program {iterations}" >"$work/out" 2>"$work/err"
    if [ $? != 0 ] ||
        ! grep -q "8 bytes for an edge task (1 run of 20 iterations, tiles of 100 x 150 on 2 cores)" "$work/out"; then
        echo "FAILED: ${program##*/}:"
        cat "$work/out" "$work/err"
        failed=1
    fi
done
exit $failed
