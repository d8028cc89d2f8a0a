#!/bin/sh
# Does the command keep what it promises, on this machine: a valid profile of what it may use, marks for a busy
# machine and for one that stood still, the old profile and no child process after an interruption?
# usage: servet_probe.sh SERVET-PROBE MACHINES
# shellcheck source=probe_command.sh
. "$(dirname "$0")/probe_command.sh"

# one PU of this machine, only what is quick
allowed=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

"$probe" -q --cpuset "$allowed" --probes memory,message -o "$folder/one.json" 2>"$folder/err" ||
    fail "one PU: $(cat "$folder/err")"
[ -s "$folder/err" ] && fail "--quiet, yet: $(cat "$folder/err")"
grep -q "\"pus\": \"$allowed\"" "$folder/one.json" || fail "the profile does not speak of PU $allowed alone"

# another machine's topology in the environment is not this one's
HWLOC_SYNTHETIC="package:3 core:5 pu:1" "$probe" -q --cpuset "$allowed" --probes memory --budget 0.1 \
    -o "$folder/own.json" || fail "HWLOC_SYNTHETIC: status $?"
here=$(grep '"packages"' "$folder/one.json")
[ "$(grep '"packages"' "$folder/own.json")" = "$here" ] &&
    [ "$(grep 'declared_size' "$folder/own.json")" = "$(grep 'declared_size' "$folder/one.json")" ] ||
    fail "HWLOC_SYNTHETIC: what the profile declares is another machine's"

# Arm's and RISC-V's systems tell of caches, and not always how large they are: messages need a size all the same
object() { # type, mask, attributes...: up to the end of the opening tag
    type=$1 mask=$2
    shift 2
    printf '<object type="%s" cpuset="%s" complete_cpuset="%s" nodeset="0x1" complete_nodeset="0x1" %s>' \
        "$type" "$mask" "$mask" "$*"
}
if taskset -c 0,1 true 2>/dev/null; then
    {
        printf '<?xml version="1.0" encoding="UTF-8"?><topology version="2.0">'
        object Machine 0x3 'os_index="0" allowed_cpuset="0x3" allowed_nodeset="0x1"'
        object NUMANode 0x3 'os_index="0" local_memory="1073741824"'
        printf '</object>'
        for pu in 0 1; do
            object L1Cache $((pu + 1)) 'cache_size="0" depth="1" cache_linesize="0" cache_associativity="0" cache_type="1"'
            object Core $((pu + 1)) "os_index=\"$pu\""
            object PU $((pu + 1)) "os_index=\"$pu\""
            printf '</object></object></object>'
        done
        printf '</object></topology>'
    } >"$folder/caches.xml"
    HWLOC_XMLFILE="$folder/caches.xml" HWLOC_THISSYSTEM=1 taskset -c 0,1 "$probe" -q --no-mpi --probes message --budget 1 \
        -o "$folder/caches.json" 2>"$folder/err" || fail "caches of no size: $(cat "$folder/err")"
    grep -q '"message_bytes": 32768' "$folder/caches.json" || fail "caches of no size: messages of another size"
else
    echo "not checked: PUs 0 and 1 are not ours"
fi

# another task on the measured PU is noticed and marked
if [ -r /proc/self/schedstat ]; then
    taskset -c "$allowed" sh -c ': >"$1"; while :; do :; done' sh "$folder/hog" &
    hog=$!
    until [ -e "$folder/hog" ]; do # on a busy machine it may begin late
        kill -0 $hog 2>/dev/null || fail "the busy task ended"
        sleep 0.05
    done
    "$probe" --cpuset "$allowed" --probes memory -o "$folder/busy.json" 2>"$folder/err" || fail "beside a busy task"
    # a figure that differs then is no news
    sed 's/"reference_bytes_per_s": /&9/' "$folder/busy.json" >"$folder/other.json"
    "$probe" --cpuset "$allowed" --check="$folder/other.json" >"$folder/out" || fail "busy, yet: $(cat "$folder/out")"
    grep -q '^too busy to say: 1 of 1 figures differ' "$folder/out" || fail "too busy, yet: $(cat "$folder/out")"
    # ranks of an MPI program are watched as our own threads are
    "$probe" -q --probes message -o "$folder/ranks.json" 2>"$folder/ranks.err"
    kill $hog
    wait $hog 2>/dev/null
    if grep -q '"through_threads": true' "$folder/ranks.json"; then
        echo "note: no MPI, its ranks were not watched"
    elif grep -q '"layers": \[\]' "$folder/ranks.json" || ! grep -q '"curve"' "$folder/ranks.json"; then
        echo "note: one PU, no messages"
    else
        grep -q '"busy": "other tasks ran' "$folder/ranks.json" || fail "a busy PU of a rank is not marked"
    fi
    grep -q '"busy": "other tasks ran' "$folder/busy.json" || fail "a busy PU is not marked"
    grep -q 'the machine was busy' "$folder/err" || fail "a busy PU is not told: $(cat "$folder/err")"
fi

# stopped again and again: what was measured then is measured again, and that is said; between two measurements a stop
# harms nothing
"$probe" -q --cpuset "$allowed" --probes cache,memory -o "$folder/stopped.json" 2>"$folder/err" &
child=$!
stops=0
while [ $stops -lt 8 ] && sleep 0.3 && kill -STOP $child 2>/dev/null; do
    sleep 0.4
    kill -CONT $child
    stops=$((stops + 1))
done
wait $child || fail "stopped: $(cat "$folder/err")"
if [ $stops -ge 5 ]; then
    grep -q '"stood_still": "[0-9.]* s, stopped' "$folder/stopped.json" || fail "standing still is not marked"
else
    echo "note: done before it could be stopped often"
fi

# a limit of memory below the working sets: one line, no profile, or a smaller set that is marked; AddressSanitizer's own needs do
# not fit under it
if ! ldd "$probe" | grep -q asan; then
    (
        ulimit -v 262144
        "$probe" -q --cpuset "$allowed" --probes cache,memory -o "$folder/limited.json" 2>"$folder/err"
    )
    status=$?
    case $status in
    0) grep -q '"memory_limited"' "$folder/limited.json" || fail "a memory limit is not marked" ;;
    1) [ "$(wc -l <"$folder/err")" -eq 1 ] && grep -q memory "$folder/err" || fail "memory limit: $(cat "$folder/err")"
       [ -e "$folder/limited.json" ] && fail "memory limit: half a profile" ;;
    *) fail "memory limit: status $status: $(cat "$folder/err")" ;;
    esac
fi

# Ranks that this script's probes started and left behind: other tests have ranks of their own. They inherit the mark.
export SERVET_TEST_RUN=$$
ranks_left() {
    for process in $(pgrep -f '^[^ ]*servet-ranks-'); do
        { tr '\0' '\n' <"/proc/$process/environ"; } 2>/dev/null | grep -qx "SERVET_TEST_RUN=$$" && echo "$process"
    done
}

# interrupted in the middle of the messages (mpirun is running then) and of the caches
for what in message cache; do
    delay=1
    [ $what = message ] && delay=0.45
    echo '"servet_profile": the old one' >"$folder/kept.json"
    "$probe" -q --probes $what -o "$folder/kept.json" 2>"$folder/err" &
    child=$!
    sleep $delay
    kill -INT $child 2>/dev/null
    wait $child
    status=$?
    # a machine quick enough to be done before that has written its new profile, and that is right, too
    [ $status -eq 0 ] && echo "note: $what was done before it could be interrupted" && continue
    [ $status -eq 130 ] || fail "interrupted $what: status $status"
    [ "$(cat "$folder/kept.json")" = '"servet_profile": the old one' ] || fail "interrupted $what: the old profile is gone"
    [ "$(grep -c interrupted "$folder/err")" -eq 1 ] || fail "interrupted $what: $(cat "$folder/err")"
    # a quick one had all but the later looks
    grep -qs '"incomplete": "interrupted; not measured: later looks"' "$folder/kept.json.partial" && rm "$folder/kept.json.partial"
    [ "$(ls "$folder" | grep -c kept.json)" -eq 1 ] || fail "interrupted $what: left $(ls "$folder")"
    left=$(ranks_left)
    [ -z "$left" ] || fail "interrupted $what: ranks are left: $left"
done

# interrupted later, what was finished is a profile beside the old one
echo '"servet_profile": the old one' >"$folder/kept.json"
"$probe" --cpuset "$allowed" --probes cache,memory --largest 64K --progress=json:3 -o "$folder/kept.json" \
    3>"$folder/events" 2>"$folder/err" &
child=$!
until grep -q '"probe": "memory"' "$folder/events" || ! kill -0 $child 2>/dev/null; do sleep 0.02; done
kill -INT $child 2>/dev/null
wait $child
status=$?
if [ $status -eq 0 ]; then
    echo "note: memory was done before it could be interrupted"
else
    [ $status -eq 130 ] || fail "interrupted memory: status $status"
    [ "$(cat "$folder/kept.json")" = '"servet_profile": the old one' ] || fail "interrupted memory: the old profile is gone"
    grep -q '"incomplete": "interrupted; not measured: memory"' "$folder/kept.json.partial" ||
        fail "interrupted memory: no partial profile: $(cat "$folder/err")"
    grep -q '"cache_curve"' "$folder/kept.json.partial" || fail "interrupted memory: the caches are not in the partial profile"
fi

# A program of servet-probe's own, started by hand, says so before it asks MPI for anything.
for ranks in "$(dirname "$probe")"/servet-ranks-*; do
    [ -f "$ranks" ] && [ -x "$ranks" ] || continue
    env -u SERVET_PROBE_COMMAND "$ranks" --per-node >"$folder/out" 2>"$folder/err"
    [ $? -eq 2 ] || fail "$ranks by hand: expected status 2"
    [ "$(wc -l <"$folder/err")" -eq 1 ] && grep -q 'servet-probe --cluster' "$folder/err" ||
        fail "$ranks by hand: expected one line, got: $(cat "$folder/err")"
done

exit $failed
