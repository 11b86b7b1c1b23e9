"""Closures as LBFGS and Lightning use them, a gradient scaler, alternating optimizers."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

form = sys.argv[1]
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
loader = DataLoader(TensorDataset(torch.randn(80, 16), torch.randn(80, 1)), batch_size=4)


def train(optimizer, x, y):
    def closure():
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        return loss

    optimizer.step(closure)


if form == "lbfgs":
    lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=3)
    for x, y in loader:
        train(lbfgs, x, y)
elif form == "alternating":
    first = torch.optim.Adam(model.parameters())
    second = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(loader)
    for _ in range(10):
        train(first, *next(batches))
        train(second, *next(batches))
elif form == "raising":
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (x, y) in enumerate(loader):
        try:
            if number % 2:
                sgd.step(lambda: 1 / 0)
            else:
                train(sgd, x, y)
        except ZeroDivisionError:
            pass
elif form == "scaler":
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    for x, y in loader:
        sgd.zero_grad()
        scaler.scale((model(x) - y).pow(2).mean()).backward()
        scaler.step(sgd)
        scaler.update()
elif form == "own":  # not one of torch's optimizers; the scaler skips steps that overflow

    class Own:
        param_groups = [{"params": list(model.parameters())}]
        stepped = 0

        def step(self):
            self.stepped += 1

    own = Own()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    for x, y in loader:
        scaler.scale((model(x) - y).pow(2).mean()).backward()
        scaler.step(own)
        scaler.update()
        model.zero_grad()
    print("stepped" if 0 < own.stepped < 20 else own.stepped)
