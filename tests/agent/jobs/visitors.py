"""As until.py, with threads that come and go between two looks at the list of threads."""

import os
import sys
import threading
import time

import torch

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
count = 0


def visit():
    time.sleep(0.02)


while not os.path.exists(sys.argv[1]):
    visitors = [threading.Thread(target=visit) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    optimizer.zero_grad()
    model(torch.randn(4, 16)).mean().backward()
    optimizer.step()
    count += 1
    for visitor in visitors:
        visitor.join()
    time.sleep(0.005)
print(count)
