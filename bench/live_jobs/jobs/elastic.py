# SPDX-License-Identifier: Apache-2.0
"""An elastic job: it saves snapshots and goes on from the last one after a restart."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Model(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.a, self.b = nn.Linear(40, width), nn.Linear(width, 5)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def batch_of(samples):
    inputs, labels = zip(*samples)
    return torch.stack(inputs), torch.stack(labels)


def save_snapshot(path, model, step):
    torch.save({"model": model.state_dict(), "step": step}, path + ".new")
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--snapshot", default="snapshot.pt")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    path = args.snapshot
    data = TensorDataset(torch.randn(6400, 40), torch.randint(0, 5, (6400,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler, collate_fn=batch_of)
    model, step = Model(), 0
    if os.path.exists(path):
        snapshot = torch.load(path)
        model.load_state_dict(snapshot["model"])
        step = snapshot["step"]
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(ddp.parameters())
    epoch = 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(ddp(inputs), labels).backward()
            optimizer.step()
            step += 1
            if step % 100 == 0 and dist.get_rank() == 0:
                save_snapshot(path, model, step)
            if step >= args.steps:
                break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
