# SPDX-License-Identifier: Apache-2.0
"""A regression with short epochs: each is validated, and its weights are saved."""

import argparse
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Regressor(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(32, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def to_batch(samples):
    inputs, targets = zip(*samples)
    return torch.stack(inputs), torch.stack(targets)


def train_epoch(model, loader, optimizer):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    return sum(nn.functional.mse_loss(model(x), y).item() for x, y in loader) / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batches", type=int, default=50, help="of an epoch")
    args = parser.parse_args()
    torch.manual_seed(0)
    inputs = torch.randn(args.batches * 64 + 512, 32)
    data = TensorDataset(inputs, inputs.pow(2).sum(1))
    train, held_out = random_split(data, [args.batches * 64, 512])
    train_loader = DataLoader(train, batch_size=64, shuffle=True, collate_fn=to_batch)
    val_loader = DataLoader(held_out, batch_size=128)
    model = Regressor()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(args.steps // args.batches):
            train_epoch(model, train_loader, optimizer)
            schedule.step()
            error = validate(model, val_loader)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, os.path.join(folder, "last.pt"))
            print(f"epoch {epoch} validation {error:.3f}", flush=True)


if __name__ == "__main__":
    main()
