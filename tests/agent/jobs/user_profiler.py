"""Argument early: the user profiles from the start. late: in the middle of our window."""

import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

early = sys.argv[1] == "early"
torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(400, 16)), batch_size=4)
profiler = torch.profiler.profile()
if early:
    profiler.start()
for number, (x,) in enumerate(loader):
    if number == 70 and not early:
        profiler.start()
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.002)
profiler.stop()
print("events", len(profiler.events()) > 100)
