# SPDX-License-Identifier: Apache-2.0
"""A physics-informed fit by L-BFGS: several losses in each step, points from a generator."""

import argparse

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x)


def sample_points(count=128):
    return torch.rand(count, 1).requires_grad_()


def points():
    while True:
        yield sample_points()


def residual(model, x):
    u = model(x)
    slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    return (slope - 30 * torch.cos(30 * x)).pow(2).mean() + model(torch.zeros(1, 1)).pow(2).mean()


def fit(model, optimizer, x):
    def closure():
        optimizer.zero_grad()
        loss = residual(model, x)
        loss.backward()
        return loss

    return optimizer.step(closure)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Field()
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=0.1, max_iter=4, tolerance_grad=0, tolerance_change=0
    )
    for step, x in enumerate(points()):
        loss = fit(model, optimizer, x)
        if step % 200 == 0:
            print(f"step {step}: {loss.item():.5f}", flush=True)
        if step + 1 >= args.steps:
            break


if __name__ == "__main__":
    main()
