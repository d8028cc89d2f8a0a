#!/usr/bin/env python3
"""Does hwloc itself read what servet-show --hwloc writes, with the profile's figures and nothing that was not measured?
hwloc_export.py SERVET-SHOW PROFILES LSTOPO"""
import json
import os
import re
import subprocess
import sys
import tempfile

show, profiles, lstopo = sys.argv[1:4]
folder = tempfile.mkdtemp()
profile = json.load(open(f"{profiles}/every-field.json"))
rows = profile["node_classes"][0]["numa_access"]
rows[0].update(bytes_per_s=7.25e9, seconds_per_access=80e-9)
rows[1].update(bytes_per_s=3.5e9)
del rows[1]["seconds_per_access"]
json.dump(profile, open(f"{folder}/profile.json", "w"))


def export(topology, name="profile.json"):
    environment = {**os.environ, "HWLOC_SYNTHETIC": topology}
    return subprocess.run(
        [show, "--hwloc", f"{folder}/out.xml", f"{folder}/{name}"], capture_output=True, text=True, env=environment
    )


done = export("package:3 [numa] core:2 pu:1")
assert done.returncode == 0 and done.stdout == "", done
read = subprocess.run([lstopo, "--memattrs", "--input", f"{folder}/out.xml"], capture_output=True, text=True, check=True)
values = {}
for line in read.stdout.splitlines():
    attribute = re.search(r"attribute #\d+ name `(\w+)'", line)
    value = re.search(r"NUMANode L#(\d+)(?: P#\d+)? = (\d+) from cpuset (\S+)", line)
    if attribute:
        kind = attribute.group(1)
    elif value:
        values[kind, int(value.group(1))] = (int(value.group(2)), int(value.group(3), 16))
values = {k: v for k, v in values.items() if k[0] in ("Bandwidth", "Latency")}
assert values == {
    ("Bandwidth", 0): (round(7.25e9 / 2**20), 0xF),
    ("Latency", 0): (80, 0xF),
    ("Bandwidth", 2): (round(3.5e9 / 2**20), 0xF),
}, (values, read.stdout)

# Another machine's topology, and a profile without such figures.
for topology in ("package:1 [numa] core:4 pu:1", "package:3 [numa] core:1 pu:1"):
    done = export(topology)
    assert done.returncode == 2 and "another machine's" in done.stderr and done.stderr.count("\n") == 1, done
del profile["node_classes"][0]["numa_access"]
json.dump(profile, open(f"{folder}/bare.json", "w"))
done = export("package:3 [numa] core:2 pu:1", "bare.json")
assert done.returncode == 1 and "servet-probe --probes memory" in done.stderr, done
