# SPDX-License-Identifier: Apache-2.0
"""What a job is, drawn from its seed: layout, sizes, noise, and how it is recorded.

Nothing here knows how PerfTracker decides. Ranges are those of real jobs, not of one cluster.
"""

from __future__ import annotations

import dataclasses
import math
import random

from engine import Group

KINDS = ("ddp", "tp", "fsdp", "pp", "pptp", "moe", "dlrm")

# Operator, its backward node, kernels of forward and backward, and a typical duration.
OPERATORS = (
    (
        "aten::linear",
        "AddmmBackward0",
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
        "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nt",
        3.0,
    ),
    (
        "aten::scaled_dot_product_attention",
        "ScaledDotProductFlashAttentionBackward0",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >(Flash_fwd_params)",
        "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<128, 64>(Flash_bwd_params)",
        2.0,
    ),
    (
        "aten::layer_norm",
        "NativeLayerNormBackward0",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
        "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<float, float>(int)",
        0.3,
    ),
    (
        "aten::gelu",
        "GeluBackward0",
        "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardKernel>(int)",
        0.3,
    ),
    (
        "aten::matmul",
        "MmBackward0",
        "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_stage4",
        "cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nt_align8",
        4.0,
    ),
    (
        "aten::cudnn_convolution",
        "ConvolutionBackward0",
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32",
        "cudnn::cnn::wgrad_alg0_engine<__half, 128, 5, 5, 3, 3, 3, false, 512>(int, int)",
        3.0,
    ),
)


@dataclasses.dataclass
class Spec:
    seed: int
    kind: str
    world: int
    per_host: int
    tp: int = 1
    pp: int = 1
    ep: int = 1
    layers: int = 4  # of a rank
    microbatches: int = 1
    iterations: int = 8
    unit_us: float = 100.0  # of GPU time, by which durations of kernels are multiplied
    operators: tuple = ()
    op_us: float = 12.0  # CPU time of one operator
    comm: float = 0.3  # time of the gradients' reduction, in times of a backward pass
    buckets: int = 2
    overlap: bool = True
    sync_every: int = 1  # iterations between reads of the loss
    loader_us: float = 300.0
    gpu_jitter: float = 0.01
    chip_jitter: float = 0.004
    cpu_jitter: float = 0.08
    hiccup: float = 0.02  # probability that an iteration of a rank has a pause of its own
    tokens_jitter: float = 0.0  # of experts, per layer and rank
    warmup: bool = False  # the first iteration is longer on all ranks
    head: float = 0.5  # the last stage's loss, in layers
    pulse_us: float = 1000.0  # with which links that wait for a slow one send
    # Recording
    annotations: bool = True
    stacks: bool = False
    ragged: bool = False  # frames begin some us before their older sibling ends
    shapes: bool = False
    comm_args: bool = True
    counters_us: float = 0.0  # period of samples; 0: none
    odd_ranks: tuple[int, ...] = ()  # that have recorded one iteration less
    clocks_us: tuple[float, ...] = ()  # by host
    drifts: tuple[float, ...] = ()
    host_names: bool = True
    compressed: bool = True
    order: str = "tp-dp-pp"
    first_step: int = 3
    groups: dict[str, list[Group]] = dataclasses.field(default_factory=dict)

    @property
    def dp(self) -> int:
        return self.world // (self.tp * self.pp)

    @property
    def compute_us(self) -> float:
        """Of an iteration, forward and backward."""
        unit = self.unit_us * sum(one[4] for one in self.operators)
        return 3 * unit * self.layers * self.microbatches

    def host(self, rank: int) -> int:
        return rank // self.per_host

    def host_ranks(self, host: int) -> frozenset[int]:
        return frozenset(rank for rank in range(self.world) if self.host(rank) == host)

    def place(self, rank: int) -> dict[str, int]:
        """The rank's number in each kind of parallelism."""
        found = {}
        for name in self.order.split("-"):
            size = {"tp": self.tp, "dp": self.dp, "pp": self.pp}[name]
            found[name] = rank % size
            rank //= size
        return found

    def group_of(self, kind: str, rank: int) -> Group:
        return next(one for one in self.groups[kind] if rank in one.ranks)

    def transfer_jitter(self, name: str) -> float:
        """Of a transfer, the same with and without a fault."""
        dice = random.Random(f"{self.seed}/transfer/{name}")
        return math.exp(abs(dice.gauss(0, 0.02)) + (dice.random() < 0.01) * dice.random() * 0.5)

    def make_group(self, name: str, text: str, ranks: tuple[int, ...], kind: str) -> Group:
        hosts: dict[int, list[int]] = {}
        for rank in ranks:
            hosts.setdefault(self.host(rank), []).append(rank)
        width = min(len(own) for own in hosts.values())
        rings = tuple(tuple(own[i] for own in hosts.values()) for i in range(width))
        return Group(name, text, ranks, rings if len(hosts) > 1 else (), kind)


def make_groups(spec: Spec, dice: random.Random) -> None:
    """Groups get their names in an order of their own, as frameworks differ in it."""
    wanted: list[tuple[str, tuple[int, ...]]] = []
    for kind in ("tp", "dp", "pp"):
        others = [name for name in ("tp", "dp", "pp") if name != kind]
        found: dict[tuple, list[int]] = {}
        for rank in range(spec.world):
            place = spec.place(rank)
            found.setdefault(tuple(place[name] for name in others), []).append(rank)
        wanted += [(kind, tuple(ranks)) for ranks in found.values() if len(ranks) > 1]
    if spec.ep > 1:
        starts = range(0, spec.world, spec.ep)
        wanted += [("ep", tuple(range(start, start + spec.ep))) for start in starts]
    dice.shuffle(wanted)
    texts = {"tp": "TENSOR_MODEL_PARALLEL_GROUP", "dp": "DATA_PARALLEL_GROUP"}
    texts |= {"pp": "PIPELINE_MODEL_PARALLEL_GROUP", "ep": "EXPERT_MODEL_PARALLEL_GROUP"}
    named = dice.random() < 0.5
    for number, (kind, ranks) in enumerate(sorted(wanted, key=lambda one: one[0])):
        whole = len(ranks) == spec.world
        name = "0" if whole else str(number + 1)
        text = "default_pg" if whole else texts[kind] if named else "undefined"
        spec.groups.setdefault(kind, []).append(spec.make_group(name, text, ranks, kind))


def draw_layout(kind: str, dice: random.Random) -> dict:
    if kind == "ddp":
        return {"world": dice.choice((2, 4, 8, 16)), "per_host": dice.choice((2, 4, 8))}
    if kind == "fsdp":
        return {"world": dice.choice((4, 8, 16)), "per_host": dice.choice((4, 8))}
    if kind == "dlrm":
        return {"world": dice.choice((4, 8, 16)), "per_host": 8}
    if kind == "moe":
        world = dice.choice((8, 16))
        return {"world": world, "per_host": 8, "ep": dice.choice((4, 8))}
    if kind == "tp":
        tp = dice.choice((2, 4))
        return {"world": dice.choice((8, 16, 32)), "per_host": dice.choice((4, 8)), "tp": tp}
    pp, tp = dice.choice((2, 4)), 2 if kind == "pptp" else 1
    dp = dice.choice((1, 2, 4)) if pp * tp <= 8 else 2
    dp = max(dp, 2) if pp == 2 else dp
    return {"world": pp * tp * dp, "per_host": dice.choice((4, 8)), "tp": tp, "pp": pp}


def draw(seed: int, kind: str, dice: random.Random) -> Spec:
    spec = Spec(seed, kind, **draw_layout(kind, dice))
    spec.per_host = min(spec.per_host, spec.world)
    spec.order = dice.choice(("tp-dp-pp", "tp-pp-dp"))
    if spec.kind in ("pp", "pptp"):
        spec.microbatches = spec.pp * dice.choice((1, 2))
        spec.layers = dice.choice((2, 3, 4))
    else:
        spec.layers = dice.randint(3, 8)
        spec.microbatches = dice.choice((1, 1, 2)) if kind == "ddp" else 1
    bound = dice.random()
    spec.unit_us = dice.uniform(60, 900) if bound > 0.15 else dice.uniform(8, 20)
    spec.op_us = dice.uniform(6, 25)
    spec.operators = tuple(dice.sample(OPERATORS, dice.randint(3, len(OPERATORS))))
    most = 768 // (spec.world * spec.layers * spec.microbatches)  # more would take too long
    spec.iterations = max(3, min(dice.choice((3, 4, 5, 5, 6, 8, 10, 12, 20, 50)), most))
    spec.comm = dice.uniform(0.1, 0.8)
    spec.buckets = dice.randint(1, min(4, spec.layers))
    spec.overlap = dice.random() < 0.7
    spec.sync_every = dice.choice((1, 1, 1, 2, 5))
    spec.loader_us = min(dice.uniform(60, 800), 0.02 * spec.compute_us)
    spec.gpu_jitter, spec.cpu_jitter = dice.uniform(0.002, 0.03), dice.uniform(0.03, 0.2)
    spec.chip_jitter = dice.uniform(0.001, 0.008)
    spec.hiccup = dice.choice((0.0, 0.02, 0.05))
    spec.tokens_jitter = dice.uniform(0.02, 0.15) if kind == "moe" else 0.0
    spec.warmup = dice.random() < 0.3
    spec.head = dice.uniform(0.0, 0.3)
    draw_recording(spec, dice)
    make_groups(spec, dice)
    return spec


def draw_recording(spec: Spec, dice: random.Random) -> None:
    hosts = range(-(-spec.world // spec.per_host))
    reach = dice.choice((0.0, 3e3, 5e5, 2e8))
    spec.clocks_us = tuple(dice.uniform(-reach, reach) for _ in hosts)
    spec.drifts = tuple(dice.uniform(-3e-5, 3e-5) for _ in hosts)
    spec.annotations = dice.random() < 0.85
    spec.stacks = dice.random() < 0.4
    spec.ragged = dice.random() < 0.5
    spec.shapes = dice.random() < 0.4
    spec.comm_args = dice.random() < 0.8
    spec.counters_us = dice.choice((0.0, 0.0, 100.0, 1000.0, 1000.0, 10000.0, 50000.0))
    spec.pulse_us = dice.choice((300.0, 1000.0, 4000.0))
    spec.host_names = dice.random() < 0.7
    spec.compressed = dice.random() < 0.5
    spec.first_step = dice.choice((0, 2, 5, 1200))
    if dice.random() < 0.15 and spec.iterations > 4:
        spec.odd_ranks = tuple(sorted(dice.sample(range(spec.world), 1)))
