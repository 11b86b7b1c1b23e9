#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures 3 to 5 of the paper on a real network: a ring of four hosts, one link cut to a third.

All links have the same rate until the network of one host is slowed down. All ranks wait as long in
the same collective then; only the paths show whose link it is.
"""

from __future__ import annotations

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import ClusterTest  # noqa: E402

USUAL, CUT = "300mbit", "100mbit"
SLOW = 2


class LinkTest(ClusterTest):
    hosts = 4

    def links(self, report: dict) -> list[dict]:
        return [f for f in report.get("findings", []) if f["cause"] == "slow-link"]

    def steps(self) -> int:
        return int((self.folder / "steps").read_text() or 0)

    def test_the_host_of_a_slow_link_is_named_and_nobody_before(self) -> None:
        for host in range(self.hosts):
            self.net.limit(host, USUAL)
        self.start("--recent", "20", train=("--width", "768", "--read-ms", "0"))
        self.await_steps()
        for path in (self.folder / "out0").glob("report*.json"):
            self.assertEqual(self.links(self.report(path.name)), [], path.read_text())
        # A slowdown in the iterations right behind a check-up may have begun in it.
        begin = self.steps()
        self.until("ten iterations", lambda: self.steps() > begin + 10)
        self.net.limit(SLOW, CUT)
        self.until("a slow link", lambda: bool(self.links(self.report())))
        self.end_job()
        report = self.report()
        self.assertEqual(report["findings"][0]["cause"], "slow-link", report)
        (finding,) = self.links(report)
        self.assertEqual((finding["ranks"], finding["hosts"]), (str(SLOW), f"gpu-{SLOW}"))
        self.assertGreater(finding["gain_pct"], 25)
        self.assertRegex(
            "\n".join(finding["evidence"]), r"eth0 of gpu-\d sends to gpu-\d .* at \d+ Mbit/s"
        )


if __name__ == "__main__":
    unittest.main()
