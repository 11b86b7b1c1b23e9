# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's straggler scores, with the threshold 0.75.

Source: nvidia-resiliency-ext, straggler detection,
https://nvidia.github.io/nvidia-resiliency-ext/straggler_det/usage_guide.html and the
comments of straggler/reporting.py: the score of a section is a reference's median time
by the rank's own; the score of a GPU is the mean of that over all kernels but NCCL's that
every rank ran, weighted by time. The reference is the fastest rank (relative) or the
rank's own best so far (individual).

Reimplemented, because the package measures live jobs with CUPTI and reads no files. A
fingerprint has no medians: means of executions are used instead. Sections are those that a
user would mark: loading, forward, backward, optimizer. A section below 1 % of the window
counts as 1 %, so that noise of short sections has no effect. The best so far is the same
job before the fault.
"""

from __future__ import annotations

import numpy as np
from judge import Finding
from patterns import LEAST_BETA, Function, Patterns

THRESHOLD = 0.75
SECTIONS = {
    "dataloader data_loading": ("dataloader.py", "DataLoader"),
    "forward": ("forward",),
    "backward": ("backward",),
    "optimizer": ("optim",),
}


def is_kernel(function: Function) -> bool:
    return function.kind == "compute" and bool((function.executions > 0).all())


def kernel_times(patterns: Patterns) -> dict[tuple[str, ...], np.ndarray]:
    """Mean execution in ms."""
    return {f.stack: f.duration_ms / f.executions for f in patterns.functions if is_kernel(f)}


def gpu_scores(patterns: Patterns, reference: dict[tuple[str, ...], np.ndarray]) -> np.ndarray:
    scores, weights = np.zeros(len(patterns.ranks)), np.zeros(len(patterns.ranks))
    for function in filter(is_kernel, patterns.functions):
        own = function.duration_ms / function.executions
        best = reference.get(function.stack)
        if best is None or not (own > 0).all():
            continue
        scores += function.duration_ms * np.minimum(best, own) / own
        weights += function.duration_ms
    return np.divide(scores, weights, out=np.ones_like(scores), where=weights > 0)


def section_times(patterns: Patterns) -> dict[str, np.ndarray]:
    times = {name: np.zeros(len(patterns.ranks)) for name in SECTIONS}
    for function in patterns.functions:
        if function.kind not in ("host", "idle"):
            continue
        for name, words in SECTIONS.items():
            if any(word in frame for frame in function.stack for word in words):
                times[name] += function.duration_ms
                break
    least_ms = LEAST_BETA * patterns.iteration_ms
    return {name: np.maximum(time, least_ms) for name, time in times.items()}


def accuse(patterns: Patterns, gpus: np.ndarray, sections: dict[str, np.ndarray]) -> list[Finding]:
    kernels = " ".join(f.name for f in patterns.functions if is_kernel(f))
    findings = []
    for name, scores in {f"GPU: {kernels}": gpus, **sections}.items():
        slow = scores < THRESHOLD
        if slow.any():
            ranks = frozenset(patterns.ranks[slow].tolist())
            findings.append(Finding(name, ranks, size=float(1 - scores[slow].mean())))
    return sorted(findings, key=lambda one: -one.size)


def find_relative(patterns: Patterns) -> list[Finding]:
    best = {stack: np.full_like(own, own.min()) for stack, own in kernel_times(patterns).items()}
    times = section_times(patterns)
    sections = {name: time.min() / time for name, time in times.items()}
    return accuse(patterns, gpu_scores(patterns, best), sections)


def find_individual(patterns: Patterns, before: Patterns) -> list[Finding]:
    """`before` has the same ranks in the same order."""
    earlier, times = section_times(before), section_times(patterns)
    sections = {name: np.minimum(earlier[name], time) / time for name, time in times.items()}
    return accuse(patterns, gpu_scores(patterns, kernel_times(before)), sections)
