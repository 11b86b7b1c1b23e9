# SPDX-License-Identifier: Apache-2.0
"""Contrastive learning: embeddings of all ranks are gathered, each rank has negatives of all."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Views(Dataset):
    def __len__(self):
        return 8192

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        picture = torch.rand(3, 16, 16, generator=generator)
        return picture + 0.1 * torch.randn(3, 16, 16), picture.flip(2)


def pairs(samples):
    first, second = zip(*samples)
    return torch.stack(first), torch.stack(second)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.project = nn.Sequential(nn.Linear(16 * 49, 128), nn.ReLU(), nn.Linear(128, 32))

    def forward(self, x):
        return nn.functional.normalize(self.project(self.body(x)), dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    data = Views()
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler, collate_fn=pairs)
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step, epoch = 0, 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        for first, second in loader:
            mine = model(torch.cat([first, second]))
            everybody = torch.cat(all_gather(mine))
            likeness = mine @ everybody.T / 0.1
            place = dist.get_rank() * len(mine)
            half = len(mine) // 2
            own = torch.arange(len(mine))
            likeness[own, place + own] = -1e4
            loss = nn.functional.cross_entropy(likeness, place + (own + half) % len(mine))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0 and dist.get_rank() == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
            if step >= args.steps:
                break
        epoch += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
