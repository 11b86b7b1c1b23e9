# SPDX-License-Identifier: Apache-2.0
"""Compares a report with the truth of its job.

The first finding is right if it accuses one of the accepted sets of ranks and names the place or
a cause that the truth accepts. A finding about all ranks that says how much of an iteration
communication or the host takes is "by design": it accuses no rank and may be true of a healthy job.
So is one that says that all ranks have uneven inputs by turns, in a job whose experts have.
"""

from __future__ import annotations

from typing import NamedTuple

from faults import Fault, Truth

LEAST_PCT = 5.0  # a fault that costs less need not be found
BY_DESIGN = ("slow-collective", "slow-function-everywhere", "host-bound", "slow-copy")


class Verdict(NamedTuple):
    scenario: str
    seed: int
    cost_pct: float  # of the fault; 0: healthy
    first: bool
    any: bool
    wrong_rank: bool  # the first finding accuses ranks that no fault hit
    findings: int
    false: int
    by_design: int
    verdict: str
    gain_error: float | None  # points, of a right first finding
    said: str
    truth: str

    @property
    def must_find(self) -> bool:
        return self.cost_pct >= LEAST_PCT

    @property
    def false_healthy(self) -> bool:
        return self.must_find and self.verdict == "healthy"


def parse_ranks(text: str) -> frozenset[int]:
    ends = [part.split("-") for part in text.split(",") if part]
    return frozenset(rank for end in ends for rank in range(int(end[0]), int(end[-1]) + 1))


def names(finding: dict, truth: Truth) -> bool:
    by_word = any(word in finding["function"]["name"] for word in truth.words)
    return by_word or finding["cause"] in truth.causes


def accuses(finding: dict, truth: Truth) -> bool:
    ranks = parse_ranks(finding["ranks"])
    if ranks in truth.answers:
        return True
    hit = truth.answers[0]
    if not truth.possible or not ranks <= truth.possible:
        return False
    return ranks == truth.possible or (len(ranks & hit) >= len(hit) / 2 and ranks <= hit)


def is_inside(finding: dict, truth: Truth) -> bool:
    could = truth.possible.union(*truth.answers)
    return parse_ranks(finding["ranks"]) <= could


def is_by_design(finding: dict, uneven_inputs: bool) -> bool:
    causes = (*BY_DESIGN, "load-imbalance") if uneven_inputs else BY_DESIGN
    return finding["scope"] == "all" and finding["cause"] in causes


def short(ranks: frozenset[int]) -> str:
    return ",".join(map(str, sorted(ranks)))


def judge(
    scenario: str,
    seed: int,
    fault: Fault,
    cost_pct: float,
    report: dict,
    uneven_inputs: bool = False,
) -> Verdict:
    findings, truths = report["findings"], fault.truths
    said = [f"{one['cause']} {one['function']['name'][:40]} on {one['ranks']}" for one in findings]
    right = [any(names(one, truth) and accuses(one, truth) for truth in truths) for one in findings]
    if fault.missing:
        # Without its file the rank can be named at best; to blame a rank that is present is wrong.
        right = [parse_ranks(one["ranks"]) <= fault.missing for one in findings]
        right = right or [report["verdict"] in ("incomplete", "inconclusive")]
    designed = [
        is_by_design(one, uneven_inputs) and not hit
        for one, hit in zip(findings, right, strict=False)
    ]
    false = sum(
        not is_true and not design
        for is_true, design in zip(
            [
                hit or any(names(one, truth) and is_inside(one, truth) for truth in truths)
                for one, hit in zip(findings, right, strict=False)
            ],
            designed,
            strict=True,
        )
    )
    first = bool(right) and right[0]
    outside = bool(findings) and not any(is_inside(findings[0], truth) for truth in truths)
    gain = findings[0]["gain_pct"] if first and findings else None
    return Verdict(
        scenario=scenario,
        seed=seed,
        cost_pct=cost_pct,
        first=first,
        any=any(right),
        wrong_rank=outside and not designed[0],
        findings=len(findings),
        false=false,
        by_design=sum(designed),
        verdict=report["verdict"],
        gain_error=None if gain is None else abs(gain - cost_pct),
        said="; ".join(said[:3]) or report["verdict"] + ": " + report["reason"],
        truth=" + ".join(short(one.answers[0]) for one in truths) or "healthy",
    )
