# SPDX-License-Identifier: Apache-2.0
"""What the scoreboard prints, from the list of judged jobs."""

from __future__ import annotations

import collections
import pathlib
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from judge import Judgment

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "common"))

from text import text_table  # noqa: E402

OURS = "perftracker"
SOURCE_STRENGTH = 1.0
FOUND_SHARE = 0.9  # of the jobs of a strength, for "still found"


class Row(NamedTuple):
    """One job and what each method said of it."""

    fault: str  # the scenario
    layout: str
    workers: int
    level: str
    strength: float
    seed: int
    cost_pct: float  # of an iteration: what the fault costs
    truth: str  # in one line
    judged: dict[str, Judgment]


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def methods_of(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(method for row in rows for method in row.judged))


def faulty(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.judged[OURS].kind == "faulty"]


def healthy(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.judged[OURS].kind == "healthy"]


class Score(NamedTuple):
    jobs: int
    top1: int
    cause: int
    wanted: int
    found: int
    findings: int
    true: int
    silent: int


def score(rows: Iterable[Row], method: str) -> Score:
    judged = [row.judged[method] for row in rows]
    return Score(
        jobs=len(judged),
        top1=sum(one.top1 for one in judged),
        cause=sum(one.cause for one in judged),
        wanted=sum(one.wanted for one in judged),
        found=sum(one.found for one in judged),
        findings=sum(one.findings for one in judged),
        true=sum(one.true for one in judged),
        silent=sum(one.findings == 0 for one in judged),
    )


def overview(rows: list[Row]) -> str:
    """Top-1, recall and abstentions at the sources' strengths; precision and alarms over all."""
    head = ("method", "jobs", "top-1", "right cause", "recall", "precision", "abstained")
    lines: list[tuple[object, ...]] = [(*head, "false alarms")]
    at_source = [row for row in faulty(rows) if row.strength == SOURCE_STRENGTH]
    for method in methods_of(rows):
        one, every = score(at_source, method), score(rows, method)
        well = score(healthy(rows), method)
        lines.append(
            (
                method,
                one.jobs,
                share(one.top1, one.jobs),
                share(one.cause, one.jobs) if method == OURS else "-",
                share(one.found, one.wanted),
                share(every.true, every.findings),
                share(one.silent, one.jobs),
                f"{well.jobs - well.silent} of {well.jobs}",
            )
        )
    return text_table(lines)


def by_fault(rows: list[Row]) -> str:
    """PerfTracker's results, by fault and strength."""
    head = ("fault", "strength", "costs", "jobs", "top-1", "right cause", "recall", "precision")
    lines: list[tuple[object, ...]] = [(*head, "abstained", "too weak")]
    groups: dict[tuple[str, float], list[Row]] = collections.defaultdict(list)
    for row in rows:
        if row.judged[OURS].kind != "healthy":
            groups[row.fault, row.strength].append(row)
    for (fault, strength), group in groups.items():
        one, every = score(faulty(group), OURS), score(group, OURS)
        lines.append(
            (
                fault,
                f"x{strength:g}",
                f"{sum(row.cost_pct for row in group) / len(group):.1f} %",
                one.jobs,
                share(one.top1, one.jobs),
                share(one.cause, one.jobs),
                share(one.found, one.wanted),
                share(every.true, every.findings),
                share(one.silent, one.jobs),
                every.jobs - one.jobs,
            )
        )
    return text_table(lines)


def by_method(rows: list[Row], value: Callable[[list[Row], str], str]) -> str:
    """A row a fault, a column a method."""
    methods = methods_of(rows)
    groups: dict[str, list[Row]] = collections.defaultdict(list)
    for row in faulty(rows):
        groups[row.fault].append(row)
    lines: list[tuple[object, ...]] = [("fault", *methods)]
    lines += [(name, *(value(group, m) for m in methods)) for name, group in groups.items()]
    return text_table(lines)


def top1_at_source(rows: list[Row], method: str) -> str:
    one = score([row for row in rows if row.strength == SOURCE_STRENGTH], method)
    return share(one.top1, one.jobs)


def smallest_strength(rows: list[Row], method: str) -> float | None:
    """From which on the fault is found nearly always, at every larger strength too."""
    smallest = None
    for strength in sorted({row.strength for row in rows}, reverse=True):
        one = score([row for row in rows if row.strength == strength], method)
        if one.found < FOUND_SHARE * one.wanted:
            break
        smallest = strength
    return smallest


def smallest_found(rows: list[Row], method: str) -> str:
    smallest = smallest_strength(rows, method)
    if smallest is None:
        return "-"
    costs = [row.cost_pct for row in rows if row.strength == smallest]
    return f"x{smallest:g} ({sum(costs) / len(costs):.1f} %)"


def by_shape(rows: list[Row]) -> str:
    """PerfTracker's results at the sources' strengths, by level, size and layout."""
    lines: list[tuple[object, ...]] = [
        ("level", "workers", "layout", "jobs", "top-1", "right cause", "recall", "abstained")
    ]
    groups: dict[tuple[str, int, str], list[Row]] = collections.defaultdict(list)
    for row in faulty(rows):
        if row.strength == SOURCE_STRENGTH:
            groups[row.level, row.workers, row.layout].append(row)
    for (level, workers, layout), group in sorted(groups.items()):
        one = score(group, OURS)
        right = (share(part, one.jobs) for part in (one.top1, one.cause))
        lines.append(
            (
                level,
                workers,
                layout.removeprefix("healthy-") or "the scenario's",
                one.jobs,
                *right,
                share(one.found, one.wanted),
                share(one.silent, one.jobs),
            )
        )
    return text_table(lines)


def goals(rows: list[Row], named: list[Row]) -> str:
    """What was asked for, and what it is."""
    at_source = score([r for r in faulty(rows) if r.strength == SOURCE_STRENGTH], OURS)
    every, well = score(rows, OURS), score(healthy(rows), OURS)
    solved = sum(row.judged[OURS].found == row.judged[OURS].wanted for row in named)
    alarm_cnt = well.jobs - well.silent
    lines: list[tuple[object, ...]] = [
        ("goal", "wanted", "measured"),
        ("top-1, sources' strengths", ">= 97.5 %", share(at_source.top1, at_source.jobs)),
        ("precision, all jobs", ">= 97.5 %", share(every.true, every.findings)),
        ("false alarms, healthy jobs", "<= 0.5 %", f"{alarm_cnt} of {well.jobs}"),
        ("cases of the sources solved", "all", f"{solved} of {len(named)}"),
    ]
    return text_table(lines)


def alarms(rows: list[Row]) -> str:
    """Healthy jobs, by scenario and method."""
    methods = methods_of(rows)
    groups: dict[str, list[Row]] = collections.defaultdict(list)
    for row in healthy(rows):
        groups[row.fault].append(row)
    lines: list[tuple[object, ...]] = [("healthy job", "jobs", *methods)]
    for name, group in groups.items():
        counts = [score(group, method) for method in methods]
        lines.append((name, len(group), *(one.jobs - one.silent for one in counts)))
    return text_table(lines)


def cases(rows: list[Row]) -> str:
    """The named cases of the sources: number of problems each method found."""
    methods = methods_of(rows)
    lines: list[tuple[object, ...]] = [("case", "workers", "first finding", *methods)]
    for row in rows:
        found = (f"{row.judged[m].found} of {row.judged[m].wanted}" for m in methods)
        lines.append((row.fault, row.workers, row.judged[OURS].said, *found))
    return text_table(lines)


def make_again(row: Row) -> str:
    name = f"{row.layout}+{row.fault}" if row.layout else row.fault
    return (
        f"-s {name} --workers {row.workers} --seed {row.seed} "
        f"--strength {row.strength:g} --level {row.level}"
    )


def errors(rows: list[Row], examples: int = 4) -> str:
    """PerfTracker's errors by kind, the most frequent first, with commands to repeat the jobs."""
    groups: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        if row.judged[OURS].why:
            groups[row.fault, row.judged[OURS].why].append(row)
    lines = []
    for (fault, why), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        strengths = collections.Counter(row.strength for row in group)
        counts = ", ".join(f"{cnt} at x{strength:g}" for strength, cnt in sorted(strengths.items()))
        lines.append(f"{fault}: {why}: {len(group)} jobs ({counts})")
        nearest = sorted(group, key=lambda row: abs(row.strength - SOURCE_STRENGTH))
        for row in nearest[:examples]:
            lines += [f"  {make_again(row)}", f"    said {row.judged[OURS].said}"]
            lines += [f"    true {row.truth}"]
    return "\n".join(lines) if lines else "none"
