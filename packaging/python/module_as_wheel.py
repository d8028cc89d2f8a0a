"""Makes a wheel of profile/libservet/servet.py.in (PEP 517 and 427), with nothing but Python itself.

The module and the release are those of the sources around this folder. `-C libdir=FOLDER` (pip 23.1) says where
libservet.so.1 is, if neither the dynamic linker nor pkg-config finds it.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))
_PROFILE = os.path.join(_ROOT, "profile")

sys.path.insert(0, os.path.join(_PROFILE, "libservet"))
sys.dont_write_bytecode = True
from bindings import bindings  # noqa: E402


def _text(*path):
    with open(os.path.join(_ROOT, *path), encoding="utf-8") as file:
        return file.read()


def _version():
    return re.search(r"^  version: '([^']+)',$", _text("meson.build"), re.MULTILINE)[1]


def _installed():
    try:
        asked = ["pkg-config", "--variable=libdir", "servet"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "/usr/local/lib"


def _hash(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version, libdir = _version(), (config_settings or {}).get("libdir") or _installed()
    information = f"servet-{version}.dist-info"
    files = {
        "servet.py": bindings(f"{_PROFILE}/servet.h", f"{_PROFILE}/libservet/servet.py.in", {"LIBDIR": libdir, "VERSION": version}),
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: servet\nVersion: {version}\nLicense: BSD-3-Clause\n"
        "Summary: What Servet measured of this machine, for programs that tune themselves\nRequires-Python: >=3.7\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: servet\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/LICENSE": _text("LICENSE"),
    }
    record = "".join(f"{name},{_hash(text.encode())},{len(text.encode())}\n" for name, text in files.items())
    files[f"{information}/RECORD"] = f"{record}{information}/RECORD,,\n"
    wheel = f"servet-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            # One date for all: the same source gives the same wheel.
            archive.writestr(zipfile.ZipInfo(name), text)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the source of this wheel is the whole of Servet's: git archive makes it")
