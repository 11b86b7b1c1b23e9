# SPDX-License-Identifier: Apache-2.0
"""Ranks started by torch.multiprocessing.spawn, a RNN with batches of varying length."""

import argparse
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Names(Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, index):
        return torch.randint(0, 30, (random.Random(index).randint(6, 18),)), index % 7


def pad(samples):
    names, labels = zip(*samples)
    return pad_sequence(names, batch_first=True), torch.tensor(labels)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 32)
        self.rnn = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, 7)

    def forward(self, names):
        return self.head(self.rnn(self.embed(names))[0][:, -1])


def worker(rank, world_size, steps, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(Tagger())
    optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)
    step = 0
    while step < steps:
        for names, labels in DataLoader(Names(), batch_size=16, shuffle=True, collate_fn=pad):
            loss = nn.functional.cross_entropy(model(names), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= steps:
                break
        if rank == 0:
            print(f"step {step}: {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    port = random.randint(20000, 40000)
    mp.spawn(worker, args=(args.ranks, args.steps, port), nprocs=args.ranks)


if __name__ == "__main__":
    main()
