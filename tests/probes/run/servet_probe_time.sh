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

# and from then on it is right to a factor of two and two seconds, at a quarter, a half and three quarters of the run
for machine in dempsey two-packages nehalem numa-nodes; do
    "$probe" -q --machine "simulated:$machines/$machine.json" --progress=json:3 -o "$folder/events.json" 3>"$folder/events" ||
        fail "the time left: $machine"
    sed -n 's/.*"elapsed_s": \([0-9.]*\).*"seconds_left": \([0-9.]*\).*/\1 \2/p; s/.*"end".*"elapsed_s": \([0-9.]*\).*/\1 end/p' \
        "$folder/events" | awk '
        { at[NR] = $1; said[NR] = $2 }
        END {
            for (part = 1; part < 4; part++) {
                for (i = 1; at[i] < part / 4 * at[NR]; i++) {}
                left = at[NR] - at[i]
                if (said[i] != "end" && (said[i] > 2 * left + 2 || said[i] < left / 2 - 2)) {
                    print "at " at[i] " s " said[i] " were left, in truth " left
                    wrong = 1
                }
            }
            exit wrong
        }' >"$folder/wrong" || fail "the time left on $machine: $(cat "$folder/wrong")"
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

# one that is large enough cuts nothing short, also where some of the probes take longer than was expected
"$probe" -q --machine "simulated:$machines/epyc-2-sockets.json" --budget 60 -o "$folder/brief.json" || fail "--budget 60 failed"
grep '"budget": ' "$folder/brief.json" && fail "a budget of 60 s was not used"

# and so where every PU is shared with eight other tasks: what does not fit is left out before it starts, the rest is measured
for case in "5 memory" "20 cache" "60 message"; do
    budget=${case% *}
    for machine in two-packages nehalem; do
        sed 's/"noise": {/&"others": 8, /' "$machines/$machine.json" >"$folder/busy-machine.json"
        "$probe" -q --machine "simulated:$folder/busy-machine.json" --budget "$budget" -o "$folder/brief.json" 2>/dev/null ||
            fail "--budget $budget failed on a busy $machine"
        grep -A 5 '"measurement"' "$folder/brief.json" >"$folder/measurement"
        awk -F '[:,]' -v most="$budget" '/"seconds"/ { took = $2 } END { exit !(took > 0 && took <= 1.5 * most) }' \
            "$folder/measurement" || fail "--budget $budget on a busy $machine: $(cat "$folder/measurement")"
        grep -q "not measured:[^;]* ${case#* }" "$folder/brief.json" && fail "--budget $budget on a busy $machine leaves out ${case#* }"
    done
done

# one that the first probe uses up: it takes its least, the others are left as declared, and that is said
"$probe" -q --machine "simulated:$machines/two-packages.json" --budget 0.001 -o "$folder/brief.json" ||
    fail "--budget failed"
grep -q '"budget": "0.001 s granted; cut short: cache; not measured: sharing memory message; cache sizes from 0 sweeps' \
    "$folder/brief.json" || fail "the budget is not marked: $(grep budget "$folder/brief.json")"
grep -q '"reference_bytes_per_s": [1-9]' "$folder/brief.json" && fail "memory was measured beyond the budget"

exit $failed
