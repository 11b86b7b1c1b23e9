# SPDX-License-Identifier: Apache-2.0
"""Text of any length from a stream, packed into batches, with DDP and loader workers."""

import argparse
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Crawl(IterableDataset):
    """Each worker of each rank reads its own shards, without end."""

    def __init__(self, rank, world):
        self.rank, self.world = rank, world

    def __iter__(self):
        info = get_worker_info()
        place, count = (info.id, info.num_workers) if info else (0, 1)
        dice = random.Random(self.rank * count + place)
        buffer, held = [], 0
        while True:
            length = min(int(dice.lognormvariate(3.3, 0.6)) + 4, 96)
            buffer.append(torch.tensor([dice.randrange(500) for _ in range(length)]))
            held += length
            if held > 160:
                yield pack(buffer)
                buffer, held = [], 0


def pack(documents):
    documents.sort(key=len)
    return nn.utils.rnn.pad_sequence(documents, batch_first=True)


class Tagger(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(500, width, padding_idx=0)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, 500)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    loader = DataLoader(Crawl(rank, world), batch_size=None, num_workers=1, prefetch_factor=4)
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = iter(loader)
    for step in range(args.steps):
        tokens = next(batches)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.3f} shape {tuple(tokens.shape)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
