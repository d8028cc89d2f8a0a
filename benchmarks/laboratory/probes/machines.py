#!/usr/bin/env python3
"""Writes descriptions of simulated machines: CPU families that were really built, two variants of each.

    machines.py --seed 1 --part train|final|all [--noise] DIRECTORY
    machines.py --seed 7 --part drawn|fourth --count 100 [--noise | --busy] DIRECTORY

Every third machine belongs to the part "final", which nothing may be tuned on. The variants differ in where pages
fall (random, coloured, side by side), in huge pages, TLBs and latencies. Sizes and ways are those of the data sheets;
replacement policies are what is published or measured by others, guessed from the family where it is not.

"drawn" are machines that nobody built: sizes, ways, slices, policies, page mappings and latencies out of continuous
ranges, so that no list of sizes can help. A new seed gives new ones. "fourth" are the same with a fourth level each, such
as a cache on the memory's side.
"""
import argparse
import json
import math
import os
import random

K, M = 1024, 1 << 20

# name, (L1 KiB, ways, policy), (L2 KiB, ways, policy) or None, [(L3 MiB, ways, slices, policy, inclusion) …], memory ns,
# line, page, (TLB entries, second level or 0)
X86 = dict(line=64, page=4096)
FAMILIES = [
    ("intel-p4", (16, 8, "plru"), [(1024, 8, "plru"), (2048, 8, "plru")], [], 110, X86, (64, 0)),
    ("intel-core2", (32, 8, "plru"), [(2048, 8, "plru"), (3072, 12, "plru"), (4096, 16, "plru"), (6144, 24, "plru")],
     [], 90, X86, (256, 0)),
    ("intel-atom", (24, 6, "plru"), [(512, 8, "plru"), (1024, 16, "plru")], [], 110, X86, (64, 0)),
    ("intel-knl", (32, 8, "plru"), [(1024, 16, "plru")], [], 150, X86, (64, 256)),
    ("intel-nehalem", (32, 8, "plru"), [(256, 8, "plru")],
     [(4, 16, 1, "plru", "inclusive"), (8, 16, 1, "plru", "inclusive"), (12, 16, 1, "plru", "inclusive"),
      (18, 24, 1, "plru", "inclusive"), (24, 24, 1, "plru", "inclusive"), (30, 24, 1, "plru", "inclusive")],
     80, X86, (64, 512)),
    ("intel-sandy-client", (32, 8, "plru"), [(256, 8, "plru")],
     [(3, 12, 2, "plru", "inclusive"), (4, 16, 2, "plru", "inclusive"), (6, 12, 4, "plru", "inclusive"),
      (8, 16, 4, "plru", "inclusive")], 70, X86, (64, 512)),
    ("intel-haswell-server", (32, 8, "plru"), [(256, 8, "plru")],
     [(15, 20, 6, "adaptive", "inclusive"), (20, 20, 8, "adaptive", "inclusive"), (25, 20, 10, "adaptive", "inclusive"),
      (30, 20, 12, "adaptive", "inclusive"), (35, 20, 14, "adaptive", "inclusive"),
      (45, 20, 18, "adaptive", "inclusive"), (55, 20, 22, "adaptive", "inclusive")], 95, X86, (64, 1024)),
    ("intel-skylake-sp", (32, 8, "plru"), [(1024, 16, "aged")],
     [(11, 11, 8, "plru", "victim"), (13.75, 11, 10, "plru", "victim"), (16.5, 11, 12, "plru", "victim"),
      (19.25, 11, 14, "plru", "victim"), (22, 11, 16, "plru", "victim"), (24.75, 11, 18, "plru", "victim"),
      (33, 11, 24, "plru", "victim"), (35.75, 11, 26, "plru", "victim"), (38.5, 11, 28, "plru", "victim")],
     95, X86, (64, 1536)),
    ("intel-icelake-client", (48, 12, "plru"), [(512, 8, "plru")],
     [(6, 12, 4, "plru", "inclusive"), (8, 16, 4, "plru", "inclusive")], 90, X86, (64, 1536)),
    ("intel-tigerlake", (48, 12, "plru"), [(1280, 20, "plru")],
     [(8, 8, 4, "plru", "filled"), (12, 12, 4, "plru", "filled"), (24, 12, 8, "plru", "filled")], 95, X86, (64, 2048)),
    ("intel-icelake-sp", (48, 12, "plru"), [(1280, 20, "plru")],
     [(24, 12, 16, "plru", "victim"), (36, 12, 24, "plru", "victim"), (48, 12, 32, "plru", "victim"),
      (54, 12, 36, "plru", "victim"), (60, 12, 40, "plru", "victim")], 110, X86, (64, 2048)),
    ("intel-alderlake", (48, 12, "plru"), [(1280, 10, "plru"), (2048, 16, "plru")],
     [(12, 12, 4, "plru", "filled"), (18, 12, 6, "plru", "filled"), (24, 12, 8, "plru", "filled"),
      (30, 12, 10, "plru", "filled"), (36, 12, 12, "plru", "filled")], 90, X86, (96, 2048)),
    ("intel-gracemont", (32, 8, "plru"), [(2048, 16, "plru"), (4096, 16, "plru")],
     [(30, 12, 10, "plru", "filled")], 100, X86, (48, 2048)),
    ("intel-sapphire", (48, 12, "plru"), [(2048, 16, "plru")],
     [(30, 15, 16, "plru", "victim"), (45, 15, 24, "plru", "victim"), (60, 15, 32, "plru", "victim"),
      (105, 15, 56, "plru", "victim")], 120, X86, (96, 2048)),
    ("intel-tremont", (32, 8, "plru"), [(1536, 12, "plru")], [(4, 16, 1, "plru", "filled")], 110, X86, (32, 1024)),
    ("itanium", (16, 4, "lru"), [(256, 8, "lru")],
     [(3, 12, 1, "lru", "filled"), (6, 24, 1, "lru", "filled"), (9, 18, 1, "lru", "filled"),
      (12, 12, 1, "lru", "filled")], 180, dict(line=128, page=16384), (32, 128)),
    ("amd-k8", (64, 2, "lru"), [(512, 16, "plru"), (1024, 16, "plru")], [], 75, X86, (32, 512)),
    ("amd-k10", (64, 2, "lru"), [(512, 16, "plru")],
     [(2, 32, 1, "plru", "victim"), (6, 48, 1, "plru", "victim")], 90, X86, (48, 512)),
    ("amd-bulldozer", (16, 4, "lru"), [(2048, 16, "plru")], [(8, 64, 4, "plru", "victim")], 110, X86, (32, 1024)),
    ("amd-jaguar", (32, 8, "plru"), [(2048, 16, "plru")], [], 120, X86, (40, 512)),
    ("amd-zen", (32, 8, "plru"), [(512, 8, "plru")],
     [(4, 16, 4, "plru", "victim"), (8, 16, 4, "plru", "victim"), (16, 16, 4, "plru", "victim"),
      (32, 16, 8, "plru", "victim"), (96, 16, 8, "plru", "victim")], 95, X86, (64, 1536)),
    ("amd-zen4", (32, 8, "plru"), [(1024, 8, "plru")],
     [(16, 16, 8, "plru", "victim"), (32, 16, 8, "plru", "victim"), (96, 16, 8, "plru", "victim")], 105, X86, (72, 3072)),
    ("amd-zen5", (48, 12, "plru"), [(1024, 16, "plru")],
     [(16, 16, 8, "plru", "victim"), (32, 16, 8, "plru", "victim"), (96, 16, 8, "plru", "victim")], 110, X86, (96, 4096)),
    ("amd-genoa-x", (32, 8, "plru"), [(1024, 8, "plru")], [(384, 16, 16, "plru", "victim")], 120, X86, (72, 3072)),
    ("arm-a53", (32, 4, "random"), [(256, 16, "random"), (512, 16, "random"), (1024, 16, "random")], [], 130, X86, (10, 512)),
    ("arm-a72", (32, 2, "lru"), [(1024, 16, "random"), (2048, 16, "random"), (4096, 16, "random")], [], 130, X86, (32, 1024)),
    ("arm-a55", (32, 4, "random"), [(256, 8, "random")], [(2, 16, 1, "random", "victim"), (4, 16, 1, "random", "victim")],
     130, X86, (16, 1024)),
    ("arm-n1", (64, 4, "plru"), [(512, 8, "plru"), (1024, 8, "plru")],
     [(8, 16, 8, "random", "victim"), (16, 16, 16, "random", "victim"), (32, 16, 32, "random", "victim")],
     110, X86, (48, 1280)),
    ("arm-v2", (64, 4, "plru"), [(1024, 8, "plru"), (2048, 8, "plru")],
     [(36, 12, 12, "random", "victim"), (114, 12, 38, "random", "victim")], 120, dict(line=64, page=65536), (48, 2048)),
    ("thunderx2", (32, 8, "lru"), [(256, 8, "lru")], [(28, 8, 28, "lru", "victim"), (32, 8, 32, "lru", "victim")],
     120, dict(line=64, page=65536), (32, 2048)),
    ("thunderx", (32, 32, "lru"), [(16384, 16, "random")], [], 120, X86, (32, 1024)),
    ("kunpeng", (64, 4, "plru"), [(512, 8, "plru")], [(24, 12, 8, "plru", "filled"), (48, 12, 16, "plru", "filled"),
     (64, 16, 16, "plru", "filled")], 120, dict(line=64, page=65536), (32, 1024)),
    ("apple", (128, 8, "plru"), [(12288, 12, "plru")], [(24, 12, 8, "random", "victim"), (48, 12, 16, "random", "victim")],
     100, dict(line=128, page=16384), (160, 3072)),
    ("apple-e", (64, 8, "plru"), [(4096, 16, "plru")], [], 110, dict(line=128, page=16384), (128, 1024)),
    ("oryon", (96, 6, "plru"), [(12288, 12, "plru")], [], 100, X86, (224, 8192)),
    ("wide", (192, 12, "plru"), [(3072, 12, "plru")], [], 100, dict(line=64, page=16384), (128, 2048)),
    ("a64fx", (64, 4, "lru"), [(8192, 16, "plru")], [], 130, dict(line=256, page=65536), (16, 1024)),
    ("power7", (32, 8, "plru"), [(256, 8, "lru")], [(4, 8, 1, "lru", "victim")], 110, dict(line=128, page=65536), (64, 512)),
    ("power8", (64, 8, "plru"), [(512, 8, "lru")], [(8, 8, 1, "lru", "victim")], 100, dict(line=128, page=65536), (48, 2048)),
    ("power9", (32, 8, "plru"), [(512, 8, "lru")], [(10, 20, 1, "lru", "victim")], 100, dict(line=128, page=65536), (64, 1024)),
    ("power10", (32, 8, "plru"), [(1024, 8, "lru"), (2048, 8, "lru")], [(8, 16, 1, "lru", "victim")], 100,
     dict(line=128, page=65536), (64, 4096)),
    ("sparc-m7", (16, 4, "lru"), [(256, 8, "lru")], [(8, 8, 4, "lru", "filled")], 130, dict(line=64, page=8192), (128, 512)),
    ("z14", (128, 8, "lru"), [(4096, 8, "lru")], [(128, 32, 8, "lru", "inclusive")], 150, dict(line=256, page=4096), (512, 2048)),
    ("loongson", (64, 4, "lru"), [(256, 16, "lru")], [(16, 16, 4, "lru", "victim")], 120, dict(line=64, page=16384), (64, 2048)),
    ("zhaoxin", (32, 8, "lru"), [(4096, 16, "plru")], [], 120, X86, (64, 1024)),
    ("riscv-u74", (32, 8, "random"), [(2048, 16, "random")], [], 140, X86, (40, 512)),
    ("riscv-c910", (64, 2, "lru"), [(1024, 16, "plru"), (2048, 16, "plru")], [(64, 16, 16, "plru", "filled")], 140,
     X86, (48, 1024)),
]

# Machines with several kinds of cores: name, kinds, L3 as above or None, memory ns, page. Of each kind, as the PUs are
# numbered: efficiency (0: the least capable), cores, PUs of a core, cores that share an L2, (L1 KiB, ways, policy),
# (L2 KiB, ways, policy), TLB entries, memory ns beyond the machine's, GB/s that one PU copies.
KINDS = [
    ("intel-12900k", [(1, 8, 2, 1, (48, 12, "plru"), (1280, 10, "plru"), (96, 2048), 0, 14),
                      (0, 8, 1, 4, (32, 8, "plru"), (2048, 16, "plru"), (48, 2048), 15, 7)],
     (30, 12, 10, "plru", "filled"), 90, 4096),
    ("intel-13700k", [(1, 8, 2, 1, (48, 12, "plru"), (2048, 16, "plru"), (96, 2048), 0, 15),
                      (0, 8, 1, 4, (32, 8, "plru"), (4096, 16, "plru"), (48, 2048), 12, 8)],
     (30, 12, 10, "plru", "filled"), 85, 4096),
    # the second level of both kinds alike in all but who shares it
    ("intel-ultra-155h", [(1, 6, 2, 1, (48, 12, "plru"), (2048, 16, "plru"), (96, 2048), 0, 16),
                          (0, 8, 1, 4, (32, 8, "plru"), (2048, 16, "plru"), (48, 2048), 10, 9)],
     (24, 12, 8, "plru", "filled"), 110, 4096),
    ("intel-ultra-135u", [(1, 2, 2, 1, (48, 12, "plru"), (2048, 16, "plru"), (96, 2048), 0, 20),
                          (0, 8, 1, 4, (32, 8, "plru"), (2048, 16, "plru"), (48, 2048), 15, 9)],
     (12, 12, 4, "plru", "filled"), 95, 4096),
    ("arm-rk3588", [(0, 4, 1, 1, (32, 4, "random"), (128, 4, "random"), (16, 1024), 20, 4),
                    (1, 4, 1, 1, (64, 4, "plru"), (512, 8, "plru"), (48, 1280), 0, 9)],
     (3, 12, 1, "random", "filled"), 130, 4096),
    ("arm-three-kinds", [(0, 4, 1, 1, (32, 4, "random"), (128, 4, "random"), (16, 1024), 20, 4),
                         (1, 3, 1, 1, (32, 4, "plru"), (512, 8, "plru"), (32, 1024), 5, 9),
                         (2, 1, 1, 1, (64, 4, "plru"), (1024, 8, "plru"), (48, 2048), 0, 14)],
     (4, 16, 2, "random", "filled"), 120, 4096),
    ("arm-exynos-5422", [(0, 4, 1, 4, (32, 4, "random"), (512, 8, "random"), (10, 256), 10, 2),
                         (1, 4, 1, 4, (32, 2, "lru"), (2048, 16, "random"), (32, 512), 0, 5)], None, 120, 4096),
    ("apple-m1", [(0, 4, 1, 4, (64, 8, "plru"), (4096, 16, "plru"), (128, 1024), 10, 12),
                  (1, 4, 1, 4, (128, 8, "plru"), (12288, 12, "plru"), (160, 3072), 0, 30)], None, 100, 16384),
]

NOISE = dict(relative=0.01, outlier_probability=0.03, outlier_factor=3, neighbour_probability=0.2, neighbour_lines=0.15,
             sibling_probability=0.05, sibling_lines=0.3)

BUSY = dict(relative=0.03, outlier_probability=0.08, outlier_factor=4, neighbour_probability=0.35, neighbour_lines=0.2,
            sibling_probability=0.1, sibling_lines=0.3)


def machine(name, l1, l2, l3, memory_ns, base, tlb, variant, rng, noise):
    jitter = lambda ns: round(ns * rng.uniform(0.9, 1.1), 3) * 1e-9
    caches = [dict(level=1, size_bytes=l1[0] * K, ways=l1[1], line_bytes=base["line"], seconds=jitter(1.3),
                   policy=l1[2], indexing="virtual")]
    l2_ns = 3.8 if l2[0] <= 512 else 4.8 if l2[0] <= 2048 else 6.5
    # an L2 without an L3 behind it is the slower last level of the older and smaller machines
    caches.append(dict(level=2, size_bytes=l2[0] * K, ways=l2[1], line_bytes=base["line"],
                       seconds=jitter(l2_ns if l3 else l2_ns * 1.4), policy=l2[2]))
    if l3:
        size = int(l3[0] * M)
        caches.append(dict(level=3, size_bytes=size, ways=l3[1], slices=l3[2], line_bytes=base["line"],
                           seconds=jitter(13 + 0.12 * min(l3[0], 128)), policy=l3[3], inclusion=l3[4]))
    mapping = ["random", "random", "coloured", "contiguous"][rng.randrange(4)] if variant else "random"
    huge = 2 * M if variant == 0 and base["page"] == 4096 and rng.random() < 0.6 else 0
    tlbs = [dict(entries=tlb[0], seconds=jitter(2.5))]
    if tlb[1]:
        tlbs.append(dict(entries=tlb[1], seconds=jitter(7)))
    result = dict(servet_machine=1, name=name, source="data sheets; see machines.py", pus="0-1",
                  page_bytes=base["page"], huge_page_bytes=huge, page_mapping=mapping,
                  prefetched_stride_bytes=rng.choice([0, 512, 1024, 2048]),
                  caches=caches, tlbs=tlbs,
                  memory=dict(seconds=jitter(memory_ns), pu_bytes_per_s=1e10, domains=[dict(pus="0-1", bytes_per_s=[dict(bytes_per_s=1.6e10)])]),
                  layers=[dict(name="node", groups=["0-1"], seconds=5e-7, bytes_per_s=8e9)])
    if noise:
        result["noise"] = NOISE
    return result


def log_uniform(rng, low, high):
    return low * (high / low) ** rng.random()


def drawn_cache(rng, level, low, high, ways, slices, policies):
    """A cache of a size out of the range: sets of a slice are a power of two, ways and slices are any number."""
    wanted, ways, slices = log_uniform(rng, low, high), rng.randint(*ways), rng.randint(*slices)
    sets = 1 << max(4, round(math.log2(wanted / (64 * ways * slices))))
    return dict(level=level, size_bytes=64 * ways * slices * sets, ways=ways, slices=slices, policy=rng.choice(policies))


def declare_last(cache, rng):
    """First and second levels are declared as they are, as real machines declare them. Half of the last levels are too;
    guests see a third of them wrong and the others not at all."""
    kind = rng.random()
    factor = log_uniform(rng, 0.5, 2) if kind < 1 / 3 else 0 if kind < 1 / 2 else 1
    cache["declared_size_bytes"] = round(cache["size_bytes"] * factor / K) * K


def drawn_machine(number, rng, noise):
    l1 = dict(drawn_cache(rng, 1, 16 * K, 160 * K, (4, 16), (1, 1), ["plru", "plru", "lru", "random"]), indexing="virtual",
              seconds=rng.uniform(1, 2) * 1e-9)
    l2 = dict(drawn_cache(rng, 2, max(128 * K, 4 * l1["size_bytes"]), 4 * M, (4, 20), (1, 1),
                          ["plru", "plru", "lru", "random", "aged"]), seconds=rng.uniform(3, 6) * l1["seconds"])
    caches = [l1, l2]
    if rng.random() < 0.7:
        l3 = drawn_cache(rng, 3, max(3 * M, 3 * l2["size_bytes"]), 128 * M, (8, 24), (1, 48),
                         ["plru", "plru", "lru", "random", "adaptive"])
        inclusion = rng.choice(["filled", "inclusive", "victim"]) if l3["policy"] in ("plru", "random") else "filled"
        caches.append(dict(l3, inclusion=inclusion, seconds=rng.uniform(2.5, 5) * l2["seconds"]))
    memory_s = caches[-1]["seconds"] * rng.uniform(3, 8)
    result = dict(servet_machine=1, name=f"drawn-{number}", source="drawn; see machines.py", pus="0-1",
                  page_bytes=rng.choice([4096, 4096, 4096, 16384, 65536]), page_mapping=rng.choice(
                      ["random", "random", "coloured", "contiguous"]), caches=caches,
                  tlbs=[dict(entries=rng.randint(16, 128), seconds=rng.uniform(1.5, 3) * 1e-9),
                        dict(entries=rng.randint(512, 4096), seconds=rng.uniform(5, 9) * 1e-9)],
                  memory=dict(seconds=memory_s, pu_bytes_per_s=1e10, domains=[dict(pus="0-1", bytes_per_s=[dict(bytes_per_s=1.6e10)])]),
                  layers=[dict(name="node", groups=["0-1"], seconds=5e-7, bytes_per_s=8e9)])
    if result["page_bytes"] == 4096 and rng.random() < 0.4:
        result["huge_page_bytes"] = 2 * M
    for tlb in result["tlbs"]:  # drawn last: what is drawn before, the machines of seeds that were judged, stays as it was
        tlb["ways"] = min(tlb["entries"], rng.choice([2, 3, 4, 6, 8, 12, 16, 64]))
    if len(caches) > 2:
        declare_last(caches[-1], rng)
    return dict(result, noise=noise) if noise else result


def with_fourth_level(number, rng, noise):
    result = {"caches": []}
    while len(result["caches"]) < 3 or result["caches"][2]["size_bytes"] > 40 * M:
        result = drawn_machine(number, rng, noise)
    third = result["caches"][2]
    fourth = drawn_cache(rng, 4, max(24 * M, 4 * third["size_bytes"]), 512 * M, (8, 24), (1, 16), ["plru", "lru", "random"])
    inclusion = rng.choice(["filled", "victim"]) if fourth["policy"] in ("plru", "random") else "filled"
    fourth.update(inclusion=inclusion, seconds=third["seconds"] * rng.uniform(1.7, 3.5))
    result["caches"].append(fourth)
    result["memory"]["seconds"] = fourth["seconds"] * rng.uniform(1.5, 3.5)
    return result


def span(first, count):
    return f"{first}-{first + count - 1}" if count > 1 else f"{first}"


def machine_of_kinds(name, kinds, l3, memory_ns, page, rng, noise):
    jitter = lambda ns: round(ns * rng.uniform(0.9, 1.1), 3) * 1e-9
    nearest, second, tlbs, declared, cores, first = [], [], [], [], [], 0
    for efficiency, count, smt, cluster, l1, l2, tlb, further_ns, rate in kinds:
        pus, own = span(first, count * smt), [span(first + i * smt, smt) for i in range(count)]
        shared = [span(first + i * smt, cluster * smt) for i in range(0, count, cluster)]
        cores += own if smt > 1 else []
        nearest.append(dict(level=1, pus=pus, size_bytes=l1[0] * K, ways=l1[1], seconds=jitter(1.3), policy=l1[2],
                            indexing="virtual", groups=own if smt > 1 else []))
        second.append(dict(level=2, pus=pus, size_bytes=l2[0] * K, ways=l2[1], policy=l2[2],
                           seconds=jitter((3.8 if l2[0] <= 512 else 4.8 if l2[0] <= 2048 else 6.5) * (1 if l3 else 1.4)),
                           groups=shared if cluster * smt > 1 else []))
        tlbs += [dict(pus=pus, entries=tlb[0], seconds=jitter(2.5)), dict(pus=pus, entries=tlb[1], seconds=jitter(7))]
        declared.append(dict(pus=pus, efficiency=efficiency, memory_seconds=jitter(memory_ns + further_ns),
                             pu_bytes_per_s=rate * 1e9))
        first += count * smt
    everyone = span(0, first)
    caches = nearest + second
    if l3:
        caches.append(dict(level=3, size_bytes=l3[0] * M, ways=l3[1], slices=l3[2], policy=l3[3], inclusion=l3[4],
                           seconds=jitter(13 + 0.12 * l3[0]), groups=[everyone]))
    fastest = max(kind["pu_bytes_per_s"] for kind in declared)
    result = dict(servet_machine=1, name=name, source="data sheets; see machines.py", pus=everyone, cores=cores,
                  packages=[everyone], kinds=declared, page_bytes=page, caches=caches, tlbs=tlbs,
                  memory=dict(seconds=memory_ns * 1e-9, pu_bytes_per_s=fastest,
                              domains=[dict(pus=everyone, bytes_per_s=[dict(bytes_per_s=1.7 * fastest)])]),
                  layers=[dict(name="node", groups=[everyone], seconds=5e-7, bytes_per_s=8e9, parallel=4)])
    if cores:
        result["layers"].insert(0, dict(name="core", groups=cores, seconds=2e-7, bytes_per_s=1.2e10))
    if noise:
        result["noise"] = NOISE
    return result


def write(directory, name, description):
    with open(os.path.join(directory, name + ".json"), "w") as out:
        json.dump(description, out, indent=1)
        out.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=["train", "final", "all", "kinds", "drawn", "fourth"], default="all",
                        help="kinds: machines with several kinds of cores, which are in none of the others")
    parser.add_argument("--noise", action="store_true", help="like that measured on virtual machines")
    parser.add_argument("--busy", action="store_true", help="like that beside other programs")
    parser.add_argument("--count", type=int, default=100, help="of machines to be drawn")
    parser.add_argument("--every", type=int, default=1, help="only every N-th machine of the part")
    parser.add_argument("directory")
    options = parser.parse_args()
    os.makedirs(options.directory, exist_ok=True)
    if options.part == "kinds":
        for number, entry in enumerate(KINDS):
            rng = random.Random(options.seed * 1000003 + number)
            write(options.directory, entry[0], machine_of_kinds(*entry, rng, options.noise))
        return
    if options.part in ("drawn", "fourth"):
        noise = BUSY if options.busy else NOISE if options.noise else None
        draw = drawn_machine if options.part == "drawn" else with_fourth_level
        for number in range(options.count):
            rng = random.Random(options.seed * 1000003 + number)
            write(options.directory, f"{options.part}-{number:03}", draw(number, rng, noise))
        return
    number, taken = 0, 0
    for family, l1, l2s, l3s, memory, base, tlb in FAMILIES:
        for l2 in l2s:
            for l3 in l3s or [None]:
                for variant in range(2):
                    number += 1
                    rng = random.Random(options.seed * 1000003 + number)
                    part = "final" if number % 3 == 0 else "train"
                    name = f"{family}-{l1[0]}K-{l2[0]}K" + (f"-{l3[0]}M" if l3 else "") + f"-{variant}"
                    description = machine(name, l1, l2, l3, memory, base, tlb, variant, rng, options.noise)
                    if options.part not in ("all", part):
                        continue
                    taken += 1
                    if (taken - 1) % options.every:
                        continue
                    write(options.directory, name, description)


main()
