# SPDX-License-Identifier: Apache-2.0
"""`perftracker replay`: the script that it writes runs what torch recorded."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import unittest
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, LiveTest, TorchLiveTest  # noqa: E402

# One rank's trace with shapes; the products' sizes are known.
RECORD = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
a, b = torch.randn(64, 32), torch.randn(48, 32)
c, d = torch.randn(5, 16, 8), torch.randn(5, 8, 4)
bias = torch.randn(48)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
    for _ in range(3):
        torch.mm(a, b.t())
        torch.bmm(c.bfloat16(), d.bfloat16())
        torch.addmm(bias, a, b.t())
profiler.export_chrome_trace(sys.argv[1])
"""


class Torch(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.trace = self.folder / "trace.json"
        self.script = self.folder / "replay.py"
        subprocess.run(
            [self.python, "-c", RECORD, str(self.trace)],
            check=True, capture_output=True, timeout=240,
        )  # fmt: skip

    def replay(self, *words: str) -> dict[str, Any]:
        done = self.ask("replay", str(self.trace), "-o", str(self.script))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run(
            [self.python, str(self.script), "--device", "cpu", "--repeat", "3", *words],
            capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_recorded_products_run_again_with_their_shapes_and_types(self) -> None:
        found = {entry["op"]: entry for entry in self.replay("--json")["results"]}
        self.assertEqual(set(found), {"aten::mm", "aten::bmm", "aten::addmm"})
        mm, bmm, addmm = found["aten::mm"], found["aten::bmm"], found["aten::addmm"]
        self.assertEqual(mm["dims"], [[64, 32], [32, 48]])
        self.assertEqual(mm["strides"], [[32, 1], [1, 32]])
        self.assertEqual(bmm["types"], ["c10::BFloat16", "c10::BFloat16"])
        for entry, flop in ((mm, 2 * 64 * 32 * 48), (bmm, 2 * 5 * 16 * 8 * 4), (addmm, 196608)):
            self.assertEqual(entry["count"], 3)
            rate = entry["gflops_replayed"] * entry["replayed_us"] * 1e3
            self.assertAlmostEqual(rate, flop, delta=1e-6 * flop)
            self.assertAlmostEqual(
                entry["ratio"], entry["median_us"] / entry["replayed_us"], places=6
            )

        # A machine that was five times slower, in the record alone.
        before = mm["median_us"]
        document = json.loads(self.trace.read_text())
        for event in document["traceEvents"]:
            if "dur" in event:
                event["ts"], event["dur"] = 5 * event["ts"], 5 * event["dur"]
        self.trace.write_text(json.dumps(document))
        script = self.ask("replay", str(self.trace), "-o", "-").stdout
        record = json.loads(script.split("'''")[1])
        found = {entry["op"]: entry for entry in record["entries"]}
        self.assertAlmostEqual(found["aten::mm"]["median_us"], 5 * before, delta=0.01 * before)


class Inputs(LiveTest):
    def assert_refused(self, name: str, content: str, why: str) -> None:
        path = self.folder / name
        path.write_text(content)
        done = self.ask("replay", str(path), "-o", "-")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(why, done.stderr)

    def test_what_has_no_shapes_is_told_which_option_records_them(self) -> None:
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1,
                 "dur": 1, "args": {}}  # fmt: skip
        self.assert_refused("t.json", json.dumps({"traceEvents": [event]}), "record_shapes=True")
        self.assert_refused("report.json", '{"findings": []}', "record_shapes=True")
        self.assert_refused("t.json", '{"traceEvents": [{"a"', "offset 21: expected the end")
        self.assert_refused("t.json", json.dumps({"traceEvents": []}), "among 0 events")

    def test_apostrophes_of_a_path_do_not_end_the_literal(self) -> None:
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1,
                 "dur": 1, "args": {"Input Dims": [[2, 3], [3, 4]],
                                    "Input type": ["float", "'''+x"]}}  # fmt: skip
        path = self.folder / "'''+evil.json"
        path.write_text(json.dumps({"traceEvents": [event]}))
        done = self.ask("replay", str(path), "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        compile(done.stdout, "replay.py", "exec")
        self.assertEqual(done.stdout.count("'''"), 2)

    def test_the_accused_rank_of_a_report_is_replayed(self) -> None:
        (self.folder / "traces").mkdir()
        for rank in (0, 1):
            event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1,
                     "dur": 1, "args": {"Input Dims": [[2 + rank, 3], [3, 4]],
                                        "Input type": ["float", "float"]}}  # fmt: skip
            about = {"rank": rank, "world_size": 2}
            (self.folder / "traces" / f"{rank}-1.json").write_text(
                json.dumps({"distributedInfo": about, "traceEvents": [event]})
            )
        report = self.folder / "report.json"
        report.write_text(json.dumps({"findings": [{"ranks": "1"}]}))
        done = self.ask("replay", str(report), "-o", "-")
        self.assertIn('"rank": 1,', done.stdout, done.stderr)
        done = self.ask("replay", str(report), "--rank", "0", "-o", "-")
        self.assertIn('"rank": 0,', done.stdout, done.stderr)

    def test_no_input_is_a_usage_error(self) -> None:
        self.assertEqual(self.ask("replay").returncode, 2)
        self.assertTrue(PROGRAM)


if __name__ == "__main__":
    unittest.main()
