#!/usr/bin/env python3
"""Does the Python module give the library's answers as plain objects, and do both modules know every function of the header?

usage: module.py HEADER FORTRAN_MODULE FIXTURES EXAMPLE
"""

import errno
import math
import os
import re
import subprocess
import sys

import servet

header, fortran, fixtures, example = sys.argv[1:]
NEHALEM = os.path.join(fixtures, "nehalem-2-nodes.json")


def refused(call, kind=servet.Error):
    """The error that the call ends with."""
    try:
        answer = call()
    except kind as error:
        return error
    raise AssertionError(f"{answer} where an error was expected")


def complete():
    """Every function of the header is in both modules, with as many arguments."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    declared = re.findall(r"^[a-z_][\w *]*?\b(servet_\w+)\(([^;{]*)\);", text, re.MULTILINE)
    functions = {name: 0 if arguments == "void" else arguments.count(",") + 1 for name, arguments in declared}
    assert len(functions) > 30, functions
    known = {"servet_" + name: len(arguments) for name, (_, arguments) in servet._FUNCTIONS.items()}
    for name, count in functions.items():
        assert known.get(name) == count, f"servet.py: {name}() takes {count} arguments, not {known.get(name)}"
    with open(fortran, encoding="utf-8") as file:
        module = file.read()
    listed = dict(re.findall(r"(servet_\w+)\(([^)]*)\) bind\(c\)", module))
    for name, count in functions.items():
        assert name in listed, f"servet.f90: no {name}()"
        assert (listed[name].count(",") + 1 if listed[name] else 0) == count, f"servet.f90: {name}() takes {count} arguments"
    # Numbers, lists, what may be left out, and what a request begins as.
    for line in (
        "integer(c_int64_t), intent(inout), optional :: low_bytes",
        "integer(c_int32_t), intent(inout), optional :: workers",
        "real(c_double), intent(in), optional :: traffic(*)",
        "character(kind=c_char), intent(in), optional :: backend(*)",
        "character(kind=c_char), intent(in) :: device(*)",
        "type(servet_quality), intent(inout) :: out",
        "type(c_ptr), intent(out) :: profile",
        "integer(c_int32_t) :: ranks = 1",
        "integer(c_int), parameter :: servet_measured_here = 1",
    ):
        assert f" {line}\n" in module, f"servet.f90: no {line}"


def answers():
    with servet.Profile(NEHALEM) as machine:
        assert machine.measured and machine.nodes == 2 and machine.pus == list(range(16))
        assert repr(machine) == "<servet.Profile, measured: nodes 2, PUs 16>", machine
        l2 = machine.cache(2, 9)
        assert (l2.bytes, l2.sharers, l2.line_bytes) == (256 << 10, 1, 64), l2
        assert l2.quality == ("declared", None, None) and l2.ways == 8, l2  # from a publication
        assert [cache.level for cache in machine.caches(0)] == [1, 2, 3]
        assert machine.cache(4, 0) is None and machine.cache(1, 99) is None
        assert math.isclose(machine.memory_bandwidth(3), 9e9)
        assert machine.overhead_levels == 1 and math.isclose(machine.level_bandwidth(0, 3, 2), 12e9)
        assert machine.level_bandwidth(1, 3, 2) is None and machine.numa_node(3) in machine.numa_nodes(3)
        assert math.isclose(machine.message_seconds(0, 8, 32768), 6.4e-5)
        assert (machine.message_layer(0, 7), machine.message_layer(0, 8), machine.message_layer(3, 3)) == (0, 1, None)
        assert machine.numa_seconds(0, 77) is None and machine.bsp(4) is None and machine.bsp_seconds(4, 1, 1) is None
        order = machine.rank_order([0, 8, 1, 9])
        assert sorted(order) == [0, 1, 2, 3]
        assert machine.rank_order([0, 1], [[0, 1], [1, 0]]) == [0, 1]
    refused(lambda: machine.measured, ValueError)  # it is closed
    with servet.Profile(os.path.join(fixtures, "every-field.json")) as machine:
        assert machine.memory_quality(machine.pus[0]).origin == "measured"
        gpu, = machine.devices_near(3)
        assert gpu == ("gpu", "cuda1", "0000:c1:00.0", "GPU-7", 1, 2, 0), gpu
        assert machine.device_transfer(3, gpu.name, 2) == (26.5e9, 13.25e9, 7.5e-6, 0.125)
        assert machine.device_transfer(3, gpu.name, 0) is None and machine.device_transfer(3, "cuda", 2) is None
        assert machine.devices_near(9) == [] and machine.devices_near(9, "nic")[0].numa_node is None
        assert machine.cache(1, machine.pus[0]).quality == ("inferred", 5, 0.25)
        assert machine.cache(1, machine.pus[0]).interval == (1, 2)
    with servet.Profile(os.path.join(fixtures, "cartesius-bsp.json")) as machine:
        bsp = machine.bsp(24)
        assert bsp.processors == 24 and bsp.g_flops > 0
        assert math.isclose(machine.bsp_seconds(24, 1e9, 1e3), (1e9 + 1e3 * bsp.g_flops + bsp.l_flops) / bsp.r_flop_per_s)


def placing():
    with servet.Profile(NEHALEM) as machine:
        placed = machine.map(2, 4)
        assert [len(pus) for pus in placed] == [4, 4] and len({pu for pus in placed for pu in pus}) == 8, placed
        assert machine.map(3, allowed=[4, 5, 6], communication=True) and set(sum(machine.map(2, taken=[0]), [])) & {0} == set()
        assert 1 <= len(machine.workers_worth(0).pus) <= 8
        for threads in (0, [1, 0]):  # as servet-map -t 0
            error = refused(lambda: machine.map(2, threads))
            assert "expected at least 1" in error.strerror, error


def refusals():
    machine = servet.Profile(NEHALEM)
    machine.close()
    assert repr(machine) == "<servet.Profile, closed>", machine
    for path, code, word in ((fixtures + "/none.json", errno.ENOENT, "none.json"), (header, errno.EINVAL, "not JSON")):
        error = refused(lambda: servet.Profile(path))
        assert error.errno == code and word in error.strerror, error
    error = refused(lambda: servet._call("of_a_later_release"))
    text = f"libservet {servet.version()} has no servet_of_a_later_release(), which servet.py {servet._VERSION} asks for"
    assert error.strerror == text, error


def example_runs():
    done = subprocess.run([sys.executable, example, NEHALEM], capture_output=True, text=True)
    assert done.returncode == 0 and "shared by 1: tile 104\n" in done.stdout, done
    done = subprocess.run([sys.executable, example, "/nonexistent.json"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "tile_size.py: /nonexistent.json: No such file or directory\n", done


complete()
answers()
refusals()
example_runs()
if hasattr(servet._load(), "servet_map"):
    placing()
