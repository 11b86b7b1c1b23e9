# SPDX-License-Identifier: Apache-2.0
"""A package for distributions with rpm, from the same tree and the same list as the Debian one.

The program is that of the wheel, so one package is for all of them with glibc 2.17 or later. It is
made by rpmbuild without any of its own work on files: what is packed is what was built.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import dist_deb
import dist_sbom
import dist_wheel

HERE = pathlib.Path(__file__).resolve().parent
PLACES = {"share/zsh/site-functions": "share/zsh/site-functions"}
# No file is stripped, compressed or searched for what it needs; no time or name of this machine.
MACROS = {
    "_build_id_links": "none",
    "_buildhost": "localhost",
    "_binary_payload": "w9.xzdio",
    "__os_install_post": "%{nil}",
    "debug_package": "%{nil}",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
}


def spec(root: pathlib.Path, libraries: list[dict]) -> str:
    licenses = dist_sbom.license_expression(libraries)
    name, *text = dist_deb.DESCRIPTION.removeprefix("Description: ").splitlines()
    listed = []
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        file = path.relative_to(root)
        kind = "%doc " if file.parts[:3] == ("usr", "share", "doc") else ""
        listed.append(f"{kind}%attr({path.stat().st_mode & 0o777:o},root,root) /{file}")
    folders = ("usr/lib/perftracker", "usr/share/perftracker", "usr/share/doc/perftracker")
    for folder in folders:
        inner = (p for p in (root / folder).rglob("*") if p.is_dir())
        for path in sorted((root / folder, *inner)):
            listed.append(f"%dir %attr(755,root,root) /{path.relative_to(root)}")
    return "\n".join([
        f"Name: perftracker\nVersion: {dist_wheel.version()}\nRelease: 1\nSummary: {name}",
        f"License: {licenses}\nGroup: Development/Tools\nAutoReqProv: no",
        "Requires: glibc >= 2.17\nRecommends: libmicrohttpd\nSuggests: libpq\n",
        "%description", *(line.strip() for line in text), "",
        "%install", f"cp -a {root}/. %{{buildroot}}/", "",
        (HERE / "rpm_scripts.txt").read_text(), "%files", *listed, "",
    ])  # fmt: skip


def make(
    tree: pathlib.Path,
    folder: pathlib.Path,
    work: pathlib.Path,
    machine: str,
    libraries: list[dict],
    licenses: pathlib.Path,
) -> pathlib.Path:
    """As dist_deb.make()."""
    top, root = work / "rpm", work / "rpm" / "root"
    shutil.rmtree(top, ignore_errors=True)
    dist_deb.lay_out(tree, root, PLACES)
    dist_deb.write_documents(root, libraries, licenses)
    (root / "usr/share/doc/perftracker/changelog.gz").unlink()
    dist_deb.set_modes(root)
    (top / "perftracker.spec").write_text(spec(root, libraries))
    macros = {"_topdir": str(top), "_rpmdir": str(top / "made"), **MACROS}
    command = ["rpmbuild", "-bb", "--quiet", "--target", f"{machine}-linux"]
    for name, value in macros.items():
        command += ["--define", f"{name} {value}"]
    done = subprocess.run(
        [*command, str(top / "perftracker.spec")], capture_output=True, text=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"make dist: rpmbuild failed:\n{done.stdout}{done.stderr}")
    (made,) = (top / "made").rglob("*.rpm")
    path = folder / made.name
    shutil.copy(made, path)
    return path
