# SPDX-License-Identifier: Apache-2.0
"""Tensor-parallel generation without loader, backward pass, optimizer: two all_reduces a layer."""

import argparse

import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self, width, ranks):
        super().__init__()
        self.attention = nn.Linear(width, width // ranks)
        self.join = nn.Linear(width // ranks, width)
        self.up = nn.Linear(width, 4 * width // ranks)
        self.down = nn.Linear(4 * width // ranks, width)

    def forward(self, x):
        part = self.join(torch.tanh(self.attention(x)))
        dist.all_reduce(part)
        x = x + part
        part = self.down(torch.relu(self.up(x)))
        dist.all_reduce(part)
        return x + part


class Decoder(nn.Module):
    def __init__(self, width=256, layers=4, vocabulary=512):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, dist.get_world_size()) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def next_prompts(count=16):
    return torch.randint(512, (count,))


def pick(logits):
    tokens = logits.argmax(1)
    dist.broadcast(tokens, 0)
    return tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Decoder().eval()
    tokens = next_prompts()
    with torch.inference_mode():
        for step in range(args.steps):
            tokens = next_prompts() if step % 8 == 0 else tokens
            tokens = pick(model(tokens))
            if step % 200 == 0 and dist.get_rank() == 0:
                print(f"step {step}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
