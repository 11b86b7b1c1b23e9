"""The package attached again, loaded a second time, and the agent started again."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
import perftracker  # noqa: E402
from perftracker import _hook  # noqa: E402

model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train():
    for (x,) in DataLoader(TensorDataset(torch.randn(40, 16)), batch_size=4):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


train()
_hook.attach()
error = _hook._hook.agent.start(_hook._hook.socket.encode(), 0, 0, 1)
train()
for name in [name for name in sys.modules if name.startswith("perftracker")]:
    del sys.modules[name]
import perftracker as second  # noqa: E402

train()
print(error, perftracker.status()["step"], second.status()["state"])
