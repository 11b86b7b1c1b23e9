# SPDX-License-Identifier: Apache-2.0
"""The source archive (sdist): the tracked files of the last commit, and PKG-INFO."""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import subprocess
import tarfile

import dist_sbom
import dist_wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent


def make(folder: pathlib.Path) -> pathlib.Path:
    """Returns the path of folder/perftracker-VERSION.tar.gz."""
    name = f"perftracker-{dist_wheel.version()}"
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", f"--prefix={name}/", "HEAD"]
    tracked = subprocess.run(command, capture_output=True, check=True).stdout
    whole = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(tracked)) as old,
        tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in old.getmembers():
            member.mtime, member.pax_headers = epoch, {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
        text = dist_wheel.metadata(dist_sbom.OWN_LICENSE, ["LICENSE"]).encode()
        info = tarfile.TarInfo(f"{name}/PKG-INFO")
        info.size, info.mtime = len(text), epoch
        new.addfile(info, io.BytesIO(text))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tar.gz"
    path.write_bytes(gzip.compress(whole.getvalue(), compresslevel=9, mtime=0))
    return path
