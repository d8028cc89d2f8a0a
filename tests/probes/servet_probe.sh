#!/bin/sh
# Does the command keep what it promises: a valid profile, one line and the right status for bad input, the old profile
# and no child process after an interruption?
# usage: servet_probe.sh SERVET-PROBE MACHINES
probe=$1
machines=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CONFIG_HOME="$folder/config"
unset SERVET_PROFILE
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# refused STATUS TEXT ARGUMENTS…: exactly one line on stderr, with TEXT in it, nothing on stdout
refused() {
    status=$1
    text=$2
    shift 2
    "$probe" "$@" >"$folder/out" 2>"$folder/err"
    [ $? -eq "$status" ] || fail "$*: expected status $status"
    [ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$*: expected one line, got: $(cat "$folder/err")"
    grep -q -- "$text" "$folder/err" || fail "$*: '$text' is not in: $(cat "$folder/err")"
    [ -s "$folder/out" ] && fail "$*: wrote on standard output"
}

refused 2 "probes" --probes cache,disk
refused 2 "cpuset" --cpuset 3-1
refused 2 "--largest" --largest 4X
refused 2 "--largest" --largest 1K
refused 2 "machine" --machine remote
refused 2 "no-such.json" --machine "simulated:$folder/no-such.json"
refused 1 "PU 7000" --cpuset 7000
refused 1 "cannot write" -o /nonexistent/folder/profile.json
refused 2 "unexpected" extra
refused 2 "simulated" --cpuset 0-1 --machine "simulated:$machines/two-packages.json"
refused 2 "got 'a?b'" --method "a
b"
# a place that cannot be written is refused before anything is measured, not after
refused 2 "--output" --output=
mkdir "$folder/a-folder"
refused 2 "not a regular file" -o "$folder/a-folder"
refused 2 "not a regular file" -o /dev/full
mkfifo "$folder/a-pipe"
refused 2 "not a regular file" -o "$folder/a-pipe"
refused 1 "cannot write" -o "$folder/$(printf '%0250d' 0)" # its temporary file would have too long a name
refused 1 "name too long" -o "$(printf '%05000d' 0)"
echo '{"servet_machine": 1' >"$folder/torn.json"
refused 2 "torn.json:" --machine "simulated:$folder/torn.json"

# a simulated machine, end to end, through the default place
"$probe" --machine "simulated:$machines/two-packages.json" 2>"$folder/err" || fail "simulated run: $(cat "$folder/err")"
profile=$(find "$XDG_CONFIG_HOME" -name '*.json')
[ -n "$profile" ] || fail "no profile in the default place"
for expected in '"size_bytes": 32768' '"size_bytes": 262144' '"size_bytes": 8388608' '"groups": \["0-3", "4-7"\]' \
    '"numa_access":' '"method": "copies, pages of 4 KiB, arrays of 32 MiB"' '"measured": true' '"machine": "simulated"' '"cache_curve":' '"seconds_per_access":'; do
    grep -q "$expected" "$profile" || fail "$expected is not in the profile"
done

# a limit of the size of files is a failure like a full disk: the old profile stays, and nothing else is left
echo "the old profile" >"$folder/limit.json"
(
    ulimit -f 1
    "$probe" -q --machine "simulated:$machines/two-packages.json" --probes cache -o "$folder/limit.json" 2>"$folder/err"
    echo $? >"$folder/status"
) || true
[ "$(cat "$folder/status")" = 1 ] || fail "ulimit -f: $(cat "$folder/status" "$folder/err")"
[ "$(cat "$folder/limit.json")" = "the old profile" ] || fail "ulimit -f: the old profile is gone"
[ "$(ls "$folder" | grep -c limit.json)" -eq 1 ] || fail "ulimit -f: left $(ls "$folder")"

# a closed stream's number goes to no file: what is said would be written into it
"$probe" --resume --machine "simulated:$machines/two-packages.json" --probes cache -o "$folder/closed.json" \
    <&- >&- 2>&- || fail "closed streams: status $?"
grep -q 'servet-probe:' "$folder/closed.json" && fail "closed streams: a message in the profile"
"$probe" --machine "simulated:$machines/two-packages.json" --probes cache -o - >&- 2>/dev/null &&
    fail "closed stdout: printed the profile nowhere and called it done"

# a terminal gets a bar, a file does not
grep -q '\[' "$folder/err" && fail "a progress bar in a file"

# events for scripts: one JSON object a line on the descriptor asked for, from the first probe to the end
refused 2 "progress" --progress=xml
refused 2 "descriptor" --progress=json:77
"$probe" -q --machine "simulated:$machines/two-packages.json" --progress=json:3 -o "$folder/events.json" \
    3>"$folder/events" 2>"$folder/err" || fail "events: $(cat "$folder/err")"
for name in cache sharing memory message; do
    grep -q "^{\"event\": \"probe\", \"probe\": \"$name\", " "$folder/events" || fail "no event of $name"
done
grep -q '"pair": \[[0-9]*, [0-9]*\], "pairs_done": [0-9]*, "pairs_total": [1-9]' "$folder/events" || fail "no event of a pair"
tail -n 1 "$folder/events" | grep -q '^{"event": "end", "outcome": "done", ' || fail "the last event is not the end"
grep -qv '^{.*}$' "$folder/events" && fail "an event that is no object on one line"
[ -s "$folder/err" ] && fail "events elsewhere, yet on stderr: $(cat "$folder/err")"

# a PU goes offline: early, and nothing is written; later, and what was measured is beside the profile, which stays
for probes in memory cache,memory; do
    sed "s/\"servet_machine\": 1,/&\"offline_after\": 2,/" "$machines/dempsey.json" >"$folder/offline-machine.json"
    echo "the old profile" >"$folder/offline.json"
    refused 1 "a PU went offline" -q --machine "simulated:$folder/offline-machine.json" --probes $probes \
        -o "$folder/offline.json"
    [ "$(cat "$folder/offline.json")" = "the old profile" ] || fail "offline: the old profile is gone"
    [ $probes = memory ] && [ -e "$folder/offline.json.partial" ] && fail "offline: a profile of nothing"
done
grep -q '"incomplete": "a PU went offline while it was measured; not measured: memory"' "$folder/offline.json.partial" ||
    fail "offline: the partial profile is not marked"
grep -q '"size_bytes": 16384' "$folder/offline.json.partial" || fail "offline: the caches are not in the partial profile"

# a budget that the first probe uses up: the others are left as declared, and that is said
"$probe" -q --machine "simulated:$machines/two-packages.json" --budget 0.001 -o "$folder/brief.json" ||
    fail "--budget failed"
grep -q '"budget": "0.001 s used up; not measured: sharing memory message"' "$folder/brief.json" ||
    fail "the budget is not marked: $(grep budget "$folder/brief.json")"
grep -q '"reference_bytes_per_s": [1-9]' "$folder/brief.json" && fail "memory was measured beyond the budget"

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

# resumed: what an interrupted run had is not measured again
"$probe" -q --resume --cpuset "$allowed" --probes cache --no-mpi -o "$folder/resumed.json" 2>"$folder/err" &
child=$!
sleep 1
if [ -e "$folder/resumed.json.resume" ]; then
    refused 1 "another run" --resume --cpuset "$allowed" --probes cache --no-mpi -o "$folder/resumed.json"
fi
kill -INT $child 2>/dev/null
wait $child
if [ $? -eq 130 ]; then
    entries=$(wc -l <"$folder/resumed.json.resume")
    [ "$entries" -gt 3 ] || fail "resume: only $entries entries were kept"
    refused 2 "expected the state of a run with the same" --resume --seed 7 --cpuset "$allowed" --probes cache \
        --no-mpi -o "$folder/resumed.json"
    refused 2 "expected the state of a run with the same" --resume --largest 1M --cpuset "$allowed" --probes cache \
        --no-mpi -o "$folder/resumed.json"
    [ "$(wc -l <"$folder/resumed.json.resume")" -eq "$entries" ] || fail "resume: a refused run changed the state"
    printf '123 1 0x1.8p' >>"$folder/resumed.json.resume" # torn by a crash
    "$probe" -q --resume --cpuset "$allowed" --probes cache --no-mpi -o "$folder/resumed.json" 2>"$folder/err" ||
        fail "resume: $(cat "$folder/err")"
    grep -q "\"resumed\": \"$((entries - 1)) measurements" "$folder/resumed.json" ||
        fail "resume: not $((entries - 1)) but $(grep resumed "$folder/resumed.json")"
    [ -e "$folder/resumed.json.resume" ] && fail "resume: the state is left after success"
fi

# another task on the measured PU is noticed and marked
if [ -r /proc/self/schedstat ]; then
    taskset -c "$allowed" sh -c 'while :; do :; done' &
    hog=$!
    "$probe" --cpuset "$allowed" --probes memory -o "$folder/busy.json" 2>"$folder/err" || fail "beside a busy task"
    # ranks of an MPI program are watched as our own threads are
    "$probe" -q --probes message -o "$folder/ranks.json" 2>"$folder/ranks.err"
    kill $hog
    wait $hog 2>/dev/null
    if grep -q '"note": "between threads' "$folder/ranks.json"; then
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
if ! ldd "$probe" | grep -q libasan; then
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

# interrupted in the middle of the messages (mpirun is running then) and of the caches
for what in message cache; do
    delay=1
    [ $what = message ] && delay=0.45
    echo "the old profile" >"$folder/kept.json"
    "$probe" -q --probes $what -o "$folder/kept.json" 2>"$folder/err" &
    child=$!
    sleep $delay
    kill -INT $child 2>/dev/null
    wait $child
    status=$?
    # a machine quick enough to be done before that has written its new profile, and that is right, too
    [ $status -eq 0 ] && echo "note: $what was done before it could be interrupted" && continue
    [ $status -eq 130 ] || fail "interrupted $what: status $status"
    [ "$(cat "$folder/kept.json")" = "the old profile" ] || fail "interrupted $what: the old profile is gone"
    [ "$(grep -c interrupted "$folder/err")" -eq 1 ] || fail "interrupted $what: $(cat "$folder/err")"
    [ "$(ls "$folder" | grep -c kept.json)" -eq 1 ] || fail "interrupted $what: left $(ls "$folder")"
    left=$(ps -eo args | grep -c "^[^ ]*servet-probe-mpi ")
    [ "$left" -eq 0 ] || fail "interrupted $what: $left ranks are left"
done

exit $failed
