# SPDX-License-Identifier: Apache-2.0
"""`perftracker run --ui`: the page and API of a job from its own daemon, and who may do what."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, QUICK, ROOT, LiveTest  # noqa: E402

sys.path.insert(0, str(ROOT / "src" / "report"))
import schema_check  # noqa: E402

LIMIT_S = 240
MODULES = os.environ.get("PERFTRACKER_PLAYWRIGHT", "")
CHROMIUM = os.environ.get("PERFTRACKER_CHROMIUM", "/usr/bin/chromium")
FOUND = os.path.isdir(f"{MODULES}/playwright-core") and os.access(CHROMIUM, os.X_OK)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def described(name: str = "") -> Any:
    """A schema of docs/openapi.json as schema_check knows them, or all of them."""
    text = (ROOT / "docs" / "openapi.json").read_text().replace("#/components/schemas/", "#/$defs/")
    schemas = json.loads(text)["components"]["schemas"]
    return schemas[name] if name else {"$defs": schemas}


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.headers = answer.status, answer.headers
        self.text = answer.read().decode()

    def json(self) -> Any:
        return json.loads(self.text)


class PageTest(LiveTest):
    log = ""

    def read_until(self, process: subprocess.Popen[bytes], pattern: str) -> str:
        """Reads the log of the job until a line has this in it; the first group of that."""
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        deadline = time.monotonic() + LIMIT_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stderr, selectors.EVENT_READ)
            while not (found := re.search(pattern, self.log)):
                self.assertLess(time.monotonic(), deadline, f"no {pattern} in:\n{self.log}")
                if selector.select(1):
                    self.log += (process.stderr.read() or b"").decode()
        return found.group(1)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)

    def ask_page(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            named = {**FORM, **named}
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, named)
            return Answer(connection.getresponse())

    def open_page(self, process: subprocess.Popen[bytes]) -> str:
        """Waits for the page and the ranks; the key of the job."""
        self.port = int(self.read_until(process, r"event=page url=http://[0-9.]+:(\d+)/"))
        self.await_workers(2, 20)
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            answer = self.ask_page("/api/v1/jobs", **self.token)
            jobs = answer.json()["jobs"] if answer.status == 200 else []
            if jobs and jobs[0]["workers"] == 2:
                self.assertEqual(len(jobs), 1)
                live = self.ask_page(f"/api/v1/jobs/{jobs[0]['job']}/live", **self.token).json()
                if live["coverage"]["watched"] == 2 and live["baseline_ms"]:
                    return jobs[0]["job"]
            time.sleep(0.1)
        raise AssertionError(f"the page does not show the job: {answer.text}")

    token: dict[str, str] = {}

    def await_request(self, key: str) -> dict:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            requests = self.ask_page(f"/api/v1/jobs/{key}/live", **self.token).json()["requests"]
            if requests and requests[0]["state"] != "waiting":
                return requests[0]
            time.sleep(0.2)
        raise AssertionError(f"no outcome: {requests}")


class Page(PageTest):
    def test_a_job_is_shown_asked_and_goes_on_without_a_store(self) -> None:
        done = self.folder / "done"
        job = self.fake("--iterations", "100", "--ms", "20", "--until", str(done))
        with self.job(*QUICK, "--ui", "0", "--store", "none", *job) as process:
            key = self.open_page(process)
            self.look_at_page(key)
            self.ask_for_profile(key)
            self.compare_profiles(key)
            self.follow_events(key)
            made = self.ask_page(f"/api/v1/reports/{key}-1").text
            self.assertEqual(made, (self.out / "report-1.json").read_text())
            self.hold_up(key)
            done.touch()
            said, log = process.communicate(timeout=LIMIT_S)
        self.log += log.decode()
        self.assertEqual((process.returncode, said), (0, b"job done\n"))
        self.assertEqual(self.log.count("event=page "), 1)
        self.assertRegex(self.log, r'event=profile-asked order=\d+ by="\w+: it is \'slow\'')
        # Nothing of the page is left, and its reports are where serve finds them.
        self.assertEqual(list((self.folder / "perftracker").glob("*.page*")), [])
        self.assertFalse((self.folder / "state").exists())
        self.later(made)

    def look_at_page(self, key: str) -> None:
        page = self.ask_page(f"/jobs/{key}")
        self.assertEqual(page.status, 200)
        for word in (
            "2 of 2 ranks watched",
            "baseline",
            'id="reason"',
            "Ranks now",
            "own cost",
            "Ranks by time",
        ):
            self.assertIn(word, page.text)
        self.assertIn("form-action 'self'", page.headers["Content-Security-Policy"])
        # Else browsers say Origin: null when the form is sent.
        self.assertEqual(page.headers["Referrer-Policy"], "same-origin")
        self.assertIn(f"/jobs/{key}", self.ask_page("/").text)
        live = self.ask_page(f"/api/v1/jobs/{key}/live").json()
        self.assertEqual(list(schema_check.check(described("Live"), live, described())), [])
        self.assertEqual((live["job"], live["coverage"]["watched"]), (key, 2))
        self.assertEqual([rank["rank"] for rank in live["ranks"]], [0, 1])
        carpet = live["carpet"]
        self.assertEqual([row["ranks"] for row in carpet["rows"]], ["0", "1"])
        for row in carpet["rows"]:
            self.assertRegex(row["cells"], r"^[ l]*[.a-z][ .a-z]*$")
            self.assertIn(".", row["cells"])
        self.assertEqual(self.ask_page("/api/v1/jobs/none/live").status, 404)

    def ask_for_profile(self, key: str) -> None:
        path, api = f"/jobs/{key}/profile", f"/api/v1/jobs/{key}/profile"
        for body, status in (("", 400), ("reason=+%20", 400), ("x=1", 400), ("a" * 5000, 413)):
            answer = self.ask_page(api, "POST", body)
            self.assertEqual(answer.status, status, body[:20])
            self.assertTrue(answer.json()["help"])
        for headers in (
            {"Origin": "http://127.0.0.1:1"},
            {"Origin": "null"},
            {"Origin": "http://evil.example"},
            {"Host": "evil.example"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "same-site", "Origin": f"http://127.0.0.1:{self.port}"},
        ):
            answer = self.ask_page(path, "POST", "reason=x", **headers)
            self.assertIn(answer.status, (403, 421), headers)
        self.assertEqual(self.ask_page(api).status, 405)
        self.assertEqual(self.ask_page(f"/jobs/{key}", "POST", "reason=x").status, 405)
        self.assertEqual(self.ask_page("/jobs/none/profile", "POST", "reason=x").status, 404)
        self.assertEqual(self.ask_page(f"/api/v1/jobs/{key}/live").json()["requests"], [])
        sent = self.ask_page(
            path, "POST", "reason=it+is+%22slow%22%0Aevent%3Dforged",
            Origin=f"http://127.0.0.1:{self.port}", Sec_Fetch_Site="same-origin",
        )  # fmt: skip
        self.assertEqual((sent.status, sent.headers["Location"]), (303, f"/jobs/{key}"))
        outcome = self.await_request(key)
        self.assertEqual(outcome["state"], "done", outcome)
        self.assertTrue(outcome["text"].endswith("/report-1.html"), outcome)
        page = self.ask_page(f"/jobs/{key}").text
        self.assertIn(f'<a href="/reports/{key}-1">report 1</a>', page)
        asked = self.ask_page(
            api, "POST", json.dumps({"reason": "by a program"}), Content_Type="application/json"
        )
        self.assertEqual(asked.status, 202)
        self.assertEqual(asked.json()["reason"], "by a program")
        self.assertEqual(self.await_request(key)["reason"], "by a program")
        kinds = self.ask_page(f"/api/v1/jobs/{key}/history").json()["events"]
        self.assertIn("asked", [event["kind"] for event in kinds])

    def compare_profiles(self, key: str) -> None:
        """Their fingerprints lie in the job's folder: the page's own store keeps none."""
        path, deadline = f"/compare?a={key}-1&b={key}-2", time.monotonic() + LIMIT_S
        while (page := self.ask_page(path)).status == 202:
            self.assertEqual(page.headers["Refresh"], "1")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual(page.status, 200, page.text)
        self.assertIn(f"{self.out}/fingerprints/2", page.text)
        chosen = self.ask_page("/compare").text
        self.assertEqual(chosen.count(f'<option value="{key}-1"'), 2)
        self.assertEqual(self.ask_page(f"/compare?a={key}-1&b={key}-9").status, 404)

    def follow_events(self, key: str) -> None:
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", "/api/v1/events")
            stream = connection.getresponse()
            line = b""
            while not line.startswith(b"data: "):
                line = stream.readline()
            self.assertEqual(json.loads(line[6:])["job"], key)

    def hold_up(self, key: str) -> None:
        """Clients that say nothing, read nothing, or only follow: ranks and daemon go on."""
        with contextlib.ExitStack() as stack:
            for number in range(60):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", self.port)))
                path = (f"/jobs/{key}", "/api/v1/events", "/")[number % 3]
                slow.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode())
                slow.sendall(b"\r\n" * (number % 2))
            before = self.workers()[0]["iterations"]
            self.await_workers(2, before + 50)
            self.assertEqual(self.ask_page("/").status, 200)

    def later(self, made: str) -> None:
        server = subprocess.Popen(
            [PROGRAM, "serve", str(self.out), "--listen", "0", "--format", "json"],
            stdout=subprocess.PIPE, env={**self.env, "PERFTRACKER_STORE": "none"},
        )  # fmt: skip
        try:
            assert server.stdout is not None
            self.port = int(json.loads(server.stdout.readline())["listen"].rsplit(":", 1)[-1])
            reports = self.ask_page("/api/v1/reports").json()["reports"]
            row = next(row for row in reports if row["file"].endswith("/report-1.json"))
            self.assertEqual(self.ask_page(f"/api/v1/reports/{row['id']}").text, made)
        finally:
            server.kill()
            server.communicate()

    def test_an_open_address_has_roles_and_the_job_the_key_of_the_store(self) -> None:
        tokens = self.folder / "tokens"
        tokens.write_text("viewer 0123456789abcdef\noperator fedcba9876543210 ann\n")
        tokens.chmod(0o600)
        viewer = {"Authorization": "Bearer 0123456789abcdef"}
        operator = {"Authorization": "Bearer fedcba9876543210"}
        words = ("--ui", "0.0.0.0:0", "--token-file", str(tokens))
        self.token = viewer
        with self.job(*QUICK, *words, *self.fake("--iterations", "100000", "--ms", "20")) as run:
            key = self.open_page(run)
            api = f"/api/v1/jobs/{key}/profile"
            for headers, read, write in (({}, 401, 401), (viewer, 200, 403), (operator, 200, 202)):
                self.assertEqual(self.ask_page("/", **headers).status, read)
                metrics = self.ask_page("/metrics", **headers)
                self.assertEqual(metrics.status, read)
                self.assertEqual("perftracker_world_size" in metrics.text, read == 200)
                answer = self.ask_page(api, "POST", "reason=roles", **headers)
                self.assertEqual(answer.status, write, answer.text)
            self.assertEqual(self.await_request(key)["user"], "ann")
            self.read_until(run, r'(event=profile-asked order=\d+ by="ann: roles")')
            os.killpg(run.pid, signal.SIGTERM)
            run.communicate(timeout=LIMIT_S)
        (kept,) = json.loads(self.ask("jobs", "--format", "json").stdout)["jobs"]
        self.assertEqual(kept["job"], key)

    def test_wrong_options_are_errors_before_the_job_starts(self) -> None:
        missing = str(self.folder / "none")
        for words, said in (
            (("--ui", "0.0.0.0:0"), b"--token-file"),
            (("--ui", "a.b:80"), b"--ui"),
            (("--ui", "0", "--token-file", missing), missing.encode()),
            (("--token-file", missing), b"--ui"),
        ):
            done = self.run_job(*words, "--", "touch", str(self.folder / "ran"))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_a_port_that_is_taken_is_a_warning_and_a_socket_is_private(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            done = self.run_job("--ui", port, "--", "sh", "-c", "sleep 1; exit 5")
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"event=page-off", done.stderr)
        path = self.folder / "page"
        wait = f"until [ -S {path} ] || [ -e {path}.stop ]; do sleep 0.1; done; stat -c %a {path}"
        done = self.run_job("--ui", f"unix:{path}", "--", "sh", "-c", wait, limit_s=LIMIT_S)
        self.assertEqual(done.stdout.strip(), b"%o" % stat.S_IMODE(0o600))
        self.assertIn(f"event=page url=unix:{path}".encode(), done.stderr)
        self.assertFalse(path.exists())


@unittest.skipUnless(FOUND and shutil.which("node"), "needs node, chromium and playwright-core")
class Browser(PageTest):
    def test_the_form_works_in_a_real_browser_with_and_without_scripts(self) -> None:
        words = ("--ui", "0", "--store", "none")
        with self.job(*QUICK, *words, *self.fake("--iterations", "100000", "--ms", "20")) as run:
            key = self.open_page(run)
            url = f"http://127.0.0.1:{self.port}"
            done = subprocess.run(
                ["node", str(pathlib.Path(__file__).with_name("page.cjs")), url, key],
                capture_output=True, text=True, timeout=2 * LIMIT_S,
                env={**os.environ, "PERFTRACKER_CHROMIUM": CHROMIUM},
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(found["sent"], 2 * [f"{url}/jobs/{key}"])
            self.assertEqual((found["wrong"], found["axe"]), ([], []))
            self.assertEqual(found["kept"], "<b>script: true</b>")
            page = self.ask_page(f"/jobs/{key}").text
            for said in ("true", "false"):
                self.assertIn(f"&lt;b&gt;script: {said}&lt;/b&gt;", page)


if __name__ == "__main__":
    unittest.main()
