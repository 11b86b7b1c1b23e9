# SPDX-License-Identifier: Apache-2.0
"""Judges the record of one run (job.py): what did perftracker say, and was it right?

Nothing here looks at a file or a process, so that old records are judged by new rules.
"""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any, NamedTuple

import faults
import machine
import programs

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "common"))

from reports import rank_set  # noqa: E402

RIGHT = "right"
WRONG_RANK = "wrong rank"
WRONG_FUNCTION = "wrong function"  # of the right rank
UNNAMED = "unnamed"  # said that the job is slow, stuck or not to be judged, and accused no rank
SILENT = "silent"
FALSE_HEALTHY = "false healthy"
FALSE_ALARM = "false alarm"
SLOWER_MACHINE = "slower machine"  # an alarm that accuses no rank, and the machine was slower
BROKEN = "broken"  # the program or the bench failed: says nothing about perftracker
FAULTY_WORDS = (RIGHT, WRONG_RANK, WRONG_FUNCTION, UNNAMED, SILENT, FALSE_HEALTHY, BROKEN)
HEALTHY_WORDS = (RIGHT, SLOWER_MACHINE, FALSE_ALARM, UNNAMED, SILENT, BROKEN)
MACHINE_FACTOR = 1.15  # by so much
REQUIRED_PCT = 10.0  # a fault that costs more must be found
NOT_HEALTHY = ("abnormal", "slow", "failed", "stuck", "incomplete")


class Judgment(NamedTuple):
    word: str
    said: str  # in one line
    seconds: float | None  # from the fault to the first right report
    cost_pct: float  # by which iterations became longer; infinite when none ended any more
    early: int  # findings before anything was wrong

    @property
    def required(self) -> bool:
        return self.cost_pct > REQUIRED_PCT


def cost_pct(record: dict[str, Any]) -> float:
    if record["kind"] != faults.SLOW:
        return float("inf") if record["kind"] != "none" else 0.0
    if not record["before_ms"] or not record["after_ms"]:
        return 0.0
    return 100 * (record["after_ms"] / record["before_ms"] - 1)


def right_ranks(record: dict[str, Any], finding: dict[str, Any]) -> bool:
    accused = rank_set(finding["ranks"])
    everybody = set(range(record["ranks"]))
    if record["ranks"] == 1:
        return True
    if not programs.BY_NAME[record["program"]].ranked:
        return len(accused) == 1  # of the processes only the victim has the fault's function
    if record["victim"] < 0:
        return finding["scope"] == "all" or accused == everybody
    return accused == {record["victim"]}


def is_hidden_in_child(record: dict[str, Any]) -> bool:
    """A trace has only the training process: of a loader's children it shows that they are slow."""
    fault = faults.BY_NAME[record["fault"]]
    children = programs.BY_NAME[record["program"]].loader_workers
    return bool(record.get("record")) and fault.role == "load" and children > 0


def right_place(record: dict[str, Any], finding: dict[str, Any]) -> bool:
    fault = faults.BY_NAME[record["fault"]]
    if is_hidden_in_child(record) and finding["cause"] == "slow-data-loading":
        return True
    texts = [
        finding["name"],
        *finding["stack"],
        finding["title"] or "",
        *map(str, finding["evidence"]),
    ]
    return bool(
        re.search(fault.function, "\n".join(texts)) or re.search(fault.cause, finding["cause"])
    )


def word_of(record: dict[str, Any], report: dict[str, Any]) -> str:
    """Of one report that was written after the fault began."""
    if report["findings"]:
        first = report["findings"][0]
        if not right_ranks(record, first):
            return WRONG_RANK
        return RIGHT if right_place(record, first) else WRONG_FUNCTION
    if report["verdict"] == "healthy":
        return FALSE_HEALTHY
    failed = record["kind"] == faults.FAILS and report["verdict"] == "failed"
    return RIGHT if failed else UNNAMED


def describe(report: dict[str, Any] | None) -> str:
    if report is None:
        return "no report"
    if not report["findings"]:
        return f"{report['verdict']}: {report['reason']}"
    first = report["findings"][0]
    return f"{report['verdict']}: rank {first['ranks']} {first['cause']}: {first['name']}"


def is_machine(record: dict[str, Any], report: dict[str, Any]) -> bool:
    """A slow job is no fault of a rank where the machine was slower just then."""
    slow = report["verdict"] == "slow" and not report["findings"]
    return slow and machine.factor_at(record, report["at_s"]) >= MACHINE_FACTOR


def judge_healthy(record: dict[str, Any]) -> Judgment:
    alarms = [r for r in record["reports"] if r["findings"] or r["verdict"] in NOT_HEALTHY]
    last = record["reports"][-1] if record["reports"] else None
    word = RIGHT
    if record["status"] or not record["steps"]:
        word = BROKEN
    elif alarms:
        word = SLOWER_MACHINE if all(is_machine(record, a) for a in alarms) else FALSE_ALARM
    elif last is None:
        word = SILENT
    elif last["verdict"] != "healthy":
        word = UNNAMED
    return Judgment(word, describe(alarms[0] if alarms else last), None, 0.0, len(alarms))


def sums_up(words: list[str], required: bool) -> str:
    """Of all reports after the fault: the last one decides, but a wrong rank is never undone."""
    if not words:
        return SILENT
    if WRONG_RANK in words:
        return WRONG_RANK
    if words[-1] == FALSE_HEALTHY and required:
        return FALSE_HEALTHY
    found = [word for word in (RIGHT, WRONG_FUNCTION, UNNAMED) if word in words]
    return found[0] if found else SILENT


def is_broken(record: dict[str, Any]) -> bool:
    """The fault never happened, or the program could not bear it."""
    if not record["begin_s"]:
        return True
    return record["kind"] == faults.SLOW and not record["stopped_s"] and bool(record["status"])


def judge(record: dict[str, Any]) -> Judgment:
    if record["kind"] == "none":
        return judge_healthy(record)
    cost = cost_pct(record)
    late = [r for r in record["reports"] if r["at_s"] >= record["begin_s"]]
    early = sum(len(r["findings"]) for r in record["reports"] if r["at_s"] < record["begin_s"])
    judged = [(word_of(record, report), report) for report in late]
    word = BROKEN if is_broken(record) else sums_up([w for w, _ in judged], cost > REQUIRED_PCT)
    shown = next((report for w, report in judged if w == word), late[-1] if late else None)
    seconds = shown["at_s"] - record["begin_s"] if shown and word == RIGHT else None
    return Judgment(word, describe(shown), seconds, cost, early)


if __name__ == "__main__":
    sys.exit("this is a module: run bench/live_jobs")
