# SPDX-License-Identifier: Apache-2.0
"""Where torch is wrapped: the iterator of DataLoader, and the steps of all optimizers.

Each wrapper calls ours, then the real one, whatever ours did. A region that
torch.compile traces sees nothing of us: is_compiling() is a constant there.
"""

import functools
import threading
import time
from typing import Any, Callable

_wrapped = False

Hook = Callable[..., None]


def wrap(loader_begins: Hook, loader_ends: Hook, step_begins: Hook, step_ends: Hook) -> None:
    global _wrapped
    if _wrapped:
        return
    _wrapped = True
    import torch

    _wrap_loader(loader_begins, loader_ends)
    _wrap_optimizer(_compiling_test(torch), step_begins, step_ends)


def _compiling_test(torch: Any) -> Callable[[], bool]:
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", None) or (lambda: False)


def _wrap_loader(begins: Hook, ends: Hook) -> None:
    from torch.utils.data import dataloader

    cls = dataloader._BaseDataLoaderIter
    original = cls.__next__
    nesting = threading.local()  # a loader that iterates another one counts once

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if getattr(nesting, "inside", False):
            return original(self)
        begins(self)
        begin_ns = time.monotonic_ns()
        nesting.inside = True
        try:
            return original(self)
        finally:
            nesting.inside = False
            ends(self, time.monotonic_ns() - begin_ns)

    __next__._torchdynamo_disable = True  # type: ignore[attr-defined]
    cls.__next__ = __next__


def _wrap_optimizer(compiling: Callable[[], bool], begins: Hook, ends: Hook) -> None:
    import torch.optim.optimizer as optimizer

    def before(self: Any, args: Any, kwargs: Any) -> None:
        if not compiling():
            begins(self)

    def after(self: Any, args: Any, kwargs: Any) -> None:
        if not compiling():
            ends(self)

    if hasattr(optimizer, "register_optimizer_step_post_hook"):
        optimizer.register_optimizer_step_pre_hook(before)
        optimizer.register_optimizer_step_post_hook(after)
    else:
        _wrap_steps(optimizer.Optimizer, begins, ends)


def _wrap_steps(cls: Any, begins: Hook, ends: Hook) -> None:
    """torch 1.x has no hooks for all optimizers: each class is wrapped when it is first built."""
    init = cls.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        for cls in type(self).__mro__:  # a subclass may inherit its step
            if "step" in cls.__dict__:
                _wrap_step(cls, begins, ends)
                break

    cls.__init__ = __init__


def _wrap_step(cls: Any, begins: Hook, ends: Hook) -> None:
    original = cls.__dict__["step"]
    if hasattr(original, "_perftracker"):
        return

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        begins(self)
        result = original(self, *args, **kwargs)
        ends(self)
        return result

    step._perftracker = True  # type: ignore[attr-defined]
    cls.step = step
