# SPDX-License-Identifier: Apache-2.0
"""Records CPU jobs that lack CPUs and jobs that do not, and counts what `perftracker analyze` says.

    .venv/bin/python bench/host_stalls --program build/src/cmd/perftracker

The truth is the scheduler's: the time that the training threads were runnable without a CPU. The
traces do not have it. A machine that others use lacks CPUs in the undisturbed cases, too.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "common"))

from text import text_table  # noqa: E402

LACKS = 0.15  # share of the window without a CPU from which on it must be said
HAS = 0.03  # and up to which it must not
LIMIT_S = 120
MASTER_PORT = "29617"


class Case(NamedTuple):
    name: str
    ranks: int = 1
    burners: int = 0
    kind: str = "none"
    stacks: bool = False
    threads: int = 1
    width: int = 64

    def command(self, out: pathlib.Path) -> list[str]:
        numbers = [str(self.threads), str(self.width), "3", "16"]
        return [
            sys.executable,
            str(HERE / "job.py"),
            str(out),
            self.kind,
            str(int(self.stacks)),
            *numbers,
        ]


CASES = [
    Case("undisturbed"),
    Case("undisturbed, 2 ranks", ranks=2),
    Case("undisturbed, stacks", stacks=True),
    Case("collections", kind="gc"),
    Case("sleeps", kind="sleep"),
    Case("writes a file", kind="write"),
    Case("fresh memory", kind="pages"),
    Case("uneven inputs", kind="inputs"),
    Case("loader processes", kind="loader"),
    Case("busy Python thread", kind="thread"),
    Case("busy processes", burners=3 * (os.cpu_count() or 1)),
    Case("busy processes, 2 ranks", ranks=2, burners=2 * (os.cpu_count() or 1)),
    Case("busy processes, stacks", ranks=2, burners=3 * (os.cpu_count() or 1), stacks=True),
    Case("too many threads", threads=8 * (os.cpu_count() or 1)),
    Case("too many threads, 2 ranks", ranks=2, threads=4 * (os.cpu_count() or 1)),
]


def start(case: Case, out: pathlib.Path) -> list[subprocess.Popen]:
    """The ranks, once all of them are ready for their first step."""
    fixed = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": MASTER_PORT, "WORLD_SIZE": str(case.ranks)}
    ranks = [
        subprocess.Popen(
            case.command(out),
            env={**os.environ, **fixed, "RANK": str(rank)},
            stderr=subprocess.DEVNULL,
        )
        for rank in range(case.ranks)
    ]
    until = time.monotonic() + LIMIT_S
    while len(list(out.glob("ready*"))) < case.ranks and time.monotonic() < until:
        time.sleep(0.05)
    return ranks


def record(case: Case, out: pathlib.Path) -> float:
    """Runs a case. Returns the largest share of the window that a training thread lacked a CPU."""
    ranks = start(case, out)
    burn = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(burn) for _ in range(case.burners)]
    try:
        (out / "go").touch()
        for rank in ranks:
            rank.wait(timeout=LIMIT_S)
    finally:
        for process in burners + ranks:
            process.kill()
            process.wait()
    truths = [json.loads(path.read_text()) for path in out.glob("truth*.json")]
    return max(truth["run_delay_ms"] / truth["window_ms"] for truth in truths)


def analyze(program: str, out: pathlib.Path) -> tuple[list[str], float]:
    """The causes found, and the gain of the lack of CPUs in percent."""
    traces = [str(path) for path in sorted(out.glob("rank*.json"))]
    command = [program, "analyze", "--format", "json", *traces]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings = json.loads(done.stdout)["findings"]
    gains = [f["gain_pct"] for f in findings if f["cause"] == "random-stalls"]
    return [finding["cause"] for finding in findings], max(gains, default=0.0)


def judge(case: Case, lacked: float, causes: list[str]) -> str:
    says = "random-stalls" in causes
    if case.kind == "thread" and "gil-contention" in causes:
        return "right"
    if lacked >= LACKS:
        return "right" if says else "missed"
    if lacked <= HAS:
        return "false" if says else "right"
    return "either"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(HERE.parents[1] / "build/src/cmd/perftracker"))
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    head = ("case", "without a CPU", "in stalls, at most", "findings", "")
    rows: list[tuple[object, ...]] = [head]
    for _ in range(options.rounds):
        for case in CASES:
            with tempfile.TemporaryDirectory() as folder:
                lacked = record(case, pathlib.Path(folder))
                causes, gain_pct = analyze(options.program, pathlib.Path(folder))
            said = ", ".join(causes) or "none"
            answer = judge(case, lacked, causes)
            rows.append((case.name, f"{100 * lacked:.0f} %", f"{gain_pct:.0f} %", said, answer))
    print(text_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
