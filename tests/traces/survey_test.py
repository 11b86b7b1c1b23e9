# SPDX-License-Identifier: Apache-2.0
"""The survey's limits: no innocent rank is accused, and no fault is overlooked as healthy."""

from __future__ import annotations

import unittest

import real
import survey


class Survey(unittest.TestCase):
    def test_no_answer_is_wrong_or_overlooks_a_fault(self) -> None:
        table = survey.survey()
        self.assertGreater(sum(map(len, table.values())), 200)
        for way, row in table.items():
            for case, judgment, answer in row:
                with self.subTest(way=way, case=case.name):
                    self.assertNotIn(judgment, ("healthy", "wrong"), answer)


if __name__ == "__main__":
    real.skip_without_traces()
    unittest.main()
