#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One job over hosts of its own network: real torchrun, gloo and nats-server.

`perftracker run` is started on each host as users start it, and finds the others by what torchrun
was told. Skipped where network namespaces cannot be made.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import HOSTS, SERVER, ClusterTest, live  # noqa: E402


class HostsTest(ClusterTest):
    def test_a_slow_rank_of_another_host_is_named_in_the_one_report(self) -> None:
        self.start()
        self.await_steps()
        asked = self.ask("status", "--job", str(self.folder / "out0"), "--format", "json")
        workers = json.loads(asked.stdout)["workers"]
        self.assertEqual(
            [(w["rank"], w["host"]) for w in workers], [(i, f"gpu-{i}") for i in range(HOSTS)]
        )
        self.begin_fault("sleep.2")
        self.until("a finding", lambda: self.report().get("verdict") == "abnormal")
        drawn = self.ask("timeline", "-o", str(self.folder / "all.json"), str(self.folder / "out0"))
        self.assertEqual(drawn.returncode, 0, drawn.stderr)
        names = {
            event["args"]["name"]
            for event in json.loads((self.folder / "all.json").read_text())["traceEvents"]
            if event["name"] == "process_name"
        }
        for rank in range(HOSTS):
            self.assertTrue(any(f"rank {rank}" in name for name in names), names)
        self.end_job()
        report = self.report()
        self.assertEqual(report["coverage"]["workers_analyzed"], HOSTS)
        finding = report["findings"][0]
        self.assertEqual(finding["ranks"], "2", self.log(0))
        self.assertIn("query_inventory", finding["function"]["name"])
        self.assertEqual(finding["hosts"], "gpu-2")
        self.assertEqual(len(report["findings"]), 1, report["findings"])
        self.assertNotIn("event=insecure", self.log(0))
        for host in (1, 2):
            self.assertFalse((self.folder / f"out{host}/member-{host}/report.json").exists())
            self.assertIn("event=joined hub=gpu-0", self.log(host))
            self.assertIn(
                f"event=report-elsewhere reports=gpu-0:{self.folder}/out0", self.log(host)
            )
        self.assertFalse(any(self.folder.rglob("nats-server.conf")), "it has passwords")
        # The hosts share one store, as in a home folder on NFS: the job is in it once.
        (job,) = json.loads(self.ask("jobs", "--format", "json").stdout)["jobs"]
        self.assertEqual(
            (job["workers"], job["state"], job["verdict"]), (HOSTS, "ended", "abnormal")
        )
        fingerprints = self.folder / "again"
        self.ask("report", job["job"], "--fingerprints", str(fingerprints))
        self.assertEqual(len(list(fingerprints.iterdir())), HOSTS)

    def brokers(self) -> list[int]:
        """Those whose configuration is in this test's folder."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes()
            except OSError:
                continue  # it has ended
            if words.startswith(bytes(SERVER)) and bytes(self.folder) in words:
                found.append(int(path.parent.name))
        return found

    def test_a_broker_that_is_killed_is_started_again_and_nothing_is_lost(self) -> None:
        self.start()
        self.await_steps()
        (broker,) = self.brokers()
        os.kill(broker, 9)
        self.until("another broker", lambda: "event=broker-restarted" in self.log(0))
        self.assertNotEqual(self.brokers(), [broker])
        self.begin_fault("sleep.1")
        self.until("a finding", lambda: self.report().get("verdict") == "abnormal")
        self.end_job()
        self.assertEqual(self.report()["findings"][0]["ranks"], "1")
        self.assertEqual(self.report()["coverage"]["workers_analyzed"], HOSTS)
        self.assertEqual(self.brokers(), [])

    def daemon(self, host: int) -> int:
        for pid in live.children(self.jobs[host].pid):
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(live.PROGRAM):
                return pid
        raise AssertionError(f"no daemon on host {host}")

    def test_a_hub_that_is_killed_is_started_again_and_nobody_is_healthy(self) -> None:
        self.start()
        self.await_steps()
        os.kill(self.daemon(0), 9)
        joined = 2 * (HOSTS - 1)  # each of the others, again
        self.until("another hub", lambda: self.log(0).count("event=host-joined") == joined)
        self.assertIn("event=daemon-restarted", self.log(0))
        self.end_job()  # all exit with 0
        # On a busy machine the job is slow.
        self.assertIn(self.report()["verdict"], ("incomplete", "slow"))
        self.assertEqual(self.brokers(), [])
        self.assertEqual(list(self.folder.rglob("spool")), [])

    def test_a_rank_of_another_host_that_hangs_is_named(self) -> None:
        self.start("--blocked", "10")
        self.await_steps()
        self.begin_fault("hang.1")
        self.until("a finding", lambda: self.report().get("verdict") == "abnormal")
        finding = self.report()["findings"][0]
        self.assertEqual(finding["ranks"], "1")
        self.assertIn("wait_for_quota", finding["function"]["name"])

    def test_a_rank_of_another_host_that_fails_is_named(self) -> None:
        self.start()
        self.await_steps()
        self.begin_fault("crash.2")
        self.until("the end", lambda: all(job.poll() is not None for job in self.jobs))
        report = self.report()
        self.assertEqual(report["verdict"], "failed")
        self.assertRegex(report["reason"], r"rank 2 .* ValueError")

    def test_a_host_without_the_secret_is_watched_alone_and_the_job_is_not_healthy(self) -> None:
        self.start(env={1: {"PERFTRACKER_SECRET": "another"}})
        self.until("the line", lambda: "event=hub-not-reached" in self.log(1))
        self.assertIn("certificate", self.log(1))
        self.end_job()
        self.assertIn(self.report()["verdict"], ("inconclusive", "incomplete"))
        self.assertIn("2 of 3", self.report()["reason"] + str(self.report()["coverage"]))
        self.assertNotIn("event=joined", self.log(1))


if __name__ == "__main__":
    unittest.main()
