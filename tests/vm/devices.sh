#!/bin/sh
# On a machine of four NUMA nodes, of which 2 and 3 are memory only beside 0 and 1, does servet-probe copy between a GPU and
# memory of each of them, by a PU near it, and of none whose PUs are outside of --cpuset? The GPU is in the topology only, and
# its library stands for its maker's. Runs inside the guest (see `guest`).
# usage: devices.sh SERVET-PROBE FOLDER-OF-LIBRARIES
probe=$1
folder=$(mktemp -d)
failed=0
export LD_LIBRARY_PATH="$2" HWLOC_XMLFILE="$folder/topology.xml" HWLOC_THISSYSTEM=1 FAKE_GPU_SEEN="$folder/seen"

fail() {
    echo "FAIL: $*"
    failed=1
}

gpu='<object type="Bridge" gp_index="9001" bridge_type="0-1" depth="0" bridge_pci="0000:[00-ff]"><object type="PCIDev" \
gp_index="9002" pci_busid="0000:c1:00.0" pci_type="0302 [10de:2330] [0000:0000] a1" pci_link_speed="0"><object type="OSDev" \
gp_index="9003" name="cuda0" subtype="CUDA" osdev_type="5"/></object></object>'
env -u HWLOC_XMLFILE lstopo --no-io --of xml - | sed "/^  <\/object>/i $gpu" >"$HWLOC_XMLFILE"

# finds NODES SEEN [OPTION...]
finds() {
    nodes=$1 seen=$2
    shift 2
    rm -f "$FAKE_GPU_SEEN"
    "$probe" -q --probes device "$@" -o "$folder/profile.json" || fail "servet-probe $*: status $?"
    found=$(sed -n '/"transfers"/,/]/s/.*"node": \([0-9]*\).*/\1/p' "$folder/profile.json" | tr '\n' ' ')
    [ "$found" = "$nodes" ] || fail "servet-probe $*: expected nodes $nodes, got $found: $(grep '"devices"' "$folder/profile.json")"
    found=$(tr '\n' ',' <"$FAKE_GPU_SEEN")
    [ "$found" = "$seen" ] || fail "servet-probe $*: expected memory on $seen, got $found"
}

finds "0 1 2 3 " "0 0 by 0,1 1 by 1,2 2 by 0,3 3 by 1,"
finds "1 3 " "1 1 by 1,3 3 by 1," --cpuset "$(cat /sys/devices/system/node/node1/cpulist)"
exit $failed
