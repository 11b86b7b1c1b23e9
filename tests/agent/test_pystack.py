# SPDX-License-Identifier: Apache-2.0
"""pystack.c against every CPython of this machine. Argument: the probe library.

HAMMER_S: how long each is hammered, in seconds. Each case is a process of its own, so
that a crash is seen; pystack_target.py has the cases.
"""

from __future__ import annotations

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

TARGET = pathlib.Path(__file__).with_name("pystack_target.py")
CASES = ["stacks", "forbidden", "forked", "children", "strangers", "gil", "hammer", "shutdown"]
CASES += ["fuzz", "cost"]
ASK = (
    "import sys, ctypes, sysconfig; print(sys.implementation.name,"
    " *sys.version_info[:3], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
)
RANGE = pathlib.Path(__file__).parents[2] / "src/base/pythonrange.h"
OLDEST, NEWEST = (
    int(number) for number in re.findall(r"#define PYTHON_\w+ (\d+)", RANGE.read_text())
)


def candidates() -> list[str]:
    """Interpreters, one path for each."""
    found = []
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False)
        found = glob.glob(os.path.join(root.stdout.strip(), "versions/*/bin/python"))
    names = ["python3", *("python3.%d" % minor for minor in range(6, NEWEST + 3))]
    found += [path for path in map(shutil.which, names) if path and "/shims/" not in path]
    found += glob.glob("/usr/bin/python3") + glob.glob("/usr/bin/python3.[0-9]*[0-9]")
    return sorted({os.path.realpath(path) for path in found})


def describe(interpreter: str) -> tuple[str, str]:
    """(version, why it is left out or "")."""
    done = subprocess.run([interpreter, "-c", ASK], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return "?", "it does not start, or has no ctypes"
    name, major, minor, micro, free = done.stdout.split()
    version = f"{major}.{minor}.{micro}"
    if name != "cpython":
        return version, f"it is {name}"
    if major != "3" or int(minor) < OLDEST:
        return version, f"older than 3.{OLDEST}, the oldest that PerfTracker supports"
    if int(minor) > NEWEST or free == "1":
        return version, f"newer than 3.{NEWEST} or free-threaded: no offsets"
    return version, ""


def run(interpreter: str, case: str, other: str) -> tuple[bool, str]:
    """Whether the case held in that interpreter, beside another one, and what it said."""
    try:
        done = subprocess.run(
            [interpreter, TARGET, sys.argv[1], case],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "OTHER_PYTHON": other},
        )
    except subprocess.TimeoutExpired:
        return False, "no end"
    lines = done.stdout.splitlines()
    said = "; ".join(line for line in lines if line != "ok")
    if done.returncode != 0 or "ok" not in lines:
        return False, f"exit {done.returncode}: {said}\n{done.stderr[-2000:]}"
    return True, said


def main() -> int:
    failed = tried = 0
    found = candidates()
    for interpreter in found:
        version, reason = describe(interpreter)
        if reason:
            print(f"left out: {interpreter} ({version}): {reason}")
            continue
        tried += 1
        other = next((path for path in found if path != interpreter), "cat")
        for case in CASES:
            held, said = run(interpreter, case, other)
            failed += not held
            print(f"{'ok' if held else 'FAILED'}: {version} {case}: {said}", flush=True)
    if tried == 0:
        print("no CPython to try")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
