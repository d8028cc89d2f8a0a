#!/usr/bin/env python3
"""A program that tunes itself: a matrix product whose tile is chosen from the effective cache sizes, as tile_size.c.

usage: tile_size.py [PROFILE [N]]

With numpy on whole numbers, whose product numpy computes with loops of its own (that of floating-point ones is BLAS's, which
has tiles already); without numpy on lists, where the interpreter takes so long that a cache hardly counts.
"""

import sys
import time

import servet

LEVEL = 2
FALLBACK = 64  # nothing is known of that level

try:
    import numpy
except ImportError:
    numpy = None


def tile_of(machine):
    cache = machine.cache(LEVEL, machine.pus[0])
    size = cache and (cache.bytes or (cache.interval or [0])[0])
    tile = int((size / cache.sharers / (3 * 8)) ** 0.5) if size else FALLBACK
    print(f"L{LEVEL} of PU {machine.pus[0]}: {size or 0} bytes, shared by {cache.sharers if cache else 0}: tile {tile}")
    return tile or FALLBACK


def open_profile(path):
    """The profile; what the operating system declares where this machine's cannot be used."""
    try:
        return servet.Profile(path)
    except servet.Error:
        if path:
            raise
        return servet.Profile.declared()


def with_numpy(n, tile):
    cells = numpy.arange(n * n, dtype=numpy.int64).reshape(n, n)
    a, b, c = cells % 17, cells % 23, numpy.zeros((n, n), numpy.int64)
    for i in range(0, n, tile):
        for k in range(0, n, tile):
            for j in range(0, n, tile):
                c[i : i + tile, j : j + tile] += a[i : i + tile, k : k + tile] @ b[k : k + tile, j : j + tile]
    return c.tolist()


def with_lists(n, tile):
    a = [[(i * n + j) % 17 for j in range(n)] for i in range(n)]
    b = [[(i * n + j) % 23 for j in range(n)] for i in range(n)]
    c = [[0] * n for _ in range(n)]
    for i0 in range(0, n, tile):
        for k0 in range(0, n, tile):
            for i in range(i0, min(i0 + tile, n)):
                row = c[i]
                for k in range(k0, min(k0 + tile, n)):
                    factor, other = a[i][k], b[k]
                    for j in range(n):
                        row[j] += factor * other[j]
    return c


def timed(function, *arguments):
    begun = time.perf_counter()
    return function(*arguments), time.perf_counter() - begun


def main(path=None, n="100"):
    try:
        with open_profile(path) as machine:
            tile = tile_of(machine)
    except servet.Error as error:
        print(f"tile_size.py: {error.strerror}", file=sys.stderr)
        return 2
    multiply = with_numpy if numpy else with_lists
    tiled, tiled_s = timed(multiply, int(n), tile)
    plain, plain_s = timed(multiply, int(n), int(n))
    if tiled != plain:
        print("tile_size.py: WRONG", file=sys.stderr)
        return 1
    print(f"{n} x {n}: the same as without tiles, which takes {plain_s / tiled_s:.2f} times as long")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
