# SPDX-License-Identifier: Apache-2.0
"""The part of docs/scoreboard.md on jobs that PerfTracker's rules did not grow up with.

Jobs of the second simulator, from `bench/second_simulator --format json`, and recorded jobs, from
`bench/live_jobs --analyze-again --format json`. Each job that is not right is listed, with what
PerfTracker said.
"""

from __future__ import annotations

import datetime
import json
import pathlib
from typing import Any

BEGIN = "<!-- jobs of others: bench/scoreboard --foreign -->"
SAID_CHARS = 110


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def row(cells: list[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table_of(head: list[str], rows: list[list[Any]]) -> str:
    return "\n".join([row(head), "|---" * len(head) + "|", *map(row, rows)])


def short(text: str) -> str:
    text = " ".join(text.replace("|", "/").split())
    return text if len(text) <= SAID_CHARS else text[: SAID_CHARS - 3] + "..."


def seeds_of(jobs: list[dict]) -> str:
    seeds = sorted({one["seed"] for one in jobs})
    return f"{seeds[0]} to {seeds[-1]}" if seeds else "-"


def simulated_row(jobs: list[dict]) -> list[Any]:
    must = [one for one in jobs if one["truth"] != "healthy" and one["cost_pct"] >= 5]
    healthy = [one for one in jobs if one["truth"] == "healthy"]
    judged = sum(one["findings"] - one["by_design"] for one in jobs)
    right = sum(one["first"] for one in must)
    return [
        seeds_of(jobs),
        len(jobs),
        f"{right} of {len(must)} ({percent(right, len(must))})",
        percent(judged - sum(one["false"] for one in jobs), judged),
        sum(one["verdict"] == "healthy" for one in must),
        sum(one["wrong_rank"] for one in jobs),
        f"{sum(one['false'] > 0 for one in healthy)} of {len(healthy)}",
    ]


def is_wrong(one: dict) -> bool:
    if one["truth"] == "healthy":
        return one["false"] > 0
    return (one["cost_pct"] >= 5 and not one["first"]) or one["false"] > 0


def simulated(files: list[pathlib.Path]) -> str:
    sets = [json.loads(path.read_text())["jobs"] for path in files]
    head = ["seeds", "jobs", "first finding right", "precision", "false healthy", "wrong ranks",
            "healthy accused"]  # fmt: skip
    wrong = [
        [one["scenario"], one["seed"], f"{one['cost_pct']:.1f} %", short(one["truth"]),
         short(one["said"])]
        for jobs in sets
        for one in jobs
        if is_wrong(one)
    ]  # fmt: skip
    parts = [
        "### Second simulator",
        "`bench/second_simulator` was written without knowledge of the rules. Asked for are faults "
        "that cost 5 % or more. Even seeds were looked at while rules were written.",
        table_of(head, [simulated_row(jobs) for jobs in sets]),
        "Not right, or with a false finding beside the right one:",
        table_of(["scenario", "seed", "costs", "ranks at fault", "PerfTracker said"], wrong),
    ]
    return "\n\n".join(parts)


def is_asked_for(run: dict) -> bool:
    """A rank that computes more than before and is alone has nothing to be compared with."""
    judged = run["judged"]
    alone = run["ranks"] == 1 and run["fault"] == "imbalance"
    return judged["word"] != "broken" and judged["cost_pct"] > 10 and not alone


def recorded(path: pathlib.Path) -> str:
    runs = [run for run in json.loads(path.read_text())["runs"] if is_asked_for(run)]
    faults = sorted({run["fault"] for run in runs})
    rows = []
    for fault in [*faults, "all"]:
        some = [run for run in runs if fault in (run["fault"], "all")]
        words = [run["judged"]["word"] for run in some]
        right, wrong_ranks = words.count("right"), words.count("wrong rank")
        rest = len(words) - right - wrong_ranks
        rows.append([fault, len(words), right, wrong_ranks, rest, percent(right, len(words))])
    wrong = [
        [run["program"], run["fault"], run["record"], f"{run['judged']['cost_pct']:.0f} %",
         run["judged"]["word"], short(run["judged"]["said"])]
        for run in runs
        if run["judged"]["word"] != "right"
    ]  # fmt: skip
    parts = [
        "### Recorded jobs",
        "Programs in the manner of their frameworks' users (`bench/live_jobs`), with a fault in "
        "one function, recorded by torch.profiler on a machine of two CPUs; faults that make "
        "iterations longer by more than 10 %.",
        table_of(["fault", "jobs", "right", "wrong rank", "else", ""], rows),
        "Not right:",
        table_of(["program", "fault", "recorded", "costs", "", "PerfTracker said"], wrong),
    ]
    return "\n\n".join(parts)


def section(simulations: list[pathlib.Path], runs: pathlib.Path | None) -> str:
    today = datetime.datetime.now(datetime.timezone.utc).date()
    parts = [BEGIN, f"## Jobs of others\n\nMeasured on {today}."]
    parts += [simulated(simulations)] if simulations else []
    parts += [recorded(runs)] if runs else []
    return "\n\n".join(parts) + "\n"


def kept(document: str) -> str:
    """The part as the document has it."""
    return document[document.index(BEGIN) :] if BEGIN in document else ""


def replace(document: str, part: str) -> str:
    if not part:
        return document
    head = document[: document.index(BEGIN)] if BEGIN in document else document + "\n"
    return head + part
