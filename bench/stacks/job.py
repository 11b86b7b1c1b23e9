# SPDX-License-Identifier: Apache-2.0
"""A torch process to look at: it has this many threads, and its main thread is deep in a model."""

import sys
import threading
import time

import torch

torch.set_num_threads(1)


class Sleep(torch.nn.Module):
    def forward(self, x):
        print("ready", flush=True)
        time.sleep(10000)
        return x


def wait(event: threading.Event, depth: int) -> None:
    if depth > 0:
        wait(event, depth - 1)
    event.wait()


def main() -> None:
    event = threading.Event()
    threading.stack_size(256 << 10)
    for _ in range(int(sys.argv[1]) - 1):
        threading.Thread(target=wait, args=(event, 5), daemon=True).start()
    model: torch.nn.Module = Sleep()
    for _ in range(8):
        model = torch.nn.Sequential(model)
    model(torch.ones(1))


main()
