# SPDX-License-Identifier: Apache-2.0
"""This worker's (rank, local rank, world size), -1 where unknown."""

import os
import sys
from typing import Mapping, Tuple

# torchrun; Slurm; Open MPI; MPICH and Intel MPI. The first set with a rank is used.
_VARIABLES = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
)


def _number(env: Mapping[str, str], name: str) -> int:
    try:
        return int(env.get(name, ""))
    except ValueError:
        return -1


def from_env(env: Mapping[str, str]) -> Tuple[int, int, int]:
    for names in _VARIABLES:
        if _number(env, names[0]) >= 0:
            rank, local_rank, world_size = (_number(env, name) for name in names)
            return rank, local_rank, world_size
    return -1, -1, -1


def identity() -> Tuple[int, int, int]:
    """Prefers torch.distributed: processes of mp.spawn inherit their parent's environment."""
    rank, local_rank, world_size = from_env(os.environ)
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        if dist.get_rank() != rank:
            local_rank = -1
        rank, world_size = dist.get_rank(), dist.get_world_size()
    elif rank < 0:
        rank, world_size = _of_jax()
    return rank, local_rank, world_size


def _of_jax() -> Tuple[int, int]:
    """What jax.distributed.initialize() was given or found; no backend is started here."""
    module = sys.modules.get("jax._src.distributed")
    state = getattr(module, "global_state", None)
    if getattr(state, "client", None) is None:
        return -1, -1
    return int(getattr(state, "process_id", -1)), int(getattr(state, "num_processes", -1))
