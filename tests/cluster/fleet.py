# SPDX-License-Identifier: Apache-2.0
"""A fleet over hosts of its own network: the base of its tests.

The first host has the site's broker, configured as deploy/nats says, and the hub; the others have
a hostd each. Jobs are started by torchrun alone, without `perftracker run`.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import HOSTS, LIMIT_S, SERVER, TRAIN, ClusterTest, live  # noqa: E402

DEPLOY = live.ROOT / "deploy" / "nats"
WORKERS = range(1, HOSTS)  # hosts with a hostd
SITE = """
cluster: test
host: {host}
bus:
  url: [tls://{address}:4222]
  ca: {keys}/tls/server.crt
  nkey_file: {keys}/keys/{user}.pub
  nkey_seed_file: {keys}/keys/{user}.seed
orders: {{key: {orders}, seed_file: {seed}}}
hostd: {{socket: {folder}/run{number}/hostd.sock, folder: {folder}/hostd{number}}}
hub:
  folder: {folder}/jobs
  run: {folder}/hubrun
  store: {folder}/fleet.db
  ui: unix:{folder}/ui
jobs: {{min_gap_seconds: 0, audit: no, linger_seconds: 5}}
"""


class FleetTest(ClusterTest):
    def setUp(self) -> None:
        super().setUp()
        # Sockets have short paths, and other users pass through.
        self.folder.chmod(0o711)
        self.env["PYTHONPATH"] = str(live.ROOT / "python")
        for name in ("PERFTRACKER_STORE", "PERFTRACKER_SECRET", "PERFTRACKER_AGENT"):
            self.env.pop(name, None)
        self.services: dict[int, subprocess.Popen[bytes]] = {}
        self.make_keys()
        for host in range(HOSTS):
            self.write_site(host)

    def make_keys(self) -> None:
        self.keys = self.folder / "nats"
        self.make_users()
        (self.keys / "tls").mkdir()
        words = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]
        words += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=broker"]
        words += ["-addext", f"subjectAltName=IP:{self.net.address(0)}"]
        words += ["-keyout", f"{self.keys}/tls/server.key", "-out", f"{self.keys}/tls/server.crt"]
        subprocess.run(words, check=True, capture_output=True)
        (self.keys / "nats-server.conf").write_text((DEPLOY / "nats-server.conf").read_text())

    def make_users(self) -> None:
        names = [self.net.name(host) for host in WORKERS]
        subprocess.run([DEPLOY / "make-users", self.keys, *names], check=True)

    def user(self, host: int) -> str:
        return "hub" if host == 0 else self.net.name(host)

    def site(self, host: int) -> str:
        return str(self.folder / f"site{host}.yaml")

    def write_site(self, host: int) -> None:
        text = SITE.format(
            host=self.net.name(host), address=self.net.address(0), keys=self.keys,
            user=self.user(host), folder=self.folder, number=host,
            orders=(self.keys / "keys" / "orders.pub").read_text().strip(),
            seed=f"{self.keys}/keys/orders.seed" if host == 0 else '""',
        )  # fmt: skip
        pathlib.Path(self.site(host)).write_text(text)

    def begin(
        self, host: int, words: Sequence[str], log: str, **env: str
    ) -> subprocess.Popen[bytes]:
        with open(self.folder / log, "ab") as file:
            process = subprocess.Popen(
                self.net.command(host, words), stdout=file, stderr=file,
                env={**self.env, **env}, cwd=self.keys, start_new_session=True,
            )  # fmt: skip
        self.jobs.append(process)
        return process

    def start_broker(self) -> subprocess.Popen[bytes]:
        return self.begin(0, [str(SERVER), "-c", "nats-server.conf"], "broker")

    def start_service(self, host: int, *words: str) -> subprocess.Popen[bytes]:
        """The hub on the first host, hostd on the others; its log is that of the host."""
        name = "hub" if host == 0 else "hostd"
        words = (live.PROGRAM, name, "--config", self.site(host), *words)
        self.services[host] = self.begin(host, words, f"log{host}")
        return self.services[host]

    def start_fleet(self) -> None:
        self.start_broker()
        for host in range(HOSTS):
            self.start_service(host)
        self.await_line(0, "event=hub-serves")
        for host in WORKERS:
            self.await_line(host, "event=bus-connected")

    def await_line(self, host: int, text: str, cnt: int = 1) -> None:
        self.until(f"{text} on host {host}", lambda: self.log(host).count(text) >= cnt)

    def start_job(self, name: str, port: int, **env: str) -> list[subprocess.Popen[bytes]]:
        """torchrun on each host with a hostd; the job ends with a file `end` in its folder."""
        folder = self.folder / name
        folder.mkdir()
        folder.chmod(0o777)
        started = []
        for number, host in enumerate(WORKERS):
            words = [
                self.python, "-m", "torch.distributed.run", f"--nnodes={len(WORKERS)}",
                f"--node-rank={number}", "--nproc-per-node=1",
                f"--master-addr={self.net.address(1)}", f"--master-port={port}",
                TRAIN, str(folder),
            ]  # fmt: skip
            given = {"PERFTRACKER": "1", **env}
            given["PERFTRACKER_HOSTD"] = f"{self.folder}/run{host}/hostd.sock"
            started.append(self.begin(host, words, f"{name}.{host}", **given))
        return started

    def job_out(self, port: int, user: int = 0) -> pathlib.Path:
        return self.folder / "jobs" / f"u{user}" / f"{self.net.address(1)}:{port}"

    def job_report(self, port: int) -> dict:
        path = self.job_out(port) / "report.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def job_log(self, port: int) -> str:
        path = self.job_out(port) / "daemon.log"
        return path.read_text() if path.is_file() else ""

    def await_watch(self, port: int, begin: int = 0) -> None:
        """The hub knows the job's pace. begin: of the log's characters that count."""
        self.until("the pace", lambda: "state=watching" in self.job_log(port)[begin:])

    def await_window(self, port: int, begin: int = 0) -> None:
        """Also what the job looks like; on a busy machine that may be no quiet check-up."""
        window = re.compile("event=(checkup|report|slow) ")
        self.until("a window", lambda: window.search(self.job_log(port)[begin:]) is not None)

    def fault(self, name: str, kind: str) -> None:
        (self.folder / name / kind).touch()

    def end_jobs(self, name: str, processes: list[subprocess.Popen[bytes]]) -> None:
        self.fault(name, "end")
        for host, process in zip(WORKERS, processes, strict=True):
            log = self.folder / f"{name}.{host}"
            self.assertEqual(process.wait(LIMIT_S), 0, log.read_text(errors="replace"))

    def inner(self, host: int) -> int:
        """The process of the service itself, below what gives the host its name."""
        pids = [self.services[host].pid]
        while pids:
            pid = pids.pop()
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(live.PROGRAM):
                return pid
            pids += live.children(pid)
        raise AssertionError(f"no service on host {host}: {self.log(host)}")


class SharedKeyTest(FleetTest):
    """All hosts have one key, as in Kubernetes."""

    def make_users(self) -> None:
        subprocess.run([DEPLOY / "make-users", "--shared", self.keys], check=True)

    def user(self, host: int) -> str:
        return "hub" if host == 0 else "host"
