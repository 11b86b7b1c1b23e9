"""Loads by two children, new ones in each epoch, until the file of the first argument is there.

The second argument is how children start, the third how many rows the data has. Prints the number
of optimizer steps, and by how many files more are open than after an epoch.
"""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def read_labels():
    time.sleep(0.02)


def collate_slowly(samples):
    read_labels()
    return torch.stack([x for (x,) in samples])


def train(stop, method="fork", rows="32"):
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    data = TensorDataset(torch.randn(int(rows), 16))
    count = 0
    files = []
    while not os.path.exists(stop):
        for x in DataLoader(
            data,
            batch_size=4,
            num_workers=2,
            collate_fn=collate_slowly,
            multiprocessing_context=method,
        ):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
            count += 1
        files.append(len(os.listdir("/proc/self/fd")))
    print(count, files[-1] - files[0])


if __name__ == "__main__":
    train(*sys.argv[1:])
