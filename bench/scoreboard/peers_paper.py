# SPDX-License-Identifier: Apache-2.0
"""The paper's localization alone: equations 6 to 11, every worker against all others.

Source: PerfTracker, section 4.3, with the constants given there. It has no order of
findings; here they are sorted by the share of the window beyond what is expected (D) or
usual (median of the workers).
"""

from __future__ import annotations

import numpy as np
from judge import Finding
from patterns import LEAST_BETA, Function, Patterns, normalized

EXPECTED_BETA = {"host": 0.01, "idle": 0.01, "comm": 0.3, "memory": 0.3, "compute": 1.0}
SAMPLES, DISTANCE, MADS = 100, 0.4, 5


def unlike(function: Function, seed: int) -> np.ndarray:
    """Eq. 9 and 10: of a sample of workers, the share that is far away."""
    points = normalized(function)
    cnt = len(points)
    random = np.random.default_rng(seed)
    sample = points[random.choice(cnt, min(SAMPLES, cnt), replace=False)]
    distance = np.abs(points[:, None, :] - sample[None, :, :]).sum(axis=2)
    return (distance >= DISTANCE).mean(axis=1)


def find(patterns: Patterns, seed: int = 1) -> list[Finding]:
    findings = []
    for function in patterns.functions:
        if not (function.beta > LEAST_BETA).any():
            continue
        above = function.beta - EXPECTED_BETA[function.kind]  # eq. 6, 7
        delta = unlike(function, seed)
        median = np.median(delta)
        far = delta > median + MADS * np.median(np.abs(delta - median))
        accused = (function.beta > LEAST_BETA) & ((above > 0) | far)  # eq. 11
        if accused.any():
            excess = np.maximum(above, np.abs(function.beta - np.median(function.beta)))
            ranks = frozenset(patterns.ranks[accused].tolist())
            findings.append(Finding(function.name, ranks, size=float(excess[accused].mean())))
    return sorted(findings, key=lambda one: -one.size)
