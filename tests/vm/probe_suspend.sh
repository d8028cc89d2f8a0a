#!/bin/sh
# On a machine that is suspended to RAM in the middle of the measuring, and woken by its clock: does servet-probe go on
# where it was, say in the profile that the machine slept, and give figures that are not touched by it?
# Runs inside the guest that can sleep (see `guest`), as root, with busybox alone.
# usage: probe_suspend.sh SERVET-PROBE PROBING.SH
probe=$1
asleep=5 # seconds; getting there takes two of them under emulation, and on a busy host all of them: then twice as many
clock=/sys/class/rtc/rtc0
. "$2"

suspend() {
    kill -0 $child 2>/dev/null || return
    echo 0 >$clock/wakealarm
    echo "+$asleep" >$clock/wakealarm
    echo mem >/sys/power/state || fail "the kernel does not suspend: $(dmesg | tail -n 5)"
    sleeps=$(cat /sys/power/suspend_stats/success)
}

grep -q deep /sys/power/mem_sleep || {
    echo "skipped: this kernel has no suspend to RAM"
    exit 77
}
"$probe" -q --no-mpi --cpuset 0,1 --budget 0.5 --probes memory -o "$folder/awake.json" || fail "awake: status $?"
grep -q '"suspended"' "$folder/awake.json" && fail "awake: it says that the machine slept"

# probe_asleep: measures, and suspends the machine meanwhile; is it noticed that a measurement stood still?
# The probe works on its results as well, so the suspension can fall beside its measurements.
probe_asleep() {
    sleeps=0
    begin --no-mpi --cpuset 0,1 --probes memory
    await 'memory of PUs'
    suspend
    finish suspended
    [ $status -eq 0 ] || fail "status $status: $(cat "$folder/err")"
    [ $sleeps -ge 1 ] || fail "the probe was done before the machine could be suspended"
    asleep=$((2 * asleep))
    grep -q '"suspended": "[0-9.]* s' "$folder/profile.json" && grep -q '"stood_still": "[0-9.]* s' "$folder/profile.json"
}

probe_asleep || probe_asleep || probe_asleep || fail "no suspension, or no measurement that it fell into, was noticed"
before=$(rate "$folder/awake.json")
after=$(rate "$folder/profile.json")
echo "one worker copies $before MB/s, and $after MB/s when the machine was suspended $sleeps times: $(grep suspended "$folder/profile.json")"
similar suspended "$before" "$after"
done_probing
