# SPDX-License-Identifier: Apache-2.0
"""Closes every descriptor above 2 in the middle, as daemons do, and opens its own in their place.

Arguments: "sockets" or "files", iterations before and after. Prints two losses, what reached
its sockets by the end of the process, and which of its files a forked child lacks.
"""

import atexit
import os
import socket
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

FIRST, LAST = 3, 256
OWN = 16

what, before, after = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
ends = []


def received():
    """Registered before the hook's function, so called after it."""
    for end in ends:
        try:
            print("received", end.fileno(), end.recv(4096))
        except BlockingIOError:
            pass


def train(count):
    for (x,) in DataLoader(TensorDataset(torch.randn(count * 4, 16)), batch_size=4):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    print("%.9e" % loss.item())


def open_sockets():
    for _ in range(OWN):
        ends.extend(socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    for end in ends:
        end.setblocking(False)


def check_files(files):
    child = os.fork()
    if child == 0:
        os._exit(any(not os.path.exists("/proc/self/fd/%d" % file) for file in files))
    print("lacks", os.waitpid(child, 0)[1])


atexit.register(received)
train(before)
os.closerange(FIRST, LAST)
if what == "sockets":
    open_sockets()
else:
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(OWN)]
    check_files(files)
train(after)
if what == "files":
    print("closed", sum(not os.path.exists("/proc/self/fd/%d" % file) for file in files))
