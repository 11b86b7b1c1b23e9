# SPDX-License-Identifier: Apache-2.0
"""Flight logs: taken from a recorder while a process writes into it, kept, and read again."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import unittest

import program

WRITER = os.environ.get("PERFTRACKER_FLIGHT_WRITER", "")
LOADER = "torch/utils/data/dataloader.py(12): __next__"


@unittest.skipUnless(WRITER, "PERFTRACKER_FLIGHT_WRITER names no program")
class Flight(program.Program):
    def record(self, rank: int = 0, batches: int = 40) -> tuple[int, int]:
        """Leaves rankN.ptfp, .flight and .flight.sidecar; returns records and iterations."""
        words = [WRITER, program.PROGRAM, str(self.folder), str(rank), str(batches)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        written, iterations = done.stdout.split()
        return int(written), int(iterations)

    def dump(self, name: str) -> dict:
        done = self.call("dump", "--format", "json", "--top", "0", name)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_every_record_is_taken_or_counted_while_it_is_written(self) -> None:
        written, _ = self.record(batches=150)
        log = self.dump("rank0.flight")
        kept = log["marks"] + log["samples"]
        kept += sum(t["records"] + t["window_records"] for t in log["threads"])
        lost = log["drops"]["overrun"] + log["drops"]["torn"]
        self.assertEqual(kept + lost, written)
        self.assertGreater(kept, 0)

    def test_the_fingerprint_says_what_the_writer_did(self) -> None:
        _, iterations = self.record()
        print_ = self.dump("rank0.ptfp")
        self.assertEqual(print_["iterations"], iterations)
        self.assertEqual(print_["collectives"], iterations)
        self.assertEqual(print_["window_ns"], iterations * 10_000_000)
        self.assertEqual(sum(print_["class_ns"].values()), print_["window_ns"])
        # Two of ten milliseconds, by the loader's marks.
        betas = {f["stack"][-1]: f["beta"] for f in print_["functions"]}
        self.assertAlmostEqual(betas[LOADER], 0.2, places=2)
        self.assertAlmostEqual(betas["torch/optim/sgd.py(14): step"], 0.1, places=2)
        stacks = [f["stack"] for f in print_["functions"]]
        self.assertIn(["train.py(11): <module>", LOADER], stacks)

    def test_a_kept_log_gives_the_same_again(self) -> None:
        self.record()
        done = self.call("summarize", "rank0.flight", "-o", "again.ptfp")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        first, again = self.dump("rank0.ptfp"), self.dump("again.ptfp")
        self.assertEqual((first.pop("source"), again.pop("source")), ("agent", "rank0.flight"))
        self.assertEqual(first, again)

    def test_without_a_sidecar_the_window_is_what_was_recorded(self) -> None:
        _, iterations = self.record()
        (self.folder / "rank0.flight.sidecar").unlink()
        print_ = self.dump("rank0.flight")
        self.assertEqual(print_["schema"], "perftracker.flight.v1")
        self.call("summarize", "rank0.flight", "-o", "again.ptfp")
        print_ = self.dump("again.ptfp")
        # Whole iterations, by the marks; the first and the last one are cut by the samples' ends.
        self.assertEqual(print_["window_ns"], print_["iterations"] * 10_000_000)
        self.assertLessEqual(iterations - print_["iterations"], 2)

    def test_a_folder_of_flight_logs_is_analyzed(self) -> None:
        for rank in range(2):
            self.record(rank)
            (self.folder / f"rank{rank}.ptfp").unlink()
        done = self.call("analyze", "--format", "json", ".")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual(report["coverage"]["workers_analyzed"], 2)
        # All spend two of ten milliseconds there.
        self.assertEqual(report["findings"][0]["function"]["name"], LOADER)

    def test_the_dump_of_a_flight_log_is_for_people_too(self) -> None:
        self.record(batches=1)
        text = self.call("dump", "rank0.flight").stdout
        self.assertIn("flight log of rank 0 of 2, pid 100, training thread 101, host node1", text)
        self.assertIn("20 marks, 50 samples", text)
        self.assertIn("thread 101 (python): 0 records, 2000 of windows", text)
        self.assertIn("operator aten::linear", text)

    def test_a_damaged_log_is_refused_with_the_place(self) -> None:
        self.record(batches=1)
        path = self.folder / "rank0.flight"
        path.write_bytes(path.read_bytes()[:-1])
        done = self.call("dump", "rank0.flight")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"rank0\.flight: byte \d+: expected \d+ bytes of text")

    def test_invalid_descriptors_are_refused(self) -> None:
        done = self.call("summarize", "--flight-fd", "77", "--sidecar-fd", "78", "-o", "x.ptfp")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("recorder:", done.stderr)
        self.assertFalse(pathlib.Path(self.folder, "x.ptfp").exists())


if __name__ == "__main__":
    unittest.main()
