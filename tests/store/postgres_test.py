# SPDX-License-Identifier: Apache-2.0
"""The tests of the store on a real PostgreSQL, which is made for them and removed after them."""

from __future__ import annotations

import glob
import importlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORE_TEST = os.environ.get("PERFTRACKER_STORE_TEST") or str(ROOT / "build/src/store/store_test")


def server_folder() -> str | None:
    """The folder of initdb and pg_ctl, the newest version's; they are not on PATH on Debian."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    path = found[-1] if found else shutil.which("initdb")
    return os.path.dirname(path) if path else None


def as_server_user() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    pwd.getpwnam("postgres")
    return ["runuser", "-u", "postgres", "--"]


class Server:
    """A server on a Unix socket in a folder of its own; no port is opened."""

    def __init__(self) -> None:
        self.bin = server_folder()
        self.folder = tempfile.mkdtemp(prefix="pt-postgres-")
        os.chmod(self.folder, 0o777)
        self.data = f"{self.folder}/data"
        self.call("initdb", "-D", self.data, "-A", "trust", "-U", "tracker", "--no-sync")
        self.call(
            "pg_ctl",
            "-D",
            self.data,
            "-w",
            "-l",
            f"{self.folder}/log",
            "-o",
            f"-c listen_addresses= -k {self.folder}",
            "start",
        )
        self.url = f"postgresql://tracker@/postgres?host={self.folder}"

    def call(self, name: str, *words: str) -> None:
        # The server keeps the descriptors of pg_ctl, so a pipe would never end.
        with open(f"{self.folder}/{name}.out", "w+") as out:
            done = subprocess.run(
                [*as_server_user(), f"{self.bin}/{name}", *words],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=120,
                check=False,
            )
            out.seek(0)
            said = out.read()
        if done.returncode != 0:
            raise AssertionError(f"{name} failed: {said}")

    def close(self) -> None:
        self.call("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


@unittest.skipUnless(server_folder(), "needs PostgreSQL's server: tools/bootstrap test")
class PostgresTest(unittest.TestCase):
    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)

    def setUp(self) -> None:
        if not os.access(STORE_TEST, os.X_OK):
            self.skipTest(f"{STORE_TEST} is not built")

    def test_the_store_is_the_same_on_a_server(self) -> None:
        env = {**os.environ, "PERFTRACKER_TEST_POSTGRES": self.server.url}
        done = subprocess.run(
            [STORE_TEST], env=env, text=True, capture_output=True, timeout=120, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("a_report_comes_back_with_findings_and_documents", done.stdout + done.stderr)

    def test_what_was_committed_survives_a_killed_writer(self) -> None:
        env = {**os.environ, "PERFTRACKER_TEST_POSTGRES": self.server.url}
        done = subprocess.run(
            [STORE_TEST.replace("store_test", "store_crash_test")],
            env=env, text=True, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_job_is_kept_on_a_server(self) -> None:
        sys.path.insert(0, str(ROOT / "tests" / "live"))
        live = importlib.import_module("live")
        words = ["--store", self.server.url, "--job-name", "gpt", "--", sys.executable]
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": folder}
            subprocess.run(
                [live.PROGRAM, "run", "--output", f"{folder}/out", *words, live.FAKE_JOB],
                env=env, capture_output=True, timeout=120, check=True,
            )  # fmt: skip
            asked = [live.PROGRAM, "jobs", "--store", self.server.url, "--format", "json"]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
            (job,) = json.loads(done.stdout)["jobs"]
            self.assertEqual((job["name"], job["state"], job["not_kept"]), ("gpt", "ended", 0))
            asked = [live.PROGRAM, "report", "--store", self.server.url, "gpt"]
            done = subprocess.run(asked, capture_output=True, timeout=60, check=True)
            self.assertEqual(done.stdout, pathlib.Path(f"{folder}/out/report.txt").read_bytes())
            self.served_alike(job["job"])

    def served_alike(self, key: str) -> None:
        """The server answers from it as from a file."""
        sys.path.insert(0, str(ROOT / "tests" / "serve"))
        served = importlib.import_module("served")
        server = served.Server("--store", self.server.url)
        self.addCleanup(server.end)
        for path in ("/api/v1/jobs", f"/api/v1/jobs/{key}", f"/api/v1/jobs/{key}/history"):
            answer = server.get(path)
            self.assertEqual(answer.status, 200, path)
            self.assertIn("gpt", answer.text)
        listed = server.get(f"/api/v1/reports?job={key}").json()["reports"]
        self.assertTrue(listed)
        self.assertEqual(server.get(f"/api/v1/reports/{listed[0]['id']}").status, 200)
        self.assertEqual(server.get("/api/v1/hosts").json()["hosts"], [])
        for path in ("/", f"/jobs/{key}", f"/reports/{listed[0]['id']}"):
            self.assertEqual(server.get(path).status, 200, path)

    def test_a_server_that_is_not_there_is_told_in_one_line(self) -> None:
        sys.path.insert(0, str(ROOT / "tests" / "live"))
        live = importlib.import_module("live")
        asked = [live.PROGRAM, "jobs", "--store", "postgresql://x@127.0.0.1:1/none"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("refused", done.stderr)


if __name__ == "__main__":
    unittest.main()
