# SPDX-License-Identifier: Apache-2.0
"""A trainer inside asyncio: a task fetches batches into a queue, the loop awaits them."""

import argparse
import asyncio

import torch
from torch import nn


def decode(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(32, 128, generator=generator)


async def fetch(queue, count):
    for number in range(count):
        await asyncio.sleep(0)
        await queue.put(decode(number))
    await queue.put(None)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(128, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 128)
        )

    def forward(self, x):
        return self.net(x + 0.3 * torch.randn_like(x))


def train_on(model, optimizer, batch):
    loss = nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


async def run(steps):
    queue = asyncio.Queue(maxsize=4)
    feeder = asyncio.create_task(fetch(queue, steps))
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    while (batch := await queue.get()) is not None:
        loss = train_on(model, optimizer, batch)
        step += 1
        if step % 100 == 0:
            print(f"step {step} loss {loss:.3f}", flush=True)
    await feeder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    asyncio.run(run(args.steps))


if __name__ == "__main__":
    main()
