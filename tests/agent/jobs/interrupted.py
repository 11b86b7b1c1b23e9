"""A signal's exception in the middle of the hook's own work reaches the job, which goes on."""

import sys
import time

import perftracker
import torch
from perftracker import _hook
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(4000, 16))


def interrupt():
    raise {"interrupt": KeyboardInterrupt, "exit": SystemExit}[sys.argv[1]](7)


def train():
    for (x,) in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        time.sleep(0.001)


_hook._open = interrupt
try:
    train()
    print("not interrupted")
except (KeyboardInterrupt, SystemExit) as error:
    print(type(error).__name__, error.args[0], perftracker.status()["state"])
data = TensorDataset(torch.randn(40, 16))
train()
