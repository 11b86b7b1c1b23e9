# SPDX-License-Identifier: Apache-2.0
"""`perftracker attach` on real jobs that were started without PerfTracker."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from live import PROGRAM, TorchLiveTest, children  # noqa: E402

TRAIN = """
import os, signal, sys, threading, time, torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
folder, fault, victim, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
rank = int(os.environ.get("RANK", "0"))
if "RANK" in os.environ: dist.init_process_group("gloo")
hurt = rank == victim
class Data(Dataset):
    def __len__(self): return 10**8
    def __getitem__(self, i): return torch.full((64,), float(i % 7))
def read_shard(): time.sleep(0.1 if fault == "loader" and hurt else 0)
def collate(samples): read_shard(); return torch.stack(samples)
def fetch_remote(): time.sleep(0.1)
def wait_for_ever(): threading.Event().wait()
model = torch.nn.Linear(64, 64)
if dist.is_initialized(): model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
loader = DataLoader(Data(), 4, sampler=range(10**8), num_workers=workers, collate_fn=collate)
batches = iter(lambda: torch.ones(4, 64), None) if fault == "loaderless" else loader
total = 0.0
for n, x in enumerate(batches):
    if fault == "loaderless" and hurt: fetch_remote()
    time.sleep(0.02)
    optimizer.zero_grad(); loss = model(x).pow(2).sum(); loss.backward(); optimizer.step()
    total += loss.item()
    if n == 5: open(f"{folder}/begun{rank}", "w").close()
    if fault == "hang" and hurt and n == 5: wait_for_ever()
    # All ranks end in the same iteration.
    end = torch.tensor(float(os.path.exists(folder + "/end")))
    if n % 10 == 9 and dist.is_initialized(): dist.broadcast(end, 0)
    if n % 10 == 9 and end > 0: break
print("ended after", n, flush=True)
"""


class Outside(TorchLiveTest):
    def setUp(self) -> None:
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(TRAIN)

    def probe(self, pid: int) -> None:
        """Skips the test where the kernel does not let one process of a user read another one."""
        probe = self.ask("stacks", str(pid))
        if probe.returncode != 0 and "ptrace" in probe.stderr:
            self.skipTest(probe.stderr.strip())

    @contextlib.contextmanager
    def train(
        self, fault: str, *, victim: int = 1, workers: int = 0, ranks: int = 3
    ) -> Iterator[subprocess.Popen[str]]:
        """The job, once all ranks iterate. It must end by itself, and well, unless it hangs."""
        torchrun = (
            "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
            "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0",
        )  # fmt: skip
        words = (str(self.script), str(self.folder), fault, str(victim), str(workers))
        job = subprocess.Popen(
            [self.python, *(torchrun if ranks > 1 else ()), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 240
            while not all((self.folder / f"begun{r}").exists() for r in range(ranks)):
                if job.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the job did not begin: {job.communicate()[0]}")
                time.sleep(0.1)
            self.probe(job.pid)
            yield job
            if fault != "hang":
                self.end_well(job, ranks)
        finally:
            self.kill(job)

    def kill(self, job: subprocess.Popen[str]) -> None:
        """Ends what is left of a job: torchrun starts its ranks in sessions of their own."""
        if job.poll() is None:
            for pid in (*children(job.pid), job.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        job.communicate()

    def end_well(self, job: subprocess.Popen[str], ranks: int) -> None:
        (self.folder / "end").touch()
        output = job.communicate(timeout=240)[0]
        self.assertEqual(job.returncode, 0, output)
        self.assertEqual(output.count("ended after"), ranks, output)

    def attach(self, job: subprocess.Popen[str], *words: str) -> dict:
        answer = self.ask("attach", str(job.pid), "--format", "json", *words, limit_s=240)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        for status in pathlib.Path(f"/proc/{job.pid}/task").glob("*/status"):
            self.assertIn("TracerPid:\t0\n", status.read_text())
        return json.loads(answer.stdout)

    def test_the_slow_function_of_one_rank_is_named_and_ctrl_c_ends_it_with_a_report(self) -> None:
        with self.train("loaderless") as job:
            report = self.attach(job, "--seconds", "8")
            finding = report["findings"][0]
            self.assertEqual(report["verdict"], "abnormal")
            self.assertEqual((finding["cause"], finding["ranks"]), ("host-stall", "1"))
            self.assertIn("fetch_remote", finding["function"]["name"])
            self.assertEqual(finding["victim_ranks"], "0,2")
            page = self.folder / "report.html"
            rank = str(children(job.pid)[0])
            words = ("--seconds", "3000", "--format", "html", "-o", str(page))
            attach = subprocess.Popen(
                [PROGRAM, "attach", rank, *words], stderr=subprocess.PIPE, text=True, env=self.env
            )
            assert attach.stderr is not None
            self.assertIn("samples 3 ranks", attach.stderr.readline())
            time.sleep(3)
            attach.send_signal(signal.SIGINT)
            _, err = attach.communicate(timeout=120)
            self.assertEqual(attach.returncode, 0, err)
            self.assertRegex(page.read_text(), "fetch_remote|too few")

    def test_the_slow_loader_of_one_rank_is_named_by_its_workers_function(self) -> None:
        with self.train("loader", victim=2, workers=1) as job:
            finding = self.attach(job, "--seconds", "8")["findings"][0]
            self.assertEqual((finding["cause"], finding["ranks"]), ("slow-data-loading", "2"))
            self.assertIn("read_shard (its loader's worker processes)", finding["function"]["name"])

    def test_a_hang_is_told_by_the_rank_and_function_that_the_others_wait_for(self) -> None:
        with self.train("hang") as job:
            time.sleep(5)  # by then the others have come to where they wait
            report = self.attach(job, "--seconds", "10")
            finding = report["findings"][0]
            self.assertEqual(finding["ranks"], "1")
            self.assertTrue(finding["id"].startswith("PT-9"), finding["id"])
            self.assertIn("wait_for_ever", json.dumps(finding))

    def test_a_healthy_job_is_never_accused_nor_called_healthy(self) -> None:
        with self.train("none", workers=1) as job:
            report = self.attach(job, "--seconds", "6")
            self.assertEqual(report["findings"], [])
            self.assertIn(report["verdict"], ("nothing_found", "inconclusive"))

    def test_one_process_that_waits_for_its_own_collate_is_told_so(self) -> None:
        with self.train("loader", victim=0, ranks=1) as job:
            finding = self.attach(job, "--seconds", "6")["findings"][0]
            self.assertEqual(finding["cause"], "slow-data-loading")
            self.assertIn("read_shard", finding["function"]["name"])


class Refusals(TorchLiveTest):
    def check(self, part: str, *words: str, status: int = 1) -> None:
        answer = self.ask("attach", *words)
        self.assertEqual(answer.returncode, status, answer.stderr)
        self.assertIn(part, answer.stderr)

    def test_what_cannot_be_attached_to_is_told_in_one_line(self) -> None:
        self.check("there is no process", "4194303")
        self.check("is not a process id", "train.py", status=2)
        self.check("which job?", status=2)
        with subprocess.Popen(["sleep", "60"]) as sleeper:
            self.check("runs no Python", str(sleeper.pid))
            sleeper.kill()

    def test_a_process_that_ends_meanwhile_is_told(self) -> None:
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3)"]) as short:
            answer = self.ask("attach", str(short.pid), "--seconds", "60")
            if "ptrace" not in answer.stderr:
                self.assertIn("ended while it was sampled", answer.stdout)
