"""A job for whom each trial of torch's profiler ends too slowly."""

import torch
from perftracker import _source
from torch.utils.data import DataLoader, TensorDataset

_source.STOP_MOST_S = 0.0
torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for (x,) in DataLoader(TensorDataset(torch.randn(4000, 16)), batch_size=4):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
