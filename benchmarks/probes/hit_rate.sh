#!/bin/sh
# How often does servet-probe find the same cache sizes and ways on this machine, and how often the declared ones?
#   hit_rate.sh SERVET-PROBE [RUNS]          idle, then with a copy running on the last PU
probe=$1
runs=${2:-20}
folder=$(mktemp -d)
trap 'rm -rf "$folder"; [ -n "$hog" ] && kill $hog 2>/dev/null' EXIT
last=$(taskset -cp $$ | sed 's/.*[ ,-]//')
first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

measure() {
    echo "$1, $runs runs on PU $first, $(date -u +%Y-%m-%dT%H:%MZ), load $(cut -d' ' -f1 /proc/loadavg):"
    i=0
    : >"$folder/sizes"
    while [ $i -lt "$runs" ]; do
        "$probe" -q --probes cache --cpuset "$first" --seed $i -o "$folder/p.json" || exit 1
        python3 -c 'import json, sys
caches = json.load(open(sys.argv[1]))["node_classes"][0]["caches"]
for c in caches:
    if c["quality"]["origin"] == "measured":
        declared = c.get("declared_size_bytes", 0)
        print("L%d measured %d KiB, declared %d KiB" % (c["level"], c["size_bytes"] >> 10, declared >> 10))
        holds = c.get("size_low_bytes", 0) <= declared <= c.get("size_high_bytes", 0)
        print("L%d interval %s what is declared" % (c["level"], "holds" if holds else "does not hold"))
        if "ways as declared" in c["quality"].get("note", ""):
            print("L%d ways not told" % c["level"])
        else:
            print("L%d %d ways measured" % (c["level"], c.get("associativity", 0)))
' "$folder/p.json" >>"$folder/sizes"
        i=$((i + 1))
    done
    sort "$folder/sizes" | uniq -c | sed 's/^/  /'
}

measure idle
if [ "$first" != "$last" ]; then
    taskset -c "$last" sh -c 'while :; do dd if=/dev/zero of=/dev/null bs=64M count=64 2>/dev/null; done' &
    hog=$!
    measure "copy on PU $last"
fi
