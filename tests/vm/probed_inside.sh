#!/bin/sh
# On a machine of another architecture, with NUMA nodes, clusters of cores without SMT, and caches of which the system
# says nothing (POWER: the first level's size, and pages of 64 KiB): does a program end with one PU for each thread, those
# that the mapping names, by the topology and by a profile that was measured there?
# Runs inside a guest (see `guest`), as root, with busybox alone.
# usage: probed_inside.sh SERVET-PROBE SERVET-MAP SERVET-SHOW SHIM OPENMP-PROGRAM
probe=$1 map=$2 show=$3 shim=$4 program=$5
pus=8 nodes=2
[ "$(uname -m)" != riscv64 ] || nodes=1
folder=$(mktemp -d)
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# placed WORKERS PRIORITY OPTION: an OpenMP program, whose main thread is its first worker
placed() {
    env LD_PRELOAD="$shim" "SERVET_$2_PRIOR=1" OMP_NUM_THREADS="$1" "$program" >"$folder/out" 2>"$folder/err" ||
        fail "$2 of $1: status $?"
    [ ! -s "$folder/err" ] || fail "$2 of $1: $(cat "$folder/err")"
    got=$(awk '$1 == "worker" { print $3, $4 }' "$folder/out" | sort -n | awk '{ printf "%s%s", s, $2; s = "," }')
    said=$("$map" -n "$1" "$3")
    echo "$1 workers, $2 priority: $got"
    [ "$got" = "$said" ] || fail "$2 of $1: on PUs $got, servet-map says $said"
    [ "$(echo "$got" | tr ',' '\n' | sort -u | grep -c '^[0-9]*$')" -eq "$1" ] || fail "$2 of $1: not $1 PUs: $got"
}

all_placed() {
    for workers in 2 3 "$pus"; do
        placed "$workers" MEM --mem-prior
        placed "$workers" COMM --comm-prior
    done
}

# -- the machine ---------------------------------------------------------------------------------------------------

[ "$(ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l)" -eq "$pus" ] || fail "the guest has not $pus PUs"
[ "$(ls -d /sys/devices/system/node/node[0-9]* | wc -l)" -eq "$nodes" ] || fail "the guest has not $nodes NUMA nodes"
if [ "$(uname -m)" = ppc64le ]; then
    grep -q '^KernelPageSize: *64 kB' /proc/self/smaps || fail "pages are not of 64 KiB"
else
    cat /sys/devices/system/cpu/cpu0/cache/index*/size >/dev/null 2>&1 && fail "the system says how large a cache is"
fi

# What the shim reads from /sys, and the commands from hwloc.
echo "by the topology"
all_placed

# -- a profile of it -----------------------------------------------------------------------------------------------

# Times mean nothing under emulation; what is asked is that each probe goes through, and that there are figures. Where the
# budget is too small for any on this machine, it gets twice as much, three times.
# probed FIGURE FILE BUDGET OPTION...
probed() {
    figure=$1 file=$2 budget=$3 most=$(($3 * 8))
    shift 3
    while rm -f "$file"; do
        "$probe" -q --no-mpi "$@" --budget "$budget" -o "$file" 2>"$folder/err"
        status=$?
        grep -qs "\"$figure\": *[0-9.]*[1-9]" "$file" && break
        budget=$((budget * 2))
        if [ "$budget" -gt "$most" ]; then
            fail "servet-probe $*: status $status, no $figure: $(cat "$folder/err")"
            break
        fi
    done
    "$show" "$file"
}

probed seconds_per_access "$folder/cache.json" 5 --probes cache --cpuset 0 --largest 2M
probed reference_bytes_per_s "$folder/memory.json" 5 --probes memory --cpuset 0-1
export SERVET_PROFILE="$folder/profile.json"
probed seconds "$SERVET_PROFILE" 10 --probes message

echo "by the profile"
all_placed

rm -rf "$folder"
exit $failed
