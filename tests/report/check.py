#!/usr/bin/env python3
"""Does servet-probe --check know the machine of its profile, notice one that changed, and write nothing?
check.py SERVET-PROBE SERVET-PROBE-SIMULATED MACHINES"""
import json
import os
import subprocess
import sys
import tempfile

probe, simulated, machines = sys.argv[1:4]
folder = tempfile.mkdtemp()
original = f"{machines}/two-packages.json"
profile = f"{folder}/profile.json"


def run(*command):
    environment = {k: v for k, v in os.environ.items() if k != "SERVET_PROFILE"}
    environment["XDG_CONFIG_HOME"] = folder + "/config"
    return subprocess.run(command, capture_output=True, text=True, env=environment)


assert run(simulated, original, "-q", "-o", profile).returncode == 0
stored = open(profile).read()


def check(change, seed):
    machine = json.load(open(original))
    change(machine)
    json.dump(machine, open(f"{folder}/machine.json", "w"))
    done = run(simulated, f"{folder}/machine.json", "--seed", str(seed), f"--check={profile}")
    assert done.stderr == "", done
    assert open(profile).read() == stored, "the stored profile was written to"
    return done


for seed in range(1, 6):  # other places in memory and other noise are no other machine
    done = check(lambda m: None, seed)
    assert done.returncode == 0 and "\nyes: " in done.stdout and "CHANGED" not in done.stdout, done

smaller = check(lambda m: m["caches"][2].update(size_bytes=2 << 20), 1)
assert smaller.returncode == 1 and "CHANGED   in half of L3" in smaller.stdout and "\nno: 1 of 6" in smaller.stdout, smaller

# Of a cache of which neighbours leave now this and now that, half of its likeliest size says nothing: what it holds in any case does.
open_size = json.loads(stored)
open_size["node_classes"][0]["caches"][2].update(size_low_bytes=3 << 19)
open_size["node_classes"][0]["caches"][2]["quality"]["spread"] = 0.5
json.dump(open_size, open(f"{folder}/open.json", "w"))
done = run(simulated, f"{folder}/machine.json", f"--check={folder}/open.json")
assert done.returncode == 0 and "same      inside L3 (768 KiB)" in done.stdout, done

slower = check(lambda m: m["caches"][1].update(seconds=2 * m["caches"][1]["seconds"]), 1)
assert slower.returncode == 1 and "CHANGED   in half of L2" in slower.stdout, slower

# Messages that take five times as long are another machine's, unless the profile has seen that its own do at times.
def apart(machine):
    for layer in machine["layers"]:
        layer.update(seconds=5 * layer["seconds"], bytes_per_s=layer["bytes_per_s"] / 5)


far = check(apart, 1)
assert far.returncode == 1 and "CHANGED   message" in far.stdout, far
wide = json.loads(stored)
wide["node_classes"][0]["communication"]["layers"][0]["quality"]["spread"] = 4.5
json.dump(wide, open(f"{folder}/wide.json", "w"))
done = run(simulated, f"{folder}/machine.json", f"--check={folder}/wide.json")
assert done.returncode == 0 and "same      message" in done.stdout, done

# This machine is not the simulated one.
native = run(probe, f"--check={profile}")
assert native.returncode == 1 and native.stdout.startswith("no: "), native

# Nothing measured: nothing to measure again. No profile: bad usage.
unmeasured = json.loads(stored)
unmeasured["measurement"]["measured"] = False
json.dump(unmeasured, open(f"{folder}/unmeasured.json", "w"))
done = run(simulated, original, f"--check={folder}/unmeasured.json")
assert done.returncode == 1 and "nothing in the profile" in done.stdout, done
for arguments, says in ((["--check=/nonexistent.json"], "/nonexistent.json: No such file"), (["--check"], "found none")):
    if says == "found none" and os.path.exists("/etc/servet"):
        continue
    done = run(probe, *arguments)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and says in done.stderr, done
