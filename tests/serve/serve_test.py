# SPDX-License-Identifier: Apache-2.0
"""`perftracker serve` by real HTTP clients: pages, the API, who may ask, odd clients."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Iterator
from typing import Any

from served import (
    GOLDEN,
    HOSTILE,
    LIMIT_S,
    PROGRAM,
    ROOT,
    SECOND,
    STACKS,
    Server,
    ServeTest,
    now_ns,
)

sys.path.insert(0, str(ROOT / "src" / "report"))
import schema_check  # noqa: E402

OPENAPI = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
KEY = "3fa9d1e0b2c4"


def resolve(schema: Any) -> Any:
    """The schemas of OpenAPI as one that the small checker knows."""
    if isinstance(schema, dict):
        return {
            key: value.replace("#/components/schemas/", "#/$defs/")
            if key == "$ref"
            else resolve(value)
            for key, value in schema.items()
        }
    return [resolve(one) for one in schema] if isinstance(schema, list) else schema


class Pages(ServeTest):
    def fill(self) -> Server:
        store = self.make_store()
        store.job(KEY, HOSTILE, state="slow", verdict="abnormal", reason=HOSTILE)
        store.job("00000000000a", "resnet", ended_ns=now_ns(), exit_status=1, verdict="healthy")
        store.job("00000000000b", "old", seen_ns=now_ns() - 600 * SECOND)
        store.report(KEY, 1, "figure7", hosts="gpu-000")
        store.report(KEY, 2, "hostile", hosts=f"gpu-000,{HOSTILE}", more=STACKS)
        store.event(KEY, 0, HOSTILE)
        store.pace(KEY, 60)
        return self.serve("--store", str(store.path), str(GOLDEN))

    def test_every_page_begins_with_the_answer_and_escapes_names(self) -> None:
        server = self.fill()
        reports = server.get("/api/v1/reports").json()["reports"]
        paths = ["/", f"/jobs/{KEY}", "/jobs/resnet", "/hosts", "/?filter=%3Cb%3E"]
        for path in paths:
            page = server.get(path)
            self.assertEqual(page.status, 200, path)
            self.assertNotIn("<img", page.text, path)
            self.assertEqual(page.text.count("<script"), 1, path)
            self.assertLess(page.text.index("<h1>"), 3000, path)
            self.assertIn(
                "require-trusted-types-for 'script'", page.headers["Content-Security-Policy"]
            )
            self.assertNotIn("unsafe", page.headers["Content-Security-Policy"])
            self.assertNotRegex(page.text, r"style=|onclick=|https?://", path)
        self.assertIn("is slow", server.get("/").text)
        job = server.get(f"/jobs/{KEY}").text
        for word in (
            "What to do",
            "Gain of a repair",
            "Pace of the run",
            "<svg",
            "/reports/",
        ):
            self.assertIn(word, job)
        for report in reports:
            page = server.get(f"/reports/{report['id']}")
            self.assertEqual(page.status, 200, report["file"])
            self.assertIn("<h1>", page.text)
            # A page of a file is sandboxed, one from its JSON is a page of the server.
            sandboxed = "sandbox" in page.headers["Content-Security-Policy"]
            self.assertEqual(sandboxed, os.path.exists(report["file"].replace(".json", ".html")))

    def test_a_report_is_the_document_that_was_made(self) -> None:
        server = self.fill()
        made = (GOLDEN / "figure7.json").read_bytes()
        self.assertEqual(server.get(f"/api/v1/reports/{KEY}-1").body, made)
        page = server.get(f"/reports/{KEY}-1")
        self.assertIn("sandbox", page.headers["Content-Security-Policy"])
        self.assertIn(f'<a href="/jobs/{KEY}">', page.text)
        back = re.sub(r"(?s)<style>nav\.parts.*?</nav>\n", "", page.text)
        self.assertEqual(back, (GOLDEN / "figure7.html").read_text(encoding="utf-8"))

    def test_call_stacks_have_a_page_with_search(self) -> None:
        server = self.fill()
        for number in (1, 2):
            page = server.get(f"/reports/{KEY}-{number}/flame")
            report = server.get(f"/api/v1/reports/{KEY}-{number}").json()
            link = f'href="/reports/{KEY}-{number}/flame"'
            if not report["stacks"]:
                self.assertEqual(page.status, 404)
                self.assertIn("has no call stacks", page.text)
                self.assertNotIn(link, server.get(f"/reports/{KEY}-{number}").text)
                continue
            self.assertEqual(page.status, 200)
            self.assertIn(link, server.get(f"/reports/{KEY}-{number}").text)
            for word in ('<g class="box"', 'type="search"', "What to do", "/flame.js"):
                self.assertIn(word, page.text)
            self.assertNotIn("<img", page.text)
            self.assertNotIn("<style", page.text)
            self.assertEqual(page.text.count("<script"), 2)
        self.assertEqual(server.get(f"/reports/{KEY}-9/flame").status, 404)
        self.assertIn("tree", server.get("/flame.js").text)

    def test_a_function_has_its_callers_callees_and_ranks(self) -> None:
        server = self.fill()
        page = server.get(f"/reports/{KEY}-2/flame").text
        rows = re.findall(r"<tr><td class=\"name\">(.*?)</tr>", page, re.S)
        self.assertEqual(len(rows), 3)
        self.assertIn("&lt;img", rows[0])  # differs most by itself: 45 ms against 1 ms
        self.assertIn('data-name="Seen on">1-2</td>', rows[0])
        self.assertIn('data-name="Seen on">all</td>', rows[1])
        self.assertIn("seen on ranks 1-2 of 0-3", page)
        address = re.search(r'href="([^"]+)#function"', rows[0]).group(1)
        chosen = server.get(address.replace("&amp;", "&")).text
        section = chosen[chosen.index('<section id="function">') : chosen.index("</section>")]
        self.assertNotIn("<img", section)
        self.assertIn(">main</bdi>", section)
        self.assertIn("Nothing that was recorded", section)  # it calls nothing
        chosen = server.get(f"/reports/{KEY}-2/flame?function=main").text
        section = chosen[chosen.index('<section id="function">') : chosen.index("</section>")]
        self.assertIn(">forward</bdi>", section)
        other = server.get(f"/reports/{KEY}-2/flame?function=%3Cscript%3E").text
        self.assertIn("No function of these stacks has this name", other)
        self.assertEqual(other.count("<script"), 2)

    def test_a_job_shows_the_traffic_of_its_collectives(self) -> None:
        store = self.make_store()
        store.job(KEY, "llama")
        one = {
            "operation": HOSTILE, "group_size": 8, "bytes": 2e6, "per_iteration": 3,
            "ms_per_iteration": 5.5, "latency_ms": 1, "bus_gbytes_per_s": None, "matched": True,
        }  # fmt: skip
        store.report(KEY, 1, "figure7", more={"collectives": [one] * 30})
        page = self.serve("--store", str(store.path)).get(f"/jobs/{KEY}").text
        self.assertIn("Collective traffic", page)
        self.assertNotIn("<img", page)
        self.assertIn("not known", page)
        self.assertIn("10 more in the report", page)

    def test_damaged_call_stacks_are_drawn_as_far_as_they_go(self) -> None:
        for place, stacks in enumerate(
            (
                {"functions": [{"name": "a", "parent": 7, "ms": 1}, {"parent": 0, "ms": "x"}]},
                {"functions": [{"name": HOSTILE, "ms": 5}] * 3, "peers": -4, "rank": 1e300},
                {"functions": [{"name": "a", "parent": -9, "ms": -1}, {"name": 1, "ms": 1e308}]},
                {"functions": [None, []]},
                {
                    "compared": "0-1048575",
                    "functions": [{"name": "a", "ms": 5, "ranks": "0-1048575"}] * 2,
                },
                [],
            )
        ):
            path = self.folder / "reports" / str(place) / "report.json"
            path.parent.mkdir(parents=True)
            report = json.loads((GOLDEN / "figure7.json").read_text(encoding="utf-8"))
            path.write_text(json.dumps({**report, "stacks": stacks}), encoding="utf-8")
        server = self.serve("--store", "none", str(self.folder / "reports"))
        reports = server.get("/api/v1/reports").json()["reports"]
        self.assertEqual(len(reports), 6)
        for report in reports:
            page = server.get(f"/reports/{report['id']}/flame")
            self.assertIn(page.status, (200, 404))
            self.assertNotIn("<img", page.text)

    def test_answers_are_as_the_description_says(self) -> None:
        server = self.fill()
        self.assertEqual(server.get("/api/v1/openapi.json").json(), OPENAPI)
        paths = {
            "/api/v1/jobs": "/api/v1/jobs?limit=2",
            "/api/v1/jobs/{job}": f"/api/v1/jobs/{KEY}",
            "/api/v1/jobs/{job}/history": f"/api/v1/jobs/{KEY[:5]}/history",
            "/api/v1/reports": f"/api/v1/reports?job={KEY}",
            "/api/v1/hosts": "/api/v1/hosts",
        }
        schemas = resolve(OPENAPI["components"]["schemas"])
        root = {"$defs": schemas}
        for pattern, path in paths.items():
            answer = server.get(path)
            self.assertEqual(answer.headers["Content-Type"], "application/json")
            media = OPENAPI["paths"][pattern]["get"]["responses"]["200"]["content"]
            schema = resolve(media["application/json"]["schema"])
            self.assertEqual(list(schema_check.check(schema, answer.json(), root)), [], path)
        for path in ("/api/v1/jobs/none", "/api/v1/x", "/api/v1/jobs?limit=x", "/api/v1/reports/x",
                     "/api/v1/jobs?cursor=x", f"/api/v1/jobs/{KEY}/history?tier=7"):  # fmt: skip
            answer = server.get(path)
            self.assertIn(answer.status, (400, 404), path)
            found = answer.json()
            self.assertEqual(list(schema_check.check(schemas["Error"], found, root)), [], path)
            self.assertTrue(found["help"], path)

    def test_pages_of_jobs_joined_are_all_jobs(self) -> None:
        store = self.make_store()
        for i in range(25):
            store.job(f"{i:012x}", f"job{i}", started_ns=now_ns() - i // 3 * SECOND)
        server = self.serve("--store", str(store.path))
        keys, cursor = [], ""
        while cursor is not None:
            answer = server.get(f"/api/v1/jobs?limit=4&cursor={cursor}").json()
            keys += [job["job"] for job in answer["jobs"]]
            cursor = answer["next"]
        self.assertEqual(len(keys), 25)
        self.assertEqual(len(set(keys)), 25)
        listed = subprocess.run(
            [PROGRAM, "jobs", "--limit", "0", "--format", "json", "--store", str(store.path)],
            capture_output=True, check=True,
        )  # fmt: skip
        self.assertEqual(keys, [job["job"] for job in json.loads(listed.stdout)["jobs"]])
        filtered = server.get("/api/v1/jobs?filter=JOB2").json()["jobs"]
        self.assertEqual(
            {job["name"] for job in filtered}, {"job2", *(f"job2{i}" for i in range(5))}
        )

    def test_hosts_are_counted_over_jobs(self) -> None:
        hosts = self.fill().get("/api/v1/hosts").json()["hosts"]
        by_name = {host["host"]: host for host in hosts}
        self.assertEqual(by_name["gpu-000"]["jobs"], 2)  # the job, and a folder
        self.assertEqual(by_name[HOSTILE]["jobs"], 1)

    def test_a_store_that_comes_later_is_shown(self) -> None:
        path = self.folder / "store.db"
        server = self.serve("--store", str(path))
        self.assertEqual(server.get("/api/v1/jobs").status, 404)
        self.assertIn("perftracker run", server.get("/api/v1/jobs").json()["error"])
        self.assertEqual(server.get("/").status, 200)
        self.make_store().job(KEY, "late")
        self.assertEqual(server.get("/api/v1/jobs").json()["jobs"][0]["name"], "late")

    def test_an_unchanged_answer_is_not_sent_again(self) -> None:
        server = self.fill()
        tag = server.get("/style.css").headers["ETag"]
        again = server.get("/style.css", If_None_Match=f'"x", {tag}')
        self.assertEqual((again.status, again.body), (304, b""))
        head = server.get("/style.css", method="HEAD")
        self.assertEqual((head.status, head.body, head.headers["ETag"]), (200, b"", tag))
        self.assertGreater(int(head.headers["Content-Length"]), 1000)


class WhoMayAsk(ServeTest):
    def test_other_names_origins_and_methods_are_refused(self) -> None:
        server = self.serve(str(GOLDEN))
        refused: list[tuple[int, dict[str, str]]] = [
            (421, {"Host": "evil.example"}),
            (421, {"Host": f"localhost.evil.example:{server.port}"}),
            (403, {"Origin": "http://evil.example"}),
            (403, {"Origin": "null"}),
        ]
        for status, headers in refused:
            self.assertEqual(server.get("/api/v1/reports", **headers).status, status, headers)
        for name in ("localhost", "127.0.0.1:1", "[::1]", socket.gethostname()):
            self.assertEqual(server.get("/", Host=name).status, 200, name)
        self.assertEqual(server.get("/", Origin=f"http://127.0.0.1:{server.port}").status, 200)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            answer = server.get("/api/v1/reports", method=method)
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"))
        named = self.serve(str(GOLDEN), "--host", "tracker.example")
        self.assertEqual(named.get("/", Host="tracker.example").status, 200)

    def test_without_a_daemon_nothing_can_be_asked_for(self) -> None:
        store = self.make_store()
        store.job(KEY, "gpt")
        server = self.serve("--store", str(store.path))
        for path in (f"/api/v1/jobs/{KEY}/profile", f"/jobs/{KEY}/profile"):
            answer = server.get(path, method="POST")
            self.assertEqual(answer.status, 501, answer.text)
            self.assertIn("no daemon", answer.text)
        self.assertEqual(server.get(f"/api/v1/jobs/{KEY}/live").status, 501)
        self.assertEqual(server.get("/metrics").status, 501)
        page = server.get(f"/jobs/{KEY}").text
        self.assertNotIn("<form", page)
        self.assertNotIn('id="now"', page)

    def test_an_open_address_needs_tokens(self) -> None:
        done = subprocess.run(
            [PROGRAM, "serve", str(GOLDEN), "--listen", "0.0.0.0:0"],
            capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn("--token-file", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_tokens_open_the_door(self) -> None:
        path = self.folder / "tokens"
        path.write_text("viewer 0123456789abcdef\noperator fedcba9876543210 ann\n")
        words = (str(GOLDEN), "--listen", "0.0.0.0:0", "--token-file", str(path))
        done = subprocess.run(
            [PROGRAM, "serve", *words], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        self.assertIn("chmod 600", done.stderr)
        path.chmod(0o600)
        server = self.serve(*words)
        server.port = int(server.said["listen"].rsplit(":", 1)[-1])
        closed = server.get("/")
        self.assertEqual(closed.status, 401)
        self.assertIn('Basic realm="PerfTracker"', closed.headers.get_all("WWW-Authenticate")[0])
        password = base64.b64encode(b"ann:fedcba9876543210").decode()
        for given, status in (
            ("Bearer 0123456789abcdef", 200), (f"Basic {password}", 200),
            ("Bearer 0123456789abcdee", 401), ("Basic Og==", 401), ("nonsense", 401),
        ):  # fmt: skip
            self.assertEqual(server.get("/", Authorization=given).status, status, given)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to ask as another user")
    def test_another_user_of_this_machine_is_refused(self) -> None:
        server = self.serve(str(GOLDEN))
        said = []
        for user in (0, 65533):
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    os.setgid(65534)
                    os.setuid(user)
                    os._exit(0 if server.get("/").status == 200 else 3)
                os._exit(9)
            said.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        self.assertEqual(said, [0, 3])

    def test_a_unix_socket_is_for_its_user(self) -> None:
        path = self.folder / "socket"
        for _ in range(2):  # the second takes the place of one that was killed
            server = self.serve(str(GOLDEN), "--listen", f"unix:{path}")
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            with contextlib.closing(http.client.HTTPConnection("localhost")) as connection:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.connect(str(path))
                connection.request("GET", "/api/v1/reports")
                self.assertEqual(connection.getresponse().status, 200)
            server.process.kill()
            server.process.wait()
        server = self.serve(str(GOLDEN), "--listen", f"unix:{path}")
        self.assertEqual(server.end(), 0)
        self.assertFalse(path.exists())


class Life(ServeTest):
    def test_signals_end_it_and_a_used_port_is_said(self) -> None:
        server = self.serve(str(GOLDEN))
        done = subprocess.run(
            [PROGRAM, "serve", str(GOLDEN), "--listen", str(server.port)],
            capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"Address already in use.*--listen PORT")
        with contextlib.closing(server.connect()) as stream:
            stream.request("GET", "/api/v1/events")
            self.assertEqual(stream.getresponse().status, 200)
            self.assertEqual(server.end(), 0)

    def test_wrong_folders_and_options_are_said(self) -> None:
        rows = [
            ([], "name a folder"),
            (["/nonexistent"], "/nonexistent"),
            ([str(GOLDEN), "--listen", "::1:80"], "PORT"),
            ([str(GOLDEN), "--token-file", "/nonexistent"], "/nonexistent"),
        ]
        for words, said in rows:
            done = subprocess.run(
                [PROGRAM, "serve", *words], capture_output=True, text=True, timeout=LIMIT_S,
                env={**os.environ, "PERFTRACKER_STORE": "none"}, check=False,
            )  # fmt: skip
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(said, done.stderr)

    def test_slow_and_odd_clients_stop_no_other(self) -> None:
        server = self.serve(str(GOLDEN))
        idle = [server.socket() for _ in range(200)]
        for i, one in enumerate(idle):
            self.addCleanup(one.close)
            if i % 3 == 0:
                one.sendall(b"GET / HTTP/1.1\r\nHost: local")
            elif i % 3 == 1:
                one.sendall(b"GET /api/v1/reports HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(server.get("/").status, 200)
        for odd in (
            b"\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET /%ff%2e%2e%2f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
            + b"a" * 200_000,
        ):  # fmt: skip
            with contextlib.closing(server.socket()) as one, contextlib.suppress(OSError):
                one.sendall(odd)
                one.shutdown(socket.SHUT_WR)
                said = one.recv(4096)
                self.assertNotIn(b"HTTP/1.1 200", said, odd[:40])
        self.assertEqual(server.get("/").status, 200)

    def test_clients_that_fill_all_places_are_cut(self) -> None:
        server = self.serve(str(GOLDEN))
        idle = [server.socket() for _ in range(256)]
        for one in idle:
            self.addCleanup(one.close)
        self.assertEqual(server.get("/").status, 200)  # waits until some are cut


@contextlib.contextmanager
def steps_of(path: pathlib.Path, key: str) -> Iterator[None]:
    """A job of the store that goes on meanwhile."""
    over = threading.Event()

    def go_on() -> None:
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as base:
            while not over.wait(0.3):
                with base:
                    base.execute(
                        "UPDATE job SET step = step + 1, seen_ns = ? WHERE job = ?",
                        (time.time_ns(), key),
                    )

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Events(ServeTest):
    def read_event(self, stream: Any) -> tuple[str, str, Any]:
        """The next one that is no comment: its id, name and data."""
        fields: dict[str, str] = {}
        while line := stream.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        if "event" not in fields:
            return self.read_event(stream)
        data = json.loads(fields["data"])
        if data.get("state") == "lost":  # on a machine so slow that a minute has passed
            return self.read_event(stream)
        return fields.get("id", ""), fields["event"], data

    def follow(self, server: Server, **headers: str) -> Any:
        connection = server.connect()
        self.addCleanup(connection.close)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", "/api/v1/events", headers=named)
        answer = connection.getresponse()
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
        self.addCleanup(answer.close)
        return answer

    def test_news_arrives_and_is_replayed(self) -> None:
        store = self.make_store()
        store.job(KEY, "gpt")
        server = self.serve("--store", str(store.path))
        # The first look makes no news; it is over when the streams have an event of a later job.
        streams = [self.follow(server) for _ in range(20)]
        store.job("00000000000a", "probe")
        with steps_of(store.path, "00000000000a"):
            for stream in streams:
                _, name, data = self.read_event(stream)
                self.assertEqual((name, data["name"]), ("job", "probe"))
        store.event(KEY, 0, HOSTILE)
        store.report(KEY, 1, "figure7")
        store.job(KEY, "gpt", state="slow")
        seen = []
        while len(seen) < 3:
            event = self.read_event(streams[0])
            if KEY in json.dumps(event[2]):
                seen.append(event)
        self.assertEqual([name for _, name, _ in seen], ["job", "event", "report"])
        self.assertEqual(seen[0][2]["state"], "slow")
        self.assertEqual(seen[1][2]["text"], HOSTILE)
        again = self.follow(server, Last_Event_ID=seen[0][0])
        self.assertEqual(self.read_event(again), seen[1])
        self.assertEqual(self.read_event(again), seen[2])
        lost = self.follow(server, Last_Event_ID="1.1")
        self.assertEqual(self.read_event(lost)[1], "gap")

    def test_too_many_streams_are_refused(self) -> None:
        server = self.serve(str(GOLDEN))
        for _ in range(128):
            self.follow(server)
        answer = server.get("/api/v1/events")
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "5"))
        self.assertEqual(server.get("/").status, 200)
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
