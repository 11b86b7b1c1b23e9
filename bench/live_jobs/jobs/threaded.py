# SPDX-License-Identifier: Apache-2.0
"""A trainer in a thread of a program that does something else in its main thread."""

import argparse
import queue
import threading
import time

import torch
from torch import nn


class Service:
    """Answers requests about the training while it goes on."""

    def __init__(self, steps):
        self.steps, self.step, self.loss = steps, 0, float("nan")
        self.batches = queue.Queue(maxsize=8)
        self.model = Net()
        self.done = threading.Event()

    def produce(self):
        for number in range(self.steps):
            self.batches.put(sample(number))

    def train(self):
        optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)
        while self.step < self.steps:
            x, y = self.batches.get()
            loss = train_step(self.model, optimizer, x, y)
            self.step, self.loss = self.step + 1, loss
        self.done.set()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 64, batch_first=True)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1]).squeeze(-1)


def sample(number):
    x = torch.randn(16, 24, 32, generator=torch.Generator().manual_seed(number))
    return x, x.mean((1, 2))


def train_step(model, optimizer, x, y):
    loss = nn.functional.smooth_l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    service = Service(args.steps)
    threading.Thread(target=service.produce, daemon=True).start()
    threading.Thread(target=service.train, name="trainer", daemon=True).start()
    while not service.done.wait(2.0):
        print(f"{time.strftime('%X')} step {service.step} loss {service.loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
