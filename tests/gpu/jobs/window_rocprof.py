# SPDX-License-Identifier: Apache-2.0
"""Trains beside a double of rocprofiler-sdk, until the file of the argument is there.

ROCm "starts" before the first iteration, as a job's first call of HIP starts it: the SDK
would then look for the agent, which ROCP_TOOL_LIBRARIES names.
"""

import ctypes
import os
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

sdk = ctypes.CDLL(os.environ["DOUBLE_ROCPROF"])
agent = ctypes.CDLL(os.environ["PERFTRACKER_AGENT"])
sdk.double_begin.argtypes = [ctypes.c_void_p]
sdk.double_symbol.argtypes = [ctypes.c_uint64, ctypes.c_char_p]
sdk.double_kernel.argtypes = [ctypes.c_uint64] * 3
sdk.double_call.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
sdk.double_count.restype = ctypes.c_int64
sdk.double_fault.restype = ctypes.c_char_p
sdk.double_begin(ctypes.cast(agent.rocprofiler_configure, ctypes.c_void_p))
sdk.double_symbol(5, b"_Z9my_kernelv.kd")

torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
data = TensorDataset(torch.randn(4000, 16))
correlation = 0
while not os.path.exists(sys.argv[1]):
    for (x,) in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        model(x).mean().backward()
        for _ in range(3):
            correlation += 1
            sdk.double_call(b"hipLaunchKernel", correlation)
            sdk.double_kernel(5, 0x1000, correlation)
        optimizer.step()
        if os.path.exists(sys.argv[1]):
            break
print("fault:", sdk.double_fault().decode())
print("contexts:", sdk.double_count(b"contexts"), "active:", sdk.double_count(b"active"))
