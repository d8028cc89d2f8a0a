"""A pool of threads that compress and hash outside the interpreter's lock."""
import hashlib
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

with open(sys.argv[1], "rb") as file:
    data = file.read(3 << 20)
parts = [data[i : i + (64 << 10)] for i in range(0, len(data), 64 << 10)]
with ThreadPoolExecutor(2) as pool:
    packed = pool.map(lambda part: zlib.compress(part, 6), parts)
    print(hashlib.sha256(b"".join(packed)).hexdigest())
