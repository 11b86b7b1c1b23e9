# SPDX-License-Identifier: Apache-2.0
"""A job that other processes make slow: a stall window opens, and the report has who and why."""

from __future__ import annotations

import json
import pathlib
import platform
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import QUICK, RANKS, TorchLiveTest  # noqa: E402

LOOP = """
import ctypes, mmap, os, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)

# In small pages, so that reading the memory map takes milliseconds.
kept = mmap.mmap(-1, int(sys.argv[2]) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
kept.madvise(mmap.MADV_NOHUGEPAGE)
ctypes.memset((ctypes.c_char * len(kept)).from_buffer(kept), 1, len(kept))

def tokenize():
    for _ in range(40):
        with mmap.mmap(-1, 262144) as memory:
            memory[0] = 1

end = torch.zeros(1)
while not end:
    time.sleep(0.02)
    if dist.get_rank() == 1:
        tokenize()
    optimizer.zero_grad()
    model(torch.ones(4, 16)).sum().backward()
    optimizer.step()
    end[0] = float(os.path.exists(sys.argv[1]))
    dist.all_reduce(end)
dist.destroy_process_group()
"""

READER = """
import sys
while True:
    with open(f"/proc/{sys.argv[1]}/smaps", "rb") as file:
        file.read()
"""
MEBIBYTES = 512
# Reads of smaps no longer block from some later kernel on.
LAST_KERNEL_SEEN = (6, 18)
NOTE = "stall window after this report: "


class StallHunt(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(LOOP)
        self.reader = self.folder / "smaps_reader.py"
        self.reader.write_text(READER)
        self.end = self.folder / "end"

    def read_maps_of(self, pid: int) -> None:
        process = subprocess.Popen([sys.executable, str(self.reader), str(pid)])
        self.addCleanup(process.wait)
        self.addCleanup(process.send_signal, signal.SIGKILL)

    def read(self, path: pathlib.Path) -> dict:
        """Empty: not complete yet."""
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):
            return {}

    def notes(self) -> list[str]:
        """What stall windows added to any report."""
        lines: list[str] = []
        for path in self.out.glob("report-*.json"):
            report = self.read(path)
            lines += report.get("notes") or []
            for finding in report.get("findings") or []:
                lines += finding["evidence"]
        return [line for line in lines if line.startswith(NOTE)]

    def explained(self) -> list[tuple[str, dict | None]]:
        """Of findings: the line on the share that stalls explain, and its fields."""
        found = []
        for path in self.out.glob("report-*.json"):
            for finding in self.read(path).get("findings") or []:
                lines = [line for line in finding["evidence"] if "stalls explain " in line]
                found += [(lines[0], finding.get("stalls_explain"))] if lines else []
        return found

    def stalls(self) -> list[dict]:
        windows = [self.read(path) for path in self.out.glob("stalls-*.json")]
        return [window for window in windows if window]

    def locks(self) -> list[dict]:
        every = [one for window in self.stalls() for one in window["findings"]]
        return [one for one in every if one["cause"] == "mmap_lock"]

    def skip_if_unseen(self) -> None:
        """Where the kernel does not show who held a lock, or reads smaps without it."""
        for window in self.stalls():
            if "wakers" not in window["sources"]:
                self.skipTest(f"not permitted here: {window['not_seen']}")
        if tuple(map(int, platform.release().split(".")[:2])) > LAST_KERNEL_SEEN:
            self.skipTest(f"kernel {platform.release()} reads smaps without the lock")

    def test_who_reads_the_memory_map_of_a_slow_rank_is_named_in_its_report(self) -> None:
        command = (self.python, RANKS, "2", str(self.script), str(self.end), str(MEBIBYTES))
        with self.job(*QUICK, "--no-audit", "--", *command) as job:
            workers = self.await_workers(2, 40)
            self.read_maps_of(next(one["pid"] for one in workers if one["rank"] == 1))
            deadline = time.monotonic() + 240
            while time.monotonic() < deadline and job.poll() is None:
                if any("smaps_reader.py" in line for line in self.notes()):
                    break
                time.sleep(0.2)
            locks, notes = self.locks(), self.notes()
        if not locks:
            self.skip_if_unseen()
        self.assertTrue(locks, (notes, self.stalls()))
        self.assertTrue(any("smaps_reader.py" in one["culprits"][0]["command"] for one in locks))
        told = [line for line in notes if "smaps_reader.py" in line]
        self.assertTrue(told, notes)
        self.assertIn("memory map", told[0])
        shares = [line for line in notes if "stalls explain " in line]
        self.assertTrue(shares, notes)
        self.assertIn("is not explained", shares[0])
        for line, fields in self.explained():
            self.assertIsNotNone(fields, line)
            whole_pct = fields["explained_pct"] + fields["unexplained_pct"]
            self.assertAlmostEqual(whole_pct, 100, delta=0.01)  # both are rounded
            self.assertIn(f"{fields['explained_pct']:.0f} %", line)
            self.assertEqual(fields["bound"], "at most" in line)
