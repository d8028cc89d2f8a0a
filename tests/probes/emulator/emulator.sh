#!/bin/sh
# Does the native servet-probe, unmodified, find the caches that an emulator is configured with? Sizes and
# the line of the first level; time is virtual, so a busy machine changes nothing.
# usage: emulator.sh SERVET-PROBE PLUGIN SHIM SECONDS GEOMETRY…     GEOMETRY: L1:WAYS:NS,L2:WAYS:NS,LARGEST (sizes in K)
# Stops with what was checked when SECONDS are over.
probe=$1
plugin=$2
shim=$3
seconds=$4
shift 4
emulator=$(command -v "qemu-$(uname -m)") || {
    echo "skipped: no qemu-$(uname -m) (package qemu-user)"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
begun=$(date +%s)
failed=0
checked=0
for geometry in "$@"; do
    [ $(($(date +%s) - begun)) -lt "$seconds" ] || break
    first=${geometry%%,*}
    rest=${geometry#*,}
    second=${rest%%,*}
    if ! timeout 120 "$emulator" -plugin "$plugin,clock=$folder/clock,level=$first,level=$second,memory=90,line=64" \
        -E LD_PRELOAD="$shim" -E VIRTUAL_CLOCK="$folder/clock" "$probe" -q --probes cache --cpuset "$pu" \
        --largest "${rest##*,}" -o "$folder/p.json" >"$folder/out" 2>&1; then
        grep -qi 'plugin.*not\|unknown option\|invalid option' "$folder/out" && {
            echo "skipped: this qemu has no plugins: $(head -n 1 "$folder/out")"
            exit 77
        }
        echo "FAIL: $geometry: $(tail -n 2 "$folder/out")"
        failed=1
        continue
    fi
    checked=$((checked + 1))
    python3 - "$folder/p.json" "$first" "$second" <<'END' || failed=1
import json, sys
caches = {c["level"]: c for c in json.load(open(sys.argv[1]))["node_classes"][0]["caches"]
          if c["quality"]["origin"] == "measured"}
sizes = sorted(c["size_bytes"] >> 10 for c in caches.values())
first, second = (text.split(":") for text in sys.argv[2:])
wanted = [int(text[0].rstrip("K")) for text in (first, second)]
l1 = min(caches.values(), key=lambda c: c["size_bytes"], default={})
right = sizes == wanted and l1.get("line_bytes") == 64
print("%s %s,%s: found %s KiB, lines of %s" % ("right" if right else "FAIL:", *sys.argv[2:], sizes, l1.get("line_bytes")))
sys.exit(not right)
END
done
echo "$checked of $# geometries in $(($(date +%s) - begun)) s"
[ $checked -gt 0 ] || failed=1
exit $failed
