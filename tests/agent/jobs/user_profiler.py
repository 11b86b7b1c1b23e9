"""Argument early: the user profiles from the start. late: in the middle of PerfTracker's window.

warming: a schedule prepares the profile at the start, and starts it after the window's begin.
"""

import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

form = sys.argv[1]
schedule = torch.profiler.schedule(wait=0, warmup=80, active=10, repeat=1)
torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(400, 16)), batch_size=4)
profiler = torch.profiler.profile(schedule=schedule if form == "warming" else None)
if form != "late":
    profiler.start()
for number, (x,) in enumerate(loader):
    if number == 70 and form == "late":
        profiler.start()
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    if form == "warming":
        profiler.step()
    time.sleep(0.002)
profiler.stop()
print("events", len(profiler.events()) > 100)
