#!/usr/bin/env python3
"""Do real profiles satisfy the schema, and does it refuse what is wrong? validate.py SCHEMA SERVET_SHOW PROFILE..."""
import copy
import json
import subprocess
import sys

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
