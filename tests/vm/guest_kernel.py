"""The guest's kernel: Debian's cloud kernel, downloaded by apt-get and unpacked into a cache folder, never installed.
That of another architecture lies where "packaging/cross/foreign get ARCH FOLDER guest" puts it; modules that are not
there are built in.

vmlinux   starts without firmware and without decompressing itself, which would take 5 s under emulation
vmlinuz   for machines that sleep: the kernel finds its way back from S3 only when it was started by the firmware
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

# In the order in which they must be loaded.
CONSOLE_MODULES = "virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_console".split()
FOREIGN_MODULES = CONSOLE_MODULES + ["virtio_mmio"]
MODULES = CONSOLE_MODULES + "fuse virtiofs overlay".split()
KERNEL, FIRMWARE_KERNEL = "vmlinux", "vmlinuz"
FOREIGN_FOLDER = "/usr/lib/servet-guest"
META_PACKAGE = "linux-image-cloud-amd64"
DOWNLOAD_LIMIT_SECONDS = 120
LZ4_LEGACY_MAGIC = b"\x02\x21\x4c\x18"


class Missing(Exception):
    """What this machine lacks to run a guest."""


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "servet", "guest-kernel")


def output_of(*words, **options):
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=DOWNLOAD_LIMIT_SECONDS,
                              **options).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""


def download(folder):
    """The package's file in `folder`."""
    listed = output_of("apt-cache", "depends", META_PACKAGE).decode()
    package = re.search(r"Depends: (linux-image-\S+)", listed)
    if not package:
        raise Missing("no guest kernel: apt-cache does not know %s" % META_PACKAGE)
    output_of("apt-get", "-q", "download", package[1], cwd=folder)
    files = glob.glob(os.path.join(folder, "*.deb"))
    if not files:
        raise Missing("no guest kernel: apt-get cannot download %s" % package[1])
    return files[0]


def unpack(package, folder):
    """Both kernels and the modules of the package in `folder`."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as tree:
        subprocess.run(["dpkg-deb", "-x", package, tree], check=True)
        with open(glob.glob(tree + "/boot/vmlinuz-*")[0], "rb") as file:
            image = file.read()
        start = image.find(LZ4_LEGACY_MAGIC)
        kernel = output_of("lz4", "-dcf", input=image[start:]) if start > 0 else b""
        if not kernel.startswith(b"\x7fELF"):
            raise Missing("no guest kernel: %s is not compressed by lz4" % os.path.basename(package))
        for name, data in ((KERNEL, kernel), (FIRMWARE_KERNEL, image)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        for module in MODULES:
            found = glob.glob("%s/lib/modules/*/kernel/**/%s.ko" % (tree, module), recursive=True)
            if not found:
                raise Missing("no guest kernel: no module %s in %s" % (module, os.path.basename(package)))
            shutil.copy(found[0], folder)


def is_complete(folder):
    return all(os.path.exists(os.path.join(folder, name))
               for name in [KERNEL, FIRMWARE_KERNEL] + [module + ".ko" for module in MODULES])


def foreign_folder():
    """That of the namespace which `foreign in` opened."""
    if not os.path.exists(os.path.join(FOREIGN_FOLDER, KERNEL)):
        raise Missing("no guest kernel: expected one of \"packaging/cross/foreign get ARCH FOLDER guest\"")
    return FOREIGN_FOLDER


def kernel_folder():
    """The folder with the kernels and the modules; fetched the first time, or when an older one lacks something."""
    final = cache_folder()
    if is_complete(final):
        return final
    os.makedirs(os.path.dirname(final), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(final)) as work:
        new = os.path.join(work, "new")
        os.mkdir(new)
        unpack(download(work), new)
        if os.path.isdir(final) and not is_complete(final):
            os.rename(final, os.path.join(work, "old"))
        try:
            os.rename(new, final)
        except OSError:  # another run was first
            if not is_complete(final):
                raise
    return final
