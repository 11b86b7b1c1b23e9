# SPDX-License-Identifier: Apache-2.0
"""Hogwild: three processes train one model in shared memory and never wait for each other."""

import argparse
import os

import torch
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, seed):
        self.seed = seed

    def __len__(self):
        return 3200

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed * 10_000 + index)
        return torch.rand(1, 20, 20, generator=generator), index % 10


def join(samples):
    pictures, labels = zip(*samples)
    return torch.stack(pictures), torch.tensor(labels)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 10, 5)
        self.fc = nn.Linear(10 * 64, 10)

    def forward(self, x):
        return self.fc(torch.relu(torch.max_pool2d(self.conv(x), 2)).flatten(1))


def train(number, steps, model):
    os.environ["LOCAL_RANK"] = str(number)
    torch.manual_seed(number)
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    step = 0
    while step < steps:
        for x, y in DataLoader(Digits(number), batch_size=32, shuffle=True, collate_fn=join):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"process {number} step {step} loss {loss.item():.3f}", flush=True)
            if step >= steps:
                break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    model = LeNet()
    model.share_memory()
    context = mp.get_context("spawn")
    processes = [context.Process(target=train, args=(n, args.steps, model)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
