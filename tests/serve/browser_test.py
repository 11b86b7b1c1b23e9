# SPDX-License-Identifier: Apache-2.0
"""The pages in a real Chromium: looks, keyboard, no foreign request, a policy that holds, news.

Needs node, chromium, and in PERFTRACKER_PLAYWRIGHT a folder node_modules with playwright-core, and
axe-core for accessibility; skipped without. PERFTRACKER_SHOTS names a folder for screenshots.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import threading
import time
import unittest

from compare_test import keep, simulate
from served import GOLDEN, HOSTILE, LIMIT_S, SECOND, STACKS, Server, ServeTest, now_ns
from timeline_test import traced

MODULES = os.environ.get("PERFTRACKER_PLAYWRIGHT", "")
CHROMIUM = os.environ.get("PERFTRACKER_CHROMIUM", "/usr/bin/chromium")
HERE = pathlib.Path(__file__).resolve().parent
KEY = "3fa9d1e0b2c4"
FOUND = os.path.isdir(f"{MODULES}/playwright-core") and os.access(CHROMIUM, os.X_OK)


def report_of(server: Server, name: str) -> str:
    reports = server.get("/api/v1/reports").json()["reports"]
    return next(one["id"] for one in reports if one["file"].endswith("/" + name))


@unittest.skipUnless(FOUND and shutil.which("node"), "needs node, chromium and playwright-core")
class Browser(ServeTest):
    def test_pages_in_a_real_browser(self) -> None:
        store = self.make_store()
        store.job(KEY, "llama", state="slow", verdict="abnormal", reason=HOSTILE)
        store.job("00000000000a", "resnet", ended_ns=now_ns(), exit_status=1, verdict="failed")
        store.job("00000000000b", HOSTILE, seen_ns=now_ns() - 600 * SECOND)
        store.report(KEY, 1, "hostile", hosts=f"node7,{HOSTILE}")
        store.report(KEY, 2, "figure7", hosts="node7", more=STACKS)
        store.event(KEY, 0, HOSTILE)
        store.pace(KEY, 120)
        traced(self.folder / "traced", HOSTILE)
        server = self.serve("--store", str(store.path), str(GOLDEN), str(self.folder / "traced"))
        reports = server.get("/api/v1/reports").json()["reports"]
        plain = next(one["id"] for one in reports if one["file"].endswith("many.json"))
        paths = ["/", f"/jobs/{KEY}", "/hosts", f"/reports/{KEY}-1", f"/reports/{plain}"]
        for number, scenario in ((1, "healthy"), (2, "python-slow")):
            keep(store, KEY, number, simulate(self.folder / scenario, scenario))
        compared = f"/compare?a={KEY}-1&b={KEY}-2"
        while server.get(compared).status == 202:
            time.sleep(0.1)
        paths += ["/compare", compared]
        # A report that has its traces, of one with hostile names; a host that was checked.
        timeline = f"/reports/{report_of(server, 'report.json')}/timeline"
        checked = "/doctor?now=1"
        paths += [timeline, checked, f"/reports/{KEY}-2/flame?function=main"]
        for path in (timeline, checked):
            while server.get(path).status == 202:
                time.sleep(0.1)
        paths.append(f"/reports/{KEY}-2/flame")
        browser = subprocess.Popen(
            ["node", str(HERE / "browser.cjs"), server.url.rstrip("/"), *paths],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PERFTRACKER_CHROMIUM": CHROMIUM},
        )  # fmt: skip
        self.addCleanup(browser.kill)
        limit = threading.Timer(4 * LIMIT_S, browser.kill)
        limit.start()
        self.addCleanup(limit.cancel)
        assert browser.stdout is not None
        self.addCleanup(browser.stdout.close)
        said = ""
        for line in browser.stdout:
            said = line
            if line.strip() == "ready":  # the page is open, and shows what comes now
                store.job("00000000000c", "arrived")
        found = json.loads(said)
        self.assertNotIn("failed", found)
        self.assertEqual(found["wrong"], [])
        self.assertEqual(found["axe"], [])
        read = found["read"]
        self.assertEqual((read["first"], read["slash"]), ("skip", "filter"))
        self.assertEqual((read["address"], read["typed"]), ("?filter=resnet", "resnet"))
        self.assertEqual(read["job"], "resnet - PerfTracker")
        self.assertIn("input data", read["plain"])
        # Search by "/", a hit by Enter, zoom by Enter on a box and back by Escape.
        self.assertEqual((read["search"], read["hits"]), ("INPUT", True))
        self.assertTrue(read["zoomed"])
        self.assertTrue(read["back"])
        # The timeline: W halves the part, D moves it, dragging zooms, and the focus stays.
        self.assertTrue(read["link"])
        self.assertAlmostEqual(read["nearer"], 0.5, delta=0.01)
        self.assertTrue(read["part"] and read["kept"] and read["moved"] and read["returned"])
        self.assertAlmostEqual(read["dragged"], 0.2 * 1040 / 832, delta=0.02)
        # Nothing foreign is asked before the click; then a window is given the compressed file.
        self.assertEqual((read["foreign"], read["given"]), (0, "got 31,139"))


if __name__ == "__main__":
    unittest.main()
