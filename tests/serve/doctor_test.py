# SPDX-License-Identifier: Apache-2.0
"""The page of doctor: what `perftracker doctor` says of the server's host, and settings."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import time
import unittest

from served import HOSTILE, LIMIT_S, ROOT, Answer, Server, ServeTest

sys.path.insert(0, str(ROOT / "src" / "report"))
import schema_check  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "doctor-schema.json").read_text(encoding="utf-8"))


class Doctor(ServeTest):
    def ask(self, server: Server, path: str) -> Answer:
        end = time.monotonic() + LIMIT_S
        while (answer := server.get(path)).status == 202:
            self.assertEqual(answer.headers["Refresh"], "1")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        return answer

    def begin(self, **env: str) -> Server:
        bare = self.folder / "bin"  # no Python, whose start takes seconds
        bare.mkdir(exist_ok=True)
        store = self.make_store()
        store.job("3fa9d1e0b2c4", "llama", host="node9")
        store.job("00000000000a", "resnet", host=HOSTILE)
        return self.serve(
            "--store", str(store.path), str(self.folder), env={"PATH": str(bare), **env}
        )

    def test_nothing_starts_before_a_click_and_then_all_checks_are_shown(self) -> None:
        server = self.begin()
        page = server.get("/doctor")
        self.assertEqual(page.status, 200)
        self.assertIn("Check this host", page.text)
        self.assertNotIn('id="check-', page.text)
        self.assertIn("node9", page.text)
        self.assertNotIn("<img", page.text)
        page = self.ask(server, "/doctor?now=1")
        self.assertEqual(page.status, 200)
        self.assertNotIn("<img", page.text)
        said = self.ask(server, "/api/v1/doctor").json()
        self.assertEqual(list(schema_check.check(SCHEMA, said, SCHEMA)), [])
        for check in said["checks"]:
            self.assertIn(f'id="check-{check["id"]}"', page.text)
        python = next(check for check in said["checks"] if check["id"] == "python")
        self.assertNotEqual(python["state"], "ok")
        self.assertFalse(said["fit"])
        self.assertIn("is missing or fails", page.text)
        self.assertIn('href="/doctor"', server.get("/").text)

    def test_settings_say_where_they_come_from_and_show_no_password(self) -> None:
        server = self.begin(
            PERFTRACKER_MIN_GAP="33",
            PERFTRACKER_STORE="postgresql://ann:secret1@host/db?password=secret2&x=1",
        )
        page = self.ask(server, "/doctor?now=1").text
        row = page[page.index(">min-gap<") :]
        row = row[: row.index("</tr>")]
        self.assertIn('<td data-name="Value">33</td>', row)
        self.assertIn('<td data-name="From">PERFTRACKER_MIN_GAP</td>', row)
        row = page[page.index(">hub<") :]
        self.assertIn("MPI, ...</td>", row[: row.index("</tr>")])
        self.assertIn('<td data-name="From">default</td>', row[: row.index("</tr>")])
        self.assertIn("postgresql://", page)
        self.assertNotIn("secret1", page)
        self.assertNotIn("secret2", page)

    def test_a_slow_check_delays_no_other_page_and_ends_with_the_server(self) -> None:
        server = self.begin()
        self.assertEqual(server.get("/doctor?now=1").status, 202)
        child = self.child_of(server)
        os.kill(child, signal.SIGSTOP)
        for path in ("/", "/doctor", "/hosts"):
            self.assertEqual(server.get(path).status, 200)
        self.assertEqual(server.get("/api/v1/doctor").status, 202)
        self.assertEqual(server.end(), 0)
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())


if __name__ == "__main__":
    unittest.main()
