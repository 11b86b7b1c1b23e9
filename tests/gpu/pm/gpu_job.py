# SPDX-License-Identifier: Apache-2.0
"""tests/live/fake_job.py, whose workers run a kernel in the first half of each iteration."""

from __future__ import annotations

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "live"))

import fake_job  # noqa: E402

KERNEL = "sm90_xmma_gemm_bf16"


class GpuWorker(fake_job.Worker):
    def trace(self) -> dict:
        trace = super().trace()
        for start, end in zip(self.bounds, self.bounds[1:], strict=False):
            trace["traceEvents"].append(
                {"ph": "X", "cat": "kernel", "name": KERNEL, "pid": 0, "tid": 7,
                 "ts": start / 1e3, "dur": (end - start) / 2e3,
                 "args": {"device": 0, "stream": 7, "External id": os.getpid()}}
            )  # fmt: skip
        return trace


if __name__ == "__main__":
    fake_job.Worker = GpuWorker  # type: ignore[misc]
    sys.exit(fake_job.main())
