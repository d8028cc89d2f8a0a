#!/bin/sh
# In a control group whose memory limit is below the working sets: does the command say so, or mark what it measured
# with less, without being killed for memory, and with the old profile kept?
# usage: memory_limit.sh SERVET-PROBE
probe=$1
folder=$(mktemp -d)
failed=0
group=

# Nobody is left in the group when this is called; the kernel may take a moment to notice.
leave() {
    for attempt in 1 2 3 4 5; do
        [ -z "$group" ] || [ ! -d "$group" ] || rmdir "$group" 2>/dev/null || sleep 0.1
    done
}
trap 'leave; rm -rf "$folder"' EXIT

fail() {
    echo "FAIL: $*"
    failed=1
}

skip() {
    echo "skipped: $*"
    exit 77
}

# AddressSanitizer takes memory of its own that no probe can foresee
ldd "$probe" | grep -q asan && skip "AddressSanitizer's memory would count"

# Below this process's own group; version 1 first, where the memory controller is mounted alone or with others.
find_group() {
    own=$(sed -n 's/^[0-9]*:\([^:]*,\)*memory\(,[^:]*\)*:\(.*\)$/\3/p' /proc/self/cgroup)
    for parent in "/sys/fs/cgroup/memory$own" /sys/fs/cgroup/memory; do
        if [ -w "$parent/memory.limit_in_bytes" ] || [ -f "$parent/memory.limit_in_bytes" ]; then
            group=$parent/servet-test-$$
            limit=memory.limit_in_bytes
            swap=memory.memsw.limit_in_bytes
            killed=memory.oom_control
            mkdir "$group" 2>/dev/null && return 0
        fi
    done
    own=$(sed -n 's/^0:://p' /proc/self/cgroup)
    for parent in "/sys/fs/cgroup$own" /sys/fs/cgroup; do
        group=$parent/servet-test-$$
        limit=memory.max
        swap=memory.swap.max
        killed=memory.events
        mkdir "$group" 2>/dev/null && [ -f "$group/$limit" ] && return 0
        rmdir "$group" 2>/dev/null
    done
    group=
    return 1
}
find_group || skip "no memory control group can be made here (not root, or no memory controller)"

# limited MIB: runs the probe with so much memory; its status is in $status, the profile $folder/profile.json
limited() {
    rm -f "$folder/profile.json.partial"
    echo '"servet_profile": the old one' >"$folder/profile.json"
    bytes=$(($1 * 1048576))
    # version 1 counts memory and swap together, and wants that limit above the other at any time
    case $swap in
    *memsw*) { echo $bytes >"$group/$swap"; } 2>/dev/null ;;
    *) { echo 0 >"$group/$swap"; } 2>/dev/null ;;
    esac
    { echo $bytes >"$group/$limit"; } 2>/dev/null || skip "the control group takes no limit"
    case $swap in
    *memsw*) { echo $bytes >"$group/$swap"; } 2>/dev/null ;;
    esac
    sh -c 'echo $$ >"$1/cgroup.procs" || exit 77; shift; exec "$@"' - "$group" "$probe" -q --no-mpi --probes sharing,memory \
        -o "$folder/profile.json" 2>"$folder/err"
    status=$?
    [ $status -eq 77 ] && skip "no process may enter the control group"
    [ $status -le 1 ] || fail "$1 MiB: status $status: $(cat "$folder/err")"
    grep -q '^oom_kill [1-9]' "$group/$killed" && fail "$1 MiB: the kernel ended it for want of memory"
}

# Too little for any working set: one line that names memory and the limit, the old profile, no partial one.
limited 16
[ $status -eq 1 ] || fail "16 MiB: expected status 1, got $status"
[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "16 MiB: expected one line, got: $(cat "$folder/err")"
grep -q 'not enough memory.*control groups allow [0-9] MiB' "$folder/err" || fail "16 MiB: $(cat "$folder/err")"
[ "$(cat "$folder/profile.json")" = '"servet_profile": the old one' ] || fail "16 MiB: the old profile is gone"

# Some of it: a partial profile beside the old one, or a whole one, marked.
for mebibytes in 64 256; do
    limited $mebibytes
    if [ $status -eq 0 ]; then
        marked=$folder/profile.json
    else
        marked=$folder/profile.json.partial
        [ "$(cat "$folder/profile.json")" = '"servet_profile": the old one' ] || fail "$mebibytes MiB: the old profile is gone"
        grep -q 'not enough memory' "$folder/err" || fail "$mebibytes MiB: $(cat "$folder/err")"
    fi
    grep -q '"memory_limited": "\|"incomplete": "not enough memory' "$marked" ||
        fail "$mebibytes MiB, status $status: the profile is not marked"
    echo "$mebibytes MiB: status $status, $(grep -o '"memory_limited": "[^"]*"\|"incomplete": "[^"]*"' "$marked")"
done

exit $failed
