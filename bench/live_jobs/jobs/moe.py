# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts: tokens go to the rank of their expert by all_to_all and back."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_to_all_single
from torch.nn.parallel import DistributedDataParallel as DDP


class Experts(nn.Module):
    """One expert per rank; each rank sends an equal share of its tokens to each."""

    def __init__(self, width=64):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, tokens):
        mine = all_to_all_single(torch.empty_like(tokens), tokens)
        done = self.down(torch.relu(self.up(mine)))
        return all_to_all_single(torch.empty_like(done), done.contiguous())


class Dense(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, tokens, experts):
        hidden = torch.tanh(self.first(tokens))
        return self.last(hidden + experts(hidden))


def read_tokens(generator, width=64):
    return torch.randn(64, width, generator=generator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    experts, dense = Experts(), DDP(Dense())
    optimizer = torch.optim.AdamW([*dense.parameters(), *experts.parameters()], lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    for step in range(args.steps):
        tokens = read_tokens(generator)
        loss = (dense(tokens, experts) - tokens).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0 and rank == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
