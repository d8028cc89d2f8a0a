#!/usr/bin/env python3
"""Does servet-probe measure copies to the GPUs that their makers' libraries show, and end well with no figure where there is
none: no library, one that refuses, crashes or hangs, a hidden GPU? devices.py SERVET-PROBE FOLDER-OF-LIBRARIES"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

probe, libraries = map(os.path.abspath, sys.argv[1:3])
folder = tempfile.mkdtemp()
pus = sorted(os.sched_getaffinity(0))
failed = []

DEVICE = """<object type="PCIDev" gp_index="{index}" pci_busid="0000:{bus}:00.0" pci_type="0302 [{vendor}:2330] [0000:0000] a1"
    pci_link_speed="0"><object type="OSDev" gp_index="{next}" name="{name}" subtype="{kind}" osdev_type="5"/></object>"""


def check(good, what):
    if not good:
        failed.append(what)
        print("FAIL:", what)


def mask(members):
    text = f"{sum(1 << pu for pu in members):x}"
    text = text.zfill(-(-len(text) // 8) * 8)
    return ",".join("0x" + text[i:i + 8] for i in range(0, len(text), 8))


def sets(members):
    return (f'cpuset="{mask(members)}" complete_cpuset="{mask(members)}" nodeset="0x00000001" complete_nodeset="0x00000001"')


def topology(*gpus):
    """This machine, of one NUMA node, with such GPUs: (name, kind, vendor, bus)."""
    cores = "".join(f'<object type="Core" os_index="{pu}" gp_index="{100 + pu}" {sets([pu])}><object type="PU" os_index="{pu}" '
                    f'gp_index="{10000 + pu}" {sets([pu])}/></object>' for pu in pus)
    devices = "".join(DEVICE.format(index=20000 + 2 * i, next=20001 + 2 * i, name=name, kind=kind, vendor=vendor, bus=bus)
                      for i, (name, kind, vendor, bus) in enumerate(gpus))
    path = os.path.join(folder, "topology.xml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
<object type="Machine" os_index="0" gp_index="1" {sets(pus)} allowed_cpuset="{mask(pus)}" allowed_nodeset="0x00000001">
<object type="NUMANode" os_index="0" gp_index="2" {sets(pus)} local_memory="8589934592"/>{cores}
<object type="Bridge" gp_index="3" bridge_type="0-1" depth="0" bridge_pci="0000:[00-ff]">{devices}</object></object></topology>""")
    return path


CUDA, HIP, INTEL = ("cuda0", "CUDA", "10de", "c1"), ("rsmi0", "RSMI", "1002", "c1"), ("ze0", "LevelZero", "8086", "c1")


def start(gpus, words, variables):
    environment = {**os.environ, "XDG_CONFIG_HOME": folder, "HWLOC_XMLFILE": topology(*gpus), "HWLOC_THISSYSTEM": "1",
                   "LD_LIBRARY_PATH": libraries, **variables}
    return subprocess.Popen([probe, "-q", "--probes", "device", "-o", "-", *words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def measure(*gpus, words=(), **variables):
    """The rows of the devices, and the reason why there are none."""
    child = start(gpus, words, variables)
    out, errors = child.communicate()
    check(child.returncode == 0, f"{gpus} {variables}: status {child.returncode}: {errors}")
    profile = json.loads(out) if child.returncode == 0 else {"node_classes": [{}], "measurement": {"conditions": {}}}
    rows = {device["name"]: device.get("transfers", []) for device in profile["node_classes"][0].get("devices", [])}
    return rows, profile["measurement"].get("conditions", {})


for gpu in (CUDA, HIP):
    rows, conditions = measure(gpu)
    check(len(rows[gpu[0]]) == 1 and "devices" not in conditions, f"{gpu}: {rows}, {conditions.get('devices')}")
    for row in rows[gpu[0]]:
        # As fast as the fake lets it be, at most, whatever else runs here; the fake sleeps a quarter of a second the one way.
        check(row["node"] == 0 and 0 < row["from_device_bytes_per_s"] <= 3e8
              and row["from_device_bytes_per_s"] < row["to_device_bytes_per_s"] <= 5e9
              and 20e-6 <= row["seconds"] < 1 and row["quality"]["repetitions"] == 5
              and row["quality"]["origin"] == "measured", f"{gpu}: {row}")

# Both at once, and one that no library shows.
rows, conditions = measure(CUDA, ("cuda1", "CUDA", "10de", "c2"), ("rsmi2", "RSMI", "1002", "c1"))
check([len(rows[name]) for name in ("cuda0", "cuda1", "rsmi2")] == [1, 0, 1], f"of several: {rows}")
check(conditions.get("devices") == "cuda1: libcuda.so.1: shows no device 0000:c2:00.0", f"of several: {conditions}")

NOTHING = (
    (CUDA, {"LD_LIBRARY_PATH": "/nonexistent"}, "cuda0: libcuda.so.1: no such library"),
    (HIP, {"LD_LIBRARY_PATH": "/nonexistent"}, "rsmi0: libamdhip64.so.7: no such library"),
    (CUDA, {"FAKE_GPU": "refuses"}, "cuda0: libcuda.so.1: starting: error 100"),
    (CUDA, {"FAKE_GPU": "crashes"}, "cuda0: its library crashed"),
    (CUDA, {"FAKE_GPU": "unpinned"}, "cuda0: libcuda.so.1: copying to the device: error 1"),
    (CUDA, {"CUDA_VISIBLE_DEVICES": ""}, "cuda0: libcuda.so.1: shows no device 0000:c1:00.0"),
    (INTEL, {}, "ze0: no library of its maker is known"),
)
for gpu, variables, reason in NOTHING:
    rows, conditions = measure(gpu, **variables)
    check(rows == {gpu[0]: []} and conditions.get("devices") == reason, f"{gpu} {variables}: {rows}, {conditions}")

# A library that hangs is ended by the budget, with its process.
child = start([CUDA], ["--budget", "3"], {"FAKE_GPU": "hangs"})
out, errors = child.communicate()
check(child.returncode == 1 and "nothing could be measured in 3 s" in errors, f"hangs: {child.returncode}: {errors}")

# Ctrl-C ends it as well.
child = start([CUDA], [], {"FAKE_GPU": "hangs"})


def helpers():
    """Processes of ours that copy."""
    done = subprocess.run(["pgrep", "-P", str(child.pid), "-f", "servet-devices"], capture_output=True, text=True)
    return done.stdout.split()


until = time.monotonic() + 60
while not helpers() and child.poll() is None and time.monotonic() < until:
    time.sleep(0.05)
pids = helpers()
child.send_signal(signal.SIGINT)
child.communicate()
check(pids and child.returncode == 130, f"interrupted: {pids}, status {child.returncode}")
check(not any(os.path.exists(f"/proc/{pid}") for pid in pids), "interrupted: servet-devices is left")

# No GPU, or none asked for.
child = start([], [], {})
out, errors = child.communicate()
check(child.returncode == 2 and errors == f"servet-probe: --probes: device: expected a GPU, found none\n", f"no GPU: {errors}")

sys.exit(bool(failed))
