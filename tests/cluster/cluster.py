# SPDX-License-Identifier: Apache-2.0
"""A job over hosts of its own network, with real torch, gloo and nats-server: its tests' base."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import live  # noqa: E402
import network  # noqa: E402

TRAIN = str(pathlib.Path(__file__).resolve().parent / "train.py")
SERVER = live.ROOT / ".venv" / "bin" / "nats-server"
HOSTS = 3
LIMIT_S = 240


class ClusterTest(live.TorchLiveTest):
    hosts = HOSTS

    def setUp(self) -> None:
        super().setUp()
        why = network.available()
        if why:
            self.skipTest(f"hosts cannot be made here: {why}")
        if not os.access(SERVER, os.X_OK):
            self.skipTest("nats-server is not installed")
        self.net = network.Network(self.hosts)
        self.net.__enter__()
        self.addCleanup(self.net.__exit__)
        self.env |= {
            "PERFTRACKER_NATS_SERVER": str(SERVER),
            "PERFTRACKER_SECRET": "one for all hosts",
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "eth0",
        }
        self.jobs: list[subprocess.Popen[bytes]] = []
        self.addCleanup(self.end_all)

    def start(
        self,
        *options: str,
        env: dict[int, dict[str, str]] | None = None,
        train: tuple[str, ...] = (),
    ) -> None:
        """The job on all hosts; train: more words for its script."""
        for host in range(self.hosts):
            words = [
                live.PROGRAM, "run", "--out", str(self.folder / f"out{host}"),
                "--min-gap", "0", "--no-audit", *options, "--",
                self.python, "-m", "torch.distributed.run", f"--nnodes={self.hosts}",
                f"--node-rank={host}", "--nproc-per-node=1",
                f"--master-addr={self.net.address(0)}", "--master-port=29500",
                TRAIN, str(self.folder), *train,
            ]  # fmt: skip
            log = open(self.folder / f"log{host}", "wb")
            self.jobs.append(
                subprocess.Popen(
                    self.net.command(host, words),
                    stdout=log,
                    stderr=log,
                    env={**self.env, **(env or {}).get(host, {})},
                    start_new_session=True,
                )  # fmt: skip
            )
            log.close()

    def end_all(self) -> None:
        for job in self.jobs:
            if job.poll() is None:
                os.killpg(job.pid, 9)
            job.wait()
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            # Ranks are in sessions of their own, and those in a hang stay.
            with contextlib.suppress(OSError):
                if bytes(self.folder) in path.read_bytes():
                    os.kill(int(path.parent.name), 9)

    def log(self, host: int) -> str:
        return (self.folder / f"log{host}").read_text(errors="replace")

    def until(self, what: str, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if true():
                return
            time.sleep(0.2)
        logs = "\n".join(
            f"host {host}:\n{self.log(host)}"
            for host in range(self.hosts)
            if (self.folder / f"log{host}").exists()
        )
        self.fail(f"{what} did not come; {logs}")

    def begin_fault(self, name: str) -> None:
        (self.folder / name).touch()

    def report(self, name: str = "report.json") -> dict:
        path = self.folder / "out0" / name
        return json.loads(path.read_text()) if path.is_file() else {}

    def await_steps(self) -> None:
        """All ranks are watched, and one check-up has been made."""
        self.until("the check-up", lambda: "event=checkup" in self.log(0))

    def end_job(self) -> None:
        self.begin_fault("end")
        for host, job in enumerate(self.jobs):
            self.assertEqual(job.wait(LIMIT_S), 0, self.log(host))
