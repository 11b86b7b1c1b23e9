"""Trains for the steps of the first argument, then blocks until the file of the second exists."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
data = TensorDataset(torch.randn(4 * int(sys.argv[1]), 16))


def stands_here(stop):
    while not os.path.exists(stop):
        time.sleep(0.02)


for (x,) in DataLoader(data, batch_size=4):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.005)
stands_here(sys.argv[2])
