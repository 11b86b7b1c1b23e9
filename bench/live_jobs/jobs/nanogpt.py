# SPDX-License-Identifier: Apache-2.0
"""A GPT in the manner of nanoGPT: get_batch instead of a loader, with or without DDP."""

import argparse
import math
import os
import time
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--eval-interval", type=int, default=400)
parser.add_argument("--accumulate", type=int, default=2)
args = parser.parse_args()

block_size, batch_size, n_embd, n_head, n_layer, vocab = 64, 4, 64, 4, 2, 128
ddp = "RANK" in os.environ
if ddp:
    init_process_group(backend="gloo")
rank = int(os.environ.get("RANK", 0))
torch.manual_seed(1337 + rank)
data = torch.randint(0, vocab, (100_000,))


def get_batch(split):
    source = data[:90_000] if split == "train" else data[90_000:]
    ix = torch.randint(len(source) - block_size, (batch_size,))
    x = torch.stack([source[i : i + block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(n_embd, dim=2)
        q, k, v = (z.view(b, t, n_head, c // n_head).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, vocab), targets.view(-1))


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    losses = [model(*get_batch("val"))[1].item() for _ in range(20)]
    model.train()
    return sum(losses) / len(losses)


def get_lr(it):
    return 6e-4 * 0.5 * (1.0 + math.cos(math.pi * min(it / args.steps, 1.0)))


def main():
    raw_model = GPT()
    model = DDP(raw_model) if ddp else raw_model
    optimizer = torch.optim.AdamW(raw_model.parameters(), lr=6e-4, betas=(0.9, 0.95))
    x, y = get_batch("train")
    t0 = time.time()
    for it in range(args.steps):
        for group in optimizer.param_groups:
            group["lr"] = get_lr(it)
        if it % args.eval_interval == 0 and rank == 0:
            print(f"step {it}: val loss {estimate_loss(raw_model):.4f}", flush=True)
        for micro_step in range(args.accumulate):
            last = micro_step == args.accumulate - 1
            with nullcontext() if last or not ddp else model.no_sync():
                _, loss = model(x, y)
                x, y = get_batch("train")
                (loss / args.accumulate).backward()
        torch.nn.utils.clip_grad_norm_(raw_model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if it % 100 == 0 and rank == 0:
            print(f"iter {it}: loss {loss.item():.4f}, {time.time() - t0:.1f} s", flush=True)
    if ddp:
        destroy_process_group()


if __name__ == "__main__":
    main()
