# SPDX-License-Identifier: Apache-2.0
"""The judge of live verdicts can say each of its words, and its tables count them."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench" / "live_jobs"


def finding(ranks: str, name: str, cause: str = "host-stall", scope: str = "some") -> dict:
    return {
        "id": "PT-101",
        "cause": cause,
        "title": "host stall",
        "scope": scope,
        "ranks": ranks,
        "rank_count": 1,
        "gain_pct": 50.0,
        "confidence": "high",
        "name": name,
        "stack": ["train.py(9): main"],
        "evidence": [],
    }


def report(verdict: str, *findings: dict, at_s: float = 120.0) -> dict:
    return {"file": "", "at_s": at_s, "verdict": verdict, "reason": "", "findings": [*findings]}


def record(fault: str, *reports: dict, **more: Any) -> dict[str, Any]:
    """A job of four ranks whose iterations became three times as long at second 100."""
    kinds = {"hang-lock": "hangs", "crash": "fails", "none": "none"}
    usual = {
        "build": "now",
        "program": "ddp",
        "fault": fault,
        "kind": kinds.get(fault, "slow"),
        "ranks": 4,
        "victim": 3,
        "strength": 2.0,
        "neighbor": False,
        "before_ms": 10.0,
        "after_ms": 30.0,
        "steps": 1000,
        "begin_s": 0.0 if fault == "none" else 100.0,
        "stopped_s": 0.0,
        "status": 0,
        "reports": [*reports],
    }
    return usual | more


def run_bench(code: str, text: str) -> str:
    """In a process of its own: several benches have modules of the same names."""
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, input=text, cwd=BENCH, check=True, capture_output=True, text=True
    ).stdout


class Judge(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.addClassCleanup(sys.path.remove, str(BENCH))
        cls.addClassCleanup(cls.forget)
        cls.forget()
        sys.path.insert(0, str(BENCH))
        import judge
        import table

        cls.judge, cls.table = judge, table

    @staticmethod
    def forget() -> None:
        """Other benches have modules of the same names."""
        for name in ("judge", "table", "faults", "programs", "job", "machine", "recorded"):
            sys.modules.pop(name, None)

    def word(self, *args: Any, **more: Any) -> str:
        return self.judge.judge(record(*args, **more)).word

    def test_of_processes_without_ranks_the_function_decides(self) -> None:
        said = report("abnormal", finding("1", "query_config_server"))
        self.assertEqual(self.word("sleep", said, program="hogwild", victim=2), "right")
        said = report("abnormal", finding("0-1", "query_config_server"))
        self.assertEqual(self.word("sleep", said, program="hogwild", victim=2), "wrong rank")
        said = report("abnormal", finding("0", "backward"))
        self.assertEqual(self.word("sleep", said, program="hogwild", victim=2), "wrong function")

    def test_the_right_rank_and_function_are_right(self) -> None:
        said = report("abnormal", finding("3", "query_config_server"))
        self.assertEqual(self.word("sleep", said), self.judge.RIGHT)
        self.assertEqual(self.judge.judge(record("sleep", said)).seconds, 20.0)

    def test_a_frame_above_the_function_is_right_too(self) -> None:
        leaf = finding("3", "<system call fsync>") | {"stack": ["x.py(3): write_journal"]}
        self.assertEqual(self.word("journal", report("abnormal", leaf)), self.judge.RIGHT)

    def test_a_wrong_rank_is_never_undone(self) -> None:
        wrong = report("abnormal", finding("1", "query_config_server"), at_s=110.0)
        right = report("abnormal", finding("3", "query_config_server"))
        self.assertEqual(self.word("sleep", wrong, right), self.judge.WRONG_RANK)
        both = report("abnormal", finding("1,3", "query_config_server"))
        self.assertEqual(self.word("sleep", both), self.judge.WRONG_RANK)

    def test_the_right_rank_without_the_function_is_a_word_of_its_own(self) -> None:
        said = report("abnormal", finding("3", "aten::mm"))
        self.assertEqual(self.word("sleep", said), self.judge.WRONG_FUNCTION)

    def test_a_fault_of_all_ranks_must_accuse_all(self) -> None:
        everywhere = finding("0-3", "read_from_store", scope="all")
        said = {"victim": -1}
        self.assertEqual(
            self.word("all-store", report("abnormal", everywhere), **said), self.judge.RIGHT
        )
        one = report("abnormal", finding("2", "read_from_store"))
        self.assertEqual(self.word("all-store", one, **said), self.judge.WRONG_RANK)

    def test_slow_and_unnamed_is_neither_right_nor_healthy(self) -> None:
        self.assertEqual(self.word("sleep", report("slow")), self.judge.UNNAMED)
        self.assertEqual(self.word("sleep", report("inconclusive")), self.judge.UNNAMED)
        self.assertEqual(self.word("sleep"), self.judge.SILENT)

    def test_a_slow_job_whose_last_word_is_healthy_is_falsely_healthy(self) -> None:
        told = report("inconclusive", at_s=110.0)
        self.assertEqual(self.word("sleep", told, report("healthy")), self.judge.FALSE_HEALTHY)
        cheap = {"after_ms": 10.5}
        self.assertNotEqual(
            self.word("sleep", report("healthy"), **cheap), self.judge.FALSE_HEALTHY
        )

    def test_what_was_said_before_the_fault_counts_as_early_only(self) -> None:
        early = report("abnormal", finding("1", "aten::mm"), at_s=50.0)
        judged = self.judge.judge(record("sleep", early))
        self.assertEqual((judged.word, judged.early), (self.judge.SILENT, 1))

    def test_a_hang_needs_the_rank_and_the_place(self) -> None:
        said = report("stuck", finding("3", "acquire_quota", "rank-behind"))
        self.assertEqual(self.word("hang-lock", said), self.judge.RIGHT)
        self.assertEqual(self.word("hang-lock", report("healthy")), self.judge.FALSE_HEALTHY)

    def test_a_crash_is_right_when_the_job_is_said_to_have_failed(self) -> None:
        self.assertEqual(self.word("crash", report("failed"), status=1), self.judge.RIGHT)
        healthy = report("healthy")
        self.assertEqual(self.word("crash", healthy, status=1), self.judge.FALSE_HEALTHY)

    def test_a_healthy_job_has_no_findings(self) -> None:
        self.assertEqual(self.word("none", report("healthy")), self.judge.RIGHT)
        self.assertEqual(self.word("none", report("slow")), self.judge.FALSE_ALARM)
        alarm = report("abnormal", finding("2", "aten::mm"), at_s=50.0)
        self.assertEqual(self.word("none", alarm, report("healthy")), self.judge.FALSE_ALARM)
        self.assertEqual(self.word("none", report("inconclusive")), self.judge.UNNAMED)

    def test_a_program_that_fails_by_itself_says_nothing(self) -> None:
        self.assertEqual(self.word("sleep", report("failed"), status=1), self.judge.BROKEN)
        self.assertEqual(self.word("sleep", begin_s=0.0), self.judge.BROKEN)

    def test_the_table_counts_the_newest_result_of_each_cell(self) -> None:
        old = record("sleep")
        new = record("sleep", report("abnormal", finding("3", "query_config_server")))
        text = self.table.summary([old, new, record("none", report("healthy"))], ["ray"])
        rows = [line.split() for line in text.splitlines()]
        sleep = next(row for row in rows if row[1:4:2] == ["now", "sleep"])
        self.assertEqual(sleep[5:9], ["1", "|", "1", "|"])
        self.assertIn("for want of a framework: ray", text)

    def test_a_small_cost_is_listed_apart(self) -> None:
        text = self.table.summary([record("sleep", after_ms=10.5)], [])
        self.assertIn("at most 10 %", text)
        self.assertNotIn("Faults that cost more than", text)


REPORTER = """#!/bin/sh
echo '{"verdict": "healthy", "reason": "all well", "findings": []}'
"""


class Recorded(unittest.TestCase):
    """Folders that --record kept are judged again."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.addClassCleanup(sys.path.remove, str(BENCH))
        cls.addClassCleanup(Judge.forget)
        Judge.forget()
        sys.path.insert(0, str(BENCH))
        import judge
        import recorded

        cls.judge, cls.recorded = judge, recorded

    def test_the_name_of_a_folder_says_what_the_job_was(self) -> None:
        about = self.recorded.parse("now-nanogpt-ddp-all-store-0plain+stacks")
        self.assertEqual(about["program"].name, "nanogpt-ddp")
        self.assertEqual(about["fault"].name, "all-store")
        self.assertEqual((about["build"], about["record"]), ("now", "plain+stacks"))
        for name in ("alone-ddp-none-0", "now-ddp-nonsense-0steps", "now-ddp-lock-0", "x"):
            self.assertIsNone(self.recorded.parse(name), name)

    def test_its_logs_say_what_the_fault_costs(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            out = pathlib.Path(name)
            folder = out / "runs" / "now-ddp-lock-0plain"
            (folder / "traces").mkdir(parents=True)
            (folder / "traces" / "rank0.json").write_text("{}")
            at_s, lines = 1700000000.0, []
            for step in range(40):
                lines.append(f"{at_s:.9f}")
                at_s += 0.1 if step < 20 else 0.25
            (folder / "steps-0").write_text("\n".join(lines))
            (folder / "begin-1").write_text(lines[20])
            program = out / "program"
            program.write_text(REPORTER)
            program.chmod(0o755)
            (record,) = self.recorded.records(out, str(program))
        judged = self.judge.judge(record)
        self.assertAlmostEqual(judged.cost_pct, 150, delta=1)
        self.assertEqual(judged.word, "false healthy")


class Injection(unittest.TestCase):
    """The wrapped program counts its steps, and the fault happens from the chosen one on."""

    PROGRAM = """
import json, os, sys
os.environ["LIVE_JOBS_FAULT"] = json.dumps({
    "folder": sys.argv[1], "fault": "x", "trouble": "x", "hangs": False, "role": "load",
    "victim": int(sys.argv[2]), "at": 3, "strength": 0.0, "loader_workers": 0,
    "functions": {"step": "Net.forward", "load": "batch", "forward": "Net.forward"}})
class Troubles:
    @staticmethod
    def make(plan):
        return lambda amount_s, step: print("fault", amount_s, step)
sys.modules["troubles"] = Troubles
import injected
class Net:
    training = True
    def forward(self):
        pass
def batch():
    pass
injected.arm(globals())
for _ in range(5):
    Net().forward()
    batch()
    batch()
Net.training = False
Net().forward()
"""

    def run_program(self, victim: int) -> tuple[str, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, "-c", self.PROGRAM, folder, str(victim)]
            inject = BENCH / "inject"
            said = subprocess.run(words, cwd=inject, check=True, capture_output=True, text=True)
            files = {p.name: len(p.read_text().split()) for p in pathlib.Path(folder).iterdir()}
        return said.stdout, sorted(f"{name} {lines}" for name, lines in files.items())

    def test_the_fault_happens_once_in_an_iteration(self) -> None:
        said, files = self.run_program(0)
        self.assertEqual(said, "fault 0.0 4\nfault 0.0 5\n")
        self.assertEqual(files, ["begin-0 1", "steps-0 5"])

    def test_other_ranks_are_unharmed(self) -> None:
        self.assertEqual(self.run_program(1), ("", ["steps-0 5"]))


class Programs(unittest.TestCase):
    def test_each_program_has_the_functions_that_faults_happen_in(self) -> None:
        code = """
import ast, faults, pathlib, programs
for program in programs.PROGRAMS:
    tree = ast.parse(pathlib.Path("jobs", program.file).read_text())
    names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    for c in tree.body:
        if isinstance(c, ast.ClassDef):
            names |= {f"{c.name}.{n.name}" for n in c.body if isinstance(n, ast.FunctionDef)}
    assert {program.step, program.load, program.forward} <= names, program
cells = [(p.name, f.name) for p in programs.PROGRAMS for f in faults.FAULTS if faults.fits(f, p)]
print(len(programs.PROGRAMS), len(faults.FAULTS), len(cells))
"""
        counted, known, cells = map(int, run_bench(code, "").split())
        self.assertGreaterEqual(counted, 20)
        self.assertGreaterEqual(known, 12)
        self.assertGreater(cells, 300)


if __name__ == "__main__":
    unittest.main()
