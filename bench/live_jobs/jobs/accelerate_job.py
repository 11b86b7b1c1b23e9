# SPDX-License-Identifier: Apache-2.0
"""A text classifier with Hugging Face Accelerate, gradients accumulated over two batches."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.embed = nn.EmbeddingBag(1000, width)
        self.body = nn.Sequential(nn.Linear(width, 4 * width), nn.Tanh(), nn.Linear(4 * width, 4))

    def forward(self, tokens):
        return self.body(self.embed(tokens))


def collate(samples):
    tokens, labels = zip(*samples)
    return torch.stack(tokens), torch.stack(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    data = TensorDataset(torch.randint(0, 1000, (6400, 64)), torch.randint(0, 4, (6400,)))
    loader = DataLoader(data, batch_size=16, shuffle=True, collate_fn=collate)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step = 0
    while step < args.steps:
        for tokens, labels in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(tokens), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            step += 1
            if step >= args.steps:
                break
        accelerator.print(f"step {step} loss {loss.item():.3f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
