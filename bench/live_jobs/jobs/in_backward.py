# SPDX-License-Identifier: Apache-2.0
"""The optimizer's steps run inside backward, one small optimizer for each parameter."""

import argparse

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=96, layers=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return x


def make_batch():
    x = torch.randn(64, 96)
    return x, x.cumsum(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    model = Net()
    optimizers = {p: torch.optim.Adam([p], lr=1e-4, foreach=False) for p in model.parameters()}

    def optimizer_hook(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(optimizer_hook)
    for step in range(args.steps):
        x, y = make_batch()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        if step % 200 == 0:
            print(f"step {step}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
