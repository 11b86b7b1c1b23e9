# SPDX-License-Identifier: Apache-2.0
"""Which functions of jax.jit are watched: the user's. The objects stay what they are.

jax.jit returns an object of a C++ class, whose calls after the first run no Python code. The agent
watches such an object from inside (src/agent/python/pydispatch.c). JAX loads this package when it
starts its first backend: by then programs have made compiled functions, which are found among
the objects of the garbage collector. Functions of JAX and its libraries are not watched:
operators such as jnp.sum are compiled functions, too.
"""

import gc
import sys
from typing import Any, Callable

_LIBRARIES = ("jax", "jaxlib", "optax", "orbax", "flax", "equinox", "chex", "haiku")
_wrapped = False


def wrap(watch: Callable[[Any], None]) -> None:
    global _wrapped
    module: Any = sys.modules.get("jax._src.pjit")
    original = getattr(module, "_cpp_pjit", None)
    kind = _class(module)
    if _wrapped or original is None or kind is None:
        return
    _wrapped = True

    def _cpp_pjit(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = original(fun, *args, **kwargs)
        if type(result) is kind and is_the_users(fun):
            watch(result)
        return result

    module._cpp_pjit = _cpp_pjit
    for thing in gc.get_objects():
        if type(thing) is kind and is_the_users(getattr(thing, "__wrapped__", None)):
            watch(thing)


def _class(module: Any) -> Any:
    """That of compiled functions."""
    libraries = (getattr(module, "_jax", None), getattr(module, "xc", None))
    for library in (*libraries, sys.modules.get("jaxlib.xla_extension")):
        kind = getattr(library, "PjitFunction", None)
        if isinstance(kind, type):
            return kind
    return None


def is_the_users(function: Any) -> bool:
    for _ in range(8):  # a library may wrap the user's function: flax.nnx.jit
        module = getattr(function, "__module__", None) or ""
        if module and module.partition(".")[0] not in _LIBRARIES:
            return True
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None:
            return False
        function = inner
    return False
