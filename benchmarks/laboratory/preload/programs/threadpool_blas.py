"""A pool of threads whose members call a threaded BLAS, which brings threads of its own."""
from multiprocessing.pool import ThreadPool

import numpy


def work(seed):
    a = numpy.random.default_rng(seed).random((300, 300))
    for _ in range(8):
        a = a @ a
        a /= abs(a).max()
    return float(a.sum())


with ThreadPool(2) as pool:
    print(f"{sum(pool.map(work, range(24))):.6g}")
