"""Trains until the file of the first argument is there. Prints how many optimizer steps it made."""

import os
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
data = TensorDataset(torch.randn(400, 16))
count = 0


def train_one(x):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()


while not os.path.exists(sys.argv[1]):
    for (x,) in DataLoader(data, batch_size=4):
        train_one(x)
        count += 1
print(count)
