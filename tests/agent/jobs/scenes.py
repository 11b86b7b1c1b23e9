"""Trains until a window is open, does what the argument says inside it, and trains on."""

import atexit
import gc
import os
import signal
import sys
import threading

import perftracker
import torch
from perftracker import _hook
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


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def terminate_with_handler():
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(5))
    os.kill(os.getpid(), signal.SIGTERM)


def end_while_sampled():
    """The interpreter ends inside the window, with threads that run till then."""

    def recurse(depth):
        return recurse(depth - 1) if depth else sum(range(100))

    def work():
        while True:
            recurse(20)

    atexit.unregister(_hook._on_exit)
    for _ in range(8):
        threading.Thread(target=work, daemon=True).start()
    train()
    sys.exit(6)


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
train()  # the window may have opened with the last step
globals()[sys.argv[1]]()
train()
print("profiling", perftracker.status()["profiling"])
