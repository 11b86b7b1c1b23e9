# SPDX-License-Identifier: Apache-2.0
"""A loop of one's own with Lightning Fabric, two ranks, gradients accumulated, checkpoints."""

import argparse
import os
import tempfile

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 2, 2, stride=2)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


def crop(samples):
    pictures = torch.stack([p for p, _ in samples])
    return pictures[:, :, 4:36, 4:36], torch.stack([m for _, m in samples])[:, 4:36, 4:36]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=2)
    args = parser.parse_args()
    fabric = Fabric(accelerator="cpu", devices=args.devices, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(7 + fabric.global_rank)
    pictures = torch.rand(2048, 1, 40, 40)
    data = TensorDataset(pictures, (pictures[:, 0] > 0.5).long())
    loader = DataLoader(data, batch_size=16, shuffle=True, collate_fn=crop)
    model = Segmenter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(loader)
    step = 0
    with tempfile.TemporaryDirectory() as folder:
        while step < args.steps:
            for x, mask in loader:
                wait = step % 2 == 0
                with fabric.no_backward_sync(model, enabled=wait):
                    loss = nn.functional.cross_entropy(model(x), mask)
                    fabric.backward(loss)
                if not wait:
                    optimizer.step()
                    optimizer.zero_grad()
                step += 1
                if step % 500 == 0:
                    fabric.save(os.path.join(folder, "last.ckpt"), {"model": model})
                    fabric.print(f"step {step} loss {loss.item():.3f}", flush=True)
                if step >= args.steps:
                    break


if __name__ == "__main__":
    main()
