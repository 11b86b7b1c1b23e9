# SPDX-License-Identifier: Apache-2.0
"""Hand-written data x tensor parallelism on process groups, four ranks as 2 x 2."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield read_record(generator)


def read_record(generator):
    x = torch.randn(32, 96, generator=generator)
    return x, x.sum(1, keepdim=True)


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ShardedMLP(nn.Module):
    def __init__(self, group, width=96):
        super().__init__()
        part = 4 * width // dist.get_world_size(group)
        self.group = group
        self.up, self.down = nn.Linear(width, part), nn.Linear(part, 1)

    def forward(self, x):
        return Gather.apply(self.down(torch.nn.functional.silu(self.up(x))), self.group)


def make_groups(rank, size):
    pairs = [dist.new_group([i, i + 1]) for i in range(0, size, 2)]
    rows = [dist.new_group(list(range(i, size, 2))) for i in range(2)]
    return pairs[rank // 2], rows[rank % 2]


def average_gradients(model, group):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=group)
        parameter.grad /= dist.get_world_size(group)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor_group, data_group = make_groups(rank, size)
    torch.manual_seed(rank % 2)
    model = ShardedMLP(tensor_group)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    batches = iter(DataLoader(Stream(rank // 2), batch_size=None))
    for step in range(args.steps):
        x, y = next(batches)
        loss = (model(x) - y).square().mean()
        loss.backward()
        average_gradients(model, data_group)
        optimizer.step()
        optimizer.zero_grad()
        if step % 200 == 0 and rank == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
