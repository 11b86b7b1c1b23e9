# SPDX-License-Identifier: Apache-2.0
"""Four ranks under torchrun in several gloo groups; the last is made after the first mark."""

import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
rows = [dist.new_group([0, 2]), dist.new_group([1, 3])]
optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
optimizer.step()
dist.barrier()  # all watch their collectives
uneven = dist.new_group([0, 1, 3])
groups = [dist.group.WORLD, pairs[rank // 2], rows[rank % 2]] + [uneven] * (rank != 2)
for group in groups:
    for _ in range(5):
        dist.all_reduce(torch.ones(8), group=group)
optimizer.step()
dist.barrier()
# Threads of gloo release the last tensors; a group that is destroyed meanwhile aborts the process,
# with and without PerfTracker.
time.sleep(0.5)
dist.destroy_process_group()
