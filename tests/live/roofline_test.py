# SPDX-License-Identifier: Apache-2.0
"""`perftracker roofline`: real loops of torch, and the command beside them."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, ROOT, LiveTest, TorchLiveTest  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent

# Waits for its loader, 15 ms for each batch on rank 1; the rest takes less.
TRAIN = """
import os, sys, time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
ranks = int(os.environ.get("WORLD_SIZE", "1"))
if ranks > 1:
    dist.init_process_group("gloo")
slow = ranks == 1 or dist.get_rank() == 1
class Slow(Dataset):
    def __len__(self):
        return 110
    def __getitem__(self, i):
        time.sleep(0.015 if slow else 0.0001)
        return torch.ones(4)
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
loader = DataLoader(Slow(), batch_size=1)
for epoch in range(2):
    for batch in loader:
        (weight * batch).sum().backward()
        if ranks > 1:
            dist.all_reduce(weight.grad)
        optimizer.step()
print("trained", flush=True)
sys.exit(5)
"""


class Loops(TorchLiveTest):
    """All kinds of loops in one process: roofline_cases.py."""

    def test_each_kind_of_loop_is_repeated_or_refused_with_a_reason(self) -> None:
        env = {
            **self.env, "PERFTRACKER_ROOFLINE": str(self.folder),
            "PYTHONPATH": str(ROOT / "python"),
        }  # fmt: skip
        done = subprocess.run(
            [self.python, str(HERE / "roofline_cases.py")],
            capture_output=True, text=True, env=env, timeout=300,
        )  # fmt: skip
        self.assertEqual(done.returncode, 7, done.stderr)
        found = {case["name"]: case for case in map(json.loads, done.stdout.splitlines())}
        for name, case in found.items():
            with self.subTest(case=name):
                self.judge(name, case)
        self.assertEqual(len(found), 16)

    def judge(self, name: str, case: dict) -> None:
        refused = {
            "changed_late": "not from the beginning",
            "generator": "iterator",
            "too_large": "--memory",
            "by_turns": "two DataLoaders",
            "other_thread": "another thread",
        }
        lines, last = case["lines"], case["lines"][-1]
        blocks = [line.split() for line in lines if line.startswith("block ")]
        if name in refused:
            self.assertTrue(last.startswith("refused ") and refused[name] in last, last)
            self.assertEqual(case["done"], 40 if name == "other_thread" else 130)
        elif name == "no_loader":
            self.assertTrue(last.startswith("rank "), last)
        elif name == "early":
            self.assertLess(len(blocks), 12)
        else:
            self.assertEqual(last, "done")
            kinds = [block[1] for block in blocks]
            self.assertEqual(kinds, ["real", "repeated", "repeated", "real"] * 3)
            self.assertEqual({block[3] for block in blocks}, {"5"})
            # Each repeated block has 5 batches, and 3 in front of it or more.
            self.assertGreaterEqual(case["again"], 6 * 8)
        length = {"short_epochs": 17, "short_epochs_children": 30}.get(name)
        if length is not None:  # as many as without the experiment
            self.assertEqual(set(case["epochs"]), {length})
        if name == "changed":
            self.assertIn("kept 4 128 1", lines)


class Command(TorchLiveTest):
    def roofline(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "roofline", *words],
            capture_output=True, text=True, env={**self.env, **env}, timeout=300,
        )  # fmt: skip

    def test_a_slow_loader_has_its_cost_and_the_command_its_status(self) -> None:
        done = self.roofline(
            "-n",
            "60",
            "--block",
            "5",
            "--keep",
            "4",
            "--",
            self.python,
            "-c",
            TRAIN,
            TMPDIR=str(self.folder),
        )
        self.assertEqual((done.returncode, done.stdout), (5, "trained\n"))
        self.assertRegex(done.stderr, r"^Data loading costs ")
        self.assertEqual([p.name for p in self.folder.glob("perftracker-roofline-*")], [])

    def test_the_rank_whose_loader_is_slow_is_named(self) -> None:
        script = self.folder / "train.py"
        script.write_text(TRAIN)
        result = self.folder / "result.json"
        done = self.roofline(
            "-n", "60", "--block", "5", "--keep", "4", "-f", "json", "-o", str(result), "--stop",
            "--",
            self.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            str(script),
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(result.read_text())
        self.assertIn(found["verdict"], ("cost", "unclear"))  # on a busy machine
        self.assertEqual((found["world"], found["pairs"]), (2, 12))
        self.assertGreater(found["ranks"][1]["wait_ms"], 2 * found["ranks"][0]["wait_ms"])


class AnyCommand(LiveTest):
    def roofline(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "roofline", *words],
            capture_output=True, text=True, env=self.env, timeout=60,
        )  # fmt: skip

    def test_a_command_without_torch_has_no_result(self) -> None:
        done = self.roofline("--", "sh", "-c", "echo out; exit 3")
        self.assertEqual((done.returncode, done.stdout), (3, "out\n"))
        self.assertIn("The cost of data loading is not known: no process", done.stderr)
        done = self.roofline("-f", "json", "--report-to", "stdout", "--", "true")
        self.assertEqual(json.loads(done.stdout)["verdict"], "refused")

    def test_a_command_that_cannot_start_is_one_line(self) -> None:
        done = self.roofline("--", "/nonexistent/command")
        self.assertEqual(done.returncode, 127)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(self.roofline("--", "/etc/passwd").returncode, 126)

    def test_signals_reach_the_command_and_its_death_is_its_status(self) -> None:
        self.assertEqual(self.roofline("--", "sh", "-c", "kill -9 $$").returncode, 137)
        script = "trap 'exit 6' TERM; echo ready; i=0; while [ $i -lt 600 ]; do sleep .1; done"
        with subprocess.Popen(
            [PROGRAM, "roofline", "--", "sh", "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.env, text=True,
        ) as job:  # fmt: skip
            self.assertEqual(job.stdout.readline(), "ready\n")
            os.kill(job.pid, signal.SIGTERM)
            self.assertEqual(job.wait(timeout=60), 6)


if __name__ == "__main__":
    unittest.main()
