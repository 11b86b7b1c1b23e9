# SPDX-License-Identifier: Apache-2.0
"""A real training loop: it attaches by itself, is profiled on request, and ends unharmed."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import TorchLiveTest  # noqa: E402

LOOP = """
import os, sys, time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
class Numbers(Dataset):
    def __len__(self): return 10**6
    def __getitem__(self, i): return torch.ones(16) * i
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
for batch in DataLoader(Numbers(), batch_size=4, num_workers=1):
    optimizer.zero_grad(); model(batch).sum().backward(); time.sleep(0.02); optimizer.step()
    if os.path.exists(sys.argv[1]): break
print("end of the job")
sys.exit(3)
"""


class Torch(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(LOOP)
        self.end = self.folder / "end"

    def test_a_loop_is_profiled_on_request_and_keeps_its_status(self) -> None:
        with self.job("--", self.python, str(self.script), str(self.end)) as job:
            self.await_workers(1, 30)
            answer = self.ask("profile", limit_s=120)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            report = self.report("report-1.json")
            self.assertEqual(report["coverage"]["workers_analyzed"], 1)
            # A window has 5 iterations at least, of which the last may not have ended in it.
            self.assertGreaterEqual(report["job"]["iterations"], 4, report)
            self.assertGreater(report["job"]["iteration_ms"], 19, report)
            self.end.touch()
            out, err = job.communicate(timeout=120)
            self.assertEqual((out, job.returncode), (b"end of the job\n", 3), err.decode())

    def test_the_output_is_the_same_as_without_perftracker(self) -> None:
        self.end.touch()
        done = self.run_job("--", self.python, str(self.script), str(self.end), limit_s=240)
        self.assertEqual((done.stdout, done.returncode), (b"end of the job\n", 3))
