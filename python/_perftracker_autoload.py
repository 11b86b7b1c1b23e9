# SPDX-License-Identifier: Apache-2.0
"""Called by torch (2.5 and newer) at the end of ``import torch``, or where CUDA starts, and by JAX
where it starts its first backend.

torch turns an exception raised here into a failed import, so no exception of PerfTracker's
may leave this module. The package is loaded from this file's own folder by location: the
user may have another folder named perftracker on sys.path.
"""


def attach() -> None:
    try:
        import os

        # Without a daemon of the job, hostd of a fleet may have one (perftracker/_fleet.py).
        hostd = os.environ.get("PERFTRACKER_HOSTD") or "/run/perftracker/hostd.sock"
        asked = os.environ.get("PERFTRACKER_SOCKET") or os.environ.get("PERFTRACKER_ROOFLINE")
        if not asked and not os.path.exists(hostd):
            return
        import sys

        if "perftracker" not in sys.modules:
            _load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "perftracker"))
        import perftracker

        perftracker._attach()
    except Exception as error:  # not attached: the job runs without PerfTracker
        _pass_on(error)


def initialize() -> None:
    """Called by JAX, which takes this module for a plugin. Nothing is registered."""
    attach()


def inject() -> None:
    """Called by the library that CUDA's driver loaded, maybe inside ``import torch``.

    Then torch isn't complete, and will call attach() itself at the end.
    """
    import sys

    torch = sys.modules.get("torch")
    if not getattr(getattr(torch, "__spec__", None), "_initializing", False):
        attach()


def _pass_on(error: BaseException) -> None:
    import sys

    signals = sys.modules.get("perftracker._signals")
    if signals is not None:
        signals.pass_on(error)


def _load(folder: str) -> None:
    import importlib.util
    import os
    import sys

    spec = importlib.util.spec_from_file_location(
        "perftracker",
        os.path.join(folder, "__init__.py"),
        submodule_search_locations=[folder],
    )
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["perftracker"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["perftracker"]
        raise
