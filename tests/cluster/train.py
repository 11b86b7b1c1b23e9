# SPDX-License-Identifier: Apache-2.0
"""A job over hosts: DistributedDataParallel over gloo, synthetic batches.

With a file named FAULT.RANK in the folder, that rank has the fault from then on. The file `steps`
there has the number of an iteration of rank 0, every ten.
"""

from __future__ import annotations

import argparse
import pathlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def query_inventory() -> None:
    time.sleep(0.06)


def wait_for_quota() -> None:
    while True:
        time.sleep(1)


def make_batch(args: argparse.Namespace) -> torch.Tensor:
    rank, folder = dist.get_rank(), args.folder
    # Leaves CPUs to other tests, and is the same on all ranks.
    time.sleep(args.read_ms / 1000)
    if (folder / f"sleep.{rank}").exists():
        query_inventory()
    if (folder / f"hang.{rank}").exists():
        wait_for_quota()
    if (folder / f"crash.{rank}").exists():
        raise ValueError("label 1001 is out of range")
    return torch.randn(16, args.width)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--read-ms", type=float, default=20)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(Model(args.width))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        batch = make_batch(args)
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0 and step % 10 == 0:
            (args.folder / "steps").write_text(str(step))
        # All ranks agree on the end: a file that one sees before another would hang them.
        end = torch.tensor(float((args.folder / "end").exists()))
        dist.all_reduce(end)
        if end.item() > 0:
            break
    time.sleep(0.2)  # threads of gloo release the last tensors
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
