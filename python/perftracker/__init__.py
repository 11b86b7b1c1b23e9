# SPDX-License-Identifier: Apache-2.0
"""PerfTracker inside a training process.

``perftracker run -- python train.py`` attaches this package without a change
to the code (torch 2.5 and newer, or JAX). With an older torch, or to mark iterations
by hand, write ``import perftracker`` after ``import torch``.

On a host with ``perftracker hostd`` jobs are attached without that command, if
PERFTRACKER=1 is set or the site enables all jobs. Without a daemon (the variable
PERFTRACKER_SOCKET is unset, and there is no hostd) every function here does nothing.
No exception of PerfTracker's reaches the caller.
"""

import os
from contextlib import AbstractContextManager
from typing import Any, Dict

from perftracker import _hook

__all__ = ["region", "status", "step"]
__version__ = "0.1.0"


def step() -> None:
    """Marks the end of an iteration, for loops without DataLoader and Optimizer.

    Once called, only these marks count iterations in this process.
    """
    _hook.iteration()


def region(name: str) -> "AbstractContextManager[Any]":
    """Names a part of the iteration: shown in reports of a window, free outside of windows."""
    return _hook.region(name)


def status() -> Dict[str, Any]:
    """The state of this process's hook: state, step, order, and the reason if it is disabled."""
    return _hook.status()


def _attach() -> None:
    """torch calls this at the end of its import, too."""
    if os.environ.get("PERFTRACKER_ROOFLINE"):
        from perftracker import _roofline

        _roofline.attach()
    else:
        _hook.attach()


_attach()
