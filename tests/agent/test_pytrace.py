# SPDX-License-Identifier: Apache-2.0
"""pytrace.c in every CPython of this machine. Argument: the probe library.

Each case is a process of its own, so that a crash is seen; pytrace_target.py has them.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

from test_pystack import candidates, describe

TARGET = pathlib.Path(__file__).with_name("pytrace_target.py")
CASES = [
    "counts",
    "listed",
    "shared",
    "blocking",
    "windows",
    "churn",
    "rivals",
    "replaced",
    "references",
    "limits",
    "many",
    "fork",
    "shutdown",
    "cost",
]
EXITS = {"shutdown": 7}


def run(interpreter: str, case: str) -> tuple[bool, str]:
    """Whether the case held in that interpreter, and what it said."""
    try:
        done = subprocess.run(
            [interpreter, TARGET, sys.argv[1], case],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, "no end"
    lines = done.stdout.splitlines()
    said = "; ".join(line for line in lines if line != "ok")
    if done.returncode != EXITS.get(case, 0) or lines[-1:] != ["ok"] or done.stderr != "":
        return False, f"exit {done.returncode}: {said}\n{done.stderr[-2000:]}"
    return True, said


def main() -> int:
    failed = tried = 0
    for interpreter in candidates():
        version, reason = describe(interpreter)
        if reason:
            print(f"left out: {interpreter} ({version}): {reason}")
            continue
        tried += 1
        for case in CASES:
            held, said = run(interpreter, case)
            failed += not held
            print(f"{'ok' if held else 'FAILED'}: {version} {case}: {said}", flush=True)
    if tried == 0:
        print("no CPython to try")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
