#!/usr/bin/env python3
"""Is who measures ever worse off than who does not? On machines as of today that nobody chose.

    never_worse.py NEVER_WORSE [--machines N] [--seed S] [MACHINE.json ...]

Draws N machines from continuous ranges (packages, NUMA nodes, dies, caches, cores, their bandwidths, how much of it each
domain's link lets through, numbering, noise), prints the seed, and hands them with the named ones to the program
never_worse, whose table it prints. Some links are of dies that the machine does not declare. Status as the program's.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

MOST_CORES = 192
NAMES = ("L3", "die", "node", "package")


def cpulist(ids):
    return ",".join(str(i) for i in sorted(ids))


def draw_shape(draw):
    """Cores in an L3, L3s in a die, dies in a NUMA node, nodes in a package, packages."""
    while True:
        shape = [draw.randint(2, 16), draw.choice((1, 1, 2)), draw.choice((1, 1, 2, 3, 4)), draw.choice((1, 1, 2, 4)), draw.choice((1, 2, 2, 4))]
        cores = 1
        for part in shape:
            cores *= part
        if 4 <= cores <= MOST_CORES:
            return shape, cores


def draw_machine(draw, name):
    shape, cores = draw_shape(draw)
    smt, block, hidden = draw.random() < 0.3, draw.random() < 0.7, draw.random() < 0.3
    packages = shape[-1]
    per_package = cores // packages
    # Blocks of cores per package, or one of each package by turns, as many servers number them.
    number = [c if block else c % per_package * packages + c // per_package for c in range(cores)]

    def groups(size):
        return [
            cpulist([number[c] for c in range(g, g + size)] + ([number[c] + cores for c in range(g, g + size)] if smt else []))
            for g in range(0, cores, size)
        ]

    core_rate = draw.uniform(6e9, 30e9)
    sizes, size, capacity, domains = {}, 1, core_rate, []
    for level, part in zip(NAMES, shape[:-1]):
        size *= part
        sizes[level] = size
        capacity *= part
        if draw.random() < 0.65:
            capacity *= draw.uniform(0.25, 1.1)  # above 1 the link never fills
            if capacity >= core_rate:
                domains.append({"groups": groups(size), "bytes_per_s": capacity})
            else:
                capacity = core_rate
    if smt:
        domains.append({"groups": groups(1), "bytes_per_s": core_rate})
    private = {"groups": groups(1)} if smt else {}
    machine = {
        "servet_machine": 1,
        "name": name,
        "source": "drawn by benchmarks/probes/never_worse.py",
        "pus": f"0-{cores * (2 if smt else 1) - 1}",
        "page_bytes": 4096,
        "huge_page_bytes": 2 << 20,
        "page_mapping": "random",
        "caches": [
            {"level": 1, "size_bytes": 32 << 10, "ways": 8, "seconds": 1.2e-9, "policy": "plru", **private},
            {"level": 2, "size_bytes": 1 << 20, "ways": 16, "seconds": 4e-9, "policy": "plru", **private},
            {"level": 3, "size_bytes": 32 << 20, "ways": 16, "seconds": 1.2e-8, "policy": "aged", "groups": groups(sizes["L3"])},
        ],
        "memory": {"seconds": 1e-7, "pu_bytes_per_s": core_rate, "domains": domains},
        "layers": [],
        "noise": {"relative": draw.uniform(0, 0.03), "outlier_probability": draw.uniform(0, 0.03), "outlier_factor": 3},
    }
    if smt:
        machine["cores"] = groups(1)
        machine["layers"].append({"name": "core", "groups": groups(1), "seconds": 1e-7, "bytes_per_s": 2e10})
    if not hidden:
        machine["packages"] = groups(sizes["package"])
        if shape[3] > 1:
            machine["memory"]["nodes"] = [{"os_index": i, "pus": pus} for i, pus in enumerate(groups(sizes["node"]))]
    machine["layers"] += [
        {"name": "L3", "groups": groups(sizes["L3"]), "seconds": 2e-7, "bytes_per_s": 1.5e10},
        {"name": "package", "groups": groups(sizes["package"]), "seconds": 5e-7, "bytes_per_s": 8e9},
        {"name": "node", "groups": groups(cores), "seconds": 9e-7, "bytes_per_s": 5e9},
    ]
    return machine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--machines", type=int, default=24)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--keep", help="folder that the drawn machines stay in")
    options = parser.parse_intermixed_args()
    print(f"seed {options.seed}", flush=True)
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        files = []
        for i in range(options.machines):
            files.append(os.path.join(folder, f"drawn-{i:02}.json"))
            with open(files[-1], "w") as file:
                json.dump(draw_machine(draw, f"drawn-{i:02}"), file)
        sys.exit(subprocess.run([options.program, *files, *options.files]).returncode)


main()
