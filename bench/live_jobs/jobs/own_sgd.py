# SPDX-License-Identifier: Apache-2.0
"""Written by hand: no loader, no Optimizer; gradients are averaged by all_reduce."""

import argparse

import torch
import torch.distributed as dist


def sample(generator):
    x = torch.randn(64, 64, generator=generator)
    return x, torch.tanh(x @ torch.ones(64, 8))


def forward(weights, x):
    w1, b1, w2, b2 = weights
    return torch.relu(x @ w1 + b1) @ w2 + b2


def sgd(weights, lr):
    with torch.no_grad():
        for weight in weights:
            dist.all_reduce(weight.grad)
            weight -= lr * weight.grad / dist.get_world_size()
            weight.grad = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    shapes = ((64, 512), (512,), (512, 8), (8,))
    weights = [(0.05 * torch.randn(shape)).requires_grad_() for shape in shapes]
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(args.steps):
        x, y = sample(generator)
        loss = (forward(weights, x) - y).pow(2).mean()
        loss.backward()
        sgd(weights, 1e-2)
        if step % 200 == 0 and dist.get_rank() == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
