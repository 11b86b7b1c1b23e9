# SPDX-License-Identifier: Apache-2.0
"""Kineto's variables for CUPTI in a window, with fake versions and a fake setting of inductor.

Prints a line for each case: the versions, whether inductor makes CUDA graphs, the variables.
"""

import os
import sys
from types import SimpleNamespace

from perftracker import _source
from torch.torch_version import TorchVersion

VARIABLES = ("DISABLE_CUPTI_LAZY_REINIT", "TEARDOWN_CUPTI")
MENDED = "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12"


def try_versions(torch_version, cuda, config, allows=True):
    os.environ.pop(VARIABLES[0], None)
    os.environ[VARIABLES[1]] = "1"  # of the job
    sys.modules["torch._inductor.config"] = config
    internal = SimpleNamespace()
    if TorchVersion(torch_version) >= (2, 8):
        setattr(internal, MENDED, lambda: allows)
    sys.modules["torch._utils_internal"] = internal
    faked = SimpleNamespace(
        __version__=TorchVersion(torch_version), version=SimpleNamespace(cuda=cuda)
    )
    before = dict(os.environ)
    _source._keep_cupti(faked)
    values = [os.environ.get(name, "-") for name in VARIABLES]
    for name in VARIABLES:
        before.pop(name, None)
        os.environ.pop(name, None)
    assert dict(os.environ) == before
    return " ".join(values)


def graphs(on):
    return SimpleNamespace(triton=SimpleNamespace(cudagraphs=on))


for torch_version, cuda in (
    ("2.0.1+cu118", "11.8"),
    ("2.1.2+cu118", "11.8"),
    ("2.2.0+cu121", "12.1"),
    ("2.7.1+cu128", "12.8"),
    ("2.8.0+cu118", "11.8"),
    ("2.8.0+cu126", "12.6"),
    ("2.10.0+cu130", "13.0"),
    ("2.10.0+rocm7.0", None),
):
    print(torch_version, try_versions(torch_version, cuda, graphs(True)))
print("forbidden", try_versions("2.10.0", "13.0", graphs(True), allows=False))
print("no graphs", try_versions("2.8.0", "11.8", graphs(False)))
print("no inductor", try_versions("2.8.0", "11.8", None))
print("moved", try_versions("2.8.0", "11.8", SimpleNamespace()))
print("odd", try_versions("2.8.0", "twelve", graphs(True)))
