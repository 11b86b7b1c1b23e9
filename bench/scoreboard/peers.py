# SPDX-License-Identifier: Apache-2.0
"""All other methods, on the fingerprints given to PerfTracker."""

from __future__ import annotations

from typing import Any

import patterns
import peers_nvidia
import peers_outliers
import peers_paper
from judge import Finding


def find(
    fingerprints: list[dict[str, Any]], before: list[dict[str, Any]]
) -> dict[str, list[Finding]]:
    """By method; `before` is of the same job without its fault."""
    seen, earlier = patterns.read(fingerprints), patterns.read(before)
    return {
        "paper alone": peers_paper.find(seen),
        "NVIDIA relative": peers_nvidia.find_relative(seen),
        "NVIDIA individual": peers_nvidia.find_individual(seen, earlier),
        "median/MAD": peers_outliers.find_mad(seen),
        "DBSCAN": peers_outliers.find_dbscan(seen),
    }
