# SPDX-License-Identifier: Apache-2.0
"""Runs a program of bench/live_jobs without PerfTracker and with it, and compares the two runs."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from types import ModuleType
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
JOBS = ROOT / "bench" / "live_jobs"
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM") or str(ROOT / "build/src/cmd/perftracker")


def load_programs() -> ModuleType:
    """By a name of its own: other benches have modules of the same name."""
    spec = importlib.util.spec_from_file_location("live_jobs_programs", JOBS / "programs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


programs = load_programs()
BY_NAME = programs.BY_NAME
Program = programs.Program

ARM = "import observed\n\nobserved.arm(globals())\n\n"
LIMIT_S = 600.0  # DeepSpeed compiles at its first start
LEARNING = 25  # iterations that may be over before the detector knows what an iteration is


class Outcome(NamedTuple):
    """What the two runs of a program did."""

    accumulates: int  # calls of the counted function in one iteration
    statuses: tuple[int, int]  # without, with
    weights: tuple[dict[str, str], dict[str, str]]  # by rank: a checksum for each optimizer step
    ranks_seen: int
    steps: int  # that the job had done when PerfTracker was asked
    counted: int  # those that PerfTracker had counted, by the rank that counted least
    log: str

    @property
    def same(self) -> bool:
        return self.statuses[0] == self.statuses[1] and self.weights[0] == self.weights[1]

    @property
    def compared(self) -> int:
        """Optimizer steps whose weights were compared, over all ranks."""
        return sum(len(text.split()) for text in self.weights[0].values())

    @property
    def iterations(self) -> int:
        return self.steps // self.accumulates

    @property
    def true_length(self) -> bool:
        return self.iterations - LEARNING <= self.counted <= self.iterations + 1


class Run:
    """One run of a program in a folder of its own."""

    def __init__(self, program: Program, python: str, folder: pathlib.Path, steps: int) -> None:
        self.program, self.python, self.folder, self.steps = program, python, folder, steps
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        head, main = (JOBS / "jobs" / program.file).read_text().split('if __name__ == "__main__":')
        self.script = folder / program.file
        self.script.write_text(head + ARM + 'if __name__ == "__main__":' + main)
        self.go = folder / "go"

    def environment(self, hold: bool) -> dict[str, str]:
        plan = {
            "folder": str(self.folder),
            "step": self.program.step,
            "hold": str(self.go) if hold else "",
            "hold_at": self.steps - 5,
        }
        runtime = self.folder / "runtime"
        runtime.mkdir(exist_ok=True)
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "python")]),
            "PATH": f"{pathlib.Path(self.python).parent}{os.pathsep}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "HF_HUB_OFFLINE": "1",
            "DS_ACCELERATOR": "cpu",
            "RAY_USAGE_STATS_ENABLED": "0",
            "XDG_RUNTIME_DIR": str(runtime),
            "XDG_CONFIG_HOME": str(runtime),
            "PERFTRACKER_STORE": "none",
            "FRAMEWORKS_TEST": json.dumps(plan),
        }

    def start(self, prefix: list[str], hold: bool) -> subprocess.Popen[bytes]:
        words = programs.command(self.program, self.python, str(self.script), self.steps)
        with open(self.folder / "log", "wb") as log:
            return subprocess.Popen(
                [*prefix, *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(hold),
            )

    def wait(self, job: subprocess.Popen[bytes]) -> int:
        try:
            return job.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            job.terminate()
            job.wait()
            return -1

    def weights(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.folder.glob("weights-*")}

    def held(self) -> list[int]:
        texts = [path.read_text() for path in self.folder.glob("count-*")]
        return [int(text) for text in texts if text]

    def status(self) -> list[dict]:
        answer = subprocess.run(
            [PROGRAM, "status", "--format", "json"],
            capture_output=True,
            text=True,
            env=self.environment(False),
            timeout=60,
        )
        return json.loads(answer.stdout)["workers"] if answer.returncode == 0 else []

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4000:]


def look(run: Run, job: subprocess.Popen[bytes]) -> tuple[int, list[int]]:
    """When all ranks hold: iterations done, and those that PerfTracker counted on each."""
    deadline = time.monotonic() + LIMIT_S
    while len(run.held()) < run.program.ranks and time.monotonic() < deadline:
        if job.poll() is not None:
            return 0, []
        time.sleep(0.05)
    counts: list[int] = []
    for _ in range(50):  # marks are read many times a second: until nothing changes any more
        time.sleep(0.3)
        before, counts = counts, [worker["iterations"] for worker in run.status()]
        if counts and counts == before:
            break
    return min(run.held(), default=0), counts


def run_twice(program: Program, python: str, folder: pathlib.Path, steps: int) -> Outcome:
    alone = Run(program, python, folder / "alone", steps)
    status_alone = alone.wait(alone.start([], hold=False))
    watched = Run(program, python, folder / "watched", steps)
    job = watched.start([PROGRAM, "run", "--out", str(watched.folder / "out"), "--"], hold=True)
    try:
        done, counts = look(watched, job)
        watched.go.touch()
        status = watched.wait(job)
    finally:
        with contextlib.suppress(ProcessLookupError):
            job.terminate()
    return Outcome(
        program.accumulates,
        (status_alone, status),
        (alone.weights(), watched.weights()),
        len(counts),
        done,
        min(counts, default=0),
        (alone.log() if status_alone else "") + watched.log(),
    )
