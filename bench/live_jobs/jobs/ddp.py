# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel as in the tutorial: a sampler, a loader, a Trainer class."""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Sequences(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randint(0, 100, (33,), generator=generator)


def collate_batch(samples):
    batch = torch.stack(samples)
    return batch[:, :-1], batch[:, 1:]


class Transformer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 100)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


class Trainer:
    def __init__(self, model, loader, optimizer, save_every):
        self.model = DDP(model)
        self.loader = loader
        self.optimizer = optimizer
        self.save_every = save_every
        self.folder = tempfile.mkdtemp()

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())
        loss.backward()
        self.optimizer.step()
        return loss

    def _run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        for source, targets in self.loader:
            loss = self._run_batch(source, targets)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} | steps {len(self.loader)} | loss {loss.item():.3f}", flush=True)

    def _save_checkpoint(self):
        torch.save(self.model.module.state_dict(), os.path.join(self.folder, "checkpoint.pt"))

    def train(self, epochs):
        for epoch in range(epochs):
            self._run_epoch(epoch)
            if dist.get_rank() == 0 and epoch % self.save_every == 0:
                self._save_checkpoint()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--epoch", type=int, default=200, help="steps of an epoch")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=4)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    data = Sequences(args.epoch * args.batch_size * dist.get_world_size())
    loader = DataLoader(
        data,
        batch_size=args.batch_size,
        sampler=DistributedSampler(data),
        num_workers=args.workers,
        collate_fn=collate_batch,
        persistent_workers=args.workers > 0,
    )
    model = Transformer()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    Trainer(model, loader, optimizer, save_every=1).train(args.steps // args.epoch)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
