# SPDX-License-Identifier: Apache-2.0
"""Where torch is wrapped: the iterator of DataLoader, and the steps of all optimizers.

Each wrapper calls the hook's function, then the real one, also if the former failed. A region
that torch.compile traces contains no call of the hook: is_compiling() is a constant there.
"""

import functools
from typing import Any, Callable

_wrapped = False


class Hooks:
    """The functions that the wrappers call: _hook.py's until the first mark, then C functions."""

    __slots__ = ("loader_begins", "loader_ends", "step_begins", "step_ends")

    def __init__(self, *functions: Callable[[Any], None]) -> None:
        self.set(*functions)

    def set(self, *functions: Callable[[Any], None]) -> None:
        self.loader_begins, self.loader_ends, self.step_begins, self.step_ends = functions


def wrap(hooks: Hooks) -> None:
    global _wrapped
    if _wrapped:
        return
    _wrapped = True
    import torch

    _wrap_loader(hooks)
    _wrap_optimizer(_compiling_test(torch), hooks)


def _compiling_test(torch: Any) -> Callable[[], bool]:
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", None) or (lambda: False)


def _wrap_loader(hooks: Hooks) -> None:
    from torch.utils.data import dataloader

    cls = dataloader._BaseDataLoaderIter
    original = cls.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        hooks.loader_begins(self)
        try:
            return original(self)
        finally:
            hooks.loader_ends(self)

    __next__._torchdynamo_disable = True  # type: ignore[attr-defined]
    cls.__next__ = __next__


def _wrap_optimizer(compiling: Callable[[], bool], hooks: Hooks) -> None:
    import torch.optim.optimizer as optimizer

    def before(self: Any, args: Any, kwargs: Any) -> None:
        if not compiling():
            hooks.step_begins(self)

    def after(self: Any, args: Any, kwargs: Any) -> None:
        if not compiling():
            hooks.step_ends(self)

    if hasattr(optimizer, "register_optimizer_step_post_hook"):
        optimizer.register_optimizer_step_pre_hook(before)
        optimizer.register_optimizer_step_post_hook(after)
    else:
        _wrap_steps(optimizer.Optimizer, hooks)


def _wrap_steps(cls: Any, hooks: Hooks) -> None:
    """torch 1.x has no hooks for all optimizers: each class is wrapped when it is first built."""
    init = cls.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        for cls in type(self).__mro__:  # a subclass may inherit its step
            if "step" in cls.__dict__:
                _wrap_step(cls, hooks)
                break

    cls.__init__ = __init__


def _wrap_step(cls: Any, hooks: Hooks) -> None:
    original = cls.__dict__["step"]
    if hasattr(original, "_perftracker"):
        return

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        hooks.step_begins(self)
        result = original(self, *args, **kwargs)
        hooks.step_ends(self)
        return result

    step._perftracker = True  # type: ignore[attr-defined]
    cls.step = step
