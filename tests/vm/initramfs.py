"""Writes the archive that a kernel unpacks as its first file system (cpio, "newc" format)."""
import os

FOLDER, FILE, DEVICE = 0o040755, 0o100000, 0o020600


class Archive:
    def __init__(self):
        self.parts, self.folders = [], set()

    def entry(self, name, mode, data=b"", major=0, minor=0):
        text = name.encode() + b"\0"
        fields = (len(self.parts) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(text), 0)
        part = ("070701" + "".join("%08X" % field for field in fields)).encode() + text
        part += b"\0" * (-len(part) % 4) + data
        self.parts.append(part + b"\0" * (-len(part) % 4))

    def folder(self, name):
        if name and name not in self.folders:
            self.folder(os.path.dirname(name))
            self.folders.add(name)
            self.entry(name, FOLDER)

    def file(self, name, data, permissions=0o644):
        self.folder(os.path.dirname(name))
        self.entry(name, FILE | permissions, data)

    def device(self, name, major, minor):
        self.folder(os.path.dirname(name))
        self.entry(name, DEVICE, b"", major, minor)

    def bytes(self):
        self.entry("TRAILER!!!", 0)
        whole = b"".join(self.parts)
        return whole + b"\0" * (-len(whole) % 512)
