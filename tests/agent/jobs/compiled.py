"""The compiled forms people write, one after the other. Prints the graph breaks torch counted."""

import torch
import torch._dynamo
from torch.utils.data import DataLoader, TensorDataset


def run(form):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(80, 16), torch.randn(80, 1)), batch_size=4)

    def forward(x, y):
        return (model(x) - y).pow(2).mean()

    def whole(x, y):
        optimizer.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss

    def update():
        optimizer.step()

    compiled_forward = torch.compile(forward, backend="eager")
    compiled_whole = torch.compile(whole, backend="eager")
    compiled_update = torch.compile(update, backend="eager")
    losses = []
    for x, y in loader:
        if form == "whole":
            losses.append(compiled_whole(x, y).item())
            continue
        optimizer.zero_grad()
        loss = compiled_forward(x, y)
        loss.backward()
        if form == "update":
            compiled_update()
        else:
            optimizer.step()
        losses.append(loss.item())
    counters = torch._dynamo.utils.counters
    print("breaks", sum(counters["graph_break"].values()))
    print("graphs", counters["stats"]["unique_graphs"])
    print("losses", " ".join("%.9e" % loss for loss in losses))


for name in ("forward", "update", "whole"):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    run(name)
