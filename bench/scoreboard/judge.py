# SPDX-License-Identifier: Apache-2.0
"""Compares the findings of a method on a job with the truth.

A finding is right when it names the fault and accuses the workers with the fault:

* it names the fault by a function whose own name contains one of the truth's words, or by one
  of the causes the truth accepts; a fault of no function is named by its workers alone;
* the accused and the faulty workers have a Jaccard index of at least 0.9, so below ten workers
  they must be equal. For faults at random workers (garbage collections, pauses by turns),
  all possible workers are right too, and at least half of the workers with the fault.

A finding that accuses only workers whom the fault could hit is not false, but it finds
the fault only when it accuses enough of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

SAME = 0.9  # Jaccard index of two sets of workers that are called the same
MIN_GAIN_PCT = 1.0  # below it no report is asked to find anything
BY_CHANCE = ("at random", "by turns")


class Finding(NamedTuple):
    function: str  # its own name, or several
    ranks: frozenset[int]
    cause: str = ""
    size: float = 0.0  # what findings are sorted by


class Judgment(NamedTuple):
    """One method on one job."""

    kind: str  # "faulty", "weak" (all faults below MIN_GAIN_PCT) or "healthy"
    top1: bool
    cause: bool  # the first finding also names the right cause
    wanted: int  # faults that should be found
    found: int
    findings: int
    true: int
    said: str
    why: str = ""  # what is wrong with it, in one line; empty: nothing


def parse_ranks(text: str) -> frozenset[int]:
    """ "0-2,7" as numbers."""
    ends = [part.split("-") for part in text.split(",") if part]
    return frozenset(rank for end in ends for rank in range(int(end[0]), int(end[-1]) + 1))


def format_ranks(ranks: frozenset[int]) -> str:
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def findings_of(report: dict[str, Any]) -> list[Finding]:
    return [
        Finding(f["function"]["name"], parse_ranks(f["ranks"]), f["cause"], f["gain_pct"] or 0.0)
        for f in report["findings"]
    ]


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def names(finding: Finding, fault: dict[str, Any]) -> bool:
    words = fault["functions_accepted"]
    by_function = not words or any(word in finding.function for word in words)
    return by_function or finding.cause in fault["causes_accepted"]


def accuses(finding: Finding, fault: dict[str, Any]) -> bool:
    hit, possible = parse_ranks(fault["ranks"]), parse_ranks(fault["ranks_possible"])
    if jaccard(finding.ranks, hit) >= SAME:
        return True
    if fault["when"] not in BY_CHANCE:
        return False
    enough = len(finding.ranks & hit) >= len(hit) / 2
    return jaccard(finding.ranks, possible) >= SAME or (enough and is_inside(finding, hit))


def is_inside(finding: Finding, ranks: frozenset[int]) -> bool:
    return len(finding.ranks & ranks) >= SAME * len(finding.ranks)


def is_true(finding: Finding, fault: dict[str, Any]) -> bool:
    return names(finding, fault) and is_inside(finding, parse_ranks(fault["ranks_possible"]))


def kind_of(truth: dict[str, Any]) -> str:
    if not any(fault["size"] > 0 for fault in truth["faults"]):
        return "healthy"
    return "faulty" if truth["verdict"] == "abnormal" else "weak"


def wanted_of(truth: dict[str, Any]) -> list[dict[str, Any]]:
    """Faults with a gain; if faults hide each other, those that cost time when alone."""
    for key in ("gain_pct", "alone_pct"):
        wanted = [fault for fault in truth["faults"] if fault[key] >= MIN_GAIN_PCT]
        if wanted:
            return wanted
    return []


def short_ranks(ranks: frozenset[int], width: int = 60) -> str:
    text = format_ranks(ranks)
    return text if len(text) <= width else f"{len(ranks)} ranks"


def describe(findings: list[Finding]) -> str:
    if not findings:
        return "nothing"
    first = findings[0]
    return f"{first.cause or first.function[:50]} on {short_ranks(first.ranks)}"


def describe_truth(truth: dict[str, Any]) -> str:
    faults = []
    for fault in truth["faults"]:
        ranks = short_ranks(parse_ranks(fault["ranks"]))
        faults.append(f"{fault['cause']} on {ranks} ({fault['gain_pct']:.1f} %)")
    return "; ".join(faults) or "healthy"


def other_workers(finding: Finding, fault: dict[str, Any]) -> str:
    hit = parse_ranks(fault["ranks"])
    if finding.ranks < hit:
        return "too few workers"
    return "too many workers" if finding.ranks > hit else "other workers"


def complain(truth: dict[str, Any], findings: list[Finding], wanted: int, found: int) -> str:
    """The gravest thing first: nothing said, the first finding wrong, others wrong or missing."""
    faults = wanted_of(truth)
    if not findings:
        return "says nothing" if wanted else ""
    first = findings[0]
    label = first.cause or first.function[:50]
    if wanted and not any(names(first, one) for one in faults):
        return f"says {label} first"
    if wanted and not any(names(first, one) and accuses(first, one) for one in faults):
        named = next(one for one in faults if names(first, one))
        return f"names it on {other_workers(first, named)}"
    present = [fault for fault in truth["faults"] if fault["size"] > 0]
    false = [one for one in findings if not any(is_true(one, fault) for fault in present)]
    if false:
        return f"{'also ' if wanted else ''}says {false[0].cause or false[0].function[:50]}"
    return "misses one of several" if found < wanted else ""


def judge(truth: dict[str, Any], findings: list[Finding]) -> Judgment:
    kind, wanted = kind_of(truth), wanted_of(truth)
    present = [fault for fault in truth["faults"] if fault["size"] > 0]

    def finds(finding: Finding, fault: dict[str, Any]) -> bool:
        return names(finding, fault) and accuses(finding, fault)

    first = [fault for fault in wanted if findings and finds(findings[0], fault)]
    found = sum(any(finds(one, fault) for one in findings) for fault in wanted)
    return Judgment(
        kind=kind,
        top1=bool(first),
        cause=any(findings[0].cause in fault["causes_accepted"] for fault in first),
        wanted=len(wanted),
        found=found,
        findings=len(findings),
        true=sum(any(is_true(one, fault) for fault in present) for one in findings),
        said=describe(findings),
        why=complain(truth, findings, len(wanted), found),
    )
