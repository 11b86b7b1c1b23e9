"""Forks in the middle of training; the child trains on and must stay silent."""

import os
import sys

import torch

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(count):
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.randn(4, 16)).mean().backward()
        optimizer.step()


train(20)
child = os.fork()
if child == 0:
    train(50)
    os._exit(0)
status = os.waitpid(child, 0)[1]
train(20)
sys.exit(status)
