# SPDX-License-Identifier: Apache-2.0
"""Runs the example job with a fault, and judges its report."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "common"))

from reports import median, read_reports  # noqa: E402

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
    """The expected first finding: ranks, and functions or causes."""

    ranks: str  # "one": rank VICTIM alone; "all"; "many": two or more
    function: str  # pattern for the function's name or stack
    cause: str  # or pattern for the cause's id


NOTHING = "(?!)"
ANSWERS = {
    "io": Answer("one", r"recv_into|recvfrom", r"^slow-data-loading$"),
    "cpu": Answer("one", r"tokenize_slow", NOTHING),
    "gc": Answer("many", r"built-in (function|method) collect", r"^garbage-collection$"),
    "lock": Answer("one", r"export_metrics", r"^gil-contention$"),
    "noise": Answer("one", NOTHING, r"^cpu-starvation$"),
    "imbalance": Answer("one", NOTHING, r"^load-imbalance$"),
    "all": Answer("all", r"tokenize_slow", NOTHING),
}


class Run(NamedTuple):
    """One job: its fault, its report and its times."""

    fault: str
    word: str  # one of the five above
    said: str  # the first finding in one line
    findings: int
    early: int  # findings before anything was wrong
    exit_status: int
    before_ms: float  # median iteration
    after_ms: float
    report_s: float | None  # from the fault's beginning to the report's end
    wall_s: float
    first: dict[str, Any]  # the finding that was judged; {} without any


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


def read_steps(path: pathlib.Path) -> list[tuple[float, float]]:
    """When each step of a rank began, and its milliseconds."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return [(float(begin_s), float(ms)) for begin_s, ms in (line.split() for line in lines)]


def run_job(
    fault: str,
    out: pathlib.Path,
    extra: tuple[str, ...] = (),
    source: str = "auto",
    fault_at: int = FAULT_AT,
    launcher: str = "",
) -> Run:
    """Runs the demo of one fault; `extra` goes to the job, `source` selects the collectors."""
    times = out.with_name(out.name + "-times")
    times.mkdir(parents=True, exist_ok=True)
    command = [str(ROOT / "tools" / "demo"), fault, str(out), f"--times={times}"]
    command += [f"--fault-at={fault_at}", f"--fault-rank={VICTIM}", *extra]
    begin_s = time.monotonic()
    with open(times / "log", "wb") as log:
        status = subprocess.call(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=300,
            env={**os.environ, "RUN_OPTIONS": f"--source {source}", "LAUNCHER": launcher},
        )
    wall_s = time.monotonic() - begin_s
    steps = read_steps(times / "rank0.txt")
    began_s = steps[fault_at][0] if len(steps) > fault_at else 0.0
    reports = read_reports(out)
    late = [r for r in reports if fault == "none" or r[0] >= began_s] or [(0.0, None)]
    written_s, report = next((r for r in late if r[1] and r[1]["findings"]), late[-1])
    early = sum(len(r["findings"]) for at_s, r in reports if fault != "none" and at_s < began_s)
    return Run(
        fault=fault,
        word=BROKEN if status else judge(fault, report),
        said=describe(report),
        findings=len(report["findings"]) if report else 0,
        early=early,
        exit_status=status,
        before_ms=median([ms for _, ms in steps[20:fault_at]]),
        after_ms=median([ms for _, ms in steps[fault_at:]]),
        report_s=written_s - began_s if report and began_s else None,
        wall_s=wall_s,
        first=report["findings"][0] if report and report["findings"] else {},
    )


if __name__ == "__main__":
    sys.exit("this is a module: run bench/live_faults")
