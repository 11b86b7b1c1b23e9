# SPDX-License-Identifier: Apache-2.0
"""The build backend of `pip install .` (PEP 517): this machine's compiler and its libraries.

Such a wheel is for this machine: its tag, linux_ARCH, promises nothing about others.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sysconfig
import tempfile
import time

import dist_source
import dist_wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTIONS = ("-Dtests=false", "-Dbuildtype=release", "-Dlibdir=libexec/perftracker", "-Dstrip=true")


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """The hook of PEP 517: returns the name of the wheel."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(int(time.time())))
    arch = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with tempfile.TemporaryDirectory() as folder:
        build, tree = f"{folder}/build", f"{folder}/tree"
        subprocess.run(["meson", "setup", build, str(ROOT), "-Dprefix=/usr", *OPTIONS], check=True)
        subprocess.run(["ninja", "-C", build, "program"], check=True)
        install = ["meson", "install", "-C", build, "--no-rebuild", f"--destdir={tree}"]
        subprocess.run(install, check=True)
        out = pathlib.Path(wheel_directory)
        return dist_wheel.make(pathlib.Path(tree, "usr"), out, f"py3-none-{arch}", []).name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """The hook of PEP 517: returns the name of the source archive."""
    if "SOURCE_DATE_EPOCH" not in os.environ:
        command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        os.environ["SOURCE_DATE_EPOCH"] = done.stdout.strip()
    return dist_source.make(pathlib.Path(sdist_directory)).name
