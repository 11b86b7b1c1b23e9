# SPDX-License-Identifier: Apache-2.0
"""The programs of jobs/, how each is started, and which of its functions faults happen in."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent


class Program(NamedTuple):
    """One way to start one file of jobs/."""

    name: str
    file: str
    ranks: int
    launcher: str  # "python", "torchrun" or "elastic"
    step: str  # called once in each iteration
    load: str  # makes a batch
    forward: str
    args: tuple[str, ...] = ()
    package: str = ""  # what it needs beside torch
    loader_workers: int = 0
    steps_unit: int = 1  # --steps is rounded up to a multiple of this
    accumulates: int = 1  # calls of `step` in one iteration of its optimizers
    ranked: bool = True  # its processes know their ranks; else PerfTracker counts them


PROGRAMS = (
    Program(
        "single",
        "single.py",
        1,
        "python",
        "Net.forward",
        "collate",
        "Net.forward",
        loader_workers=2,
    ),
    Program(
        "single-inline",
        "single.py",
        1,
        "python",
        "Net.forward",
        "collate",
        "Net.forward",
        args=("--workers=0",),
    ),
    Program(
        "epochs",
        "epochs.py",
        1,
        "python",
        "Regressor.forward",
        "to_batch",
        "Regressor.forward",
        steps_unit=50,
    ),
    Program(
        "short-epochs",
        "epochs.py",
        1,
        "python",
        "Regressor.forward",
        "to_batch",
        "Regressor.forward",
        args=("--batches=8",),
        steps_unit=8,
    ),
    Program("nanogpt", "nanogpt.py", 1, "python", "get_lr", "get_batch", "GPT.forward"),
    Program("nanogpt-ddp", "nanogpt.py", 2, "torchrun", "get_lr", "get_batch", "GPT.forward"),
    Program(
        "ddp",
        "ddp.py",
        4,
        "torchrun",
        "Transformer.forward",
        "collate_batch",
        "Transformer.forward",
        steps_unit=200,
    ),
    Program(
        "ddp-workers",
        "ddp.py",
        2,
        "torchrun",
        "Transformer.forward",
        "collate_batch",
        "Transformer.forward",
        args=("--workers=2",),
        loader_workers=2,
        steps_unit=200,
    ),
    Program("fsdp2", "fsdp2.py", 2, "torchrun", "next_batch", "next_batch", "Model.forward"),
    Program(
        "tensor-parallel",
        "tensor_parallel.py",
        2,
        "torchrun",
        "make_batch",
        "make_batch",
        "Model.forward",
    ),
    Program("pipeline", "pipeline.py", 2, "torchrun", "train_step", "fetch", "train_step"),
    Program(
        "grid", "grid.py", 4, "torchrun", "ShardedMLP.forward", "read_record", "ShardedMLP.forward"
    ),
    Program("moe", "moe.py", 4, "torchrun", "read_tokens", "read_tokens", "Dense.forward"),
    Program(
        "local-sgd", "local_sgd.py", 4, "torchrun", "Model.forward", "collate", "Model.forward"
    ),
    Program("own-sgd", "own_sgd.py", 2, "torchrun", "sample", "sample", "forward"),
    Program("elastic", "elastic.py", 2, "elastic", "Model.forward", "batch_of", "Model.forward"),
    Program("spawn", "spawn.py", 2, "python", "Tagger.forward", "pad", "Tagger.forward"),
    Program("compiled", "compiled.py", 1, "python", "train_step", "get_batch", "train_step"),
    Program(
        "compiled-step",
        "compiled.py",
        1,
        "python",
        "train_step",
        "get_batch",
        "train_step",
        args=("--compile-step",),
    ),
    Program("gan", "gan.py", 1, "python", "train_step", "collate", "Critic.forward"),
    Program("rl", "rl.py", 1, "python", "update", "rollout", "Policy.forward"),
    Program(
        "in-backward", "in_backward.py", 1, "python", "make_batch", "make_batch", "Net.forward"
    ),
    Program("momentum", "momentum.py", 1, "python", "update", "cut", "CharRNN.forward"),
    Program("amp", "amp.py", 1, "python", "update", "read_images", "Net.forward"),
    Program("lbfgs", "lbfgs.py", 1, "python", "fit", "sample_points", "fit"),
    Program("decode", "decode.py", 2, "torchrun", "pick", "pick", "Decoder.forward"),
    Program(
        "hf-trainer",
        "hf_trainer.py",
        1,
        "python",
        "TinyGPT.forward",
        "data_collator",
        "TinyGPT.forward",
        package="transformers",
    ),
    Program(
        "hf-trainer-ddp",
        "hf_trainer.py",
        2,
        "torchrun",
        "TinyGPT.forward",
        "data_collator",
        "TinyGPT.forward",
        package="transformers",
    ),
    Program(
        "accelerate",
        "accelerate_job.py",
        2,
        "torchrun",
        "Classifier.forward",
        "collate",
        "Classifier.forward",
        package="accelerate",
        accumulates=2,
    ),
    Program(
        "lightning",
        "lightning_job.py",
        2,
        "python",
        "AutoEncoder.training_step",
        "collate_rows",
        "AutoEncoder.forward",
        package="lightning",
    ),
    Program(
        "lightning-single",
        "lightning_job.py",
        1,
        "python",
        "AutoEncoder.training_step",
        "collate_rows",
        "AutoEncoder.forward",
        args=("--devices=1",),
        package="lightning",
    ),
    Program(
        "deepspeed",
        "deepspeed_job.py",
        2,
        "torchrun",
        "Net.forward",
        "collate",
        "Net.forward",
        package="deepspeed",
    ),
    Program(
        "ray", "ray_job.py", 2, "python", "Net.forward", "collate", "Net.forward", package="ray"
    ),
    Program(
        "timm",
        "timm_loop.py",
        1,
        "python",
        "mixup",
        "fast_collate",
        "ResNet.forward",
        loader_workers=2,
    ),
    Program("ppo", "ppo.py", 2, "torchrun", "advantages_of", "collect", "Actor.forward"),
    Program(
        "checkpointed",
        "checkpointed.py",
        2,
        "torchrun",
        "LanguageModel.forward",
        "stack",
        "LanguageModel.forward",
    ),
    Program(
        "stream",
        "stream.py",
        2,
        "torchrun",
        "Tagger.forward",
        "pack",
        "Tagger.forward",
        loader_workers=1,
    ),
    Program(
        "hogwild",
        "hogwild.py",
        3,
        "python",
        "LeNet.forward",
        "join",
        "LeNet.forward",
        ranked=False,
    ),
    Program("simclr", "simclr.py", 4, "torchrun", "Encoder.forward", "pairs", "Encoder.forward"),
    Program("full-batch", "full_batch.py", 1, "python", "neighbors", "neighbors", "GCN.forward"),
    Program("maml", "maml.py", 1, "python", "outer_loss", "tasks", "adapt"),
    Program("async", "async_loop.py", 1, "python", "train_on", "decode", "Denoiser.forward"),
    Program("threaded", "threaded.py", 1, "python", "train_step", "sample", "Net.forward"),
    Program("numpy", "numpy_loop.py", 1, "python", "gradient", "ratings", "update"),
    Program(
        "fabric",
        "fabric_job.py",
        2,
        "python",
        "Segmenter.forward",
        "crop",
        "Segmenter.forward",
        package="lightning",
        accumulates=2,
    ),
    Program(
        "lightning-gan",
        "lightning_gan.py",
        1,
        "python",
        "GAN.training_step",
        "batch_rings",
        "Generator.forward",
        package="lightning",
        accumulates=2,
    ),
    Program(
        "jax", "jax_loop.py", 1, "python", "train_step", "next_batch", "train_step", package="jax"
    ),
)
BY_NAME = {program.name: program for program in PROGRAMS}


def command(program: Program, python: str, script: str, steps: int) -> list[str]:
    """What a user types to start the program."""
    steps = -(-steps // program.steps_unit) * program.steps_unit
    words = [script, f"--steps={steps}", *program.args]
    ranks = f"--nproc-per-node={program.ranks}"
    rendezvous = ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    if program.launcher == "torchrun":
        return [python, "-m", "torch.distributed.run", *rendezvous, ranks, *words]
    if program.launcher == "elastic":
        restarts = ["--max-restarts=2", "--nnodes=1:1"]
        return [python, "-m", "torch.distributed.run", *rendezvous, *restarts, ranks, *words]
    return [python, *words]
