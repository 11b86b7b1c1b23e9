# SPDX-License-Identifier: Apache-2.0
"""The timeline of a report: a page, JSON and a file, of what the report's folder keeps."""

from __future__ import annotations

import functools
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any

from served import GOLDEN, HOSTILE, LIMIT_S, PROGRAM, ROOT, Answer, Server, ServeTest

sys.path.insert(0, str(ROOT / "src" / "report"))
import schema_check  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "timebins-schema.json").read_text(encoding="utf-8"))
SLOW = "model.py(143): forward"


@functools.cache
def made(name: str) -> tempfile.TemporaryDirectory[str]:
    """Traces of four ranks, one of them slow in a function of this name, and their report."""
    kept = tempfile.TemporaryDirectory(prefix="pt-serve-")
    folder = pathlib.Path(kept.name)
    subprocess.run(
        [PROGRAM, "simulate", "-s", "python-slow-one", "--workers", "4", "-o", str(folder)],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    quoted = json.dumps(name)[1:-1]
    for path in folder.glob("rank*.json.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        text = text.replace(SLOW, quoted)
        path.write_bytes(gzip.compress(text.encode(), 1))
    subprocess.run(
        [PROGRAM, "analyze", "--format", "json", "-o", "report.json", "."], check=True, cwd=folder
    )
    return kept


def traced(folder: pathlib.Path, name: str = SLOW) -> pathlib.Path:
    shutil.copytree(made(name).name, folder)
    return folder / "report.json"


def change(report: pathlib.Path, **more: Any) -> None:
    document = json.loads(report.read_text(encoding="utf-8"))
    report.write_text(json.dumps({**document, **more}), encoding="utf-8")


class Timeline(ServeTest):
    def ask(self, server: Server, path: str) -> Answer:
        """Asks until it is drawn, as a browser does."""
        end = time.monotonic() + LIMIT_S
        while True:
            answer = server.get(path)
            if answer.status != 202:
                self.assertNotIn("Refresh", answer.headers)
                return answer
            self.assertEqual(answer.headers["Refresh"], "1")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def begin(self, name: str = SLOW, **more: Any) -> tuple[Server, str]:
        report = traced(self.folder / "run", name)
        if more:
            change(report, **more)
        return self.open()

    def open(self) -> tuple[Server, str]:
        server = self.serve("--store", "none", str(self.folder))
        return server, server.get("/api/v1/reports").json()["reports"][0]["id"]

    def test_the_page_has_all_ranks_and_marks_the_culprit_without_a_script(self) -> None:
        server, report = self.begin()
        page = self.ask(server, f"/reports/{report}/timeline")
        self.assertEqual(page.status, 200)
        self.assertLess(len(page.body), 1_000_000)
        self.assertIn("require-trusted-types-for", page.headers["Content-Security-Policy"])
        self.assertEqual(page.headers["Cross-Origin-Opener-Policy"], "same-origin-allow-popups")
        for rank in range(4):
            self.assertIn(f"rank {rank} ", page.text)
        self.assertEqual(page.text.count('class="rank bad"'), 1)
        self.assertIn('<rect class="t-bad"', page.text)
        words = f"<b>◆ <bdi>{re.escape(SLOW)}</bdi> [0-9.]+ ms in \\d+</b>"
        self.assertIsNotNone(re.search(words, page.text))
        self.assertNotIn("https://ui.perfetto.dev/", page.text)
        other = server.get(f"/reports/{report}")
        self.assertIn(f"/reports/{report}/timeline", other.text)
        self.assertEqual(other.headers["Cross-Origin-Opener-Policy"], "same-origin")

    def test_links_zoom_and_move_and_the_address_is_the_part(self) -> None:
        server, report = self.begin()
        page = self.ask(server, f"/reports/{report}/timeline").text
        moves = dict(
            (words, (int(first), int(last)))
            for first, last, words in re.findall(
                r"timeline\?from=(\d+)&amp;to=(\d+)\">([^<]+)</a>", page
            )
        )
        first, last = re.search(r'data-from="(\d+)" data-to="(\d+)"', page).groups()
        width = int(last) - int(first)
        self.assertAlmostEqual(moves["Zoom in"][1] - moves["Zoom in"][0], width / 2, delta=2)
        inside = self.ask(server, "/reports/{}/timeline?from={}&to={}&ranks=1".format(
            report, *moves["Zoom in"]))  # fmt: skip
        self.assertIn('data-from="{}" data-to="{}"'.format(*moves["Zoom in"]), inside.text)
        self.assertIn("&amp;ranks=1", inside.text)
        self.assertNotIn("rank 0 ", inside.text)
        one = self.ask(server, f"/api/v1/reports/{report}/timeline?ranks=1,3").json()
        self.assertEqual([rank["rank"] for rank in one["ranks"]], [1, 3])

    def test_the_api_is_as_its_schema_says_and_flags_what_the_finding_names(self) -> None:
        server, report = self.begin()
        found = self.ask(server, f"/api/v1/reports/{report}/timeline").json()
        self.assertEqual(list(schema_check.check(SCHEMA, found, SCHEMA)), [])
        document = server.get(f"/api/v1/reports/{report}").json()
        culprit = int(document["findings"][0]["ranks"])
        marked = 0
        for rank in found["ranks"]:
            self.assertEqual(rank["flagged"], rank["rank"] == culprit)
            for row in rank["rows"]:
                end = 0
                for column, count, name, _category, level, flagged in row["spans"]:
                    self.assertGreaterEqual(column, end)
                    self.assertIn(level, (1, 2, 3, 4))
                    end = column + count
                    if found["names"][name] == SLOW:
                        self.assertEqual(flagged, rank["rank"] == culprit)
                        marked += flagged
                self.assertLessEqual(end, found["columns"])
        self.assertIsNotNone(found["window"])
        self.assertGreater(marked, 0)

    def test_the_whole_timeline_comes_as_a_file_for_perfetto(self) -> None:
        server, report = self.begin()
        answer = self.ask(server, f"/reports/{report}/timeline/trace")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Content-Type"], "application/gzip")
        self.assertEqual(
            answer.headers["Content-Disposition"],
            f'attachment; filename="timeline-{report}.json.gz"',
        )
        trace = json.loads(gzip.decompress(answer.body))
        names = {event.get("name") for event in trace["traceEvents"]}
        self.assertIn(SLOW, names)

    def test_names_made_of_markup_stay_text(self) -> None:
        server, report = self.begin(HOSTILE)
        for path in (f"/reports/{report}/timeline", f"/reports/{report}/timeline?ranks=0-3"):
            page = self.ask(server, path)
            self.assertEqual(page.status, 200)
            self.assertNotIn("<img", page.text)
            self.assertNotIn("\u202e", page.text)
            self.assertIn("&lt;img src=x", page.text)
            self.assertEqual(page.text.count("<script"), 2)

    def test_a_report_without_traces_says_so_and_what_to_do(self) -> None:
        report = traced(self.folder / "run")
        for path in report.parent.glob("rank*"):
            path.unlink()
        server, name = self.open()
        page = self.ask(server, f"/reports/{name}/timeline")
        self.assertEqual(page.status, 422)
        for words in ("keeps no traces", "--keep-traces", "no flight recorders"):
            self.assertIn(words, page.text)
        answer = self.ask(server, f"/api/v1/reports/{name}/timeline")
        self.assertEqual(answer.status, 422)
        self.assertIn("keep-traces", answer.json()["help"])
        self.assertEqual(self.ask(server, f"/reports/{name}/timeline/trace").status, 422)

    def test_records_of_another_time_are_not_shown_as_the_reports(self) -> None:
        report = traced(self.folder / "run")
        origin = json.loads(report.read_text(encoding="utf-8"))["origin"]
        origin["window_begin"] = "2020-01-01T00:00:00.000Z"
        origin["window_end"] = "2020-01-01T00:00:20.000Z"
        change(report, origin=origin)
        server, name = self.open()
        page = self.ask(server, f"/reports/{name}/timeline")
        self.assertIn("Nothing of this report's window is kept", page.text)
        self.assertNotIn('class="t-bad"', page.text)
        link = re.search(r"timeline\?from=\d+&amp;to=\d+", page.text).group(0)
        shown = self.ask(server, f"/reports/{name}/" + link.replace("&amp;", "&"))
        self.assertIn("rank 0 ", shown.text)

    def test_a_report_leads_to_no_file_outside_of_its_folder(self) -> None:
        secret = self.folder / "outside.json.gz"
        traced(self.folder / "other").unlink()
        (self.folder / "other" / "rank0.json.gz").rename(secret)
        sources = (
            str(secret),
            "../outside.json.gz",
            "link.json.gz",
            "/etc/passwd",
            "-o",
            "x#1",
            "",
        )
        for i, source in enumerate(sources):
            report = self.folder / f"run{i}" / "report.json"
            report.parent.mkdir()
            report.write_bytes((GOLDEN / "figure7.json").read_bytes())
            (report.parent / "link.json.gz").symlink_to(secret)
            workers = json.loads(report.read_text(encoding="utf-8"))["workers"]
            change(report, workers=[{**worker, "source": source} for worker in workers[:1]])
        server = self.serve("--store", "none", str(self.folder))
        reports = server.get("/api/v1/reports").json()["reports"]
        self.assertEqual(len(reports), len(sources))
        for report in reports:
            page = self.ask(server, f"/reports/{report['id']}/timeline")
            self.assertEqual(page.status, 422, report["file"])
            self.assertNotIn("rank 0 ", page.text)

    def test_hostile_ids_and_parts_are_no_paths_options_or_commands(self) -> None:
        server, report = self.begin()
        marker = self.folder / "made"
        for word in (
            "..%2f..%2fetc%2fpasswd", "%2Fetc", f"--output={marker}", "-o", "$(touch%20made)", "-",
            "%00", "a" * 5000, "%3Cscript%3E", f"{report}%2F..", "f000000000000", "latest",
        ):  # fmt: skip
            for path in (f"/reports/{word}/timeline", f"/reports/{word}/timeline/trace",
                         f"/api/v1/reports/{word}/timeline"):  # fmt: skip
                answer = server.get(path)
                self.assertIn(answer.status, (400, 404, 414, 431), path)
                if answer.headers["Content-Type"].startswith("text/html"):
                    self.assertNotIn(b"<script>", answer.body)
        for query in (
            "from=x", "to=-1", "from=5&to=5", "from=9&to=3", "to=99999999999999999999",
            "ranks=x", "ranks=-1", "ranks=%3Cimg%3E", "ranks=" + "1," * 3000, "ranks=0-99999999",
        ):  # fmt: skip
            answer = server.get(f"/reports/{report}/timeline?{query}")
            self.assertIn(answer.status, (400, 414, 431), query)
            self.assertNotIn("<img", answer.text)
        self.assertEqual(server.get(f"/reports/{report}/timeline", method="POST").status, 405)
        self.assertFalse(marker.exists())

    def test_a_slow_timeline_delays_no_other_page_and_ends_with_the_server(self) -> None:
        report = traced(self.folder / "run")
        trace = report.parent / "rank0.json.gz"
        text = gzip.decompress(trace.read_bytes())  # blanks, which take a while to read
        trace.write_bytes(gzip.compress(text.replace(b"\n", b"\n" + b" " * 4000), 1))
        server, name = self.open()
        self.assertEqual(server.get(f"/reports/{name}/timeline").status, 202)
        child = self.child_of(server)
        os.kill(child, signal.SIGSTOP)
        for path in ("/", f"/reports/{name}", "/api/v1/reports"):
            self.assertEqual(server.get(path).status, 200)
        self.assertEqual(server.get(f"/reports/{name}/timeline").status, 202)
        self.assertEqual(server.get(f"/reports/{name}/timeline?from=1&to=1000").status, 202)
        self.assertEqual(server.end(), 0)
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())

    def test_the_timeline_of_a_run_is_that_of_its_window(self) -> None:
        """A run's folder: recorders of two windows, one rank each, of which the report has one."""
        samples = pathlib.Path(PROGRAM).resolve().parents[1] / "report" / "timeline_test"
        if not samples.exists():
            self.skipTest(f"{samples} is not built")
        run = self.folder / "run"
        (run / "traces").mkdir(parents=True)
        subprocess.run([samples, "--write", run / "traces"], check=True, stdout=subprocess.DEVNULL)
        for path in list((run / "traces").glob("rank*.flight")):
            rank = path.stem.removeprefix("rank")
            (run / "traces" / f"{rank}-1.flight").write_bytes(path.read_bytes())
            path.rename(run / "traces" / f"{rank}-2.flight")
        (run / "report-2.json").write_bytes((GOLDEN / "figure7.json").read_bytes())
        change(run / "report-2.json", workers=[], findings=[])
        server, name = self.open()
        found = self.ask(server, f"/api/v1/reports/{name}/timeline").json()
        self.assertEqual(list(schema_check.check(SCHEMA, found, SCHEMA)), [])
        self.assertEqual([rank["rank"] for rank in found["ranks"]], [0, 1])
        rows = {row["name"] for row in found["ranks"][0]["rows"]}
        self.assertIn("iterations", rows)
        self.assertIn("collectives", rows)


if __name__ == "__main__":
    unittest.main()
