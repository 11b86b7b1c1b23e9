# SPDX-License-Identifier: Apache-2.0
"""Overhead of monitoring and profiling a training job, compared with torch.profiler.

    .venv/bin/python bench/overhead --repeats 5

A two-rank data-parallel job runs without perftracker, watched, and with repeated windows,
recorded by perftracker's collectors or torch.profiler by turns. Watching: the ratio
of the median iterations of neighboring runs. Windows: the ratio of the median
iterations in and outside of the windows of one run, so that slow changes of the machine
cancel. The stall is the longest iteration within half a second of a window's end.
CPU is the mean CPU time of the whole process in an iteration, including the agent's
threads: unlike wall time it does not depend on other processes.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"
TORCHRUN = ROOT / ".venv" / "bin" / "torchrun"
JOB = ROOT / "bench" / "overhead" / "job.py"
NAN = float("nan")

# width, layers, rows in a batch, seconds; about 2 ms and 20 ms on one core
SIZES = {"2 ms": (64, 4, 16, 18), "20 ms": (256, 8, 128, 18)}
MODES = ("off", "watched", "agent", "torch")
WINDOW_S = 1.5
STALL_S = 0.5


class Iteration(NamedTuple):
    begin_s: float
    ms: float
    cpu_ms: float
    in_window: bool


class Result(NamedTuple):
    outside_ms: float
    inside_ms: float
    outside_cpu_ms: float
    inside_cpu_ms: float
    windows: int
    stall_ms: float
    report_s: float  # from the end of a window to its report


def read_times(path: pathlib.Path) -> list[Iteration]:
    """Without the first fifth: there the job warms up and the tool learns."""
    rows = [line.split() for line in path.read_text().splitlines()]
    rows = rows[len(rows) // 5 :]
    return [
        Iteration(float(begin), float(ms), float(cpu), window == "1")
        for begin, ms, cpu, window in rows
    ]


def ends_of_windows(times: list[Iteration]) -> list[float]:
    pairs = zip(times, times[1:], strict=False)
    return [b.begin_s for a, b in pairs if a.in_window and not b.in_window]


def longest_near(times: list[Iteration], end_s: float) -> float:
    near = [one.ms for one in times if abs(one.begin_s - end_s) < STALL_S]
    across = [one.ms for one in times if one.begin_s < end_s < one.begin_s + one.ms / 1e3]
    return max(near + across, default=NAN)


def report_delay(out: pathlib.Path, end_s: float) -> float:
    written = [path.stat().st_mtime - end_s for path in out.glob("report-*.json")]
    return min((late for late in written if late > 0), default=NAN)


def median(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return statistics.median(known) if known else NAN


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else NAN


def command_of(mode: str, out: pathlib.Path, size: tuple[int, int, int, int]) -> list[str]:
    job = [str(TORCHRUN), "--nproc-per-node", "2", str(JOB), *map(str, size), str(out)]
    if mode == "off":
        return job
    options = ["--slowdown", "1000", "--steps", "100000", "--min-gap", "0", "--quiet"]
    options += ["--no-audit"] if mode != "watched" else []
    options += ["--source", mode] if mode in ("agent", "torch") else []
    return [str(PROGRAM), "run", "--out", str(out), *options, "--", *job]


def ask_windows(job: subprocess.Popen[bytes]) -> None:
    ask = [str(PROGRAM), "profile", "--window", str(WINDOW_S)]
    while job.poll() is None:
        asked = subprocess.run(ask, capture_output=True, check=False)
        time.sleep(0.5 if asked.returncode == 0 else 0.2)


def run(mode: str, size: tuple[int, int, int, int]) -> Result | None:
    """None when the job failed, as torch sometimes does at exit, even without PerfTracker."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        env = {**os.environ, "XDG_RUNTIME_DIR": folder, "OMP_NUM_THREADS": "1"}
        with open(out / "log", "wb") as log:
            job = subprocess.Popen(command_of(mode, out, size), stdout=log, stderr=log, env=env)
            if mode in ("agent", "torch"):
                os.environ["XDG_RUNTIME_DIR"] = folder
                ask_windows(job)
            if job.wait() != 0:
                print(f"{mode}: the job failed:", (out / "log").read_text()[:300], file=sys.stderr)
                return None
        times = read_times(out / "times.txt")
        ends = ends_of_windows(times)
        return Result(
            outside_ms=median([one.ms for one in times if not one.in_window]),
            inside_ms=median([one.ms for one in times if one.in_window]),
            outside_cpu_ms=mean([one.cpu_ms for one in times if not one.in_window]),
            inside_cpu_ms=mean([one.cpu_ms for one in times if one.in_window]),
            windows=len(ends),
            stall_ms=median([longest_near(times, end_s) for end_s in ends]),
            report_s=median([report_delay(out, end_s) for end_s in ends]),
        )


def spread(ratios: list[float]) -> str:
    return f"x{median(ratios):.4f} ({min(ratios):.4f}..{max(ratios):.4f})"


def outside_text(runs: list[Result], off: list[Result]) -> str:
    pairs = list(zip(runs, off, strict=False))
    if not pairs:
        return ""
    times = [ours.outside_ms / theirs.outside_ms for ours, theirs in pairs]
    cpu = [ours.outside_cpu_ms / theirs.outside_cpu_ms for ours, theirs in pairs]
    return f", of off {spread(times)}, CPU {spread(cpu)}"


def windows_text(runs: list[Result]) -> str:
    runs = [one for one in runs if one.windows > 0]
    if not runs:
        return ""
    times = [one.inside_ms / one.outside_ms for one in runs]
    cpu = [one.inside_cpu_ms / one.outside_cpu_ms for one in runs]
    return (
        f", {sum(one.windows for one in runs)} windows: {spread(times)}, CPU {spread(cpu)}"
        f", longest iteration at the end {median([one.stall_ms for one in runs]):.1f} ms"
        f", report after {median([one.report_s for one in runs]):.2f} s"
    )


def print_size(name: str, results: dict[str, list[Result]]) -> None:
    for mode, runs in results.items():
        if not runs:
            continue
        line = f"{name:6s} {mode:8s} iteration {median([one.outside_ms for one in runs]):7.3f} ms"
        line += f", CPU {median([one.outside_cpu_ms for one in runs]):7.3f} ms"
        line += outside_text(runs, results["off"]) if mode != "off" else ""
        print(line + windows_text(runs), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--sizes", default=",".join(SIZES))
    options = parser.parse_args()
    for name in options.sizes.split(","):
        results: dict[str, list[Result]] = {mode: [] for mode in MODES}
        for _ in range(options.repeats):
            for mode in options.modes.split(","):
                while (result := run(mode, SIZES[name])) is None:
                    pass
                results[mode].append(result)
        print_size(name, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
