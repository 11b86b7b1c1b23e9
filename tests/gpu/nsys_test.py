# SPDX-License-Identifier: Apache-2.0
"""Jobs as exports of Nsight Systems: analyze says the same of them as of Kineto's files."""

from __future__ import annotations

import json
import os
import pathlib
import sqlite3
import sys
import unittest
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE))
import make_nsys  # noqa: E402
import program  # noqa: E402

TRACES = pathlib.Path(
    os.environ.get("PERFTRACKER_TRACES", program.ROOT.parent / "shared" / "traces")
)
NEWEST = make_nsys.Options("3.25", "table", "binary", "iteration")


class Exports(program.Program):
    def simulate(self, scenario: str, *words: str) -> pathlib.Path:
        """Without what no export holds: the host's view beside the traces."""
        job = self.folder / "job"
        size = ["--workers", "4", "--host-workers", "2", "--iterations", "3"]
        done = self.call("simulate", "-s", scenario, *size, *words, "-o", "job")
        self.assertEqual(done.returncode, 0, done.stderr)
        for sidecar in job.glob("*.sidecar"):
            sidecar.unlink()
        return job

    def convert(self, job: pathlib.Path, options: make_nsys.Options = NEWEST) -> None:
        make_nsys.convert(job, self.folder / "nsys", options)

    def report(self, path: str) -> dict[str, Any]:
        done = self.call("analyze", "--format", "json", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def check_same(self, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        self.assertEqual(ours["verdict"], theirs["verdict"])
        self.assertEqual(ours["job"]["iterations"], theirs["job"]["iterations"])
        self.assertEqual(len(ours["findings"]), len(theirs["findings"]))
        for mine, other in zip(ours["findings"], theirs["findings"], strict=True):
            for key in ("cause", "ranks", "hosts", "victim_ranks", "confidence"):
                self.assertEqual(mine[key], other[key], key)
            self.assertEqual(mine["function"]["name"], other["function"]["name"])
            gains = mine["gain_ms_per_iteration"], other["gain_ms_per_iteration"]
            self.assertLess(abs(gains[0] - gains[1]), 0.02 * gains[1])
            if other["mu"] is not None:
                self.assertLess(abs(mine["mu"]["value"] - other["mu"]["value"]), 0.02)

    def test_all_layouts_say_what_kineto_says(self) -> None:
        job = self.simulate("gpu-throttle")
        kineto = self.report("job")
        self.assertEqual(kineto["findings"][0]["cause"], "gpu-slow")
        for options in (
            NEWEST,
            NEWEST._replace(payload="json", steps="profiler"),
            NEWEST._replace(schema="3.13", layout="generic", payload="none"),
            NEWEST._replace(schema="2.9", layout="generic"),
        ):
            with self.subTest(options=options):
                self.convert(job, options)
                self.check_same(self.report("nsys"), kineto)

    def test_other_faults_of_devices_and_networks_are_found_as_well(self) -> None:
        for scenario in ("nvlink-fallback", "nic-bond", "load-imbalance"):
            with self.subTest(scenario=scenario):
                job = self.simulate(scenario, "--workers", "8", "--host-workers", "4")
                self.convert(job)
                kineto = self.report("job")
                self.assertEqual(kineto["verdict"], "abnormal")
                self.check_same(self.report("nsys"), kineto)
                for path in (self.folder / "nsys").iterdir():
                    path.unlink()
                for path in job.iterdir():
                    path.unlink()

    def test_without_marks_what_repeats_is_an_iteration(self) -> None:
        job = self.simulate("gpu-throttle", "--iterations", "8", "--counters", "none")
        self.convert(job, NEWEST._replace(steps="none"))
        for path in (self.folder / "nsys").iterdir():
            with sqlite3.connect(path) as db:
                db.execute("DELETE FROM NVTX_EVENTS WHERE text LIKE 'Optimizer.step%'")
        report = self.report("nsys")
        self.assertEqual(report["job"]["iterations"], 7)
        self.assertIn("inferred from repeating kernels", " ".join(report["notes"]))
        self.assertEqual(report["findings"][0]["cause"], "gpu-slow")

    def test_the_report_is_as_agreed(self) -> None:
        self.convert(self.simulate("gpu-throttle"))
        done = self.call("analyze", "nsys")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.golden("nsys.text", done.stdout)

    def test_nothing_is_written_beside_the_file(self) -> None:
        self.convert(self.simulate("healthy", "--counters", "none"))
        folder = self.folder / "nsys"
        path = folder / "host-0000.sqlite"
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode = WAL")
        db.close()
        for leftover in folder.glob("*-*al"):
            leftover.unlink()
        before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.iterdir()}
        folder.chmod(0o555)
        try:
            self.report("nsys")
        finally:
            folder.chmod(0o755)
        self.assertEqual(
            before, {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.iterdir()}
        )

    def test_one_worker_of_several_is_named_by_its_process(self) -> None:
        self.convert(self.simulate("healthy", "--counters", "none"))
        path = "nsys/host-0000.sqlite"
        complaint = self.fails(1, self.call("summarize", path, "-o", "x.ptfp"))
        self.assertIn(f"{path}: expected one worker, found ", complaint)
        pid = complaint.rsplit("#", 1)[1].strip()
        self.assertEqual(self.call("summarize", f"{path}#{pid}", "-o", "x.ptfp").returncode, 0)
        complaint = self.fails(1, self.call("summarize", path + "#9", "-o", "x.ptfp"))
        self.assertIn("expected a worker with process id 9", complaint)

    def test_wrong_inputs_are_explained(self) -> None:
        job = self.simulate("healthy", "--counters", "none")
        self.convert(job)
        good = (self.folder / "nsys" / "host-0000.sqlite").read_bytes()
        (self.folder / "half.sqlite").write_bytes(good[: len(good) // 2])
        (self.folder / "text.sqlite").write_text("SQLite format 3\0 is how it begins")
        (self.folder / "report.nsys-rep").write_bytes(b"\0\1\2")
        with sqlite3.connect(self.folder / "other.sqlite") as db:
            db.execute("CREATE TABLE t (a)")
        (self.folder / "column.sqlite").write_bytes(good)
        with sqlite3.connect(self.folder / "column.sqlite") as db:
            db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN streamId TO s")
        complaints = {
            "half.sqlite": "expected an intact database, found: ",
            "text.sqlite": "expected a",
            "other.sqlite": "expected an export of Nsight Systems",
            "column.sqlite": "table CUPTI_ACTIVITY_KIND_KERNEL: expected a column streamId",
            "report.nsys-rep": "make one with 'nsys export --type sqlite'",
        }
        for name, complaint in complaints.items():
            with self.subTest(name=name):
                self.assertIn(complaint, self.fails(1, self.call("analyze", name)))

    def test_exports_are_not_compared_with_other_traces(self) -> None:
        self.convert(self.simulate("healthy", "--counters", "none"))
        complaint = self.fails(1, self.call("analyze", "job", "nsys"))
        self.assertIn("expected traces of one kind, found", complaint)
        complaint = self.fails(1, self.call("diff", "job", "nsys"))
        self.assertIn("expected traces of one kind, found", complaint)
        complaint = self.fails(1, self.call("diff", "nothing.json", "nsys/host-0000.sqlite"))
        self.assertIn("nothing.json: ", complaint)


@unittest.skipUnless((TRACES / "nsys").is_dir(), "no real exports: set PERFTRACKER_TRACES")
class RealExports(program.Program):
    def report(self, name: str) -> dict[str, Any]:
        done = self.call("analyze", "--format", "json", str(TRACES / "nsys" / name))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_two_processes_of_schema_3_25_are_two_workers(self) -> None:
        """No rank is late; but pinned copies to the device hold 97 % of the window."""
        report = self.report("h100_2gpu_schema3.25.sqlite")
        self.assertEqual(report["coverage"]["workers_analyzed"], 2)
        (finding,) = report["findings"]
        self.assertEqual((finding["id"], finding["scope"]), ("PT-206", "all"))
        self.assertEqual(finding["function"]["name"], "Memcpy HtoD (Pinned -> Device)")

    def test_cloverleaf_of_schema_3_13_has_its_time_steps(self) -> None:
        report = self.report("a100_cloverleaf_schema3.13.sqlite")
        self.assertEqual(report["verdict"], "healthy")
        self.assertEqual(report["job"]["iterations"], 4)


if __name__ == "__main__":
    unittest.main()
