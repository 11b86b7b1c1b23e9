# SPDX-License-Identifier: Apache-2.0
"""`perftracker run --webhook`: real HTTP servers that answer, refuse, stay silent or hang up."""

from __future__ import annotations

import contextlib
import http.server
import json
import pathlib
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import QUICK, LiveTest  # noqa: E402

TOKEN = "0123456789abcdef"


class Server(http.server.ThreadingHTTPServer):
    """Answers each request with the next of its statuses, the last one for ever."""

    daemon_threads = True

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.taken = list(statuses), []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), json.loads(body)))
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def rude_port(stack: contextlib.ExitStack, hang_up: bool) -> int:
    """A server that says nothing: it hangs up at once, or never."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    kept = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                kept.append(listener.accept()[0])
                if hang_up:
                    kept.pop().close()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


class Webhook(LiveTest):
    def write(self, text: str, mode: int = 0o600) -> str:
        path = self.folder / "hooks"
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def test_reports_get_through_and_rude_servers_do_not_hold_the_job(self) -> None:
        token = self.folder / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        with contextlib.ExitStack() as stack:
            busy = stack.enter_context(Server(503, 200))
            refusing = stack.enter_context(Server(403))
            slack = stack.enter_context(Server(200))
            closed = socket.create_server(("127.0.0.1", 0))
            gone = closed.getsockname()[1]
            closed.close()
            rude = [rude_port(stack, hang_up) for hang_up in (True, False)]
            hooks = self.write(
                f"url http://127.0.0.1:{busy.server_port}/alerts?key=s3cret\n"
                f"format alertmanager\ntoken-file {token}\n"
                f"url http://127.0.0.1:{refusing.server_port}/\n"
                f"url http://127.0.0.1:{slack.server_port}/\nformat slack\nwhen all\n"
                + "".join(f"url http://127.0.0.1:{port}/\n" for port in (gone, *rude))
            )
            fake = ("--slow-at", "80", "--iterations", "130", *self.until_report())
            done = self.run_job(
                *QUICK,
                "--no-checkup",
                "--job-name",
                "gpt",
                "--webhook",
                hooks,
                *self.fake(*fake),
                limit_s=120,
            )
        log = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (0, b"job done\n"), log)
        report = self.report("report-1.json")
        # The busy server took the same report twice, the second time for good.
        self.assertEqual(busy.taken[0], busy.taken[1])
        path, headers, (alert,) = busy.taken[0]
        self.assertEqual(
            (path, headers["Authorization"]), ("/alerts?key=s3cret", f"Bearer {TOKEN}")
        )
        self.assertEqual(alert["labels"]["cause"], report["findings"][0]["cause"])
        self.assertEqual(alert["labels"]["job_name"], "gpt")
        # What will not help is not tried again; what might, is, and is given up at the end.
        bad = [body for _, _, body in refusing.taken]
        self.assertEqual(len(bad), len({body["report"] for body in bad}))
        self.assertEqual(bad[0]["schema"], "perftracker.webhook.v1")
        self.assertIn("job gpt on ", slack.taken[0][2]["text"])
        self.assertNotIn("Authorization", slack.taken[0][1])
        self.assertIn('tries=1 why="the server answered 403"', log)
        for port in (gone, *rude):
            self.assertRegex(log, rf"event=webhook-(fails|late) to=http://127.0.0.1:{port} ")
        self.assertNotIn("s3cret", log)
        self.assertNotIn(TOKEN, log)

    def test_a_wrong_file_is_an_error_before_the_job_starts(self) -> None:
        for text, mode, why in (
            ("url ftp://a/\n", 0o600, "hooks:1: expected an http:// or https:// URL"),
            ("url https://a/\n", 0o644, "others can read it"),
        ):
            done = self.run_job("--webhook", self.write(text, mode), "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(why, done.stderr.decode())
