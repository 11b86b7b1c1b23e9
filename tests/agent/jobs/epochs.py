"""New loader processes in each epoch, and a child of os.fork; only children call triu."""

import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Data(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, index):
        return torch.triu(torch.full((4, 4), float(index)))


model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)


def train(batches):
    for x in batches:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


status = 0
for _ in range(4):
    train(DataLoader(Data(), batch_size=4, num_workers=2))
    child = os.fork()
    if child == 0:
        train(DataLoader(Data(), batch_size=4))
        os._exit(0)
    status = status or os.waitpid(child, 0)[1]
sys.exit(status)
