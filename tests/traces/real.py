# SPDX-License-Identifier: Apache-2.0
"""Where the program and other people's traces are, and how to change a trace on purpose."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM", str(ROOT / "build" / "src" / "cmd" / "perftracker"))
TRACES = pathlib.Path(os.environ.get("PERFTRACKER_TRACES", ROOT.parent / "shared" / "traces"))

Trace = dict[str, Any]


def skip_without_traces() -> None:
    """meson takes 77 for skipped."""
    if not TRACES.is_dir():
        print(f"skipped: no traces at {TRACES}; set PERFTRACKER_TRACES")
        sys.exit(77)


def call(*words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, *map(str, words)]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def analyze(*words: str | pathlib.Path) -> dict[str, Any]:
    done = call("analyze", "--format", "json", *words)
    if done.returncode:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def read(path: pathlib.Path) -> Trace:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def write(path: pathlib.Path, trace: Trace) -> None:
    path.write_text(json.dumps(trace), encoding="utf-8")


def ranks_of(name: str) -> list[pathlib.Path]:
    return sorted((TRACES / "multi_rank" / name).glob("*.json.gz"))


def copy_set(
    name: str, folder: pathlib.Path, change: Callable[[int, Trace], None] | None = None
) -> None:
    """A set of ranks in a folder of its own, each changed by change(rank, trace)."""
    for rank, path in enumerate(ranks_of(name)):
        trace = read(path)
        if change:
            change(rank, trace)
        write(folder / path.name.removesuffix(".gz"), trace)


def timed(trace: Trace) -> Iterable[dict[str, Any]]:
    return (e for e in trace["traceEvents"] if "ts" in e)


def move(trace: Trace, us: float) -> None:
    for e in timed(trace):
        e["ts"] = float(e["ts"]) + us


def drop_first(trace: Trace, share: float) -> None:
    """Drops that share of the window: what began in it."""
    spans = [e for e in timed(trace) if e.get("ph") == "X"]
    begin = min(float(e["ts"]) for e in spans)
    end = max(float(e["ts"]) + float(e.get("dur", 0)) for e in spans)
    limit = begin + share * (end - begin)
    trace["traceEvents"] = [
        e for e in trace["traceEvents"] if "ts" not in e or float(e["ts"]) >= limit
    ]


def stretch(trace: Trace, at_us: float, by_us: float) -> None:
    """Inserts a pause: later events move, events that span it grow."""
    for e in timed(trace):
        begin, length = float(e["ts"]), float(e.get("dur", 0))
        if begin >= at_us:
            e["ts"] = begin + by_us
        elif begin + length > at_us:
            e["dur"] = length + by_us


def collectives(trace: Trace) -> list[dict[str, Any]]:
    """Kernels of collectives, in order."""
    kernels = [
        e for e in trace["traceEvents"] if e.get("cat") == "kernel" and "nccl" in e["name"].lower()
    ]
    return sorted(kernels, key=lambda e: float(e["ts"]))


def inject_sleep(late: Trace, others: list[Trace], every: int, ms: float) -> None:
    """`late` sleeps before launching each every-th collective; the others wait in theirs."""
    for idx in range(0, len(collectives(late)), every):
        launch = collectives(late)[idx]
        thread = [e for e in late["traceEvents"] if e.get("name", "").startswith("nccl:")]
        at_us = max(float(e["ts"]) for e in thread if float(e["ts"]) <= float(launch["ts"])) - 0.5
        stretch(late, at_us, ms * 1000)
        for other in others:
            wait = collectives(other)[idx]
            stretch(other, float(wait["ts"]) + float(wait["dur"]) - 0.5, ms * 1000)
