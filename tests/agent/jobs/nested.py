"""A data set that iterates a loader of its own, in this process; and a prefetching thread."""

import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.set_num_threads(1)


class Outer(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        inner = DataLoader(TensorDataset(torch.full((4, 16), float(index))), batch_size=2)
        return sum(batch[0].sum(0) for batch in inner)


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)


def other():
    for _ in DataLoader(TensorDataset(torch.randn(40, 1))):
        pass


for number, x in enumerate(DataLoader(Outer(), batch_size=2)):
    if number == 1:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
sys.exit(0)
