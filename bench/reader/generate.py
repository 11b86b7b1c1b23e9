#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a Kineto trace of a given size: a training loop with Python stacks.

Deterministic: the same size gives the same bytes. Keys, spacing, order of the
sections and mean bytes an event follow what torch 2.4 to 2.13 write with
with_stack and record_shapes on CUDA: operators per thread, then Python frames,
then device and runtime events interleaved with flows, metadata, base time last.

An iteration has 9000 frames in about 7000 distinct stacks and takes 4 MB, as in
recorded traces of models; the next one runs the same code at a slightly different
pace. With --unlike each runs code of its own: then every stack is a function, which
no training loop does, and which is the worst that a summary can meet.
"""

import argparse
import random

BASE_NS = 1767189312000000000
START_US = 3743411222
PID = 542
AUTOGRAD = 639
STREAM = 7

MODULES = [
    f"torch/nn/modules/{m}.py({line}): {f}"
    for m, line in [
        ("module", 1751),
        ("linear", 125),
        ("conv", 554),
        ("activation", 133),
        ("normalization", 217),
        ("container", 250),
        ("dropout", 70),
        ("loss", 1293),
    ]
    for f in ("_call_impl", "_wrapped_call_impl", "forward", "__getattr__", "__setattr__")
]
USER = [f"train/model_{i % 13}.py({17 + 7 * i}): block_{i}" for i in range(200)]
BUILTIN = [
    f"<built-in method {m} of type object at 0x7f{i:010x}>"
    for i in range(30)
    for m in ("linear", "conv2d", "add", "matmul")
]
BUILTIN += [
    f"<built-in function {m}>" for m in ("len", "isinstance", "getattr", "hasattr", "print")
]
FRAMES = MODULES + USER + BUILTIN * 2
OPS = [
    "aten::linear",
    "aten::addmm",
    "aten::mm",
    "aten::t",
    "aten::transpose",
    "aten::as_strided",
    "aten::add_",
    "aten::empty",
    "aten::copy_",
    "aten::_to_copy",
    "aten::native_layer_norm",
    "autograd::engine::evaluate_function: AddmmBackward0",
    "AddmmBackward0",
]
KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3>)",
    "ampere_sgemm_128x64_tn",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
    "(int, float, float const*, float const*, float const*, float*, float*, float*)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t"
    "<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::"
    "{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, "
    "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()"
    "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
]


def us(ns):
    return f"{START_US * 1000 + ns // 1000}.{ns % 1000:03d}"


def dur(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


class Writer:
    """Appends events to a file and knows how many there are."""

    def __init__(self, out):
        self.out, self.ev, self.first = out, 0, True

    def event(self, text):
        self.out.write(text if self.first else ",\n" + text)
        self.first = False
        self.ev += 1


class Iteration:
    """The code of one iteration: what runs, and when after its begin (ns)."""

    FRAMES = 9000

    def __init__(self, rnd):
        self.frames = []  # (name, begin, end, index of the caller or None)
        self.ops = {PID: [], AUTOGRAD: []}  # (name, begin, end, dims)
        self.launches = []  # (begin, end of the call, number of its operator, kernel, length, grid)
        self.length = self.walk(rnd)

    def walk(self, rnd):
        """A walk over a call tree; the innermost frames call operators. Returns its end."""
        stack, now = [], 1000
        while len(self.frames) < self.FRAMES or stack:
            if len(self.frames) < self.FRAMES and self.goes_down(rnd, len(stack)):
                caller = stack[-1] if stack else None
                self.frames.append([rnd.choice(FRAMES), now, now, caller])
                stack.append(len(self.frames) - 1)
                now += rnd.randrange(200, 1500)
                if len(stack) > 12 and rnd.random() < 0.14:
                    now = self.operator(rnd, now)
            else:
                now += rnd.randrange(200, 1500)
                self.frames[stack.pop()][2] = now
        return now + 1000

    @staticmethod
    def goes_down(rnd, depth):
        return depth < 8 or (depth < 30 and rnd.random() < 0.53)

    def operator(self, rnd, now):
        """An operator around another one, which launches a kernel in most cases."""
        a, b, c = (rnd.choice((64, 256, 1024, 4096, 12288)) for _ in range(3))
        dims = (b, c, a, b, b, c, c)
        ops = self.ops[AUTOGRAD if rnd.random() < 0.25 else PID]
        begin, inner = now, now + rnd.randrange(500, 3000)
        now = inner + rnd.randrange(900, 5000)
        if rnd.random() < 0.8:
            end = now + rnd.randrange(2000, 15000)
            kernel = (rnd.choice(KERNELS), rnd.randrange(1500, 80000), rnd.randrange(1, 5000))
            self.launches.append((now, end, (ops is self.ops[PID], len(ops) + 1), *kernel))
            now = end + 300
        ops.append((rnd.choice(OPS), begin, now + 900, dims))
        ops.append((rnd.choice(OPS), inner, now, dims))
        return now + 1000


class Pace:
    """When an iteration began, and how fast it ran."""

    def __init__(self, rnd, begin, iteration):
        self.begin, self.rate = begin, rnd.uniform(0.97, 1.03)
        self.end = self.at(iteration.length)

    def at(self, offset):
        return self.begin + int(offset * self.rate)


def steps_of(size, unlike):
    """(code, pace) of each iteration, as many as make size bytes."""
    rnd, code = random.Random(20260917), None
    steps, begin, left = [], 5000, size
    while left > 0:
        if code is None or unlike:
            code = Iteration(rnd)
        steps.append((code, Pace(rnd, begin, code)))
        begin = steps[-1][1].end
        left -= 266 * len(code.frames) + 475 * sum(map(len, code.ops.values()))
        left -= 1205 * len(code.launches)
    return steps


def python_frames(w, steps):
    ident = 0
    for code, pace in steps:
        first = ident + 1
        for name, begin, end, caller in code.frames:
            ident += 1
            start = pace.at(begin)
            w.event(
                f'  {{\n    "ph": "X", "cat": "python_function", "name": "{name}", '
                f'"pid": {PID}, "tid": {PID},\n    "ts": {us(start)}, '
                f'"dur": {dur(pace.at(end) - start)},\n    "args": {{\n'
                f'      "Python parent id": {"null" if caller is None else first + caller}, '
                f'"Python id": {ident}, "Ev Idx": {w.ev}\n    }}\n  }}'
            )


def marks(w, steps):
    for number, (_, pace) in enumerate(steps):
        w.event(
            f'  {{\n    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{number}", '
            f'"pid": {PID}, "tid": {PID},\n    "ts": {us(pace.begin)}, '
            f'"dur": {dur(pace.end - pace.begin)},\n    "args": {{\n      '
            f'"External id": {number + 1},"Record function id": 0, "Ev Idx": {w.ev}\n    }}\n  }}'
        )


def operators(w, steps, tid, ext):
    """Returns the external ids of each iteration's first operator."""
    firsts = []
    for code, pace in steps:
        firsts.append(ext)
        for name, begin, end, (b, c, d, e, f, g, h) in code.ops[tid]:
            start = pace.at(begin)
            w.event(
                f'  {{\n    "ph": "X", "cat": "cpu_op", "name": "{name}", "pid": {PID}, '
                f'"tid": {tid},\n    "ts": {us(start)}, "dur": {dur(pace.at(end) - start)},\n'
                f'    "args": {{\n      "External id": {ext},"Record function id": 0, '
                f'"Concrete Inputs": ["", "", "", ""], '
                f'"Input type": ["float", "float", "float", "Scalar"], "Input Strides": '
                f'[[{b}, 1], [{c}, 1], [1], []], "Input Dims": [[{d}, {e}], [{f}, {g}], '
                f"[{h}], []], "
                f'"Ev Idx": {w.ev}\n    }}\n  }}'
            )
            ext += 1
    return firsts


def device(w, steps, own, autograd):
    corr, stream_free = 23451, 0
    for (code, pace), mains, others in zip(steps, own, autograd, strict=True):
        for begin, end, (main, number), kernel, length, grid in code.launches:
            ext, now = (mains if main else others) + number, pace.at(begin)
            # A stream runs its kernels one after the other.
            start = max(now + 4000, stream_free)
            stream_free = start + length
            w.event(
                f'  {{\n    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, '
                f'"tid": {STREAM},\n    "ts": {us(start)}, "dur": {dur(length)},\n    "args": {{\n'
                f'      "External id": {ext},      "queued": 0, "device": 0, "context": 1,      '
                f'"stream": '
                f'{STREAM}, "correlation": {corr},      "registers per thread": 16,      '
                f'"shared memory": 0, '
                f'     "blocks per SM": 0.012500,      "warps per SM": 0.050000,      "grid": '
                f'[{grid}, 1, 1],      "block": [{64 << grid % 4}, 1, 1],      '
                f'"est. achieved occupancy %": 31\n    }}\n  }}'
            )
            w.event(
                f'  {{\n    "ph": "f", "id": {corr}, "pid": 0, "tid": {STREAM}, '
                f'"ts": {us(start)},\n    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }}'
            )
            thread = PID if main else AUTOGRAD
            w.event(
                f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", '
                f'"pid": {PID}, '
                f'"tid": {thread},\n    "ts": {us(now)}, "dur": {dur(pace.at(end) - now)},\n'
                f'    "args": {{\n      "External id": {ext},      "cbid": 211, '
                f'"correlation": {corr}\n    }}\n  }}'
            )
            w.event(
                f'  {{\n    "ph": "s", "id": {corr}, "pid": {PID}, "tid": {thread}, '
                f'"ts": {us(now)},\n    "cat": "ac2g", "name": "ac2g"\n  }}'
            )
            corr += 1


def metadata(w):
    for tid, name in ((PID, "thread 542 (python3)"), (AUTOGRAD, "thread 639 (pt_autograd_0)")):
        w.event(
            f'  {{\n    "name": "thread_name", "ph": "M", "ts": {us(0)}, "pid": {PID}, '
            f'"tid": {tid},\n    "args": {{\n      "name": "{name}"\n    }}\n  }}'
        )


def generate(path, size, unlike):
    steps = steps_of(size, unlike)
    with open(path, "w", encoding="ascii", buffering=1 << 20) as out:
        w = Writer(out)
        out.write(
            '\n{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, "name": '
            '"NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028765696\n    }\n  ],\n'
            '  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},\n'
            '  "record_shapes": 1,\n  "with_stack": 1,\n  "traceEvents": [\n'
        )
        autograd = operators(w, steps, AUTOGRAD, 1)
        marks(w, steps)
        own = operators(w, steps, PID, autograd[-1] + len(steps[-1][0].ops[AUTOGRAD]))
        python_frames(w, steps)
        device(w, steps, own, autograd)
        metadata(w)
        out.write(
            '\n  ],\n  "traceName": "/tmp/trace.json",\n  "displayTimeUnit": "ms",\n'
            f'  "baseTimeNanoseconds": {BASE_NS}\n}}'
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--unlike", action="store_true", help="each iteration runs other code")
    args = parser.parse_args()
    generate(args.file, int(args.megabytes * 1e6), args.unlike)


if __name__ == "__main__":
    main()
