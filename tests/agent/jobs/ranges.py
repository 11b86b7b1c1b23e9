"""The job's own range begins in one window and ends in the next."""

import itertools

import perftracker
import torch
from perftracker import _source
from torch.profiler import record_function
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
data = TensorDataset(torch.randn(40, 16))
ended = []  # ranges ended by the hook
end = _source._Ranges.end


def noted(ranges, opened):
    ended.append(opened.name)
    end(ranges, opened)


_source._Ranges.end = noted


def train_until(done):
    while True:
        for (x,) in DataLoader(data, batch_size=4):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
            if done(perftracker.status()):
                return


steps = itertools.count()
train_until(lambda status: status["profiling"] and next(steps) == 3)  # behind the trial
original = record_function.__enter__
with record_function("long"):
    train_until(lambda status: not status["profiling"])
    print("as it was", record_function.__enter__ is not original, "long" in ended)
    train_until(lambda status: status["profiling"] and status["order"] == 2)
train_until(lambda status: not status["profiling"])
print("as it was", record_function.__enter__ is not original, ended.count("long"))
