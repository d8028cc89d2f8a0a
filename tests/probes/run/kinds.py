#!/usr/bin/env python3
"""Are machines with several kinds of cores, measured by the complete servet-probe, what their description says, and do
servet-map and servet-show speak of the kinds? kinds.py SERVET-PROBE SERVET-MAP SERVET-SHOW MACHINES"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

probe, mapper, show, machines = map(os.path.abspath, sys.argv[1:5])
folder = tempfile.mkdtemp()
failed = []


def check(good, what):
    if not good:
        failed.append(what)
        print("FAIL:", what)


def run(*words):
    environment = dict(os.environ, XDG_CONFIG_HOME=folder)
    environment.pop("SERVET_PROFILE", None)
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    check(done.returncode == 0 and done.stderr == "", f"{words}: status {done.returncode}: {done.stderr}")
    return done.stdout


def measure(name, *options, folder_of=machines):
    path = f"{folder}/{name}.json"
    run(probe, f"{folder_of}/{name}.json", "-q", "-o", path, *options)
    return path, json.load(open(path))["node_classes"][0]


def hidden(name, last):
    """The same machine of which only the kinds are declared, with such groups of its last cache."""
    machine = json.load(open(f"{machines}/{name}.json"))
    for key in ("cores", "packages"):
        machine.pop(key, None)
    whole = machine["caches"].pop()
    machine["caches"] += [{**whole, "groups": [pus], **({} if len(last) == 1 else {"pus": pus})} for pus in last]
    for cache in machine["caches"]:
        cache["declared_size_bytes"] = 0
    os.makedirs(f"{folder}/hidden", exist_ok=True)
    json.dump(machine, open(f"{folder}/hidden/{name}.json", "w"))
    return measure(name, "--probes", "cache,sharing,message", folder_of=f"{folder}/hidden")


def caches(node_class):
    return {(cache["level"], cache.get("pus", "")): (cache["size_bytes"], tuple(cache["sharing"].get("groups", [])))
            for cache in node_class["caches"]}


def members(relation):
    return relation.get("groups", []), relation.get("pairs", [])


def workers(path, *options):
    return [int(pu) for pu in run(mapper, "--profile", path, *options).strip().split(",")]


# 2 performance cores with 2 PUs each, 8 efficiency cores in clusters of four; all share the last level and the memory,
# which two performance cores fill. The second levels are alike in all but who shares them.
_, sizes = measure("intel-ultra-135u", "--probes", "cache", "--method", "paper")
laptop, found = measure("intel-ultra-135u")
truth = {(1, "0-3"): (48 << 10, ("0-1", "2-3")), (1, "4-11"): (32 << 10, ()),
         (2, "0-3"): (2048 << 10, ("0-1", "2-3")), (2, "4-11"): (2048 << 10, ("4-7", "8-11")),
         (3, ""): (12 << 20, ("0-11",))}
check(caches(found) == truth, f"135U: caches {caches(found)}")
check(all(cache["quality"]["origin"] == "measured" for cache in found["caches"]), "135U: a cache was not measured")
check([members(level["collisions"]) for level in found["memory"]["levels"]] == [(["0-11"], [])],
      f"135U: memory {found['memory']['levels']}")
check({place: groups for place, (_, groups) in caches(sizes).items() if groups} ==
      {place: groups for place, (_, groups) in truth.items() if groups}, f"135U: sharing as declared {caches(sizes)}")
rates = {row["pus"]: row["bytes_per_s"] for row in found["numa_access"]}
check(set(rates) == {"0-3", "4-11"} and 18e9 < rates["0-3"] < 21e9 and 8e9 < rates["4-11"] < 9.5e9, f"135U: {rates}")
check([members(layer["members"])[0] for layer in found["communication"]["layers"]] == [["0-1", "2-3"], ["0-11"]],
      "135U: layers of messages")

# The fastest cores come first, one worker each; then the others join, clusters by turns.
check(sorted(pu // 2 for pu in workers(laptop, "-n", "2")) == [0, 1], "135U: 2 workers")
four = sorted(workers(laptop, "-n", "4"))
check([pu // 2 for pu in four[:2]] == [0, 1] and [(pu - 4) // 4 for pu in four[2:]] == [0, 1], f"135U: 4 workers on {four}")
check(sorted(workers(laptop, "-n", "12")) == list(range(12)), "135U: 12 workers")
check(sorted((pu - 4) // 4 for pu in workers(laptop, "-n", "2", "--kind", "e")) == [0, 1], "135U: 2 workers on efficiency cores")

# 4 efficiency cores first, then 4 performance cores, two of which fill the memory that all share.
board, found = measure("arm-rk3588")
truth = {(1, "0-3"): (32 << 10, ()), (1, "4-7"): (64 << 10, ()), (2, "0-3"): (128 << 10, ()), (2, "4-7"): (512 << 10, ()),
         (3, ""): (3 << 20, ("0-7",))}
check(caches(found) == truth, f"RK3588: caches {caches(found)}")
check([members(level["collisions"]) for level in found["memory"]["levels"]] == [(["0-7"], [])],
      f"RK3588: memory {found['memory']['levels']}")
check(sorted(workers(board, "-n", "4")) == [4, 5, 6, 7], "RK3588: 4 workers")
check({4, 5, 6, 7} < set(workers(board, "-n", "6")), "RK3588: 6 workers")

# Where nothing but the kinds is declared, two last caches that are as large are asked whether they are one.
_, found = hidden("arm-rk3588", ["0-7"])
shared = {place: groups for place, (_, groups) in caches(found).items()}
check(shared == {place: groups for place, (_, groups) in truth.items()}, f"RK3588 hidden: {shared}")
_, found = hidden("arm-rk3588", ["0-3", "4-7"])
shared = [groups for (level, _), (_, groups) in caches(found).items() if level == 3]
check(shared == [("0-3",), ("4-7",)], f"RK3588 hidden, two last caches: {shared}")

# What a reader is shown: each kind, its caches, its memory.
text = run(show, laptop)
for line in (r"kind +0-3 \(efficiency 1\)", r"kind +4-11 \(efficiency 0\)", r"L1 +48 KiB .* 0-1 2-3 +0-3 ", r"L1 +32 KiB .* nobody +4-11 ",
             r"L2 +2 MiB .* 0-1 2-3 +0-3 ", r"L2 +2 MiB .* 4-7 8-11 +4-11 ", r"L3 +12 MiB .* 0-11 +all ",
             r"0-3 +0 .* (19|20)(\.\d)? GB/s", r"4-11 +0 .* (8|9)(\.\d+)? GB/s"):
    check(re.search(line, text), f"servet-show: no line like '{line}' in\n{text}")

run(show, laptop, "--html", f"{folder}/page.html")
page = open(f"{folder}/page.html").read()
for part in ("<dt>Kind of cores</dt><dd>PUs 0-3, efficiency 1</dd>", "<dt>Kind of cores</dt><dd>PUs 4-11, efficiency 0</dd>",
             "<td>4-7 8-11</td><td>4-11</td>", "<td>0-1 2-3</td><td>0-3</td>", "<td>0-11</td><td>all</td>"):
    check(part in page.replace('<td class="n">', "<td>"), f"report: no {part}")
curve = page[page.index('id="cache-curve"'):]
curve = curve[:curve.index("</figure>")]
check("L1 48 KiB" in curve and "L1 32 KiB" not in curve, "report: the curve is of PU 0, its marks are not")

shutil.rmtree(folder)
sys.exit(1 if failed else 0)
