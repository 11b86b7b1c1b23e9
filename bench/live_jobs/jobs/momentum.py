# SPDX-License-Identifier: Apache-2.0
"""Momentum SGD written out under no_grad, over batches that a generator cuts from a text."""

import argparse

import torch
from torch import nn
from torch.nn import functional

MICRO_BATCHES = 2


class CharRNN(nn.Module):
    def __init__(self, vocabulary=64, width=96):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


def cut(text, length=24, batch=16):
    starts = torch.randint(len(text) - length - 1, (batch,)).tolist()
    return torch.stack([text[i : i + length + 1] for i in starts])


def batches(text):
    while True:
        yield cut(text)


def update(model, velocity, lr=0.1, momentum=0.9):
    with torch.no_grad():
        for p, v in zip(model.parameters(), velocity):
            v.mul_(momentum).add_(p.grad)
            p.sub_(lr * v)
    model.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = CharRNN()
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    source = batches(torch.randint(64, (100_000,)))
    for step in range(args.steps):
        for _ in range(MICRO_BATCHES):
            tokens = next(source)
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            (loss / MICRO_BATCHES).backward()
        update(model, velocity)
        if step % 200 == 0:
            print(f"step {step}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
