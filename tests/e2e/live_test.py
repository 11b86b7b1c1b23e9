# SPDX-License-Identifier: Apache-2.0
"""Two real jobs: one in which a rank's data comes slowly, one with slow Python."""

from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "live_faults"))

import judge  # noqa: E402


class LiveFaults(unittest.TestCase):
    def check(self, fault: str) -> None:
        """A wrong name fails at once; silence on a busy machine gets a second chance."""
        with tempfile.TemporaryDirectory() as folder:
            for attempt in ("first", "second"):
                out = pathlib.Path(folder, attempt)
                run = judge.run_job(fault, out)
                if run.word != judge.ABSTAINED:
                    break
            log = out.with_name(attempt + "-times").joinpath("log").read_text(errors="replace")
            self.assertEqual(run.word, judge.RIGHT, f"said: {run.said}\n{log}")
            self.assertTrue((out / "report.html").is_file(), "there is no report.html")

    def test_the_rank_whose_data_comes_slowly_is_named(self) -> None:
        self.check("io")

    def test_the_rank_with_the_slow_function_is_named(self) -> None:
        self.check("cpu")


if __name__ == "__main__":
    unittest.main()
