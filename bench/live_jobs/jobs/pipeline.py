# SPDX-License-Identifier: Apache-2.0
"""Pipeline parallelism by torch.distributed.pipelining: each rank is a stage."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


class Stage(nn.Module):
    def __init__(self, width=128, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


def fetch(step, width=128):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(64, width, generator=generator)
    return x, x.flip(1)


def train_step(schedule, stage, x, y):
    if stage.is_first:
        schedule.step(x)
        return None
    if stage.is_last:
        losses = []
        schedule.step(target=y, losses=losses)
        return torch.stack(losses).mean()
    schedule.step()
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--micro-batches", type=int, default=4)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    model = Stage()
    stage = PipelineStage(model, rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, args.micro_batches, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(args.steps):
        x, y = fetch(step)
        optimizer.zero_grad()
        loss = train_step(schedule, stage, x, y)
        optimizer.step()
        if step % 100 == 0 and loss is not None:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
