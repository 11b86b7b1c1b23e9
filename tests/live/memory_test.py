# SPDX-License-Identifier: Apache-2.0
"""What a run says of earlier runs of its name: its pace, and findings that return."""

from __future__ import annotations

import contextlib
import json
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import QUICK, LiveTest  # noqa: E402

DAY_NS = 86400 * 10**9
NOT_SEEN = "what the command line does not say, such as a batch size in a file, is not seen"


class Memory(LiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.store = pathlib.Path(self.env["PERFTRACKER_STORE"])
        self.pace = self.folder / "ms"

    def run_at(
        self, ms: float, *words: str, iterations: int = 400, options: tuple[str, ...] = ()
    ) -> dict:
        self.pace.write_text(str(ms))
        fake = self.fake("--iterations", str(iterations), "--ms-from", str(self.pace), *words)
        done = self.run_job(*QUICK, *options, "--job-name", "gpt", *fake, limit_s=240)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return self.report()

    def sql(self, *statements: str) -> None:
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as database, database:
            for statement in statements:
                database.execute(statement)

    def copy_run(self, count: int) -> None:
        """The job of the store as it was on earlier days, so that few runs are needed."""
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as database, database:
            times = {
                "job": ("started_ns", "seen_ns", "ended_ns"), "report": ("made_ns",),
                "event": ("at_ns",), "pace": ("at_s",), "finding": (),
            }  # fmt: skip
            for table, columns in times.items():
                cursor = database.execute(f"SELECT * FROM {table}")
                names = [column[0] for column in cursor.description]
                for row in cursor.fetchall():
                    for day in range(1, count + 1):
                        made = dict(zip(names, row, strict=True))
                        made["job"] = f"{day:03x}{made['job'][3:]}"
                        for column in columns:
                            unit = DAY_NS if column.endswith("_ns") else DAY_NS // 10**9
                            made[column] -= day * unit
                        database.execute(
                            f"INSERT INTO {table} VALUES ({','.join('?' * len(names))})",
                            list(made.values()),
                        )

    def history(self) -> dict:
        done = self.ask("history", "gpt", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_run_twice_as_slow_from_its_first_step_says_so_in_its_first_sentence(self) -> None:
        # Of the third day and before only minutes are kept: enough of one for a pace.
        first = self.run_at(15, iterations=650)
        self.assertNotIn("earlier", first["reason"])
        self.copy_run(4)
        self.sql("UPDATE job SET command = replace(command, ' 650 ', ' 200 ')")
        slower = self.run_at(40, iterations=200, options=("--no-checkup",))
        self.assertEqual(slower["verdict"], "healthy", slower["reason"])
        self.assertRegex(
            slower["reason"], r", but [23]\.\dx slower than 5 earlier runs of this name: "
        )
        self.assertTrue(any(NOT_SEEN in note for note in slower["notes"]), slower["notes"])
        history = self.history()
        self.assertEqual(history["earlier"]["verdict"], "slower", history["earlier"])
        self.assertEqual(history["earlier"]["compared"], 5)
        self.assertIn("slower", [event["kind"] for event in history["events"]])
        self.assertIn("Earlier   2.", self.ask("history", "gpt").stdout)
        self.assertIn("healthy, slower", self.ask("jobs").stdout)

    def test_another_command_is_named_and_not_compared(self) -> None:
        self.run_at(15)
        self.copy_run(4)
        other = self.run_at(40, "--slow-rank", "0", iterations=100)
        self.assertNotIn("slower", other["reason"])
        (note,) = [note for note in other["notes"] if "earlier" in note]
        self.assertIn("5 had another command", note)
        self.assertEqual(self.history()["earlier"]["verdict"], "unknown")

    def test_a_finding_that_returns_says_when_it_was_here_before(self) -> None:
        slow = ("--slow-at", "80", *self.until_report())
        first = self.run_at(15, *slow, iterations=130, options=("--no-checkup",))
        self.assertTrue(first["findings"], first["reason"])
        self.copy_run(1)
        for report in self.out.glob("report*"):
            report.unlink()
        again = self.run_at(15, *slow, iterations=130, options=("--no-checkup",))
        notes = [note for note in again["notes"] if "was here before" in note]
        found = [[f["cause"], f["function"]] for run in (first, again) for f in run["findings"]]
        self.assertEqual(len(notes), 1, (found, again["reason"], again["notes"]))
        (note,) = notes
        self.assertIn("F1 was here before: in 2 earlier runs of this name, last in ", note)
