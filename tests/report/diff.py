#!/usr/bin/env python3
"""Does --diff name what changed, leave noise alone, and say whether the mapping would change? diff.py SERVET-SHOW FIXTURES"""
import json
import os
import subprocess
import sys
import tempfile

show, fixtures = map(os.path.abspath, sys.argv[1:3])
folder = tempfile.mkdtemp()
old = f"{fixtures}/nehalem-2-nodes.json"


def changed(change):
    profile = json.load(open(old))
    change(profile)
    json.dump(profile, open(f"{folder}/new.json", "w"))
    done = subprocess.run([show, "--diff", old, f"{folder}/new.json"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def as_json():
    done = subprocess.run([show, "--diff", "--json", old, f"{folder}/new.json"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)


node = lambda profile: profile["node_classes"][0]
same = changed(lambda p: None)
assert "0 changed, 0 gone, 0 new" in same and "mapping  the same for 1 to 16 workers, both priorities" in same, same

noise = changed(lambda p: node(p)["memory"].update(reference_bytes_per_s=node(p)["memory"].get("reference_bytes_per_s", 0) * 1.05))
assert "0 changed, 0 gone, 0 new" in noise, noise

# On another card, or behind another switch.
row = {"node": 0, "to_device_bytes_per_s": 26e9, "from_device_bytes_per_s": 13e9, "seconds": 7e-6, "quality": {"origin": "measured"}}
gpu = {"kind": "gpu", "name": "cuda0", "card": 0, "pus": "0-7", "transfers": [row]}
copies = changed(lambda p: node(p).update(numa=[{"os_index": 0, "pus": "0-7"}], devices=[gpu]))
assert "new      node class 0: copies of NUMA node 0 from cuda0: 13 GB/s\n" in copies, copies

half = changed(lambda p: node(p)["caches"][2].update(size_bytes=4 << 20))
assert "changed  node class 0: L3 effective size: 8 MiB -> 4 MiB (-50 %)\n" in half and "mapping  the same" in half, half
found = as_json()
assert [(c["figure"], c["old"], c["new"], c["ratio"]) for c in found["changed"]] == [("L3 effective size", "8 MiB", "4 MiB", 0.5)], found
assert found["gone"] == found["new"] == found["mappings"] == [] and found["same"] > 10 and found["most_workers"] == 16, found

# The L3 groups of the papers' machine the other way round: neighbours in number share instead of every second one.
other = changed(lambda p: node(p)["caches"][2]["sharing"].update(groups=["0,4", "1,5", "2,6", "3,7"]))
assert "changed  node class 0: L3 shared by: 0,2 1,3 4,6 5,7 -> 0,4 1,5 2,6 3,7\n" in other, other
assert "mapping  " in other and "mapping  the same" not in other, other
found = as_json()
for mapping in found["mappings"]:
    assert len(mapping["old"]) == len(mapping["new"]) == mapping["workers"] and mapping["old"] != mapping["new"], mapping
assert len(found["mappings"]) == other.count("mapping  "), found

gone = changed(lambda p: node(p)["caches"].pop())
assert {"where": "node class 0", "figure": "L3 effective size", "value": "8 MiB"} in as_json()["gone"]
assert "gone     node class 0: L3 effective size: 8 MiB\n" in gone, gone
