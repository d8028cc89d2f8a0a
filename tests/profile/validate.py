#!/usr/bin/env python3
"""Do real profiles satisfy the schema, and does it refuse what is wrong? validate.py SCHEMA SERVET_SHOW PROFILE..."""
import copy
import json
import subprocess
import sys
import tempfile

try:
    from jsonschema import Draft202012Validator
except ImportError as missing:
    print(f"skipped: {missing} (Debian: python3-jsonschema, 4.0 or later)")
    sys.exit(77)

schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)

for path in sys.argv[3:]:
    validator.validate(json.load(open(path)))
    # What is written from it, and what this machine gives.
    validator.validate(json.loads(subprocess.check_output([sys.argv[2], "--json", path])))

good = json.load(open(sys.argv[3]))


def refused(change):
    bad = copy.deepcopy(good)
    change(bad)
    return not validator.is_valid(bad)


cache = lambda profile: profile["node_classes"][0]["caches"][0]
assert refused(lambda p: p.update(servet_profile=2))
assert refused(lambda p: p.pop("host"))
assert refused(lambda p: cache(p).update(sizebytes=1))
assert refused(lambda p: cache(p).update(size_bytes="32K"))
assert refused(lambda p: cache(p)["sharing"].update(groups=["0-"]))
assert refused(lambda p: cache(p)["sharing"].update(pairs=[[1, 2, 3]]))
assert not refused(lambda p: cache(p).update({"x-site": 1}))


# The reader refuses what the schema refuses: every field of the profile that has them all, just outside of its range.
every = json.load(open(sys.argv[4]))


def definition(part):
    reference = part.get("$ref")
    return schema["$defs"][reference.rsplit("/", 1)[1]] if reference else part


def fields(object, part, path=()):
    """(Path, what the schema says of it) of every field that the object has."""
    for key, value in object.items():
        below = part["properties"].get(key)
        if below is None:
            continue
        yield (*path, key), below
        if isinstance(value, dict) and "properties" in definition(below):
            yield from fields(value, definition(below), (*path, key))
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from fields(value[0], definition(below["items"]), (*path, key, 0))


def outside(part):
    """Values that the field cannot have."""
    if "minimum" not in part and "exclusiveMinimum" not in part:
        yield {"never": 1} if part.get("type") != "object" and "$ref" not in part else 5
    if "minimum" in part:
        yield part["minimum"] - 1
    if "exclusiveMinimum" in part:
        yield -1.5
    if part.get("maximum", 2**63) < 2**63 - 1:  # no JSON number of ours is larger
        yield part["maximum"] + 1
    if "minItems" in part:
        yield []
    if "enum" in part:
        yield "never"


tried = 0
for path, part in fields(every, schema):
    for value in outside(part):
        bad = copy.deepcopy(every)
        holder = bad
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
        assert not validator.is_valid(bad), f"the schema takes {value} for {path}"
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(bad, file)
            file.flush()
            done = subprocess.run([sys.argv[2], file.name], capture_output=True, text=True)
        assert done.returncode == 2, f"servet-show takes {value} for {path}: status {done.returncode}"
        assert str(path[-1]) in done.stderr and done.stderr.count("\n") == 1, (path, done.stderr)
        tried += 1
assert tried > 120, tried
