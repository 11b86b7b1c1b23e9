# SPDX-License-Identifier: Apache-2.0
"""Batches that are kept and given again: copies of containers, and of tensors where they change.

A batch is what a collate function makes: tensors, arrays, numbers and texts in lists, dicts,
tuples and plain objects. Each giving has containers of its own, because a loop may pop() from
them. Tensors are shared between givings, unless the loop changes them in place. What cannot be
copied so, such as a generator, which is used up, raises CannotRepeatError.
"""

import copy
import enum
import numbers
import sys
from typing import Any, Callable, List, Tuple

DEPTH_MAX = 16
_PLAIN = (str, bytes, bool, type(None), numbers.Number, enum.Enum, type, range, slice)


class CannotRepeatError(Exception):
    """The text names what cannot be kept."""


def _torch() -> Any:
    return sys.modules["torch"]


def _is_plain(value: Any) -> bool:
    if isinstance(value, _PLAIN):
        return True
    torch = _torch()
    if isinstance(value, (torch.dtype, torch.device, torch.Size, torch.layout)):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _map(value: Any, leaf: Callable[[Any], Any], depth: int = 0) -> Any:
    """The same structure anew; leaf() gives what takes the place of a tensor or an array."""
    if isinstance(value, _torch().Tensor) or _is_array(value):
        return leaf(value)
    if _is_plain(value):
        return value
    if depth == DEPTH_MAX:
        raise CannotRepeatError("it is nested deeper than %d levels" % DEPTH_MAX)

    def part(item: Any) -> Any:
        return _map(item, leaf, depth + 1)

    if isinstance(value, tuple):
        items = [part(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        made = copy.copy(value)
        for key in made:
            made[key] = part(made[key])
        return made
    if isinstance(value, list):
        made = copy.copy(value)
        made[:] = [part(item) for item in value]
        return made
    if isinstance(value, (set, frozenset)):
        return type(value)(part(item) for item in value)
    return _map_object(value, part)


def _map_object(value: Any, part: Callable[[Any], Any]) -> Any:
    name = "%s.%s" % (type(value).__module__, type(value).__qualname__)
    if hasattr(value, "__next__"):
        raise CannotRepeatError("it has an iterator (%s), which is used up" % name)
    if callable(value) or not hasattr(value, "__dict__") or hasattr(type(value), "__slots__"):
        raise CannotRepeatError("it has an object of type %s" % name)
    made = copy.copy(value)
    if made is value:
        raise CannotRepeatError("it has an object of type %s, which is not copied" % name)
    made.__dict__ = {key: part(item) for key, item in value.__dict__.items()}
    return made


def _clone(value: Any) -> Any:
    if _is_array(value):
        return value.copy()
    made = value.detach().clone()
    if value.device.type == "cpu" and value.is_pinned():
        made = made.pin_memory()
    return made.requires_grad_() if value.requires_grad else made


def _leaves(value: Any) -> List[Any]:
    found: List[Any] = []

    def take(leaf: Any) -> Any:
        found.append(leaf)
        return leaf

    _map(value, take)
    return found


def _elements(leaf: Any) -> int:
    return int(leaf.size if _is_array(leaf) else leaf.numel())


def _bytes(leaf: Any) -> int:
    return int(leaf.nbytes if _is_array(leaf) else leaf.numel() * leaf.element_size())


def size_of(value: Any, depth: int = 0) -> int:
    """Elements of tensors and arrays, and characters of texts: what a batch's work grows with."""
    if isinstance(value, _torch().Tensor) or _is_array(value):
        return _elements(value)
    if isinstance(value, (str, bytes)):
        return len(value)
    if depth == DEPTH_MAX:
        return 0
    if isinstance(value, dict):
        return sum(size_of(item, depth + 1) for item in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sum(size_of(item, depth + 1) for item in value)
    inner = getattr(value, "__dict__", None)
    return size_of(inner, depth + 1) if isinstance(inner, dict) else 0


class Watched:
    """Tensors as they are now, and whether they were changed since."""

    def __init__(self, batch: Any) -> None:
        self._tensors: List[Tuple[Any, Any]] = [
            (leaf, _state_of(leaf)) for leaf in _leaves(batch) if not _is_array(leaf)
        ]

    def changed(self) -> bool:
        return any(_state_of(tensor) != state for tensor, state in self._tensors)


def _state_of(tensor: Any) -> Any:
    if tensor.is_inference():
        return None  # has no version
    has_grad = tensor.is_leaf and tensor.grad is not None
    return (tensor._version, tensor.requires_grad, has_grad, tuple(tensor.shape))


class Kept:
    """One batch of the first ones. Arrays, which have no version, are copied at each giving."""

    def __init__(self, batch: Any) -> None:
        self._batch = _map(batch, _clone)
        leaves = _leaves(self._batch)
        self.held_bytes = sum(_bytes(leaf) for leaf in leaves)
        self.elements = size_of(batch)
        self._inference = any(not _is_array(leaf) and leaf.is_inference() for leaf in leaves)
        self._watched = Watched(self._batch)

    def changed(self) -> bool:
        return self._watched.changed()

    def give(self, copies: bool) -> Any:
        if copies or self._inference:
            return _map(self._batch, _clone)
        return _map(self._batch, lambda leaf: leaf.copy() if _is_array(leaf) else leaf)


def keep(batch: Any) -> Kept:
    return Kept(batch)
