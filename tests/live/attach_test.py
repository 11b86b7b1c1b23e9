#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a process finds hostd of a fleet, on one machine: jobs without torch, hub and hostd over
loopback. tests/cluster/fleet_test.py has hosts, real jobs and trouble.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import live  # noqa: E402

SERVER = live.ROOT / ".venv" / "bin" / "nats-server"
LIMIT_S = 120
# Steps until a file is there; slow ones while another is. Says how the hook is.
LOOP = """
import json, os, sys, time
import perftracker
def read_shard():
    time.sleep(0.05)
def main(folder):
    longest = 0
    for step in range(int(sys.argv[2])):
        time.sleep(0.01)
        if os.path.exists(folder + "/slow"):
            read_shard()
        begin = time.monotonic()
        perftracker.step()
        longest = max(longest, time.monotonic() - begin)
        if os.path.exists(folder + "/end"):
            break
    print(json.dumps({**perftracker.status(), "longest": longest}))
main(sys.argv[1])
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class AttachTest(live.LiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.env["PYTHONPATH"] = str(live.ROOT / "python")
        self.env["PERFTRACKER_HOSTD"] = f"{self.folder}/run/hostd.sock"
        self.env.pop("PERFTRACKER_STORE")
        self.port = free_port()
        self.site = self.folder / "site.yaml"
        self.site.write_text(
            f"cluster: test\nhost: h1\nbus: {{url: 'nats://127.0.0.1:{self.port}'}}\n"
            f"hostd: {{socket: {self.folder}/run/hostd.sock, folder: {self.folder}/hostd}}\n"
            f"hub: {{folder: {self.folder}/jobs, run: {self.folder}/hub, store: none}}\n"
            "jobs: {linger_seconds: 2, min_gap_seconds: 0, audit: no}\n"
        )

    def begin(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, env=self.env)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def service(self, name: str, *words: str) -> None:
        self.begin(name, live.PROGRAM, name, "--config", str(self.site), *words)
        self.until(name, lambda: f"event={name}" in self.log(name))

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def until(self, what: str, true) -> None:  # noqa: ANN001
        deadline = time.monotonic() + LIMIT_S
        while not true():
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text() for path in self.folder.glob("*.log"))
                self.fail(f"{what} did not come; {logs}")
            time.sleep(0.1)

    def loop(self, steps: int, **env: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", LOOP, str(self.folder), str(steps)]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**self.env, **env},
        )  # fmt: skip
        self.addCleanup(self.end_loop, process)
        return process

    def end_loop(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()

    def said(self, process: subprocess.Popen[str]) -> dict:
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, err), (0, ""))
        return json.loads(out)

    def test_without_hostd_nothing_happens(self) -> None:
        said = self.said(self.loop(20, PERFTRACKER="1"))
        self.assertEqual(said["state"], "inert")

    def test_a_job_that_is_not_enabled_is_refused_and_goes_on(self) -> None:
        self.service("hostd")
        said = self.said(self.loop(100))
        self.assertEqual(said["state"], "disabled")
        self.assertIn("not enabled", said["reason"])
        self.assertEqual(self.said(self.loop(20, PERFTRACKER="0"))["state"], "inert")
        self.assertNotIn("event=job", self.log("hostd"))

    def test_hostd_that_does_not_answer_delays_no_step(self) -> None:
        (self.folder / "run").mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as deaf:
            deaf.bind(self.env["PERFTRACKER_HOSTD"])
            deaf.listen(1)
            said = self.said(self.loop(100, PERFTRACKER="1"))
        self.assertEqual(said["state"], "fresh")
        self.assertLess(said["longest"], 0.5)

    def test_hostd_that_ends_or_talks_nonsense_disables_the_hook(self) -> None:
        (self.folder / "run").mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as odd:
            odd.bind(self.env["PERFTRACKER_HOSTD"])
            odd.listen(4)
            for answer in (b"", b"\xff\0\n=\n=", b"perftracker-attached 1\ndir=/x\n"):
                loop = self.loop(300, PERFTRACKER="1")
                client, _ = odd.accept()
                self.assertTrue(client.recv(9000).startswith(b"perftracker-attach 1\n"))
                client.sendall(answer)
                client.close()
                self.assertEqual(self.said(loop)["state"], "disabled")

    def test_a_job_is_watched_by_this_host_alone_without_a_broker(self) -> None:
        self.service("hostd")
        loop = self.loop(100000, PERFTRACKER="1", PERFTRACKER_JOB="lonely")
        out = self.folder / "hostd" / f"u{os.geteuid()}" / "lonely"
        self.until("the watch", lambda: "state=watching" in self.read(out / "daemon.log"))
        status = json.loads(self.ask("status", "--job", "lonely", "--format", "json").stdout)
        self.assertEqual([worker["pid"] for worker in status["workers"]], [loop.pid])
        (self.folder / "end").touch()
        self.assertEqual(self.said(loop)["state"], "active")
        self.until("the end", lambda: "event=job-ended" in self.log("hostd"))
        self.assertTrue((out / "report.json").exists())

    def test_a_user_has_so_many_jobs_and_further_ones_are_told(self) -> None:
        self.service("hostd", "--set", "hostd.max_jobs_per_user=1")
        self.loop(100000, PERFTRACKER="1", PERFTRACKER_JOB="one")
        self.until("the job", lambda: "event=job-started" in self.log("hostd"))
        said = self.said(self.loop(200, PERFTRACKER="1", PERFTRACKER_JOB="two"))
        self.assertEqual(said["state"], "disabled")
        self.assertIn("hostd.max_jobs_per_user", said["reason"])

    def test_after_a_daemon_was_killed_the_next_worker_has_another_one(self) -> None:
        self.service("hostd")
        first = self.loop(100000, PERFTRACKER="1", PERFTRACKER_JOB="job")
        self.until("the job", lambda: "event=job-started" in self.log("hostd"))
        (line,) = [line for line in self.log("hostd").splitlines() if "event=job-started" in line]
        os.kill(int(line.partition(" pid=")[2].split()[0]), 9)
        self.until("its end", lambda: "event=job-ended job=test" in self.log("hostd"))
        self.assertIn("status=137", self.log("hostd"))
        second = self.loop(100000, PERFTRACKER="1", PERFTRACKER_JOB="job")
        self.until("another", lambda: self.log("hostd").count("event=job-started") == 2)
        (self.folder / "end").touch()
        for loop in (first, second):
            self.assertEqual(loop.wait(LIMIT_S), 0)

    def read(self, path: pathlib.Path) -> str:
        return path.read_text() if path.exists() else ""

    def test_the_hub_reports_the_job_and_lists_it(self) -> None:
        if not os.access(SERVER, os.X_OK):
            self.skipTest("nats-server is not installed")
        self.begin("broker", str(SERVER), "-a", "127.0.0.1", "-p", str(self.port))
        self.service("hub")
        self.service("hostd")
        loop = self.loop(100000, PERFTRACKER="1", PERFTRACKER_JOB="slowly")
        out = self.folder / "jobs" / f"u{os.geteuid()}" / "slowly"
        self.until("the watch", lambda: "state=watching" in self.read(out / "daemon.log"))
        words = ("status", "--hub", "--config", str(self.site))
        listed = json.loads(self.ask(*words, "--format", "json").stdout)["jobs"]
        self.assertEqual([(job["name"], job["hosts"], job["workers"]) for job in listed],
                         [("slowly", 1, 1)])  # fmt: skip
        self.assertIn("slowly", self.ask(*words).stdout)
        time.sleep(3)
        (self.folder / "slow").touch()
        self.until("a report", lambda: (out / "report.json").exists())
        (self.folder / "end").touch()
        self.assertEqual(self.said(loop)["state"], "active")
        self.until("the end", lambda: "event=job-ended" in self.log("hub"))
        self.assertIn("read_shard", (out / "report.json").read_text())

    def test_a_broker_that_is_too_old_is_named(self) -> None:
        with socket.socket() as old:
            old.bind(("127.0.0.1", self.port))
            old.listen(8)
            self.service("hostd")
            deadline = time.monotonic() + LIMIT_S
            while "event=bus-not-reached" not in self.log("hostd"):
                self.assertLess(time.monotonic(), deadline)
                old.settimeout(5)
                try:
                    client, _ = old.accept()
                except TimeoutError:
                    continue
                info = {"server_id": "x", "version": "2.9.10", "max_payload": 1048576}
                client.sendall(b"INFO " + json.dumps(info).encode() + b"\r\n")
                client.close()
        self.assertRegex(self.log("hostd"), r"event=bus-not-reached why=.*2\.9\.10")


if __name__ == "__main__":
    unittest.main()
