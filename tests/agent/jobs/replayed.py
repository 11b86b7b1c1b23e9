# SPDX-License-Identifier: Apache-2.0
"""30 iterations, each a replay of one CUDA graph; what a GPU would do is a double."""

import torch

replays = 0


def count(graph):
    global replays
    replays += 1


base = torch.cuda.CUDAGraph.__mro__[1]
base.replay = count
graph = object.__new__(torch.cuda.CUDAGraph)
graph._tracker = None
for _ in range(30):
    graph.replay()
print(replays, "replays")
