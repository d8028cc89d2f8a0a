#!/bin/sh
# On a machine whose PUs really go offline, with several NUMA nodes, and that is really stopped for seconds while time
# goes on: does servet-probe end with a clear message or a marked partial profile and the old profile kept, or give
# figures that the fault has not touched? Runs inside the guest (see `guest`), as root.
# usage: probe_faults.sh SERVET-PROBE PROBING.SH WITHOUT-MBIND
probe=$1
without_mbind=$3
old='"servet_profile": the old one' # no profile, but it looks like one: anything else is not replaced
. "$2"

# over_old OPTION...: starts the probe with an old profile in the way
over_old() {
    rm -f "$folder/profile.json.partial"
    echo "$old" >"$folder/profile.json"
    begin "$@"
}

online() {
    echo "$2" >"/sys/devices/system/cpu/cpu$1/online"
}

# failed_with TEXT WHAT: one line with that text, status 1, the old profile as it was
failed_with() {
    [ $status -eq 1 ] || fail "$2: status $status: $(cat "$folder/err")"
    [ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$2: expected one line, got: $(cat "$folder/err")"
    grep -q "$1" "$folder/err" || fail "$2: expected \"$1\", got: $(cat "$folder/err")"
    [ "$(cat "$folder/profile.json")" = "$old" ] || fail "$2: the old profile is gone"
}

# -- a PU goes offline ---------------------------------------------------------------------------------------------

over_old --no-mpi --cpuset 0-3 --probes memory
await 'memory of PUs'
online 2 0
finish "offline during the first probe"
online 2 1
failed_with 'a PU went offline' "offline during the first probe"
# On a busy machine it may have ended before the PU was gone.
if [ -e "$folder/profile.json.partial" ]; then
    grep -q '"reference_bytes_per_s"' "$folder/profile.json.partial" ||
        fail "offline during the first probe: a partial profile of nothing"
fi

over_old --no-mpi --cpuset 0,2 --probes memory,message
await 'messages between'
online 2 0
finish "offline during the second probe"
online 2 1
failed_with 'a PU went offline.*profile.json.partial' "offline during the second probe"
grep -q '"incomplete": "a PU went offline.*; not measured: message"' "$folder/profile.json.partial" ||
    fail "offline during the second probe: the partial profile is not marked"
grep -q '"reference_bytes_per_s"' "$folder/profile.json.partial" ||
    fail "offline during the second probe: the bandwidth that was measured is not in the partial profile"

if command -v mpirun.openmpi >/dev/null; then
    over_old --cpuset 0,2 --probes message
    await 'messages between'
    online 2 0
    finish "offline under a rank"
    online 2 1
    if grep -q 'through MPI skipped' "$folder/err"; then
        echo "not checked: $(cat "$folder/err")"
    else
        failed_with 'a PU went offline' "offline under a rank"
    fi
fi

# -- memory cannot be placed ---------------------------------------------------------------------------------------

real=$probe
# wrapped NAME LINE COMMAND: from now on COMMAND starts the probe, after that line
wrapped() {
    printf '#!/bin/sh\n%s exec %s "$@"\n' "$2" "$3 $real" >"$folder/$1"
    chmod +x "$folder/$1"
    probe=$folder/$1
}

wrapped no-mbind "" "$without_mbind"
over_old --no-mpi --cpuset 0,1 --budget 1 --probes memory
finish "no mbind"
[ $status -eq 0 ] || fail "no mbind: status $status: $(cat "$folder/err")"
grep -q '"numa_access": "node 0 from PU 0: not allowed to place memory' "$folder/profile.json" ||
    fail "no mbind: not said in the profile: $(grep numa_access "$folder/profile.json")"
[ "$(rate "$folder/profile.json")0" -gt 0 ] || fail "no mbind: no bandwidth"

mkdir /sys/fs/cgroup/near
echo 0-3 >/sys/fs/cgroup/near/cpuset.cpus
echo 0 >/sys/fs/cgroup/near/cpuset.mems
wrapped near 'echo $$ >/sys/fs/cgroup/near/cgroup.procs;' ""
over_old --no-mpi --cpuset 0,1 --budget 1 --probes memory
finish "cpuset of one node"
[ $status -eq 0 ] || fail "cpuset of one node: status $status: $(cat "$folder/err")"
# what is out of the control group's reach is not in the topology that it sees, or is named
grep -q '"numa_access": "node [1-3] from PU 0: not allowed' "$folder/profile.json" ||
    [ "$(grep -c '"node": [1-3]' "$folder/profile.json")" -eq 0 ] ||
    fail "cpuset of one node: memory of others was measured: $(grep '"node"' "$folder/profile.json" | tr -d '\n')"
grep -q '"node": 0' "$folder/profile.json" || fail "cpuset of one node: its own memory was not measured"
probe=$real

# -- the machine stops for seconds, and time goes on ---------------------------------------------------------------

before=$(rate "$folder/profile.json")
for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" = state ] && state=/dev/${port##*/}
done
# pauses N: while the probe runs
pauses() {
    pauses=0
    while [ $pauses -lt "$1" ] && kill -0 $child 2>/dev/null; do
        echo pause >"$state"
        sleep 1
        pauses=$((pauses + 1))
    done
}

# latency: what a message takes, in microseconds
latency() {
    awk '/"layers"/ { inside = 1 } inside && /"seconds":/ { sub(/.*"seconds": */, ""); printf "%d", $0 * 1e6; exit }' \
        "$folder/profile.json"
}

# Of a copy, which takes a tenth of a second, a pause of two seconds makes one twenty times as slow; of a message in a
# batch of twenty, one of 100 ms. The guest's clocks go on and its threads seem to have run: nothing but repeating helps.
over_old --no-mpi --cpuset 0,1 --probes memory,message
await 'memory of PUs'
pauses 5
await 'messages between'
pauses 3
finish "paused"
[ $status -eq 0 ] || fail "paused: status $status: $(cat "$folder/err")"
after=$(rate "$folder/profile.json")
echo "one worker copies $before MB/s, and $after MB/s beside pauses of the machine; a message takes $(latency) us"
similar paused "$before" "$after"
[ "$(latency)" -gt 0 ] && [ "$(latency)" -lt 10000 ] || fail "paused: a message of $(latency) us"

done_probing
