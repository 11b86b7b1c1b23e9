# SPDX-License-Identifier: Apache-2.0
"""Does what CUDA's driver does with CUDA_INJECTION64_PATH, and trains.

Arguments: when (before, during or after `import torch`; in a thread), iterations.
"""

import ctypes
import os
import sys
import threading

when, count = sys.argv[1], sys.argv[2]


def inject():
    """Without the interpreter lock, as ctypes.CDLL calls."""
    library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    assert library.InitializeInjection() == 1
    assert library.InitializeInjection() == 1


class Finder:
    """torch is half imported when this module of its is looked for."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch.optim":
            sys.meta_path.remove(self)
            inject()


if when == "before":
    inject()
elif when == "during":
    sys.meta_path.insert(0, Finder())
import torch  # noqa: E402, F401

if when == "after":
    inject()
elif when == "thread":
    thread = threading.Thread(target=inject)
    thread.start()
    thread.join()

sys.argv[1:] = [count, "0", "4"]
plain = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plain.py")
exec(compile(open(plain).read(), plain, "exec"))
