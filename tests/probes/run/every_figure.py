#!/usr/bin/env python3
"""Does every figure of a profile say whether it was measured or inferred, how often, and how far the measurements lay apart?

usage: every_figure.py SERVET-PROBE-SIMULATED MACHINES
"""
import json
import os
import subprocess
import sys
import tempfile

# Keys of figures that probes measure. What is beside them in an object (declared sizes, line, pages, memory of a node) is
# declared, or describes the measurement.
FIGURES = {"size_bytes", "reach_bytes", "seconds_per_access", "bytes_per_s", "reference_bytes_per_s", "seconds", "g_flops"}
# And those whose quality is beside another figure's.
QUALITY_OF = {"line_seconds": "line_quality"}


def lacks(statement):
    """What a quality, or a point with its own, does not say; one measurement has no spread."""
    missing = []
    if statement.get("origin", "measured") == "declared":
        return missing
    if statement.get("repetitions", 0) < 1:
        missing.append("repetitions")
    if statement.get("repetitions", 0) != 1 and "spread" not in statement:
        missing.append("spread")
    return missing


def walk(value, path, found):
    """Adds (path, what is missing) of every figure to `found`; returns how many figures there are."""
    count = 0
    if isinstance(value, list):
        for i, item in enumerate(value):
            count += walk(item, f"{path}[{i}]", found)
    if not isinstance(value, dict):
        return count
    figures = sorted(FIGURES & value.keys())
    if figures and not path.endswith("measurement"):
        count += len(figures)
        statement = value.get("quality", value)
        missing = lacks(statement)
        if "reach_bytes" in value and "spread" in missing:  # seen in too few passes for one
            missing.remove("spread")
        if "quality" in value and "origin" not in statement:
            missing.append("origin")
        if missing:
            found.append((f"{path}.{figures[0]}", missing))
    for name, quality in QUALITY_OF.items():
        count += name in value
        evidence = {"spread": 0, **value.get(quality, {})}  # evidence writes no spread of 0
        if name in value and (evidence.get("origin") != "measured" or lacks(evidence)):
            found.append((f"{path}.{name}", ["quality"]))
    if "sharing" in value and value.get("quality", {}).get("origin") == "measured":
        count += 1
        evidence = value.get("sharing_quality", {})
        said = "sharing as declared" in value["quality"].get("note", "")
        if evidence.get("origin") == "measured" and evidence.get("repetitions", 0) < 1:
            found.append((f"{path}.sharing", ["repetitions"]))
        if value["sharing"] and not said and (evidence.get("repetitions", 0) < 1 or "origin" not in evidence):
            found.append((f"{path}.sharing", ["origin", "repetitions"]))
    for key, item in value.items():
        count += walk(item, f"{path}.{key}", found)
    return count


def check(profile, name):
    found = []
    count = walk(profile, "$", found)
    for path, missing in found:
        print(f"{name}: {path} lacks {', '.join(missing)}")
    print(f"{name}: {count} figures, {len(found)} lack something")
    return not found and count > 0


def probe(command, machines, folder):
    runs = [[f"{machines}/{name}"] + options for name, options in [
        ("dunnington.json", []), ("finis-terrae.json", ["--exhaustive"]), ("numa-nodes.json", []),
        ("dempsey.json", ["--method", "paper"]), ("dunnington.json", ["--budget", "0.5"])]]
    for machine, *options in runs:
        path = os.path.join(folder, "profile.json")
        subprocess.run([command, machine, "-q", "--force", "-o", path] + options, check=True)
        with open(path, encoding="utf-8") as file:
            yield json.load(file), " ".join([os.path.basename(machine)] + options)


def main():
    with tempfile.TemporaryDirectory() as folder:
        results = [check(profile, name) for profile, name in probe(sys.argv[1], sys.argv[2], folder)]
    sys.exit(0 if all(results) else 1)


main()
