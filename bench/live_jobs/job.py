# SPDX-License-Identifier: Apache-2.0
"""Runs one program once, with a fault or without, and writes down what happened."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time
import uuid
from typing import Any, NamedTuple

import faults
import machine
import programs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "bench" / "common"))

from reports import read_report  # noqa: E402

MARK = "LIVE_JOBS_RUN"  # in the environment of each process of a run
WARM_STEPS = 20
RECORD_BEFORE, RECORD_STEPS, RECORD_AFTER = 23, 8, 10
START_S = 120  # a program that has made no step by then is broken
ARM = "import injected\n\ninjected.arm(globals())\n\n"
FINDING_KEYS = ("id", "cause", "title", "scope", "ranks", "rank_count", "gain_pct", "confidence")


class Plan(NamedTuple):
    """One run."""

    program: programs.Program
    fault: faults.Fault
    build: str  # a name; "": without perftracker
    binary: str
    python: str
    folder: pathlib.Path
    pace_s: float  # a healthy iteration
    strength: float  # the fault adds so many iterations to each
    fault_at: int
    seconds: float  # of the job after the fault began, or of a healthy job
    neighbor: bool = False  # another program uses a CPU now and then
    record: str = ""  # how it is recorded (inject/recording.py); PerfTracker sees only the traces

    @property
    def amount_s(self) -> float:
        return self.strength * self.pace_s

    @property
    def steps(self) -> int:
        if self.record:
            return self.fault_at + RECORD_BEFORE + RECORD_STEPS + RECORD_AFTER
        if self.fault.kind == "none":
            return int(self.seconds / self.pace_s)
        return self.fault_at + int(self.seconds / (self.pace_s + self.amount_s))


def armed_copy(plan: Plan) -> pathlib.Path:
    """The program with one line more, under its own name."""
    source = (HERE / "jobs" / plan.program.file).read_text()
    head, main = source.split('if __name__ == "__main__":')
    path = plan.folder / plan.program.file
    path.write_text(head + ARM + 'if __name__ == "__main__":' + main)
    return path


def injection(plan: Plan) -> dict[str, Any]:
    program, fault = plan.program, plan.fault
    children = program.loader_workers if fault.role == "load" else 0
    return {
        "folder": str(plan.folder),
        "fault": fault.name,
        "trouble": fault.trouble,
        "hangs": fault.kind == faults.HANGS,
        "role": fault.role,
        "victim": faults.victim_of(fault, program),
        "at": 0 if fault.from_start else plan.fault_at,
        "pace_s": plan.pace_s,
        "strength": plan.strength,
        "record": plan.record,
        "record_steps": RECORD_STEPS,
        "record_before": RECORD_BEFORE,
        "record_folder": str(plan.folder / "traces"),
        "functions": {"step": program.step, "load": program.load, "forward": program.forward},
        "loader_workers": children,
    }


def environment(plan: Plan, mark: str) -> dict[str, str]:
    paths = [str(HERE / "inject"), str(ROOT / "examples")]
    if not plan.build or plan.record:
        paths.append(str(ROOT / "python"))  # for programs that import perftracker
    cache = str(plan.folder.parent.parent / "compiled")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PATH": f"{pathlib.Path(plan.python).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "DS_ACCELERATOR": "cpu",
        "RAY_USAGE_STATS_ENABLED": "0",
        "TORCHINDUCTOR_CACHE_DIR": cache,
        "LIVE_JOBS_FAULT": json.dumps(injection(plan)),
        MARK: mark,
    }


def processes_of(mark: str) -> list[int]:
    """The processes that this run started, by their environment."""
    found, wanted = [], f"{MARK}={mark}".encode()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def end_all(job: subprocess.Popen[bytes], mark: str) -> None:
    """As a user would, by Ctrl-C; then by force what is left."""
    if job.poll() is None:
        job.send_signal(signal.SIGINT)
        try:
            job.wait(20)
        except subprocess.TimeoutExpired:
            pass
    for _ in range(3):
        for process in processes_of(mark):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.2)
    job.wait()


def read_times(folder: pathlib.Path, name: str) -> dict[int, list[float]]:
    """By rank. The last line may be cut where the process was killed."""
    times = {}
    for path in folder.glob(f"{name}-*"):
        lines = path.read_text().splitlines()
        times[int(path.name.rpartition("-")[2])] = [float(x) for x in lines if len(x) > 16]
    return times


class Watch:
    """Decides when a run has lasted long enough."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.start_s = time.time()
        self.told_s = 0.0
        expected_s = plan.steps * plan.pace_s + plan.seconds
        self.limit_s = START_S + (3 * expected_s if plan.fault.kind != faults.HANGS else 90)

    def is_over(self) -> bool:
        now_s, folder = time.time(), self.plan.folder
        if now_s - self.start_s > self.limit_s:
            return True
        if now_s - self.start_s > START_S and not any(folder.glob("steps-*")):
            return True
        if self.plan.build == "":
            return self.alone_is_over(now_s)
        return self.plan.fault.kind == faults.HANGS and self.hang_is_told(now_s)

    def alone_is_over(self, now_s: float) -> bool:
        """Compiling is over after the first steps."""
        times = read_times(self.plan.folder, "steps").values()
        warm = [ranks[WARM_STEPS] for ranks in times if len(ranks) > WARM_STEPS]
        return bool(warm) and now_s - min(warm) > self.plan.seconds

    def hang_is_told(self, now_s: float) -> bool:
        """Some seconds after the first report, or when no report can be expected any more."""
        began = [t[0] for t in read_times(self.plan.folder, "begin").values() if t]
        if not began:
            return False
        told = [
            p for p in self.plan.folder.glob("out/report*.json") if p.stat().st_mtime > began[0]
        ]
        if told and not self.told_s:
            self.told_s = now_s
        return bool(self.told_s and now_s - self.told_s > 5) or now_s - began[0] > self.plan.seconds


NEIGHBOR = """
import os, time
parent = os.getppid()
while os.getppid() == parent:
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
    time.sleep(13.5)
"""


def analyze(plan: Plan) -> None:
    """What a user does with traces: writes the report and what was printed."""
    (plan.folder / "out").mkdir()
    words = [plan.binary, "analyze", "--format", "json", str(plan.folder / "traces")]
    with (
        open(plan.folder / "out" / "report.json", "wb") as report,
        open(plan.folder / "refused", "wb") as errors,
    ):
        subprocess.run(words, stdout=report, stderr=errors, check=False)


def run(plan: Plan) -> dict[str, Any]:
    """The record of the run: plain data, from which everything else follows."""
    shutil.rmtree(plan.folder, ignore_errors=True)
    plan.folder.mkdir(parents=True)
    script, mark = armed_copy(plan), uuid.uuid4().hex
    command = programs.command(plan.program, plan.python, str(script), plan.steps)
    if plan.build and not plan.record:
        command = [plan.binary, "run", "--out", str(plan.folder / "out"), "--", *command]
    watch = Watch(plan)
    neighbor = subprocess.Popen([sys.executable, "-c", NEIGHBOR]) if plan.neighbor else None
    with open(plan.folder / "log", "wb") as log:
        job = subprocess.Popen(
            command,
            cwd=plan.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(plan, mark),
            start_new_session=True,
        )
        reference = machine.Reference()
        try:
            with reference:
                while job.poll() is None and not watch.is_over():
                    time.sleep(0.3)
            stopped_s = time.time() if job.poll() is None else 0.0
        finally:
            end_all(job, mark)
            if neighbor:
                neighbor.kill()
                neighbor.wait()
    if plan.record:
        analyze(plan)
    record = record_of(plan, watch.start_s, stopped_s, job.returncode)
    return record | {"machine": reference.samples}


def condensed(report: dict[str, Any]) -> dict[str, Any]:
    """What the judge needs of a report, version 1 or 2."""
    findings = [
        {key: finding.get(key) for key in FINDING_KEYS}
        | {"name": finding["function"]["name"], "stack": finding["function"]["stack"]}
        | {"evidence": finding.get("evidence", [])}
        for finding in report.get("findings", [])
    ]
    head = {key: report.get(key) for key in ("schema", "verdict", "reason", "headline", "notes")}
    return head | {"findings": findings, "trigger": report.get("trigger")}


def reports_of(out: pathlib.Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(out.glob("report*.json")):
        report = read_report(path)
        if report and "verdict" in report:
            found.append({"file": path.name, "at_s": path.stat().st_mtime, **condensed(report)})
    return sorted(found, key=lambda report: (report["at_s"], report["file"] == "report.json"))


def paces(times: list[float], begin_s: float) -> tuple[float, float]:
    """Mean milliseconds of an iteration before and after; the last 300 healthy ones."""
    before = [t for t in times if t <= begin_s][-301:]
    after = [t for t in times if t >= begin_s]

    def mean_ms(of: list[float]) -> float:
        return 1e3 * (of[-1] - of[0]) / (len(of) - 1) if len(of) > 2 else 0.0

    return mean_ms(before), mean_ms(after)


def tenths_ms(times: list[float]) -> list[float]:
    """Median milliseconds in each tenth of the run: whether a healthy job was one."""
    gaps = [1e3 * (b - a) for a, b in zip(times, times[1:], strict=False)]
    part = max(len(gaps) // 10, 1)
    return [round(statistics.median(gaps[i : i + part]), 2) for i in range(0, len(gaps), part)][:10]


def record_of(plan: Plan, start_s: float, stopped_s: float, status: int) -> dict[str, Any]:
    steps, begins = read_times(plan.folder, "steps"), read_times(plan.folder, "begin")
    rank0 = steps.get(0) or next(iter(steps.values()), [])
    begin_s = min((times[0] for times in begins.values() if times), default=0.0)
    if plan.fault.from_start and begins and rank0:
        begin_s = rank0[0]
    before_ms, after_ms = paces(rank0, begin_s)
    log = (plan.folder / "log").read_text(errors="replace")
    return {
        "build": plan.build,
        "program": plan.program.name,
        "fault": plan.fault.name,
        "kind": plan.fault.kind,
        "ranks": plan.program.ranks,
        "victim": faults.victim_of(plan.fault, plan.program),
        "strength": plan.strength,
        "neighbor": plan.neighbor,
        "record": plan.record,
        "before_ms": 1e3 * plan.pace_s if plan.fault.from_start else before_ms,
        "after_ms": after_ms,
        "tenths_ms": tenths_ms(rank0),
        "steps": len(rank0),
        "start_s": start_s,
        "begin_s": begin_s,
        "stopped_s": stopped_s,
        "end_s": time.time(),
        "status": status,
        "reports": reports_of(plan.folder / "out"),
        "log_tail": log[-3000:],
    }


if __name__ == "__main__":
    sys.exit("this is a module: run bench/live_jobs")
