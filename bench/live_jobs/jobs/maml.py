# SPDX-License-Identifier: Apache-2.0
"""Learning to learn: inner steps by torch.func on several tasks, one outer optimizer."""

import argparse

import torch
from torch import nn
from torch.func import functional_call, grad, vmap


class Sine(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.net(x))


def tasks(count, points=20):
    phase, height = torch.rand(count, 1, 1) * 3.14, torch.rand(count, 1, 1) * 4 + 0.1
    x = torch.rand(count, 2 * points, 1) * 10 - 5
    y = height * torch.sin(x + phase)
    return x[:, :points], y[:, :points], x[:, points:], y[:, points:]


def adapt(model, weights, x, y, steps=3, rate=0.01):
    def loss_of(weights):
        return nn.functional.mse_loss(functional_call(model, weights, (x,)), y)

    for _ in range(steps):
        gradient = grad(loss_of)(weights)
        weights = {name: w - rate * gradient[name] for name, w in weights.items()}
    return weights


def outer_loss(model, batch):
    weights = dict(model.named_parameters())

    def of_task(x, y, x_test, y_test):
        adapted = adapt(model, weights, x, y)
        return nn.functional.mse_loss(functional_call(model, adapted, (x_test,)), y_test)

    return vmap(of_task)(*batch).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    model = Sine()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        loss = outer_loss(model, tasks(16))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
