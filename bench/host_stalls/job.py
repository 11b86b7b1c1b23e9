# SPDX-License-Identifier: Apache-2.0
"""One rank of a small CPU job, recorded by torch.profiler; the scheduler's truth goes to a file."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import random
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        x = x + self.out(torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v)
        return x + self.down(torch.relu(self.up(self.norm(x))))


def run_delay_ns() -> int:
    """Time that the training thread was runnable without a CPU."""
    return int(pathlib.Path("/proc/thread-self/schedstat").read_text().split()[1])


def decoy(kind: str, step: int) -> None:
    """What a healthy job does now and then, and takes milliseconds."""
    if kind == "gc" and step % 3 == 0:
        gc.collect()
    if kind == "sleep" and random.random() < 0.4:
        time.sleep(random.uniform(0.002, 0.012))
    if kind == "write" and step % 2 == 0:
        with open(f"/tmp/host_stalls_{os.getpid()}", "wb") as file:
            file.write(os.urandom(1 << 22))
            file.flush()
            os.fsync(file.fileno())
    if kind == "pages":
        torch.empty(random.choice((1 << 20, 1 << 22, 1 << 24))).fill_(1)


class Batches(torch.utils.data.Dataset):
    def __init__(self, width: int, variable: bool) -> None:
        self.width, self.variable = width, variable

    def __len__(self) -> int:
        return 100000

    def __getitem__(self, i: int) -> torch.Tensor:
        rows = random.choice((4, 16, 64)) if self.variable else 16
        return torch.randn(rows, self.width)


def main() -> None:
    out, kind, stacks, threads = sys.argv[1], sys.argv[2], sys.argv[3] == "1", int(sys.argv[4])
    width, depth, steps = int(sys.argv[5]), int(sys.argv[6]), int(sys.argv[7])
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if threads:
        torch.set_num_threads(threads)
    if world > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(1)
    random.seed(rank)
    model: nn.Module = nn.Sequential(*[Block(width) for _ in range(depth)])
    if world > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batches = iter(
        torch.utils.data.DataLoader(
            Batches(width, kind == "inputs"),
            batch_size=None,
            num_workers=1 if kind == "loader" else 0,
        )
    )
    if kind == "thread":  # of the user: takes the interpreter lock
        threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()

    def done(p: profile) -> None:
        p.export_chrome_trace(f"{out}/rank{rank}.json")

    pathlib.Path(f"{out}/ready{rank}").touch()
    while not pathlib.Path(f"{out}/go").exists():
        time.sleep(0.01)
    delays, times = [], []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=3, warmup=2, active=steps),
        on_trace_ready=done,
        with_stack=stacks,
        record_shapes=True,
    ) as p:
        for step in range(5 + steps):
            delays.append(run_delay_ns())
            times.append(time.time_ns())
            decoy(kind, step)
            loss = model(next(batches)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            p.step()
    truth = {
        "window_ms": (times[-1] - times[5]) / 1e6,
        "run_delay_ms": (delays[-1] - delays[5]) / 1e6,
    }
    pathlib.Path(f"{out}/truth{rank}.json").write_text(json.dumps(truth))
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
