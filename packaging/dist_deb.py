# SPDX-License-Identifier: Apache-2.0
"""A package for Debian and Ubuntu from an installed tree: program, agent, hook, units.

The program is that of the wheel, so one package is for all releases with glibc 2.17 or later.
All files have the time SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import time

import dist_wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = pathlib.Path(__file__).resolve().parent
# Who makes the package says so, as for debchange.
MAINTAINER = (
    f"{os.environ.get('DEBFULLNAME', 'PerfTracker')} "
    f"<{os.environ.get('DEBEMAIL', 'perftracker@localhost')}>"
)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
UNITS = ("perftracker-hostd.service", "perftracker-hub.service")
SCRIPTS = ("postinst", "prerm", "postrm")
# Where the tree's files go below /usr.
MOVES = (
    ("bin", "bin"),
    ("libexec/perftracker", "lib/perftracker"),
    ("lib/perftracker", "lib/perftracker"),
    ("share/man", "share/man"),
    ("share/doc", "share/doc"),
    ("share/perftracker", "share/perftracker"),
    ("share/bash-completion", "share/bash-completion"),
    ("share/fish", "share/fish"),
    ("share/zsh/site-functions", "share/zsh/vendor-completions"),
)
DESCRIPTION = """Description: finds stragglers and hangs in distributed PyTorch training
 PerfTracker watches iteration times at almost no cost, profiles all ranks at
 the same step when a job becomes slow, compares them, and names the rank and
 the function that hold the job back.
"""


def compress(path: pathlib.Path) -> None:
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    path.unlink()


def lay_out(tree: pathlib.Path, root: pathlib.Path, places: dict[str, str] | None = None) -> None:
    """places: where another distribution has a folder of MOVES."""
    usr = root / "usr"
    for source, usual in MOVES:
        place = (places or {}).get(source, usual)
        if (tree / source).exists():
            shutil.copytree(
                tree / source,
                usr / place,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("__pycache__", "pyproject.toml"),
            )
    for page in (usr / "share" / "man").rglob("*.1"):
        compress(page)
    units = ROOT / "deploy" / "systemd"
    for name, place in (
        *((unit, f"lib/systemd/system/{unit}") for unit in UNITS),
        ("perftracker.sysusers", "lib/sysusers.d/perftracker.conf"),
        ("perftracker.tmpfiles", "lib/tmpfiles.d/perftracker.conf"),
    ):
        (usr / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(units / name, usr / place)


def write_documents(root: pathlib.Path, libraries: list[dict], licenses: pathlib.Path) -> None:
    """copyright, with the licences of the libraries that are linked in, and the changelogs."""
    folder = root / "usr" / "share" / "doc" / "perftracker"
    moment = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    text = "PerfTracker is under the Apache License, Version 2.0:\n"
    text += "/usr/share/common-licenses/Apache-2.0\n\nLinked into the program:\n"
    for library in libraries:
        text += f"\n{'=' * 72}\n{library['debian']} {library['version']}: {library['license']}\n\n"
        text += (licenses / library["debian"]).read_text(errors="replace")
    (folder / "copyright").write_text(text)
    (folder / "LICENSE").unlink(missing_ok=True)
    (folder / "changelog.Debian").write_text(
        f"perftracker ({dist_wheel.version()}) unstable; urgency=medium\n\n"
        "  * See CHANGELOG.md.\n\n"
        f" -- {MAINTAINER}  {time.strftime('%a, %d %b %Y %H:%M:%S +0000', moment)}\n"
    )
    (folder / "changelog.Debian").rename(folder / "changelog")
    compress(folder / "changelog")


def write_control(root: pathlib.Path, architecture: str) -> None:
    control = root / "DEBIAN"
    control.mkdir()
    files = sorted(p for p in (root / "usr").rglob("*") if p.is_file())
    size = sum(path.stat().st_size for path in files) // 1024
    (control / "control").write_text(
        f"Package: perftracker\nVersion: {dist_wheel.version()}\nArchitecture: {architecture}\n"
        f"Maintainer: {MAINTAINER}\nInstalled-Size: {size}\n"
        "Depends: libc6 (>= 2.17)\n"
        "Recommends: libmicrohttpd12 | libmicrohttpd12t64, libssl3 | libssl3t64\n"
        "Suggests: libnats3.4 | libnats3.10, libpq5, python3\n"
        f"Section: devel\nPriority: optional\n{DESCRIPTION}"
    )
    sums = [
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n"
        for path in files
    ]
    (control / "md5sums").write_text("".join(sums))
    for name in SCRIPTS:
        shutil.copy(HERE / f"deb_{name}.sh", control / name)


def set_modes(root: pathlib.Path) -> None:
    programs = {root / "usr/bin/perftracker", *(root / "DEBIAN" / name for name in SCRIPTS)}
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path in programs else 0o644)
    for path in (root / "usr/share/perftracker").rglob("*"):
        if path.is_file() and path.read_bytes()[:2] == b"#!":
            path.chmod(0o755)
    # dpkg-deb changes later times only.
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    for path in (root, *root.rglob("*")):
        os.utime(path, (epoch, epoch))


def make(
    tree: pathlib.Path,
    folder: pathlib.Path,
    work: pathlib.Path,
    machine: str,
    libraries: list[dict],
    licenses: pathlib.Path,
) -> pathlib.Path:
    """tree: a prefix as for dist_wheel.make(). Returns the package's path."""
    root = work / "deb"
    shutil.rmtree(root, ignore_errors=True)
    lay_out(tree, root)
    write_documents(root, libraries, licenses)
    write_control(root, ARCHITECTURES[machine])
    set_modes(root)
    path = folder / f"perftracker_{dist_wheel.version()}_{ARCHITECTURES[machine]}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path
