#!/bin/sh
# Does the command keep what it promises, on machines that are descriptions: one line and the right status for bad input,
# a valid profile, events, marked partial profiles?
# usage: servet_probe_simulated.sh SERVET-PROBE-SIMULATED MACHINES
# shellcheck source=probe_command.sh
. "$(dirname "$0")/probe_command.sh"

# the folder of the profile is made
"$probe" "$machines/athlon-3200.json" -q --probes all --budget 1m -o "$folder/all.json" ||
    fail "--probes all --budget 1m"
"$probe" "$machines/two-packages.json" -q --probes memory -o "$folder/etc/profile.json" ||
    fail "a folder that is missing is not made"
[ -s "$folder/etc/profile.json" ] || fail "no profile in the folder that was made"

# a simulated machine, end to end, through the default place
"$probe" "$machines/two-packages.json" -q --progress=json:3 3>"$folder/events" 2>"$folder/err" ||
    fail "simulated run: $(cat "$folder/err")"
profile=$(find "$XDG_CONFIG_HOME" -name '*.json')
[ -n "$profile" ] || fail "no profile in the default place"
for expected in '"size_bytes": 32768' '"size_bytes": 262144' '"size_bytes": 8388608' '"groups": \["0-3", "4-7"\]' \
    '"numa_access":' '"method": "copies, pages of 4 KiB, arrays of 32 MiB"' '"measured": true' '"machine": "simulated"' '"cache_curve":' '"seconds_per_access":'; do
    grep -q "$expected" "$profile" || fail "$expected is not in the profile"
done

# events for scripts: one JSON object a line on the descriptor asked for, from the first probe to the end
for name in cache sharing memory message; do
    grep -q "^{\"event\": \"probe\", \"probe\": \"$name\", " "$folder/events" || fail "no event of $name"
done
grep -q '"pair": \[[0-9]*, [0-9]*\], "pairs_done": [0-9]*, "pairs_total": [1-9]' "$folder/events" || fail "no event of a pair"
tail -n 1 "$folder/events" | grep -q '^{"event": "end", "outcome": "done", ' || fail "the last event is not the end"
grep -qv '^{.*}$' "$folder/events" && fail "an event that is no object on one line"
[ -s "$folder/err" ] && fail "events elsewhere, yet on stderr: $(cat "$folder/err")"

# a part of a profile replaces no whole one, unless it is forced to
part() { "$probe" "$machines/two-packages.json" -q --budget 0.001 -o "$folder/whole.json" "$@" 2>"$folder/err"; }
cp "$profile" "$folder/whole.json"
part && fail "a part of a profile: status 0"
grep -q -- '--budget: no time was left' "$folder/err" || fail "a part of a profile: $(cat "$folder/err")"
cmp -s "$profile" "$folder/whole.json" && [ -s "$folder/whole.json.partial" ] || fail "a part of a profile replaced a whole one"
part --force || fail "a part of a profile, --force: $(cat "$folder/err")"
cmp -s "$profile" "$folder/whole.json" && fail "--force: the whole profile is still there"

# a declared size that was not measured is kept and named: sizes of the paper's method double up to 2 MiB
sed 's/"size_bytes": 262144/"size_bytes": 262144, "declared_size_bytes": 393216/' "$machines/two-packages.json" >"$folder/odd.json"
"$probe" "$folder/odd.json" --method paper --probes cache -o "$folder/odd-profile.json" 2>"$folder/err" ||
    fail "a machine that declares another size: $(cat "$folder/err")"
for expected in '"size_bytes": 262144' '"declared_size_bytes": 393216' \
    'measured 256 KiB, declared 384 KiB'; do
    grep -q "$expected" "$folder/odd-profile.json" || fail "$expected is not in the profile"
done
grep -q '\[' "$folder/err" && fail "a progress bar in a file"

# a limit of the size of files is a failure like a full disk: the old profile stays, and nothing else is left
echo '"servet_profile": the old one' >"$folder/limit.json"
(
    ulimit -f 1
    "$probe" "$machines/two-packages.json" -q --probes memory -o "$folder/limit.json" 2>"$folder/err"
    echo $? >"$folder/status"
) || true
[ "$(cat "$folder/status")" = 1 ] || fail "ulimit -f: $(cat "$folder/status" "$folder/err")"
[ "$(cat "$folder/limit.json")" = '"servet_profile": the old one' ] || fail "ulimit -f: the old profile is gone"
[ "$(ls "$folder" | grep -c limit.json)" -eq 1 ] || fail "ulimit -f: left $(ls "$folder")"

# a closed stream's number goes to no file: what is said would be written into it
"$probe" "$machines/two-packages.json" --probes memory -o "$folder/closed.json" \
    <&- >&- 2>&- || fail "closed streams: status $?"
grep -q 'servet-probe-simulated:' "$folder/closed.json" && fail "closed streams: a message in the profile"
"$probe" "$machines/two-packages.json" --probes memory -o - >&- 2>/dev/null &&
    fail "closed stdout: printed the profile nowhere and called it done"

# a terminal gets a bar, which fits it, whatever its width: what wraps is not overwritten but scrolled
if command -v script >/dev/null; then
    for columns in 100 30 4; do
        script -qec "stty cols $columns; $probe $machines/two-packages.json --probes memory,message -o $folder/bar.json" \
            /dev/null </dev/null >"$folder/bar"
        tr '\r' '\n' <"$folder/bar" | grep -av 'servet-probe-simulated:' | awk -v most="$columns" \
            'length >= most { wide = 1 } length { lines++ } END { exit wide || lines < 3 }' ||
            fail "a bar on $columns columns: $(tr '\r' '\n' <"$folder/bar" | sed -n 2,4p)"
    done
else
    echo "note: no script(1), the bar was not looked at"
fi

# a PU goes offline: early, and nothing is written; later, and what was measured is beside the profile, which stays
for probes in memory cache,memory; do
    sed "s/\"servet_machine\": 1,/&\"offline_after\": 2,/" "$machines/dempsey.json" >"$folder/offline-machine.json"
    echo '"servet_profile": the old one' >"$folder/offline.json"
    "$probe" "$folder/offline-machine.json" -q --probes $probes -o "$folder/offline.json" >"$folder/out" 2>"$folder/err"
    [ $? -eq 1 ] && [ "$(wc -l <"$folder/err")" -eq 1 ] && grep -q "a PU went offline" "$folder/err" && [ ! -s "$folder/out" ] ||
        fail "offline: expected status 1 and one line, got: $(cat "$folder/out" "$folder/err")"
    [ "$(cat "$folder/offline.json")" = '"servet_profile": the old one' ] || fail "offline: the old profile is gone"
    [ $probes = memory ] && [ -e "$folder/offline.json.partial" ] && fail "offline: a profile of nothing"
done
grep -q '"incomplete": "a PU went offline while it was measured; not measured: memory"' "$folder/offline.json.partial" ||
    fail "offline: the partial profile is not marked"
grep -q '"size_bytes": 16384' "$folder/offline.json.partial" || fail "offline: the caches are not in the partial profile"

# the same seed gives the same profile, another seed other choices (the machine has noise); only the time of day differs
measure_with_seed() {
    "$probe" "$machines/nehalem.json" -q --seed "$1" --probes message -o "$folder/seed.json" ||
        fail "--seed $1"
    grep -v '"started"' "$folder/seed.json"
}
measure_with_seed 3 >"$folder/seed-3"
measure_with_seed 3 >"$folder/seed-3-again"
measure_with_seed 4 >"$folder/seed-4"
cmp "$folder/seed-3" "$folder/seed-3-again" || fail "--seed: two runs differ"
cmp -s "$folder/seed-3" "$folder/seed-4" && fail "--seed: another one gives the same"

exit $failed
