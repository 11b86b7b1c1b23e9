# SPDX-License-Identifier: Apache-2.0
"""What PerfTracker costs a job all the time, to 0.1 % of an iteration.

    .venv/bin/python bench/always_on --minutes 30

One process, pinned to a CPU, under `perftracker run --audit-every 0`: one audit after the other
switches the always-on collectors off and on, in pairs of slices of a second whose order a coin
decides; in 30 minutes 800 pairs. The other processes of PerfTracker run on the other CPUs. The
table has the effect on iterations with its 95 % interval, audits included (report.json,
overhead.effect); the CPU time of PerfTracker's own threads, by the kernel's account; and what the
marks of an optimizer's step take, since audits leave marks on: an optimizer that does nothing, with
and without PerfTracker. `total` is the upper end of the effect, and the marks.

The machine must be quiet: at least two CPUs, no other work. Fails with --limit PERCENT if a total
is not below it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "src" / "cmd" / "perftracker"
PYTHON = ROOT / ".venv" / "bin" / "python"
JOB = ROOT / "bench" / "always_on" / "job.py"
STEPS_MS = "1.1,11,27"


def run(what: str, number: float, seconds: float, watched: bool) -> tuple[dict, str]:
    """The report ({} if not watched), and the job's output."""
    cpus = sorted(os.sched_getaffinity(0))
    job = [str(PYTHON), str(JOB), what, str(number), str(seconds), str(cpus[-1])]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        # Neither other work on the machine nor a cost above the budget may change what runs.
        options = ["--audit-every", "0", "--slowdown", "1000", "--quiet", "--source", "agent"]
        options += ["--budget-always", "1000", "--budget-window", "1000", "--no-checkup"]
        command = [str(PROGRAM), "run", "-o", str(out), *options, "--", *job] if watched else job
        env = {**os.environ, "XDG_RUNTIME_DIR": folder, "OMP_NUM_THREADS": "1"}
        rest = set(cpus[:-1]) or set(cpus)
        done = subprocess.run(
            command,
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, rest),
        )
        report = json.loads((out / "report.json").read_text()) if watched else {}
    return report, done.stdout


def number_of(text: str, name: str) -> float:
    """From the job's output, among the lines of PerfTracker's report."""
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name)))


def marks_ns() -> float:
    """Of one optimizer's step."""
    took = [number_of(run("marks", 0, 0, watched)[1], "marks_ns ") for watched in (False, True)]
    return max(took[1] - took[0], 0.0)


def measure(kind: str, ms: float, minutes: float, marks: float) -> dict:
    work = number_of(run(f"{kind}-work", ms, 0, False)[1], "work ")
    report, _ = run(kind, work, 60 * minutes, True)
    effect = report["overhead"]["effect"]
    step_ms = report["job"]["iteration_ms"] or ms
    marks_pct = 100 * marks / 1e6 / step_ms
    return {
        "job": kind,
        "step_ms": step_ms,
        "effect": effect,
        "marks_pct": marks_pct,
        "total_high_pct": effect["high_pct"] + marks_pct if effect else None,
        "audits": report["overhead"]["audits"],
        "core_pct_per_rank": report["overhead"]["core_pct_per_rank"],
        "threads": report["overhead"]["threads"],
    }


def effect_text(effect: dict | None) -> str:
    if not effect:
        return "no pairs: the job was too short, or never steady"
    return (
        f"{effect['pct']:+.3f} % ({effect['low_pct']:+.3f} to {effect['high_pct']:+.3f}, "
        f"{effect['pairs']} pairs)"
    )


def print_row(row: dict) -> None:
    total = row["total_high_pct"]
    print(
        f"{row['job']:6s} {row['step_ms']:6.2f} ms  effect {effect_text(row['effect'])}, "
        f"marks {row['marks_pct']:.3f} %, "
        f"total below {'-' if total is None else format(total, '.3f')} %; "
        f"CPU {row['core_pct_per_rank']:.3f} % of a core: "
        + ", ".join(
            f"{one['name']} {one['ms_per_rank_s']:.3f}" for one in row["threads"] if one["cpu_s"]
        )
        + " ms/s",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="of each job")
    parser.add_argument("--jobs", default="torch,plain")
    parser.add_argument("--step-ms", default=STEPS_MS)
    parser.add_argument("--limit", type=float, help="fail if a total is not below so many percent")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    marks = marks_ns()
    rows = []
    for kind in options.jobs.split(","):
        for ms in options.step_ms.split(","):
            rows.append(measure(kind, float(ms), options.minutes, marks))
            if options.format == "text":
                print_row(rows[-1])
    if options.format == "json":
        print(json.dumps({"marks_ns": marks, "rows": rows}, indent=1))
    totals = [row["total_high_pct"] for row in rows]
    if options.limit is None:
        return 0
    return 0 if all(t is not None and t < options.limit for t in totals) else 1


if __name__ == "__main__":
    sys.exit(main())
