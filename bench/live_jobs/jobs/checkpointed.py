# SPDX-License-Identifier: Apache-2.0
"""A transformer whose activations are computed again in backward, with a sharded optimizer."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Text(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randint(0, 256, (25,), generator=generator)


def stack(samples):
    tokens = torch.stack(samples)
    return tokens[:, :-1], tokens[:, 1:]


class LanguageModel(nn.Module):
    def __init__(self, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, dropout=0.0)
            for _ in range(layers)
        )
        self.head = nn.Linear(width, 256)

    def forward(self, tokens):
        x = self.embed(tokens)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=False)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Text()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler, collate_fn=stack)
    model = DistributedDataParallel(LanguageModel(), gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
    step, epoch = 0, 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        for tokens, targets in loader:
            loss = nn.functional.cross_entropy(model(tokens).transpose(1, 2), targets)
            loss.backward()
            optimizer.step()
            model.zero_grad()
            step += 1
            if step % 50 == 0 and dist.get_rank() == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
            if step >= args.steps:
                break
        epoch += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
