# SPDX-License-Identifier: Apache-2.0
"""Where torch is wrapped: the iterator of DataLoader, steps of optimizers and of gradient scalers,
backward passes, the start of process groups.

Each wrapper calls the hook's function, then the real one, also if the former failed. A region
that torch.compile traces contains no call of the hook: is_compiling() is a constant there.
"""

import functools
import inspect
import os
import sys
from typing import Any, Callable, FrozenSet, NamedTuple, Optional, Set

_wrapped = False


class Hooks:
    """The functions that the wrappers call: _hook.py's until the first mark, then C functions.

    loader_started is called once for each iterator of a loader, group_started for each process
    group, with what group_of() takes or nothing; both stay functions of _hook.py.
    """

    __slots__ = (
        "loader_begins",
        "loader_ends",
        "step_begins",
        "step_ends",
        "backward_begins",
        "backward_ends",
        "scaler_begins",
        "loader_started",
        "group_started",
    )

    def __init__(
        self,
        loader_started: Callable[[Any], None],
        group_started: Callable[..., None],
        *functions: Callable[[Any], None],
    ) -> None:
        self.loader_started = loader_started
        self.group_started = group_started
        self.set(*functions)

    def set(self, *functions: Callable[[Any], None]) -> None:
        for name, function in zip(self.__slots__, functions):  # noqa: B905 - not in Python 3.8
            setattr(self, name, function)


def wrap(hooks: Hooks) -> None:
    global _wrapped
    if _wrapped:
        return
    _wrapped = True
    import torch

    _wrap_loader(hooks)
    _wrap_loader_start(hooks)
    _wrap_optimizer(_compiling_test(torch), hooks)
    _wrap_scaler(hooks)
    _wrap_backward(torch.autograd, hooks)
    _wrap_graphs(hooks)
    _wrap_groups(hooks)


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


def _wrap_loader_start(hooks: Hooks) -> None:
    """The constructor of an iterator with child processes starts them."""
    from torch.utils.data import dataloader

    cls = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)
    if cls is None:
        return
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        hooks.loader_started(self)

    cls.__init__ = __init__


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


def _wrap_scaler(hooks: Hooks) -> None:
    """GradScaler.step is a step of its optimizer, which need not be a torch.optim.Optimizer.

    The scaler skips the optimizer's step when gradients overflow: still an iteration. Where
    Optimizer.step is wrapped too, the agent counts both as one.
    """
    for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):
        cls = getattr(sys.modules.get(name), "GradScaler", None)
        if cls is not None and "step" in cls.__dict__:
            break
    else:
        return
    original = cls.step

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        hooks.scaler_begins(optimizer)
        result = original(self, optimizer, *args, **kwargs)
        hooks.step_ends(optimizer)
        return result

    _hide_from_compiler(step)
    cls.step = step


def _wrap_backward(autograd: Any, hooks: Hooks) -> None:
    """Wraps the function of torch 2.3 and later that calls the autograd engine, its only caller.

    torch.compile knows Tensor.backward and torch.autograd.grad by themselves and never traces
    into this function, so it does not see the wrapper. Before torch 2.3 the two functions that
    call the engine are wrapped; torch.compile breaks the graph at both anyway.
    """
    names = ["_engine_run_backward"]
    if not hasattr(autograd, names[0]):
        names = ["backward", "grad"]
    for name in names:
        _wrap_pass(autograd, name, hooks)


def _wrap_pass(autograd: Any, name: str, hooks: Hooks) -> None:
    original = getattr(autograd, name, None)
    if original is not None:
        wrapper = _pass_of(original, hooks)
        _keep_scriptable(original, wrapper)
        setattr(autograd, name, wrapper)


def _pass_of(original: Any, hooks: Hooks) -> Any:
    """The function, marked as a backward pass."""

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        hooks.backward_begins(None)
        try:
            return original(*args, **kwargs)
        finally:
            hooks.backward_ends(None)

    _hide_from_compiler(run)
    return run


def _keep_scriptable(original: Any, wrapper: Any) -> None:
    """TorchScript knows torch.autograd.grad and backward by identity, and compiles no wrapper."""
    builtins: Any = sys.modules.get("torch.jit._builtins")
    if builtins is None or original.__name__.startswith("_"):
        return  # no function that a script can call
    operator = builtins._find_builtin(original)
    if operator is not None:
        builtins._register_builtin(wrapper, operator)


def _wrap_graphs(hooks: Hooks) -> None:
    """A whole iteration captured in a CUDA graph calls nothing else of torch: a replay counts as a
    backward pass, which is a mark only where no optimizer steps.
    """
    cls = getattr(sys.modules.get("torch.cuda.graphs"), "CUDAGraph", None)
    if hasattr(cls, "replay"):
        cls.replay = _pass_of(cls.replay, hooks)


def _wrap_groups(hooks: Hooks) -> None:
    """init_process_group, new_group and device meshes make each group by one private function.

    Where torch has another way, or a group exists already, collectives are expected at once. The
    threads that are new after the call serve the group: for gloo they tell the groups apart.
    """
    module: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if module is None:
        return  # a torch without collectives
    original = getattr(module, "_new_process_group_helper", None)
    if original is None or module.is_initialized():
        hooks.group_started()
    if original is None:
        return

    @functools.wraps(original)
    def helper(*args: Any, **kwargs: Any) -> Any:
        before = _threads()
        result = original(*args, **kwargs)
        if (args[0] if args else kwargs.get("group_size")) != 1:
            hooks.group_started(original, args, kwargs, _threads() - before)
        return result

    module._new_process_group_helper = helper


def _threads() -> Set[int]:
    """Of this process; empty where /proc can't be read."""
    try:
        return {int(name) for name in os.listdir("/proc/self/task")}
    except OSError:
        return set()


class Group(NamedTuple):
    """A process group; its ranks in the job are first_rank, first_rank + rank_stride, ..."""

    name: str
    size: int
    first_rank: int
    rank_stride: int  # 0: not evenly spaced
    threads: FrozenSet[int]


def group_of(helper: Any, args: Any, kwargs: Any, threads: Set[int]) -> Optional[Group]:
    """The group that torch's function was called for; None: this rank is not in it."""
    bound = inspect.signature(helper).bind(*args, **kwargs)
    bound.apply_defaults()
    size, name = bound.arguments.get("group_size"), bound.arguments.get("group_name")
    given = bound.arguments.get("global_ranks_in_group")
    if not threads or not name or size is None or given is None:
        return None  # another torch's function: the group stays unknown
    ranks = list(given) or list(range(size))  # empty: the whole job
    if len(ranks) != size:
        return None
    strides = {b - a for a, b in zip(ranks, ranks[1:])}  # noqa: B905 - not in Python 3.8
    stride = strides.pop() if len(strides) == 1 else 0
    return Group(str(name), size, ranks[0], max(stride, 0), frozenset(threads))


def _hide_from_compiler(function: Callable[..., Any]) -> None:
    """Behind a graph break torch.compile looks at the Python functions that the job calls.

    Its list of skipped files has torch's own, not this one. A traced wrapper would change no
    result, but break graphs and warn.
    """
    import torch

    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    dynamo = getattr(torch._C, "_dynamo", None)
    frames = getattr(dynamo, "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):  # torch 2.7 and later
        skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        frames.set_code_exec_strategy(function.__code__, skip)
    elif hasattr(frames, "skip_code"):
        frames.skip_code(function.__code__)
