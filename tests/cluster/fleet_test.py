#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of a fleet: real torchrun, gloo and nats-server, hostd on each host, one hub.

Skipped where network namespaces cannot be made.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from fleet import LIMIT_S, WORKERS, FleetTest, live  # noqa: E402

PORT = 29500


class Reports(FleetTest):
    def setUp(self) -> None:
        super().setUp()
        self.start_fleet()

    def assert_names(self, port: int, rank: int) -> None:
        report = self.job_report(port)
        finding = report["findings"][0]
        self.assertEqual(finding["ranks"], str(rank), self.job_log(port))
        self.assertIn("query_inventory", finding["function"]["name"])
        self.assertEqual(finding["hosts"], self.net.name(WORKERS[rank]))
        self.assertEqual(report["coverage"]["workers_analyzed"], len(WORKERS))

    def test_a_slow_rank_of_one_of_two_jobs_is_named_and_both_are_kept(self) -> None:
        slow, well = self.start_job("slow", PORT), self.start_job("well", PORT + 50)
        self.await_window(PORT)
        self.await_window(PORT + 50)
        self.look_at_page(PORT + 50)
        self.fault("slow", "sleep.1")
        self.until("a finding", lambda: self.job_report(PORT).get("verdict") == "abnormal")
        self.end_jobs("well", well)
        self.end_jobs("slow", slow)
        self.await_line(0, "event=job-ended", 2)
        self.assert_names(PORT, 1)
        others = str(self.job_report(PORT + 50).get("findings"))
        self.assertNotIn("query_inventory", others)
        for host in WORKERS:
            self.assertEqual(self.log(host).count("event=job-started"), 2)
            self.await_line(host, "event=job-ended", 2)
        store = f"{self.folder}/fleet.db"
        kept = json.loads(self.ask("jobs", "--store", store, "--format", "json").stdout)["jobs"]
        self.assertEqual({row["name"] for row in kept},
                         {self.job_out(port).name for port in (PORT, PORT + 50)})  # fmt: skip

    def ask_page(self, path: str, body: str | None = None) -> tuple[int, str]:
        """By the hub's Unix socket, which is in no host's network."""
        with contextlib.closing(http.client.HTTPConnection("localhost")) as connection:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(LIMIT_S)
            connection.sock.connect(f"{self.folder}/ui")
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request("GET" if body is None else "POST", path, body, kind)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def look_at_page(self, port: int) -> None:
        """The jobs of the store, how one is now, and a profile of it by its leader."""
        self.await_line(0, "event=page url=unix:")
        name = self.job_out(port).name
        rows = json.loads(self.ask_page("/api/v1/jobs")[1])["jobs"]
        key = next(row["job"] for row in rows if row["name"] == name)
        live = json.loads(self.ask_page(f"/api/v1/jobs/{key}/live")[1])
        self.assertEqual((live["job"], live["coverage"]["watched"]), (key, len(WORKERS)))
        self.assertIn('id="reason"', self.ask_page(f"/jobs/{key}")[1])
        status, said = self.ask_page(f"/api/v1/jobs/{key}/profile", "reason=by+the+page")
        self.assertEqual(status, 202, said)

        def is_done() -> bool:
            now = json.loads(self.ask_page(f"/api/v1/jobs/{key}/live")[1])
            return now["requests"][0]["state"] == "done"

        self.until("the outcome", is_done)
        self.assertIn(': by the page"', self.job_log(port))

    def test_a_hub_that_was_killed_goes_on_with_the_job(self) -> None:
        job = self.start_job("job", PORT)
        self.await_watch(PORT)
        begin = len(self.job_log(PORT))
        os.kill(self.inner(0), 9)
        self.until("the leader's end", lambda: "event=supervisor-ended" in self.job_log(PORT))
        self.start_service(0)
        self.await_line(0, "event=job-started", 2)
        self.await_window(PORT, begin)
        self.fault("job", "sleep.1")
        self.until("a finding", lambda: self.job_report(PORT).get("verdict") == "abnormal")
        self.end_jobs("job", job)
        self.await_line(0, "event=job-ended")
        self.assert_names(PORT, 1)

    def test_training_goes_on_when_hostd_is_killed(self) -> None:
        job = self.start_job("job", PORT)
        self.await_watch(PORT)
        for host in WORKERS:
            os.kill(self.inner(host), 9)
        self.until("the loss", lambda: self.job_log(PORT).count("event=host-silent") == 2)
        self.end_jobs("job", job)

    def test_a_hostd_that_is_started_again_finds_its_jobs(self) -> None:
        job = self.start_job("job", PORT)
        self.await_window(PORT)
        host = WORKERS[1]
        os.kill(self.inner(host), 9)
        self.until("the loss", lambda: "event=host-silent" in self.job_log(PORT))
        self.start_service(host)
        self.await_line(host, "event=job-found")
        self.until("it", lambda: "event=host-back" in self.job_log(PORT))
        self.fault("job", "sleep.1")
        self.until("a finding", lambda: self.job_report(PORT).get("verdict") == "abnormal")
        self.end_jobs("job", job)
        self.await_line(0, "event=job-ended")
        self.assert_names(PORT, 1)

    def test_sigterm_ends_hostd_and_its_daemons_and_no_training(self) -> None:
        job = self.start_job("job", PORT)
        self.await_watch(PORT)
        pids = [live.children(self.inner(host)) for host in WORKERS]
        self.assertEqual([len(of_host) for of_host in pids], [1] * len(WORKERS))
        for host in WORKERS:
            os.kill(self.inner(host), 15)
        for host in WORKERS:
            self.assertEqual(self.services[host].wait(60), 0, self.log(host))
            self.assertIn("event=hostd-ended", self.log(host))
        for (pid,) in pids:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())
        self.end_jobs("job", job)
        self.await_line(0, "event=job-ended")
        self.assertNotEqual(self.job_report(PORT)["verdict"], "healthy")

    def test_a_job_that_is_not_enabled_starts_nothing(self) -> None:
        job = self.start_job("job", PORT, PERFTRACKER="")
        log = self.folder / "job.1"
        self.end_jobs("job", job)
        self.assertEqual(log.read_text(), self.quiet(log.read_text()))
        for host in WORKERS:
            self.assertEqual(live.children(self.inner(host)), [])
            self.assertNotIn("event=job", self.log(host))
        self.assertFalse((self.folder / "jobs" / "u0").exists())

    def quiet(self, text: str) -> str:
        """Without lines of PerfTracker."""
        return "".join(line for line in text.splitlines(True) if "perftracker" not in line.lower())

    def test_daemons_run_as_the_users_of_their_jobs(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("needs root")
        job = self.start_user_jobs()
        for host in WORKERS:
            self.await_line(host, "event=job-started", 2)
            users = sorted(
                pathlib.Path(f"/proc/{pid}").stat().st_uid
                for pid in live.children(self.inner(host))
            )
            self.assertEqual(users, [1, 2])
            groups = pathlib.Path(f"/proc/{live.children(self.inner(host))[0]}/status").read_text()
            self.assertNotIn("Groups:\t0", groups)
        for user in (1, 2):
            reports = self.folder / "jobs" / f"u{user}"
            self.until("its folder", reports.exists)
            stat = (self.folder / "hostd1" / f"u{user}").stat()
            self.assertEqual((stat.st_uid, stat.st_mode & 0o777), (user, 0o700))
        for processes in job:
            for process in processes:
                self.assertEqual(process.wait(240), 0)

    def start_user_jobs(self) -> list[list[subprocess.Popen[bytes]]]:
        """Two users with the same job id: each has a loop that marks its own iterations."""
        loop = (
            "import time, torch, perftracker\n"
            "for _ in range(300):\n"
            "    time.sleep(0.02)\n"
            "    perftracker.step()\n"
        )
        started = []
        for user in (1, 2):
            processes = []
            for rank, host in enumerate(WORKERS):
                words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                         self.python, "-c", loop]  # fmt: skip
                env = {"PERFTRACKER": "1", "PERFTRACKER_JOB": "same", "RANK": str(rank),
                       "WORLD_SIZE": str(len(WORKERS)), "HOME": "/",
                       "PERFTRACKER_HOSTD": f"{self.folder}/run{host}/hostd.sock"}  # fmt: skip
                processes.append(self.begin(host, words, f"user{user}.{host}", **env))
            started.append(processes)
        return started


class Trouble(FleetTest):
    def test_a_broker_that_is_not_there_or_refuses_is_named(self) -> None:
        self.start_service(0)
        self.await_line(0, "event=bus-not-reached")
        self.assertIn("refused", self.log(0))
        self.start_broker()
        self.await_line(0, "event=bus-connected")
        seed = self.keys / "keys" / "gpu-1.seed"
        self.start_service(1, "--set", f"bus.nkey_seed_file={self.keys}/keys/gpu-2.seed")
        self.await_line(1, "event=bus-not-reached")
        self.assertRegex(self.log(1).lower(), "authorization")
        self.assertTrue(seed.exists())

    def test_a_second_hub_is_refused(self) -> None:
        self.start_fleet()
        second = self.begin(
            0, [live.PROGRAM, "hub", "--config", self.site(0), "--set",
                f"hub.run={self.folder}/hubrun2"], "second",
        )  # fmt: skip
        self.assertEqual(second.wait(60), 2)
        said = (self.folder / "second").read_text()
        self.assertIn("event=hub-refused", said)
        self.assertIn("host gpu-0", said)
        self.assertIsNone(self.services[0].poll())

    def test_a_job_id_that_is_used_twice_is_told(self) -> None:
        self.start_fleet()
        first = self.start_job("first", PORT, PERFTRACKER_JOB="train")
        self.await_line(0, "event=job-started")
        second = self.start_job("second", PORT + 50, PERFTRACKER_JOB="train")
        for host in WORKERS:
            self.await_line(host, "event=job-twice")
            self.assertEqual(self.log(host).count("event=job-started"), 1)
        self.end_jobs("first", first)
        self.end_jobs("second", second)


class Starts(live.LiveTest):
    """What the services say when they cannot start; without a network."""

    def site(self, text: str) -> str:
        path = self.folder / "site.yaml"
        path.write_text(text)
        return str(path)

    def said(self, command: str, *words: str) -> tuple[int, str]:
        done = self.ask(command, *words)
        return done.returncode, done.stderr

    def test_the_folder_of_the_socket_has_to_be_there(self) -> None:
        site = self.site(
            "host: h1\nbus: {url: 'nats://127.0.0.1:1'}\n"
            f"hostd: {{socket: {self.folder}/a/b/hostd.sock, folder: {self.folder}/jobs}}\n"
        )
        status, said = self.said("hostd", "--config", site)
        self.assertEqual(status, 1)
        self.assertIn(f"{self.folder}/a/b: expected a folder for hostd.socket", said)

    def test_each_problem_of_the_configuration_has_a_line(self) -> None:
        site = self.site("clustr: a\nbus: {url: 'nats://far:4222'}\nhost: h1\n")
        for command in ("hostd", "hub"):
            status, said = self.said(command, "--config", site, "--check-config")
            self.assertEqual(status, 2)
            self.assertIn(f"{site}:1:1: expected a key of the configuration, found 'clustr': did "
                          "you mean 'cluster'?", said)  # fmt: skip

    def test_the_configuration_in_force_is_printed(self) -> None:
        site = self.site("host: h1\nbus: {url: 'tls://far:4222'}\n")
        done = self.ask("hub", "--config", site, "--check-config", "--set", "hub.store=none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^bus\.url +tls://far:4222 +.*/site\.yaml:2$")
        self.assertRegex(done.stdout, r"(?m)^hub\.store +none +--set$")

    def test_the_example_is_right(self) -> None:
        example = str(live.ROOT / "deploy" / "fleet" / "site.yaml")
        done = self.ask("hostd", "--config", example, "--check-config", "--set", "host=gpu-07")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_missing_password_file_is_named(self) -> None:
        site = self.site(
            "host: h1\nbus: {url: 'tls://far:4222', user: a, password_file: /nowhere/x}\n"
        )
        status, said = self.said("hub", "--config", site)
        self.assertEqual(status, 1)
        self.assertIn("/nowhere/x: cannot read the password", said)


if __name__ == "__main__":
    unittest.main()
