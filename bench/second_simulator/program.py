# SPDX-License-Identifier: Apache-2.0
"""What all ranks of a job run: the training loop, with the kinds of parallelism of the spec."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Generator

from engine import Engine, Group, Links, Work
from faults import Fault
from rank import COMPUTE, Rank
from spec import Spec

# A process group has one stream, so its collectives have one order on all ranks.
STREAMS = {"tp": 20, "ep": 22, "dp": 24}
Steps = Generator[Work, None, None]


class Trainer:
    """One rank's program."""

    def __init__(self, rank: Rank, sizes: dict[str, float]) -> None:
        self.cpu, self.spec, self.fault = rank, rank.spec, rank.fault
        self.sizes = sizes  # bytes that collectives of a kind move
        self.number = rank.rank
        self.place = self.spec.place(rank.rank)
        self.layers = self.spec.layers + self.fault.more_layers.get(self.place["pp"], 0)
        self.gate: list[Work] = []  # for which the next kernel of the compute stream waits
        self.pending: list[Work] = []  # reductions for which the optimizer waits

    def run(self) -> Steps:
        for iteration in range(self.spec.iterations):
            self.cpu.begin(iteration)
            name = f"ProfilerStep#{self.spec.first_step + iteration}"
            step = self.cpu.event(name, "user_annotation")
            with step, self.cpu.frame("train.py(91): train_step"):
                yield from self.iterate(iteration)
        yield from self.cpu.wait("cudaDeviceSynchronize", self.tails())
        self.cpu.steps.append(self.cpu.now)

    def tails(self) -> list[Work | None]:
        streams = (COMPUTE, *STREAMS.values(), 26, 28, 30, 32)
        return [self.cpu.engine.tail(self.number, stream) for stream in streams]

    def compute_tail(self) -> Work | None:
        return self.cpu.engine.tail(self.number, COMPUTE)

    def iterate(self, iteration: int) -> Steps:
        cpu = self.cpu
        yield from self.load()
        with cpu.frame("train.py(60): forward_backward"):
            yield from self.forward_backward()
        yield from self.optimize()
        if (iteration + 1) % self.spec.sync_every == 0:
            read, item = cpu.frame("train.py(77): read_loss"), cpu.event("aten::item")
            with read, item, cpu.event("aten::_local_scalar_dense"):
                copy = cpu.enqueue("Memcpy DtoH (Device -> Pageable)", COMPUTE, 1.5, [])
                copy.args["bytes"] = 4
                yield from cpu.wait("cudaStreamSynchronize", [copy])
        with cpu.frame("metrics.py(18): log_metrics"):
            cpu.work(30)
            yield from cpu.stall("log")
        if iteration in self.fault.evaluations:
            yield from self.evaluate()
        yield from cpu.stall("checkpoint")

    def load(self) -> Steps:
        cpu = self.cpu
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        frame = cpu.frame("torch/utils/data/dataloader.py(701): __next__")
        with frame, cpu.event(name, "user_annotation"):
            cpu.work(self.spec.loader_us)
            yield from cpu.stall("loader")
        with cpu.frame("augment.py(33): random_crop"):
            cpu.work(40)
            yield from cpu.stall("augment")
        with cpu.frame("train.py(40): copy_in"):
            yield from cpu.stall("copy")
            with cpu.event("aten::to"), cpu.event("aten::copy_"):
                start = cpu.now
                cpu.work(6)
                copy = cpu.enqueue("Memcpy HtoD (Pinned -> Device)", COMPUTE, 40.0, [])
                copy.args["bytes"] = 1 << 20
                cpu.record_call("cudaMemcpyAsync", start, copy)

    def forward_backward(self) -> Steps:
        if self.spec.pp > 1:
            yield from self.pipeline()
            return
        for micro in range(self.spec.microbatches):
            with self.cpu.frame("model.py(120): forward"):
                yield from self.forward()
            with self.cpu.frame("torch/autograd/__init__.py(300): backward"), self.cpu.on_thread(1):
                yield from self.backward(last=micro == self.spec.microbatches - 1)

    def pipeline(self) -> Steps:
        """One forward, one backward; sends and receives of each direction on a stream."""
        stage, last, count = self.place["pp"], self.spec.pp - 1, self.spec.microbatches
        ahead = min(last - stage, count)
        for micro in range(count + ahead):
            if micro < count:
                with self.cpu.frame("schedules.py(210): forward_step"):
                    yield from self.exchange(stage - 1, stage, 26)
                    yield from self.forward()
                    yield from self.exchange(stage, stage + 1, 28)
            if micro >= ahead:
                with self.cpu.frame("schedules.py(260): backward_step"):
                    yield from self.exchange(stage + 1, stage, 30)
                    with self.cpu.on_thread(1):
                        yield from self.backward(last=micro == count + ahead - 1)
                    yield from self.exchange(stage, stage - 1, 32)

    def exchange(self, sender: int, receiver: int, stream: int) -> Steps:
        """One tensor between neighbors; nothing at the ends of the pipeline."""
        if not 0 <= min(sender, receiver) <= max(sender, receiver) < self.spec.pp:
            return
        whole = self.spec.group_of("pp", self.number)
        ranks = tuple(whole.ranks[stage] for stage in (sender, receiver))
        pair = self.spec.make_group(f"{ranks[0]}>{ranks[1]}", "p2p", ranks, "p2p")
        what = "send" if ranks[0] == self.number else "recv"
        work = self.cpu.collective(
            what, pair, self.sizes["pp"], stream, [self.compute_tail()], whole
        )
        if what == "recv":
            self.gate = [work]
        yield from ()

    def kernel(self, name: str, kernel: str, unit: float) -> None:
        after, self.gate = self.gate, []
        self.cpu.operator(name, kernel, unit * self.spec.unit_us * self.fault.unit, after)

    def together(self, what: str, kind: str) -> None:
        """A collective for which the compute stream waits."""
        group, stream = self.spec.group_of(kind, self.number), STREAMS[kind]
        moved = self.sizes[kind]
        self.gate = [self.cpu.collective(what, group, moved, stream, [self.compute_tail()])]

    def forward(self) -> Steps:
        cpu, spec = self.cpu, self.spec
        gathered: list[Work] = []
        for layer in range(self.layers):
            with cpu.frame(f"nn.Module: Block_{layer}"):
                if spec.kind == "fsdp":
                    gathered.append(self.gather())
                    self.gate = [gathered[-1]]
                if spec.kind == "dlrm" and layer == 0:
                    self.kernel("fbgemm::lookup", "split_embedding_codegen_forward_kernel", 2.0)
                    self.together("all_to_all", "dp")
                for name, _, kernel, _, unit in spec.operators:
                    self.kernel(name, kernel, unit)
                if spec.ep > 1:
                    self.together("all_to_all", "ep")
                    self.kernel("moe::experts", "grouped_gemm_kernel", 4 * self.tokens())
                    self.together("all_to_all", "ep")
                if spec.tp > 1:
                    self.together("allreduce", "tp")
            if layer == self.layers // 2:
                yield from cpu.stall("forward")
        if self.place["pp"] == spec.pp - 1:
            self.kernel("aten::cross_entropy_loss", "cunn_SoftMaxForward", 3 * spec.head + 0.2)

    def tokens(self) -> float:
        return self.cpu.jitter(self.spec.tokens_jitter) if self.spec.tokens_jitter else 1.0

    def gather(self) -> Work:
        group = self.spec.group_of("dp", self.number)
        return self.cpu.collective("allgather", group, self.sizes["dp"], STREAMS["dp"], [])

    def backward(self, last: bool) -> Steps:
        cpu, spec = self.cpu, self.spec
        per_bucket = -(-self.layers // spec.buckets)
        ahead = self.gather() if spec.kind == "fsdp" else None
        for layer in reversed(range(self.layers)):
            if ahead:
                self.gate = [ahead]
                ahead = self.gather() if layer else None
            if spec.tp > 1:
                self.together("allreduce", "tp")
            for name, node, _, kernel, unit in reversed(spec.operators):
                with cpu.event(f"autograd::engine::evaluate_function: {node}"), cpu.event(node):
                    self.kernel(name.replace("aten::", "aten::_") + "_backward", kernel, 2 * unit)
            if spec.ep > 1:
                self.together("all_to_all", "ep")
                self.kernel("moe::experts", "grouped_gemm_kernel", 8 * self.tokens())
                self.together("all_to_all", "ep")
            if spec.kind == "fsdp":
                self.reduce("reduce_scatter")
            elif last and spec.overlap and layer % per_bucket == 0:
                self.reduce("allreduce")
        if spec.kind == "dlrm":
            self.together("all_to_all", "dp")
            self.kernel("fbgemm::backward", "split_embedding_codegen_backward_kernel", 4.0)
        if last and not spec.overlap and spec.kind != "fsdp":
            for _ in range(spec.buckets):
                self.reduce("allreduce")
        yield from cpu.stall("backward")

    def reduce(self, what: str) -> None:
        if self.spec.dp > 1:
            group = self.spec.group_of("dp", self.number)
            moved = self.sizes["grad"]
            after, stream = [self.compute_tail()], STREAMS["dp"]
            self.pending.append(self.cpu.collective(what, group, moved, stream, after))

    def optimize(self) -> Steps:
        cpu = self.cpu
        kernel = "void at::native::multi_tensor_apply_kernel<FusedAdamFunctor>(int)"
        step = cpu.event("Optimizer.step#AdamW.step", "user_annotation")
        with step, cpu.frame("torch/optim/adamw.py(220): step"):
            cpu.work(60)
            yield from cpu.stall("optimizer")
            self.gate, self.pending = self.pending, []
            for _ in range(3):
                self.kernel("aten::_fused_adamw_", kernel, 0.7)

    def evaluate(self) -> Steps:
        with self.cpu.frame("train.py(110): evaluate"):
            for _ in range(4):
                if self.spec.pp == 1:
                    yield from self.forward()


@dataclasses.dataclass
class Played:
    """A simulated job."""

    spec: Spec
    fault: Fault
    engine: Engine
    ranks: dict[int, Rank]

    @property
    def iteration_us(self) -> float:
        """Mean length of all but the first, from the end of all that it launched."""
        ends = [0.0] * self.spec.iterations
        for rank in self.ranks.values():
            for iteration, end in enumerate(rank.steps[1:]):
                ends[iteration] = max(ends[iteration], end)
        for work in self.engine.done:
            iteration = bisect.bisect_right(self.ranks[work.rank].steps, work.launched) - 1
            iteration = min(iteration, self.spec.iterations - 1)
            ends[iteration] = max(ends[iteration], work.end)
        return (max(ends) - ends[0]) / (self.spec.iterations - 1)


def sizes_of(spec: Spec, links: Links) -> dict[str, float]:
    """Bytes of each kind of collective, from the share of time that it shall take."""
    unit = spec.unit_us * sum(one[4] for one in spec.operators)
    backward = 2 * unit * spec.layers

    def rate(group: Group) -> float:
        return links.nic * len(group.rings) if group.rings else links.nvlink

    sizes = {"pp": max(2e4, 0.05 * unit * links.nic)}
    for kind, groups in spec.groups.items():
        if kind in ("tp", "ep"):
            sizes[kind] = 0.15 * unit * rate(groups[0])
        elif kind == "dp":
            sizes["grad"] = spec.comm * backward / spec.buckets * rate(groups[0])
            sizes["dp"] = 0.3 * spec.comm * 2 * unit * rate(groups[0])
            if spec.kind == "fsdp":
                sizes["grad"] = spec.comm * 2 * unit * rate(groups[0])
            if spec.kind == "dlrm":
                sizes["dp"] = 0.1 * backward * rate(groups[0])
    return sizes


def play(spec: Spec, fault: Fault) -> Played:
    links = Links(nic=22e3, nvlink=180e3, latency_us=8.0, peak=0.85)
    sizes = sizes_of(spec, links)
    links.slow_nics, links.slow_groups = fault.nics, fault.links
    engine = Engine(links, spec.transfer_jitter)
    ranks = {number: Rank(spec, fault, engine, number) for number in range(spec.world)}
    engine.run({number: Trainer(rank, sizes).run() for number, rank in ranks.items()})
    return Played(spec, fault, engine, ranks)
