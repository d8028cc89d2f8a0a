#!/usr/bin/env python3
"""Is who measures ever worse off than who does not? On machines as of today that nobody chose.

    never_worse.py NEVER_WORSE [--known] [--machines N] [--seed S] [--budget SECONDS] [MACHINE.json ...]

--known describes the machines of a list of servers, desktops and virtual machines that people have. Draws N machines from continuous ranges (packages, NUMA nodes, dies, caches, cores, their bandwidths, how much of it each
domain's link lets through, numbering, noise), prints the seed, and hands them with the named ones to the program
never_worse, whose table it prints. Some links are of dies that the machine does not declare. Status as the program's.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

from pulist import members, pulist

MOST_CORES = 192
NAMES = ("L3", "die", "node", "package")

# Machines that people have: cores and their numbering, caches, dies, NUMA nodes and memory channels as in their makers' data
# sheets. Memory gives four fifths of its channels' peak, as STREAM does on most of them; what a core and a link get is
# rounded from what people published of them (chipsandcheese.com, STREAM and MLC listings). Name; source; packages; cores in
# one; threads of a core, and the step to the next one (0: numbered one after the other); GB/s of a core; levels as in
# describe(), in GB/s; what is declared.
BOTH = ("package", "node")
KNOWN = [
    ("epyc-9654-nps1", "2 x 96 Zen 4, 12 x DDR5-4800", 2, 96, 1, 0, 28, [("L3", [8], 52), ("package", [96], 370)], ("package",)),
    ("epyc-9654-nps4", "the same, 4 nodes in a package", 2, 96, 1, 0, 28, [("L3", [8], 52), ("node", [24], 92), ("package", [96], 370)], BOTH),
    ("epyc-9754-nps1", "128 Zen 4c, two L3s on a die's link", 1, 128, 1, 0, 26, [("L3", [8], None), ("die", [16], 52), ("package", [128], 370)], ("package",)),
    ("epyc-9575f", "2 x 64 Zen 5, 12 x DDR5-6000, two links a die", 2, 64, 1, 0, 45, [("L3", [8], 100), ("package", [64], 460)], ("package",)),
    ("epyc-7763-nps4-smt", "64 Zen 3 of two threads, 8 x DDR4-3200", 1, 64, 2, 64, 23, [("L3", [8], 38), ("node", [16], 41), ("package", [64], 164)], BOTH),
    ("epyc-7742", "2 x 64 Zen 2, two L3s on a die's link", 2, 64, 1, 0, 20, [("L3", [4], 34), ("die", [8], 37), ("package", [64], 164)], ("package",)),
    ("epyc-7601", "2 x 32 Zen 1, a node for each die", 2, 32, 1, 0, 20, [("L3", [4], 30), ("node", [8], 34), ("package", [32], 136)], BOTH),
    ("threadripper-3990x", "64 Zen 2, 4 x DDR4-3200", 1, 64, 1, 0, 24, [("L3", [4], None), ("die", [8], 37), ("package", [64], 82)], ("package",)),
    ("ryzen-7950x", "16 Zen 4 of two threads, 2 x DDR5-5200", 1, 16, 2, 16, 38, [("L3", [8], 56), ("package", [16], 66)], ("package",)),
    ("xeon-6980p-snc3", "2 x 128, a node for each die of 43, 43, 42; 12 x MRDIMM-8800", 2, 128, 1, 0, 15, [("L3", [43, 43, 42], None), ("node", [43, 43, 42], 225), ("package", [128], 675)], BOTH),
    ("xeon-8480-snc4", "2 x 56, 8 x DDR5-4800", 2, 56, 1, 0, 14, [("node", [14], 61), ("package", [56], 245)], BOTH),
    ("xeon-8380-smt", "2 x 40 of two threads, 8 x DDR4-3200", 2, 40, 2, 80, 13, [("package", [40], 164)], ("package",)),
    ("xeon-phi-7250-snc4", "68 of four threads in tiles of two, MCDRAM as cache", 1, 68, 4, 68, 8, [("tile", [2], 14), ("node", [18, 18, 16, 16], 90)], ("node",)),
    ("altra-max-dual", "2 x 128, 8 x DDR4-3200", 2, 128, 1, 0, 14, [("package", [128], 164)], ("package",)),
    ("grace-grace", "2 x 72 Neoverse V2, LPDDR5X of 512 GB/s", 2, 72, 1, 0, 38, [("package", [72], 410)], BOTH),
    ("graviton4", "2 x 96 Neoverse V2, 12 x DDR5-5600", 2, 96, 1, 0, 30, [("package", [96], 430)], BOTH),
    ("a64fx", "48 in four memory groups, HBM2 of 256 GB/s each", 1, 48, 1, 0, 40, [("L3", [12], None), ("node", [12], 205)], ("node",)),
    ("kunpeng-920", "2 x 64 in clusters of four, 8 x DDR4-2933", 2, 64, 1, 0, 11, [("cluster", [4], 30), ("node", [32], 75), ("package", [64], 150)], BOTH),
    ("thunderx2-smt4", "2 x 32 of four threads, 8 x DDR4-2666", 2, 32, 4, 64, 12, [("package", [32], 125)], ("package",)),
    ("power9-smt4", "2 x 22 of four threads, pairs with an L3, 8 x DDR4-2666", 2, 22, 4, 1, 15, [("L3", [2], 27), ("package", [22], 136)], BOTH),
    ("mi300a-x4", "4 x 24 Zen 4 beside HBM3", 4, 24, 1, 0, 30, [("L3", [8], 62), ("package", [24], 186)], BOTH),
    ("sg2042", "64 RISC-V in clusters of four, 4 x DDR4-3200", 1, 64, 1, 0, 6, [("cluster", [4], 9), ("node", [16], 20)], ("node",)),
    ("core-13900k", "8 of two threads and 16 in clusters of four, 2 x DDR5-5600", 1, 24, 1, 0, 30, [("package", [24], 72)], ("package",)),
    ("m1-ultra", "2 dies of 8 fast cores in two clusters and 2 slow ones", 2, 10, 1, 0, 60, [("package", [10], 320)], ("package",)),
    ("xeon-max-hbm", "2 x 56, four nodes of DDR5-4800 and four of HBM each", 2, 56, 1, 0, 13, [("node", [14], 61), ("package", [56], 245)], BOTH),
    ("xeon-8480-cxl", "2 x 56, 8 x DDR5-4800, memory behind CXL", 2, 56, 1, 0, 14, [("package", [56], 245)], BOTH),
    ("virtual-milan-32", "32 of a Zen 3, of which the guest says nothing", 1, 32, 1, 0, 23, [("L3", [8], 38), ("package", [32], 110)], ()),
    ("virtual-genoa-64-smt", "64 threads of two packages, of which the guest says nothing", 2, 16, 2, 1, 28, [("L3", [8], 52), ("package", [16], 92)], ()),
]
# Nodes that have memory and no PUs: how many, GB/s that a PU gets of one, seconds of a load.
MEMORY_ONLY = {"xeon-max-hbm": (8, 12, 1.4e-7), "xeon-8480-cxl": (1, 9, 2.5e-7)}
# Kinds of cores from the most capable on: PUs, GB/s of one, the size of groups that have a link, its GB/s, and whether such a
# group is a core of so many threads.
KINDS = {
    "core-13900k": [("0-15", 30, 2, 30, True), ("16-31", 16, 4, 30, False)],
    "m1-ultra": [("0-7,10-17", 60, 4, 110, False), ("8-9,18-19", 18, 2, 30, False)],
}


def draw_shape(draw):
    """Cores in an L3, L3s in a die, dies in a NUMA node, nodes in a package, packages."""
    while True:
        shape = [draw.randint(2, 16), draw.choice((1, 1, 2)), draw.choice((1, 1, 2, 3, 4)), draw.choice((1, 1, 2, 4)), draw.choice((1, 2, 2, 4))]
        cores = 1
        for part in shape:
            cores *= part
        if 4 <= cores <= MOST_CORES:
            return shape, cores


def parts(cores, sizes):
    """The cores in groups of these sizes, over and over."""
    groups, at = [], 0
    for size in itertools.cycle(sizes):
        if at >= len(cores):
            return groups
        groups.append(cores[at : at + size])
        at += size


def describe(name, source, number, threads, core_rate, levels, declared, noise):
    """A machine whose core c is PU number[c]; `threads` has the PUs of a core by that number. `levels` are of the names
    above, from the inside out: cores in a group (a list of them where groups differ), and bytes per second (None: no limit).
    Of packages and nodes those that are in `declared` are."""
    groups = {
        word: [pulist(pu for core in group for pu in threads(core)) for group in parts(number, sizes)]
        for word, sizes, _ in (("core", [1], None), *levels)
    }
    everyone = pulist(pu for core in number for pu in threads(core))
    smt = len(threads(number[0])) > 1
    domains = [{"groups": groups[word], "bytes_per_s": [{"bytes_per_s": rate}]} for word, _, rate in levels if rate]
    if smt:
        domains.append({"groups": groups["core"], "bytes_per_s": [{"bytes_per_s": core_rate}]})
    private = {"groups": groups["core"]} if smt else {}
    last = {"groups": groups["L3"]} if "L3" in groups else {"groups": groups.get("package", [everyone])}
    machine = {
        "servet_machine": 1,
        "name": name,
        "source": source,
        "pus": everyone,
        "page_bytes": 4096,
        "huge_page_bytes": 2 << 20,
        "page_mapping": "random",
        "caches": [
            {"level": 1, "size_bytes": 32 << 10, "ways": 8, "seconds": 1.2e-9, "policy": "plru", **private},
            {"level": 2, "size_bytes": 1 << 20, "ways": 16, "seconds": 4e-9, "policy": "plru", **private},
            {"level": 3, "size_bytes": 32 << 20, "ways": 16, "seconds": 1.2e-8, "policy": "aged", **last},
        ],
        "memory": {"seconds": 1e-7, "pu_bytes_per_s": core_rate, "domains": domains},
        "layers": [],
        "noise": noise,
    }
    if smt:
        machine["cores"] = groups["core"]
        machine["layers"].append({"name": "core", "groups": groups["core"], "seconds": 1e-7, "bytes_per_s": 2e10})
    if "package" in declared:
        machine["packages"] = groups["package"]
    if "node" in declared:
        machine["memory"]["nodes"] = [{"os_index": i, "pus": pus} for i, pus in enumerate(groups["node"])]
    if "L3" in groups:
        machine["layers"].append({"name": "L3", "groups": groups["L3"], "seconds": 2e-7, "bytes_per_s": 1.5e10})
    if "package" in groups:
        machine["layers"].append({"name": "package", "groups": groups["package"], "seconds": 5e-7, "bytes_per_s": 8e9})
    machine["layers"].append({"name": "node", "groups": [everyone], "seconds": 9e-7, "bytes_per_s": 5e9})
    return machine


def draw_machine(draw, name):
    shape, cores = draw_shape(draw)
    smt, block, hidden = draw.random() < 0.3, draw.random() < 0.7, draw.random() < 0.3
    packages = shape[-1]
    per_package = cores // packages
    # Blocks of cores per package, or one of each package by turns, as many servers number them.
    number = [c if block else c % per_package * packages + c // per_package for c in range(cores)]
    core_rate = draw.uniform(6e9, 30e9)
    levels, size, capacity = [], 1, core_rate
    for level, part in zip(NAMES, shape[:-1]):
        size *= part
        capacity *= part
        levels.append((level, [size], None))
        if draw.random() < 0.65:
            capacity *= draw.uniform(0.25, 1.1)  # above 1 the link never fills
            if capacity >= core_rate:
                levels[-1] = (level, [size], capacity)
            else:
                capacity = core_rate
    noise = {"relative": draw.uniform(0, 0.03), "outlier_probability": draw.uniform(0, 0.03), "outlier_factor": 3}
    declared = () if hidden else ("package", "node") if shape[3] > 1 else ("package",)
    threads = (lambda core: (core, core + cores)) if smt else (lambda core: (core,))
    source = "drawn by benchmarks/laboratory/probes/never_worse.py"
    return describe(name, source, number, threads, core_rate, levels, declared, noise)


def known_machine(name, source, packages, per_package, smt, step, core_rate, levels, declared):
    """One of the list. Its cores are numbered package by package; of kinds of cores, threads are PUs like the others."""
    count = sum(len(list(members(kind[0]))) for kind in KINDS.get(name, ())) or packages * per_package
    number = [core if step != 1 else core * smt for core in range(count)]
    threads = lambda core: tuple(core + thread * max(step, 1) for thread in range(smt))
    if name in KINDS:
        levels = [(word, [count // packages], rate) for word, _, rate in levels]
    levels = [(word, sizes, rate and rate * 1e9) for word, sizes, rate in levels]
    if "node" in declared and not any(word == "node" for word, _, _ in levels):
        levels.insert(0, ("node", [per_package], None))
    noise = {"relative": 0.02, "outlier_probability": 0.03, "outlier_factor": 3}
    machine = describe(name, source, number, threads, core_rate * 1e9, levels, declared, noise)
    if not declared:
        for cache in machine["caches"]:
            cache["declared_size_bytes"] = 0
        machine.pop("cores", None)
    for pus, rate, size, link, threaded in KINDS.get(name, ()):
        clusters = [pulist(group) for group in parts(list(members(pus)), [size])]
        machine["memory"]["domains"].append({"groups": clusters, "bytes_per_s": [{"bytes_per_s": link * 1e9}]})
        kinds = machine.setdefault("kinds", [])
        kinds.append({"pus": pus, "efficiency": len(KINDS[name]) - 1 - len(kinds), "pu_bytes_per_s": rate * 1e9})
        if threaded:
            machine["cores"] = clusters
    more, rate, seconds = MEMORY_ONLY.get(name, (0, 0, 0))
    access = {"pus": machine["pus"], "seconds": seconds, "bytes_per_s": rate * 1e9}
    for _ in range(more):
        nodes = machine["memory"]["nodes"]
        nodes.append({"os_index": len(nodes), "pus": "", "memory_bytes": 1 << 36, "from": [access]})
    return machine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--known", action="store_true", help="the machines of the list, too")
    parser.add_argument("--machines", type=int, default=24)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--budget", type=float, help="of a run of servet-probe, on the machine's clock")
    parser.add_argument("--keep", help="folder that the drawn machines stay in")
    options = parser.parse_intermixed_args()
    print(f"seed {options.seed}", flush=True)
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        machines = [known_machine(*entry) for entry in KNOWN] if options.known else []
        machines += [draw_machine(draw, f"drawn-{i:02}") for i in range(options.machines)]
        files = [os.path.join(folder, machine["name"] + ".json") for machine in machines]
        for path, machine in zip(files, machines):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(machine, file)
        budget = [f"--budget={options.budget}"] if options.budget else []
        sys.exit(subprocess.run([options.program, *budget, *files, *options.files]).returncode)


main()
