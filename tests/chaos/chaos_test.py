#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trouble at random moments of a profile over three hosts, with real daemons and a real broker.

The hosts are network namespaces, or daemons over loopback where those cannot be made. Their ranks
are scripted (tests/live/fake_job.py), so that only PerfTracker meets the trouble. Each test
makes PERFTRACKER_CHAOS_POINTS points of it, 2 if that is not set. After each, training is unharmed
and the report has every surviving rank exactly once; no rank carries out an order twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "cluster"), str(ROOT / "live")]

import live  # noqa: E402
import network  # noqa: E402

POINTS = int(os.environ.get("PERFTRACKER_CHAOS_POINTS", "2"))
SERVER = live.ROOT / ".venv" / "bin" / "nats-server"
HOSTS, RANKS = 3, 2  # ranks of each host
WORLD = HOSTS * RANKS
LIMIT_S = 240  # a window waits for two minutes for a rank whose daemon is gone
LONGEST_S = 3.0  # of a profile, about
CLOCKS_S = 600  # by so much clocks of hosts are off


class Loopback:
    """Three daemons on this host."""

    def __enter__(self) -> Loopback:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def address(self, _: int) -> str:
        return "127.0.0.1"

    def command(self, _: int, words: list[str]) -> list[str]:
        return words


class ChaosTest(live.LiveTest):
    """A job over three hosts, of which host 0 leads; each point of trouble has a folder."""

    def setUp(self) -> None:
        super().setUp()
        if not os.access(SERVER, os.X_OK):
            self.skipTest("nats-server is not installed")
        seed = int(os.environ.get("PERFTRACKER_CHAOS_SEED", time.time_ns()))
        self.random = random.Random(seed)
        self.seed = f"PERFTRACKER_CHAOS_SEED={seed}"
        self.env |= {
            "PERFTRACKER_NATS_SERVER": str(SERVER),
            "PERFTRACKER_SECRET": "one for all",
            "PERFTRACKER_STORE": "none",
        }
        self.point = 0
        self.clocks: dict[int, dict[str, str]] = {}  # by host: the environment of its processes
        self.real_clock: list[str] = []  # before a job that cannot run with another clock

    # --- the job ---

    def host_env(self, host: int) -> dict[str, str]:
        runtime = self.place / f"r{host}"
        runtime.mkdir(mode=0o700, exist_ok=True)
        return {
            **self.env,
            **self.clocks.get(host, {}),
            "XDG_RUNTIME_DIR": str(runtime),
            "WORLD_SIZE": str(HOSTS),
            "RANK": str(host),
            "MASTER_ADDR": self.net.address(0),
            "MASTER_PORT": "29571",
        }

    def start(self, host: int) -> subprocess.Popen[bytes]:
        words = [
            live.PROGRAM, "run", "--out", str(self.place / f"out{host}"), "--no-audit",
            "--no-checkup", "--min-gap", "0", "--learn", "3", "--steps", "10", "--",
            *self.real_clock, sys.executable, live.FAKE_JOB, "--world", str(WORLD),
            "--first", str(RANKS * host), "--ranks", str(RANKS), "--until", str(self.place / "end"),
            "--record", str(self.place / "orders"), "--pids", str(self.place / f"pids{host}"),
        ]  # fmt: skip
        with open(self.place / f"log{host}", "wb") as log:
            return subprocess.Popen(
                self.net.command(host, words), stdout=log, stderr=log,
                env=self.host_env(host), start_new_session=True,
            )  # fmt: skip

    @contextlib.contextmanager
    def hosts(self) -> Iterator[None]:
        net = Loopback() if network.available() else network.Network(HOSTS)
        self.point += 1
        self.place = self.folder / f"p{self.point}"
        self.place.mkdir()
        with net as self.net:
            self.jobs = [self.start(host) for host in range(HOSTS)]
            try:
                self.until("all hosts", lambda: self.log(0).count("event=host-joined") == 2)
                self.until("all ranks", lambda: self.report_of(self.profile())[0] == WORLD)
                yield
            finally:
                for job in self.jobs:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(job.pid, signal.SIGCONT)
                        os.killpg(job.pid, signal.SIGKILL)
                    job.wait()

    def log(self, host: int) -> str:
        return (self.place / f"log{host}").read_text(errors="replace")

    def logs(self) -> str:
        return "\n".join([self.seed, *(f"host {i}:\n{self.log(i)}" for i in range(HOSTS))])

    def until(self, what: str, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if true():
                return
            time.sleep(0.1)
        self.fail(f"{what} did not come; {self.logs()}")

    def end(self) -> None:
        """All hosts end well: none was harmed."""
        (self.place / "end").touch()
        for host, job in enumerate(self.jobs):
            self.assertEqual(job.wait(LIMIT_S), 0, self.logs())
            self.assertIn("job done", self.log(host))
        lines = (self.place / "orders").read_text().splitlines()
        orders = [tuple(json.loads(line)[i] for i in (0, 2)) for line in lines]
        self.assertEqual(len(orders), len(set(orders)), "an order was carried out twice")

    # --- its profiles ---

    def profile(self) -> subprocess.Popen[str]:
        words = [live.PROGRAM, "profile", "--format", "json", "--timeout", "200"]
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.host_env(0)
        )

    def report_of(self, asked: subprocess.Popen[str]) -> tuple[int, dict]:
        """How many ranks were analyzed, and the report; (0, {}) where there is none."""
        out, _ = asked.communicate(timeout=LIMIT_S)
        if asked.returncode != 0:
            return 0, {}
        report = json.loads(out)
        return report["coverage"]["workers_analyzed"], report

    def assert_each_once(self, report: dict, ranks: list[int]) -> None:
        """The report has these ranks once, and is not healthy without the others."""
        coverage = report["coverage"]
        folders = (self.place / "out0" / "fingerprints").glob("[0-9]*")
        # One of a hub before this one has its epoch, too, in the name.
        number = max((p for p in folders if p.name.isdigit()), key=lambda p: int(p.name))
        files = sorted(path.name for path in number.glob("rank*.ptfp"))
        self.assertEqual(coverage["workers_analyzed"], len(ranks), self.logs())
        self.assertEqual(files, [f"rank{rank}.ptfp" for rank in ranks], self.logs())
        if len(ranks) < WORLD:
            self.assertNotEqual(report["verdict"], "healthy", self.logs())

    def wait_somewhere(self) -> None:
        time.sleep(self.random.uniform(0, LONGEST_S))

    def daemon(self, host: int) -> int:
        for pid in live.children(self.jobs[host].pid):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(live.PROGRAM):
                    return pid
        raise AssertionError(f"no daemon on host {host}: {self.logs()}")

    def broker(self) -> int | None:
        for pid in live.children(self.daemon(0)):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(SERVER):
                    return pid
        return None


class Survives(ChaosTest):
    def test_a_broker_that_is_killed(self) -> None:
        killed: set[int | None] = {None}
        with self.hosts():
            for _ in range(POINTS):
                self.until("a broker", lambda: self.broker() not in killed)
                asked = self.profile()
                self.wait_somewhere()
                broker = self.broker()
                killed.add(broker)
                os.kill(broker or self.fail("no broker"), signal.SIGKILL)
                cnt, report = self.report_of(asked)
                if cnt < WORLD:  # the profile was given up: the next one is whole
                    self.until("all ranks", lambda: self.report_of(self.profile())[0] == WORLD)
                else:
                    self.assert_each_once(report, list(range(WORLD)))
            self.end()

    def test_a_rank_that_is_killed(self) -> None:
        for _ in range(POINTS):
            with self.hosts():
                host = self.random.randrange(HOSTS)
                pids = (self.place / f"pids{host}").read_text().split()
                which = self.random.randrange(RANKS)
                asked = self.profile()
                self.wait_somewhere()
                os.kill(int(pids[which]), signal.SIGKILL)
                cnt, _ = self.report_of(asked)
                self.assertIn(cnt, (0, WORLD - 1, WORLD), self.logs())
                _, report = self.report_of(self.profile())
                # Which of the host's ranks had that process is not said: it is missing.
                missing = [rank for rank in range(WORLD) if str(rank) in self.missing(report)]
                self.assertEqual(len(missing), 1, report)
                self.assertEqual(missing[0] // RANKS, host)
                alive = [rank for rank in range(WORLD) if rank not in missing]
                self.assert_each_once(report, alive)
                self.end()

    def missing(self, report: dict) -> str:
        return report["coverage"]["ranks_missing"]

    def test_a_daemon_of_another_host_that_is_killed(self) -> None:
        for _ in range(POINTS):
            with self.hosts():
                host = self.random.randrange(1, HOSTS)
                asked = self.profile()
                self.wait_somewhere()
                os.kill(self.daemon(host), signal.SIGKILL)
                _, report = self.report_of(asked)
                alive = [rank for rank in range(WORLD) if rank // RANKS != host]
                self.until("another daemon", lambda host=host: self.back(host))
                if self.kept(host):  # what lay in the spool is in the report of its window
                    self.assertEqual(report["coverage"]["workers_analyzed"], WORLD, self.logs())
                _, report = self.report_of(self.profile())
                self.assert_each_once(report, alive)
                self.end()
                self.assert_nothing_kept()

    def back(self, host: int) -> bool:
        """The daemon of a host was started again, and its leader knows it."""
        joined = self.log(0).count("event=host-joined")
        new = 1 if host > 0 else HOSTS - 1  # that the leader has met since
        return "event=daemon-restarted" in self.log(host) and joined == HOSTS - 1 + new

    def kept(self, host: int) -> bool:
        """The daemon that was started again found results of a window."""
        return "event=spool-found" in self.log(host)

    def assert_nothing_kept(self) -> None:
        self.assertEqual(list(self.place.rglob("spool")), [], self.logs())

    def reports(self) -> list[dict]:
        paths = sorted((self.place / "out0").glob("report-*.json"))
        return [json.loads(path.read_text()) for path in paths]

    def test_a_hub_that_is_killed(self) -> None:
        for _ in range(POINTS):
            with self.hosts():
                asked = self.profile()
                self.wait_somewhere()
                before = len(self.reports())
                os.kill(self.daemon(0), signal.SIGKILL)
                asked.communicate(timeout=LIMIT_S)
                self.until("another hub", lambda: self.back(0))
                others = list(range(RANKS, WORLD))
                cnt = len(others)
                self.until("the others", lambda cnt=cnt: self.report_of(self.profile())[0] == cnt)
                self.assert_each_once(self.reports()[-1], others)
                for report in self.reports()[before:]:  # a window of the hub before, and this one
                    self.assertNotEqual(report["verdict"], "healthy")
                self.end()
                self.assert_nothing_kept()
                last = json.loads((self.place / "out0" / "report.json").read_text())
                self.assertIn(last["verdict"], ("incomplete", "slow"), self.logs())

    def test_a_hub_that_stands_still_while_all_send(self) -> None:
        with self.hosts():
            for _ in range(POINTS):
                asked = self.profile()
                self.wait_somewhere()
                hub = self.daemon(0)
                os.kill(hub, signal.SIGSTOP)
                time.sleep(self.random.uniform(1, 60 if POINTS > 20 else 8))
                os.kill(hub, signal.SIGCONT)
                asked.communicate(timeout=LIMIT_S)
                self.until("all ranks", lambda: self.report_of(self.profile())[0] == WORLD)
            self.end()

    def test_hosts_whose_clocks_are_off(self) -> None:
        """PerfTracker on one host is ten minutes ahead, that of another one as much behind."""
        library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
        if library is None:
            self.skipTest("libfaketime is not installed")
        # Python's sleep() fails with it: the ranks keep the clock of this machine.
        self.real_clock = ["env", "-u", "LD_PRELOAD"]
        for _ in range(POINTS):
            offsets = [-CLOCKS_S, 0, CLOCKS_S]
            self.random.shuffle(offsets)
            for host, offset_s in enumerate(offsets):
                self.clocks[host] = {
                    "LD_PRELOAD": str(library), "FAKETIME": f"{offset_s:+d}",
                    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                }  # fmt: skip
            with self.hosts():
                clocks = [int(self.clock(host)) for host in range(HOSTS)]
                self.assertGreater(max(clocks) - min(clocks), CLOCKS_S, "clocks are alike")
                self.wait_somewhere()
                cnt, report = self.report_of(self.profile())
                self.assertEqual(cnt, WORLD, self.logs())
                self.assert_each_once(report, list(range(WORLD)))
                for host in range(HOSTS):
                    self.assertNotIn("event=order-refused", self.log(host))
                self.end()

    def clock(self, host: int) -> str:
        """What the clock of a host shows, in seconds."""
        words = self.net.command(host, ["date", "+%s"])
        return subprocess.run(
            words, env=self.host_env(host), check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def test_a_host_that_is_cut_off(self) -> None:
        why = network.available()
        if why:
            self.skipTest(f"hosts cannot be made here: {why}")
        with self.hosts():
            for _ in range(POINTS):
                host = self.random.randrange(1, HOSTS)
                asked = self.profile()
                self.wait_somewhere()
                self.net.cut(host, False)
                time.sleep(self.random.uniform(1, 60 if POINTS > 20 else 8))
                self.net.cut(host, True)
                asked.communicate(timeout=LIMIT_S)
                self.until("all ranks", lambda: self.report_of(self.profile())[0] == WORLD)
            self.end()


if __name__ == "__main__":
    unittest.main()
