# SPDX-License-Identifier: Apache-2.0
"""The judge of the live faults can say each of its words."""

from __future__ import annotations

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "live_faults"))

import judge  # noqa: E402


def report(ranks: str, name: str, cause: str = "host-stall", scope: str = "some") -> dict:
    finding = {
        "ranks": ranks,
        "rank_count": len(ranks.split(",")),
        "scope": scope,
        "cause": cause,
        "function": {"name": name, "stack": ["train_ddp.py: main"]},
    }
    return {"verdict": "abnormal", "reason": "", "findings": [finding]}


HEALTHY = {"verdict": "healthy", "reason": "", "findings": []}


class Judge(unittest.TestCase):
    def test_right_rank_and_function(self) -> None:
        found = report("2", "socket recv_into")
        self.assertEqual(judge.judge("io", found), judge.RIGHT)

    def test_right_function_on_a_wrong_rank(self) -> None:
        self.assertEqual(judge.judge("io", report("1", "recv_into")), judge.WRONG)
        self.assertEqual(judge.judge("io", report("1-2", "recv_into")), judge.WRONG)

    def test_wrong_function_on_the_right_rank(self) -> None:
        self.assertEqual(judge.judge("cpu", report("2", "aten::mm")), judge.WRONG)

    def test_a_fault_of_all_must_accuse_all(self) -> None:
        everybody = report("0-3", "faults.py: tokenize_slow", scope="all")
        self.assertEqual(judge.judge("all", everybody), judge.RIGHT)
        self.assertEqual(judge.judge("all", report("2", "tokenize_slow")), judge.WRONG)

    def test_a_cause_is_enough_where_no_function_is_to_blame(self) -> None:
        found = report("2", "aten::mm", "cpu-starvation")
        self.assertEqual(judge.judge("noise", found), judge.RIGHT)

    def test_no_accused_rank_is_abstention(self) -> None:
        self.assertEqual(judge.judge("io", HEALTHY), judge.ABSTAINED)
        self.assertEqual(judge.judge("io", None), judge.ABSTAINED)

    def test_a_healthy_job_has_no_findings(self) -> None:
        self.assertEqual(judge.judge("none", HEALTHY), judge.RIGHT)
        self.assertEqual(judge.judge("none", report("2", "aten::mm")), judge.FALSE_ALARM)
        self.assertEqual(judge.judge("none", None), judge.ABSTAINED)


if __name__ == "__main__":
    unittest.main()
