# SPDX-License-Identifier: Apache-2.0
"""Two textbook ways to find outliers, function by function.

* The modified z-score: 0.6745 (x - median) / MAD above 3.5, on durations. Source: NIST
  handbook, https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm (Iglewicz
  and Hoaglin 1993).
* DBSCAN (Ester et al. 1996) as scikit-learn has it, on the patterns of the paper's
  eq. 8: its distance and its delta of 0.4 as eps, else the library's defaults. Noise is
  accused, and every cluster but the largest.

Both look only at functions of at least 1 % of the window, as the paper does, and sort
by how much longer the accused take than the median worker.
"""

from __future__ import annotations

import numpy as np
from judge import Finding
from patterns import LEAST_BETA, Function, Patterns, normalized
from sklearn.cluster import DBSCAN

MODIFIED_Z = 3.5


def slow_by_mad(function: Function) -> np.ndarray:
    above = function.duration_ms - np.median(function.duration_ms)
    mad = np.median(np.abs(above))
    return 0.6745 * above > MODIFIED_Z * mad


def apart_by_dbscan(function: Function) -> np.ndarray:
    labels = DBSCAN(eps=0.4, metric="manhattan").fit_predict(normalized(function))
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    largest = clusters[sizes.argmax()] if len(clusters) else None
    return labels != largest if largest is not None else np.zeros(len(labels), dtype=bool)


def find(patterns: Patterns, rule) -> list[Finding]:
    findings = []
    for function in patterns.functions:
        if not (function.beta > LEAST_BETA).any():
            continue
        accused = rule(function) & (function.beta > LEAST_BETA)
        if accused.any():
            excess = np.abs(function.beta - np.median(function.beta))[accused].mean()
            ranks = frozenset(patterns.ranks[accused].tolist())
            findings.append(Finding(function.name, ranks, size=float(excess)))
    return sorted(findings, key=lambda one: -one.size)


def find_mad(patterns: Patterns) -> list[Finding]:
    return find(patterns, slow_by_mad)


def find_dbscan(patterns: Patterns) -> list[Finding]:
    return find(patterns, apart_by_dbscan)
