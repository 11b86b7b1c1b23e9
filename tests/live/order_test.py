# SPDX-License-Identifier: Apache-2.0
"""Orders, answers and reports, with workers that follow a script."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import QUICK, LiveTest  # noqa: E402


class Orders(LiveTest):
    def orders(self) -> list[list[int]]:
        """rank, step at which it began, order, start, window, least, most, stride."""
        lines = (self.folder / "record").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def slow_job(self, *words: str, options: tuple[str, ...] = QUICK) -> bytes:
        """Without a check-up: on a slow machine its window would be the first."""
        record = str(self.folder / "record")
        fake = ("--slow-at", "80", "--iterations", "130", "--record", record, *words)
        fake += self.until_report()
        done = self.run_job(*options, "--no-checkup", *self.fake(*fake), limit_s=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stdout, b"job done\n")
        return done.stderr

    def test_a_slowdown_makes_one_profile_of_all_at_one_step(self) -> None:
        self.slow_job("--world", "4")
        orders = self.orders()
        self.assertEqual(sorted(order[0] for order in orders), [0, 1, 2, 3])
        for rank, step, number, start, _, least, most, stride in orders:
            with self.subTest(rank=rank):
                self.assertEqual(step, start, "began at the ordered step")
                self.assertEqual((number, least, most, stride), (1, 5, 5, 1))
                self.assertEqual(start, orders[0][3])
                self.assertGreater(start, 80)
        report = self.report("report-1.json")
        self.assertEqual(report["coverage"]["workers_analyzed"], 4)
        self.assertEqual(report["trigger"]["kind"], "slowdown")
        self.assertGreater(
            report["trigger"]["current_iteration_ms"], report["trigger"]["baseline_iteration_ms"]
        )

    def test_traces_are_deleted_and_fingerprints_kept(self) -> None:
        said = self.slow_job().decode()
        self.assertEqual(list((self.out / "traces").iterdir()), [], said)
        kept = sorted(path.name for path in self.out.glob("fingerprints/1/*"))
        self.assertEqual(kept, ["rank0.ptfp", "rank1.ptfp"], said)
        self.assertTrue((self.out / "report.html").is_file())

    def test_traces_are_kept_when_asked_for(self) -> None:
        self.slow_job(options=(*QUICK, "--keep-traces"))
        kept = sorted(path.name for path in (self.out / "traces").iterdir())
        self.assertEqual(kept, ["0-1.json", "0-1.json.sidecar", "1-1.json", "1-1.json.sidecar"])

    def test_a_worker_that_missed_is_named_and_the_others_are_analyzed(self) -> None:
        self.slow_job("--world", "3", "--behave", "obey,miss,obey")
        report = self.report("report-1.json")
        self.assertEqual(report["coverage"]["workers_analyzed"], 2)
        self.assertEqual(report["coverage"]["ranks_missing"], "1")
        self.assertIn("the test wants it so", json.dumps(report["failures"]))

    def test_a_worker_that_dies_in_the_window_is_named(self) -> None:
        self.slow_job("--world", "3", "--behave", "obey,obey,die")
        report = self.report("report-1.json")
        self.assertEqual(report["coverage"]["workers_analyzed"], 2)
        self.assertIn("its process ended", json.dumps(report["failures"]))

    def test_an_invalid_trace_costs_only_its_rank(self) -> None:
        self.slow_job("--world", "3", "--behave", "garbage,obey,obey")
        report = self.report("report-1.json")
        self.assertEqual(report["coverage"]["workers_analyzed"], 2)
        self.assertIn("could not be summarized", json.dumps(report["failures"]))

    def test_a_path_outside_the_trace_directory_is_refused_and_untouched(self) -> None:
        outside = self.folder / "precious"
        outside.write_text("keep me")
        self.slow_job("--world", "2", "--behave", "lie,obey", "--outside", str(outside))
        self.assertEqual(outside.read_text(), "keep me")
        self.assertIn("expected a trace in", json.dumps(self.report("report-1.json")["failures"]))

    def test_a_worker_that_corrupts_its_ring_harms_no_other(self) -> None:
        # The garbage hides the pace: which of check-up and slowdown comes first is chance.
        slow = ("--slow-at", "80", "--iterations", "130", "--world", "3")
        fake = self.fake(
            *slow, "--behave", "scribble,obey,obey", "--until", f"{self.out}/report-*.json"
        )
        done = self.run_job(*QUICK, *fake, limit_s=120)
        self.assertEqual((done.returncode, done.stdout), (0, b"job done\n"), done.stderr.decode())
        report = min(self.out.glob("report-*.json"))
        self.assertGreaterEqual(self.report(report.name)["coverage"]["workers_analyzed"], 2)

    def test_a_healthy_job_has_no_findings(self) -> None:
        done = self.run_job(*QUICK, "--no-checkup", *self.fake("--iterations", "100"))
        self.assertEqual(done.returncode, 0)
        report = self.report()
        self.assertEqual((report["verdict"], report["findings"]), ("healthy", []))
        self.assertIn(b"HEALTHY", done.stderr)
        self.assertFalse((self.out / "report-1.json").exists(), done.stderr.decode())

    def test_a_job_too_short_for_a_window_of_its_ranks_is_not_called_healthy(self) -> None:
        self.run_job(*QUICK, *self.fake("--iterations", "100"))
        report = self.report()
        self.assertEqual((report["verdict"], report["findings"]), ("inconclusive", []))
        self.assertIn("the ranks were not compared", report["reason"])

    def test_a_job_that_ends_with_an_error_has_failed(self) -> None:
        done = self.run_job(*QUICK, *self.fake("--iterations", "100", "--status", "6"))
        self.assertEqual(done.returncode, 6)
        self.assertIn(b"JOB FAILED (exit 6) after 1", done.stderr)
        self.assertEqual(self.report()["verdict"], "failed")

    def test_a_job_ended_by_the_user_has_not_failed(self) -> None:
        with self.job(*QUICK, "--no-checkup", *self.fake("--iterations", "3000")) as job:
            self.await_workers(2, 60)
            job.send_signal(signal.SIGINT)
            job.wait(timeout=60)
        report = self.report()
        self.assertEqual(report["verdict"], "healthy")
        self.assertIn("no slowdown; then ended by SIGINT (Ctrl-C)", report["reason"])

    def test_a_job_whose_worker_crashed_is_not_called_healthy(self) -> None:
        fake = ("--behave", "obey,crash", "--iterations", "100", "--status", "1")
        done = self.run_job(*QUICK, *self.fake(*fake))
        self.assertEqual(done.returncode, 1)
        report = self.report()
        self.assertEqual((report["verdict"], report["findings"]), ("failed", []))
        self.assertIn("rank 1", report["reason"])
        self.assertIn(b"event=worker-gone rank=1", done.stderr)

        self.assertIn(b"event=worker-exit rank=1", done.stderr)
        self.assertIn("by SIGKILL", report["reason"])

    def test_a_job_that_was_restarted_and_ended_well_is_not_called_healthy(self) -> None:
        fake = ("--behave", "obey,raise", "--iterations", "100", "--restarts", "2")
        done = self.run_job(*QUICK, *self.fake(*fake))
        self.assertEqual(done.returncode, 0)
        report = self.report()
        self.assertEqual(report["verdict"], "failed")
        self.assertRegex(
            report["reason"],
            r"^and was restarted 1 time: rank 1 \(pid \d+\) was the first to end, at step 61, by "
            r"ValueError: see its own output; the last life ran \d+ iterations$",
        )
        self.assertIn(b"event=job-restarted restarts=1", done.stderr)
        self.assertIn(b"JOB FAILED and was restarted 1 time: rank 1", done.stderr)

    def test_a_rank_that_was_killed_is_told_though_the_others_end_well(self) -> None:
        done = self.run_job(*QUICK, *self.fake("--behave", "obey,crash", "--iterations", "100"))
        self.assertEqual(done.returncode, 0)
        report = self.report()
        self.assertEqual(report["verdict"], "failed")
        self.assertRegex(
            report["reason"],
            r"^in part: rank 1 \(pid \d+\) ended, at step 61, by SIGKILL: .*; the others went on "
            r"to step 100$",
        )

    def test_a_rank_that_leaves_early_makes_the_job_incomplete(self) -> None:
        done = self.run_job(*QUICK, *self.fake("--behave", "leave,obey", "--iterations", "120"))
        self.assertEqual(done.returncode, 0)
        report = self.report()
        self.assertEqual(report["verdict"], "incomplete")
        self.assertRegex(
            report["reason"],
            r"^rank 0 \(pid \d+\) left, at step 61, with exit code 0; "
            r"the others went on to step 120",
        )

    def test_programs_that_run_one_after_another_are_no_restart(self) -> None:
        separator, *words = self.fake("--iterations", "60")
        done = self.run_job(
            *QUICK, "--no-checkup", separator, "sh", "-c", '"$@" && "$@"', "sh", *words
        )
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(self.report()["verdict"], "healthy")
        self.assertNotIn(b"restarted", done.stderr)

    def test_a_worker_with_a_disabled_hook_is_not_accused_of_a_hang(self) -> None:
        fake = ("--world", "3", "--behave", "obey,hide,obey", "--iterations", "650")
        done = self.run_job(*QUICK, "--no-audit", *self.fake(*fake))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"event=hook-disabled rank=1", done.stderr)
        report = self.report()
        self.assertEqual((report["verdict"], report["findings"]), ("incomplete", []))
        self.assertIn("off in 1 of 3 workers", report["reason"])

    def test_a_stopped_worker_is_named_while_the_job_hangs(self) -> None:
        with self.job(*QUICK, *self.fake("--world", "1", "--iterations", "400")) as job:
            worker = self.await_workers(1, 40)[0]
            os.kill(worker["pid"], signal.SIGSTOP)
            deadline = time.monotonic() + 120
            while not (self.out / "report-1.json").exists() and time.monotonic() < deadline:
                time.sleep(0.2)
            os.kill(worker["pid"], signal.SIGCONT)
            report = self.report("report-1.json")
            self.assertEqual(report["trigger"]["kind"], "blocked")
            self.assertEqual(report["findings"][0]["id"], "PT-107")
            self.assertEqual(report["findings"][0]["ranks"], "0")
            self.assertEqual(job.wait(timeout=60), 0)

    def test_a_job_stays_slow_until_its_pace_is_accepted(self) -> None:
        def since() -> list[int]:
            return [worker["slow_since_step"] for worker in self.workers()]

        # All ranks are slow, for longer than the history of the baseline. A busy machine delays
        # ten iterations of 8 ms in a row by less than it takes to be slow.
        fake = ("--world", "1", "--slow-rank", "0", "--slow-at", "120", "--ms", "8")
        with self.job(*QUICK, *self.fake(*fake, "--iterations", "60000")):
            worker = self.await_workers(1, 900)[0]
            self.assertTrue(110 < worker["slow_since_step"] < 130, worker)
            self.assertRegex(self.ask("status").stdout, r"slow since step 1[12]\d: .*x of its best")
            answer = self.ask("accept")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertRegex(answer.stdout, r"^baseline [\d.]+ -> [\d.]+ ms accepted at step \d+$")
            self.await_workers(1, 1000)
            self.assertEqual(since(), [0])

    def test_the_pace_of_a_job_that_is_not_slow_cannot_be_accepted(self) -> None:
        with self.job(*QUICK, *self.fake("--world", "1", "--ms", "40", "--iterations", "60000")):
            self.await_workers(1, 15)
            answer = self.ask("accept")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("the job is not slow", answer.stderr)

    def test_a_short_job_is_inconclusive(self) -> None:
        self.run_job(*QUICK, *self.fake("--iterations", "20"))
        self.assertEqual(self.report()["verdict"], "inconclusive")

    def test_a_profile_can_be_asked_for(self) -> None:
        with self.job(*QUICK, *self.fake("--iterations", "3000")) as job:
            self.await_workers(2, 30)
            answer = self.ask("profile")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertIn("\nTrigger   request at step", answer.stdout)
            self.assertEqual(answer.stdout.splitlines()[-1], str(self.out / "report-1.html"))
            self.assertEqual(self.report()["trigger"]["kind"], "request")
            self.assertIsNone(job.poll())

    def test_without_a_job_there_is_nothing_to_ask(self) -> None:
        for words in (("profile",), ("status",)):
            answer = self.ask(*words)
            self.assertEqual(answer.returncode, 1)
            self.assertIn("no running job", answer.stderr)

    def test_status_lists_each_worker(self) -> None:
        with self.job(*QUICK, *self.fake("--world", "3", "--iterations", "3000")):
            workers = self.await_workers(3, 30)
            self.assertEqual([w["rank"] for w in workers], [0, 1, 2])
            self.assertTrue(all(15 < w["iteration_ms"] < 2000 for w in workers), workers)
            table = self.ask("status").stdout.splitlines()
            self.assertRegex(table[0], rf"^job fake_job, process .* results in {self.out}$")
            self.assertEqual(table[1].split()[:3], ["rank", "pid", "state"])
            self.assertEqual([line.split()[0] for line in table[2:5]], ["0", "1", "2"])
            self.assertIn("\noverhead: ", "\n".join(table))

    def test_what_costs_too_much_is_left_out_and_the_report_says_so(self) -> None:
        done = self.folder / "done"
        # Much more than a machine wavers, and only that is too much.
        fake = ("--iterations", "100", "--ms", "10", "--overhead-cost", "400", "--until", str(done))
        budgets = ("--budget-window", "100", "--budget-always", "100")
        with self.job(*QUICK, *budgets, *self.fake(*fake)) as job:
            self.await_workers(2, 10)
            deadline = time.monotonic() + 900  # others may keep the job from being steady
            overhead = {"left_out": [], "window": None}
            # Then what is left is measured.
            while "samples" not in overhead["left_out"] or overhead["window"] is None:
                self.assertLess(time.monotonic(), deadline, overhead)
                time.sleep(0.2)
                answer = self.ask("status", "--format", "json")
                self.assertEqual(answer.returncode, 0, answer.stderr)
                overhead = json.loads(answer.stdout)["overhead"]
            done.touch()
            self.assertEqual(job.wait(timeout=120), 0)
        overhead = self.report()["overhead"]
        # On a busy machine what is left may seem to slow the job, too.
        self.assertIn("samples", overhead["left_out"])
        self.assertLess(overhead["window"]["pct"], 100, "of what is left")

    def test_a_daemon_that_accepts_no_connection_is_no_missing_job(self) -> None:
        place = self.folder / "perftracker"
        place.mkdir(mode=0o700)
        with contextlib.ExitStack() as stack:
            daemon = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            daemon.bind(str(place / "1.sock"))
            daemon.listen(0)
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            waiting.connect(str(place / "1.sock"))
            answer = self.ask("status")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("does not accept connections", answer.stderr)

    def test_no_audit_measures_nothing(self) -> None:
        fake = self.fake("--iterations", "700", "--ms", "10", "--overhead-cost", "40")
        self.run_job(*QUICK, "--no-audit", *fake)
        overhead = self.report()["overhead"]
        costs = [overhead[name] for name in ("effect", "always", "window")]
        self.assertEqual(costs, [None, None, None])
        self.assertEqual(overhead["audits"]["count"], 0)
        daemon = next(one for one in overhead["threads"] if one["name"] == "daemon")
        self.assertGreater(daemon["cpu_s"], 0, "the kernel's account needs no audit")

    def test_a_hostile_client_of_the_socket_does_no_harm(self) -> None:
        with self.job(*QUICK, *self.fake("--iterations", "400")) as job:
            self.await_workers(2, 10)
            path = next((self.folder / "perftracker").iterdir())
            for data in (b"x", b"\xff" * 600, b"\0" * 600, b"y" * 60000):
                for _ in range(50):
                    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                        client.connect(str(path))
                        client.send(data)
            workers = self.await_workers(2, 20)
            self.assertEqual(len(workers), 2)
            self.assertEqual(job.wait(timeout=60), 0)

    def test_the_socket_is_private(self) -> None:
        with self.job(*QUICK, *self.fake("--iterations", "1000")):
            self.await_workers(2, 1)
            place = self.folder / "perftracker"
            self.assertEqual(place.stat().st_mode & 0o777, 0o700)
            self.assertEqual(next(place.iterdir()).stat().st_mode & 0o777, 0o600)

    def test_silence_of_a_stopped_job_is_no_alarm(self) -> None:
        with self.job(*QUICK, *self.fake("--iterations", "300")) as job:
            self.await_workers(2, 40)
            job.send_signal(signal.SIGTSTP)
            time.sleep(0.5)
            job.send_signal(signal.SIGCONT)
            self.assertEqual(job.wait(timeout=60), 0)
            self.assertEqual(self.report()["findings"], [])
