# SPDX-License-Identifier: Apache-2.0
"""No absurd number in reports of simulated jobs and of real traces; the checks themselves."""

from __future__ import annotations

import copy
import pathlib
import tempfile
import unittest
from collections.abc import Callable

import absurd
import real

SIMULATED = 30  # of the jobs that absurd.py has a thousand of


class Numbers(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_simulated_jobs(self) -> None:
        for name, words in absurd.simulated_cases(self.folder, SIMULATED):
            with self.subTest(job=name):
                self.assertEqual(absurd.look(words), [])

    def test_real_traces(self) -> None:
        if not real.TRACES.is_dir():
            self.skipTest(f"no traces at {real.TRACES}; set PERFTRACKER_TRACES")
        count = 0
        for number, (name, words) in enumerate(absurd.trace_cases(self.folder)):
            if number % 5 == 0:
                count += 1
                with self.subTest(inputs=name):
                    self.assertEqual(absurd.look(words), [])
        self.assertGreater(count, 50)


class Checks(unittest.TestCase):
    """Each check finds what it looks for."""

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory() as folder:
            done = real.call("simulate", "--scenario=gpu-throttle", "--level=fingerprints",
                             "--workers=8", "-o", folder)  # fmt: skip
            assert done.returncode == 0, done.stderr
            cls.report = real.analyze(folder)
            cls.text = real.call("analyze", "--color", "never", folder).stdout

    def assert_absurd(
        self, check: str, change: Callable[[absurd.Report], None], old: str = "", new: str = ""
    ) -> None:
        report = copy.deepcopy(self.report)
        change(report)
        found = absurd.absurdities(report, self.text.replace(old, new) if old else self.text)
        self.assertIn(check, {what.split(":")[0] for what in found}, found)

    def test_a_report_without_changes_is_sane(self) -> None:
        self.assertEqual(self.report["verdict"], "abnormal")
        self.assertEqual(absurd.absurdities(self.report, self.text), [])

    def test_numbers(self) -> None:
        def first(**values: object) -> Callable[[absurd.Report], None]:
            return lambda report: report["findings"][0].update(values)

        self.assert_absurd("signs", lambda r: r["workers"][0].update(window_ms=-1.0))
        self.assert_absurd("signs", first(threshold=float("nan")))
        self.assert_absurd("gains", first(gain_ms_per_iteration=1e6))
        self.assert_absurd("gains", first(gain_pct=99.0))
        self.assert_absurd("places", first(time_ms_per_iteration=0.0))
        self.assert_absurd("victims", first(victim_ranks="0-7"))
        self.assert_absurd("victims", first(ranks="9"))
        self.assert_absurd("victims", first(scope="all"))
        self.assert_absurd("windows", lambda r: r["job"].update(iterations=2.5))
        self.assert_absurd("windows", lambda r: r["workers"][0]["class_frac"].update(idle=0.9))
        self.assert_absurd("windows", lambda r: r["coverage"].update(ranks_missing="0"))
        self.assert_absurd(
            "waits",
            lambda r: r.update(waits=[{"from": 1, "to": 1, "wait_ms": 1, "collectives": 1}]),
        )
        self.assert_absurd("doubles", lambda r: r["findings"].append(r["findings"][0]))

    def test_words(self) -> None:
        def noted(note: str) -> Callable[[absurd.Report], None]:
            return lambda report: report["notes"].append(note)

        for note in (
            "in 1 of 1 iterations",
            "ranks 3 are late",
            "all ranks (one): late",
            "late at 0 of 0 collectives",
            "rank , waits",
            "of 14.5 iterations",
            "from 18.3 ms to 18.7 ms (1.0x)",
            "is late by 0.0 ms per iteration",
            "0 ms per iteration (11 %)",
            "takes nan ms",
            "begins 9.65e+04 us late",
            "because (9 %) the the loader: waits",
        ):
            with self.subTest(note=note):
                self.assert_absurd("phrases", noted(note))
        self.assert_absurd("shares", noted("arrived last at 9 of 8 collectives"))
        self.assert_absurd("shares", noted("holds 103 % of the window"))
        self.assert_absurd("losses", noted("rank 1 is late by 9000.0 ms per iteration"))
        self.assert_absurd("losses", noted("rank 1 is late by 9.0 ms per iteration (90.0 %)"))

    def test_verdicts(self) -> None:
        self.assert_absurd("verdicts", lambda r: r.update(verdict="healthy"))
        self.assert_absurd("verdicts", lambda r: r.update(findings=[]))
        self.assert_absurd("verdicts", lambda r: r.update(verdict="inconclusive"))
        gain = self.report["findings"][0]["gain_ms_per_iteration"]
        self.assert_absurd("sames", lambda r: None, f"{gain:.1f} ms per", "77.7 ms per")


if __name__ == "__main__":
    unittest.main()
