# SPDX-License-Identifier: Apache-2.0
"""The forms of `perftracker stacks`, and the tree of several processes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from support import Stacks, call  # noqa: E402


class Formats(Stacks):
    def setUp(self) -> None:
        self.ranks = [
            self.target("threads", env={**os.environ, "RANK": str(rank)}) for rank in range(3)
        ]
        self.ranks[1].send_signal(signal.SIGSTOP)
        self.pids = [process.pid for process in self.ranks]

    def output(self, *words: object) -> str:
        done = call(*words, *self.pids)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_the_tree_sets_the_stopped_rank_apart(self) -> None:
        text = self.output()
        self.assertIn("running or sleeping  @0,2|1", text)
        self.assertIn("stopped by a signal  @1|0,2", text)
        self.assertIn("rank 1, stopped by a signal, 5 threads", text)

    def test_json_has_processes_and_the_tree(self) -> None:
        found = json.loads(self.output("--format", "json"))
        self.assertEqual(found["schema"], "perftracker.stacks.v1")
        self.assertEqual([p["rank"] for p in found["processes"]], [0, 1, 2])
        nodes = found["tree"]
        states = {n["label"]: n["ranks"] for n in nodes if n["kind"] == "state"}
        self.assertEqual(states, {"running or sleeping": "0,2|1", "stopped by a signal": "1|0,2"})
        sleep = [n for n in nodes if n["label"].startswith("sleep_outer")]
        self.assertEqual(sorted(n["ranks"] for n in sleep), ["0,2|1", "1|0,2"])
        for number, node in enumerate(nodes[1:], 1):
            self.assertLess(node["parent"], number)

    def test_folded_stacks_count_threads(self) -> None:
        lines = self.output("--format", "folded").splitlines()
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines), 15)
        self.assertTrue(any(";sleep_outer (stacks_target);sleep_inner" in s for s in lines), lines)

    def test_speedscope_has_a_profile_per_process(self) -> None:
        found = json.loads(self.output("--format", "speedscope"))
        frames = found["shared"]["frames"]
        self.assertEqual(len(found["profiles"]), 3)
        for profile in found["profiles"]:
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(profile["endValue"], sum(profile["weights"]))
            for sample in profile["samples"]:
                self.assertTrue(all(0 <= index < len(frames) for index in sample))
        names = [frames[i]["name"] for i in found["profiles"][0]["samples"][0]]
        self.assertEqual(names[0], "main")

    def test_html_is_one_page_whose_policy_allows_one_script(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "stacks.html")
            self.output("--format", "html", "-o", path)
            page = path.read_text()
        script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
        assert script
        digest = hashlib.sha256(script.group(1).encode()).digest()
        self.assertIn(f"script-src 'sha256-{base64.b64encode(digest).decode()}'", page)
        self.assertEqual(page.count("<script"), 1)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))
        picture = page[page.index("<svg") : page.index("</svg>") + len("</svg>")]
        root = xml.etree.ElementTree.fromstring(picture)
        tips = [element.text for element in root.iter() if element.tag.endswith("title")]
        self.assertTrue(any(t.startswith("sleep_outer") and "@0,2|1" in t for t in tips), tips)

    def test_each_has_one_text_per_process(self) -> None:
        text = self.output("--each")
        for rank, pid in enumerate(self.pids):
            self.assertIn(f"process {pid}, rank {rank}, ", text)

    def test_without_ranks_processes_have_their_ids(self) -> None:
        plain = self.target("threads")
        text = call(plain.pid, self.pids[0]).stdout
        self.assertIn("@processes that are there", text)


if __name__ == "__main__":
    unittest.main()
