#!/bin/sh
# On a machine whose firmware says that nodes 2 and 3 have faster memory than the nodes of the processors, 0 and 1: on
# which node are the pages of a rank, by SERVET_MEMBIND, and is it said how much of the fast memory is its share?
# Runs inside the guest (see `guest`).
# usage: memory_tiers.sh SHIM PAGES SERVET-SHOW
shim=$1
pages=$2
show=$3
err=$(mktemp)
failed=0
echo 0 >/proc/sys/kernel/numa_balancing

fail() {
    echo "FAIL: $*"
    failed=1
}

# rank 1 of two that have a package each has touched memory on node 0 before: run MEMBIND [VARIABLE=VALUE...]
run() {
    membind=$1
    shift
    env OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMP_NUM_THREADS=8 SERVET_MEMBIND="$membind" SERVET_PROFILE= \
        SERVET_REGISTRY=0 XDG_CONFIG_HOME=/nonexistent LD_PRELOAD="$shim" "$@" "$pages" 0 2>"$err"
}

# is MEMBIND "fresh NODE:PAGES ..."
is() {
    found=$(run "$1" | grep fresh)
    [ "$found" = "$2" ] || fail "$1: expected $2, got $found"
}

"$show" | grep NUMA
"$show" | grep -q 'NUMA 3 .*fast memory' || fail "servet-show does not call node 3 fast"
"$show" | grep -q 'NUMA 1 .*capacity memory' || fail "servet-show does not call node 1 the one of capacity"

is none "fresh 1:256"
is fast "fresh 3:256"
is capacity "fresh 1:256"
is interleave "fresh 1:128 3:128"

# One to three where the kernel can and root has said so, else one to one, and it is said.
weights=/sys/kernel/mm/mempolicy/weighted_interleave
if [ -d $weights ]; then
    echo 3 >$weights/node3
    is weighted "fresh 1:64 3:192"
    echo 1 >$weights/node3
    wanted="other weights"
else
    wanted="no weighted interleave"
fi
is weighted "fresh 1:128 3:128"
run weighted SERVET_VERBOSE=1 >/dev/null
grep -q "as plain interleave: .*$wanted" "$err" || fail "weighted: not said: $(cat "$err")"

# By the command.
found=$(env OMP_NUM_THREADS=8 SERVET_REGISTRY=0 SERVET_PROFILE= XDG_CONFIG_HOME=/nonexistent \
    "$(dirname "$shim")/servet-pin" --membind=fast -- "$pages" 0 2>&1 | grep -c 'fresh [23]:')
[ "$found" = 1 ] || fail "servet-pin --membind=fast: pages are elsewhere"

# Sixteen ranks share 1 GiB of fast memory: 100 MB are more than a share, and go nonetheless where there is room.
env OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=16 SERVET_MEMBIND=fast SERVET_PROFILE= SERVET_REGISTRY=0 \
    XDG_CONFIG_HOME=/nonexistent SERVET_VERBOSE=1 SERVET_REPORT=stderr LD_PRELOAD="$shim" "$pages" 0 100000000 >/dev/null 2>"$err" ||
    fail "more than its share: status $?"
grep -q 'memory fast, nodes .*, its share is 6[0-9] MiB' "$err" || fail "no share: $(cat "$err")"
grep -q 'do not fit into its share of the fast memory' "$err" || fail "it is not said that it does not fit: $(cat "$err")"
grep -q 'memory: fast (nodes 2*3*), at most .* share of 6[0-9] MiB: it does not fit' "$err" || fail "not in the report: $(cat "$err")"
[ $failed = 0 ] && echo "all as expected"
exit $failed
