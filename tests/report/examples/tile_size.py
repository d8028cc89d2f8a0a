#!/usr/bin/env python3
"""Chooses a tile from the effective cache sizes, as tile_size.c. usage: tile_size.py [PROFILE]"""

import sys

import servet

LEVEL = 2
FALLBACK = 64  # nothing is known of that level


def open_profile(path):
    """The profile; what the operating system declares where this machine's cannot be used."""
    try:
        return servet.Profile(path)
    except servet.Error:
        if path:
            raise
        return servet.Profile.declared()


def main(path=None):
    try:
        with open_profile(path) as machine:
            cache = machine.cache(LEVEL, machine.pus[0])
    except servet.Error as error:
        print(f"tile_size.py: {error.strerror}", file=sys.stderr)
        return 2
    size = cache and (cache.bytes or (cache.interval or [0])[0])
    tile = int((size / cache.sharers / (3 * 8)) ** 0.5) if size else FALLBACK
    print(f"L{LEVEL}: {size or 0} bytes, shared by {cache.sharers if cache else 0}: tile {tile}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
