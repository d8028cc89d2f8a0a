#!/bin/sh
# Does the command keep to a budget, on machines that are descriptions?
# usage: servet_probe_time.sh SERVET-PROBE-SIMULATED MACHINES
# shellcheck source=probe_command.sh
. "$(dirname "$0")/probe_command.sh"

# a budget: the run takes about that long on the machine's clock, whatever it is; what was left out or cut short is said
for budget in 1 5; do
    for machine in dempsey two-packages; do
        "$probe" "$machines/$machine.json" -q --budget $budget --force -o "$folder/brief.json" ||
            fail "--budget $budget failed on $machine"
        grep -A 5 '"measurement"' "$folder/brief.json" >"$folder/measurement"
        awk -F '[:,]' -v most=$budget '/"seconds"/ { took = $2 } END { exit !(took > 0 && took <= 1.2 * most + 1) }' \
            "$folder/measurement" || fail "--budget $budget on $machine: $(cat "$folder/measurement")"
    done
    grep -q "\"budget\": \"$budget s granted; cut short: cache" "$folder/brief.json" ||
        fail "the budget is not marked: $(grep budget "$folder/brief.json")"
done

# one that is large enough cuts nothing short, also where some of the probes take longer than was expected
"$probe" "$machines/epyc-2-sockets.json" -q --budget 60 -o "$folder/brief.json" || fail "--budget 60 failed"
grep '"budget": ' "$folder/brief.json" && fail "a budget of 60 s was not used"

# and so where every PU is shared with eight other tasks: what does not fit is left out before it starts, the rest is measured
for case in "5 memory" "20 cache" "60 message"; do
    budget=${case% *}
    for machine in two-packages nehalem; do
        sed 's/"noise": {/&"others": 8, /' "$machines/$machine.json" >"$folder/busy-machine.json"
        "$probe" "$folder/busy-machine.json" -q --budget "$budget" --force -o "$folder/brief.json" 2>/dev/null ||
            fail "--budget $budget failed on a busy $machine"
        grep -A 5 '"measurement"' "$folder/brief.json" >"$folder/measurement"
        awk -F '[:,]' -v most="$budget" '/"seconds"/ { took = $2 } END { exit !(took > 0 && took <= 1.5 * most) }' \
            "$folder/measurement" || fail "--budget $budget on a busy $machine: $(cat "$folder/measurement")"
        grep -q "not measured:[^;]* ${case#* }" "$folder/brief.json" && fail "--budget $budget on a busy $machine leaves out ${case#* }"
    done
done

# one that the first probe uses up: it takes its least, the others are left as declared, and that is said
"$probe" "$machines/two-packages.json" -q --budget 0.001 --force -o "$folder/brief.json" ||
    fail "--budget failed"
grep -q '"budget": "0.001 s granted; cut short: cache; not measured: sharing memory message; cache sizes from 0 sweeps' \
    "$folder/brief.json" || fail "the budget is not marked: $(grep budget "$folder/brief.json")"
grep -q '"reference_bytes_per_s": [1-9]' "$folder/brief.json" && fail "memory was measured beyond the budget"

exit $failed
