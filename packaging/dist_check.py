# SPDX-License-Identifier: Apache-2.0
"""Checks of a finished wheel: RECORD, size, what its binaries need, and that it runs."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import pathlib
import re
import subprocess
import tempfile
import zipfile

MAX_BYTES = 8 << 20
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
LOADER = re.compile(r"ld-linux.*\.so\.\d")


def needs(binary: pathlib.Path) -> tuple[set[str], tuple[int, ...]]:
    """The shared libraries that a binary names, and the newest glibc of its symbols."""
    text = subprocess.run(
        ["readelf", "-dVW", str(binary)], capture_output=True, text=True, check=True
    ).stdout
    named = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    versions = re.findall(r"Name: GLIBC_(\d+(?:\.\d+)+)", text)
    newest = max((tuple(map(int, v.split("."))) for v in versions), default=(0,))
    return named, newest


def check_record(archive: zipfile.ZipFile) -> list[str]:
    """Complaints about RECORD."""
    names = archive.namelist()
    (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
    rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
    complaints = []
    if sorted(row[0] for row in rows) != sorted(names):
        complaints.append("RECORD does not name the same files as the archive")
    for name, digest, size in rows:
        if name == record:
            continue
        data = archive.read(name)
        expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if digest != f"sha256={expected}" or int(size) != len(data):
            complaints.append(f"RECORD is wrong about {name}")
    return complaints


def glibc_of(path: pathlib.Path) -> tuple[int, ...]:
    """The glibc that the tag of the file name promises."""
    found = re.search(r"manylinux_(\d+)_(\d+)_", path.name)
    return (int(found[1]), int(found[2])) if found else (999,)


def check_binaries(path: pathlib.Path, folder: pathlib.Path) -> list[str]:
    complaints = []
    for name in ("scripts/perftracker", "libexec/perftracker/libperftracker-agent.so"):
        (binary,) = folder.rglob(name)
        named, newest = needs(binary)
        extra = {n for n in named - LIBRARIES if not LOADER.fullmatch(n)}
        if extra:
            complaints.append(f"{name} needs {', '.join(sorted(extra))}")
        if newest > glibc_of(path):
            complaints.append(f"{name} needs glibc {'.'.join(map(str, newest))}: {path.name}")
        if b"/out/dist/" in binary.read_bytes():
            complaints.append(f"{name} has a path of the machine that built it")
    return complaints


def check(path: pathlib.Path) -> list[str]:
    """Complaints about a wheel; empty when it is as it should be."""
    complaints = []
    if path.stat().st_size > MAX_BYTES:
        complaints.append(f"{path.name}: {path.stat().st_size} bytes, the limit is {MAX_BYTES}")
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        complaints += check_record(archive)
        archive.extractall(folder)
        complaints += check_binaries(path, pathlib.Path(folder))
    return complaints
