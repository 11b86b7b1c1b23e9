# SPDX-License-Identifier: Apache-2.0
"""The numbers of each function on each worker, as matrices: the input of the other methods."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LEAST_BETA = 0.01  # PerfTracker, eq. 11: functions below do not matter; for all methods alike


class Function(NamedTuple):
    """One function; arrays go by worker, in the order of Job.ranks."""

    name: str
    stack: tuple[str, ...]
    kind: str  # compute, memory, comm, host or idle
    beta: np.ndarray  # share of the window on the critical path; 0: not there
    mu: np.ndarray  # NaN: not measured
    sigma: np.ndarray
    executions: np.ndarray  # an iteration
    duration_ms: np.ndarray  # on the critical path, an iteration


class Patterns(NamedTuple):
    ranks: np.ndarray
    iteration_ms: np.ndarray  # by worker, mean
    functions: list[Function]


def read(fingerprints: list[dict[str, Any]]) -> Patterns:
    rows: dict[tuple[str, str], Function] = {}
    cnt = len(fingerprints)
    for place, fingerprint in enumerate(fingerprints):
        iterations = max(1, fingerprint["iterations"])
        for one in fingerprint["functions"]:
            key = one["key"], one["class"]
            if key not in rows:
                rows[key] = empty(one, cnt)
            row = rows[key]
            row.beta[place] = one["beta"]
            row.mu[place] = number(one["mu"])
            row.sigma[place] = number(one["sigma"])
            row.executions[place] = one["executions"] / iterations
            row.duration_ms[place] = one["critical_ns"] / 1e6 / iterations
    return Patterns(
        np.array([one["rank"] for one in fingerprints]),
        np.array([one["window_ns"] / 1e6 / max(1, one["iterations"]) for one in fingerprints]),
        list(rows.values()),
    )


def empty(one: dict[str, Any], cnt: int) -> Function:
    stack, absent = tuple(one["stack"]), np.full(cnt, np.nan)
    zeros = [np.zeros(cnt) for _ in range(3)]
    return Function(
        stack[-1], stack, one["class"], zeros[0], absent, absent.copy(), zeros[1], zeros[2]
    )


def number(value: float | None) -> float:
    return np.nan if value is None else value


def normalized(function: Function) -> np.ndarray:
    """PerfTracker, eq. 8: each dimension by its maximum; absent ones count as 0."""
    columns = np.nan_to_num(np.stack([function.beta, function.mu, function.sigma], axis=1))
    top = columns.max(axis=0)
    return columns / np.where(top > 0, top, 1)
