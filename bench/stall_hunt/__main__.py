# SPDX-License-Identifier: Apache-2.0
"""Counts how often `perftracker stalls` names the cause of stalls, and who made them.

    .venv/bin/python bench/stall_hunt --repeats 5

Six kinds, and programs without a fault. Needs root. Other work of the machine starves all of them:
a lack of CPUs counts only where it is the kind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "common"))

from text import text_table  # noqa: E402

PROGRAM = os.environ.get("PERFTRACKER_PROGRAM") or str(ROOT / "build/src/cmd/perftracker")
TARGET = str(ROOT / "tests/stalls/target.py")
WORDS = ("right", "cause only", "wrong", "abstained")
LOAD = {"cpu_starvation", "cpu_idle", "steal", "interrupts"}  # any other work of the machine


@contextlib.contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-S", TARGET, *map(str, words)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes)
    try:
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def watch(pid: int, seconds: float) -> dict:
    words = [PROGRAM, "stalls", "--pid", str(pid), "--seconds", str(seconds), "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


class Case(NamedTuple):
    answer: dict
    causes: set[str]
    culprits: set[int]  # one of them must be among those named; empty: none is asked for


def starve() -> Case:
    with contextlib.ExitStack() as stack:
        target, *hogs = (stack.enter_context(started("busy")) for _ in range(4))
        for process in (target, *hogs):
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        return Case(watch(target.pid, 4), {"cpu_starvation"}, {hog.pid for hog in hogs})


def read_smaps() -> Case:
    with started("mapper", 1024) as target, started("reader", target.pid, 0.5) as reader:
        return Case(watch(target.pid, 8), {"mmap_lock"}, {reader.pid})


def stop() -> Case:
    over = threading.Event()
    with started("busy") as target:

        def stop_again() -> None:
            while not over.wait(0.5):
                os.kill(target.pid, signal.SIGSTOP)
                time.sleep(0.1)
                os.kill(target.pid, signal.SIGCONT)

        thread = threading.Thread(target=stop_again)
        thread.start()
        try:
            return Case(watch(target.pid, 4), {"stopped"}, {os.getpid()})
        finally:
            over.set()
            thread.join()


def hold_gil() -> Case:
    with started("gil") as target:
        return Case(watch(target.pid, 4), {"gil"}, {target.pid})


def write() -> Case:
    with tempfile.TemporaryDirectory() as name, started("fsync", f"{name}/file") as target:
        return Case(watch(target.pid, 4), {"disk", "kernel_lock"}, set())


def collect() -> Case:
    with started("collect", "often") as target:
        return Case(watch(target.pid, 4), {"garbage_collection"}, set())


def control(*words: str) -> Callable[[], Case]:
    def run() -> Case:
        with started(*words) as target:
            return Case(watch(target.pid, 4), set(), set())

    return run


KINDS: dict[str, Callable[[], Case]] = {
    "processes on its CPU": starve,
    "a reader of smaps": read_smaps,
    "SIGSTOP": stop,
    "a thread keeps the GIL": hold_gil,
    "fsync": write,
    "collections of garbage": collect,
}
CONTROLS = {
    "healthy: waits for its thread": control("waiter"),
    "healthy: computes": control("busy"),
    "healthy: 900,000 objects": control("collect", "never"),
}


def judge(case: Case) -> tuple[str, str]:
    """The word, and what was said."""
    matters = [one for one in case.answer["findings"] if one["matters"] and one["kind"] == "stall"]
    said = "; ".join(one["summary"] for one in matters)
    other = [one for one in matters if one["cause"] not in LOAD | case.causes]
    mine = [one for one in matters if one["cause"] in case.causes]
    if other:
        return "wrong", said
    if not mine:
        return ("right" if not case.causes else "abstained"), said
    named = {one["pid"] for finding in mine for one in finding["culprits"]}
    return ("right" if not case.culprits or named & case.culprits else "cause only"), said


def table(rows: list[tuple[str, str]]) -> str:
    lines: list[tuple[object, ...]] = [("kind", "runs", *WORDS)]
    for kind in dict.fromkeys(kind for kind, _ in rows):
        mine = [word for other, word in rows if other == kind]
        lines.append((kind, len(mine), *(mine.count(word) for word in WORDS)))
    return text_table(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kind", help="only kinds with this word")
    options = parser.parse_args()
    rows: list[tuple[str, str]] = []
    for number in range(options.repeats):
        for kind, run in {**KINDS, **CONTROLS}.items():
            if (options.kind or "") not in kind:
                continue
            word, said = judge(run())
            rows.append((kind, word))
            print(f"{kind} {number}: {word} ({said})", flush=True)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
