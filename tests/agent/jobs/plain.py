"""A plain loop. Arguments: iterations, loader processes, exit status. Prints its losses."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

count, workers, status = (int(arg) for arg in sys.argv[1:4])
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(count * 4, 16), torch.randn(count * 4, 1))
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(data, batch_size=4, num_workers=workers):
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
    print("%.9e" % loss.item())
sys.exit(status)
