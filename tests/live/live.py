# SPDX-License-Identifier: Apache-2.0
"""What the live tests share: the program, a private place, jobs that are started and ended."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Written by tools/gpu-headers and tools/fetch-prometheus.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "perftracker"
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM") or str(ROOT / "build/src/cmd/perftracker")
FAKE_JOB = str(pathlib.Path(__file__).resolve().parent / "fake_job.py")
RANKS = str(pathlib.Path(__file__).resolve().parent / "ranks.py")

# A shared machine wavers: only a clear slowdown counts, and it is found fast.
QUICK = ("--recent", "10", "--learn", "3", "--slowdown", "200", "--min-gap", "0", "--steps", "5")


def torch_python() -> str | None:
    """An interpreter that has torch, None when there is none."""
    for path in (os.environ.get("PERFTRACKER_PYTHON"), str(ROOT / ".venv/bin/python")):
        if path and os.access(path, os.X_OK):
            find = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))"
            check = subprocess.run([path, "-c", find], capture_output=True)
            if check.returncode == 0:
                return path
    return None


def children(pid: int) -> list[int]:
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def kill_marked(mark: bytes) -> list[int]:
    """Kills all processes that have the mark in their environment, and says which.

    Orphans and children in sessions of their own inherit it. A pidfd is opened before the
    environment is read, so no other process that got the same number is killed.
    """
    killed: list[int] = []
    found = True
    while found:  # one may have forked meanwhile
        found = False
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                fd = os.pidfd_open(int(path.name))
                try:
                    if mark not in (path / "environ").read_bytes() or int(path.name) == os.getpid():
                        continue
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                    select.select([fd], [], [], 10)  # until it has ended
                finally:
                    os.close(fd)
                killed.append(int(path.name))
                found = killed.count(int(path.name)) < 3  # one that the disk holds stays
    return killed


class LiveTest(unittest.TestCase):
    def setUp(self) -> None:
        if not os.access(PROGRAM, os.X_OK):
            self.skipTest(f"{PROGRAM} is not built")
        folder = tempfile.TemporaryDirectory(prefix="pt-live-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(self.kill_all)
        self.out = self.folder / "out"
        self.env = {
            **os.environ, "XDG_RUNTIME_DIR": folder.name, "XDG_CONFIG_HOME": folder.name,
            "PERFTRACKER_STORE": f"{folder.name}/state/store.db",
        }  # fmt: skip

    def kill_all(self) -> list[int]:
        """Whatever this test has started and is still there: its folder is in their environment."""
        return kill_marked(f"\0XDG_RUNTIME_DIR={self.folder}".encode())

    def command(self, *words: str) -> list[str]:
        return [PROGRAM, "run", "--out", str(self.out), *words]

    def run_job(
        self, *words: str, stdin: bytes = b"", limit_s: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        with subprocess.Popen(
            self.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self.env,
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate(stdin, timeout=limit_s)
            except subprocess.TimeoutExpired as ended:
                self.kill_all()  # its job too, which has the pipes
                _, err = process.communicate()
                said = err.decode(errors="replace")
                raise AssertionError(f"still running after {limit_s} s: {said}") from ended
            return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @contextlib.contextmanager
    def job(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A job that runs meanwhile; whatever is left of it is killed at the end."""
        process = subprocess.Popen(
            self.command(*words),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, process_group=0,
        )  # fmt: skip
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def ask(self, *words: str, limit_s: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *words], capture_output=True, text=True, env=self.env, timeout=limit_s
        )

    def workers(self) -> list[dict]:
        answer = self.ask("status", "--format", "json")
        return json.loads(answer.stdout)["workers"] if answer.returncode == 0 else []

    def await_workers(self, count: int, iterations: int, limit_s: float = 240) -> list[dict]:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            workers = self.workers()
            if len(workers) == count and all(w["iterations"] >= iterations for w in workers):
                return workers
            time.sleep(0.1)
        raise AssertionError(f"no {count} workers at iteration {iterations}: {self.workers()}")

    def report(self, name: str = "report.json") -> dict:
        return json.loads((self.out / name).read_text())

    def fake(self, *words: str) -> tuple[str, ...]:
        return ("--", sys.executable, FAKE_JOB, *words)

    def until_report(self) -> tuple[str, ...]:
        """For a scripted job that becomes slow: it goes on until that has been reported."""
        return ("--until", str(self.out / "report-1.json"))


class TorchLiveTest(LiveTest):
    """With an interpreter that has torch, skipped where there is none."""

    def setUp(self) -> None:
        super().setUp()
        python = torch_python()
        if python is None:
            self.skipTest("no torch: make test installs it, or set PERFTRACKER_PYTHON")
        self.python = python
