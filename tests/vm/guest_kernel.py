"""The guest's kernel: Debian's cloud kernel, downloaded by apt-get and unpacked into a cache folder, never installed."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

# In the order in which they must be loaded.
MODULES = ("virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_console "
           "fuse virtiofs overlay").split()
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
    """vmlinux and the modules of the package in `folder`. An ELF kernel starts without firmware and without
    decompressing itself under emulation, which would take 5 s."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as tree:
        subprocess.run(["dpkg-deb", "-x", package, tree], check=True)
        with open(glob.glob(tree + "/boot/vmlinuz-*")[0], "rb") as file:
            image = file.read()
        start = image.find(LZ4_LEGACY_MAGIC)
        kernel = output_of("lz4", "-dcf", input=image[start:]) if start > 0 else b""
        if not kernel.startswith(b"\x7fELF"):
            raise Missing("no guest kernel: %s is not compressed by lz4" % os.path.basename(package))
        with open(os.path.join(folder, "vmlinux"), "wb") as file:
            file.write(kernel)
        for module in MODULES:
            found = glob.glob("%s/lib/modules/*/kernel/**/%s.ko" % (tree, module), recursive=True)
            if not found:
                raise Missing("no guest kernel: no module %s in %s" % (module, os.path.basename(package)))
            shutil.copy(found[0], folder)


def kernel_folder():
    """The folder with vmlinux and the modules; fetched the first time."""
    final = cache_folder()
    if os.path.isdir(final):
        return final
    os.makedirs(os.path.dirname(final), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(final)) as work:
        new = os.path.join(work, "new")
        os.mkdir(new)
        unpack(download(work), new)
        try:
            os.rename(new, final)
        except OSError:  # another run was first
            if not os.path.isdir(final):
                raise
    return final
