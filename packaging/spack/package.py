# Spack recipe. In a repository of your own: packages/servet/package.py; `spack dev-build servet@main` builds a checkout.
from spack.package import *


class Servet(MesonPackage):
    """Measures a multicore machine or cluster, and places the threads and MPI ranks of
    unmodified programs by what was measured."""

    license("BSD-3-Clause")

    version("main", branch="main")
    version("1.0.0", tag="v1.0.0")

    variant("mpi", default=True, description="Probes of messages, clusters and BSP parameters")
    variant("bench", default=True, description="servet-bench, which says whether placing a program helps")
    variant("tests", default=False, description="Build the test suites")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2.5:")
    depends_on("numactl")
    depends_on("jansson@2.12:")
    depends_on("mpi", when="+mpi")
    depends_on("check@0.15:", type="build", when="+tests")

    def meson_args(self):
        enabled = {True: "enabled", False: "disabled"}
        return [
            f"-Dmpi={enabled[self.spec.satisfies('+mpi')]}",
            f"-Dtests={str(self.spec.satisfies('+tests')).lower()}",
            f"-Dbenchmarks={str(self.spec.satisfies('+bench')).lower()}",
        ]
