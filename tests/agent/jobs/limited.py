# SPDX-License-Identifier: Apache-2.0
"""Takes something away from this process, then trains.

Arguments: what, iterations, bytes. Prints its losses; its status is 4.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
NUMBERS = {
    "x86_64": {"process_vm_readv": 310, "memfd_create": 319, "prctl": 157},
    "aarch64": {"process_vm_readv": 270, "memfd_create": 279, "prctl": 167},
}
libc = ctypes.CDLL(None)


def deny(name):
    """The system call fails with EPERM, as in a sandbox."""
    number = NUMBERS[platform.machine()][name]
    program = struct.pack(
        "<HBBIHBBIHBBIHBBI",
        *(0x20, 0, 0, 0),  # the number of the call
        *(0x15, 0, 1, number),  # another one: skip one
        *(0x06, 0, 0, 0x00050001),  # EPERM
        *(0x06, 0, 0, 0x7FFF0000),  # allowed
    )
    instructions = ctypes.create_string_buffer(program)
    array = struct.pack("@HP", 4, ctypes.addressof(instructions))
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, 2, array, 0, 0) == 0


def hide():
    """The files of this process in /proc belong to root."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    assert libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
    try:
        open("/proc/self/mem", "rb").close()
    except PermissionError:
        return
    raise AssertionError("/proc/self/mem can be read")


def limit_memory(room):
    """So many more bytes of address space."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))


def limit_files():
    """No more descriptor: all numbers are in use."""
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))


def limit_file_size():
    """A file that grows beyond it ends the process, as without Python."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


what, count = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(count * 4, 16), torch.randn(count * 4, 1))
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer.zero_grad()
# What torch loads late is there by now. backward() would be a mark and connect the worker.
torch.autograd.Variable._execution_engine.run_backward(
    (model(torch.ones(4, 16)).mean(),), (torch.ones(()),), False, False, (), True, True
)
if what in ("process_vm_readv", "memfd_create"):
    deny(what)
elif what == "proc":
    hide()
elif what == "memory":
    limit_memory(int(sys.argv[3]))
elif what == "files":
    limit_files()
elif what == "file_size":
    limit_file_size()
for x, y in DataLoader(data, batch_size=4):
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
    print("%.9e" % loss.item())
sys.exit(4)
