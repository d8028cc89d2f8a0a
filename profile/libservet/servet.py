"""What Servet knows of this machine, for Python programs that tune themselves.

    import servet

    with servet.Profile() as machine:
        l2 = machine.cache(2, machine.pus[0])
        size = l2 and (l2.bytes or (l2.interval or [0])[0])
        tile = int((size / l2.sharers / (3 * 8)) ** 0.5) if size else 64

Nothing is compiled: the module asks libservet.so.1 (servet(3) has every figure's unit and source). What was not measured,
or is not there, is None; what cannot be read is a servet.Error, an OSError that names the file and what is wrong with it.
PU numbers are OS indices on a single computer; in a cluster's profile they count through the nodes.
"""

import ctypes
import errno
import functools
import os
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import NamedTuple, Optional, Tuple

__all__ = ["Bsp", "Cache", "Device", "Error", "Profile", "Quality", "Transfer", "Worth", "version"]

# Where the build put it: for a prefix that the dynamic linker does not search.
_INSTALLED = "@LIBDIR@/libservet.so.1"
_VERSION = "@VERSION@"
_ORIGINS = ("declared", "measured", "inferred")
_KINDS = ("gpu", "nic", "disk")


class Error(OSError):
    """What the library refused; `errno` and `strerror` say what and why."""


class Quality(NamedTuple):
    """How sure a figure is."""

    origin: str  # "declared", "measured" or "inferred" from an equivalent thing that was
    repetitions: Optional[int]  # measurements behind it
    spread: Optional[float]  # relative: (third quartile - first quartile) / median of them


class Cache(NamedTuple):
    """The data or unified cache of one level that one PU uses."""

    level: int
    bytes: Optional[int]  # effective, all sharers together, None: not settled; declared where nothing was measured
    declared_bytes: Optional[int]
    line_bytes: Optional[int]
    ways: Optional[int]
    sharers: int  # PUs that use the same one, this one included
    quality: Optional[Quality]
    interval: Optional[Tuple[int, int]]  # least and largest size that explain the measurement about as well


class Bsp(NamedTuple):
    """Parameters of a superstep; flops are a unit of time: divide by r_flop_per_s for seconds."""

    processors: int
    r_flop_per_s: float
    g_flops: float
    g_packets_flops: Optional[float]
    l_flops: float
    t0_flops: Optional[float]


class Device(NamedTuple):
    """A GPU (or one die of it), a network card or a disk."""

    kind: str  # "gpu", "nic" or "disk"
    name: str
    bus_id: Optional[str]
    uuid: Optional[str]  # of a GPU, as CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES take it
    number: Optional[int]  # of a GPU: what its runtime counts it by
    numa_node: Optional[int]  # None: none, or several
    card: int  # dies and ports of one card have the same


class Transfer(NamedTuple):
    """Copies between a device and pinned memory of one NUMA node."""

    to_device_bytes_per_s: float
    from_device_bytes_per_s: float
    seconds: float  # of the smallest copy, until it is known to be done
    spread: Optional[float]  # of those measurements, relative


class Worth(NamedTuple):
    """The workers that are worth having on one memory."""

    pus: list  # as many as get 95 % of the bandwidth that any number gets
    bytes_per_s: float  # that they get together
    most_bytes_per_s: float


class _Error(Structure):
    _fields_ = [("text", c_char * 512)]


class _Quality(Structure):
    _fields_ = [("origin", c_int), ("repetitions", c_uint32), ("spread", c_double)]


class _Bsp(Structure):
    _fields_ = [("processors", c_uint32)] + [
        (name, c_double) for name in ("r_flop_per_s", "g_flops", "g_packets_flops", "l_flops", "t0_flops")
    ]


class _MapRequest(Structure):
    _fields_ = [
        ("priority", c_int),
        ("ranks", c_uint32),
        ("threads", POINTER(c_uint32)),
        ("allowed", POINTER(c_uint32)),
        ("allowed_count", c_size_t),
        ("taken", POINTER(c_uint32)),
        ("taken_count", c_size_t),
        ("one_by_one", c_int),
    ]


class _Device(Structure):
    _fields_ = [
        ("kind", c_int),
        ("name", c_char_p),
        ("bus_id", c_char_p),
        ("uuid", c_char_p),
        ("number", c_int64),
        ("numa_node", c_int64),
        ("card", c_uint32),
    ]


class _Transfer(Structure):
    _fields_ = [(name, c_double) for name in Transfer._fields]


class _Worth(Structure):
    _fields_ = [
        ("workers", c_uint32),
        ("bytes_per_s", c_double),
        ("most_bytes_per_s", c_double),
        ("measured_workers", c_uint32),
    ]


_PUS = POINTER(c_uint32)
# Result and arguments of every function that is called; the profile comes first where the name does not say otherwise.
_FUNCTIONS = {
    "version": (c_char_p, []),
    "profile_open": (c_int, [c_char_p, POINTER(c_void_p), POINTER(_Error)]),
    "topology_open": (c_int, [POINTER(c_void_p), POINTER(_Error)]),
    "profile_close": (None, [c_void_p]),
    "measured": (c_int, [c_void_p]),
    "node_count": (c_uint32, [c_void_p]),
    "pus": (c_size_t, [c_void_p, _PUS, c_size_t]),
    "cache_levels": (c_uint32, [c_void_p]),
    "cache_bytes": (c_uint64, [c_void_p, c_uint32, c_uint32]),
    "cache_line_bytes": (c_uint32, [c_void_p, c_uint32, c_uint32]),
    "cache_declared_bytes": (c_uint64, [c_void_p, c_uint32, c_uint32]),
    "cache_interval": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(c_uint64), POINTER(c_uint64)]),
    "cache_ways": (c_uint32, [c_void_p, c_uint32, c_uint32]),
    "tlb_bytes": (c_uint64, [c_void_p, c_uint32, c_uint64, c_uint32]),
    "cache_shared": (c_int, [c_void_p, c_uint32, c_uint32, c_uint32]),
    "cache_sharers": (c_uint32, [c_void_p, c_uint32, c_uint32]),
    "memory_bandwidth": (c_double, [c_void_p, c_uint32, c_uint32]),
    "numa_bandwidth": (c_double, [c_void_p, c_uint32, c_uint32]),
    "numa_seconds": (c_double, [c_void_p, c_uint32, c_uint32]),
    "numa_node": (c_int64, [c_void_p, c_uint32]),
    "overhead_level": (c_int, [c_void_p, c_uint32, c_uint32]),
    "overhead_bandwidth": (c_double, [c_void_p, c_uint32, c_uint32]),
    "overhead_levels": (c_uint32, [c_void_p]),
    "level_bandwidth": (c_double, [c_void_p, c_uint32, c_uint32, c_uint32]),
    "numa_nodes": (c_size_t, [c_void_p, c_uint32, _PUS, c_size_t]),
    "devices_near": (c_size_t, [c_void_p, c_uint32, c_int, POINTER(_Device), c_size_t]),
    "device_transfer": (c_int, [c_void_p, c_uint32, c_char_p, c_uint32, POINTER(_Transfer)]),
    "kernel_bandwidth": (c_double, [c_void_p, c_uint32, c_int, POINTER(c_uint32)]),
    "kernel_quality": (c_int, [c_void_p, c_uint32, c_int, POINTER(_Quality)]),
    "numa_memory_bytes": (c_uint64, [c_void_p, c_uint32, c_uint32]),
    "pair_bandwidth": (c_double, [c_void_p, c_uint32, c_uint32]),
    "pair_seconds": (c_double, [c_void_p, c_uint32, c_uint32, POINTER(c_uint64)]),
    "line_seconds": (c_double, [c_void_p, c_uint32, c_uint32]),
    "line_quality": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(_Quality)]),
    "message_seconds": (c_double, [c_void_p, c_uint32, c_uint32, c_uint64]),
    "messages_slower": (c_double, [c_void_p, c_uint32, c_uint32, c_uint32]),
    "message_layer": (c_int, [c_void_p, c_uint32, c_uint32]),
    "cache_quality": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(_Quality)]),
    "sharing_quality": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(_Quality)]),
    "memory_quality": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(_Quality)]),
    "numa_quality": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(_Quality)]),
    "message_quality": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(_Quality)]),
    "condition": (c_char_p, [c_void_p, c_char_p]),
    "rank_order": (c_int, [c_void_p, _PUS, c_uint32, POINTER(c_double), _PUS, POINTER(_Error)]),
    "map": (c_int, [c_void_p, POINTER(_MapRequest), _PUS, POINTER(_Error)]),
    "workers_worth": (c_int, [c_void_p, c_uint32, c_int, _PUS, POINTER(_Worth), POINTER(_Error)]),
    "messages_worth": (c_uint32, [c_void_p, c_uint32, c_uint32]),
    "quota_workers": (c_uint32, []),
    "bsp_parameters": (c_int, [c_void_p, c_char_p, c_uint32, POINTER(_Bsp)]),
    "bsp_cost": (c_double, [c_void_p, c_uint32, c_double, c_double]),
}


@functools.lru_cache(maxsize=None)
def _load():
    library = None
    for name in ("libservet.so.1", _INSTALLED):
        try:
            library = library or ctypes.CDLL(name)
        except OSError:
            pass
    if not library:
        raise Error(errno.ENOENT, f"libservet.so.1: expected it in LD_LIBRARY_PATH or as {_INSTALLED}")
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, "servet_" + name, None)
        if function:
            function.restype, function.argtypes = result, arguments
    return library


def _call(name, *arguments):
    function = getattr(_load(), "servet_" + name, None)
    if not function:
        raise Error(errno.ENOSYS, f"libservet {version()} has no servet_{name}(), which servet.py {_VERSION} asks for")
    return function(*arguments)


def _checked(status, error):
    if status < 0:
        raise Error(-status, error.text.decode(errors="replace"))


def _numbers(values):
    return (c_uint32 * len(values))(*values) if values is not None else None


def version():
    """The version of the library."""
    return _call("version").decode()


def quota_workers():
    """Workers that a quota of the control groups lets run at a time; None: there is no quota."""
    return _call("quota_workers") or None


class Profile:
    """The profile in a file; without one this machine's, or else what the operating system declares."""

    SCOPES = {"node": -2, "package": -1}
    KERNELS = {"nt_copy": 0, "copy": 1, "read": 2, "triad": 3}

    def __init__(self, path=None):
        self._handle, error = c_void_p(), _Error()
        name = None if path is None else os.fsencode(path)
        _checked(_call("profile_open", name, byref(self._handle), byref(error)), error)

    @classmethod
    def declared(cls):
        """What the operating system declares of this machine, as if there were no profile."""
        self, error = cls.__new__(cls), _Error()
        self._handle = c_void_p()
        _checked(_call("topology_open", byref(self._handle), byref(error)), error)
        return self

    def close(self):
        """Ends the use of the profile; closing twice does nothing."""
        handle, self._handle = self._handle, None
        if handle:
            _call("profile_close", handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _ask(self, name, *arguments):
        if not self._handle:
            raise ValueError("the profile is closed")
        return _call(name, self._handle, *arguments)

    def _quality(self, name, *arguments):
        out = _Quality()
        if self._ask(name + "_quality", *arguments, byref(out)) < 0:
            return None
        return Quality(_ORIGINS[out.origin], out.repetitions or None, out.spread if out.spread >= 0 else None)

    # -- the machine --

    @property
    def measured(self):
        """Were the figures measured, or does the operating system declare them?"""
        return bool(self._ask("measured"))

    @property
    def nodes(self):
        """Number of nodes."""
        return self._ask("node_count")

    @property
    def pus(self):
        """All PU numbers, ascending."""
        room = (c_uint32 * self._ask("pus", None, 0))()
        self._ask("pus", room, len(room))
        return list(room)

    def condition(self, name):
        """What held while measuring ("busy", "incomplete" …, see servet-profile(5)): its text, or None."""
        text = self._ask("condition", name.encode())
        return None if text is None else text.decode(errors="replace")

    # -- caches --

    def _cache_interval(self, level, pu):
        low, high = c_uint64(), c_uint64()
        if self._ask("cache_interval", level, pu, byref(low), byref(high)) < 0:
            return None
        return low.value, high.value

    def cache(self, level, pu):
        """The cache of that level that `pu` uses, a Cache, or None."""
        sharers = self._ask("cache_sharers", level, pu)
        if not sharers:
            return None
        return Cache(
            level,
            self._ask("cache_bytes", level, pu) or None,
            self._ask("cache_declared_bytes", level, pu) or None,
            self._ask("cache_line_bytes", level, pu) or None,
            self._ask("cache_ways", level, pu) or None,
            sharers,
            self._quality("cache", level, pu),
            self._cache_interval(level, pu),
        )

    def caches(self, pu):
        """The caches of `pu`, nearest first."""
        found = (self.cache(level, pu) for level in range(1, self._ask("cache_levels") + 1))
        return [cache for cache in found if cache]

    def cache_shared(self, level, pu_a, pu_b):
        """Do the two share one cache of that level?"""
        return bool(self._ask("cache_shared", level, pu_a, pu_b))

    def sharing_quality(self, level, pu):
        """How sure it is who shares the cache, a Quality, or None."""
        return self._quality("sharing", level, pu)

    def tlb_bytes(self, level, page_bytes, pu):
        """Bytes of memory in such pages that level 1, 2 … of the TLB of `pu` reaches, or None."""
        return self._ask("tlb_bytes", level, page_bytes, pu) or None

    # -- memory --

    def memory_bandwidth(self, pu, workers=1):
        """Bytes per second that so many workers around `pu` get together, read and written, or None."""
        return self._ask("memory_bandwidth", pu, workers) or None

    def memory_quality(self, pu, workers=1):
        """How sure that is, a Quality, or None."""
        return self._quality("memory", pu, workers)

    def overhead_level(self, pu_a, pu_b):
        """Memory overhead level of the two, 0 the worst; None: they do not disturb one another, or not known."""
        level = self._ask("overhead_level", pu_a, pu_b)
        return None if level < 0 else level

    @property
    def overhead_levels(self):
        """Number of memory overhead levels of the node that has most; they are numbered from 0, the worst."""
        return self._ask("overhead_levels")

    def level_bandwidth(self, level, pu, workers):
        """Bytes per second that so many workers get together in the group of that overhead level around `pu`, or None."""
        return self._ask("level_bandwidth", level, pu, workers) or None

    def overhead_bandwidth(self, pu_a, pu_b):
        """Bytes per second that each of the two gets while both copy, or None."""
        return self._ask("overhead_bandwidth", pu_a, pu_b) or None

    def kernel_bandwidth(self, pu, kernel="triad"):
        """Bytes per second of "nt_copy", "copy", "read" or STREAM's "triad" by one PU alone, or None: not measured."""
        return self._ask("kernel_bandwidth", pu, self.KERNELS[kernel], None) or None

    def kernel_together(self, pu, kernel="triad"):
        """The same by all PUs of a NUMA node together, and how many those are, or None: not measured."""
        workers = c_uint32(0)
        rate = self._ask("kernel_bandwidth", pu, self.KERNELS[kernel], byref(workers))
        return (rate, workers.value) if rate else None

    def kernel_quality(self, pu, kernel="triad"):
        """How sure both are, a Quality, or None."""
        return self._quality("kernel", pu, self.KERNELS[kernel])

    def numa_memory_bytes(self, pu, node):
        """Bytes of memory of that NUMA node of the node that `pu` is on, or None: not said."""
        return self._ask("numa_memory_bytes", pu, node) or None

    def pair_bandwidth(self, pu_a, pu_b):
        """Bytes per second that the slower of these very two got while both copied, or None: not measured."""
        return self._ask("pair_bandwidth", pu_a, pu_b) or None

    def numa_nodes(self, pu):
        """The operating system's numbers of all NUMA nodes of the node that `pu` is on, those without PUs too."""
        room = (c_uint32 * self._ask("numa_nodes", pu, None, 0))()
        self._ask("numa_nodes", pu, room, len(room))
        return list(room)

    def numa_node(self, pu):
        """The operating system's number of the NUMA node that `pu` is local to, or None."""
        node = self._ask("numa_node", pu)
        return None if node < 0 else node

    def devices_near(self, pu, kind="gpu"):
        """Devices ("gpu", "nic" or "disk") that `pu` is near to, a list of Device, the nearest first."""
        room = (_Device * self._ask("devices_near", pu, _KINDS.index(kind), None, 0))()
        self._ask("devices_near", pu, _KINDS.index(kind), room, len(room))
        known = [[x.decode() if isinstance(x, bytes) else x for x in (d.name, d.bus_id, d.uuid)] for d in room]
        numbers = [[None if n < 0 else n for n in (d.number, d.numa_node)] for d in room]
        return [Device(_KINDS[d.kind], *k, *n, d.card) for d, k, n in zip(room, known, numbers)]

    def device_transfer(self, pu, device, node):
        """Copies between that device and memory of that NUMA node, both of the node of `pu`, a Transfer; None: not measured."""
        row = _Transfer()
        if self._ask("device_transfer", pu, device.encode(), node, byref(row)) < 0:
            return None
        known = [getattr(row, name) for name in Transfer._fields]
        return Transfer(*known[:3], None if row.spread < 0 else row.spread)

    def numa_bandwidth(self, pu, node):
        """Bytes per second that one worker on `pu` copies within the memory of that NUMA node, or None."""
        return self._ask("numa_bandwidth", pu, node) or None

    def numa_seconds(self, pu, node):
        """Seconds of a load on `pu` from that NUMA node that misses every cache, or None."""
        return self._ask("numa_seconds", pu, node) or None

    def numa_quality(self, pu, node):
        """How sure both are, a Quality, or None."""
        return self._quality("numa", pu, node)

    # -- messages --

    def message_seconds(self, pu_a, pu_b, size_bytes):
        """Seconds of a message of that size, one way, or None."""
        return self._ask("message_seconds", pu_a, pu_b, size_bytes) or None

    def pair_seconds(self, pu_a, pu_b):
        """Seconds of a message between these very two PUs and its size in bytes, or None: not measured."""
        size_bytes = c_uint64(0)
        seconds = self._ask("pair_seconds", pu_a, pu_b, byref(size_bytes))
        return (seconds, size_bytes.value or None) if seconds else None

    def line_seconds(self, pu_a, pu_b):
        """Seconds of one cache line from one to the other, one way (core-to-core latency), or None."""
        return self._ask("line_seconds", pu_a, pu_b) or None

    def line_quality(self, pu_a, pu_b):
        """How sure that is, a Quality, or None."""
        return self._quality("line", pu_a, pu_b)

    def messages_slower(self, pu_a, pu_b, messages):
        """How many times as long each of so many messages at once takes on the layer of the two, or None."""
        return self._ask("messages_slower", pu_a, pu_b, messages) or None

    def message_layer(self, pu_a, pu_b):
        """Communication layer of the two, 0 the fastest, or None."""
        layer = self._ask("message_layer", pu_a, pu_b)
        return None if layer < 0 else layer

    def message_quality(self, pu_a, pu_b):
        """How sure it is, a Quality, or None."""
        return self._quality("message", pu_a, pu_b)

    # -- placing --

    def map(self, ranks, threads=None, *, communication=False, allowed=None, taken=None):
        """PUs for so many ranks, a list for each, as servet-map(1) chooses them.

        `threads`: of each rank, a number or a list; `communication`: latency before bandwidth and caches; `allowed`,
        `taken`: PUs that may be used, and that other programs hold.
        """
        each = [1] * ranks if threads is None else [threads] * ranks if isinstance(threads, int) else list(threads)
        if len(each) != ranks:
            raise ValueError(f"expected threads for {ranks} ranks, got {len(each)}")
        request, error, chosen = _MapRequest(int(communication), ranks), _Error(), (c_uint32 * max(sum(each), 1))()
        request.threads = _numbers(each) if threads is not None else None
        for name, value in (("allowed", allowed), ("taken", taken)):
            if value is not None:
                setattr(request, name, _numbers(list(value)))
                setattr(request, name + "_count", len(value))
        _checked(self._ask("map", byref(request), chosen, byref(error)), error)
        begins = [sum(each[:i]) for i in range(ranks)]
        return [list(chosen[begin : begin + count]) for begin, count in zip(begins, each)]

    def workers_worth(self, pu, scope="node"):
        """How many workers are worth having, and where, a Worth: on the "node" or the "package" of `pu`, or in its group of
        a memory overhead level (a number)."""
        worth, error, pus = _Worth(), _Error(), (c_uint32 * len(self.pus))()
        scope = self.SCOPES.get(scope, scope)
        _checked(self._ask("workers_worth", pu, scope, pus, byref(worth), byref(error)), error)
        return Worth(list(pus[: worth.workers]), worth.bytes_per_s, worth.most_bytes_per_s)

    def messages_worth(self, pu_a, pu_b):
        """Messages at a time that are worth sending over the layer of the two: more only wait for one another; or None."""
        return self._ask("messages_worth", pu_a, pu_b) or None

    def rank_order(self, pus, traffic=None):
        """New numbers for ranks that sit on these PUs, so that who talks much is near; `traffic`: rows of numbers, what new
        rank i sends to new rank j; without it ranks that follow each other talk."""
        cells = None if traffic is None else [cell for row in traffic for cell in row]
        if cells is not None and len(cells) != len(pus) ** 2:
            raise ValueError(f"expected {len(pus)} rows of {len(pus)} numbers")
        order, error = (c_uint32 * max(len(pus), 1))(), _Error()
        matrix = None if cells is None else (c_double * len(cells))(*cells)
        _checked(self._ask("rank_order", _numbers(pus), len(pus), matrix, order, byref(error)), error)
        return list(order[: len(pus)])

    # -- supersteps --

    def bsp(self, processors, backend=None):
        """BSP parameters of so many processors, a Bsp, or None; backend "threads" or "mpi"."""
        out = _Bsp()
        if self._ask("bsp_parameters", backend and backend.encode(), processors, byref(out)) < 0:
            return None
        return Bsp(
            out.processors, out.r_flop_per_s, out.g_flops, out.g_packets_flops or None, out.l_flops, out.t0_flops or None
        )

    def bsp_seconds(self, processors, work_flops, h_words):
        """Seconds of a superstep: each computes at most so much and sends and receives at most so many words; or None."""
        parameters = self.bsp(processors)
        flops = self._ask("bsp_cost", processors, work_flops, h_words)
        return flops / parameters.r_flop_per_s if parameters and flops else None
