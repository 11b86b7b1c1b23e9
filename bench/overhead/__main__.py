# SPDX-License-Identifier: Apache-2.0
"""What watching and profiling cost a training job, beside torch.profiler.

    .venv/bin/python bench/overhead --repeats 5

A two-rank job runs without perftracker, watched, and with a window in its middle that
our own collectors or torch.profiler record, by turns. Ratios of medians: of runs for
watching, of iterations in and outside of the window of one run for profiling.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, Tuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"
TORCHRUN = ROOT / ".venv" / "bin" / "torchrun"
JOB = ROOT / "bench" / "overhead" / "job.py"

# width, layers, iterations, of a step of about 2 ms and of about 20 ms on one core
SIZES = {"2 ms step": (64, 4, 6000), "20 ms step": (768, 8, 600)}
MODES = ("off", "watched", "agent", "torch")


def read_times(path: pathlib.Path) -> Tuple[List[float], List[float]]:
    """Milliseconds of the iterations outside and inside of the window; warm-up left out."""
    rows = [line.split() for line in path.read_text().splitlines()]
    rows = rows[len(rows) // 10 :]
    outside = [float(ms) for ms, window in rows if window == "0"]
    return outside, [float(ms) for ms, window in rows if window == "1"]


def command_of(mode: str, out: pathlib.Path, size: Tuple[int, int, int]) -> List[str]:
    job = [str(TORCHRUN), "--nproc-per-node", "2", str(JOB), *map(str, size), str(out)]
    if mode == "off":
        return job
    options = ["--slowdown", "1000", "--window", "3", "--steps", "100000", "--quiet"]
    if mode in ("agent", "torch"):
        options += ["--source", mode]
    return [str(PROGRAM), "run", "--out", str(out), *options, "--", *job]


def run(mode: str, size: Tuple[int, int, int]) -> Dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        with open(out / "log", "wb") as log:
            job = subprocess.Popen(command_of(mode, out, size), stdout=log, stderr=log)
            asked_s = time.monotonic()
            if mode in ("agent", "torch"):
                asked_s = ask_profile(job)
            job.wait()
        outside, inside = read_times(out / "times.txt")
        result = {"outside_ms": statistics.median(outside)}
        if inside:
            result["inside_ms"] = statistics.median(inside)
            result["longest_ms"] = max(outside + inside)
        reports = sorted(out.glob("report-*.json"))
        if reports:
            result["report_s"] = asked_s
            result["sizes"] = float(len(json.loads(reports[0].read_text())["findings"]))
        return result


def ask_profile(job: "subprocess.Popen[bytes]") -> float:
    """Asks until a profile was made; returns the seconds from the window's end to its report."""
    deadline_s = time.monotonic() + 60
    while job.poll() is None and time.monotonic() < deadline_s:
        begin_s = time.monotonic()
        asked = subprocess.run(
            [str(PROGRAM), "profile", "--window", "3"], capture_output=True, check=False
        )
        if asked.returncode == 0:
            return time.monotonic() - begin_s - 3
        time.sleep(0.3)
    return float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--modes", default=",".join(MODES))
    options = parser.parse_args()
    for name, size in SIZES.items():
        results: Dict[str, List[Dict[str, float]]] = {mode: [] for mode in MODES}
        for _ in range(options.repeats):
            for mode in options.modes.split(","):
                results[mode].append(run(mode, size))
        print_size(name, results)
    return 0


def print_size(name: str, results: Dict[str, List[Dict[str, float]]]) -> None:
    off = [one["outside_ms"] for one in results["off"]]
    for mode, runs in results.items():
        if not runs:
            continue
        outside = [one["outside_ms"] for one in runs]
        line = f"{name}  {mode:8s} iteration {statistics.median(outside):7.3f} ms"
        if off and mode == "watched":
            ratios = [ours / theirs for ours, theirs in zip(outside, off)]
            line += f"  x{statistics.median(ratios):.4f} of off"
        inside = [one for one in runs if "inside_ms" in one]
        if inside:
            ratio = statistics.median(one["inside_ms"] / one["outside_ms"] for one in inside)
            longest = statistics.median(one["longest_ms"] for one in inside)
            late = statistics.median(one.get("report_s", float("nan")) for one in inside)
            line += f"  in a window x{ratio:.3f}, longest iteration {longest:.0f} ms"
            line += f", report {late:.1f} s after the window"
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
