# SPDX-License-Identifier: Apache-2.0
"""Two real jobs, one in which a rank's data comes slowly, one with slow Python; by both sources."""

from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "live_faults"))

import judge  # noqa: E402

# Half the model of the demo. After the fault it runs for 9 s on a fast machine: a slowdown is found
# after 2 to 4 s, whatever an iteration takes.
JOB = ("--rows=2", "--width=64", "--steps=320")
FAULT_AT = 70
# Slow Python must be seen beside the ranks of this job that compete for few CPUs. In a window of
# torch.profiler an iteration takes up to five times as long, and the loader goes on meanwhile: data
# must come more slowly than that for a rank to wait for it.
STRENGTHS = {("io", "agent"): 1, ("io", "torch"): 4, ("cpu", "agent"): 2.5, ("cpu", "torch"): 2.5}
# One of the four jobs is started by torchrun.
LAUNCHER = f"{ROOT}/.venv/bin/python {ROOT}/tests/live/ranks.py 3"


class LiveFaults(unittest.TestCase):
    def find(self, fault: str, source: str) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out")
            launcher = "" if (fault, source) == ("cpu", "agent") else LAUNCHER
            job = (*JOB, f"--fault-strength={STRENGTHS[fault, source]}")
            run = judge.run_job(fault, out, job, source, FAULT_AT, launcher)
            log = out.with_name("out-times").joinpath("log").read_text(errors="replace")
            self.assertEqual(run.word, judge.RIGHT, f"{source} said: {run.said}\n{log}")
            self.assertTrue((out / "report.html").is_file(), "there is no report.html")
            return run.first

    def find_by_both(self, fault: str) -> tuple[dict, dict]:
        """The agent's collectors and torch.profiler lead to the same rank and cause."""
        agent, torch = self.find(fault, "agent"), self.find(fault, "torch")
        for key in ("ranks", "cause"):
            self.assertEqual(agent[key], torch[key], (agent, torch))
        return agent, torch

    def test_the_rank_whose_data_comes_slowly_is_named(self) -> None:
        for finding in self.find_by_both("io"):
            # When ranks also wait for a CPU, the finding is in a caller, with the call as evidence.
            places = [*finding["function"]["stack"], *finding["evidence"]]
            self.assertRegex(" ".join(places), "receive|recv_into|recvfrom", finding)

    def test_the_rank_with_the_slow_function_is_named(self) -> None:
        agent, torch = self.find_by_both("cpu")
        self.assertEqual(agent["function"]["name"], torch["function"]["name"])


if __name__ == "__main__":
    unittest.main()
