# SPDX-License-Identifier: Apache-2.0
"""The page that compares two reports: what `perftracker diff` says, of the store and of folders."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest
import zlib

from served import GOLDEN, HOSTILE, LIMIT_S, PROGRAM, Answer, Server, ServeTest, Store

KEY = "3fa9d1e0b2c4"
OTHER = "00000000000a"


def simulate(folder: pathlib.Path, scenario: str, workers: int = 8) -> list[pathlib.Path]:
    """The fingerprints of a job that never ran."""
    words = ["-s", scenario, "--level", "fingerprints", "--workers", str(workers), "-o", folder]
    subprocess.run([PROGRAM, "simulate", *words], check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("*.ptfp"))


def keep(store: Store, key: str, number: int, files: list[pathlib.Path]) -> None:
    """As the keeper does."""
    for rank, path in enumerate(files):
        data = path.read_bytes()
        store.base.execute(
            "INSERT INTO fingerprint VALUES (?, ?, ?, ?, ?)",
            (key, number, rank, len(data), zlib.compress(data)),
        )
    store.base.commit()


class Compare(ServeTest):
    def fill(self) -> tuple[Store, Server]:
        """Two windows of a job, one that keeps no fingerprints, a run's folder and another one."""
        store = self.make_store()
        store.job(KEY, HOSTILE)
        store.job(OTHER, "resnet")
        healthy = simulate(self.folder / "a", "healthy")
        slow = simulate(self.folder / "b", "python-slow")
        for number, files in ((1, healthy), (2, slow), (3, [])):
            store.report(KEY, number, "figure7")
            keep(store, KEY, number, files)
        store.report(OTHER, 0, "figure7")
        keep(store, OTHER, 0, slow)
        run = self.folder / "reports" / "run"
        run.mkdir(parents=True)
        (run / "report-3.json").write_bytes((GOLDEN / "figure7.json").read_bytes())
        (run / "fingerprints").mkdir()
        (self.folder / "a").rename(run / "fingerprints" / "3")
        plain = self.folder / "reports" / "plain"
        plain.mkdir()
        (plain / "report.json").write_bytes((GOLDEN / "many.json").read_bytes())
        return store, self.serve("--store", str(store.path), str(self.folder / "reports"))

    def ask(self, server: Server, a: str, b: str) -> Answer:
        """Asks until the comparison is done, as a browser does."""
        end = time.monotonic() + LIMIT_S
        while True:
            answer = server.get(f"/compare?a={a}&b={b}")
            if answer.status != 202:
                self.assertNotIn("Refresh", answer.headers)
                return answer
            self.assertEqual(answer.headers["Refresh"], "1")
            self.assertIn("being compared", answer.text)
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def diff(self, store: Store, a: str, b: str, form: str = "html") -> str:
        done = subprocess.run(
            [PROGRAM, "diff", "--format", form, a, b],
            check=True, capture_output=True, text=True,
            env={**os.environ, "PERFTRACKER_STORE": str(store.path)},
        )  # fmt: skip
        return done.stdout

    def ask_json(self, server: Server, a: str, b: str) -> Answer:
        end = time.monotonic() + LIMIT_S
        while True:
            answer = server.get(f"/api/v1/compare?a={a}&b={b}")
            if answer.status != 202:
                return answer
            self.assertEqual(answer.json()["state"], "comparing")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_the_api_says_what_diff_says_as_json(self) -> None:
        store, server = self.fill()
        answer = self.ask_json(server, f"{KEY}-1", f"{KEY}-2")
        self.assertEqual(answer.status, 200)
        self.assertIn("application/json", answer.headers["Content-Type"])
        self.assertEqual(
            answer.json(), json.loads(self.diff(store, f"{KEY}/1", f"{KEY}/2", "json"))
        )
        for query, status in (
            ("", 400), (f"?a={KEY}-1", 400), (f"?a={KEY}-1&b={KEY}-1", 400),
            (f"?a={KEY}-1&b={KEY}-3", 404), (f"?a=%3Cb%3E&b={KEY}-1", 404),
        ):  # fmt: skip
            wrong = server.get(f"/api/v1/compare{query}")
            self.assertEqual(wrong.status, status, query)
            self.assertEqual(sorted(wrong.json()), ["error", "help", "status"])
        store.base.execute("UPDATE fingerprint SET data = x'00' WHERE number = 2")
        store.base.commit()
        damaged = self.ask_json(server, f"{KEY}-2", f"{KEY}-1")
        self.assertEqual(damaged.status, 422)
        self.assertIn(f"{KEY}/2", damaged.json()["error"])

    def ids(self, server: Server) -> dict[str, str]:
        reports = server.get("/api/v1/reports").json()["reports"]
        return {pathlib.Path(one["file"]).parent.name: one["id"] for one in reports}

    def test_a_page_says_what_diff_says_and_links_to_both_reports(self) -> None:
        store, server = self.fill()
        page = self.ask(server, f"{KEY}-1", f"{KEY}-2")
        self.assertEqual(page.status, 200)
        self.assertIn("sandbox", page.headers["Content-Security-Policy"])
        for href in (f"/reports/{KEY}-1", f"/reports/{KEY}-2", f"/compare?a={KEY}-2&amp;b={KEY}-1"):
            self.assertIn(f'href="{href}"', page.text)
        back = re.sub(r"(?s)<style>nav\.parts.*?</nav>\n", "", page.text)
        self.assertEqual(back, self.diff(store, f"{KEY}/1", f"{KEY}/2"))
        self.assertRegex(back, r"<p class=\"word\">\w*slower")
        other = self.ask(server, f"{KEY}-2", f"{KEY}-1").text
        self.assertRegex(other, r"<p class=\"word\">\w*faster")

    def test_a_folder_and_the_store_are_compared_with_each_other(self) -> None:
        store, server = self.fill()
        page = self.ask(server, self.ids(server)["run"], f"{OTHER}-end")
        back = re.sub(r"(?s)<style>nav\.parts.*?</nav>\n", "", page.text)
        folder = str(self.folder / "reports" / "run" / "fingerprints" / "3")
        self.assertEqual(back, self.diff(store, folder, f"{OTHER}/end"))

    def test_reports_are_chosen_by_a_form_that_lists_those_with_fingerprints(self) -> None:
        _, server = self.fill()
        ids = self.ids(server)
        for path in ("/compare", "/compare?b=" + ids["run"], "/compare?a=%3Cimg%3E"):
            page = server.get(path)
            self.assertEqual(page.status, 200)
            self.assertNotIn("<img", page.text)
            found = re.findall(r'<option value="([^"]+)"', page.text)
            listed = {ids["run"], f"{KEY}-1", f"{KEY}-2", f"{OTHER}-end"}
            self.assertEqual(sorted(found), sorted([*listed, *listed]))
            self.assertIn("2 other reports: no fingerprints are kept", page.text)
            picked = re.findall(r'<option value="([^"]+)" selected', page.text)
            self.assertEqual(len(set(picked)), 1 if "a=" in path else 2, path)
            self.assertEqual("b=" in path and picked[1] != ids["run"], False)
        self.assertIn('href="/compare"', server.get("/").text)
        self.assertIn(f'href="/compare?b={KEY}-2"', server.get(f"/reports/{KEY}-2").text)

    def test_what_cannot_be_compared_is_said_with_what_to_do(self) -> None:
        store, server = self.fill()
        ids = self.ids(server)
        for a, b, status, words in (
            (f"{KEY}-1", f"{KEY}-3", 404, "keeps no fingerprints of report"),
            (ids["plain"], f"{KEY}-1", 404, "keeps no fingerprints, so it can&#39;t"),
            (f"{KEY}-1", f"{KEY}-1", 400, "are the same report"),
            (f"{KEY}-1", f"{KEY}-99", 404, "keeps no fingerprints of report"),
        ):
            answer = server.get(f"/compare?a={a}&b={b}")
            self.assertEqual(answer.status, status, answer.text)
            self.assertIn(words, answer.text.replace("&#x27;", "&#39;"))
        store.base.execute("UPDATE fingerprint SET data = x'00' WHERE number = 2")
        store.base.commit()
        answer = self.ask(server, f"{KEY}-1", f"{KEY}-2")
        self.assertEqual(answer.status, 422)
        self.assertIn(f"{KEY}/2", answer.text)
        self.assertNotIn("perftracker: ", answer.text)

    def test_diff_takes_reports_of_the_store_and_says_what_is_missing(self) -> None:
        store, _ = self.fill()
        for a, b, status, words in (
            (f"{KEY}/1", f"{KEY[:4]}/2", 0, "slower"),
            (f"{KEY}/1", f"{KEY}/3", 1, f"{KEY}/3: the store keeps no fingerprints"),
            ("none/1", f"{KEY}/2", 1, "none"),
            (f"{KEY}/1", "no/such/1", 1, "no/such/1"),
            (f"{KEY}/1", f"{KEY}/0", 1, f"{KEY}/0"),
        ):
            done = subprocess.run(
                [PROGRAM, "diff", "--store", str(store.path), a, b],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(
                words, (done.stderr or done.stdout).lower() if status == 0 else done.stderr
            )

    def test_hostile_ids_are_no_paths_options_or_commands(self) -> None:
        _, server = self.fill()
        marker = self.folder / "made"
        for word in (
            "..%2f..%2fetc%2fpasswd", "%2Fetc", "--output=" + str(marker), "-o", "$(touch%20made)",
            f"{KEY}%2F1", f"{KEY}-1;id", f"{KEY}-", "-", "%00", "a" * 5000, "%3Cscript%3E",
            f"{KEY}-01e", f"{KEY}-18446744073709551616", "%F0%9F%92%A5", "f000000000000", "latest",
            "",
        ):  # fmt: skip
            for query in (f"a={word}&b={KEY}-2", f"a={KEY}-1&b={word}"):
                answer = server.get(f"/compare?{query}")
                self.assertIn(answer.status, (400, 404), word)
                self.assertNotIn("<script>", answer.text)
        self.assertFalse(marker.exists())
        self.assertEqual(server.get("/compare", method="POST").status, 405)
        self.assertEqual(server.get("/").status, 200)

    def test_many_viewers_share_a_comparison_while_pages_are_served(self) -> None:
        _, server = self.fill()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(self.ask, server, f"{KEY}-1", f"{KEY}-2") for _ in range(8)]
            self.assertEqual(server.get("/").status, 200)
            pages = {one.result().body for one in asked}
        self.assertEqual(len(pages), 1)

    def test_a_slow_comparison_delays_no_other_page_and_ends_with_the_server(self) -> None:
        _, server = self.fill()
        files = self.folder / "reports" / "run" / "fingerprints" / "3"
        for path in list(files.glob("*.ptfp")):  # repeats, which take a while to read
            for i in range(1500):
                os.link(path, files / f"{path.stem}-{i}.ptfp")
        query = f"/compare?a={self.ids(server)['run']}&b={KEY}-2"
        self.assertEqual(server.get(query).status, 202)
        child = self.child_of(server)
        os.kill(child, signal.SIGSTOP)
        for path in ("/", f"/jobs/{KEY}", "/compare", "/api/v1/jobs"):
            self.assertEqual(server.get(path).status, 200)
        for a, b in ((f"{KEY}-1", f"{KEY}-2"), (f"{KEY}-2", f"{OTHER}-end")):
            self.assertEqual(server.get(f"/compare?a={a}&b={b}").status, 202)
        self.assertEqual(server.get(query).status, 202)
        self.assertEqual(server.end(), 0)
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())

    def test_a_folder_alone_needs_no_store(self) -> None:
        self.fill()
        server = self.serve("--store", "none", str(self.folder / "reports"))
        self.assertIn("no two reports", server.get("/compare").text)
        twin = self.folder / "reports" / "twin"
        twin.mkdir()
        document = json.loads((GOLDEN / "figure7.json").read_text(encoding="utf-8"))
        (twin / "report.json").write_text(json.dumps(document), encoding="utf-8")
        (self.folder / "b").rename(twin / "fps")
        for path in (twin / "fps").glob("*.ptfp"):
            path.rename(twin / path.name)
        server = self.serve("--store", "none", str(self.folder / "reports"))
        ids = self.ids(server)
        page = self.ask(server, ids["run"], ids["twin"])
        self.assertEqual(page.status, 200)
        self.assertIn("slower", page.text)


if __name__ == "__main__":
    unittest.main()
