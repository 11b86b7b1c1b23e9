"""Trains until a window is open, does what the argument says inside it, and trains on."""

import gc
import os
import signal
import sys
import threading

import perftracker
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
data = TensorDataset(torch.randn(40, 16))


def train():
    for (x,) in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


def collect():
    graph = [[] for _ in range(300000)]
    for node in graph:
        node.append(node)
    del node, graph
    gc.collect()


def region():
    with perftracker.region("a region"):
        torch.ones(3)


def fork_and_exit():
    if os.fork() == 0:
        train()
        sys.exit(0)
    os.wait()


def thread():
    worker = threading.Thread(target=region)
    worker.start()
    worker.join()


def fail():
    raise RuntimeError("of the job")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    os._exit(3)


def execute():
    os.execv(sys.executable, [sys.executable, "-c", "print('another program')"])


def unload():
    """As a program that leaves gc.callbacks as it likes them."""
    gc.callbacks.clear()
    gc.collect()


while not perftracker.status()["profiling"]:
    train()
globals()[sys.argv[1]]()
train()
print("profiling", perftracker.status()["profiling"])
