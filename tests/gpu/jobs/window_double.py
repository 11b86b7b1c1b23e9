# SPDX-License-Identifier: Apache-2.0
"""One process that trains on a double of a GPU, until the file of the first argument is there.

Second argument: plain; busy: another tool has CUPTI; old: CUPTI is that of CUDA 12.5;
profile: the job starts torch's profiler when the file of the third is there; after: it does when
the window has just ended, and CUPTI takes long to hand over what it has; profiling: it
runs one from the start, and torch says that it has a device; forked: forks in the middle.
Prints what the double complains of, then how often it was finalized and whether it is attached.
"""

import ctypes
import os
import sys
import time

import perftracker
import torch
from torch.utils.data import DataLoader, TensorDataset

stop, mode = sys.argv[1:3]
cuda = ctypes.CDLL(os.environ["DOUBLE_CUDA"])
cupti = ctypes.CDLL(os.environ["DOUBLE_CUPTI"])
cupti.double_fault.restype = ctypes.c_char_p
cupti.double_count.restype = ctypes.c_int64
cupti.double_set.argtypes = [ctypes.c_char_p, ctypes.c_int64]
cuda.double_launch.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint32]
NAME = ctypes.create_string_buffer(b"_Z9my_kernelv")
cuda.double_context(1)
profiler = torch.profiler.profile() if mode in ("profile", "after", "profiling") else None
profiles = False
in_window = False


def theirs_begins():
    """Whether the job's own profiler is to be started now."""
    global in_window
    was, in_window = in_window, perftracker.status()["profiling"]
    if mode == "after":
        return was and not in_window
    return mode == "profile" and os.path.exists(sys.argv[3])


if mode == "busy":
    cupti.double_set(b"busy", 1)
if mode == "old":
    cupti.double_set(b"version", 23)
if mode == "after":
    cupti.double_set(b"lag", 200000000)
if mode == "profiling":
    torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
    profiler.start()
    torch.cuda.is_available = torch.cuda.is_initialized = lambda: True

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
data = TensorDataset(torch.randn(4000, 16))
begun = time.monotonic()
while not os.path.exists(stop):
    for (x,) in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        model(x).mean().backward()
        for _ in range(3):
            cuda.double_launch(NAME, 7, 200000, 1)
        cuda.double_synchronize(7)
        optimizer.step()
        if mode == "forked" and os.fork() == 0:
            os._exit(0)
        if mode == "forked":
            os.wait()
        if not profiles and theirs_begins():
            profiles = True
            profiler.start()
            print("attached when theirs began:", cupti.double_count(b"attached"))
            print("finalized when theirs began:", cupti.double_count(b"finalized"))
        if os.path.exists(stop):
            break
if profiler is not None:
    profiler.stop()
print("fault:", cupti.double_fault().decode())
print("finalized:", cupti.double_count(b"finalized"), "attached:", cupti.double_count(b"attached"))
