# SPDX-License-Identifier: Apache-2.0
"""Counts how often a rank that hangs is named, with its function, and how soon.

    .venv/bin/python bench/live_hangs --repeats 5

Jobs of 4 ranks under `perftracker run`; rank 2 hangs in one of 13 ways. Healthy jobs with a
checkpoint, an evaluation and a long compile must have no finding.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "common"))

from reports import read_report  # noqa: E402
from text import text_table  # noqa: E402

PROGRAM = os.environ.get("PERFTRACKER_PROGRAM") or str(ROOT / "build/src/cmd/perftracker")
PYTHON = os.environ.get("PERFTRACKER_PYTHON") or str(ROOT / ".venv/bin/python")
RANKS, VICTIM = 4, 2
WAIT_S, HEALTHY_S = 150, 45
WORDS = ("right", "rank only", "wrong", "abstained", "broken")

# What the first finding's function, cause or evidence must have.
ANSWERS = {
    "lock": "take_the_lock",
    "mutex": "take_a_mutex_twice",
    "loop": "spin_without_end",
    "gil": "sleep_in_c",
    "socket": "read_from_a_silent_server",
    "stop": "stopped",
    "traced": "traced",
    "kernel": "start_a_program_that_never_starts",
    "exit": "ended|exit|left",
    "mismatch": "call_another_collective",
    "skip": "barrier|collective-mismatch|collective-not-entered",
    "loader": "read_a_shard_that_never_comes|read_from_a_silent_server",
    "sleep": "sleep_without_end",
}
HEALTHY = ("checkpoint", "evaluation", "compile")


class Run(NamedTuple):
    kind: str
    word: str
    said: str
    told_s: float | None


def judge(kind: str, report: dict | None) -> tuple[str, str]:
    findings = report["findings"] if report else []
    if not findings:
        return ("wrong" if kind in HEALTHY else "abstained"), report["reason"] if report else ""
    first = findings[0]
    place = " ".join([first["function"]["name"], *first["function"]["stack"]])
    said = f"{first['id']} {first['cause']} ranks {first['ranks']}: {place}"
    if kind in HEALTHY or first["ranks"] != str(VICTIM):
        return "wrong", said
    named = re.search(ANSWERS[kind], f"{place} {first['cause']}")
    return ("right" if named else "rank only"), said


def report_of_hang(out: pathlib.Path) -> tuple[pathlib.Path, dict] | None:
    for path in sorted(out.glob("report-*.json")):
        report = read_report(path)
        trigger = (report or {}).get("trigger") or {}
        if trigger.get("kind") == "blocked":
            return path, report
    return None


def await_hung(folder: pathlib.Path, job: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline and job.poll() is None:
        if (folder / "hung").exists():
            return True
        time.sleep(0.1)
    return False


def follow(kind: str, folder: pathlib.Path, job: subprocess.Popen[bytes]) -> Run:
    if not await_hung(folder, job):
        return Run(kind, "broken", "the job did not reach the fault", None)
    began = (folder / "hung").stat().st_mtime
    wait_s = HEALTHY_S + (60 if kind == "compile" else 0) if kind in HEALTHY else WAIT_S
    deadline, found = time.monotonic() + wait_s, None
    while time.monotonic() < deadline and job.poll() is None and found is None:
        found = report_of_hang(folder / "out")
        time.sleep(0.2)
    if found is None:
        word = "right" if kind in HEALTHY and job.poll() is None else "abstained"
        return Run(kind, word, "no report of a hang", None)
    return Run(kind, *judge(kind, found[1]), found[0].stat().st_mtime - began)


def end_all(folder: pathlib.Path, job: subprocess.Popen[bytes]) -> None:
    """Ranks have sessions of their own: they are known by the folder in their command line."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in path.read_bytes() and int(path.parent.name) != job.pid:
                os.kill(int(path.parent.name), signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.communicate()


def launch(kind: str, folder: pathlib.Path) -> subprocess.Popen[bytes]:
    script = str(pathlib.Path(__file__).resolve().parent / "job.py")
    launcher = [PYTHON, "-m", "torch.distributed.run", f"--nproc_per_node={RANKS}"]
    launcher += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    words = [PROGRAM, "run", "--out", str(folder / "out"), "--no-audit", "--slowdown", "900"]
    words += ["--no-checkup", "--", *launcher, script, kind, str(folder)]
    env = {**os.environ, "PERFTRACKER_STORE": "none", "XDG_RUNTIME_DIR": str(folder)}
    env["OMP_NUM_THREADS"] = "1"
    log = (folder / "log").open("wb")
    return subprocess.Popen(words, stdout=log, stderr=log, env=env, process_group=0)


def run_kind(kind: str, keep: pathlib.Path | None, number: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="pt-hangs-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        job = launch(kind, folder)
        try:
            run = follow(kind, folder, job)
        finally:
            end_all(folder, job)
        if keep is not None:
            subprocess.run(["cp", "-a", name, str(keep / f"{kind}-{number}")], check=False)
    return run


def table(runs: list[Run]) -> str:
    rows: list[tuple[object, ...]] = [("kind", "runs", *WORDS, "told after, s")]
    for kind in dict.fromkeys(run.kind for run in runs):
        mine = [run for run in runs if run.kind == kind]
        times = sorted(run.told_s for run in mine if run.told_s is not None)
        told = f"{times[len(times) // 2]:.0f}" if times else "-"
        counts = [sum(run.word == word for run in mine) for word in WORDS]
        rows.append((kind, len(mine), *counts, told))
    return text_table(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join((*ANSWERS, *HEALTHY)), help="comma-separated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for what each run left")
    parser.add_argument("--result", type=pathlib.Path, help="write each run as JSON")
    options = parser.parse_args()
    runs: list[Run] = []
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    for number in range(options.repeats):
        for kind in options.kinds.split(","):
            run = run_kind(kind, options.keep, number)
            runs.append(run)
            told = f" after {run.told_s:.0f} s" if run.told_s is not None else ""
            print(f"{kind} {number}: {run.word} ({run.said}){told}", flush=True)
    print(table(runs))
    if options.result:
        options.result.write_text(json.dumps([run._asdict() for run in runs], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
