# SPDX-License-Identifier: Apache-2.0
"""Analyzes jobs that --record kept once more, with the program of today.

A folder of OUT/runs has the traces and the program's own log of steps; its name says what the job
was: BUILD-PROGRAM-FAULT-NUMBER and how it was recorded.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import faults
import job
import programs

NAME = re.compile(r"(?P<cell>.+)-(?P<number>\d+)(?P<record>(steps|plain)(\+stacks)?)")


def parse(name: str) -> dict[str, Any] | None:
    """What a folder's name says; None: it is no recorded job with a fault."""
    found = NAME.fullmatch(name)
    if not found:
        return None
    for program in programs.PROGRAMS:
        for fault in faults.FAULTS:
            cell = f"-{program.name}-{fault.name}"
            if found["cell"].endswith(cell) and "-" not in found["cell"][: -len(cell)]:
                return {
                    "build": found["cell"][: -len(cell)],
                    "program": program,
                    "fault": fault,
                    "number": int(found["number"]),
                    "record": found["record"],
                }
    return None


def paces_ms(folder: pathlib.Path) -> tuple[float, float, float]:
    """When the fault began, and mean iterations before and after."""
    steps, begins = job.read_times(folder, "steps"), job.read_times(folder, "begin")
    begin_s = min((times[0] for times in begins.values() if times), default=0.0)
    times = max(steps.values(), key=len, default=[])
    gaps = [(1e3 * (b - a), a) for a, b in zip(times, times[1:], strict=False)]
    before = [gap for gap, at in gaps if at < begin_s][-100:]
    after = [gap for gap, at in gaps if at >= begin_s]
    if not before or not after:
        return begin_s, 0.0, 0.0
    return begin_s, statistics.mean(before), statistics.mean(after)


def report_of(binary: str, folder: pathlib.Path) -> list[dict[str, Any]]:
    """As job.reports_of(); a refusal is a report without findings."""
    command = [binary, "analyze", "--format", "json", "--jobs", "1", str(folder / "traces")]
    environment = os.environ | {"PERFTRACKER_STORE": "none"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    report = {"verdict": "refused", "reason": done.stderr.decode(errors="replace")}
    if done.returncode == 0:
        report = json.loads(done.stdout)
    return [{"file": "report.json", "at_s": time.time(), **job.condensed(report)}]


def records(out: pathlib.Path, binary: str) -> Iterator[dict[str, Any]]:
    """As those of results.jsonl, of all folders with traces."""
    for folder in sorted((out / "runs").iterdir()):
        about = parse(folder.name)
        if about is None or not any((folder / "traces").glob("*")):
            continue
        program, fault = about["program"], about["fault"]
        if not faults.shows_in_trace(fault, program):
            continue
        begin_s, before_ms, after_ms = paces_ms(folder)
        yield {
            "build": about["build"],
            "program": program.name,
            "fault": fault.name,
            "kind": fault.kind,
            "ranks": program.ranks,
            "victim": faults.victim_of(fault, program),
            "strength": 0.0,
            "neighbor": False,
            "number": about["number"],
            "record": about["record"],
            "before_ms": before_ms,
            "after_ms": after_ms,
            "begin_s": begin_s,
            "stopped_s": 0.0,
            "status": 0,
            "reports": report_of(binary, folder),
        }


if __name__ == "__main__":
    sys.exit("this is a module: run bench/live_jobs")
