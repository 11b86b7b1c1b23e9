# SPDX-License-Identifier: Apache-2.0
"""Local SGD: each rank trains alone, and weights are averaged every eight steps."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(50, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 3)
        )

    def forward(self, x):
        return self.net(x)


def collate(samples):
    inputs, labels = zip(*samples)
    return torch.stack(inputs), torch.stack(labels)


def average(model):
    flat = nn.utils.parameters_to_vector(model.parameters()).detach()
    dist.all_reduce(flat)
    nn.utils.vector_to_parameters(flat / dist.get_world_size(), model.parameters())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--every", type=int, default=8)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    data = TensorDataset(torch.randn(3200, 50), torch.randint(0, 3, (3200,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, collate_fn=collate)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step = 0
    while step < args.steps:
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % args.every == 0:
                average(model)
            if step >= args.steps:
                break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
