"""The guests' hardware. The usual one: 2 packages x 4 cores x 2 threads, two NUMA nodes in each package, L3 per package; a
small one that can sleep; and one of another architecture."""
import struct

PACKAGES, CORES, THREADS, NODES = 2, 4, 2, 4
CPUS = PACKAGES * CORES * THREADS
NODE_MEMORY_MIB = 512
# Of the SLIT: a node to itself, to the other node of its package, to the other package.
DISTANCE_SELF, DISTANCE_PACKAGE, DISTANCE_FAR = 10, 12, 21

# How the guest's kernel numbers the CPUs: SMT siblings adjacent; all cores before their second threads; neighbouring
# numbers in different packages, second threads last. All keep the boot CPU first, as the kernel does.
ORDERS = {
    "linear": lambda package, core, thread: (package, core, thread),
    "smtlast": lambda package, core, thread: (thread, package, core),
    "scattered": lambda package, core, thread: (thread, core, package),
}


def distance(one, other):
    if one == other:
        return DISTANCE_SELF
    per_package = NODES // PACKAGES
    return DISTANCE_PACKAGE if one // per_package == other // per_package else DISTANCE_FAR


def nodes_of(count, cpus):
    """QEMU's arguments for `count` nodes of equally many of the CPUs, each with memory of its own."""
    words = ["-m", "%dM" % (count * NODE_MEMORY_MIB)]
    for node in range(count):
        first = node * cpus // count
        last = (node + 1) * cpus // count - 1
        words += ["-object", "memory-backend-memfd,id=m%d,size=%dM,share=on" % (node, NODE_MEMORY_MIB),
                  "-numa", "node,nodeid=%d,memdev=m%d,cpus=%d-%d" % (node, node, first, last)]
    return words


class Pc:
    """What the guests of x86-64 have in common."""
    firmware_starts_kernel = False
    family, emulator, package, console = "x86_64", "qemu-system-x86_64", "qemu-system-x86", "ttyS0"
    list_libraries, ports = ["ldd"], "virtio-serial-pci"
    kernel_parameters = "mitigations=off tsc=reliable no_timer_check lpj=10000000 cpu_init_udelay=0"
    board = ["-M", "q35,smm=off,usb=off",
             "-cpu", "max,vendor=GenuineIntel,l3-cache=on"]  # as another vendor's, SMT would disappear


class Sleeper(Pc):
    has_own_root = True  # virtio-fs does not sleep
    firmware_starts_kernel = True

    def qemu_arguments(self):
        return ["-smp", "4", "-m", "1G"]


class Foreign:
    """Another architecture: cores without SMT, and caches of which the system says nothing or little. Arm: two packages, each a NUMA
    node, with two clusters of two cores; a processor that exists, without the pointer authentication that is slow to
    emulate. POWER: the same, with four cores in each and pages of 64 KiB. RISC-V: one node (of more, each has an interrupt
    controller, and Linux hears of the first one's alone)."""
    has_own_root, firmware_starts_kernel = True, False
    kernel_parameters = ""
    cpus = 8
    kinds = {
        "aarch64": ("qemu-system-arm", "ttyAMA0", ["-M", "virt,gic-version=3", "-cpu", "neoverse-n1"],
                    2, "sockets=2,clusters=2,cores=2", "/lib/ld-linux-aarch64.so.1", "virtio-serial-device"),
        "ppc64": ("qemu-system-ppc", "hvc0", ["-M", "pseries", "-cpu", "power9"],
                    2, "sockets=2,cores=4", "/lib64/ld64.so.2", "virtio-serial-pci"),
        "riscv64": ("qemu-system-misc", "ttyS0", ["-M", "virt"],
                    1, "sockets=1,cores=8", "/lib/ld-linux-riscv64-lp64d.so.1", "virtio-serial-device"),
    }

    def __init__(self, family):
        self.family, self.emulator = family, "qemu-system-" + family
        self.package, self.console, self.board, self.nodes, self.cores, loader, self.ports = self.kinds[family]
        self.list_libraries = [loader, "--list"]

    def qemu_arguments(self):
        return nodes_of(self.nodes, self.cpus) + ["-smp", "%d,%s,threads=1" % (self.cpus, self.cores)]


class Machine(Pc):
    has_own_root = False

    def __init__(self, order):
        places = [(p, c, t) for p in range(PACKAGES) for c in range(CORES) for t in range(THREADS)]
        self.numbering = sorted(range(CPUS), key=lambda cpu: ORDERS[order](*places[cpu]))

    def qemu_arguments(self):
        words = ["-smp", "%d,sockets=%d,cores=%d,threads=%d" % (CPUS, PACKAGES, CORES, THREADS)] + nodes_of(NODES, CPUS)
        for one in range(NODES):
            for other in range(NODES):
                words += ["-numa", "dist,src=%d,dst=%d,val=%d" % (one, other, distance(one, other))]
        return words

    def interrupt_table(self):
        """The ACPI table (MADT) of QEMU's q35 with the processors in the chosen order: Linux numbers CPUs by it.
        Layouts: ACPI specification 6.4, 5.2.12. All counts are powers of two, so the APIC ID is QEMU's CPU index."""
        body = struct.pack("<II", 0xFEE00000, 1)
        for cpu in self.numbering:
            body += struct.pack("<BBBBI", 0, 8, cpu, cpu, 1)  # local APIC, enabled
        body += struct.pack("<BBBBII", 1, 12, 0, 0, 0xFEC00000, 0)  # I/O APIC
        body += struct.pack("<BBBBIH", 2, 10, 0, 0, 2, 0)  # the timer's interrupt is on pin 2
        for interrupt in (5, 9, 10, 11):
            body += struct.pack("<BBBBIH", 2, 10, 0, interrupt, interrupt, 0xD)  # active high, level-triggered
        body += struct.pack("<BBBHB", 4, 6, 0xFF, 0, 1)  # local NMI of all processors
        header = struct.pack("<4sIBB6s8sI4sI", b"APIC", 36 + len(body), 1, 0, b"BOCHS ", b"BXPC    ", 2, b"BXPC", 1)
        table = bytearray(header + body)
        table[9] = -sum(table) & 0xFF  # checksum
        return bytes(table)


class Tiered(Machine):
    """The same processors on two nodes, a package each, and beside each node one of memory alone that the firmware (HMAT) says is
    three times as fast: nodes 2 and 3."""
    board = [words.replace("q35,", "q35,hmat=on,") for words in Pc.board]
    # GB/s and ns by the number of the memory's node and whether it is that package's.
    bandwidth = {(False, True): 20, (False, False): 10, (True, True): 60, (True, False): 10}
    latency = {True: 100, False: 200}

    def __init__(self):
        super().__init__("linear")

    def qemu_arguments(self):
        words = ["-smp", "%d,sockets=%d,cores=%d,threads=%d" % (CPUS, PACKAGES, CORES, THREADS),
                 "-m", "%dM" % (2 * PACKAGES * NODE_MEMORY_MIB)]
        for node in range(2 * PACKAGES):
            package = node % PACKAGES
            cpus = ",cpus=%d-%d" % (package * CPUS // PACKAGES, (package + 1) * CPUS // PACKAGES - 1) if node == package else ""
            words += ["-object", "memory-backend-memfd,id=m%d,size=%dM,share=on" % (node, NODE_MEMORY_MIB),
                      "-numa", "node,nodeid=%d,memdev=m%d,initiator=%d%s" % (node, node, package, cpus)]
        for package in range(PACKAGES):
            for node in range(2 * PACKAGES):
                near = node % PACKAGES == package
                start = "hmat-lb,initiator=%d,target=%d,hierarchy=memory,data-type=access-" % (package, node)
                words += ["-numa", start + "latency,latency=%d" % self.latency[near],
                          "-numa", start + "bandwidth,bandwidth=%dG" % self.bandwidth[node >= PACKAGES, near]]
        return words
