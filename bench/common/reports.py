# SPDX-License-Identifier: Apache-2.0
"""Reads what a job under `perftracker run` left; shared by the benches that judge live jobs."""

from __future__ import annotations

import json
import pathlib
from typing import Any


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def read_report(path: pathlib.Path) -> dict[str, Any] | None:
    """None: a report that is not there or not complete."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def read_reports(out: pathlib.Path) -> list[tuple[float, dict[str, Any]]]:
    """Time (time.time()) and contents of each report, in order."""
    paths = sorted(out.glob("report-*.json")) or sorted(out.glob("report.json"))
    return sorted(
        ((path.stat().st_mtime, json.loads(path.read_text())) for path in paths),
        key=lambda report: report[0],
    )


def rank_set(text: str) -> set[int]:
    """The ranks of "0-2,7"."""
    ranks: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        ranks |= set(range(int(first), int(last or first) + 1))
    return ranks
