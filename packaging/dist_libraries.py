# SPDX-License-Identifier: Apache-2.0
"""Libraries that are linked into the program of a wheel, built for glibc 2.17.

libraries.json names Debian source packages with the hash of their .dsc file, which has the hashes
of all other files. Debian's own static libraries cannot be used: they need a newer glibc. The C
files are compiled without configure scripts, by zig, which has the headers and symbol tables of
old versions of glibc.
"""

from __future__ import annotations

import concurrent.futures
import glob
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
ZIG = "ziglang==0.17.1"
MACHINES = ("x86_64", "aarch64")
GLIBC = "2.17"
CFLAGS = ["-O2", "-fPIC", "-fno-sanitize=undefined", "-w"]
# Opened at run time where they are installed, so their headers are all that a build needs.
HEADERS_ALONE = {"libcrypto": "openssl", "libmicrohttpd": "microhttpd.h", "libnats": "nats"}

# meson 1.0 asks for the linker in a way that zig does not answer, and for macros with a target
# that has no version of glibc.
COMPILER = """#!/bin/sh
target={target}.{glibc}
case " $* " in
*" -dM "*) target={target} ;;
*" -Wl,--version "*) echo "LLD 20.0.0 (compatible with GNU linkers)" && exit ;;
esac
exec {zig} cc -target $target "$@"
"""


def fail(text: str) -> None:
    sys.exit(f"make dist: {text}")


def run(command: list[str], **options: object) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace")[-4000:]
        fail(f"{shlex.join(command[:12])} failed:\n{output}")


def described(machine: str) -> list[dict]:
    """Those that a program for this machine has in it; sources of that machine join the others."""
    found = []
    for library in json.loads((HERE / "libraries.json").read_text()):
        own = [library.pop(f"sources_{name}", []) for name in MACHINES]
        if machine in library.pop("machines", MACHINES):
            more = own[MACHINES.index(machine)]
            found.append({**library, "sources": library.get("sources", []) + more})
    return found


def install_zig(work: pathlib.Path, machine: str) -> pathlib.Path:
    """Scripts cc and ar in a folder of work; returns that folder."""
    venv, scripts, target = work / "venv", work / f"bin-{machine}", f"{machine}-linux-gnu"
    if not list(venv.glob("lib/python*/site-packages/ziglang/zig")):
        run([sys.executable, "-m", "venv", str(venv)])
        run([str(venv / "bin/pip"), "install", "-q", "--disable-pip-version-check", ZIG])
    zig = next(venv.glob("lib/python*/site-packages/ziglang/zig"))
    scripts.mkdir(exist_ok=True)
    texts = {
        "cc": COMPILER.format(target=target, glibc=GLIBC, zig=shlex.quote(str(zig))),
        "ar": f'#!/bin/sh\nexec {shlex.quote(str(zig))} ar "$@"\n',
    }
    for name, text in texts.items():
        (scripts / name).write_text(text)
        (scripts / name).chmod(0o755)
    return scripts


def source_lists(folder: pathlib.Path) -> list[str]:
    """Options for apt-get: the system's lists of binary packages as lists of source packages."""
    parts = folder / "sources.list.d"
    parts.mkdir(parents=True, exist_ok=True)
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    for path in map(pathlib.Path, glob.glob("/etc/apt/sources.list.d/*")):
        text = path.read_text(errors="replace")
        if path.suffix == ".sources":
            text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
            (parts / path.name).write_text(text)
        elif path.suffix == ".list":
            (parts / path.name).write_text(re.sub(r"^deb\s", "deb-src ", text, flags=re.MULTILINE))
    whole = pathlib.Path("/etc/apt/sources.list")
    if whole.exists():
        text = re.sub(r"^deb\s", "deb-src ", whole.read_text(), flags=re.MULTILINE)
        (parts / "whole.list").write_text(text)
    return [
        "-oDir::Etc::sourcelist=/dev/null",
        f"-oDir::Etc::sourceparts={parts}",
        f"-oDir::State::Lists={folder / 'lists'}",
        "-oAPT::Sandbox::User=",
    ]


def dsc_of(library: dict, folder: pathlib.Path) -> pathlib.Path:
    return folder / f"{library['debian']}_{library['version'].split(':')[-1]}.dsc"


def fetch(libraries: list[dict], folder: pathlib.Path) -> None:
    """Source packages into folder, by apt; files that are there already are taken as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [library for library in libraries if not dsc_of(library, folder).exists()]
    if missing:
        options = source_lists(folder.parent / "apt")
        run(["apt-get", *options, "-qq", "update"])
        names = [f"{library['debian']}={library['version']}" for library in missing]
        run(["apt-get", *options, "-qq", "--download-only", "source", *names], cwd=folder)
    for library in libraries:
        path = dsc_of(library, folder)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != library["dsc_sha256"]:
            fail(f"{path}: the SHA-256 is {found}, expected {library['dsc_sha256']}")


def unpack(library: dict, sources: pathlib.Path, folder: pathlib.Path) -> None:
    """A fresh tree with Debian's patches, and what its configure script would write."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    dsc = dsc_of(library, sources)
    run(["dpkg-source", "--no-check", "-q", "-x", str(dsc), str(folder)])
    for path, text in library.get("write", {}).items():
        (folder / path).write_text(text)
    for path, changes in library.get("replace", {}).items():
        text = (folder / path).read_text()
        for old, new in changes.items():
            if old not in text:
                fail(f"{folder / path}: {old!r} was not found")
            text = text.replace(old, new)
        (folder / path).write_text(text)
    if "config" in library:
        shutil.copy(HERE / library["config"], folder / "config.h")
    for command in library.get("prepare", []):
        run(shlex.split(command), cwd=folder)


def files_of(library: dict, folder: pathlib.Path) -> list[str]:
    """The C and assembler files, sorted: the order in the archive is that of the link."""
    found: set[str] = set()
    for name in library.get("makefiles", []):
        text = (folder / name).read_text().replace("\\\n", " ")
        for words in re.findall(r"^(?:lsrc|lsrc_x86_64)\s*\+=(.*)$", text, re.MULTILINE):
            found |= {word for word in words.split() if word.endswith((".c", ".asm"))}
    for pattern in library.get("sources", []):
        if (HERE / pattern).exists():
            shutil.copy(HERE / pattern, folder / pattern)
        found |= {os.path.relpath(path, folder) for path in glob.glob(str(folder / pattern))}
    for pattern in library.get("without", []):
        found -= {os.path.relpath(path, folder) for path in glob.glob(str(folder / pattern))}
    return sorted(found)


def compile_library(library: dict, folder: pathlib.Path, stage: pathlib.Path, cc: str) -> None:
    objects = folder / ".objects"
    objects.mkdir(exist_ok=True)

    def compiled(name: str) -> str:
        out = str(objects / (name.replace("/", "_") + ".o"))
        if name.endswith(".asm"):
            command = ["nasm", "-felf64", "--reproducible", "-Iinclude/", "-Iigzip/", "-Icrc/"]
            command += [name, "-o", out]
        else:
            include = f"-I{stage / 'include'}"
            command = [cc, *CFLAGS, *library.get("flags", []), include, "-c", name, "-o", out]
        run(command, cwd=folder)
        return out

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        made = list(pool.map(compiled, files_of(library, folder)))
    archive = stage / "lib" / f"lib{library['name']}.a"
    archive.unlink(missing_ok=True)
    run([str(pathlib.Path(cc).parent / "ar"), "rcsD", str(archive), *made])


def write_pc(stage: pathlib.Path, name: str, version: str, libs: str) -> None:
    (stage / "pkgconfig" / f"{name}.pc").write_text(
        f"Name: {name}\nDescription: for a wheel of PerfTracker\nVersion: {version}\n"
        f"Cflags: -I{stage / 'include'}\nLibs: {f'-L{stage}/lib {libs}' if libs else ''}\n"
    )


def stage_library(library: dict, folder: pathlib.Path, stage: pathlib.Path) -> None:
    """Headers, licence and pkg-config file."""
    for place, patterns in library["headers"].items():
        into = stage / "include" / place
        into.mkdir(parents=True, exist_ok=True)
        for path in (path for pattern in patterns for path in folder.glob(pattern)):
            shutil.copy(path, into)
    shutil.copy(folder / library["license_file"], stage / "licenses" / library["debian"])
    version = library["version"].split(":")[-1].split("-")[0]
    for name, libs in library["pc"].items():
        write_pc(stage, name, version, libs)


def stage_headers(stage: pathlib.Path) -> None:
    include = stage / "include"
    for package, name in HEADERS_ALONE.items():
        found = subprocess.run(
            ["pkg-config", "--modversion", package], capture_output=True, text=True
        )
        write_pc(stage, package, found.stdout.strip() or "3.0", "")
        for root in (pathlib.Path("/usr/include"), *pathlib.Path("/usr/include").glob("*-gnu")):
            if (root / name).is_dir():
                shutil.copytree(root / name, include / name, dirs_exist_ok=True)
            elif (root / name).exists():
                shutil.copy(root / name, include / name)
        if not (include / name).exists():
            fail(f"the header {name} is missing: run tools/bootstrap build dist")


def stamp_of(library: dict, machine: str) -> str:
    """Changes with what a library is made of."""
    known = hashlib.sha256(json.dumps([library, CFLAGS, ZIG, machine, GLIBC]).encode())
    for name in (library.get("config", ""), *library.get("sources", [])):
        if name and (HERE / name).is_file():
            known.update((HERE / name).read_bytes())
    return known.hexdigest()


def build(work: pathlib.Path, machine: str) -> tuple[pathlib.Path, pathlib.Path]:
    """Builds what is not built yet; returns the folders of the compiler and of the libraries."""
    libraries, stage = described(machine), work / f"stage-{machine}"
    scripts = install_zig(work, machine)
    for name in ("include", "lib", "licenses", "pkgconfig", "stamps"):
        (stage / name).mkdir(parents=True, exist_ok=True)
    fetch(libraries, work / "sources")
    for library in libraries:
        stamp = stage / "stamps" / library["name"]
        if stamp.exists() and stamp.read_text() == stamp_of(library, machine):
            continue
        print(f"make dist: {library['debian']} {library['version']}, {machine}", flush=True)
        folder = work / f"libraries-{machine}" / library["name"]
        unpack(library, work / "sources", folder)
        stage_library(library, folder, stage)
        compile_library(library, folder, stage, str(scripts / "cc"))
        stamp.write_text(stamp_of(library, machine))
    stage_headers(stage)
    return scripts, stage
