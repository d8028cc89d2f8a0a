#!/bin/sh
# Does the command say in time how long it will take, and keep to a budget, on machines that are descriptions?
# usage: servet_probe_time.sh SERVET-PROBE MACHINES
# shellcheck source=probe_command.sh
. "$(dirname "$0")/probe_command.sh"

# the time left: what is said first, before anything is known but the topology, is within a factor of two of what it took
for machine in dempsey two-packages arm-rk3588; do
    "$probe" -q --machine "simulated:$machines/$machine.json" --progress=json:3 -o "$folder/events.json" 3>"$folder/events" ||
        fail "the time left: $machine"
    sed -n 's/.*"elapsed_s": \([0-9.]*\).*"seconds_left": \([0-9.]*\).*/\1 \2/p' "$folder/events" | head -n 1 >"$folder/first"
    tail -n 1 "$folder/events" | sed 's/.*"elapsed_s": \([0-9.]*\).*/\1/' >>"$folder/first"
    awk 'NR == 1 { guess = $1 + $2 } NR == 2 { took = $1 } END { exit !(guess > took / 2 && guess < 2 * took) }' \
        "$folder/first" || fail "the time left on $machine, and what it took: $(cat "$folder/first")"
done

# a budget: the run takes about that long on the machine's clock, whatever it is; what was left out or cut short is said
for budget in 1 5; do
    for machine in dempsey two-packages; do
        "$probe" -q --machine "simulated:$machines/$machine.json" --budget $budget -o "$folder/brief.json" ||
            fail "--budget $budget failed on $machine"
        grep -A 5 '"measurement"' "$folder/brief.json" >"$folder/measurement"
        awk -F '[:,]' -v most=$budget '/"seconds"/ { took = $2 } END { exit !(took > 0 && took <= 1.2 * most + 1) }' \
            "$folder/measurement" || fail "--budget $budget on $machine: $(cat "$folder/measurement")"
    done
    grep -q "\"budget\": \"$budget s granted; cut short: cache" "$folder/brief.json" ||
        fail "the budget is not marked: $(grep budget "$folder/brief.json")"
done

# one that the first probe uses up: it takes its least, the others are left as declared, and that is said
"$probe" -q --machine "simulated:$machines/two-packages.json" --budget 0.001 -o "$folder/brief.json" ||
    fail "--budget failed"
grep -q '"budget": "0.001 s granted; cut short: cache; not measured: sharing memory message; cache sizes from 0 sweeps' \
    "$folder/brief.json" || fail "the budget is not marked: $(grep budget "$folder/brief.json")"
grep -q '"reference_bytes_per_s": [1-9]' "$folder/brief.json" && fail "memory was measured beyond the budget"

exit $failed
