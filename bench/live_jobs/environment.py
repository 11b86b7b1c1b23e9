# SPDX-License-Identifier: Apache-2.0
"""The Python of the programs: the repository's .venv with frameworks in a folder beside it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BASE = ROOT / ".venv"
FRAMEWORKS = ("transformers", "accelerate", "lightning", "ray[train]", "deepspeed", "jax")
# DeepSpeed has no wheel, and looks at torch while it is built.
NEEDS_TORCH_TO_BUILD = {"deepspeed"}


def base_version() -> str:
    words = [str(BASE / "bin" / "python"), "-c", "import torch; print(torch.__version__)"]
    return subprocess.check_output(words, text=True).strip().partition("+")[0]


def make(folder: pathlib.Path) -> pathlib.Path:
    """Its interpreter; on first use the frameworks are installed, those that can be had."""
    python = folder / "bin" / "python"
    stamp = folder / ".complete"
    if stamp.is_file():
        return python
    subprocess.check_call([str(BASE / "bin" / "python"), "-m", "venv", str(folder)])
    packages = next(folder.glob("lib/python3.*/site-packages"))
    (base_packages,) = BASE.resolve().glob("lib/python3.*/site-packages")
    (packages / "base.pth").write_text(f"{base_packages}\n")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pin = f"torch=={base_version()}"
    subprocess.check_call([*pip, "setuptools", "wheel"])
    for framework in FRAMEWORKS:
        extra = ["--no-build-isolation"] if framework in NEEDS_TORCH_TO_BUILD else []
        environment = {**os.environ, "DS_BUILD_OPS": "0"}
        print(f"live_jobs: pip install {framework}, once", file=sys.stderr)
        if subprocess.call([*pip, *extra, framework, pin], env=environment):
            print(f"live_jobs: {framework} can't be had; its programs are skipped", file=sys.stderr)
    stamp.touch()
    return python


def has(python: pathlib.Path, package: str) -> bool:
    if not package:
        return True
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"
    return subprocess.call([str(python), "-c", find]) == 0
