#!/usr/bin/env python3
"""How long does servet-probe take on machines with more cores than this one?

    time_table.py path/to/servet-probe [--irregular | --structure | --whole] [CORES …]

Regular simulated machines (packages of cores with private L1 and L2 and one L3 each) are measured by the real probes;
their clock adds up what each measurement takes on the native backend. Prints one line per machine: how many of all
pairs were measured for messages, the seconds of the whole run, and those of all pairs for memory and messages
(--exhaustive --probes memory,message); each with disjoint pairs measured together where a check allows it, and one by
one (--one-by-one). With --irregular two more lines for each size: half of the PUs are of another kind of cores (kinds),
and every fourth PU sends over a slower link that the topology does not tell (links), so that samples do not agree and
all pairs of a class are measured. With --structure memory and messages of nodes as of today (cores of two threads, L3s of 8
cores behind 40 GB/s, two packages behind 200): declared as they are, hidden, and with packages of other PUs declared. With
--whole only the whole run, which is all that there is time for on the largest machines.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

K, M = 1024, 1 << 20


def machine(pus, per_package):
    packages = [f"{i}-{i + per_package - 1}" for i in range(0, pus, per_package)]
    domains = [dict(pus=p, bytes_per_s=1e10 * max(1.6, per_package / 4)) for p in packages]
    return dict(servet_machine=1, name=f"regular-{pus}", pus=f"0-{pus - 1}", packages=packages, page_bytes=4096,
                caches=[dict(level=1, size_bytes=32 * K, ways=8, seconds=1.2e-9, policy="plru", indexing="virtual"),
                        dict(level=2, size_bytes=1 * M, ways=16, seconds=4.5e-9, policy="plru"),
                        dict(level=3, size_bytes=16 * M, ways=16, slices=8, seconds=1.8e-8, policy="plru",
                             groups=packages)],
                memory=dict(seconds=1e-7, pu_bytes_per_s=1e10, domains=domains),
                layers=[dict(name="package", groups=packages, seconds=4e-7, bytes_per_s=9e9, parallel=per_package / 4),
                        dict(name="node", groups=[f"0-{pus - 1}"], seconds=9e-7, bytes_per_s=4e9, parallel=2)],
                noise=dict(relative=0.02, outlier_probability=0.02, outlier_factor=3))


def with_kinds(description):
    pus = int(description["pus"].split("-")[1]) + 1
    fast, slow = f"0-{pus // 2 - 1}", f"{pus // 2}-{pus - 1}"
    first, second, last = description["caches"]
    caches = [dict(first, pus=fast), dict(first, pus=slow, seconds=1.6e-9, size_bytes=16 * K),
              dict(second, pus=fast), dict(second, pus=slow, seconds=6e-9, size_bytes=512 * K), last]
    kinds = [dict(pus=fast, efficiency=1), dict(pus=slow, efficiency=0, memory_seconds=1.2e-7, pu_bytes_per_s=5e9)]
    return dict(description, name=f"kinds-{pus}", caches=caches, kinds=kinds)


def with_links(description):
    pus = int(description["pus"].split("-")[1]) + 1
    near = [str(pu) for pu in range(pus) if pu % 4]
    fast = dict(name="near", groups=[",".join(near)], seconds=5e-7, bytes_per_s=8e9, parallel=len(near) / 4)
    slow = dict(name="far", groups=[f"0-{pus - 1}"], seconds=2e-6, bytes_per_s=3e9, parallel=2)
    return dict(description, name=f"links-{pus}", layers=[fast, slow])


def node(pus, declared):
    """`declared`: "declared", "hidden", or "wrong": every second PU in the other package."""
    cores = pus // 2

    def groups(size):
        return [f"{c}-{c + size - 1},{cores + c}-{cores + c + size - 1}" for c in range(0, cores, size)]

    threads, shared, packages = groups(1), groups(8), groups(cores // 2)
    description = dict(
        servet_machine=1, name=f"{declared}-{pus}", pus=f"0-{pus - 1}", page_bytes=4096, page_mapping="random",
        caches=[dict(level=1, size_bytes=32 * K, ways=8, seconds=1.2e-9, policy="plru", indexing="virtual"),
                dict(level=2, size_bytes=1 * M, ways=16, seconds=4e-9, policy="plru")],
        memory=dict(seconds=1e-7, pu_bytes_per_s=1.2e10,
                    domains=[dict(groups=shared, bytes_per_s=4e10), dict(groups=packages, bytes_per_s=2e11),
                             dict(groups=threads, bytes_per_s=1.2e10)]),
        layers=[dict(name="core", groups=threads, seconds=1e-7, bytes_per_s=2e10),
                dict(name="L3", groups=shared, seconds=3e-7, bytes_per_s=9e9),
                dict(name="package", groups=packages, seconds=9e-7, bytes_per_s=7e9),
                dict(name="node", groups=[f"0-{pus - 1}"], seconds=2e-6, bytes_per_s=4e9)],
        noise=dict(relative=0.02, outlier_probability=0.02, outlier_factor=3))
    if declared == "hidden":
        return description
    last = dict(level=3, size_bytes=32 * M, ways=16, seconds=1.2e-8, policy="plru", groups=shared)
    told = [",".join(map(str, range(k, pus, 2))) for k in range(2)] if declared == "wrong" else packages
    return dict(description, caches=[*description["caches"], last], cores=threads, packages=told)


def measure(probe, description, *options):
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "machine.json"), os.path.join(folder, "profile.json")
        with open(path, "w") as file:
            json.dump(description, file)
        subprocess.run([probe, "-q", "--machine", "simulated:" + path, "-o", out, *options], check=True)
        with open(out) as file:
            profile = json.load(file)
    return profile


def pairs_measured(profile, pus):
    note = profile["node_classes"][0]["communication"]["layers"][0]["quality"].get("note", "")
    found = re.match(r"(\d+) of", note)
    return int(found.group(1)) if found else pus * (pus - 1) // 2


def seconds(probe, description, *options):
    return measure(probe, description, *options)["measurement"]["seconds"]


def line(probe, pus, what, description):
    every = ("--exhaustive", "--probes", "memory,message")
    profile = measure(probe, description)
    print(f"{pus:5} {what:7} {pus * (pus - 1) // 2:6} {pairs_measured(profile, pus):8} "
          f"{profile['measurement']['seconds']:10.1f} {seconds(probe, description, '--one-by-one'):10.1f}   "
          f"{seconds(probe, description, *every):17.1f} "
          f"{seconds(probe, description, '--one-by-one', *every):16.1f}", flush=True)


def structures(probe, sizes):
    print(f"{'PUs':>5} {'':8} {'pairs':>6} {'measured':>8} {'memory and messages, s':>22}")
    for pus in sizes:
        for declared in ("declared", "hidden", "wrong"):
            profile = measure(probe, node(pus, declared), "--seed", "1", "--probes", "memory,message")
            print(f"{pus:5} {declared:8} {pus * (pus - 1) // 2:6} {pairs_measured(profile, pus):8} "
                  f"{profile['measurement']['seconds']:22.1f}", flush=True)


def whole(probe, sizes):
    for pus in sizes:
        profile = measure(probe, machine(pus, min(pus // 2, 32)))
        print(f"{pus:5} PUs, {pairs_measured(profile, pus)} pairs measured: {profile['measurement']['seconds']:.1f} s", flush=True)


def main():
    if "--whole" in sys.argv:
        probe, *rest = [word for word in sys.argv[1:] if word != "--whole"]
        return whole(probe, [int(text) for text in rest])
    if "--structure" in sys.argv:
        probe, *rest = [word for word in sys.argv[1:] if word != "--structure"]
        return structures(probe, [int(text) for text in rest] or [64, 256, 512])
    irregular = "--irregular" in sys.argv
    probe, *rest = [word for word in sys.argv[1:] if word != "--irregular"]
    sizes = [int(text) for text in rest] or ([8, 24, 64] if irregular else [2, 8, 24, 64, 256])
    print(f"{'':29}{'whole run, s':>21}   {'all pairs, memory and messages, s':>34}")
    print(f"{'PUs':>5} {'machine':7} {'pairs':>6} {'measured':>8} {'together':>10} {'one by one':>10}   {'together':>17} {'one by one':>16}")
    for pus in sizes:
        description = machine(pus, max(2, min(pus // 2, 32)) if pus > 2 else 2)
        line(probe, pus, "regular", description)
        if irregular and pus >= 8:
            line(probe, pus, "kinds", with_kinds(description))
            line(probe, pus, "links", with_links(description))


main()
