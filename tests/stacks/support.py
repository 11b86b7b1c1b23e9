# SPDX-License-Identifier: Apache-2.0
"""Starts processes to look at, and calls `perftracker stacks`."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM", str(ROOT / "build" / "src" / "cmd" / "perftracker"))
TARGET = os.environ.get("PERFTRACKER_TARGET", str(ROOT / "build" / "tests" / "stacks_target"))


def call(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, "stacks", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)


def names(thread: dict[str, Any]) -> list[str]:
    """Functions of a thread, innermost first."""
    return [frame["function"] for frame in thread["frames"]]


def python_frames(thread: dict[str, Any]) -> list[tuple[str, str, int]]:
    frames = [frame for frame in thread["frames"] if frame["kind"] == "python"]
    return [(frame["function"], frame["file"], frame["line"]) for frame in frames]


def field(pid: int, name: str) -> str:
    """A field of /proc/PID/status."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    raise KeyError(name)


class Stacks(unittest.TestCase):
    maxDiff = None

    def start(self, *command: object, **more: Any) -> subprocess.Popen[str]:
        """Started, and it has said "ready"."""
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, **more)
        self.addCleanup(self.end, process)
        line = process.stdout.readline()
        self.assertTrue(line.startswith("ready"), line)
        process.said = line.split()[1:]
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()

    def target(self, *words: object, **more: Any) -> subprocess.Popen[str]:
        return self.start(TARGET, *words, **more)

    def read(self, *words: object) -> list[dict[str, Any]]:
        """The processes of the JSON; all could be read."""
        done = call("--format", "json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)["processes"]

    def read_one(self, pid: int) -> dict[str, Any]:
        (process,) = self.read(pid)
        self.assertEqual(process["pid"], pid)
        return process

    def threads(self, pid: int) -> dict[str, dict[str, Any]]:
        """By name."""
        return {thread["name"]: thread for thread in self.read_one(pid)["threads"]}

    def fails(self, status: int, *words: object) -> str:
        """The only line on stderr."""
        done = call(*words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        line = done.stderr.splitlines()[0]
        self.assertTrue(line.startswith("perftracker stacks: "), line)
        return line.removeprefix("perftracker stacks: ")

    def has_in_order(self, found: list[str], wanted: list[str]) -> None:
        rest = iter(found)
        for name in wanted:
            self.assertIn(name, rest, found)
