# SPDX-License-Identifier: Apache-2.0
"""Steps of training under each way to record with CUPTI (e_ways.h), without the agent.

    way_steps.py LIBRARY STEPS --device cuda|double [--compile]

The model is that of steps.py. A line of JSON for each way: ms of all steps just before it and in
it, and what was recorded; or why it can't.
"""

import argparse
import ctypes
import json
import time

import steps
import torch

WHY = 128
WARM_STEPS = 20
COUNTS = ("kernels", "records", "buffers", "bytes", "dropped")
TIMES = ("subscribe_ns", "enable_ns", "disable_ns", "flush_ns")


class Seen(ctypes.Structure):
    """struct ways_seen"""

    _fields_ = [(name, ctypes.c_uint64) for name in COUNTS]
    _fields_ += [(name, ctypes.c_int64) for name in TIMES]


class Loop:
    def __init__(self, options: argparse.Namespace) -> None:
        double = options.device == "double"
        self._work = (steps.Double if double else steps.Cuda)(options)
        self._x = torch.randn(1 if double else 8, *self._work.shape)
        self._optimizer = torch.optim.SGD(self._work.model.parameters(), lr=1e-6)

    def play(self, count: int) -> list[float]:
        """ms of each step."""
        times = []
        for _ in range(count):
            begin_s = time.perf_counter()
            self._optimizer.zero_grad()
            self._work.step(self._x)
            self._optimizer.step()
            times.append(1e3 * (time.perf_counter() - begin_s))
        return times


def try_way(library: ctypes.CDLL, name: bytes, loop: Loop, count: int) -> dict:
    before = loop.play(count)
    why, seen = ctypes.create_string_buffer(WHY), Seen()
    if library.ways_open(name, why) < 0:
        return {"way": name.decode(), "why": why.value.decode()}
    loop.play(2)
    inside = loop.play(count)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    library.ways_close(ctypes.byref(seen))
    library.ways_finalize()
    counts = {field: getattr(seen, field) for field in COUNTS}
    return {"way": name.decode(), "before": before, "in": inside, "steps": count + 2, **counts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("steps", type=int)
    parser.add_argument("--device", choices=("cuda", "double"), default="cuda")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    loop = Loop(options)
    loop.play(WARM_STEPS)
    library = ctypes.CDLL(options.library)
    library.ways_name.restype = ctypes.c_char_p
    library.ways_name.argtypes = [ctypes.c_size_t]
    library.ways_close.argtypes = [ctypes.POINTER(Seen)]
    index = 0
    while name := library.ways_name(index):
        print(json.dumps(try_way(library, name, loop, options.steps)), flush=True)
        index += 1


if __name__ == "__main__":
    main()
