# SPDX-License-Identifier: Apache-2.0
"""The tables of the bench, from the records of its runs."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

from judge import BROKEN, FAULTY_WORDS, HEALTHY_WORDS, RIGHT, Judgment, judge

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "common"))

from reports import median  # noqa: E402
from text import text_table  # noqa: E402

Judged = list[tuple[dict[str, Any], Judgment]]


def latest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record for each cell: the newest."""
    return list({key(record): record for record in records}.values())


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    names = ("build", "program", "fault", "strength", "neighbor")
    more = (record.get("number", 0), record.get("record", ""))
    return (*(record[name] for name in names), *more)


def counts(judged: Judged, words: tuple[str, ...]) -> list[int]:
    return [sum(judgment.word == word for _, judgment in judged) for word in words]


def right_pct(judged: Judged) -> str:
    """Of the runs that say something."""
    valid = [judgment for _, judgment in judged if judgment.word != BROKEN]
    right = sum(judgment.word == RIGHT for judgment in valid)
    return f"{100 * right / len(valid):.0f} %" if valid else "-"


def seconds(judged: Judged) -> str:
    times = [judgment.seconds for _, judgment in judged if judgment.seconds is not None]
    return f"{median(times):.0f} s" if times else "-"


def faulty_row(names: tuple[str, ...], judged: Judged) -> tuple[Any, ...]:
    early = sum(judgment.early > 0 for _, judgment in judged)
    return (
        *names,
        len(judged),
        *counts(judged, FAULTY_WORDS),
        right_pct(judged),
        seconds(judged),
        early,
    )


def grouped(judged: Judged, title: str, of: Callable[[dict[str, Any]], str]) -> str:
    rows: list[tuple[Any, ...]] = [("build", title, "runs", *FAULTY_WORDS, "", "after", "early")]
    for group in sorted({of(record) for record, _ in judged}):
        for build in builds_of(judged):
            part = [x for x in judged if of(x[0]) == group and x[0]["build"] == build]
            if part:
                rows.append(faulty_row((build, group), part))
    return text_table(rows)


def builds_of(judged: Judged) -> list[str]:
    return list(dict.fromkeys(record["build"] for record, _ in judged))


def cost_class(judged: Judged) -> str:
    def of(record: dict[str, Any]) -> str:
        return "more than 10 %" if judge(record).required else "at most 10 %"

    return grouped(judged, "cost", of)


def healthy_table(judged: Judged) -> str:
    rows: list[tuple[Any, ...]] = [("build", "neighbor", "runs", *HEALTHY_WORDS)]
    for build in builds_of(judged):
        for neighbor in (False, True):
            part = [x for x in judged if x[0]["build"] == build and x[0]["neighbor"] == neighbor]
            if part:
                word = "yes" if neighbor else "no"
                rows.append((build, word, len(part), *counts(part, HEALTHY_WORDS)))
    return text_table(rows)


def details(judged: Judged) -> str:
    """Each run that was not right, in one line."""
    lines = []
    for record, judgment in judged:
        if judgment.word == RIGHT and not judgment.early:
            continue
        pace = f"{record['before_ms']:.1f} -> {record['after_ms']:.1f} ms"
        early = f", {judgment.early} early" if judgment.early else ""
        name = f"{record['build']} {record['program']} {record['fault']}"
        lines.append(f"{name} ({pace}): {judgment.word}{early}: {judgment.said[:160]}")
    return "\n".join(lines)


def summary(records: list[dict[str, Any]], skipped: list[str]) -> str:
    judged = [(record, judge(record)) for record in latest(records)]
    faulty = [x for x in judged if x[0]["kind"] != "none"]
    healthy = [x for x in judged if x[0]["kind"] == "none"]
    required = [x for x in faulty if x[1].required]
    parts = []
    if faulty:
        parts += [cost_class(faulty)]
    if required:
        by_fault = grouped(required, "fault", lambda record: record["fault"])
        by_program = grouped(required, "program", lambda record: record["program"])
        parts += ["Faults that cost more than 10 %:", by_fault, by_program]
    if healthy:
        parts += ["Healthy jobs:", healthy_table(healthy)]
    parts += [details(judged)]
    if skipped:
        parts += ["Not run, for want of a framework: " + ", ".join(skipped)]
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    sys.exit("this is a module: run bench/live_jobs")
