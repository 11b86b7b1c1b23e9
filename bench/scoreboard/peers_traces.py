# SPDX-License-Identifier: Apache-2.0
"""Tools that read traces of torch.profiler, on the traces of all ranks of a job.

* HolisticTraceAnalysis from PyPI: get_potential_stragglers(), which names as many ranks
  as it is asked for; here one. Version 0.5.0 knows collectives by "ncclKernel" only, so
  traces since NCCL 2.19 ("ncclDevKernel") are given to it a second time, renamed.
* TraceLens (AMD): skew in start times of each collective, by process group and place in
  its order, on the traces' own clocks. Written anew from its description,
  https://rocm.docs.amd.com/projects/tracelens/en/latest/how-to/nccl-analysis.html: it is
  on no package index (the `tracelens` of PyPI is another program). It prints tables;
  here the rank that is late most in sum is accused, where that is 1 % of the window.
"""

from __future__ import annotations

import collections
import gzip
import json
import logging
import pathlib
import warnings

from judge import Finding

LEAST_SHARE = 0.01


def find_hta(paths: dict[int, pathlib.Path]) -> list[Finding]:
    from hta.trace_analysis import TraceAnalysis

    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        analysis = TraceAnalysis(
            trace_files={rank: str(path) for rank, path in paths.items()},
            include_last_profiler_step=True,
        )
        ranks = analysis.get_potential_stragglers(num_candidates=1)
    return [Finding("", frozenset(int(rank) for rank in ranks))]


def rename_collectives(
    paths: dict[int, pathlib.Path], folder: pathlib.Path
) -> dict[int, pathlib.Path]:
    """Copies of the traces in which collectives have the names of an older NCCL."""
    renamed = {}
    for rank, path in paths.items():
        text = gzip.decompress(path.read_bytes()).replace(b"ncclDevKernel", b"ncclKernel")
        renamed[rank] = folder / f"rank{rank}.json.gz"
        renamed[rank].write_bytes(gzip.compress(text, 1))
    return renamed


def read_events(path: pathlib.Path) -> list[dict]:
    data = json.loads(gzip.decompress(path.read_bytes()))
    events = data["traceEvents"] if isinstance(data, dict) else data
    return [event for event in events if event.get("ph") == "X"]


def is_collective(event: dict) -> bool:
    return str(event.get("cat", "")).lower() == "kernel" and "nccl" in event["name"].lower()


def starts_by_group(events: list[dict]) -> dict[tuple[str, int], float]:
    """When each collective began, by its group and its place in the group's order."""
    groups: dict[str, list[float]] = collections.defaultdict(list)
    for event in filter(is_collective, events):
        group = event.get("args", {}).get("Process Group Name", "")
        groups[str(group)].append(float(event["ts"]))
    return {
        (group, place): start
        for group, starts in groups.items()
        for place, start in enumerate(sorted(starts))
    }


def find_start_skew(paths: dict[int, pathlib.Path]) -> list[Finding]:
    late_us: dict[int, float] = collections.defaultdict(float)
    starts, window_us = {}, 0.0
    for rank, path in paths.items():
        events = read_events(path)
        starts[rank] = starts_by_group(events)
        first = min(float(event["ts"]) for event in events)
        last = max(float(event["ts"]) + float(event.get("dur", 0)) for event in events)
        window_us = max(window_us, last - first)
    for key in set().union(*starts.values()):
        began = {rank: known[key] for rank, known in starts.items() if key in known}
        for rank, start in began.items():
            late_us[rank] += start - min(began.values())
    if not late_us:
        return []
    worst = max(late_us, key=lambda rank: late_us[rank])
    enough = late_us[worst] >= LEAST_SHARE * window_us
    return [Finding("", frozenset({worst}))] if enough else []
