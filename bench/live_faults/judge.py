# SPDX-License-Identifier: Apache-2.0
"""Runs the example job with a fault, and judges what the report said of it."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import time
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"
RIGHT, WRONG, ABSTAINED, FALSE_ALARM, BROKEN = (
    "right",
    "wrong",
    "abstained",
    "false alarm",
    "broken",
)
VICTIM, FAULT_AT = 2, 150


class Answer(NamedTuple):
    """What the first finding must say: whom it accuses, and of what."""

    ranks: str  # "one": rank VICTIM alone; "all"; "many": two or more
    function: str  # pattern for the function's name or stack
    cause: str  # or pattern for the cause's id


NOTHING = "(?!)"
ANSWERS = {
    "io": Answer("one", r"recv_into", r"^slow-data-loading$"),
    "cpu": Answer("one", r"tokenise_slow", NOTHING),
    "gc": Answer("many", r"built-in (function|method) collect", r"^garbage-collection$"),
    "lock": Answer("one", r"export_metrics", r"^gil-contention$"),
    "noise": Answer("one", NOTHING, r"^cpu-starvation$"),
    "imbalance": Answer("one", NOTHING, r"^load-imbalance$"),
    "all": Answer("all", r"tokenise_slow", NOTHING),
}


class Run(NamedTuple):
    """One job: what it was, what was said of it, and how long things took."""

    fault: str
    word: str  # one of the five above
    said: str  # the first finding in one line
    findings: int
    exit_status: int
    before_ms: float  # median iteration
    after_ms: float
    report_s: float | None  # from the fault's beginning to the report's end
    wall_s: float


def accuses(finding: dict[str, Any], whom: str) -> bool:
    if whom == "one":
        return finding["ranks"] == str(VICTIM)
    if whom == "all":
        return finding["scope"] == "all"
    return finding["scope"] == "all" or finding["rank_count"] >= 2


def judge(fault: str, report: dict[str, Any] | None) -> str:
    """One of the words; a healthy job needs no report."""
    findings = report["findings"] if report else []
    if fault == "none":
        if findings or (report and report["verdict"] == "abnormal"):
            return FALSE_ALARM
        return RIGHT if report and report["verdict"] == "healthy" else ABSTAINED
    if not findings:
        return ABSTAINED
    first, answer = findings[0], ANSWERS[fault]
    place = " ".join([first["function"]["name"], *first["function"]["stack"]])
    named = re.search(answer.function, place) or re.search(answer.cause, first["cause"])
    return RIGHT if named and accuses(first, answer.ranks) else WRONG


def describe(report: dict[str, Any] | None) -> str:
    if not report:
        return "no report"
    if not report["findings"]:
        return f"{report['verdict']} {report['reason']}".strip()
    first = report["findings"][0]
    return f"rank {first['ranks']} {first['cause']}: {first['function']['name']}"


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def read_report(out: pathlib.Path) -> dict[str, Any] | None:
    path = out / "report.json"
    return json.loads(path.read_text()) if path.is_file() else None


def run_job(fault: str, out: pathlib.Path, extra: tuple[str, ...] = ()) -> Run:
    """Runs the demo of one fault; `extra` goes to the job."""
    times = out.with_name(out.name + "-times")
    times.mkdir(parents=True, exist_ok=True)
    command = [str(ROOT / "tools" / "demo"), fault, str(out), f"--times={times}"]
    command += [f"--fault-at={FAULT_AT}", f"--fault-rank={VICTIM}", *extra]
    begin_s = time.monotonic()
    with open(times / "log", "wb") as log:
        status = subprocess.call(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=300
        )
    wall_s = time.monotonic() - begin_s
    report = read_report(out)
    lines = (times / "rank0.txt").read_text().split("\n") if not status else []
    steps = [tuple(map(float, line.split())) for line in lines if line]
    report_s = None
    if report and len(steps) > FAULT_AT:
        report_s = (out / "report.json").stat().st_mtime - steps[FAULT_AT][0]
    word = BROKEN if status else judge(fault, report)
    before = [ms for _, ms in steps[20:FAULT_AT]]
    after = [ms for _, ms in steps[FAULT_AT:]]
    count = len(report["findings"]) if report else 0
    return Run(
        fault,
        word,
        describe(report),
        count,
        status,
        median(before),
        median(after),
        report_s,
        wall_s,
    )


if __name__ == "__main__":
    sys.exit("this is a module: run bench/live_faults")
