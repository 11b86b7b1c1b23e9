# SPDX-License-Identifier: Apache-2.0
"""torch.compile over the model and over the optimizer's step."""

import argparse

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.LayerNorm(4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x):
        return x + self.body(x)


def get_batch(width=192):
    x = torch.randn(48, width)
    return x, torch.sin(x)


def train_step(model, optimizer_step, optimizer, x, y):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer_step()
    optimizer.zero_grad()
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--compile-step", action="store_true", help="the optimizer's step, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    net = Model()
    model = torch.compile(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=torch.tensor(1e-3), capturable=False)
    optimizer_step = torch.compile(optimizer.step) if args.compile_step else optimizer.step
    for step in range(args.steps):
        x, y = get_batch()
        loss = train_step(model, optimizer_step, optimizer, x, y)
        if step % 200 == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
