"""What the checks of the house share: which files there are, and how offenders are told."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
ROOMS = ("profile", "probes", "mapper", "preload", "report", "benchmarks")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def sources(*tops, ending=(".c", ".h")):
    """Paths from the root, sorted."""
    found = []
    for top in tops:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            found += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names if n.endswith(ending)]
    return sorted(found)


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def included(path):
    return INCLUDE.findall(text(path))


def finish(what, offenders):
    """Prints the offenders and the count; the exit status is 1 if there is one."""
    for line in offenders:
        print(line)
    print(f"{what}: {len(offenders)} found")
    return 1 if offenders else 0


def end(*statuses):
    sys.exit(1 if any(statuses) else 0)
