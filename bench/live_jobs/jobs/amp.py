# SPDX-License-Identifier: Apache-2.0
"""Mixed precision with a gradient scaler, and an optimizer of the project's own."""

import argparse

import torch
from torch import nn
from torch.nn import functional


class Lion:
    """Not a torch.optim.Optimizer: param_groups and step() are all that GradScaler needs."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99)):
        self.param_groups = [{"params": list(params), "lr": lr, "betas": betas}]
        self.moments = [torch.zeros_like(p) for p in self.param_groups[0]["params"]]

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            slow, fast = group["betas"]
            for p, m in zip(group["params"], self.moments):
                p.sub_(group["lr"] * torch.sign(slow * m + (1 - slow) * p.grad))
                m.mul_(fast).add_((1 - fast) * p.grad)

    def zero_grad(self):
        for p in self.param_groups[0]["params"]:
            p.grad = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.head = nn.Linear(16 * 64, 10)

    def forward(self, images):
        return self.head(functional.max_pool2d(torch.relu(self.conv(images)), 2).flatten(1))


def read_images(count=32):
    return torch.randn(count, 3, 16, 16), torch.randint(10, (count,))


def update(scaler, optimizer):
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--accumulate", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Net()
    optimizer = Lion(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=100)
    for step in range(args.steps):
        for _ in range(args.accumulate):
            images, labels = read_images()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.cross_entropy(model(images), labels)
            scaler.scale(loss / args.accumulate).backward()
        update(scaler, optimizer)
        if step % 200 == 0:
            print(f"step {step}: {loss.item():.3f}, scale {scaler.get_scale():.0f}", flush=True)


if __name__ == "__main__":
    main()
