# SPDX-License-Identifier: Apache-2.0
"""What the tests of the server share: a store with jobs, a server, a client."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest
import zlib
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("PERFTRACKER_PROGRAM") or str(ROOT / "build/src/cmd/perftracker")
GOLDEN = ROOT / "tests" / "golden" / "report"
# Made of markup, of what a script or a header could misread, and of bytes that hide text.
HOSTILE = "<img src=x onerror=alert(1)>\"'&\u202e</script>"
SECOND = 10**9
# What a report says of the call stacks of its culprit; no golden report has some.
STACKS = {
    "stacks": {
        "rank": 2, "culprit": True, "peers": 3, "compared": "0-3",
        "functions": [
            {"name": "main", "parent": None, "class": "host", "ms": 90.0, "peers_ms": 40.0},
            {"name": "forward", "parent": 0, "class": "compute", "ms": 40.0, "peers_ms": 38.0},
            {"name": HOSTILE, "parent": 0, "class": "host", "ms": 45.0, "peers_ms": 1.0,
             "ranks": "1-2"},
        ],
    }
}  # fmt: skip
LIMIT_S = 120


def now_ns() -> int:
    return time.time_ns()


class Store:
    """Writes rows as the keeper does; the tables are made by the program itself."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.base = sqlite3.connect(path)
        # As src/store/schema.c makes them; store_test.c tests those.
        text = (ROOT / "src/store/schema.c").read_text(encoding="utf-8")
        for statement in filter(None, self.statements(text)):
            self.base.execute(statement)
        self.base.execute("CREATE TABLE meta (schema_version INTEGER NOT NULL)")
        self.base.execute("INSERT INTO meta VALUES (2)")
        self.base.commit()

    @staticmethod
    def statements(text: str) -> Iterator[str]:
        for part in text.split("static const char *const version_")[1:]:
            body = part[part.index("{") + 1 : part.index("\n\tNULL,")]
            for entry in re.split(r'",\n', body):
                yield "".join(re.findall(r'"([^"\n]*)', entry)).rstrip(",")

    def job(self, key: str, name: str, **more: Any) -> None:
        row = {
            "host": "node1", "owner": "ann", "folder": f"/out/{key}", "command": "train.py",
            "started_ns": now_ns() - 3600 * SECOND, "seen_ns": now_ns(), "ended_ns": None,
            "exit_status": None, "signal": None, "state": "watching", "verdict": None,
            "reason": None, "workers": 4, "step": 100, "now_ns": 20_000_000,
            "best_ns": 10_000_000, "restarts": 0, "lost": 0, **more,
        }  # fmt: skip
        names = ", ".join(["job", "name", *row])
        marks = ", ".join("?" * (len(row) + 2))
        self.base.execute(
            f"INSERT OR REPLACE INTO job ({names}) VALUES ({marks})", [key, name, *row.values()]
        )
        self.base.commit()

    def event(self, key: str, place: int, text: str) -> None:
        self.base.execute(
            "INSERT INTO event VALUES (?, ?, ?, ?, ?)", (key, place, now_ns(), "slow", text)
        )
        self.base.commit()

    def pace(self, key: str, cnt: int) -> None:
        begin = now_ns() // SECOND - cnt
        for i in range(cnt):
            ns = 10_000_000 if i < cnt // 2 else 20_000_000
            row = (key, 1, begin + i, i * 10, 10, 10 * ns, ns - 10**6, ns + 10**6)
            self.base.execute("INSERT INTO pace VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self.base.commit()

    def report(self, key: str, number: int, name: str, hosts: str = "", more: Any = None) -> None:
        """A golden report as that of a job; more: of its JSON."""
        document = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
        self.base.execute(
            "INSERT INTO report VALUES (?, ?, ?, 'slowdown', ?, ?, 10, 5, 20.0, 4, 0)",
            (key, number, now_ns(), document["verdict"], document["reason"]),
        )
        for place, finding in enumerate(document["findings"]):
            self.base.execute(
                "INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key, number, place, finding["id"], finding["cause"], finding["title"],
                    finding["function"]["name"], finding["function"]["key"], finding["ranks"],
                    finding["gain_ms_per_iteration"], finding["gain_pct"], finding["confidence"],
                    hosts,
                ),
            )  # fmt: skip
        for form in ("json", "html"):
            data = (GOLDEN / f"{name}.{form}").read_bytes()
            if form == "json" and more:
                data = json.dumps({**document, **more}).encode()
            self.base.execute(
                "INSERT INTO document VALUES (?, ?, ?, ?, ?)",
                (key, number, form, len(data), zlib.compress(data)),
            )
        self.base.commit()


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.body = answer.read()

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    def __init__(self, *words: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--format", "json", "--listen", "0", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PERFTRACKER_STORE": "none", **(env or {})},
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        self.said = json.loads(line)
        self.url = self.said["url"]
        self.port = int(self.url.rsplit(":", 1)[-1].strip("/")) if "http" in self.url else 0

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Header names are written with underscores."""
        with contextlib.closing(self.connect()) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=named)
            return Answer(connection.getresponse())

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(LIMIT_S)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return status


class ServeTest(unittest.TestCase):
    def setUp(self) -> None:
        if not os.access(PROGRAM, os.X_OK):
            self.skipTest(f"{PROGRAM} is not built")
        folder = tempfile.TemporaryDirectory(prefix="pt-serve-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def serve(self, *words: str, **more: Any) -> Server:
        server = Server(*words, **more)
        self.addCleanup(server.end)
        return server

    def make_store(self) -> Store:
        store = Store(self.folder / "store.db")
        self.addCleanup(store.base.close)
        return store

    def child_of(self, server: Server) -> int:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError):
                    pid, rest = stat.parent.name, stat.read_text().rpartition(")")[2].split()
                    if int(rest[1]) == server.process.pid and rest[0] != "Z":
                        return int(pid)
        raise AssertionError("the server has no child")
