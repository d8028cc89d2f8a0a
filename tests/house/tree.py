"""Shared by the checks of the house: which files there are, and how offenders are reported."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
ROOMS = ("profile", "probes", "mapper", "preload", "report", "benchmarks")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def sources(*tops, ending=(".c", ".h")):
    """Paths from the root, sorted."""
    found = [top for top in tops if os.path.isfile(os.path.join(ROOT, top))]
    for top in tops:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            found += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names if n.endswith(ending)]
    return sorted(found)


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def included(path):
    return INCLUDE.findall(text(path))


# Owed from before the checks: numbers that may only become smaller. Lower them with the debt.
DEBTS = {
    "circles between folders": 0,
    "crowded folders": 0,
    "libraries that end the program": 0,
    "names without the prefix of their room": 0,
    "functions of too many parameters": 1,
    "sentences that begin with What, Of, Who or That": 49,
    "told, says nothing, somebody, nobody": 29,
}


def finish(name, offenders):
    """Prints the count, and the offenders if there are more than the tree owes; the exit status is 1 then."""
    owed = DEBTS.get(name, 0)
    if len(offenders) > owed:
        print("\n".join(offenders))
    print(f"{name}: {len(offenders)} found, {owed} owed")
    return 1 if len(offenders) > owed else 0


def end(*statuses):
    sys.exit(1 if any(statuses) else 0)
