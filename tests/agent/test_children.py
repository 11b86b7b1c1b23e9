# SPDX-License-Identifier: Apache-2.0
"""The children of a DataLoader, whose stacks the training process reads. As test_hook.py."""

import os
import sys
import unittest
from typing import List, Set

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import daemon as d  # noqa: E402
import recorder as r  # noqa: E402
from test_hook import TORCH, HookTest  # noqa: E402

# By multiprocessing's start method: rows of the data set, and how many children are to be seen.
METHODS = {"fork": (32, 6), "spawn": (400, 2), "forkserver": (400, 2)}


@unittest.skipUnless(TORCH, "no Python with torch (PERFTRACKER_PYTHON)")
class ChildrenTest(HookTest):
    def check(self, method: str) -> None:
        rows, wanted = METHODS[method]
        stacks: List[List[str]] = []
        children: Set[int] = set()

        def seen(worker: d.Worker) -> bool:
            recorder = r.Recorder(worker)
            found = recorder.samples(r.CHILD)
            stacks[:] = [recorder.stack(sample.extra) for sample in found]
            children.update(sample.tid for sample in found)
            return sum("read_labels" in stack for stack in stacks) > 3 and len(children) >= wanted

        worker = self.run_until(seen, method, rows, job="children.py")
        self.assertNotIn(worker.hello.pid, children)
        slow = next(stack for stack in stacks if "read_labels" in stack)
        names = [name.rsplit(".", 1)[-1] for name in slow]
        below = names[names.index("_worker_loop") + 1 :]
        self.assertEqual(below[-2:], ["collate_slowly", "read_labels"])
        self.assertEqual("spawn_main" in names, method == "spawn", names)

    def test_forked_ones_are_looked_at_while_the_rank_waits_for_them(self) -> None:
        self.check("fork")

    def test_spawned_ones_too(self) -> None:
        self.check("spawn")

    def test_those_of_a_fork_server_too(self) -> None:
        self.check("forkserver")

    def test_those_that_ended_leave_nothing_open(self) -> None:
        looks: List[int] = []

        def ended(worker: d.Worker) -> bool:
            looks.append(len(r.Recorder(worker).samples(r.CHILD)))
            return worker.step() > 8 * 20

        self.run_until(ended, job="children.py")
        self.assertGreater(looks[-1], 0)
        # Two children in each of twenty epochs; threads of the process come and go with them.
        self.assertLess(self.printed[1], 10)


if __name__ == "__main__":
    unittest.main()
