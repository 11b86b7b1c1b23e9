# SPDX-License-Identifier: Apache-2.0
"""All methods on real traces of several ranks with published answers."""

from __future__ import annotations

import json
import os
import pathlib
import re
import tempfile
from collections.abc import Callable

import jobs
import patterns
import peers_nvidia
import peers_outliers
import peers_paper
import peers_traces
import table
from judge import Finding, findings_of, format_ranks

# The guilty rank of each set; none: nothing is wrong. See README.md beside the traces.
ANSWERS = {
    "dlrm4_sleep_1s": "2",
    "dlrm4_sleep_20ms": "2",
    "dlrm8": "7",
    "megatron_tp2": "0",
    "resnet18_ddp2": "",
}


def traces() -> pathlib.Path:
    default = jobs.ROOT.parent / "shared" / "traces"
    return pathlib.Path(os.environ.get("PERFTRACKER_TRACES", default)) / "multi_rank"


def paths_of(folder: pathlib.Path) -> dict[int, pathlib.Path]:
    found = {}
    for path in folder.glob("*.json.gz"):
        rank = re.search(r"\d+", path.name)
        if rank:
            found[int(rank.group())] = path
    return dict(sorted(found.items()))


def ours(program: str, folder: pathlib.Path) -> list[Finding]:
    return findings_of(json.loads(jobs.call(program, "analyze", "-f", "json", str(folder))))


def hta_renamed(paths: dict[int, pathlib.Path]) -> list[Finding]:
    with tempfile.TemporaryDirectory() as scratch:
        return peers_traces.find_hta(peers_traces.rename_collectives(paths, pathlib.Path(scratch)))


def accused(find: Callable[[], list[Finding]]) -> str:
    """The ranks of the first finding; why there is none where the method fails."""
    try:
        findings = find()
    except ImportError:
        return "not installed"
    except Exception as error:  # the method is a third-party program
        return f"fails ({type(error).__name__})"
    return format_ranks(findings[0].ranks) if findings else ""


def compare(program: str) -> str:
    """A row a set of traces, a column a method; `-` where no rank is accused."""
    if not traces().is_dir():
        return f"skipped: no traces in {traces()} (PERFTRACKER_TRACES)"
    head = ("traces", "guilty", table.OURS, "HTA", "HTA, renamed", "TraceLens' start skew")
    lines: list[tuple[object, ...]] = [
        (*head, "paper alone", "NVIDIA relative", "median/MAD", "DBSCAN")
    ]
    for name, guilty in ANSWERS.items():
        folder = traces() / name
        paths = paths_of(folder)
        seen = patterns.read(jobs.read_fingerprints(program, folder))
        methods: list[Callable[[], list[Finding]]] = [
            lambda folder=folder: ours(program, folder),
            lambda paths=paths: peers_traces.find_hta(paths),
            lambda paths=paths: hta_renamed(paths),
            lambda paths=paths: peers_traces.find_start_skew(paths),
            lambda seen=seen: peers_paper.find(seen),
            lambda seen=seen: peers_nvidia.find_relative(seen),
            lambda seen=seen: peers_outliers.find_mad(seen),
            lambda seen=seen: peers_outliers.find_dbscan(seen),
        ]
        said = [accused(find) for find in methods]
        marks = (f"{one or '-'}{' ✓' if one == guilty else ''}" for one in said)
        lines.append((name, guilty or "-", *marks))
    return table.text_table(lines)
