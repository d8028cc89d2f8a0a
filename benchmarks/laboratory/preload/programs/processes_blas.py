"""A pool of processes whose members each bring a threaded BLAS."""
import multiprocessing

import numpy


def work(seed):
    a = numpy.random.default_rng(seed).random((300, 300))
    for _ in range(8):
        a = a @ a
        a /= abs(a).max()
    return float(a.sum())


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(f"{sum(pool.map(work, range(24))):.6g}")
