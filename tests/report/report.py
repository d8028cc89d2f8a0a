#!/usr/bin/env python3
"""Is the report one well-formed page that needs nothing else and shows every plot, and is nothing half-written when it cannot be
made? report.py SERVET-SHOW SERVET-MAP FIXTURES BIG-PROFILE"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

show, mapper, fixtures, big = map(os.path.abspath, sys.argv[1:5])
folder = tempfile.mkdtemp()
failed = []


def check(good, what):
    if not good:
        failed.append(what)
        print("FAIL:", what)


def run(*arguments, **more):
    environment = dict(os.environ, XDG_CONFIG_HOME="/nonexistent", **more)
    environment.pop("SERVET_PROFILE", None)
    return subprocess.run([show, *arguments], capture_output=True, text=True, cwd=folder, env=environment)


def page(profile, *more):
    done = run(profile, "--html", "out.html", *more)
    check(done.returncode == 0 and done.stderr == "", f"{profile}: status {done.returncode}: {done.stderr}")
    text = open(f"{folder}/out.html").read()
    # The page is written so that it is XML, too: the strictest parser there is.
    root = xml.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    for needle in ("http", "<script", "@import", "url("):
        check(needle not in text, f"{profile}: the page holds {needle}")
    for element in root.iter():
        for key in ("src", "href"):
            value = element.get(key, "#")
            check(value.startswith("#"), f"{profile}: refers to {value[:60]}")
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    check(len(ids) == len(set(ids)), f"{profile}: an id is there twice")
    for element in root.iter():
        target = element.get("href", "")
        check(not target.startswith("#") or target[1:] in ids, f"{profile}: nothing is called {target}")
    # Pictures have titles; tables a caption (or the figure that they stand in), and heads with scopes.
    check(all(svg.find("title") is not None and svg.find("title").text for svg in root.iter("svg")), f"{profile}: a picture has no title")
    framed = [table for figure in root.iter("figure") for table in figure.iter("table")]
    check(all(table.find("caption") is not None or table in framed for table in root.iter("table")), f"{profile}: a table has no caption")
    check(all(head.get("scope") in ("col", "row") for head in root.iter("th")), f"{profile}: the head of a column has no scope")
    return text, root, ids


def suspicions(root):
    box = next((e for e in root.iter("div") if e.get("id") == "suspicious"), [])
    return ["".join(line.itertext()) for line in box.iter("li")] if len(box) else []


EVERYTHING = """summary suspicious cores caches sharing memory messages bsp topology figures mapping cache-curve cache-gradient sharing-core-order
sharing-group-order latency-core-order latency-group-order memory-scaling message-time message-bandwidth message-concurrency
bsp-r bsp-g bsp-l workers worth queues suggest-memory suggest-communication topology-0 map-memory-0 map-communication-0""".split()

text, root, ids = page(big, "--map", "48")
for name in EVERYTHING:
    check(name in ids, f"256 PUs: no {name}")
for figure in root.iter("figure"):
    if figure.get("class") == "plot":
        drawn = sum(len(re.findall("[ML]", path.get("d"))) for path in figure.iter("path"))
        check(drawn > 20 or figure.find(".//table") is not None, f"{figure.get('id')} is empty: {drawn}")
# Hundreds of workers that nobody disturbed, or one layer that queues, must not press the other curves on the axis.
memory = json.load(open(big))["node_classes"][0]["memory"]
most = max(point["bytes_per_s"] for level in memory["levels"] for point in level.get("scaling", []))
ticks = {f.get("id"): [t.text.strip() for t in f.iter("text") if t.text] for f in root.iter("figure")}
rates = [float(t.split()[0]) * {"G": 1e9, "T": 1e12}[t.split()[1][0]] for t in ticks["memory-scaling"] if t.endswith("B/s")]
check(rates and most / 2 < max(rates) < 1.2 * most, f"bandwidth up to {most:.3g}, drawn up to {rates}")
check({"1", "2", "4", "64"} <= set(ticks["message-concurrency"]), f"messages at once: no powers of two: {ticks['message-concurrency']}")
check("prefers-color-scheme:dark" in text and all(f".{name}{{color:var(--{name})}}" in text for name in ("muted", "c1", "c6")), "colours")
doubts = suspicions(root)
check(len(doubts) == 2 and "busy" in doubts[0] and "40 %" in doubts[1] and "--repetitions" in doubts[1], f"suspicious: {doubts}")
boxes = {element.get("class") for element in root.iter() if element.tag == "rect" and element.get("class")} - {"muted"}
check({"machine", "package", "memory", "cache", "core", "pu", "pu busy"} <= boxes, f"boxes of the topology: {boxes}")
check(text.count(":w47<") == 2, "the last worker is not in both pictures")
svg = {f.get("id"): next(f.iter("svg")) for f in root.iter("figure") if f.get("id") in ("topology-0", "map-memory-0")}
for name, picture in svg.items():
    rects = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in picture.iter("rect") if r.get("class").startswith("pu")]
    check(len(rects) == 256, f"{name}: {len(rects)} PUs")
    # No two PUs lie on one another, and none is outside of the picture.
    width, height = float(picture.get("width")), float(picture.get("height"))
    check(all(x > 0 and y > 0 and x + w < width and y + h < height for x, y, w, h in rects), f"{name}: a PU is outside")
    apart = all(a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
                for i, a in enumerate(rects) for b in rects[:i])
    check(apart, f"{name}: PUs lie on one another")
styled = set(re.findall(r"\.picture rect\.(\w+)", text)) | {"machine", "pu"}
check({word for box in boxes for word in box.split()} <= styled, f"boxes without a colour: {boxes}")

# Devices stand in the box of the PUs near them.
_, near, _ = page(f"{fixtures}/devices/lassen.json")
lines = [t.text for t in next(f for f in near.iter("figure") if f.get("id") == "topology-0").iter("text") if t.get("class") == "device"]
check(lines == ["GPU cuda0 cuda1", "Network card mlx5_0 mlx5_1 enP5p1s0f0 enP5p1s0f1", "GPU cuda2 cuda3", "Network card mlx5_2 mlx5_3"], f"devices in the picture: {lines}")

# The heat map of the times between cores is the first picture; all groups of a table can be opened.
figures = [f.get("id") for f in root.iter("figure")]
check(figures[0] == "latency-core-order", f"the first picture is {figures[0]}")
folded = [d for d in root.iter("details") if "... (" in d.find("summary").text]
check(folded and all("255" in "".join(d.itertext()) for d in folded), f"groups that are cut short cannot be opened: {len(folded)}")
check("... (" not in "".join(cell.text or "" for cell in root.iter("td")), "a cell is cut short for good")
check("<dt>Load average before</dt>" in text and "load_average" not in text, "conditions are not in words")
check('<th scope="col">Ways</th>' in text, "no ways in the table of caches")
check(">0.0 " not in text, "an axis begins at 0.0")

# The advice is that of servet-map.
launch = subprocess.run([mapper, "--suggest", "--profile", big], capture_output=True, text=True).stdout.strip().split("\n")[-3].strip()
check(launch in [code.text for code in root.iter("code")], f"servet-map proposes {launch}, the page does not")

text, root, ids = page(f"{fixtures}/every-field.json")
check("tlb" in ids, "no table of the TLB")
check("<dt>NUMA nodes</dt><dd>2" in text and "<dt>Packages</dt><dd>2" in text and "<dt>Memory</dt><dd>8192 TiB" in text,
      "packages, NUMA nodes and memory are not in the summary")
check("numa-access" in ids and "<td class=\"n\">150 ns</td>" in text, "no table of the NUMA nodes' memory")
check("devices" in ids and "<th scope=\"row\">nic</th><td>mlx5_0</td>" in text, "no table of the devices")
check("transfers" in ids and '<td class="n">2</td><td class="n">26.5 GB/s</td><td class="n">13.2 GB/s</td><td class="n">7.5 us</td>' in text,
      "no table of copies to GPUs")
check("Measured with m." in text, "how memory was measured is not said")
check("latency of NUMA node 2 from PUs 0-3" in text, "a NUMA node is not among the figures")

conditions = open(f"{fixtures}/every-field.json").read().replace('"z": "1"', '"smt": "notsupported"')
open(f"{folder}/conditions.json", "w").write(conditions)
text, root, ids = page("conditions.json")
check("<dt>SMT (hyper-threading)</dt><dd>the processor has none</dd>" in text, "the kernel's word for no SMT is on the page")

# What the text says of memory and messages the page says, too, where there is no curve to draw.
text, root, ids = page(f"{fixtures}/nehalem-8-nodes.json")
check("disturb one another at memory" in text and "No two PUs" not in text, "PUs disturb one another, and the page says that none do")
check({"overhead"} <= set(ids), "no table of the overhead levels")
check(all(f"<caption>Layers {where}</caption>" in text for where in ("inside a node", "between nodes")), "no tables of layers")

# Figures of single pairs: cache lines from core to core, a cache and memory beside one other PU (2010 paper, Figures 8, 9a).
pairs = json.load(open(f"{fixtures}/dunnington.json"))
node_class = pairs["node_classes"][0]
node_class["caches"][1]["pair_ratios"] = [[0, other, 3.5 if other == 12 else 1.25] for other in range(1, 24)]
node_class["memory"]["pair_rates"] = [[0, other, 1.5e9] for other in range(1, 24)]
layer = node_class["communication"]["layers"][0]
layer.update(line_seconds=4e-8, line_quality={"origin": "measured", "repetitions": 5, "spread": 0.1})
node_class["communication"]["line_times"] = [[0, 12, 3e-8], [0, 13, 5e-8]]
json.dump(pairs, open(f"{folder}/pairs.json", "w"))
text, root, ids = page("pairs.json")
check("line-core-order" in ids and "memory-pairs" in ids, f"no picture of pairs: {ids}")
check("PU 0 and another one copy at the same time." in text, "it is not said whose pairs they are")
check("cache-pairs" in ids and "PU 0 and another one use two thirds" in text, "no picture of the ratios in caches")
check(text.count("the other PU, beside PU 0<") == 2, "a picture does not say itself whose pairs they are")


def alone_heights(root):
    paths = [p.get("d") for f in root.iter("figure") if f.get("id") == "memory-pairs" for p in f.iter("path") if p.get("stroke-dasharray")]
    return len({y for d in paths for y in re.findall(r"[-.0-9]+ ([-.0-9]+)", d)}) - 1  # one is the legend's


# Beside a lesser core nobody loses what that core does not get alone.
check(alone_heights(root) == 1, "cores of one kind get different figures alone")
node_class["kinds"] = [{"efficiency": 1, "pus": "0-11"}, {"efficiency": 0, "pus": "12-23"}]
node_class["numa"] = [{"os_index": 0, "pus": "0-23"}]
node_class["numa_access"] = [{"pus": "12-23", "node": 0, "seconds_per_access": 1e-7, "bytes_per_s": 1e9,
                              "quality": {"origin": "measured"}}]
json.dump(pairs, open(f"{folder}/pairs.json", "w"))
text, root, ids = page("pairs.json")
check(alone_heights(root) == 2, "a lesser core is drawn as if it got alone what a fast one gets")

# A note on how a figure was measured is no suspicion, and opens beside the figure. A level on which nobody loses anything is none.
noted = json.load(open(f"{fixtures}/dunnington.json"))
found = noted["node_classes"][0]
found["caches"][0]["quality"] = {"origin": "measured", "repetitions": 3, "spread": 0.01, "note": "in huge pages"}
memory = found["memory"]
memory["levels"][0].update(bytes_per_s=0.98 * memory["reference_bytes_per_s"], scaling=[])
json.dump(noted, open(f"{folder}/noted.json", "w"))
text, root, ids = page("noted.json")
check(not suspicions(root), f"a note is suspicious: {suspicions(root)}")
found["caches"][1]["quality"] = {"origin": "measured", "repetitions": 1, "cut_short": True}
json.dump(noted, open(f"{folder}/cut.json", "w"))
doubts = suspicions(page("cut.json")[1])
check(len(doubts) == 1 and "budget cut 1 figure short" in doubts[0], f"a figure that was cut short: {doubts}")
check(any("in huge pages" in "".join(d.itertext()) for d in root.iter("details")), "a note is on no table")
check("Memory overhead level 0" not in text, "a level on which nobody loses anything is drawn")

# Two points are read faster in a table; cells of few PUs have their values.
few = json.load(open(f"{fixtures}/nehalem-2-nodes.json"))
layer = few["node_classes"][0]["communication"]["layers"][0]
layer.update(seconds=2e-6, quality={"origin": "measured"}, concurrency=[{"messages": n, "seconds": n * 1e-6} for n in (1, 2)])
json.dump(few, open(f"{folder}/few.json", "w"))
text, root, ids = page("few.json")
many = next(f for f in root.iter("figure") if f.get("id") == "message-concurrency")
check([cell.text for cell in many.iter("td")] == ["1 µs", "2 µs"] and not list(many.iter("svg")), "two points are drawn")
caches = few["node_classes"][0]["caches"]
caches[0]["pair_ratios"], caches[1]["pair_ratios"] = [[0, 1, 1.25]], [[0, 2, 3.5]]
json.dump(few, open(f"{folder}/few.json", "w"))
beside = next(f for f in page("few.json")[1].iter("figure") if f.get("id") == "cache-pairs")
check([cell.text for cell in beside.iter("td")] == ["1.25", "-", "-", "3.5"], "a table shows only the pairs of one cache")
cells = next(f for f in root.iter("figure") if f.get("id") == "sharing-core-order")
check("L3" in [t.text for t in cells.iter("text") if t.get("text-anchor") == "middle"], "no values in the cells of a small machine")

# One mapping, whoever prints it: the page numbers workers as servet-map does, by both priorities and over nodes.
for name, workers in (("dunnington", 8), ("nehalem-2-nodes", 4), ("nehalem-8-nodes", 12)):
    profile = f"{fixtures}/{name}.json"
    text, root, ids = page(profile, "--map", str(workers))
    for priority in ("memory", "communication"):
        option = "--mem-prior" if priority == "memory" else "--comm-prior"
        asked = subprocess.run([mapper, "-n", str(workers), option, "--profile", profile], capture_output=True, text=True).stdout.strip()
        listed = ", ".join(asked.split(","))
        check(f"{priority.capitalize()} priority: workers 0, 1, … on PUs <strong>{listed}<" in text,
              f"{name}: servet-map says {listed} by {priority} priority, the page does not")

# Few PUs: everything the profile holds, in words.
text, root, ids = page(f"{fixtures}/nehalem-2-nodes.json", "--map", "4")
check(">PU 0: worker 0<" in text and text.count(": worker 3<") == 1 and ">L1d 32 KiB<" in text, "a small machine is not drawn in full")
check(">NUMA node 1, 4 GiB<" in text, "NUMA nodes are not drawn with their memory")

# Kinds of cores have caches of one level, which the legend names once; nothing looks good where nothing was measured.
kinds = json.load(open(f"{fixtures}/dunnington.json"))
kinds["node_classes"][0]["caches"][:1] = [dict(kinds["node_classes"][0]["caches"][0], pus=pus) for pus in ("0-11", "12-23")]
json.dump(kinds, open(f"{folder}/kinds.json", "w"))
text, root, ids = page("kinds.json")
legend = [t.text.strip() for f in root.iter("figure") if f.get("id") == "sharing-core-order" for t in f.iter("text") if t.text]
check([word for word in legend[-8:] if word.startswith("L")] == ["L1", "L2", "L3"], f"the legend of a machine with two kinds: {legend}")

# Without a profile the page is of this machine, of which nothing was measured.
done = run("--html", "declared.html")
check(done.returncode == 0, f"without a profile: status {done.returncode}: {done.stderr}")
text = open(f"{folder}/declared.html").read()
check("Nothing was measured" in text and "looked suspicious" not in text, "what was not measured is said to look good")

# What was written down from a publication says so, and nowhere that it was measured.
for name in ("dunnington", "superdome", "nehalem-8-nodes", "finis-terrae-2-nodes", "spmd-dell", "cartesius-bsp"):
    done = run(f"{fixtures}/{name}.json")
    check("from the paper" in done.stdout or name == "cartesius-bsp", f"{name}: does not say where it is from")
    check("measured 5 times" not in done.stdout and "  measured\n" not in done.stdout and "inferred" not in done.stdout,
          f"{name}: says that something was measured: {done.stdout}")

# A cluster, a machine without a curve, and every field there is.
for name in ("nehalem-2-nodes", "dunnington", "every-field", "cartesius-bsp"):
    page(f"{fixtures}/{name}.json", "--map", "2")

# More members than a map has room for: every n-th is drawn, and it is said.
check("is drawn" not in open(f"{folder}/out.html").read(), "a small map is said to be thinned out")
many = open(f"{fixtures}/nehalem-2-nodes.json").read().replace('"node[1-2]", "count": 2', '"node[1-3000]", "count": 3000')
open(f"{folder}/many.json", "w").write(many.replace('"groups": ["0-1"]', '"groups": ["0-2999"]'))
text, root, ids = page("many.json")
check("network-node-order" in ids and "One of every 6 is drawn." in text, "3000 nodes: no thinned map")

# Names in a file are text, never markup.
hostile = open(big).read().replace('"name": "L3"', '"name": "<b>&\'"')
hostile = hostile.replace('"name": "big"', '"name": "<script>alert(1)</script>"')
open(f"{folder}/hostile.json", "w").write(hostile)
page("hostile.json")

# Nothing half-written.
before = sorted(os.listdir(folder))
done = run(big, "--html", "missing/out.html")
check(done.returncode == 1 and done.stderr.count("\n") == 1 and "missing/out.html" in done.stderr, f"bad path: {done}")
check(sorted(os.listdir(folder)) == before, f"left behind: {os.listdir(folder)}")

shutil.rmtree(folder)
sys.exit(1 if failed else 0)
