"""Takes behaviours out of a copy of the sources, one at a time, and runs the test that must go red for each.

A list of such behaviours is a module beside the tests of its room: tests/preload/mutants.py, tests/probes/mutants.py;
`mutations` there is the command.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

# item: the kind of behaviour; file: from the root; edits: (old, new), which may occur more than once.
Mutant = namedtuple("Mutant", "item test name file edits")


def copy_sources(folder):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    for name in filter(None, names):
        source, target = os.path.join(ROOT, name), os.path.join(folder, name)
        if not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target) or open(source, "rb").read() != open(target, "rb").read():
            shutil.copy(source, target)


def run(words, **options):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **options)


class Copy:
    def __init__(self, folder, tests):
        self.folder, self.build = folder, os.path.join(folder, "build")
        copy_sources(folder)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            made = run(["meson", "setup", self.build, folder])
            assert made.returncode == 0, made.stdout
        self.targets = self.targets_of_tests()
        made = self.make({target for test in tests for target in self.targets[test]})
        assert made.returncode == 0, made.stdout

    def introspect(self, what):
        return json.loads(run(["meson", "introspect", what, self.build]).stdout)

    def targets_of_tests(self):
        """What a test is built from, by its name."""
        files = {t["id"]: [os.path.relpath(f, self.build) for f in t["filename"]] for t in self.introspect("--targets")}
        return {t["name"]: [f for d in t["depends"] for f in files.get(d, [])] for t in self.introspect("--tests")}

    def make(self, targets):
        return run(["ninja", "-C", self.build, "-j2", *targets])

    def test(self, name):
        """True where it passes; a test that is skipped here says nothing."""
        done = run(["meson", "test", "-C", self.build, "--no-rebuild", name])
        if "SKIP" in done.stdout:
            return None
        return done.returncode == 0

    def try_out(self, mutant):
        """What became of the mutant, in a word."""
        path = os.path.join(self.folder, mutant.file)
        original = open(path).read()
        changed = original
        for old, new in mutant.edits:
            if changed.count(old) < 1:
                return "no longer applies: " + old.strip().splitlines()[0]
            changed = changed.replace(old, new)
        try:
            with open(path, "w") as file:
                file.write(changed)
            made = self.make(self.targets[mutant.test])
            if made.returncode != 0:
                return "does not build: " + "\n".join(l for l in made.stdout.splitlines() if "error" in l)
            passed = self.test(mutant.test)
            return {True: "SURVIVED", False: "red", None: "not checked: the test is skipped here"}[passed]
        finally:
            with open(path, "w") as file:
                file.write(original)


def main(description, mutants):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    chosen = [m for m in mutants if any(arguments.only in text for text in (m.item, m.test, m.name, m.file))]
    if arguments.list:
        for mutant in chosen:
            print("%-12s %-22s %s" % (mutant.item, mutant.test, mutant.name))
        return 0
    folder = arguments.folder or tempfile.mkdtemp(prefix="mutations.")
    bad = 0
    try:
        copy = Copy(folder, {m.test for m in chosen})
        for mutant in chosen:
            result = copy.try_out(mutant)
            bad += result != "red" and not result.startswith("not checked")
            print("%-12s %-22s %s: %s" % (mutant.item, mutant.test, mutant.name, result), flush=True)
    finally:
        if not arguments.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print("%d tried, %d did not go red" % (len(chosen), bad))
    return 1 if bad else 0
