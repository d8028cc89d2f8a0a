#!/bin/sh
# Does the command keep to a budget, on machines that are descriptions?
# usage: servet_probe_time.sh SERVET-PROBE-SIMULATED MACHINES
# shellcheck source=probe_command.sh
. "$(dirname "$0")/probe_command.sh"

# within MACHINE BUDGET FACTOR MORE: the run takes about that long on the machine's clock
within() {
    "$probe" "$1" -q --budget "$2" --force -o "$folder/brief.json" 2>"$folder/err" ||
        fail "--budget $2 failed on $1: $(cat "$folder/err")"
    grep -A 5 '"measurement"' "$folder/brief.json" >"$folder/measurement"
    awk -F '[:,]' -v most="$2" -v factor="$3" -v more="$4" \
        '/"seconds"/ { took = $2 } END { exit !(took > 0 && took <= factor * most + more) }' "$folder/measurement" ||
        fail "--budget $2 on $1: $(cat "$folder/measurement")"
}

# a budget, whatever it is; what was left out or cut short is said
for budget in 1 5; do
    for machine in dempsey two-packages; do
        within "$machines/$machine.json" $budget 1.2 1
    done
    grep -q "\"budget\": \"$budget s granted; cut short: cache" "$folder/brief.json" ||
        fail "the budget is not marked: $(grep budget "$folder/brief.json")"
done

# one that is large enough cuts nothing short, also where some of the probes take longer than was expected
"$probe" "$machines/epyc-2-sockets.json" -q --budget 60 -o "$folder/brief.json" || fail "--budget 60 failed"
grep '"budget": ' "$folder/brief.json" && fail "a budget of 60 s was not used"

# and so where every PU is shared with eight other tasks: what does not fit is left out before it starts, the rest is measured
for case in "5 memory" "20 cache" "60 message"; do
    for machine in two-packages nehalem; do
        sed 's/"noise": {/&"others": 8, /' "$machines/$machine.json" >"$folder/busy-$machine.json"
        within "$folder/busy-$machine.json" "${case% *}" 1.5 0
        grep -q "not measured:[^;]* ${case#* }" "$folder/brief.json" && fail "a budget of ${case% *} s on a busy $machine leaves out ${case#* }"
    done
done

# one that the first probe uses up: it takes its least, the others are left as declared, and that is said
"$probe" "$machines/two-packages.json" -q --budget 0.001 --force -o "$folder/brief.json" ||
    fail "--budget failed"
grep -q '"budget": "0.001 s granted; cut short: cache; not measured: sharing memory message; cache sizes from 0 sweeps' \
    "$folder/brief.json" || fail "the budget is not marked: $(grep budget "$folder/brief.json")"
grep -q '"reference_bytes_per_s": [1-9]' "$folder/brief.json" && fail "memory was measured beyond the budget"

exit $failed
