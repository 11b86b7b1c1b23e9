"""A stand-in for JAX: compiled functions with a vectorcall pointer, as those of jax.jit have.

Calls them by turns. Prints what the calls gave.
"""

import functools
import sys
import types


class Fake:
    """The module jax._src.pjit: _cpp_pjit makes a compiled function."""

    PjitFunction = functools.partial


module = types.ModuleType("jax._src.pjit")
module._jax = Fake
module._cpp_pjit = lambda fun, info: functools.partial(fun)
sys.modules["jax"] = types.ModuleType("jax")
sys.modules["jax._src.pjit"] = module


def update(weight, gradient=1):
    return weight + gradient


def fails(weight):
    raise ValueError(weight)


before = functools.partial(update)  # made before the package is loaded
before.__wrapped__ = update

import perftracker  # noqa: E402

later = module._cpp_pjit(update, None)
broken = module._cpp_pjit(fails, None)
count = int(sys.argv[1])
weight = 0
for _ in range(count):
    weight = later(before(weight), gradient=2)
for call in (lambda: broken(7), lambda: later(1, wrong=2)):
    try:
        call()
    except (ValueError, TypeError) as error:
        print(type(error).__name__, error)
print(weight, type(later) is functools.partial, perftracker.status()["state"])
