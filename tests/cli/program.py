# SPDX-License-Identifier: Apache-2.0
"""Calls the program, compares with golden files, and writes small jobs to analyze.

Golden files are tests/cli/golden/NAME, compared byte for byte.
PERFTRACKER_UPDATE_GOLDEN=1 writes them anew; look at the difference before committing it.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM", str(ROOT / "build" / "src" / "cmd" / "perftracker"))


class Program(unittest.TestCase):
    """Each test in a folder of its own, where the program is called."""

    maxDiff = None

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def call(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Relative paths: what is printed is the same everywhere."""
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **more}
        return subprocess.run(
            [PROGRAM, *words],
            cwd=self.folder,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            **more,
        )

    def golden(self, name: str, text: str) -> None:
        """Compares with a golden file, without the line that has the time of the analysis.

        "dump.missing.txt" is the file missing.txt in the folder dump.
        """
        lines = [s for s in text.splitlines(keepends=True) if not s.startswith("analysis took")]
        folder, _, rest = name.partition(".")
        path = HERE / "golden" / (f"{folder}/{rest}" if "." in rest else name)
        if os.environ.get("PERFTRACKER_UPDATE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(lines), encoding="utf-8")
        self.assertEqual("".join(lines), path.read_text(encoding="utf-8"), name)

    def fails(self, status: int, done: subprocess.CompletedProcess[str]) -> str:
        """The complaint of a call that must fail and print no result."""
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        return done.stderr


def span(category: str, name: str, begin_us: float, end_us: float, lane: int = 1) -> dict[str, Any]:
    known = {"ph": "X", "pid": 1, "tid": lane, "args": {}}
    return {**known, "cat": category, "name": name, "ts": begin_us, "dur": end_us - begin_us}


def steps(rank: int, late_us: float, latest_us: float) -> list[dict[str, Any]]:
    """Six steps: 10 ms of compute, a tokenizer, an all-reduce of 1 ms after the last came."""
    events = []
    length = 14_000 + latest_us
    for step in range(6):
        begin = 1_000_000.0 + length * step + 7 * rank
        meet, end = begin + 12_000 + late_us, begin + 13_000 + latest_us
        events += [
            span("user_annotation", f"ProfilerStep#{step}", begin, begin + length),
            span("cpu_op", "aten::mm", begin + 10, begin + 9_990),
            span("cpu_op", "tokenize", begin + 10_000, meet),
            span("cpu_op", "c10d::allreduce_", meet + 10, meet + 50),
            span("user_annotation", "gloo:all_reduce", meet + 60, end, lane=2),
        ]
    return events


def write_job(folder: pathlib.Path, late_us: float = 20_000) -> None:
    """Three ranks in folder/job; rank 1 tokenizes late_us longer."""
    (folder / "job").mkdir(exist_ok=True)
    for rank in range(3):
        info = {"backend": "gloo", "rank": rank, "world_size": 3}
        events = steps(rank, late_us if rank == 1 else 0, late_us)
        text = json.dumps({"distributedInfo": info, "traceEvents": events})
        (folder / "job" / f"rank{rank}.json").write_text(text, encoding="utf-8")
